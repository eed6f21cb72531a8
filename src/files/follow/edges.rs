//! Decides where an edited text begins and ends.

use std::ops::Range;

use super::align::Aligned;
use super::anchor::{Anchor, LINES as ANCHORED};
use super::bare::{balance, is_telling};
use super::looked::Looked;
use super::pairs::Pair;

/// Likeness from which a changed line next to a text is one that the text has lost.
const LOST: f64 = 0.6;
/// Likeness up to which a line next to a text is certainly none that the text has lost.
const UNLIKE: f64 = 0.4;
/// Least difference of likeness that tells whether a changed line was in the text or next to it.
const CLEAR: f64 = 0.1;
/// Likeness of a line of the text and one in another order which is an edited version of it.
const REWORDED: f64 = 0.8;
/// Likeness from which a changed line is the same wherever it is.
const SAME: f64 = 0.9;
/// Number of new lines next to a text among which its lost lines are looked for.
const NEXT: usize = 8;

/// One edge of a text, seen from inside: lines count from the edge on, and places are distances
/// from the beginning or the end of the file.
struct Edge<'a, 'b> {
    looked: &'a Looked<'b>,
    is_start: bool,
    /// Lines of the text.
    lines: Vec<&'a str>,
    /// Their counterparts.
    pairs: Vec<Option<Pair>>,
    /// Lines next to the text, the nearest first.
    neighbours: Vec<&'a str>,
    /// Counterpart of the first of them that has one.
    outside: Option<usize>,
}

impl Aligned {
    /// Returns whether the last line of the text is not a lost bracket, or what follows is as it was.
    fn ends_expected(&self, looked: &Looked<'_>, start: usize, end: usize) -> bool {
        let is_lost = |edge: &Edge<'_, '_>, at: usize| {
            edge.pairs[0].is_none() && !is_telling(edge.lines[0]) && !edge.is_expected(at)
        };
        !is_lost(&Edge::new(self, looked, true), start)
            && !is_lost(&Edge::new(self, looked, false), looked.file.len() - end)
    }

    /// Returns the lines of the file that are now the text, if both edges are certain.
    pub(super) fn edges(&self, looked: &Looked<'_>) -> Option<Range<usize>> {
        let start = Edge::new(self, looked, true).place()?;
        let end = looked.file.len() - Edge::new(self, looked, false).place()?;
        let is_balanced =
            self.ends_expected(looked, start, end) || keeps_balance(looked, &(start..end));
        (start < end && is_balanced).then_some(start..end)
    }
}

impl<'a, 'b> Edge<'a, 'b> {
    fn new(aligned: &Aligned, looked: &'a Looked<'b>, is_start: bool) -> Self {
        let last = looked.file.len();
        let far = |at: usize| if is_start { at } else { last - 1 - at };
        let mut lines: Vec<&str> = looked.item.lines.iter().map(|line| &**line).collect();
        let mut pairs: Vec<Option<Pair>> = aligned.pairs.clone();
        let around = looked.around;
        let mut neighbours: Vec<&str> =
            if is_start { &around.before } else { &around.after }.iter().map(|it| &**it).collect();
        match is_start {
            true => neighbours.reverse(),
            false => {
                lines.reverse();
                pairs.reverse();
            }
        }
        pairs.iter_mut().flatten().for_each(|pair| pair.at = far(pair.at));
        let outside = if is_start { aligned.before } else { aligned.after }.map(far);
        Self { looked, is_start, lines, pairs, neighbours, outside }
    }

    /// Returns the place of the edge, if it is certain.
    fn place(&self) -> Option<usize> {
        let paired = (0..self.pairs.len()).filter(|line| self.pairs[*line].is_some());
        let mut paired = paired.skip_while(|line| *line > 0 && !self.is_chained(*line));
        let first = paired.next()?;
        let pair = self.pairs[first]?;
        let edge = match first {
            0 if self.is_certain(pair) => pair.at,
            0 => {
                return None;
            }
            // As many as were outside of the text are left, so this one may be one of those.
            rest if is_telling(self.lines[rest])
                && pair.like >= 1.0
                && !self.is_expected(pair.at)
                && !self.looked.known().is_own(self.lines[rest]) =>
            {
                return None;
            }
            rest if !is_telling(self.lines[rest])
                && !self.is_expected(pair.at)
                && self.is_indented(rest) != Some(true) =>
            {
                return None;
            }
            lost => match self.beyond(pair.at, &self.lines[..lost]) {
                Some(edge) => edge,
                None => {
                    return None;
                }
            },
        };
        let edge = self.reordered(edge)?;
        self.swapped(edge)
    }

