//! Writes chosen lines, with their numbers and with marks where lines are missing.

use super::work::{Line, Place};
use crate::curation::unit::History;
use crate::session::message::Role;

/// Mark in place of missing lines.
const MISSING: &str = "…";

/// Writes the chosen lines of left-out messages, which must be in the order of the log. Each
/// message is named before its lines.
pub(super) fn of_messages(history: &History<'_>, unit_of: &[usize], lines: &[&Line<'_>]) -> String {
    let mut text = String::from("Lines of these messages that the work names:");
    for lines in lines.chunk_by(|left, right| left.message == right.message) {
        let index = lines[0].message;
        let message = history.messages[index];
        let is_result = message.role == Role::Tool;
        let of = if is_result {
            super::reads::source(history, unit_of[index], index)
        } else {
            message.role.name()
        };
        text += &format!("\n\nmsg-{}, {of}:\n", message.number);
        write(&mut text, lines, is_result);
        text.truncate(text.trim_end().len());
    }
    text
}

fn write(text: &mut String, lines: &[&Line<'_>], numbered: bool) {
    let mut before = None;
    for line in lines {
        if before.is_none_or(|before| !follows(before, line.place))
            && line.place != first(line.place)
        {
            *text += MISSING;
            text.push('\n');
        }
        before = Some(line.place);
        match line.place {
            Place::Content(number) if numbered && !has_number(line.text) => {
                *text += &format!("{number}: {}\n", line.text);
            }
            Place::Content(_) => {
                *text += line.text;
                text.push('\n');
            }
            Place::Arguments(_) => {
                *text += &line.text.replace("\\\"", "\"").replace("\\t", "\t");
                text.push('\n');
            }
        }
    }
}

fn first(place: Place) -> Place {
    match place {
        Place::Content(_) => Place::Content(1),
        Place::Arguments(_) => Place::Arguments(1),
    }
}

fn follows(before: Place, place: Place) -> bool {
    match (before, place) {
        (Place::Content(before), Place::Content(at))
        | (Place::Arguments(before), Place::Arguments(at)) => at == before + 1,
        _ => false,
    }
}

/// Returns whether a tool numbered the line already.
fn has_number(line: &str) -> bool {
    let digits = line.trim_start();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < digits.len() && rest.starts_with(['→', '\t', ':', '|', '-'])
}
