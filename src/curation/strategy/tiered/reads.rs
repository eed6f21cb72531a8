//! Finds tool results that show a file that was read again, or written as a whole, later.

use std::collections::HashMap;

use crate::curation::unit::History;
use crate::session::message::{Message, Role, ToolCall};

/// Maximum length of a command in the result of [`source`], in bytes.
const LONGEST_COMMAND: usize = 32;

/// Maximum number of names to show, from the end of a path.
const LAST_NAMES: usize = 3;

/// The reads so far, and those that a later read or write replaces.
#[derive(Default)]
pub(super) struct Reads<'h> {
    /// Newest read of each file, as the index of its message.
    newest: HashMap<&'h str, usize>,
    /// Older reads, each with the later read, or the result of the later write, that replaces it.
    superseded: HashMap<usize, usize>,
}

impl<'h> Reads<'h> {
    /// Records all messages of a history.
    pub(super) fn over(history: &History<'h>) -> Self {
        let mut reads = Self::default();
        for (unit, members) in history.units.iter().map(|unit| &unit.members).enumerate() {
            members.iter().for_each(|index| reads.see(history, unit, *index));
        }
        reads
    }

    /// Records the message at `index` of the history, which belongs to `unit`.
    pub(super) fn see(&mut self, history: &History<'h>, unit: usize, index: usize) {
        let message = history.messages[index];
        if message.role != Role::Tool {
            return;
        }
        let caller = history.messages[history.units[unit].members[0]];
        let Some(call) = call_of(caller, message) else { return };
        // A failed call replaces nothing, and neither does a read of a part of the file.
        let failed = message.signals.error && !message.signals.long;
        let older = match path_read(call) {
            _ if failed => None,
            Some(path) if !is_partial(call) => self.newest.insert(path, index),
            _ => path_written(call).and_then(|path| self.newest.remove(path)),
        };
        if let Some(older) = older {
            self.superseded.insert(older, index);
        }
    }

    /// Returns whether a later read or write, up to message `now`, replaces the read at `index`.
    pub(super) fn is_superseded(&self, index: usize, now: usize) -> bool {
        self.superseded.get(&index).is_some_and(|later| *later <= now)
    }
}

/// Returns the source of a result in a few words: the path that was read, the command that was run,
/// or the name of the tool.
pub(super) fn source(history: &History<'_>, unit: usize, index: usize) -> String {
    let caller = history.messages[history.units[unit].members[0]];
    let Some(call) = call_of(caller, history.messages[index]) else { return "tool".to_owned() };
    let command = || ["command", "cmd"].iter().find_map(|it| string_field(&call.arguments, it));
    match (path_read(call), command()) {
        (Some(path), _) => end_of(path),
        (None, Some(command)) => {
            let line = command.split("\\n").next().unwrap_or_default();
            let cut = &line[..line.floor_char_boundary(LONGEST_COMMAND)];
            let mark = if cut.len() < command.len() { "…" } else { "" };
            format!("{} {}{mark}", call.name, cut.trim_end_matches('\\'))
        }
        (None, None) => call.name.clone(),
    }
}

/// Returns the end of the path in the only call of a message; `None` if the message has no call or
/// several, or if the call has no path.
pub(super) fn file_of_call(message: &Message) -> Option<String> {
    let [call] = &*message.tool_calls else { return None };
    path_of(call).map(end_of)
}

/// Returns the last names of a path. A whole path can cost as much as a line.
fn end_of(path: &str) -> String {
    let begin = path.rmatch_indices('/').nth(LAST_NAMES - 1).map(|(at, _)| at);
    let begin = begin.filter(|at| *at > 0);
    begin.map_or_else(|| path.to_owned(), |at| format!("…{}", &path[at..]))
}

fn call_of<'h>(caller: &'h Message, result: &Message) -> Option<&'h ToolCall> {
    let id = result.tool_call_id.as_deref()?;
    caller.tool_calls.iter().find(|call| call.id == id)
}

/// Returns the path from the arguments of a call that reads a file.
fn path_read(call: &ToolCall) -> Option<&str> {
    const READING: &[&str] = &["read", "view", "open", "cat", "get_file", "get-file", "show_file"];
    is_named(call, READING).then(|| path_of(call))?
}

