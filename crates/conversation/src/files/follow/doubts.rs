//! Reasons to doubt a place, even though it has every line of the text that was found.

use std::ops::Range;

use super::bare::is_telling;
use super::body::{Span, is_chained};
use super::likeness::{LOST, UNLIKE, likeness, likeness_to};
use super::looked::{Looked, NEXT};
use super::matched::Pair;

/// Number of outside lines at which the search for lost lines of the text ends.
const MANY: usize = 5;

/// Returns whether there is any doubt about a place.
pub(super) fn has_any(looked: &Looked<'_>, at: &Range<usize>, span: &Span, body: &[Pair]) -> bool {
    is_uneven(looked, at, span)
        || [true, false].into_iter().any(|is_start| {
            ends_doubtfully(looked, at, body, is_start)
                || (!looked.is_closed(at, is_start)
                    && (has_lost_beyond(looked, at, is_start) || is_double(looked, body, is_start)))
        })
}

/// Returns whether the first and the last line were indented alike but no longer are, and one of
/// them is not telling.
fn is_uneven(looked: &Looked<'_>, at: &Range<usize>, span: &Span) -> bool {
    let file = &looked.file.lines;
    let is_level = |indents: &[usize]| indents.first() == indents.last();
    let is_bracket = !is_telling(&file[at.start]) || !is_telling(&file[at.end - 1]);
    is_bracket
        && span.own == (0..looked.item.len())
        && is_level(&looked.item.indents)
        && !is_level(&looked.file.indents[at.clone()])
}

/// Returns whether the outermost line is doubtful: the bracket next to it would balance the place,
/// or the line is not telling and occurs more often than before.
fn ends_doubtfully(looked: &Looked<'_>, at: &Range<usize>, body: &[Pair], is_start: bool) -> bool {
    if looked.is_balanced(at) || is_outermost(looked, at, body, is_start) {
        return false;
    }
    let line = &looked.file.lines[if is_start { at.start } else { at.end - 1 }];
    let is_next = |line: &&str| !is_telling(line);
    let beyond = looked.beside(at, is_start, 1);
    let longer = if is_start { at.start.saturating_sub(1)..at.end } else { at.start..at.end + 1 };
    if !looked.is_known(at, is_start)
        && beyond.first().is_some_and(is_next)
        && looked.is_balanced(&longer)
    {
        return true;
    }
    let count = |lines: &[String]| lines.iter().filter(|other| *other == line).count();
    let is_repeated = count(&looked.file.lines[at.clone()]) > count(&looked.item.lines);
    !is_telling(line) && is_repeated && !looked.is_known(at, is_start)
}

/// Returns whether a place ends with the outermost line of the text, chained to a telling line.
fn is_outermost(looked: &Looked<'_>, at: &Range<usize>, body: &[Pair], is_start: bool) -> bool {
    let outermost = match is_start {
        true => Pair { line: 0, at: at.start },
        false => Pair { line: looked.item.len() - 1, at: at.end - 1 },
    };
    let inwards = inwards(body, is_start);
    inwards.first() == Some(&outermost) && is_chained(looked, &mut inwards.iter())
}

/// Returns the pairs from one side, the outermost first.
fn inwards(body: &[Pair], is_start: bool) -> Vec<Pair> {
    if is_start { body.to_vec() } else { body.iter().rev().copied().collect() }
}

/// Returns whether a lost line of the text, or an edited version of one, is near one side of a
/// place.
pub(super) fn has_lost_beyond(looked: &Looked<'_>, at: &Range<usize>, is_start: bool) -> bool {
    let mut lost = looked.lost(at);
    let (file, item) = (&looked.file.lines, &looked.item.lines);
    let (edge, outermost) = match is_start {
        true => (&file[at.start], &item[0]),
        false => (&file[at.end - 1], &item[item.len() - 1]),
    };
    if edge != outermost {
        lost.push(outermost);
    }
    let around = looked.neighbours(is_start);
    let gone = (1..=around.len()).filter(|far| looked.matched().is_gone(*far, is_start));
    let outside: Vec<&str> = gone.map(|far| around[far - 1]).collect();
    let near = beyond(looked, at, is_start);
    let count = |lines: &[&str], line: &str| lines.iter().filter(|other| **other == line).count();
    near.iter().any(|line| {
        let (own, other) = (likeness_to(line, &lost), likeness_to(line, &outside));
        let is_more = lost.contains(line) && count(&near, line) > count(&outside, line);
        is_more || (own > other && own > UNLIKE)
    })
}

/// Returns the lines near one side of a place, as far as they may belong to the text.
fn beyond<'a>(looked: &Looked<'a>, at: &Range<usize>, is_start: bool) -> Vec<&'a str> {
    let (matched, mut strange) = (looked.matched(), 0);
    let places = looked.outwards(at, is_start);
    let near = places.iter().take(NEXT).take_while(|at| {
        strange += usize::from(matched.is_foreign(**at));
        strange < MANY
    });
    near.filter(|at| !matched.is_other(**at)).map(|at| &*looked.file.lines[*at]).collect()
}

/// Returns whether the outermost line may be a copy, because the line itself may be an unmatched
/// line farther inwards: if the outermost line is telling, an edited version of it before the next
/// pair; otherwise, before the first telling pair, an equal of one of the matched lines there.
fn is_double(looked: &Looked<'_>, body: &[Pair], is_start: bool) -> bool {
    let (file, item, matched) = (&looked.file.lines, &looked.item.lines, looked.matched());
    let pairs = inwards(body, is_start);
    let silent = pairs.iter().take_while(|pair| !is_telling(&item[pair.line])).count();
    let Some(next) = pairs.get(silent.max(1)) else { return false };
    let outer = pairs[0];
    let mut between = outer.at.min(next.at) + 1..outer.at.max(next.at);
    let is_like = |line: &String| match silent {
        0 => likeness(line, &item[outer.line]) >= LOST,
        _ => pairs[..silent].iter().any(|pair| item[pair.line] == *line),
    };
    between.any(|at| matched.is_free(at) && is_like(&file[at]))
}
