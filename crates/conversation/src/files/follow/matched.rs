//! Matches the lines of the new file with the known lines of the old one: those of the item's text,
//! and the outside lines around it.
//!
//! The method is Heckel's, extended. Telling lines that occur exactly once in both files match,
//! wherever they are now, and so do equal lines next to matched ones. So do runs of two or three
//! lines that occur once in both files, and lines that occur equally often in the old and the new
//! part of a small gap between matches. A line of the text loses its match again if another line
//! stands in its place. All other lines have no match.

use std::collections::HashMap;
use std::ops::Range;

use super::anchor::Anchor;
use super::bare::{Bare, is_telling};
use super::known::NEAR;
use super::line_hash::LineHash;

/// Maximum number of lines of a gap between two pairs. A gap with more lines in either file is not
/// filled.
const GAP: usize = 400;

/// Lengths of the runs of lines that are paired as a whole.
const RUNS: [usize; 2] = [2, 3];

/// A line of the text, and its place in the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    /// Line of the text, counted from 0.
    pub(super) line: usize,
    /// Line of the new file.
    pub(super) at: usize,
}

/// The lines of the old and the new file, and which of them match.
pub(super) struct Matched {
    /// Lines of the text in the old file.
    own: Range<usize>,
    /// Hashes of the known lines of the old file, those of the text included.
    old: Vec<LineHash>,
    /// Hashes of the lines of the new file.
    new: Vec<LineHash>,
    /// For each line of the old file, its match in the new one.
    now: Vec<Option<usize>>,
    /// For each line of the new file, its match in the old one.
    was: Vec<Option<usize>>,
    /// Number of occurrences of each hash.
    counts: HashMap<LineHash, Count>,
    /// Two flags: true if the known lines reach the beginning of the old file, and true if they
    /// reach its end.
    is_whole: (bool, bool),
    /// For each line of the new file, true if it is telling.
    telling: Vec<bool>,
}

/// Number of occurrences of a line outside of the text, in the text, and in the new file.
#[derive(Default, Clone, Copy)]
struct Count {
    outside: usize,
    own: usize,
    now: usize,
}

impl Matched {
    pub(super) fn new(around: &Anchor, item: &Bare, file: &Bare) -> Self {
        let hashes = |text: &Bare| (0..text.len()).map(|at| text.hash(at)).collect::<Vec<_>>();
        let (above, below) = around.known.split_at(around.above.min(around.known.len()));
        let old = [above, &hashes(item), below].concat();
        let own = above.len()..above.len() + item.len();
        let new = hashes(file);
        let mut counts: HashMap<LineHash, Count> = HashMap::new();
        for (at, hash) in old.iter().enumerate() {
            let count = counts.entry(*hash).or_default();
            *(if own.contains(&at) { &mut count.own } else { &mut count.outside }) += 1;
        }
        new.iter().for_each(|hash| counts.entry(*hash).or_default().now += 1);
        let telling = file.lines.iter().map(|line| is_telling(line)).collect();
        let (now, was) = (vec![None; old.len()], vec![None; new.len()]);
        let is_whole = (above.len() < NEAR, below.len() < NEAR);
        let mut matched = Self { own, old, new, now, was, counts, is_whole, telling };
        // Outside lines come first, since they tell a text from its copy.
        matched.pair_single(false);
        matched.extend();
        let own = matched.own.clone();
        matched.fill(&own);
        matched.pair_single(true);
        matched.extend();
        for length in RUNS {
            matched.pair_runs(length);
            matched.extend();
        }
        matched.fill(&(0..matched.old.len()));
        matched.unpair_replaced();
        matched
    }

    /// Pairs runs of lines that occur once in both files, and are wholly in the text or wholly
    /// outside.
    fn pair_runs(&mut self, length: usize) {
        let mut places: HashMap<&[LineHash], [Vec<usize>; 2]> = HashMap::new();
        for (side, hashes) in [&self.old, &self.new].into_iter().enumerate() {
            for (at, run) in hashes.windows(length).enumerate() {
                places.entry(run).or_default()[side].push(at);
            }
        }
        let edges = [self.own.start, self.own.end];
        let crosses = |old: usize| edges.iter().any(|edge| old < *edge && *edge < old + length);
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for places in places.into_values() {
            if let [[old], [new]] = [&places[0][..], &places[1][..]]
                && !crosses(*old)
                && self.telling[*new..new + length].contains(&true)
            {
                runs.push((*old, *new));
            }
        }
        runs.sort_unstable();
        for (old, new) in runs {
            let is_free = |n: usize| self.now[old + n].is_none() && self.was[new + n].is_none();
            if (0..length).all(is_free) {
                (0..length).for_each(|n| self.pair(old + n, new + n));
            }
        }
    }

