//! Finds a definition by the line that names it.

use std::ops::Range;

use super::anchor::Anchor;
use super::bare::{balance, is_telling};
use super::looked::Looked;
use super::{CLEAR_SUPPORT, GONE, SEVERAL};

/// Returns the line that names the definition, cut after the name and without white space, and the
/// number of that line in the definition.
fn header<'a>(looked: &Looked<'a>) -> Option<(usize, &'a str)> {
    let symbol: String = looked.symbol?.chars().filter(|c| !c.is_whitespace()).collect();
    let named = |line: &'a String| {
        let at = line.match_indices(&*symbol).find(|(at, _)| ends_word(line, at + symbol.len()))?;
        Some(&line[..at.0 + symbol.len()])
    };
    let mut lines = looked.item.lines.iter().enumerate();
    let found = lines.find_map(|(at, line)| Some((at, named(line)?)))?;
    // A name alone is also how it is used.
    (found.1.len() > symbol.len()).then_some(found)
}

fn ends_word(line: &str, end: usize) -> bool {
    !line[end..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '!' | '?'))
}

/// Returns the lines of the file that begin like the header.
fn named(looked: &Looked<'_>, header: &str) -> Vec<usize> {
    let is_header = |line: &&String| line.starts_with(header) && ends_word(line, header.len());
    let lines = looked.file.lines.iter().enumerate();
    lines.filter(|(_, line)| is_header(line)).map(|(at, _)| at).collect()
}

/// Returns whether a place has the line that begins the definition; `None` if the text is none.
pub(super) fn is_in(looked: &Looked<'_>, place: &Range<usize>) -> Option<bool> {
    let (_, header) = header(looked)?;
    Some(named(looked, header).iter().any(|at| place.contains(at)))
}

/// Returns whether a line outside of `place` begins the same definition.
pub(super) fn is_elsewhere(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    header(looked)
        .is_some_and(|(_, header)| named(looked, header).iter().any(|at| !place.contains(at)))
}

/// Returns whether a place goes on after the end of the definition that begins in it: a line from
/// outside of the text is not indented more than the first line of the definition.
pub(super) fn runs_on(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    let Some((_, header)) = header(looked) else { return false };
    let file = looked.file;
    let Some(first) = named(looked, header).into_iter().find(|at| place.contains(at)) else {
        return false;
    };
    let is_level = |at: &usize| file.indents[*at] <= file.indents[first];
    let known = looked.known();
    (first + 1..place.end).filter(is_level).any(|at| known.is_foreign(at))
}

/// Finds a definition of which little but the first line is left.
pub(super) fn rewritten(looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
    let (above, header) = header(looked).ok_or(GONE)?;
    let at = match named(looked, header)[..] {
        [] => return Err(GONE),
        [at] => at,
        _ => return Err(SEVERAL),
    };
    let start = at.checked_sub(above).ok_or(GONE)?;
    let (file, item) = (looked.file, looked.item);
    let end = end_of(looked, at).ok_or(GONE)?;
    let is_same_above = file.lines[start..at] == item.lines[..above];
    let (before, after) = looked.support(&(start..end));
    // What is above belongs to it if it was there or nothing could be.
    let is_certain = is_same_above && (above > 0 || before > 0 || is_detached(looked, start));
    let is_closed = file.lines[end - 1] == item.lines[item.len() - 1];
    let known = looked.known();
    let is_alone = !(start..end).any(|at| known.is_foreign(at)) && !known.is_spread(&(start..end));
    (is_certain && is_alone && is_closed && after > 1 && before + after >= CLEAR_SUPPORT)
        .then_some(start..end)
        .ok_or(GONE)
}

/// Finds a definition at the left margin that ends with its last bracket, as in Lisps and in
/// languages with braces: its name and that bracket are its ends, whatever was edited in between.
/// None of its lines may have been carried elsewhere.
pub(super) fn form(looked: &Looked<'_>) -> Option<Range<usize>> {
    let (above, header) = header(looked)?;
    let (file, item) = (looked.file, looked.item);
    let &[at] = &named(looked, header)[..] else { return None };
    let start = at.checked_sub(above)?;
    let end = end_of(looked, at)?;
    let is_here = |line| file.lines[start..end].contains(line);
    let is_closed = file.lines[end - 1] == item.lines[item.len() - 1];
    let is_form = (header.starts_with('(') || is_closed)
        && file.indents[at] == 0
        && !(start..end).any(|at| looked.known().is_foreign(at))
        && file.lines[start..at] == item.lines[..above]
        && is_one_list(&item.lines[above..])
        && is_one_list(&file.lines[at..end])
        && item
            .lines
            .iter()
            .all(|line| is_here(line) || !is_telling(line) || !file.lines.contains(line));
    is_form.then_some(start..end)
}

/// Returns whether lines are one list, which ends with the last of them and not before.
fn is_one_list(lines: &[String]) -> bool {
    let is_closed = |count: usize| balance(&lines[..count]) == [0; 3];
    is_closed(lines.len()) && !(1..lines.len()).any(is_closed)
}

/// Returns whether a blank line or a bracket that closes is above a line.
fn is_detached(looked: &Looked<'_>, start: usize) -> bool {
    let numbers = &looked.file.numbers;
    start == 0 || numbers[start - 1] + 1 < numbers[start]
}

/// Returns the end of the definition that begins on a line, if its indentation and brackets agree.
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
    (follows && balance(&file.lines[header..end]) == [0; 3]).then_some(end)
}
