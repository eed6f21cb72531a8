//! Finds tool results that show a file that was read again later.

use std::collections::HashMap;

use crate::curation::unit::History;
use crate::session::message::{Message, Role, ToolCall};

/// The reads so far, and the reads that a later one repeats.
#[derive(Default)]
pub(super) struct Reads<'h> {
    /// Newest read of each file, as the index of its message.
    newest: HashMap<&'h str, usize>,
    /// Older reads that a later one repeats, with the later one.
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

    /// Records a message of a unit.
    pub(super) fn see(&mut self, history: &History<'h>, unit: usize, index: usize) {
        let message = history.messages[index];
        if message.role != Role::Tool {
            return;
        }
        let caller = history.messages[history.units[unit].members[0]];
        let Some(call) = call_of(caller, message) else { return };
        let Some(path) = path_read(call) else { return };
        // A failed read repeats nothing, and neither does a read of a part of the file.
        let failed = message.signals.error && !message.signals.long;
        if failed || is_partial(call) {
            return;
        }
        if let Some(older) = self.newest.insert(path, index) {
            self.superseded.insert(older, index);
        }
    }

    /// Returns whether the read at `index` is repeated by a later read. Ignores reads after message
    /// `now`.
    pub(super) fn is_superseded(&self, index: usize, now: usize) -> bool {
        self.superseded.get(&index).is_some_and(|later| *later <= now)
    }
}

/// Returns the source of a result in a few words: the path that was read, or the name of the tool.
pub(super) fn source<'h>(history: &History<'h>, unit: usize, index: usize) -> &'h str {
    let caller = history.messages[history.units[unit].members[0]];
    let call = call_of(caller, history.messages[index]);
    call.map_or("tool", |call| path_read(call).unwrap_or(&call.name))
}

fn call_of<'h>(caller: &'h Message, result: &Message) -> Option<&'h ToolCall> {
    let id = result.tool_call_id.as_deref()?;
    caller.tool_calls.iter().find(|call| call.id == id)
}

/// Returns the path from the arguments of a call that reads a file.
fn path_read(call: &ToolCall) -> Option<&str> {
    const READING: &[&str] = &["read", "view", "open", "cat", "get_file", "get-file", "show_file"];
    const PATHS: &[&str] = &["path", "file_path", "filePath", "file", "filename", "uri"];
    READING.iter().any(|name| call.name.contains(name)).then_some(())?;
    PATHS.iter().find_map(|name| string_field(&call.arguments, name))
}

/// Returns whether a call reads only a part of a file. Recognizes the names that tools use for a
/// part.
fn is_partial(call: &ToolCall) -> bool {
    const PARTS: &[&str] = &["offset", "limit", "start", "end", "range", "line"];
    PARTS.iter().any(|part| call.arguments.contains(part) && has_field_like(&call.arguments, part))
}

fn has_field_like(arguments: &str, part: &str) -> bool {
    arguments.match_indices(part).any(|(at, _)| {
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

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: Option<&str>, partial: bool) {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        assert_eq!((path_read(&call), is_partial(&call)), (expected, partial), "{arguments}");
    }

    #[test]
    fn the_path_of_a_reading_is_found_in_its_arguments() {
        check("read_file", r#"{"path": "src/a.rs"}"#, Some("src/a.rs"), false);
        check("view", r#"{"file_path":"lines.rs","limit":5}"#, Some("lines.rs"), true);
        check("read_file", r#"{"path": "src/offset.rs"}"#, Some("src/offset.rs"), false);
        check("write_file", r#"{"path": "src/a.rs"}"#, None, false);
        check("read_file", "src/a.rs", None, false);
    }
}
