//! Chooses the lines of a file that show the place of a text.

use std::ops::Range;

use super::bare::is_telling;
use super::looked::Looked;
use super::matched::Pair;

/// Number of outside lines that may be between two groups of a text's lines, however small the
/// groups are.
const STRANGE: usize = 2;
/// At most one in this many found lines of a text may be elsewhere. The number of outside lines
/// between two groups may be the length of the largest group divided by this.
const FEW: usize = 4;

/// Minimum number of found lines for trusting a first or last line that an outside line separates
/// from the rest of the text.
const ENOUGH: usize = 4;

/// A line counts as near the rest of a text if it is at most as many lines away as the text has,
/// plus this many.
const NEAR: usize = 8;
/// If at least this share of a text is together, one of its lines may be elsewhere, even in a short
/// text.
const MOST: f64 = 0.6;

/// The known part of a text's place.
pub(super) struct Span {
    /// Lines of the file.
    pub(super) at: Range<usize>,
    /// Lines of the text, from the first to the last that was found.
    pub(super) own: Range<usize>,
}

/// Returns the pairs that show the place of the text, in the order of the file; `None` if no pairs
/// show it.
pub(super) fn body(looked: &Looked<'_>) -> Option<Vec<Pair>> {
    let groups = groups(looked);
    let in_place = groups.iter().find(|group| is_between(looked, group));
    let body = match in_place {
        Some(group) => group.clone(),
        None => trimmed(looked, joined(looked, &groups)?),
    };
    (!body.is_empty()).then_some(body)
}

/// Returns the number of pairs in the longest subsequence that is in the order of the text.
pub(super) fn ordered(body: &[Pair]) -> usize {
    // For each length, the lowest line that ends a subsequence of this length.
    let mut ends: Vec<usize> = Vec::new();
    for pair in body {
        let at = ends.partition_point(|end| *end < pair.line);
        match ends.get_mut(at) {
            Some(end) => *end = pair.line,
            None => ends.push(pair.line),
        }
    }
    ends.len()
}

/// Returns the found lines of the text, in groups separated by outside lines.
fn groups(looked: &Looked<'_>) -> Vec<Vec<Pair>> {
    let mut groups: Vec<Vec<Pair>> = Vec::new();
    for pair in looked.matched().own() {
        match groups.last_mut() {
            Some(group) if strange(looked, group[group.len() - 1], pair) == 0 => group.push(pair),
            _ => groups.push(vec![pair]),
        }
    }
    groups
}

/// Returns the number of outside lines between two pairs.
fn strange(looked: &Looked<'_>, one: Pair, other: Pair) -> usize {
    (one.at..other.at).filter(|at| looked.matched().is_foreign(*at)).count()
}

/// Returns whether a group has at least half of the text and is between the text's old neighbours.
fn is_between(looked: &Looked<'_>, group: &[Pair]) -> bool {
    group.len() * 2 >= looked.item.len()
        && is_outermost(looked, group[0], true)
        && is_outermost(looked, group[group.len() - 1], false)
}

/// Returns whether a line is the first or the last of the text and beside it is its old neighbour,
/// or nothing if the old file began or ended near the text.
fn is_outermost(looked: &Looked<'_>, pair: Pair, is_start: bool) -> bool {
    let (line, beside) = match is_start {
        true => (0, pair.at.checked_sub(1)),
        false => (looked.item.len() - 1, Some(pair.at + 1).filter(|at| *at < looked.file.len())),
    };
    let is_next = |at| looked.matched().distance(at, is_start) == Some(1);
    pair.line == line && beside.map_or(looked.reaches_end(is_start), is_next)
}

/// Returns the largest group and the groups close to it. Returns `None` if too much of the text is
/// elsewhere, if these groups are out of order, or if the first or last of them is only one line
/// that may be from elsewhere.
fn joined(looked: &Looked<'_>, groups: &[Vec<Pair>]) -> Option<Vec<Pair>> {
    let main = (0..groups.len()).max_by_key(|at| groups[*at].len())?;
    let most = (groups[main].len() / FEW).max(STRANGE);
    let edge = |one: usize| (groups[one][groups[one].len() - 1], groups[one + 1][0]);
    let is_near = |one: usize| {
        let (end, start) = edge(one);
        strange(looked, end, start) <= most
    };
    let (mut first, mut last) = (main, main);
    while first > 0 && is_near(first - 1) {
        first -= 1;
    }
    while last + 1 < groups.len() && is_near(last) {
        last += 1;
    }
    let kept = groups[first..=last].concat();
    let all: usize = groups.iter().map(Vec::len).sum();
    // A group of one line may be an equal line from elsewhere.
    let is_doubtful = |group: &[Pair], (one, other): (Pair, Pair)| {
        let is_certain = looked.matched().is_single(group[0].at)
            && one.line + 1 == other.line
            && strange(looked, one, other) == 1
            && groups.iter().map(Vec::len).sum::<usize>() >= ENOUGH;
        group.len() == 1 && !is_certain
    };
    let is_alone = first < last
        && (is_doubtful(&groups[first], edge(first)) || is_doubtful(&groups[last], edge(last - 1)));
    let is_mixed = first < last && ordered(&kept) < kept.len();
    let elsewhere = all - kept.len();
    let is_most = kept.len() as f64 >= MOST * looked.item.len() as f64;
    // A single line elsewhere is not part of the text unless it is near the rest.
    let is_far = |pair: &Pair| {
        let near = looked.item.len() + NEAR;
        pair.at + near < kept[0].at || pair.at > kept[kept.len() - 1].at + near
    };
    let alone = groups[..first].iter().chain(&groups[last + 1..]).flatten();
    let is_little =
        elsewhere * FEW <= all || (elsewhere == 1 && is_most && alone.into_iter().all(is_far));
    (!is_alone && !is_mixed && is_little).then_some(kept)
}

/// Drops lines at both ends that are out of order and apart from the rest. Then drops lines until
/// both ends are certain. An end is certain if it is an outermost line of the text beside its old
/// neighbour, or a line chained to a telling line.
fn trimmed(looked: &Looked<'_>, mut body: Vec<Pair>) -> Vec<Pair> {
    while let [.., before, last] = body[..]
        && last.line < before.line
        && before.at + 1 < last.at
    {
        body.pop();
    }
    while let [first, after, ..] = body[..]
        && first.line > after.line
        && first.at + 1 < after.at
    {
        body.remove(0);
    }
    while let Some(last) = body.last()
        && !is_outermost(looked, *last, false)
        && !is_chained(looked, &mut body.iter().rev())
    {
        body.pop();
    }
    let is_certain = |from: &usize| {
        is_outermost(looked, body[*from], true) || is_chained(looked, &mut body[*from..].iter())
    };
    let from = (0..body.len()).find(is_certain);
    body.split_off(from.unwrap_or(body.len()))
}

/// Returns whether the lines, up to the first telling one, are still next to each other in their
/// old order.
pub(super) fn is_chained(looked: &Looked<'_>, pairs: &mut dyn Iterator<Item = &Pair>) -> bool {
    let mut previous: Option<Pair> = None;
    for pair in pairs {
        let is_next = |was: Pair| {
            was.line.abs_diff(pair.line) == 1
                && was.at.abs_diff(pair.at) == 1
                && (was.line < pair.line) == (was.at < pair.at)
        };
        if !previous.is_none_or(is_next) {
            return false;
        }
        if is_telling(&looked.item.lines[pair.line]) {
            return true;
        }
        previous = Some(*pair);
    }
    false
}
