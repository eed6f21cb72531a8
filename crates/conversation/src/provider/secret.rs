//! API keys: their sources, and a type that never shows them.

use std::collections::HashSet;
use std::ops::Range;
use std::process::Stdio;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use tokio::process::Command;

/// Maximum time for a command to print a key; the command may have to ask for a passphrase.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// Minimum length, in bytes, of a key whose occurrence in a text cannot be a coincidence. Words
/// such as "none", used for servers that need no key, are shorter.
const LEAST_UNLIKELY: usize = 5;
/// Number of characters of a key whose occurrence in a text cannot be a coincidence, either. Servers
/// repeat the beginning of a key to say which one they refuse.
const TOLD_PART: usize = 8;
/// Minimum length, in bytes, of a key that is looked for in an answer. Shorter ones, such as "ollama",
/// may be words, and hiding them would change what a model said.
const LEAST_IN_ANSWER: usize = 16;
/// Maximum length of a key in bytes.
const LONGEST_KEY: usize = 16 << 10;

/// A key, or the value of a header. It cannot be printed, compared or stored, only sent.
#[derive(Clone)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct Secret(#[cfg_attr(feature = "schema", schemars(with = "String"))] Box<str>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const NONE: &str = "must be a string that is not empty";
        // The error is not passed on, since it would repeat the key.
        let text = String::deserialize(deserializer).map_err(|_| D::Error::custom(NONE))?;
        Self::new(&text).ok_or_else(|| D::Error::custom(NONE))
    }
}

impl Secret {
    /// Creates a key from the first nonblank line of a text, trimmed; `None` if there is no such
    /// line.
    pub fn new(text: &str) -> Option<Self> {
        let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
        (!line.is_empty()).then(|| Self(line.into()))
    }

    /// Returns the key itself, for sending.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces the key and its parts of at least [`TOLD_PART`] characters in a text with an
    /// ellipsis, since a server's message may repeat them. A key shorter than [`LEAST_UNLIKELY`] is
    /// replaced only where it is a separate word.
    pub fn hidden_in(&self, text: &str) -> String {
        if self.0.len() >= LEAST_UNLIKELY {
            let text = &*text.replace(&*self.0, "…");
            let parts: HashSet<&str> = parts(&self.0).map(|(part, _)| part).collect();
            let (mut hidden, mut end) = (String::with_capacity(text.len()), 0);
            for (_, at) in self::parts(text).filter(|(part, _)| parts.contains(part)) {
                if at.start > end || end == 0 {
                    hidden += &text[end..at.start];
                    hidden.push('…');
                }
                end = at.end;
            }
            return hidden + &text[end..];
        }
        let mut hidden = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(&*self.0) {
            let (before, found) = rest.split_at(at);
            let after = &found[self.0.len()..];
            hidden += before;
            let continues = hidden.ends_with(char::is_alphanumeric);
            let is_word = !continues && !after.starts_with(char::is_alphanumeric);
            hidden += if is_word { "…" } else { &self.0 };
            rest = after;
        }
        hidden + rest
    }

    /// Like [`hidden_in`](Self::hidden_in), for a truncated text, which may end in the middle of
    /// the key.
    pub(super) fn hidden_in_beginning(&self, text: &str) -> String {
        let mut hidden = self.hidden_in(text);
        let begins = self.0.char_indices().map(|(end, _)| &self.0[..end]).rev();
        let is_short = self.0.len() < LEAST_UNLIKELY;
        let is_begun = |begun: &&str| {
            hidden
                .strip_suffix(begun)
                .is_some_and(|before| !is_short || !before.ends_with(char::is_alphanumeric))
        };
        let begun = begins.into_iter().find(is_begun).unwrap_or_default();
        hidden.truncate(hidden.len() - begun.len());
        hidden
    }
}

/// Returns all runs of [`TOLD_PART`] characters of a text without blanks, each with its place. Text
/// before a blank, such as `Bearer`, does not belong to the key.
fn parts(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]).skip(TOLD_PART);
    let places = text.char_indices().map(|(at, _)| at).zip(ends);
    let runs = places.map(|(start, end)| (&text[start..end], start..end));
    runs.filter(|(run, _)| !run.contains(char::is_whitespace))
}