    /// Unpairs a line of the text from an equal line elsewhere, if one other line is now between
    /// its old neighbours.
    fn unpair_replaced(&mut self) {
        for old in self.own.clone() {
            let before = old.checked_sub(1).and_then(|at| self.now[at]);
            let after = self.now.get(old + 1).copied().flatten();
            if let (Some(before), Some(after), Some(at)) = (before, after, self.now[old])
                && before + 2 == after
                && before + 1 != at
                && self.was[before + 1].is_none()
            {
                (self.now[old], self.was[at]) = (None, None);
            }
        }
    }

    fn pair(&mut self, old: usize, new: usize) {
        (self.now[old], self.was[new]) = (Some(new), Some(old));
    }

    /// Pairs the telling lines that occur once in both files: either those of the text or those
    /// outside of it.
    fn pair_single(&mut self, of_text: bool) {
        let places: HashMap<LineHash, usize> =
            self.new.iter().enumerate().map(|(at, hash)| (*hash, at)).collect();
        for old in 0..self.old.len() {
            let count = self.counts[&self.old[old]];
            if let (1, 1) = (count.own + count.outside, count.now)
                && let at = places[&self.old[old]]
                && self.telling[at]
                && self.own.contains(&old) == of_text
                && self.was[at].is_none()
            {
                self.pair(old, at);
            }
        }
    }

    /// Pairs equal lines next to pairs.
    fn extend(&mut self) {
        if self.is_whole.0 {
            self.pair_equal(0, 0);
        }
        if self.is_whole.1 && !self.new.is_empty() {
            self.pair_equal(self.old.len() - 1, self.new.len() - 1);
        }
        for old in 1..self.old.len() {
            if let Some(new) = self.now[old - 1] {
                self.pair_equal(old, new + 1);
            }
        }
        for old in (1..self.old.len()).rev() {
            if let Some(new) = self.now[old].and_then(|new| new.checked_sub(1)) {
                self.pair_equal(old - 1, new);
            }
        }
    }

    fn pair_equal(&mut self, old: usize, new: usize) {
        if self.now[old].is_none()
            && self.was.get(new) == Some(&None)
            && self.old[old] == self.new[new]
        {
            self.pair(old, new);
        }
    }

    /// Pairs lines in the gaps between pairs. Skips a gap if none of its lines of the old file is
    /// in `among`.
    fn fill(&mut self, among: &Range<usize>) {
        let mut last: Option<usize> = None;
        for new in 0..=self.new.len() {
            let Some(end) = self.was.get(new).copied().or(Some(Some(self.old.len()))).flatten()
            else {
                continue;
            };
            let (from, start) = last.map_or((0, 0), |at| (at + 1, self.was[at].unwrap_or(0) + 1));
            last = Some(new);
            let is_among = start < among.end && end > among.start;
            if is_among && from < new && start < end && end - start <= GAP && new - from <= GAP {
                self.fill_gap(start..end, from..new);
            }
        }
    }

    /// Pairs, in order, the lines that occur equally often in the two parts of a gap, `old` and
    /// `new`.
    fn fill_gap(&mut self, old: Range<usize>, new: Range<usize>) {
        let mut places: HashMap<LineHash, [Vec<usize>; 2]> = HashMap::new();
        let free = old.filter(|at| self.now[*at].is_none());
        free.for_each(|at| places.entry(self.old[at]).or_default()[0].push(at));
        let free = new.filter(|at| self.was[*at].is_none());
        free.for_each(|at| places.entry(self.new[at]).or_default()[1].push(at));
        for [old, new] in places.into_values() {
            if old.len() == new.len() {
                old.into_iter().zip(new).for_each(|(old, new)| self.pair(old, new));
            }
        }
        self.extend();
    }

    /// Returns the matched lines of the text, in the order of the new file.
    pub(super) fn own(&self) -> Vec<Pair> {
        let pair = |(at, was): (usize, &Option<usize>)| {
            let line = was.as_ref()?.checked_sub(self.own.start)?;
            (line < self.own.len()).then_some(Pair { line, at })
        };
        self.was.iter().enumerate().filter_map(pair).collect()
    }

    /// Returns whether a line of the new file has no match.
    pub(super) fn is_free(&self, at: usize) -> bool {
        self.was[at].is_none()
    }

    /// Returns whether a line of the new file is telling, and occurs once in both files.
    pub(super) fn is_single(&self, at: usize) -> bool {
        let count = self.counts[&self.new[at]];
        self.telling[at] && count.own + count.outside == 1 && count.now == 1
    }

    /// Returns whether a line of the new file matches an outside line.
    pub(super) fn is_other(&self, at: usize) -> bool {
        self.was[at].is_some_and(|was| !self.own.contains(&was))
    }

