//! Answers for models: texts with their sizes, and errors that say what to do.

use std::borrow::Cow;

use rmcp::model::{ErrorCode, ErrorData};

use crate::tokens::{Counter, Estimate};
use crate::visible::{shortened, visible};
use crate::wording::counted;

/// Maximum size of a text that one answer shows, in tokens.
pub(super) const MAX_SHOWN: u64 = 8_000;

/// Maximum length of a reason, in bytes. It may quote a name from the request.
pub(super) const MAX_REASON_BYTES: usize = 4 << 10;

/// The reason why a tool has no answer, in words for a model.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// No server can be reached or started.
    #[error("cannot reach the Contexture server: {0}; ask the user to run `contexture doctor`")]
    Unreachable(String),
    /// The connection to the server ended during the call, or the reply is not a valid message.
    #[error("no valid answer came from the Contexture server; call the tool again")]
    Lost,
    /// The server does not answer in time.
    #[error("the Contexture server did not answer in time; ask for less, or try again later")]
    Slow,
    /// The server does not even answer that it is there.
    #[error(
        "the Contexture server does not answer; it may be stopped; ask the user to run `contexture \
         doctor`"
    )]
    Mute,
    /// The server refused the call.
    #[error("{0}")]
    Refused(String),
    /// The server's answer has an unexpected form.
    #[error(
        "the Contexture server's answer has an unexpected form, so the server may be a different version ({0}); ask the user to restart the server"
    )]
    Odd(serde_json::Error),
    /// The arguments are wrong, or name something that does not exist.
    #[error("{0}")]
    Wrong(String),
}

impl Trouble {
    /// Returns the reason in words for a model, without its middle if it is long.
    pub(super) fn reason(&self) -> String {
        shortened(&self.to_string(), MAX_REASON_BYTES).into_owned()
    }

    /// Returns the reason in words for a person, without advice that only a model can follow.
    pub(super) fn for_person(&self) -> String {
        match self {
            Self::Unreachable(why) => format!("cannot reach the Contexture server: {why}"),
            Self::Lost => "no valid answer came from the Contexture server".to_owned(),
            Self::Slow => "the Contexture server did not answer in time".to_owned(),
            Self::Mute => "the Contexture server does not answer; it may be stopped".to_owned(),
            Self::Odd(why) => format!(
                "the Contexture server's answer has an unexpected form, so the server may be a \
                 different version ({why}); restart the server"
            ),
            Self::Refused(why) | Self::Wrong(why) => why.clone(),
        }
    }
}

/// Refuses a request of an agent.
pub(super) fn refused(code: ErrorCode, trouble: &Trouble) -> ErrorData {
    ErrorData::new(code, Cow::Owned(trouble.reason()), None)
}

/// Returns on one line, with hidden characters made visible, a text that a client, a model or a
/// file chose: a name, an excerpt, a reason. Every tool writes such texts with this function.
pub(super) fn shown(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    visible(&line.join(" ")).into_owned()
}

/// Returns an answer: a first line, which begins with `head` and ends with the size of `body`, and
/// the body.
pub(super) fn sized(head: &str, body: &str) -> String {
    let body = body.trim_end();
    let tokens = counted(Estimate.count(body), "token");
    format!("{head} · about {tokens}\n\n{body}\n")
}

/// Returns the beginning of a text, of at most about [`MAX_SHOWN`] tokens, and the number of lines
/// in this beginning. The beginning ends after a whole line, if it has one. Returns `None` if the
/// whole text fits.
pub(super) fn beginning(text: &str) -> Option<(&str, u64)> {
    let (end, _) = text.char_indices().nth(MAX_SHOWN as usize * 4)?;
    let shown = text[..end].rfind('\n').map_or(&text[..end], |line| &text[..=line]);
    Some((shown, shown.lines().count() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_after_a_line() {
        assert_eq!(beginning("short\n"), None);
        let long = "é line\n".repeat(10_000);
        let (shown, lines) = beginning(&long).unwrap();
        assert!(shown.ends_with("line\n") && Estimate.count(shown) <= MAX_SHOWN);
        assert_eq!(lines, shown.matches('\n').count() as u64);
        let unbroken = "x".repeat(50_000);
        assert_eq!(beginning(&unbroken).unwrap().0.len(), 32_000);
    }
}
