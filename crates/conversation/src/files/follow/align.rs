//! Finds an edited text: the lines of the new file that belong to the text, and the lines between
//! them.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::bare::is_telling;
use super::body::{body, ordered};
use super::likeness::{LOST, UNLIKE, likeness, likeness_to};
use super::looked::{Looked, NEXT};
use super::{GONE, LONG, SEVERAL, definition, edges};

/// If at least this share of a text, or of its telling lines, is outside of the place found for it,
/// another version of the text may be elsewhere.
const RIVALS: f64 = 0.3;
/// Like [`RIVALS`], for a place that has the whole text.
const COPIES: f64 = 0.5;
/// If at least this share of a text is left between its old neighbours, its place is clear, even if
/// another version is elsewhere.
const CLEAR: f64 = 0.6;
/// If less than this share of a definition is left, and other lines of the definition are
/// elsewhere, the place must have the line that names the definition.
const MOST: f64 = 0.75;
/// At most one in this many telling lines may occur more often in the place than in the text.
const FEW: usize = 4;
/// Like [`FEW`], for a place between the old neighbours when another version of the text may be
/// elsewhere.
const RARE: usize = 8;
/// For the rule that half of the text must be left, a shorter text counts as having this many
/// lines.
const FEWEST: usize = 3;
/// Maximum number of lines that may be copies of outside lines, in a place that has all lines of
/// the text and lies between the old neighbours.
const COPIED: usize = 3;
/// Number of lines that may be inserted into a text of at most this many lines. A longer text may
/// grow by as many lines as it has.
const INSERTED: usize = 6;

/// Finds an edited version of the text.
pub(super) fn edited(looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
    let found = in_place(looked).or_else(|| definition::form(looked));
    found.map_or_else(|| aligned(looked), Ok)
}

/// Returns the place between the old neighbours of the text where each line is the line of the text
/// in its place, unchanged or edited. New lines may be beside it if they are unlike the text, and if
/// a line that occurs only there is unchanged.
fn in_place(looked: &Looked<'_>) -> Option<Range<usize>> {
    let (file, item, matched) = (&looked.file.lines, &looked.item.lines, looked.matched());
    let between = matched.between()?;
    let new = between.len().checked_sub(item.len()).filter(|new| *new <= NEXT)?;
    let is_edited = |at: &Range<usize>| {
        item.iter().zip(&file[at.clone()]).all(|(old, new)| likeness(old, new) >= LOST)
    };
    let places = (between.start..=between.start + new).map(|start| start..start + item.len());
    let mut places = places.filter(is_edited);
    let (place, None) = (places.next()?, places.next()) else { return None };
    let own: Vec<&str> = item.iter().map(|line| &**line).collect();
    let is_new = |at: usize| matched.is_free(at) && likeness_to(&file[at], &own) <= UNLIKE;
    let is_clear = || {
        (between.start..place.start).chain(place.end..between.end).all(is_new)
            && place.clone().any(|at| matched.is_single(at) && !matched.is_other(at))
    };
    (looked.is_between(&between) && (new == 0 || is_clear())).then_some(place)
}

/// Finds the place of the remaining lines of the text.
pub(super) fn aligned(looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
    let body = body(looked).ok_or(GONE)?;
    let at = edges::place(looked, &body).ok_or(GONE)?;
    let core = body[0].at..body[body.len() - 1].at + 1;
    let left = left(looked, &at);
    let is_long = at.len() - left > looked.item.len().max(INSERTED);
    let is_all = left == looked.item.len();
    let is_kept = is_all && [true, false].into_iter().all(|side| looked.is_closed(&at, side));
    let [sure, possible] = [false, true].map(|maybe| looked.matched().strange(&at, maybe));
    let is_copied = is_kept && possible - sure <= COPIED;
    let strange = if is_copied { sure } else { possible };
    let is_mixed = strange + brackets(looked, &at) >= left;
    let is_headless = (left as f64) < MOST * looked.item.len() as f64
        && looked.matched().strays(looked.item, &at, true).0 > 0
        && definition::is_headless(looked, &at);
    let is_enough = is_enough(looked, &at, left, ordered(&body)) && is_telling_enough(looked, &at);
    if !is_enough || (is_long && !is_kept) || is_mixed || is_headless {
        return Err(GONE);
    }
    let (repeated, telling) = looked.matched().repeated(looked.item, &at);
    let is_between = [&at, &core].iter().any(|at| looked.is_between(at));
    let has_rival = match is_all {
        true => is_copy(looked, &at),
        false => {
            is_many(looked.matched().strays(looked.item, &at, false), RIVALS)
                || is_left(looked, &at, RIVALS)
        }
    };
    let is_repeated = repeated * FEW > telling;
    let is_between = is_between && repeated * RARE <= telling;
    let is_clear = is_between && left as f64 >= CLEAR * looked.item.len() as f64;
    match (has_rival && !is_clear) || is_repeated {
        true => Err(SEVERAL),
        false => Ok(at),
    }
}