    /// Returns whether a line of the new file is an outside line. An unmatched line counts as one
    /// if it is telling, does not occur in the text, and occurs no more often than it did outside.
    pub(super) fn is_foreign(&self, at: usize) -> bool {
        match self.was[at] {
            Some(_) => self.is_other(at),
            None => {
                let count = self.counts[&self.new[at]];
                self.telling[at] && count.own == 0 && count.now <= count.outside
            }
        }
    }

    /// Returns how far from the text, on one side, the line that is now at `at` was in the old file;
    /// 1 means next to the text. Returns `None` if the line has no match, or was not on that side.
    pub(super) fn distance(&self, at: usize, is_start: bool) -> Option<usize> {
        let was = self.was[at]?;
        let far = match is_start {
            true => self.own.start.checked_sub(was),
            false => (was + 1).checked_sub(self.own.end),
        };
        far.filter(|far| *far > 0)
    }

    /// Returns whether the line that was at this [`distance`](Self::distance) is gone.
    pub(super) fn is_gone(&self, far: usize, is_start: bool) -> bool {
        let old = match is_start {
            true => self.own.start.checked_sub(far),
            false => Some(self.own.end + far - 1),
        };
        old.and_then(|at| *self.now.get(at)?).is_none()
    }

    /// Returns the number of outside lines in a place. If `maybe` is true, also counts lines that
    /// may be outside lines.
    pub(super) fn strange(&self, place: &Range<usize>, maybe: bool) -> usize {
        let may_be = |at: &usize| {
            let count = self.counts[&self.new[*at]];
            self.is_foreign(*at)
                || (maybe
                    && self.is_free(*at)
                    && self.telling[*at]
                    && count.outside > 0
                    && count.own == 0)
        };
        place.clone().filter(may_be).count()
    }

    /// Returns the lines between the nearest outside lines that remain on each side of the text.
    pub(super) fn between(&self) -> Option<Range<usize>> {
        let before = self.now[..self.own.start].iter().rev().find_map(|at| *at);
        let after = self.now[self.own.end..].iter().find_map(|at| *at);
        let (start, end) = (before.map_or(0, |at| at + 1), after.unwrap_or(self.new.len()));
        (start < end).then_some(start..end)
    }

    /// Like [`between`](Self::between); `None` if no line remains on a side that had lines.
    pub(super) fn framed(&self) -> Option<Range<usize>> {
        let remains =
            |lines: &[Option<usize>]| lines.is_empty() || lines.iter().any(Option::is_some);
        let is_known = remains(&self.now[..self.own.start]) && remains(&self.now[self.own.end..]);
        self.between().filter(|_| is_known)
    }

    /// Returns the number of different telling lines of the text that occur outside of a place, and
    /// the number of all different telling lines of the text. Lines that may have been outside
    /// lines count only if `maybe` is true.
    pub(super) fn strays(&self, item: &Bare, place: &Range<usize>, maybe: bool) -> (usize, usize) {
        let own = self.telling_lines(item);
        let mut strays: HashMap<LineHash, isize> = HashMap::new();
        let is_free = |at: &usize| {
            !place.contains(at) && self.was[*at].is_none_or(|was| self.own.contains(&was))
        };
        for at in (0..self.new.len()).filter(is_free) {
            *strays.entry(self.new[at]).or_default() += 1;
        }
        let is_lost = |at: &usize| !maybe && !self.own.contains(at) && self.now[*at].is_none();
        for at in (0..self.old.len()).filter(is_lost) {
            *strays.entry(self.old[at]).or_default() -= 1;
        }
        let is_stray = |hash: &&LineHash| strays.get(*hash).is_some_and(|count| *count > 0);
        (own.keys().filter(is_stray).count(), own.len())
    }

    /// Returns the number of different telling lines of the text that occur more often in a place
    /// than in the text, and the number of all different telling lines of the text.
    pub(super) fn repeated(&self, item: &Bare, place: &Range<usize>) -> (usize, usize) {
        let own = self.telling_lines(item);
        let mut within: HashMap<LineHash, usize> = HashMap::new();
        self.new[place.clone()].iter().for_each(|hash| *within.entry(*hash).or_default() += 1);
        let is_repeated = |(hash, own): &(&LineHash, &usize)| within.get(hash) > Some(own);
        (own.iter().filter(is_repeated).count(), own.len())
    }

    /// Returns the telling lines of the text, with the number of occurrences of each.
    fn telling_lines(&self, item: &Bare) -> HashMap<LineHash, usize> {
        let mut own: HashMap<LineHash, usize> = HashMap::new();
        let lines = item.lines.iter().zip(&self.old[self.own.clone()]);
        for (_, hash) in lines.filter(|(line, _)| is_telling(line)) {
            *own.entry(*hash).or_default() += 1;
        }
        own
    }
}