/// Returns the path from the arguments of a call that writes a whole file.
fn path_written(call: &ToolCall) -> Option<&str> {
    const WRITING: &[&str] = &["write", "create"];
    const CONTENTS: &[&str] = &["content", "contents", "file_text"];
    let has_content = || CONTENTS.iter().any(|name| string_field(&call.arguments, name).is_some());
    (is_named(call, WRITING) && has_content()).then(|| path_of(call))?
}

/// Returns whether the name of a call's tool has one of these words, in small or capital letters.
fn is_named(call: &ToolCall, words: &[&str]) -> bool {
    let name = call.name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

fn path_of(call: &ToolCall) -> Option<&str> {
    const PATHS: &[&str] = &["path", "file_path", "filePath", "file", "filename", "uri"];
    PATHS.iter().find_map(|name| string_field(&call.arguments, name))
}

/// Returns whether a call reads only a part of a file, by arguments such as `offset` or `limit`.
fn is_partial(call: &ToolCall) -> bool {
    const PARTS: &[&str] = &["offset", "limit", "start", "end", "range", "line"];
    let arguments = &*call.arguments;
    PARTS.iter().flat_map(|part| arguments.match_indices(part)).any(|(at, _)| {
        let name_end = arguments[at..].find('"').map(|quote| at + quote + 1);
        name_end.is_some_and(|end| arguments[end..].trim_start().starts_with(':'))
    })
}

/// Returns the text of a field of a JSON object without parsing the whole object. This function
/// runs for every call of a history, so it must be fast.
fn string_field<'a>(arguments: &'a str, name: &str) -> Option<&'a str> {
    for (at, _) in arguments.match_indices(name) {
        let quoted = arguments[..at].ends_with('"');
        let Some(rest) = arguments[at + name.len()..].strip_prefix('"').filter(|_| quoted) else {
            continue;
        };
        let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        return value.split('"').next().filter(|path| !path.is_empty());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curation::testing::{plain, said};

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: Option<&str>, partial: bool) {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        assert_eq!((path_read(&call), is_partial(&call)), (expected, partial), "{arguments}");
    }

    #[test]
    fn a_later_read_or_write_replaces_a_read() {
        let call = |name: &str, rest: &str| ToolCall {
            id: "1".into(),
            name: name.into(),
            arguments: format!(r#"{{"file_path": "/a/b/c/d.rs"{rest}}}"#),
        };
        let turn = |number, call: ToolCall| {
            let result = said(number + 1, Role::Tool, "fine").answering(Some("1".into()));
            [said(number, Role::Assistant, "").calling(vec![call]), result]
        };
        let replaced = |later: ToolCall| {
            let messages = [turn(1, call("Read", "")), turn(3, later)].concat();
            let measure = plain();
            let history = crate::curation::testing::history(&messages, &measure);
            assert_eq!(source(&history, 0, 1), "…/b/c/d.rs");
            Reads::over(&history).is_superseded(1, usize::MAX)
        };
        assert!(replaced(call("Read", "")));
        assert!(replaced(call("Write", r#", "content": "x""#)));
        assert!(!replaced(call("Read", r#", "limit": 5"#)));
        assert!(!replaced(call("Edit", r#", "old_string": "x""#)));
        assert!(!replaced(call("Bash", "")));
    }

    #[test]
    fn only_a_path_that_lost_names_shows_an_ellipsis() {
        assert_eq!(end_of("/x/a/b/c"), "…/a/b/c");
        assert_eq!(end_of("/a/b/c"), "/a/b/c");
        assert_eq!(end_of("a/b/c"), "a/b/c");
    }

    #[test]
    fn the_path_of_a_reading_is_found_in_its_arguments() {
        check("read_file", r#"{"path": "src/a.rs"}"#, Some("src/a.rs"), false);
        check("view", r#"{"file_path":"lines.rs","limit":5}"#, Some("lines.rs"), true);
        check("read_file", r#"{"path": "src/offset.rs"}"#, Some("src/offset.rs"), false);
        check("Read", r#"{"file_path": "src/a.rs"}"#, Some("src/a.rs"), false);
        check("write_file", r#"{"path": "src/a.rs"}"#, None, false);
        check("read_file", "src/a.rs", None, false);
    }
}
