//! Writes the notes that stand in place of left-out messages: how much is left out, and the lines
//! that were chosen from it. The ids say where something is missing.

use std::borrow::Cow;

use super::choice::TieredLine;
use crate::curation::reading::{LinePlace, without_number};
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
    lines: &[&TieredLine<'_>],
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
            if is_cut(&message.content, last, line) {
                text.push('\n');
                text += MISSING;
            }
            last = Some(line);
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
fn as_read<'h>(line: &TieredLine<'h>) -> Cow<'h, str> {
    match line.place {
        LinePlace::Content(_) => Cow::Borrowed(line.text),
        LinePlace::Arguments(_) => Cow::Owned(line.text.replace("\\\"", "\"").replace("\\t", "\t")),
    }
}

/// Returns whether lines are missing between two lines of a message, or before its first line.
/// Empty lines are not missed.
fn is_cut(content: &str, last: Option<&TieredLine<'_>>, line: &TieredLine<'_>) -> bool {
    let last_place = last.map(|last| last.place);
    match line.place {
        LinePlace::Content(_) => {
            let start = |line: &TieredLine<'_>| line.text.as_ptr().addr() - content.as_ptr().addr();
            let end = last.map_or(0, |last| start(last) + last.text.len());
            !content[end..start(line)].lines().all(|line| without_number(line).trim().is_empty())
        }
        LinePlace::Arguments(1) => false,
        LinePlace::Arguments(number) => last_place != Some(LinePlace::Arguments(number - 1)),
    }
}
