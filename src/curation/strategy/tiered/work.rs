//! The work at hand: the lines of a history, and the weights of the specifics in them.
//!
//! Specifics are paths, identifiers, options and numbers. Those that the agent wrote in its calls
//! and words, or the user in requests, tell what the work is about. A specific weighs more if it
//! was written more often or more recently.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use string_interner::backend::StringBackend;
use string_interner::symbol::SymbolU32;
use string_interner::{StringInterner, Symbol};

use crate::curation::unit::History;
use crate::retrieval::specifics;
use crate::session::message::{Message, Role};

/// Number of messages after which the weight of a mention has fallen to about a third.
const MEMORY: f64 = 60.0;
/// Weight of a mention however old it is, relative to one in the newest message.
const LEAST_WEIGHT: f64 = 0.05;
/// Weight of a mention in a tool's result or a notice, relative to one in the words of the agent or the user.
const IN_RESULT: f64 = 0.15;
/// Additional weight of a specific in the query.
const IN_QUERY: f64 = 1.0;
/// Share of a specific's weight that remains once it was shown in the agent's words: the content
/// that it names is in the results.
const TOLD: f64 = 0.1;
/// If at least this many lines differ only in their numbers, these numbers are ignored. Tools and
/// their hosts add such lines, with times and identifiers, to each result.
const REPEATED: usize = 4;
/// Maximum number of bytes to read, beginning with the newest message. Lines of older messages are
/// not found.
const READ: usize = 384 << 10;

/// A line of a message that is not shown whole.
pub(super) struct Line<'h> {
    /// Index of its message.
    pub(super) message: usize,
    /// Role of its message.
    role: Role,
    /// Place in the message's content, or in the arguments of its calls.
    pub(super) place: Place,
    /// The line, without its end.
    pub(super) text: &'h str,
    /// Its specifics, as a range of [`Work::mentions`].
    mentions: Range<usize>,
}

impl Line<'_> {
    /// Returns whether the line has specifics.
    pub(super) fn names_any(&self) -> bool {
        !self.mentions.is_empty()
    }
}

/// The part of a message that is shown before lines are chosen from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// All of it.
    Shown,
    /// Less than all, so its lines may be shown.
    Hidden,
    /// Nothing, because a later message shows the current state of the same thing.
    Outdated,
}

/// The place of a line in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Line of the content, from 1.
    Content(usize),
    /// Line of the arguments of a call, from 1 and counted through all calls.
    Arguments(usize),
}

/// Lines that may be shown, and the weights of specifics.
#[derive(Default)]
pub(super) struct Work<'h> {
    /// Lines of the messages that are not shown whole, the newest message first.
    pub(super) lines: Vec<Line<'h>>,
    /// Specifics in [`Self::lines`], as indices of [`Self::names`].
    mentions: Vec<u32>,
    /// The specifics. The index of a specific is its number.
    names: StringInterner<StringBackend<SymbolU32>>,
    /// Weight of each specific.
    weights: Vec<f64>,
    /// For each specific, the share of its weight that it is still worth in a further line.
    worth: Vec<f64>,
    /// Last message in which each specific was counted, so that a message counts once.
    counted: Vec<usize>,
    /// True for specifics that are only numbers.
    is_number: Vec<bool>,
}

impl<'h> Work<'h> {
    /// Reads a history up to message `now`. `sight` tells which messages are shown.
    pub(super) fn of(
        history: &History<'h>,
        now: usize,
        sight: impl Fn(usize) -> Sight,
        query: Option<&str>,
    ) -> Self {
        let mut work = Self::default();
        let mut left = READ;
        for index in (0..=now).rev() {
            let message = history.messages[index];
            let length = length(message);
            if length > left {
                break;
            }
            left -= length;
            let recency = (-((now - index) as f64) / MEMORY).exp() + LEAST_WEIGHT;
            let is_output = message.role == Role::Tool || message.is_notice();
            let weight = if is_output { IN_RESULT * recency } else { recency };
            work.read(message, index, weight, sight(index));
        }
        work.forget_repeated();
        specifics::each(query.unwrap_or(""), |specific| {
            if let Some(number) = work.names.get(specific) {
                work.weights[number.to_usize()] += IN_QUERY;
            }
        });
        work
    }

