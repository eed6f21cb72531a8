//! Finds an edited text: aligns it and its surroundings with the places that share most lines.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::bare::{Looked, is_telling};
use super::{CLEAR_MARGIN, CLEAR_SUPPORT, GONE, RIVAL, SEVERAL, definition};

/// Number of times above which a line in the file says nothing about the place.
const COMMON: usize = 16;
/// Weight of a line around the text for finding places, compared with its own.
const AROUND: f64 = 0.2;
/// Number of places that are looked at.
const PLACES: usize = 3;
/// Maximum length of a run of changed lines whose lines are compared one by one.
const MAX_PAIRED: usize = 48;
/// Least likeness of two lines of which one is taken for the edited other.
const LIKE: f64 = 0.75;
/// Characters of a line beyond which more do not make it weigh more.
const HEAVY: usize = 60;
/// Least part of a text that must survive.
const SURVIVES: f64 = 0.5;
/// Least part that must survive if the text has neither of its neighbours.
const SURVIVES_ALONE: f64 = 0.65;
/// Least part that must survive if the text still has both of its neighbours.
const SURVIVES_BETWEEN: f64 = 0.4;
/// Least part of a text that must be unchanged lines which tell their place.
const FIRM: f64 = 0.2;
/// Part of the unchanged lines that makes a place count as another version of the text.
const RIVALS: f64 = 0.3;
/// Part of the text that makes a place count as another version of it, changed lines included.
const KEPT: f64 = 0.6;
/// Part of the text from which another version of it counts whatever it is called.
const NEARLY_ALL: f64 = 0.8;
/// Part of the best place's score from which the second best is a rival.
const NEAR: f64 = 0.6;
/// The same if the best place has neither of the text's neighbours.
const NEAR_ALONE: f64 = 0.4;
/// Advantage of a place for each neighbour that it still has.
const NEIGHBOUR: f64 = 0.15;

/// A line of the text that was found in the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair {
    /// Line of the file.
    pub(super) at: usize,
    /// Likeness of the lines; 1 if they are the same.
    pub(super) like: f64,
}

/// An alignment of the text and its surroundings with a part of the file.
pub(super) struct Aligned {
    /// For each line of the text, its counterpart.
    pub(super) pairs: Vec<Option<Pair>>,
    /// Counterpart of the last line before the text that has one.
    pub(super) before: Option<usize>,
    /// Counterpart of the first line after the text that has one.
    pub(super) after: Option<usize>,
    /// Part of the text that survives, by weight of lines.
    pub(super) score: f64,
    /// Part of its telling lines that are unchanged.
    firm: f64,
}

/// Finds an edited version of the text.
pub(super) fn edited(looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
    let mut places: Vec<Aligned> = candidates(looked, None);
    places.sort_by(|one, other| other.rank(looked).total_cmp(&one.rank(looked)));
    let mut places = places.into_iter();
    let Some(best) = places.next() else { return definition::rewritten(looked) };
    let others: Vec<Aligned> = places.collect();
    let (enough, near) = match best.has_neighbours(looked) {
        (true, true) => (SURVIVES_BETWEEN, NEAR),
        (false, false) => (SURVIVES_ALONE, NEAR_ALONE),
        _ => (SURVIVES, NEAR),
    };
    let is_between = best.has_neighbours(looked) == (true, true);
    if best.score < enough || (!is_between && best.firm < FIRM) {
        return definition::rewritten(looked);
    }
    let is_near = |other: &Aligned| {
        other.is_rival() && other.score > best.score * near && !best.is_clearer(other, looked)
    };
    if others.iter().any(is_near) {
        return Err(SEVERAL);
    }
    if looked.around.has_like && !(is_between && best.has_ends()) {
        return Err(SEVERAL);
    }
    let at = best.edges(looked).or_else(|| best.shape(looked)).ok_or(GONE)?;
    if definition::is_in(looked, &at) == Some(false)
        && (!is_between || best.score < KEPT || looked.around.has_like)
    {
        return Err(GONE);
    }
    let is_doubtful = !is_between && definition::is_elsewhere(looked, &at);
    match is_doubtful || definition::is_repeated(looked, &at) {
        true => Err(SEVERAL),
        false => Ok(at),
    }
}