/// The secrets that were sent with a request, which its answer may repeat.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestSecrets(Vec<Secret>);

impl RequestSecrets {
    /// Collects secrets. In a value such as `Bearer KEY`, the key alone is a secret, too.
    pub(super) fn new<'s>(sent: impl IntoIterator<Item = &'s Secret>) -> Self {
        let each = |secret: &'s Secret| {
            let words = secret.0.split_whitespace().skip(1).filter_map(Secret::new);
            std::iter::once(secret.clone()).chain(words)
        };
        let mut all: Vec<Secret> = sent.into_iter().flat_map(each).collect();
        // One may be a part of another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.0.len()));
        Self(all)
    }

    /// Replaces each secret in a text; see [`Secret::hidden_in`].
    pub(super) fn hidden_in(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| secret.hidden_in(&text))
    }

    /// Replaces each whole secret in an answer.
    pub(super) fn hidden_whole(&self, text: &str) -> String {
        self.in_answer().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }

    /// Returns the place at which the end of a text may begin a secret.
    pub(super) fn begun_at(&self, text: &str) -> usize {
        let begun = |secret: &str| {
            let first = text.ceil_char_boundary(text.len().saturating_sub(secret.len()));
            let is_begun =
                |at: &usize| text.is_char_boundary(*at) && secret.starts_with(&text[*at..]);
            (first..text.len()).find(is_begun)
        };
        self.in_answer().filter_map(begun).min().unwrap_or(text.len())
    }

    fn in_answer(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Secret::reveal).filter(|secret| secret.len() >= LEAST_IN_ANSWER)
    }

    /// Does the same as [`hidden_in`](Self::hidden_in) for a truncated text.
    pub(super) fn hidden_in_beginning(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| secret.hidden_in_beginning(&text))
    }
}

/// The source of a key.
#[derive(Debug, Clone, Default)]
pub enum KeySource {
    /// No key. Local servers need none.
    #[default]
    None,
    /// Environment variable with this name.
    Environment(String),
    /// First line that this shell command prints.
    Command(String),
    /// A key given directly.
    Given(Secret),
}

impl KeySource {
    /// Returns the key; `None` if the server needs none.
    ///
    /// # Errors
    /// The reason why there is no key.
    pub async fn key(&self) -> Result<Option<Secret>, String> {
        self.fetch("api-key-command").await
    }

    /// Does the same for the value of `setting`, whose command an error names so.
    pub async fn fetch(&self, setting: &str) -> Result<Option<Secret>, String> {
        match self {
            Self::None => Ok(None),
            Self::Given(key) => Ok(Some(key.clone())),
            Self::Environment(name) => from_environment(name).map(Some),
            Self::Command(command) => from_command(setting, command).await.map(Some),
        }
    }

    /// Checks that the key is available, as far as possible without fetching it.
    ///
    /// # Errors
    /// The reason why there is no key, and what to do.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Environment(name) => from_environment(name)
                .map(drop)
                .map_err(|why| format!("{why}; set it where you start the server")),
            Self::None | Self::Command(_) | Self::Given(_) => Ok(()),
        }
    }
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Environment(name) => write!(f, "from the variable {name}"),
            Self::Command(command) => write!(f, "from the command {command:?}"),
            Self::Given(_) => f.write_str("given"),
        }
    }
}

fn from_environment(name: &str) -> Result<Secret, String> {
    let value = std::env::var(name).ok();
    value
        .as_deref()
        .and_then(Secret::new)
        .ok_or_else(|| format!("the environment variable {name} is empty or not set"))
}

