//! Finds an edited text: aligns it and its surroundings with the places that share most lines.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::bare::is_telling;
use super::known::STRAYS;
use super::looked::Looked;
use super::pairs::{LIKE, Pair, keep_together, pair_likes};
use super::{CLEAR_MARGIN, CLEAR_SUPPORT, GONE, RIVAL, SEVERAL, definition};

/// Number of times above which a line in the file says nothing about the place.
const COMMON: usize = 16;
/// Weight of a line around the text for finding places, compared with its own.
const AROUND: f64 = 0.2;
/// Number of places that are looked at.
const PLACES: usize = 5;
/// Characters of a line beyond which more do not make it weigh more.
const HEAVY: usize = 60;
/// Part of the telling lines of a text from which others just like them are another version of it.
const RIVALS: f64 = 0.3;
/// Part of the text that must be left where it was to be preferred to a copy elsewhere.
const KEPT: f64 = 0.6;
/// Number of lines that may be put into any text. Into one that has more, as many as it has.
const INSERTED: usize = 6;
/// Number of lines as which shorter texts count, when half of a text must be left.
const FEWEST: usize = 3;
/// Number of lines on each side of a place among which lines that the text has lost are looked for.
const BESIDE: usize = 4;
/// Advantage of a place for each neighbour that it still has.
const NEIGHBOUR: f64 = 0.15;

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
}

/// Finds an edited version of the text.
pub(super) fn edited(looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
    aligned(looked).or_else(|reason| definition::form(looked).ok_or(reason))
}

fn aligned(looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
    let mut places: Vec<Aligned> = candidates(looked, None);
    places.sort_by(|one, other| other.rank(looked).total_cmp(&one.rank(looked)));
    let mut places = places.into_iter();
    let Some(best) = places.next() else { return definition::rewritten(looked) };
    let others: Vec<Aligned> = places.collect();
    let is_between = best.has_neighbours(looked) == (true, true);
    if best.kept() * 2 < looked.item.len().max(FEWEST) || !(is_between || best.has_evidence(looked))
    {
        return definition::rewritten(looked);
    }
    let is_near = |other: &Aligned| other.is_rival(looked) && !best.is_clearer(other, looked);
    if others.iter().any(is_near) {
        return Err(SEVERAL);
    }
    best.accepted(looked)
}