/// Decides between the place where all of the text was found and an edited version elsewhere, which
/// it is if that has both of the neighbours.
pub(super) fn or_rival(
    looked: &Looked<'_>,
    place: Range<usize>,
) -> Result<Range<usize>, &'static str> {
    let support = looked.support(&place);
    for other in rivals(looked, &place) {
        let is_in_place = other.has_neighbours(looked) == (true, true);
        match support {
            (0, _) | (_, 0) if is_in_place && other.score > KEPT => {
                return other.edges(looked).ok_or(RIVAL);
            }
            // What was like it before is none.
            _ if looked.around.has_like && !is_in_place => {}
            _ => return Err(RIVAL),
        }
    }
    match definition::is_elsewhere(looked, &place) {
        true => Err(RIVAL),
        false => Ok(place),
    }
}

/// Returns whether something much like the text is outside of its place.
pub(super) fn has_rival(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    !rivals(looked, place).is_empty()
}

/// Returns what may be other versions of the text. A definition of another name is none.
fn rivals(looked: &Looked<'_>, place: &Range<usize>) -> Vec<Aligned> {
    let mut found = candidates(looked, Some(place));
    found.retain(|other| {
        let is_named = |span: Range<usize>| definition::is_in(looked, &span).unwrap_or(true);
        let is_there = other.has_neighbours(looked) != (false, false);
        other.is_rival()
            && (is_there || other.score > NEARLY_ALL || other.span().is_some_and(is_named))
    });
    found
}

/// Aligns the text with the places that share most lines with it.
fn candidates(looked: &Looked<'_>, except: Option<&Range<usize>>) -> Vec<Aligned> {
    let block: Vec<&str> = looked.block().collect();
    let votes = votes(looked, &block, except);
    let mut found = Vec::new();
    let mut taken: Vec<Range<usize>> = except.into_iter().cloned().collect();
    for _ in 0..PLACES {
        let Some(window) = best_window(&votes, block.len(), &taken) else { break };
        let window = widened(&window, block.len() / 2 + 8, &taken, looked.file.len());
        let aligned = Aligned::new(looked, &block, window.clone());
        let span = aligned.span().unwrap_or(window);
        taken.push(span);
        found.push(aligned);
    }
    found
}

/// Returns the lines of the file that are also in the text or around it, each with its weight.
fn votes(looked: &Looked<'_>, block: &[&str], except: Option<&Range<usize>>) -> Vec<(usize, f64)> {
    let mut wanted: HashMap<&str, f64> = HashMap::new();
    let own = looked.around.before.len()..looked.around.before.len() + looked.item.len();
    for (at, line) in block.iter().enumerate().filter(|(_, line)| is_telling(line)) {
        *wanted.entry(line).or_default() += if own.contains(&at) { 1.0 } else { AROUND };
    }
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in looked.file.lines.iter().enumerate() {
        if wanted.contains_key(&**line) && !except.is_some_and(|range| range.contains(&at)) {
            places.entry(line).or_default().push(at);
        }
    }
    let mut votes: Vec<(usize, f64)> = Vec::new();
    for (line, at) in places.iter().filter(|(_, at)| at.len() <= COMMON) {
        let weight = wanted[line].min(at.len() as f64) / at.len() as f64;
        votes.extend(at.iter().map(|at| (*at, weight)));
    }
    votes.sort_by_key(|(at, _)| *at);
    votes
}