    /// Returns the edge with a line that is next to it, and is one that the text has lost, or may be.
    fn swapped(&self, edge: usize) -> Option<usize> {
        let Some(outside) = edge.checked_sub(1) else { return Some(edge) };
        let lost = |(line, pair): (&&str, &Option<Pair>)| {
            *line == self.file(outside) && pair.is_none_or(|pair| pair.at < edge)
        };
        let is_line = |next: &&str| Anchor::is_line(next, self.file(outside));
        let is_known = self.is_next(edge) || self.neighbours.first().is_some_and(is_line);
        if is_known || !self.lines.iter().zip(&self.pairs).any(lost) {
            return Some(edge);
        }
        self.is_next(outside).then_some(outside)
    }

    /// Returns the edge with the lost lines of the text that are next to it in another order. None
    /// if there are some, but beyond others.
    fn reordered(&self, from: usize) -> Option<usize> {
        let known = self.looked.known();
        let lost = self.lines.iter().zip(&self.pairs);
        let lost: Vec<&str> = lost
            .filter(|(line, pair)| is_telling(line) && pair.is_none_or(|pair| pair.at < from))
            .map(|(line, _)| *line)
            .collect();
        let (mut edge, mut is_outside) = (from, false);
        for at in (from.saturating_sub(NEXT)..from).rev() {
            let line = self.file(at);
            if lost.contains(&line) {
                if is_outside && (known.is_own(line) || self.is_expected(at)) {
                    return None;
                }
                if is_outside {
                    continue;
                }
                if known.is_single(line) || self.is_expected(at) {
                    if at + 1 != edge {
                        return None;
                    }
                    edge = at;
                }
            } else if !is_outside && self.is_lost(at, &lost) {
                if at + 1 != edge {
                    return None;
                }
                edge = at;
            }
            is_outside |=
                known.strange(&(self.at(at)..self.at(at) + 1)) > 0 || self.is_expected(at);
        }
        Some(edge)
    }

    /// Returns whether a new line is an edited one of those that the text has lost.
    fn is_lost(&self, at: usize, lost: &[&str]) -> bool {
        let line = self.file(at);
        let like = |lines: &[&str]| {
            let like = |other: &&str| strsim::normalized_levenshtein(other, line);
            lines.iter().map(like).fold(0.0, f64::max)
        };
        is_telling(line)
            && !self.is_foreign(at)
            && !self.lines.contains(&line)
            && like(lost) >= REWORDED
            && like(lost) > like(&self.neighbours) + CLEAR
    }

    /// Returns whether the outermost line of the text is certainly at its counterpart.
    fn is_certain(&self, pair: Pair) -> bool {
        let line = self.lines[0];
        if pair.like < 1.0 {
            let now = self.file(pair.at);
            let next = self.pairs.get(1).copied().flatten();
            let is_beside = next.is_some_and(|next| next.at == pair.at + 1);
            return self.is_next(pair.at)
                || ((is_beside || pair.like >= SAME)
                    && pair.like >= self.likeness(now, &self.neighbours) + CLEAR);
        }
        if !is_telling(line) {
            let is_indented = self.is_indented(0);
            // A bracket ends a file just as well as the text.
            return (self.is_next(pair.at) && !self.neighbours.is_empty())
                || is_indented == Some(true)
                || (is_indented.is_none() && self.is_in_run(pair.at));
        }
        if self.is_expected(pair.at) || self.looked.known().is_sole(line) {
            return true;
        }
        let is_double = self.neighbours.first().is_some_and(|next| Anchor::is_line(next, line));
        !is_double && self.is_chained(0)
    }

    /// Returns whether a line that says nothing is indented as it was, compared with the next that
    /// does. `None` if that is not known.
    fn is_indented(&self, line: usize) -> Option<bool> {
        let (item, file) = (&self.looked.item.indents, &self.looked.file.indents);
        let own =
            |line: usize| item[if self.is_start { line } else { item.len() - 1 - line }] as i64;
        let pair = self.pairs[line]?;
        let now = |at: usize| file[self.at(at)] as i64;
        let other = (line + 1..self.lines.len()).find(|other| is_telling(self.lines[*other]));
        let (other, inner) = other.and_then(|it| Some((it, self.pairs[it]?)))?;
        let (text, end) = (self.lines[line], self.looked.file.len());
        let is_text = |at: &usize| self.file(*at) == text;
        let next = self.neighbours.iter().take_while(|next| **next == text).count();
        let beyond = (0..pair.at).rev().take_while(is_text).count();
        let within = (pair.at..inner.at.min(end)).filter(is_text).count();
        let had = self.lines[line..other].iter().filter(|own| **own == text).count();
        let is_gap = (pair.at + 1..inner.at).any(|at| is_telling(self.file(at)));
        if is_gap || within != had || (beyond > 0 && beyond != next) {
            return None;
        }
        let (was, is) = (own(line) - own(other), now(pair.at) - now(inner.at));
        // All of it may be indented by other steps now.
        (was != 0).then_some(is != 0 && (was == is || was * now(inner.at) == is * own(other)))
    }

