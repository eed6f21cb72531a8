//! Finds the topics of a message's text in one pass, when the message is made.
//!
//! Only the text of a message is read, even if it is the output of a tool. The arguments of a call
//! are left out because they say what a model wants to do, and a search for "error" is not an
//! error. The name of a called tool counts, since it tells whether files are written.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::message::{Role, Signals, ToolCall};

/// Texts with more characters than this are long.
pub const LONG: usize = 1_000;

/// The words to find, each with the signal that it sets.
const WORDS: &[(&str, FoundSignals)] = &[
    ("error", FoundSignals::Error),
    ("failed", FoundSignals::Error),
    ("failure", FoundSignals::Error),
    ("exception", FoundSignals::Error),
    ("panic", FoundSignals::Error),
    ("success", FoundSignals::Success),
    ("completed", FoundSignals::Success),
    ("create:", FoundSignals::Operation),
    ("update:", FoundSignals::Operation),
    ("delete:", FoundSignals::Operation),
];

/// Words in a tool's name. Each of them shows that the tool writes files.
const WRITES: &[&str] = &["write", "edit", "multiedit", "editor", "patch"];

/// Words in a tool's name. Each of them shows that the tool writes files, if the name also has one
/// of [`FILES`].
const CHANGES: &[&str] =
    &["create", "update", "delete", "remove", "rename", "move", "append", "insert", "replace"];
const FILES: &[&str] = &["file", "files", "directory", "dir", "folder", "buffer", "line", "lines"];

#[derive(Clone, Copy)]
enum FoundSignals {
    Error,
    Success,
    Operation,
}

impl Signals {
    /// Finds the signals of a message. Words match in any letter case, also inside other words.
    pub fn of(role: Role, content: &str, calls: &[ToolCall]) -> Self {
        let mut signals = Self { long: is_long(content), ..Self::default() };
        signals.operation = role == Role::Assistant && calls.iter().any(writes);
        let Some(finder) = &*FINDER else { return signals };
        for found in finder.find_iter(content) {
            match WORDS[found.pattern().as_usize()].1 {
                FoundSignals::Error => signals.error = true,
                FoundSignals::Success => signals.success = true,
                FoundSignals::Operation => signals.operation = true,
            }
            if signals.error && signals.success && signals.operation {
                break;
            }
        }
        signals
    }
}

/// Finder of the words; `None` only if there are too many, which a test rules out.
static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(WORDS.iter().map(|(word, _)| word))
        .ok()
});

/// Returns whether a text is long. The number of bytes decides for most texts without counting
/// characters.
fn is_long(content: &str) -> bool {
    content.len() > LONG && (content.len() > 4 * LONG || content.chars().count() > LONG)
}

fn writes(call: &ToolCall) -> bool {
    let words = words(&call.name);
    let any = |among: &[&str]| words.iter().any(|word| among.contains(&word.as_str()));
    any(WRITES) || (any(CHANGES) && any(FILES))
}

/// Splits the name of a tool into lower-case words: `str_replace`, `NotebookEdit` and `fs.write`
/// have two each.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(signals: Signals) -> String {
        let named = [
            (signals.error, "error"),
            (signals.success, "success"),
            (signals.operation, "operation"),
            (signals.long, "long"),
        ];
        let there: Vec<&str> =
            named.iter().filter(|(there, _)| *there).map(|(_, name)| *name).collect();
        there.join(" ")
    }

    #[track_caller]
    fn check(content: &str, expected: &str) {
        assert!(FINDER.is_some());
        assert_eq!(show(Signals::of(Role::User, content, &[])), expected, "{content}");
    }

    #[test]
    fn words_match_in_any_case() {
        check("hello", "");
        check("ERROR: Failed", "error");
        check("thread 'main' panicked", "error");
        check("NullPointerException", "error");
        check("a failure, then Success", "error success");
        check("Completed.", "success");
        check("CREATE: src/a.rs\nUPDATE: src/b.rs", "operation");
        check("create a file", "");
        check("delete: x, completed with an error", "error success operation");
    }

    #[test]
    fn long_is_more_than_a_thousand_characters() {
        check(&"a".repeat(1_000), "");
        check(&"a".repeat(1_001), "long");
        check(&"é".repeat(1_000), "");
        check(&"𝄞".repeat(1_000), "");
        check(&"𝄞".repeat(1_001), "long");
        check(&"a".repeat(9_000), "long");
    }

    #[track_caller]
    fn check_tool(name: &str, operation: bool) {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: "error".into() };
        let signals = Signals::of(Role::Assistant, "", &[call]);
        assert_eq!(signals, Signals { operation, ..Signals::default() }, "{name}");
    }

    #[test]
    fn tools_that_write_are_recognized_by_name() {
        for name in ["write_file", "Edit", "MultiEdit", "apply_patch", "fs.write", "delete-file"] {
            check_tool(name, true);
        }
        for name in ["str_replace_editor", "str_replace_based_edit_tool", "createDirectory"] {
            check_tool(name, true);
        }
        for name in ["read_file", "grep", "credit_check", "create_issue", "", "_"] {
            check_tool(name, false);
        }
    }
}