/// Returns the run of lines with most votes that is not much longer than the block.
fn best_window(
    votes: &[(usize, f64)],
    length: usize,
    taken: &[Range<usize>],
) -> Option<Range<usize>> {
    let is_free = |at: usize| !taken.iter().any(|range| range.contains(&at));
    let votes: Vec<(usize, f64)> = votes.iter().copied().filter(|(at, _)| is_free(*at)).collect();
    let part = |at: usize| taken.iter().filter(|range| range.end <= at).count();
    let limit = length + length / 2 + 8;
    let (mut from, mut sum, mut best) = (0, 0.0, (0.0, None));
    for (to, (at, weight)) in votes.iter().enumerate() {
        sum += weight;
        // A window must not reach over what is taken.
        while at - votes[from].0 >= limit || part(votes[from].0) != part(*at) {
            sum -= votes[from].1;
            from += 1;
        }
        if sum > best.0 {
            best = (sum, Some(votes[from].0..votes[to].0 + 1));
        }
    }
    best.1
}

/// Widens a window, but not into what is taken.
fn widened(
    window: &Range<usize>,
    by: usize,
    taken: &[Range<usize>],
    length: usize,
) -> Range<usize> {
    let floor = taken.iter().map(|range| range.end).filter(|end| *end <= window.start).max();
    let roof = taken.iter().map(|range| range.start).filter(|start| *start >= window.end).min();
    let start = window.start.saturating_sub(by).max(floor.unwrap_or(0));
    start..(window.end + by).min(roof.unwrap_or(length))
}

impl Looked<'_> {
    /// Iterates over the lines before the text, its own, and those after it.
    fn block(&self) -> impl Iterator<Item = &str> {
        let around = self.around;
        around.before.iter().chain(&self.item.lines).chain(&around.after).map(|line| &**line)
    }
}

impl Aligned {
    fn new(looked: &Looked<'_>, block: &[&str], window: Range<usize>) -> Self {
        let lines: Vec<&str> =
            looked.file.lines[window.clone()].iter().map(|line| &**line).collect();
        let mut pairs: Vec<Option<Pair>> = vec![None; block.len()];
        for op in capture_diff_slices(Algorithm::Myers, block, &lines) {
            match op {
                DiffOp::Equal { old_index, new_index, len } => (0..len).for_each(|n| {
                    pairs[old_index + n] = Some(Pair { at: new_index + n, like: 1.0 });
                }),
                DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                    let (old, new) =
                        (old_index..old_index + old_len, new_index..new_index + new_len);
                    pair_likes(block, &lines, old, new, &mut pairs);
                }
                _ => {}
            }
        }
        pairs.iter_mut().flatten().for_each(|pair| pair.at += window.start);
        let first = looked.around.before.len();
        let own = first..first + looked.item.len();
        let lines = || block.iter().zip(&pairs);
        let before = outside(&mut lines().take(first).rev());
        let after = outside(&mut lines().skip(own.end));
        let pairs: Vec<Option<Pair>> = pairs[own].to_vec();
        let weigh = |line: &String| (line.len().min(HEAVY) + 1) as f64;
        let total: f64 = looked.item.lines.iter().map(weigh).sum();
        let kept = || looked.item.lines.iter().zip(&pairs);
        let score: f64 =
            kept().map(|(line, pair)| weigh(line) * pair.map_or(0.0, |p| p.like)).sum();
        let firm = |(line, pair): (&String, &Option<Pair>)| match pair {
            Some(Pair { like: 1.0, .. }) if is_telling(line) => weigh(line),
            _ => 0.0,
        };
        let (score, firm) = (score / total, kept().map(firm).sum::<f64>() / total);
        Self { pairs, before, after, score, firm }
    }

    /// Returns whether this may be another version of the text.
    fn is_rival(&self) -> bool {
        self.firm > RIVALS || self.score > KEPT
    }

    /// Returns the lines of the file from the first to the last that the text has.
    fn span(&self) -> Option<Range<usize>> {
        let mut found = self.pairs.iter().flatten();
        let first = found.next()?.at;
        Some(first..found.last().map_or(first, |pair| pair.at) + 1)
    }

    /// Returns whether the text still begins after, and ends before, the line that it did.
    pub(super) fn has_neighbours(&self, looked: &Looked<'_>) -> (bool, bool) {
        let Some(span) = self.span() else { return (false, false) };
        let begins = looked.around.begins_file() && looked.around.before.is_empty();
        let ends = looked.around.ends_file() && looked.around.after.is_empty();
        (
            self.before.is_some_and(|at| at + 1 == span.start) || (begins && span.start == 0),
            self.after == Some(span.end) || (ends && span.end == looked.file.len()),
        )
    }

    /// Returns the lines of a definition whose edges only its shape tells.
    fn shape(&self, looked: &Looked<'_>) -> Option<Range<usize>> {
        let at = definition::shaped(looked, &self.span()?)?;
        let is_like = at.len() <= looked.item.len() + looked.item.len() / 2 + 3;
        (is_like && self.is_whole(looked, &at)).then_some(at)
    }

    /// Returns whether the first and the last line are unchanged.
    fn has_ends(&self) -> bool {
        let is_same = |pair: Option<&Option<Pair>>| {
            pair.copied().flatten().is_some_and(|pair| pair.like >= 1.0)
        };
        is_same(self.pairs.first()) && is_same(self.pairs.last())
    }

    /// Returns whether the lines around this place are clearly more like those that were around the
    /// text than those of another place.
    fn is_clearer(&self, other: &Self, looked: &Looked<'_>) -> bool {
        let is_between = self.has_neighbours(looked) == (true, true);
        if is_between && other.has_neighbours(looked) == (false, false) {
            return true;
        }
        let support = |one: &Self| {
            let (before, after) = one.span().map_or((0, 0), |span| looked.support(&span));
            before + after
        };
        let (own, others) = (support(self), support(other));
        is_between && own >= CLEAR_SUPPORT && own >= others + CLEAR_MARGIN
    }

    fn rank(&self, looked: &Looked<'_>) -> f64 {
        let (before, after) = self.has_neighbours(looked);
        self.score + NEIGHBOUR * f64::from(u8::from(before) + u8::from(after))
    }
}