    /// Returns whether as many of a line that says nothing are together as were.
    fn is_in_run(&self, at: usize) -> bool {
        let line = self.lines[0];
        let own = self.lines.iter().take_while(|own| **own == line).count();
        let next = self.neighbours.iter().take_while(|next| **next == line).count();
        let is_known = next < self.neighbours.len() || self.neighbours.len() < ANCHORED;
        let beyond = (0..at).rev().take_while(|at| self.file(*at) == line).count();
        let within = (at..self.looked.file.len()).take_while(|at| self.file(*at) == line).count();
        is_known && beyond == next && within == own && (next > 0 || self.is_chained(0))
    }

    /// Returns whether the lines from one on, up to one that tells its place, are together.
    fn is_chained(&self, first: usize) -> bool {
        let mut previous: Option<usize> = None;
        for (line, pair) in self.lines.iter().zip(&self.pairs).skip(first) {
            let Some(pair) = pair else { return false };
            if previous.is_some_and(|previous| previous + 1 != pair.at) {
                return false;
            }
            if pair.like < 1.0 || (self.looked.known().is_sole(line)) {
                return true;
            }
            previous = Some(pair.at);
        }
        false
    }

    /// Returns whether the line outside of a place is one of those that were next to the text.
    fn is_expected(&self, at: usize) -> bool {
        let is_neighbour = self.neighbours.contains(&self.file(at));
        let is_one = |before: usize| {
            let is_line =
                |kept: &&str| is_telling(kept) && Anchor::is_line(kept, self.file(before));
            !is_neighbour && (self.outside == Some(before) || self.neighbours.iter().any(is_line))
        };
        at.checked_sub(1).is_some_and(is_one) || self.is_next(at)
    }

    /// Returns whether the line outside of a place is the one that was next to the text.
    fn is_next(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return self.neighbours.is_empty() && self.looked.around.is_known();
        };
        let next = self.neighbours.first();
        next.is_some_and(|kept| is_telling(kept) && Anchor::is_line(kept, self.file(before)))
    }

    /// Returns the edge of a text whose outermost lines were lost: beyond what is left of it are
    /// some new lines, which may be edited lines of it, and then a line that was outside.
    fn beyond(&self, from: usize, lost: &[&str]) -> Option<usize> {
        let mut edge = from;
        for at in (from.saturating_sub(NEXT)..from).rev() {
            if self.is_expected(at + 1) || self.is_foreign(at) {
                return Some(edge);
            }
            let line = self.file(at);
            if !is_telling(line) {
                if lost.contains(&line) {
                    return None;
                }
                continue;
            }
            if self.lines.contains(&line) {
                // A line of the text, in another order, or one just like it.
                return (!self.looked.known().is_own(line)).then_some(edge);
            }
            let (own, other) = (self.likeness(line, lost), self.likeness(line, &self.neighbours));
            match own {
                _ if other >= LOST && other > own + CLEAR => return Some(edge),
                _ if own >= LOST && own > other + CLEAR => edge = at,
                _ if own < UNLIKE => {}
                _ => return None,
            }
        }
        Some(edge)
    }

    /// Returns the likeness of a line and the one of several that is most like it.
    fn likeness(&self, line: &str, lines: &[&str]) -> f64 {
        let like = |other: &&str| strsim::sorensen_dice(other, line);
        lines.iter().map(like).fold(0.0, f64::max)
    }

    fn file(&self, at: usize) -> &str {
        &self.looked.file.lines[self.at(at)]
    }

    fn is_foreign(&self, at: usize) -> bool {
        self.looked.known().is_foreign(self.at(at))
    }

    fn at(&self, far: usize) -> usize {
        if self.is_start { far } else { self.looked.file.len() - 1 - far }
    }
}

/// Returns whether a place closes the brackets that it opens, if the text did.
fn keeps_balance(looked: &Looked<'_>, at: &Range<usize>) -> bool {
    balance(&looked.item.lines) == [0; 3] && balance(&looked.file.lines[at.clone()]) == [0; 3]
}
