//! Finds a definition by the line that names it.

use std::ops::Range;

use super::anchor::Anchor;
use super::bare::Bare;
use super::doubts;
use super::likeness::{LOST, likeness};
use super::looked::Looked;

/// Returns the index of the line that names the definition, and the header: this line up to the end
/// of the name, without white space.
fn header<'a>(looked: &Looked<'a>) -> Option<(usize, &'a str)> {
    let symbol: String = looked.symbol?.chars().filter(|c| !c.is_whitespace()).collect();
    let named = |line: &'a String| {
        let at = line.match_indices(&*symbol).find(|(at, _)| ends_word(line, at + symbol.len()))?;
        Some(&line[..at.0 + symbol.len()])
    };
    let mut lines = looked.item.lines.iter().enumerate();
    let found = lines.find_map(|(at, line)| Some((at, named(line)?)))?;
    // The name alone may also be a use of the definition.
    (found.1.len() > symbol.len()).then_some(found)
}

fn ends_word(line: &str, end: usize) -> bool {
    !line[end..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '!' | '?'))
}

/// Returns the lines of the file that begin with the header.
fn named(looked: &Looked<'_>, header: &str) -> Vec<usize> {
    let is_header = |line: &&String| line.starts_with(header) && ends_word(line, header.len());
    let lines = looked.file.lines.iter().enumerate();
    lines.filter(|(_, line)| is_header(line)).map(|(at, _)| at).collect()
}

/// Returns whether a place has a line that begins with the definition's header.
pub(super) fn is_in(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    header(looked)
        .is_some_and(|(_, header)| named(looked, header).iter().any(|at| place.contains(at)))
}

/// Returns whether a place lacks the line that names the definition, even in an edited version.
pub(super) fn is_headless(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    header(looked).is_some_and(|(at, _)| {
        let header = &looked.item.lines[at];
        !looked.file.lines[place.clone()].iter().any(|line| likeness(line, header) >= LOST)
    })
}

/// Finds a definition of which little more than the first line remains, by its name, its
/// indentation and its brackets.
pub(super) fn form(looked: &Looked<'_>) -> Option<Range<usize>> {
    let (above, header) = header(looked)?;
    let (file, item) = (looked.file, looked.item);
    let &[at] = &named(looked, header)[..] else { return None };
    let place = at.checked_sub(above)?..end_of(looked, at)?;
    let has_above = file.lines[place.start..at] == item.lines[..above];
    (has_above && (is_list(looked, &place, at) || is_block(looked, &place, at))).then_some(place)
}

/// Returns whether a place is one list, as the definition was. No line of the definition may be
/// elsewhere.
fn is_list(looked: &Looked<'_>, place: &Range<usize>, header: usize) -> bool {
    let (file, item, matched) = (looked.file, looked.item, looked.matched());
    let above = header - place.start;
    let is_closed = file.lines[header].starts_with('(')
        || file.lines[place.end - 1] == item.lines[item.len() - 1];
    is_closed
        && file.indents[header] == 0
        && is_one_list(item, above..item.len())
        && is_one_list(file, header..place.end)
        && !place.clone().any(|at| matched.is_foreign(at))
        && matched.strays(item, place, true).0 == 0
        && !has_lost_beyond(looked, place)
}

/// Returns whether a place is a block under the line that names the definition. That line must be
/// unchanged, and unique in both files.
fn is_block(looked: &Looked<'_>, place: &Range<usize>, header: usize) -> bool {
    let (file, item, matched) = (looked.file, looked.item, looked.matched());
    let above = header - place.start;
    let indents = &item.indents[above..];
    let inner = indents[1..].iter().take_while(|own| **own > indents[0]).count();
    let is_open = inner + 1 == indents.len();
    let is_closed = inner + 2 == indents.len() && indents[inner + 1] == indents[0];
    let is_level = file.indents[place.end - 1] == file.indents[header];
    let closer = is_closed && file.lines[place.end - 1] == item.lines[item.len() - 1];
    // Where the indentation alone ends a block, its last line is like any other.
    let has_end = if is_level { closer } else { is_open };
    let strange = matched.strange(place, false);
    inner > 0
        && file.lines[header] == item.lines[above]
        && matched.is_single(header)
        && item.balance(above..item.len()) == [0; 4]
        && (is_open || is_closed)
        && has_end
        && strange * 2 <= place.len()
}

fn has_lost_beyond(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    [true, false].into_iter().any(|is_start| doubts::has_lost_beyond(looked, place, is_start))
}

/// Returns whether lines are one list: their brackets balance at the last line, and not before.
fn is_one_list(text: &Bare, at: Range<usize>) -> bool {
    let is_closed = |end: usize| text.balance(at.start..end) == [0; 4];
    is_closed(at.end) && !(at.start + 1..at.end).any(is_closed)
}

/// Returns the end of the definition that begins on a line, if indentation and brackets agree on
/// the end. If the definition has a closing line of its own, lines of any indentation may follow.
fn end_of(looked: &Looked<'_>, header: usize) -> Option<usize> {
    let (file, item) = (looked.file, looked.item);
    let indent = file.indents[header];
    let inner = file.indents[header + 1..].iter().take_while(|own| **own > indent).count();
    let mut end = header + 1 + inner;
    let closer = item.lines.last()?;
    let closes = item.len() > 1
        && file.lines.get(end).is_some_and(|line| Anchor::is_line(closer, line))
        && file.indents[end] == indent;
    if closes {
        end += 1;
    }
    let follows = end == file.len() || file.indents[end] <= indent;
    ((closes || follows) && file.balance(header..end) == [0; 4]).then_some(end)
}
