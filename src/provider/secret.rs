//! Keys: where they come from, and a type that shows them to nobody.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// How long a command may take to give a key; it may have to ask for a passphrase.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// How many bytes a key has at least for its being in a text to be no chance. Words such as "none"
/// that stand for a key with a server that wants none are shorter.
const LEAST_UNLIKELY: usize = 5;
/// The longest key, in bytes.
const LONGEST_KEY: usize = 16 << 10;

/// A key. It cannot be printed, compared or stored, only sent.
#[derive(Clone)]
pub struct Secret(Box<str>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// The first line of the text, without the space around it; `None` when that is empty.
    pub fn new(text: &str) -> Option<Self> {
        let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
        (!line.is_empty()).then(|| Self(line.into()))
    }

    /// The key itself, to be sent.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// The text with the key taken out, for servers that repeat what they were sent. A key shorter
    /// than [`LEAST_UNLIKELY`] is taken out where it stands as a word of its own.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        if self.0.len() >= LEAST_UNLIKELY {
            return text.replace(&*self.0, "…");
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

    /// The same for the beginning of a text, which may end in the middle of the key.
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

/// Where a key comes from.
#[derive(Debug, Clone, Default)]
pub enum KeySource {
    /// None is sent, as to servers on one's own machine.
    #[default]
    None,
    /// The environment variable of this name.
    Environment(String),
    /// The first line that this command prints; a shell runs it.
    Command(String),
    /// Whoever configured the provider gave it.
    Given(Secret),
}

impl KeySource {
    /// The key.
    ///
    /// # Errors
    /// A phrase that says why there is none and what to do.
    pub async fn key(&self) -> Result<Option<Secret>, String> {
        match self {
            Self::None => Ok(None),
            Self::Given(key) => Ok(Some(key.clone())),
            Self::Environment(name) => from_environment(name).map(Some),
            Self::Command(command) => from_command(command).await.map(Some),
        }
    }

    /// Whether the key is where it should be, as far as that can be seen without asking for it.
    ///
    /// # Errors
    /// A phrase that says what to do.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Environment(name) => from_environment(name).map(drop),
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
    value.as_deref().and_then(Secret::new).ok_or_else(|| {
        format!("the environment variable {name} has no key; set it where the server is started")
    })
}

async fn from_command(command: &str) -> Result<Secret, String> {
    // What it writes to standard error is its own affair and may hold the key.
    let running = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let failed = |why: String| format!("api-key-command {command:?} {why}; try it in a shell");
    let output = tokio::time::timeout(COMMAND_TIME, running)
        .await
        .map_err(|_| failed(format!("took longer than {} s", COMMAND_TIME.as_secs())))?
        .map_err(|error| failed(format!("could not be run: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("failed with {}", output.status)));
    }
    let text = String::from_utf8(output.stdout).ok().filter(|text| text.len() <= LONGEST_KEY);
    text.as_deref().and_then(Secret::new).ok_or_else(|| failed("printed no key".to_owned()))
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
        check(&unset, Err("CONTEXTURE_NO_SUCH_KEY has no key"));
        assert!(unset.check().is_err());
    }
}
