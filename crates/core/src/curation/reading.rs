//! Reads the lines of messages and the [names] in them, and keeps what was read for the next
//! windows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use string_interner::backend::StringBackend;
use string_interner::symbol::SymbolU32;
use string_interner::{StringInterner, Symbol};

use crate::retrieval::names;
use crate::session::message::{Message, ToolCall};

/// Number of different names above which everything that was read is forgotten. So many names take a
/// few megabytes.
const MOST_NAMES: usize = 1 << 17;

/// The place of a line in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinePlace {
    /// Line of the content, from 1.
    Content(u32),
    /// Line of the calls' arguments, from 1. The lines of all calls of a message are numbered
    /// together.
    Arguments(u32),
}

type LineNames = StringInterner<StringBackend<SymbolU32>>;

/// What was read of one message: all its names, and the lines that may be quoted, which are all
/// except empty lines and those that an edit replaces.
pub struct Reading {
    /// Length of the message when it was read, in bytes.
    length: usize,
    /// Interned ids of the names of the message, and whether a call's arguments have them, without
    /// repetitions.
    pub names: Vec<(u32, bool)>,
    lines: Vec<ReadLine>,
    /// Interned ids of the names of the lines, in the order of the text.
    mentions: Vec<u32>,
}

struct ReadLine {
    place: LinePlace,
    /// Index of the call whose arguments have the line; `None` for a line of the content.
    call: Option<u32>,
    bytes: Range<u32>,
    /// Names of the line, as a range of [`Reading::mentions`].
    mentions: Range<u32>,
    hash: u64,
}

/// A line that may be quoted.
pub struct Quotable<'h, 'r> {
    /// Place of the line in the message.
    pub place: LinePlace,
    /// The line, without the line break.
    pub text: &'h str,
    /// Interned ids of the line's names, in the order of the text.
    pub mentions: &'r [u32],
    /// Hash of the line without the number that a tool put before it.
    pub hash: u64,
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(line.as_bytes());
    hasher.finish()
}

impl Reading {
    /// Iterates over the lines that may be quoted. `message` must be the message that was read.
    pub fn lines<'h, 'r>(&'r self, message: &'h Message) -> impl Iterator<Item = Quotable<'h, 'r>> {
        let range = |it: &Range<u32>| it.start as usize..it.end as usize;
        self.lines.iter().map(move |line| {
            let text = match line.call {
                Some(call) => &*message.tool_calls[call as usize].arguments,
                None => &*message.content,
            };
            Quotable {
                place: line.place,
                text: &text[range(&line.bytes)],
                mentions: &self.mentions[range(&line.mentions)],
                hash: line.hash,
            }
        })
    }
}

/// What was read of messages, by their numbers. Most messages of a window were read for the window
/// before, and reading takes longer than choosing from what was read.
#[derive(Default)]
pub struct Readings {
    /// The names. The index of a name is its id.
    names: LineNames,
    of_messages: HashMap<u64, Reading>,
}

impl Readings {
    /// Returns what was read of a message, and the number of names known now; all their ids are
    /// below this number. Reads the message if it has not been read yet, or if its length has
    /// changed since.
    pub fn of(&mut self, message: &Message) -> (&Reading, usize) {
        let reading = match self.of_messages.entry(message.number) {
            Entry::Occupied(known) if known.get().length == length(message) => known.into_mut(),
            entry => entry.insert_entry(read(message, &mut self.names)).into_mut(),
        };
        (reading, self.names.len())
    }

    /// Returns the id of a name, if a message that was read has it.
    pub fn id(&self, name: &str) -> Option<usize> {
        self.names.get(name).map(Symbol::to_usize)
    }

    /// Forgets the messages before the one with this number, or all messages if there are more than
    /// [`MOST_NAMES`] names.
    pub(crate) fn forget_before(&mut self, number: u64) {
        if self.names.len() > MOST_NAMES {
            *self = Self::default();
        }
        self.of_messages.retain(|of, _| *of >= number);
    }
}

fn read(message: &Message, names: &mut LineNames) -> Reading {
    let mut reading = Reading {
        length: length(message),
        names: Vec::new(),
        lines: Vec::new(),
        mentions: Vec::new(),
    };
    let content = (1..).zip(message.content.lines());
    let content =
        content.map(|(at, line)| (LinePlace::Content(at), None, &*message.content, line, true));
    let calls = (0..).zip(&message.tool_calls);
    let arguments = calls.flat_map(|(call, ToolCall { arguments, .. })| {
        argument_lines(arguments).map(move |(line, is_new)| (call, &**arguments, line, is_new))
    });
    let arguments = (1..).zip(arguments).map(|(at, (call, text, line, is_new))| {
        (LinePlace::Arguments(at), Some(call), text, line, is_new)
    });
    for (place, call, text, line, is_new) in content.chain(arguments) {
        let bare = without_number(line);
        if bare.trim().is_empty() {
            continue;
        }
        let first = reading.mentions.len();
        names::each(bare, |name| {
            reading.mentions.push(names.get_or_intern(name).to_usize() as u32);
        });
        let is_in_call = call.is_some();
        reading.names.extend(reading.mentions[first..].iter().map(|name| (*name, is_in_call)));
        if is_new {
            let start = line.as_ptr().addr() - text.as_ptr().addr();
            let bytes = start as u32..(start + line.len()) as u32;
            let mentions = first as u32..reading.mentions.len() as u32;
            let hash = hash(bare.trim());
            reading.lines.push(ReadLine { place, call, bytes, mentions, hash });
        } else {
            reading.mentions.truncate(first);
        }
    }
    reading.names.sort_unstable();
    reading.names.dedup();
    reading
}

