//! Writes the notes that stand in place of left-out messages: how much is left out, and the lines
//! that were chosen from it. The ids say where something is missing.

use std::borrow::Cow;

use super::choice::Line;
use crate::curation::reading::Place;
use crate::curation::unit::History;
use crate::session::message::Role;
use crate::wording::counted;

/// Mark in place of missing lines of a message.
const MISSING: &str = "…";

/// Writes the note for the messages of a gap, of which `lines` were chosen, in order. `tokens` is
/// the size of what is left out.
pub(super) fn note(
    history: &History<'_>,
    gap: (usize, usize),
    tokens: u64,
    lines: &[&Line<'_>],
) -> String {
    let mut text = heading(history, gap, tokens, !lines.is_empty());
    for lines in lines.chunk_by(|left, right| left.message == right.message) {
        let message = history.messages[lines[0].message];
        let by = match message.role {
            Role::User if message.is_notice() => "notice",
            role => role.name(),
        };
        text += &match history.can_read {
            true => format!("\nmsg-{} {by}:", message.number),
            false => format!("\n{by}:"),
        };
        let mut last = None;
        for line in lines {
            if before(line.place).is_some_and(|before| last != Some(before)) {
                text.push('\n');
                text += MISSING;
            }
            last = Some(line.place);
            text.push('\n');
            text += &as_read(line);
        }
    }
    text
}

/// Writes the first line of a note. It names ids only if the reader can ask for them.
fn heading(history: &History<'_>, gap: (usize, usize), tokens: u64, has_lines: bool) -> String {
    let parts = if has_lines { "left out but for these lines" } else { "left out" };
    if !history.can_read {
        let messages = counted((gap.1 - gap.0 + 1) as u64, "message");
        return format!("[{messages}: {tokens} tokens {parts}]");
    }
    let number = |index: usize| history.messages[index].number;
    let (first, last) = (number(gap.0), number(gap.1));
    let ids =
        if first == last { format!("msg-{first}") } else { format!("msg-{first}…msg-{last}") };
    format!("[{ids}: {tokens} tokens {parts}; `read` shows an id in full]")
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