/// Returns 0 if a place leaves the same brackets open as the text did; otherwise, the number of the
/// place's new lines that are not telling.
fn brackets(looked: &Looked<'_>, at: &Range<usize>) -> usize {
    let (file, item) = (&looked.file.lines, &looked.item.lines);
    let is_new = |at: &usize| {
        looked.matched().is_free(*at) && !is_telling(&file[*at]) && !item.contains(&file[*at])
    };
    if looked.is_balanced(at) { 0 } else { at.clone().filter(is_new).count() }
}

/// Returns the number of the text's lines that a place still has, in their order.
fn left(looked: &Looked<'_>, at: &Range<usize>) -> usize {
    let lines = &looked.file.lines[at.clone()];
    let ops = capture_diff_slices(Algorithm::Myers, &looked.item.lines, lines);
    let equal = |op: &DiffOp| if let DiffOp::Equal { len, .. } = op { *len } else { 0 };
    ops.iter().map(equal).sum()
}

/// Returns whether a place has at least half of the text's telling lines, unchanged or edited. A
/// text without telling lines must still have the same number of lines.
fn is_telling_enough(looked: &Looked<'_>, at: &Range<usize>) -> bool {
    let (file, item) = (&looked.file.lines[at.clone()], &looked.item.lines);
    let now: Vec<&str> = file.iter().map(|line| &**line).collect();
    let telling = item.iter().filter(|line| is_telling(line));
    match telling.clone().count() {
        0 => file.len() == item.len(),
        all => telling.filter(|line| likeness_to(line, &now) >= LOST).count() * 2 >= all,
    }
}

/// Returns whether enough of the text is left: at least half of its lines. As many must be matched,
/// unless the place has the first, the last and the naming line of a definition.
fn is_enough(looked: &Looked<'_>, at: &Range<usize>, left: usize, matched: usize) -> bool {
    let (file, item) = (&looked.file.lines[at.clone()], &looked.item.lines);
    let has_ends = file.first() == item.first() && file.last() == item.last();
    let is_definition = has_ends && definition::is_in(looked, at);
    left == item.len()
        || (left * 2 >= item.len().max(FEWEST)
            && (is_definition || matched * 2 >= item.len().max(FEWEST)))
}

/// Returns whether a place with the whole text may be a copy, while the text itself is elsewhere.
pub(super) fn is_copy(looked: &Looked<'_>, at: &Range<usize>) -> bool {
    let (strays, telling) = looked.matched().strays(looked.item, at, true);
    telling == 0 || strays * 2 >= telling || is_left(looked, at, COPIES)
}

/// Returns whether a short text may be at a place by chance, since neither of its old neighbours is
/// there, nor is it between lines that were around it.
pub(super) fn is_stray(looked: &Looked<'_>, at: &Range<usize>) -> bool {
    let telling = looked.item.lines.iter().filter(|line| is_telling(line)).count();
    let is_framed =
        || looked.matched().framed().is_some_and(|was| was.start <= at.start && at.end <= was.end);
    telling < LONG
        && [true, false].into_iter().all(|is_start| looked.support(at, is_start) == 0)
        && !is_framed()
}

/// Returns whether at least the share `part` of the text remains between its old neighbours,
/// outside of the place `at`.
fn is_left(looked: &Looked<'_>, at: &Range<usize>, part: f64) -> bool {
    let Some(was) = looked.matched().between() else { return false };
    let is_elsewhere = was.end <= at.start || at.end <= was.start;
    let is_short = was.len() <= looked.item.len() + INSERTED;
    is_elsewhere && is_short && left(looked, &was) as f64 >= part * looked.item.len() as f64
}

fn is_many((strays, telling): (usize, usize), part: f64) -> bool {
    telling == 0 || (strays > 0 && strays as f64 >= part * telling as f64)
}