    fn read(&mut self, message: &'h Message, index: usize, weight: f64, sight: Sight) {
        let content = (1..).zip(message.content.lines());
        let content = content.map(|(at, line)| (Place::Content(at), line, true));
        let arguments = message.tool_calls.iter().flat_map(|call| argument_lines(&call.arguments));
        let arguments = (1..).zip(arguments);
        let arguments = arguments.map(|(at, (line, is_new))| (Place::Arguments(at), line, is_new));
        for (place, text, is_new) in content.chain(arguments) {
            let start = self.mentions.len();
            specifics::each(without_number(text), |specific| {
                let number = self.number(specific);
                let at = number as usize;
                if std::mem::replace(&mut self.counted[at], index) != index {
                    self.weights[at] += weight;
                }
                if sight == Sight::Shown {
                    self.worth[at] = self.worth[at].min(left_by(message.role));
                }
                self.mentions.push(number);
            });
            if sight == Sight::Hidden && is_new {
                let mentions = start..self.mentions.len();
                self.lines.push(Line { message: index, role: message.role, place, text, mentions });
            } else {
                self.mentions.truncate(start);
            }
        }
    }

    /// Ignores the numbers in lines that are repeated with other numbers.
    fn forget_repeated(&mut self) {
        let hashed = |text: &str, digits: bool| {
            let mut hasher = DefaultHasher::new();
            let bytes = text.bytes().filter(|byte| digits || !byte.is_ascii_digit());
            bytes.for_each(|byte| hasher.write_u8(byte));
            hasher.finish()
        };
        // For each form of a line, the hashes of the different lines of this form.
        let mut forms: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut alike: Vec<(usize, u64)> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let mentions = &self.mentions[line.mentions.clone()];
            let says_numbers = || mentions.iter().all(|mention| self.is_number[*mention as usize]);
            if !mentions.is_empty() && says_numbers() {
                let (form, text) = (hashed(line.text, false), hashed(line.text, true));
                let texts = forms.entry(form).or_default();
                if texts.len() < REPEATED && !texts.contains(&text) {
                    texts.push(text);
                }
                alike.push((at, form));
            }
        }
        for (at, form) in alike {
            if forms[&form].len() >= REPEATED {
                self.lines[at].mentions = 0..0;
            }
        }
    }

    fn number(&mut self, specific: &str) -> u32 {
        let number = self.names.get_or_intern(specific).to_usize();
        if number == self.weights.len() {
            self.weights.push(0.0);
            self.worth.push(1.0);
            self.counted.push(usize::MAX);
            self.is_number.push(!specific.bytes().any(|byte| byte.is_ascii_alphabetic()));
        }
        number as u32
    }

    /// Returns the weight of those specifics of a line that are not shown yet.
    pub(super) fn value(&self, line: usize) -> f64 {
        let Line { ref mentions, role, .. } = self.lines[line];
        let mentions = &self.mentions[mentions.clone()];
        let left = left_by(role);
        let value = |(at, mention): (usize, &u32)| {
            let (worth, weight) = (self.worth[*mention as usize], self.weights[*mention as usize]);
            if mentions[..at].contains(mention) { 0.0 } else { weight * (worth - left).max(0.0) }
        };
        mentions.iter().enumerate().map(value).sum()
    }

    /// Records that a line is shown.
    pub(super) fn show(&mut self, line: usize) {
        let Line { ref mentions, role, .. } = self.lines[line];
        for mention in &self.mentions[mentions.clone()] {
            let worth = &mut self.worth[*mention as usize];
            *worth = worth.min(left_by(role));
        }
    }
}

/// Returns a line without the number that a tool put before it.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(['→', '\t']).unwrap_or(line)
}

/// Returns the share of a specific's weight that remains once a line by this role shows it.
fn left_by(role: Role) -> f64 {
    if role == Role::Tool { 0.0 } else { TOLD }
}

/// Returns the length of a message's content and arguments, in bytes.
pub(super) fn length(message: &Message) -> usize {
    let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
    message.content.len() + arguments
}

/// Returns the lines of the texts in JSON arguments, in which line breaks are escaped. Each comes
/// with whether it is new: a line of the text that an edit replaces is not.
fn argument_lines(arguments: &str) -> impl Iterator<Item = (&str, bool)> {
    let replaced = replaced(arguments);
    arguments.lines().flat_map(|line| line.split("\\n")).map(move |line| {
        let start = line.as_ptr().addr() - arguments.as_ptr().addr();
        let end = start + line.len();
        (line, !replaced.iter().any(|old| old.start <= start && end <= old.end))
    })
}

/// Returns where the texts are that an edit replaces.
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