/// Finds an edited version that stands between both of the text's neighbours.
pub(super) fn in_place(looked: &Looked<'_>) -> Option<Result<Range<usize>, &'static str>> {
    let mut places = candidates(looked, None).into_iter();
    let other =
        places.find(|other| other.has_neighbours(looked) == (true, true) && other.score > KEPT)?;
    let place = other.accepted(looked);
    let is_same = |at: &Range<usize>| matches!(looked.support(at), (1.., 1..));
    Some(place.and_then(|at| if is_same(&at) { Ok(at) } else { Err(RIVAL) }))
}

/// Decides between the place where all of the text was found and an edited version elsewhere, which
/// it is if that has both of the neighbours.
pub(super) fn or_rival(
    looked: &Looked<'_>,
    place: Range<usize>,
) -> Result<Range<usize>, &'static str> {
    let support = looked.support(&place);
    let known = looked.known();
    if known.strays(&place) as f64 >= RIVALS * known.telling() as f64 && known.strays(&place) > 0 {
        return match support {
            (0, _) | (_, 0) => in_place(looked).unwrap_or(Err(RIVAL)),
            _ => Err(RIVAL),
        };
    }
    let is_elsewhere = support == (0, 0) && definition::is_elsewhere(looked, &place);
    if is_elsewhere { Err(RIVAL) } else { Ok(place) }
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
    /// Returns whether a line is at least as much like one of those around the text.
    fn is_around(&self, line: &str, like: f64) -> bool {
        let around = self.around.before.iter().chain(&self.around.after);
        around.map(|other| strsim::sorensen_dice(other, line)).any(|other| other >= like)
    }

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
        let mut pairs: Vec<Option<Pair>> = pairs[own].to_vec();
        for pair in pairs.iter_mut().filter(|pair| pair.is_some_and(|pair| pair.like < 1.0)) {
            // It may as well be an edited line of those around the text.
            pair.take_if(|pair| looked.is_around(&looked.file.lines[pair.at], pair.like));
        }
        keep_together(looked, &mut pairs);
        let weigh = |line: &String| (line.len().min(HEAVY) + 1) as f64;
        let total: f64 = looked.item.lines.iter().map(weigh).sum();
        let kept = || looked.item.lines.iter().zip(&pairs);
        let score: f64 =
            kept().map(|(line, pair)| weigh(line) * pair.map_or(0.0, |p| p.like)).sum();
        Self { pairs, before, after, score: score / total }
    }

    /// Returns the place of the text, if its edges are certain and no more is in it, or elsewhere,
    /// than there may be.
    fn accepted(&self, looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
        let at = self.edges(looked).ok_or(GONE)?;
        let known = looked.known();
        if at.len() - self.kept().min(at.len()) > looked.item.len().max(INSERTED)
            || known.strange(&at) >= self.kept()
            || definition::runs_on(looked, &at)
        {
            return Err(GONE);
        }
        let is_between = self.has_neighbours(looked) == (true, true);
        let strays = known.strays(&at);
        let lost = looked
            .item
            .lines
            .iter()
            .zip(&self.pairs)
            .filter(|(line, pair)| pair.is_none() && known.is_stray(line, &at));
        let strays = if is_between { lost.count() } else { strays };
        let is_spread = strays > 1 && strays * STRAYS > known.telling();
        let is_doubtful = !is_between
            && definition::is_in(looked, &at) == Some(false)
            && definition::is_elsewhere(looked, &at);
        let repeated = known.repeated(&at, looked.item);
        let is_repeated = repeated * STRAYS > known.telling();
        match is_spread || is_doubtful || is_repeated || self.is_cut(looked, &at) {
            true => Err(SEVERAL),
            false => Ok(at),
        }
    }

    /// Returns whether something beside a place may be a part of the text: a line that the text has
    /// lost, or its outermost line once more.
    fn is_cut(&self, looked: &Looked<'_>, at: &Range<usize>) -> bool {
        let end = looked.file.len();
        let around = at.start.saturating_sub(BESIDE)..(at.end + BESIDE).min(end);
        let (item, known) = (looked.item, looked.known());
        let (before, after) = looked.support(at);
        let sides = [(around.start..at.start, before), (at.end..around.end, after)];
        let pairs = item.lines.iter().zip(&self.pairs);
        let lost: Vec<&String> = pairs
            .filter(|(line, pair)| pair.is_none() && is_telling(line))
            .map(|(line, _)| line)
            .collect();
        let is_lost = |beside: usize| {
            let line = &looked.file.lines[beside];
            let like = |own: &&String| strsim::sorensen_dice(own, line) >= LIKE;
            is_telling(line) && known.strange(&(beside..beside + 1)) == 0 && lost.iter().any(like)
        };
        let is_double = |(line, support): (Option<&String>, usize)| {
            let Some(line) = line.filter(|_| support < 2) else { return false };
            let all = item.lines.iter().chain(&looked.around.before).chain(&looked.around.after);
            known.count_in(line, &around) > all.filter(|other| *other == line).count()
        };
        sides.into_iter().any(|(beside, support)| support < 2 && beside.into_iter().any(is_lost))
            || [(item.lines.first(), before), (item.lines.last(), after)].into_iter().any(is_double)
    }

    /// Returns how many lines of the text have a counterpart.
    fn kept(&self) -> usize {
        self.pairs.iter().flatten().count()
    }

    /// Returns how many telling lines of the text have a counterpart, and how many of those are
    /// certainly the text's.
    fn evidence(&self, looked: &Looked<'_>) -> (usize, usize) {
        let known = looked.known();
        let lines = looked.item.lines.iter().zip(&self.pairs);
        let paired = lines.filter_map(|(line, pair)| Some((line, (*pair)?)));
        let telling: Vec<_> = paired.filter(|(line, _)| is_telling(line)).collect();
        let is_own = |(line, pair): &&(&String, Pair)| match pair.like < 1.0 {
            true => !known.is_foreign(pair.at),
            false => known.is_sole(line),
        };
        (telling.len(), telling.iter().filter(is_own).count())
    }

    fn has_evidence(&self, looked: &Looked<'_>) -> bool {
        let (all, own) = self.evidence(looked);
        own > 0 && own * 3 >= all
    }

    /// Returns whether this may be another version of the text.
    fn is_rival(&self, looked: &Looked<'_>) -> bool {
        let (_, own) = self.evidence(looked);
        own > 0 && own as f64 >= RIVALS * looked.known().telling() as f64
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

    /// Returns whether the lines around this place are clearly more like those that were around the
    /// text than those of another place.
    fn is_clearer(&self, other: &Self, looked: &Looked<'_>) -> bool {
        let is_between = self.has_neighbours(looked) == (true, true);
        if is_between && other.has_neighbours(looked) != (true, true) {
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