/// Returns the counterpart of the line next to the text, of the given lines from there on. Lines
/// that say nothing count only together with one that does.
fn outside(lines: &mut dyn Iterator<Item = (&&str, &Option<Pair>)>) -> Option<usize> {
    let mut lines = lines.skip_while(|(_, pair)| pair.is_none());
    let (line, first) = lines.next()?;
    let first = (*first)?.at;
    let mut previous = first;
    if is_telling(line) {
        return Some(first);
    }
    for (line, pair) in lines {
        let at = (*pair)?.at;
        if at.abs_diff(previous) != 1 {
            return None;
        }
        if is_telling(line) {
            return Some(first);
        }
        previous = at;
    }
    None
}

/// Pairs changed lines with those that they may have been changed to, in order, so that the sum of
/// their likeness is greatest.
fn pair_likes(
    block: &[&str],
    lines: &[&str],
    old: Range<usize>,
    new: Range<usize>,
    pairs: &mut [Option<Pair>],
) {
    if old.len() > MAX_PAIRED || new.len() > MAX_PAIRED {
        return;
    }
    let (rows, columns) = (old.len(), new.len());
    let mut like = vec![vec![0.0; columns]; rows];
    for (row, likes) in like.iter_mut().enumerate() {
        for (column, like) in likes.iter_mut().enumerate() {
            let one = strsim::sorensen_dice(block[old.start + row], lines[new.start + column]);
            *like = if one >= LIKE { one } else { 0.0 };
        }
    }
    let mut best = vec![vec![0.0_f64; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let both = like[row][column] + best[row + 1][column + 1];
            best[row][column] = both.max(best[row + 1][column]).max(best[row][column + 1]);
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < rows && column < columns {
        if best[row][column] == best[row + 1][column] {
            row += 1;
        } else if best[row][column] == best[row][column + 1] {
            column += 1;
        } else {
            // Never as much as 1, which stands for the same line.
            let like = like[row][column].min(0.99);
            pairs[old.start + row] = Some(Pair { at: new.start + column, like });
            (row, column) = (row + 1, column + 1);
        }
    }
}
