//! Writes chosen lines, with their numbers and with marks where lines are missing.

use std::borrow::Cow;

use super::work::Line;
use crate::curation::reading::Place;
use crate::curation::unit::History;
use crate::session::message::Role;

/// Mark in place of missing lines.
const MISSING: &str = "…";
/// Maximum number of a message's chosen lines that are listed without a heading for the message.
const FEW: usize = 4;
/// Heading of the messages of which more than [`FEW`] lines were chosen.
const MANY: &str = "Lines about the current work, from these messages:";
/// Heading of the chosen lines of the messages of which at most [`FEW`] lines were chosen.
const LISTED: &str = "Lines about the current work, each after the number of its message:";

/// Writes the chosen lines of left-out messages, which must be in the order of the log. A message
/// of which many lines were chosen is named before its lines. The other lines that have specifics
/// follow as a list, each after the number of its message: naming their messages separately would
/// cost about as much as these lines.
pub(super) fn of_messages(history: &History<'_>, unit_of: &[usize], lines: &[&Line<'_>]) -> String {
    let of_message = || lines.chunk_by(|left, right| left.message == right.message);
    let mut text = String::new();
    for lines in of_message().filter(|lines| lines.len() > FEW) {
        let index = lines[0].message;
        let message = history.messages[index];
        let is_result = message.role == Role::Tool;
        let is_of_calls = lines.iter().all(|line| matches!(line.place, Place::Arguments(_)));
        let of = match super::reads::file_of_call(message).filter(|_| is_of_calls) {
            _ if is_result => super::reads::source(history, unit_of[index], index),
            _ if message.is_notice() => "a notice".to_owned(),
            Some(path) => format!("{} in {path}", message.role.name()),
            None => message.role.name().to_owned(),
        };
        text += if text.is_empty() { MANY } else { "" };
        text += &format!("\n\nmsg-{}, {of}:\n", message.number);
        write(&mut text, lines, is_result);
        text.truncate(text.trim_end().len());
    }
    let few = of_message().filter(|lines| lines.len() <= FEW).flatten();
    // Away from its message, a line without specifics is useless.
    let mut listed = few.filter(|line| line.names_any()).peekable();
    if listed.peek().is_some() {
        text += if text.is_empty() { "" } else { "\n\n" };
        text += LISTED;
        for line in listed {
            let number = history.messages[line.message].number;
            text += &format!("\n{number}: {}", as_read(line).trim());
        }
    }
    text
}

fn write(text: &mut String, lines: &[&Line<'_>], numbered: bool) {
    let mut last = None;
    for line in lines {
        if before(line.place).is_some_and(|before| last != Some(before)) {
            *text += MISSING;
            text.push('\n');
        }
        last = Some(line.place);
        if let Place::Content(number) = line.place
            && numbered
            && !has_number(line.text)
        {
            *text += &format!("{number}: ");
        }
        *text += &as_read(line);
        text.push('\n');
    }
}

/// Returns a line as a reader should see it: if the line is from an argument of a call, without the
/// JSON escapes of quotation marks and tabs.
fn as_read<'h>(line: &Line<'h>) -> Cow<'h, str> {
    match line.place {
        Place::Content(_) => Cow::Borrowed(line.text),
        Place::Arguments(_) => Cow::Owned(line.text.replace("\\\"", "\"").replace("\\t", "\t")),
    }
}

/// Returns the place of the line before; `None` for a first line.
fn before(place: Place) -> Option<Place> {
    match place {
        Place::Content(1) | Place::Arguments(1) => None,
        Place::Content(number) => Some(Place::Content(number - 1)),
        Place::Arguments(number) => Some(Place::Arguments(number - 1)),
    }
}

/// Returns whether a tool has already numbered the line.
fn has_number(line: &str) -> bool {
    let digits = line.trim_start();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < digits.len() && rest.starts_with(['→', '\t', ':', '|', '-'])
}