async fn from_command(setting: &str, command: &str) -> Result<Secret, String> {
    // Standard error is dropped, as it may contain the key.
    let running = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let failed = |why: String| format!("{setting} {command:?} {why}; try it in a shell");
    let output = tokio::time::timeout(COMMAND_TIME, running)
        .await
        .map_err(|_| failed(format!("took longer than {} s", COMMAND_TIME.as_secs())))?
        .map_err(|error| failed(format!("could not be run: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("failed with {}", output.status)));
    }
    let text = String::from_utf8(output.stdout).ok().filter(|text| text.len() <= LONGEST_KEY);
    let why = "printed no key, or one that is too long or not UTF-8";
    text.as_deref().and_then(Secret::new).ok_or_else(|| failed(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_itself_to_nobody() {
        let secret = Secret::new("  sk-123 \nmore").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.reveal(), "sk-123");
        assert_eq!(secret.hidden_in("bad key sk-123!"), "bad key …!");
        assert_eq!(secret.hidden_in_beginning("sk-123: no sk-12"), "…: no ");
        assert_eq!(secret.hidden_in_beginning("no key"), "no key");
        assert!(Secret::new(" \n ").is_none());
    }

    #[test]
    fn a_key_is_hidden_without_the_words_before_it() {
        let sent = ["Bearer sk-123456", "sk-123"].map(|text| Secret::new(text).unwrap());
        let secrets = RequestSecrets::new(&sent);
        assert_eq!(secrets.hidden_in("no sk-123456, no Bearer sk-123456, sk-123"), "no …, no …, …");
        assert_eq!(secrets.hidden_in_beginning("no sk-12345"), "no …");
        assert!(!format!("{secrets:?}").contains("sk-"));
    }

    #[test]
    fn no_long_part_of_a_key_is_shown() {
        let key = "sk-proj-aB3dE5fG7hI9jK1λ";
        let secret = Secret::new(key).unwrap();
        let chars: Vec<char> = key.chars().collect();
        for length in 1..=chars.len() {
            for part in chars.windows(length) {
                let part: String = part.iter().collect();
                let shown = secret.hidden_in(&format!("key {part}*** is wrong, λ {part}"));
                let expected = if length < TOLD_PART { &*part } else { "…" };
                assert_eq!(shown, format!("key {expected}*** is wrong, λ {expected}"));
            }
        }
        let twice = format!("{key}{key}x{key}");
        assert_eq!(secret.hidden_in(&twice), "……x…");
    }

    #[test]
    fn a_short_key_is_hidden_as_a_word_and_does_not_mangle_others() {
        let hidden = |key: &str, text: &str| Secret::new(key).unwrap().hidden_in(text);
        assert_eq!(hidden("a", "a bad key, a: was (a)"), "… bad key, …: was (…)");
        assert_eq!(hidden("x", "exceeds x, xx max, x"), "exceeds …, xx max, …");
        assert_eq!(hidden("none", "no key 'none'; nonetheless"), "no key '…'; nonetheless");
        assert_eq!(hidden("k-1", "Bearer k-1, k-12, xk-1"), "Bearer …, k-12, xk-1");
        assert_eq!(hidden("aa", "aaa aa aaaa"), "aaa … aaaa");
        assert_eq!(hidden("é", "é café"), "… café");
        let cut = |text: &str| Secret::new("test").unwrap().hidden_in_beginning(text);
        assert_eq!((cut("no key tes"), cut("the contes")), ("no key ".into(), "the contes".into()));
    }

    #[track_caller]
    fn check(source: &KeySource, expected: Result<&str, &str>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        match (runtime.block_on(source.key()), expected) {
            (Ok(Some(key)), Ok(expected)) => assert_eq!(key.reveal(), expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (found, expected) => panic!("{found:?} in place of {expected:?}"),
        }
    }

    #[test]
    fn keys_come_from_commands_and_variables() {
        let command = |text: &str| KeySource::Command(text.to_owned());
        check(&command("echo key-1; echo more"), Ok("key-1"));
        check(&command("exit 3"), Err("failed with exit status: 3; try it in a shell"));
        check(&command("true"), Err("printed no key"));
        let unset = KeySource::Environment("CONTEXTURE_NO_SUCH_KEY".to_owned());
        check(&unset, Err("CONTEXTURE_NO_SUCH_KEY is empty or not set"));
        assert!(unset.check().is_err());
    }
}