/// Returns a line without the number that a tool put before it.
pub(super) fn without_number(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['→', '\t']).unwrap_or(line)
}

/// Returns the length of a message's content and arguments, in bytes.
pub fn length(message: &Message) -> usize {
    let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
    message.content.len() + arguments
}

/// Returns the lines of the texts in JSON arguments, in which line breaks are escaped. The flag of
/// a line is false if the line belongs to a text that an edit replaces.
fn argument_lines(arguments: &str) -> impl Iterator<Item = (&str, bool)> {
    let replaced = replaced(arguments);
    arguments.lines().flat_map(|line| line.split("\\n")).map(move |line| {
        let start = line.as_ptr().addr() - arguments.as_ptr().addr();
        let end = start + line.len();
        (line, !replaced.iter().any(|old| old.start <= start && end <= old.end))
    })
}

/// Returns the byte ranges of the texts in `arguments` that an edit replaces.
fn replaced(arguments: &str) -> Vec<Range<usize>> {
    const KEYS: &[&str] =
        &["\"old_string\"", "\"old_str\"", "\"oldString\"", "\"old_text\"", "\"oldText\""];
    let (mut found, mut at) = (Vec::new(), 0);
    let after_key = |at: usize| {
        let ends = KEYS.iter().filter_map(|key| Some(at + arguments[at..].find(key)? + key.len()));
        ends.min()
    };
    while let Some(after) = after_key(at) {
        let Some(quote) = arguments[after..].find('"') else { break };
        let start = after + quote + 1;
        let mut is_escaped = false;
        let length = arguments[start..].bytes().position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        at = length.map_or(arguments.len(), |length| start + length);
        found.push(start..at);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curation::testing::said;
    use crate::session::message::Role;

    #[test]
    fn a_message_is_read_once_unless_its_length_differs() {
        let call = |arguments: &str| ToolCall {
            id: "1".into(),
            name: "edit".into(),
            arguments: arguments.into(),
        };
        let edit = r#"{"old_string":"x\na_bc\ny","new_string":"c_de\ne"}"#;
        let message =
            said(7, Role::Assistant, "1→src/a/main.rs\nand a_bc").calling(vec![call(edit)]);
        let mut readings = Readings::default();
        let (reading, count) = readings.of(&message);
        let lines: Vec<_> =
            reading.lines(&message).map(|it| (it.text, it.mentions.len())).collect();
        let expected = [
            ("1→src/a/main.rs", 1),
            ("and a_bc", 1),
            (r#"{"old_string":"x"#, 1),
            (r#"y","new_string":"c_de"#, 2),
            (r#"e"}"#, 0),
        ];
        assert_eq!(lines, expected);
        // `a_bc` is in the content and in a call.
        assert_eq!((reading.names.len(), count), (6, 5));
        assert_eq!(readings.id("a_bc"), Some(1));

        // Nobody changes a message, so one of the same length is not read again.
        let same = said(7, Role::Assistant, "1→src/a/main.rs\nand z_bc").calling(vec![call(edit)]);
        readings.of(&same);
        assert_eq!(readings.id("z_bc"), None);

        // Users' messages can be shown without their first line.
        let message = said(7, Role::User, "é f_gh");
        let (reading, _) = readings.of(&message);
        assert_eq!(reading.lines(&message).next().map(|line| line.text), Some("é f_gh"));

        readings.forget_before(8);
        assert!(readings.of_messages.is_empty());
        assert_eq!(readings.id("f_gh"), Some(5));
    }

    #[test]
    fn lines_that_an_edit_replaces_are_not_new() {
        let old = |arguments: &str| -> Vec<String> {
            let lines = argument_lines(arguments).filter(|(_, is_new)| !is_new);
            lines.map(|(line, _)| line.to_owned()).collect()
        };
        let edit = r#"{"file_path":"a","old_string":"let a;\nb(\"c\");\nd","new_string":"e\nf"}"#;
        // The first and the last line have something else, too.
        assert_eq!(old(edit), [r#"b(\"c\");"#]);
        assert_eq!(argument_lines(edit).count(), 4);
        let two = r#"[{"old_str":"a\nb\nc","new_str":""},{"old_str":"d\ne\nf"}]"#;
        assert_eq!(old(two), ["b", "e"]);
        assert!(old(r#"{"old_string": 1"#).is_empty());
        assert_eq!(old("{\"old_string\": \"x\\ny"), ["y"]);
    }
}
