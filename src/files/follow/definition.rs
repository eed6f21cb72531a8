//! Finds a definition by the line that names it.

use std::ops::Range;

use super::anchor::Anchor;
use super::bare::balance;
use super::doubts;
use super::looked::Looked;

/// Returns the index, in the definition, of the line that names it, and the line itself, cut after
/// the name and without white space.
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

/// Returns whether a place has the header of the definition.
pub(super) fn is_in(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    header(looked)
        .is_some_and(|(_, header)| named(looked, header).iter().any(|at| place.contains(at)))
}

/// Finds a definition of which little more than the first line remains. Its name and its
/// indentation tell where it is, if it ends with its last bracket. None of its lines may be
/// elsewhere.
pub(super) fn form(looked: &Looked<'_>) -> Option<Range<usize>> {
    let (above, header) = header(looked)?;
    let (file, item, matched) = (looked.file, looked.item, looked.matched());
    let &[at] = &named(looked, header)[..] else { return None };
    let place = at.checked_sub(above)?..end_of(looked, at)?;
    let is_closed = header.starts_with('(') || file.lines[place.end - 1] == item.lines.last()?[..];
    let is_list = is_closed
        && file.indents[at] == 0
        && is_one_list(&item.lines[above..])
        && is_one_list(&file.lines[at..place.end]);
    let is_form = is_list
        && file.lines[place.start..at] == item.lines[..above]
        && !place.clone().any(|at| matched.is_foreign(at))
        && matched.strays(item, &place, true).0 == 0
        && ![true, false]
            .into_iter()
            .any(|is_start| doubts::has_lost_beyond(looked, &place, is_start));
    is_form.then_some(place)
}

/// Returns whether lines are one list: their brackets balance at the last line, and not before.
fn is_one_list(lines: &[String]) -> bool {
    let is_closed = |count: usize| balance(&lines[..count]) == [0; 3];
    is_closed(lines.len()) && !(1..lines.len()).any(is_closed)
}

/// Returns the end of the definition that begins on a line, if indentation and brackets agree on
/// it.
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
