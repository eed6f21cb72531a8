//! Decides where an edited text begins and ends. At each edge, lines are listed outwards: the line
//! nearest to the text comes first.

use std::ops::Range;

use super::bare::is_telling;
use super::body::Span;
use super::doubts;
use super::likeness::{LOST, UNLIKE, likeness, likeness_to};
use super::looked::{Looked, NEXT};
use super::matched::Pair;

/// Maximum distance at which a line counts as near the text.
const FAR: usize = 16;
/// Maximum distance from the best score at which another score also counts as likely.
const CLEAR: f64 = 0.25;
/// Bonus for a pair of lines right after another pair.
const NEXT_TO: f64 = 0.3;

/// One edge of a text.
pub(super) struct Edge<'a> {
    /// New lines between the text and the next outside line.
    new: Vec<&'a str>,
    /// Old neighbours of the text.
    around: Vec<&'a str>,
    /// Lost lines among the old neighbours of the text.
    outside: Vec<&'a str>,
    /// Lost lines of the text.
    own: Vec<&'a str>,
    /// Distance from the text, in the old file, of the line after the new lines, if it was near.
    far: Option<usize>,
    /// The line after the new lines.
    beyond: Option<&'a str>,
}

/// Returns the place of a text with these found lines, if both edges are certain.
pub(super) fn place(looked: &Looked<'_>, body: &[Pair]) -> Option<Range<usize>> {
    let mut span = Span {
        at: body[0].at..body[body.len() - 1].at + 1,
        own: body.iter().map(|it| it.line).min()?..body.iter().map(|it| it.line).max()? + 1,
    };
    span.at.start -= span.equal(looked, true);
    span.at.end += span.equal(looked, false);
    let edges = [Edge::new(looked, &span, true), Edge::new(looked, &span, false)];
    // An unmatched line in the span may be an edge of the text if it equals a lost outer line.
    let inner = span.at.clone().filter(|at| looked.matched().is_free(*at));
    let is_lost = |at: usize| {
        let line = &*looked.file.lines[at];
        is_telling(line) && edges.iter().any(|edge| edge.own.contains(&line))
    };
    if inner.into_iter().any(is_lost) {
        return None;
    }
    let inner = [edges[0].inner()?, edges[1].inner()?];
    let at = span.at.start - inner[0]..span.at.end + inner[1];
    // Brackets after new lines may belong to other lines.
    let is_told = edges[0].is_told(inner[0]) && edges[1].is_told(inner[1]);
    if !is_told && !looked.is_balanced(&at) {
        return None;
    }
    // If the text was moved, its last bracket may be elsewhere, and the new lines may not belong to
    // it.
    let is_cut = |(edge, inner): (&Edge<'_>, usize)| {
        edge.own.last().is_some_and(|line| !is_telling(line)) && (edge.far.is_none() || inner > 0)
    };
    if edges.iter().zip(inner).any(is_cut) && !looked.is_balanced(&at) {
        return None;
    }
    let lost = looked.lost(&span.at);
    let moved = [edges[0].reordered(&lost), edges[1].reordered(&lost)];
    let at = at.start.min(span.at.start - moved[0])..at.end.max(span.at.end + moved[1]);
    let is_certain = moved.contains(&0) && !doubts::has_any(looked, &at, &span, body);
    is_certain.then_some(at)
}

impl Span {
    /// Extends `own` by the lost lines that equal the lines next to the span, and returns their
    /// number. The file looks the same whether these are the lost lines or copies of them.
    fn equal(&mut self, looked: &Looked<'_>, is_start: bool) -> usize {
        let own = lost(looked, &self.own, is_start);
        let file = looked.beside(&self.at, is_start, own.len());
        let next = own.iter().zip(&file).take_while(|(own, line)| own == line).count();
        let (own, file) = (&own[next..], &file[next..]);
        let outermost = (1..=own.len().min(file.len())).rev();
        let outermost = outermost.into_iter().find(|n| file[..*n] == own[own.len() - n..]);
        let found = next + outermost.unwrap_or(0);
        let is_missing = |line: &&str| looked.is_missing(line, &self.at);
        if !looked.beside(&self.at, is_start, found).iter().all(is_missing) {
            return 0;
        }
        let is_all = outermost.is_some();
        match is_start {
            true => self.own.start -= if is_all { self.own.start } else { next },
            false => self.own.end = if is_all { looked.item.len() } else { self.own.end + next },
        }
        found
    }
}

/// Returns the lines of the text beyond the found lines, on one side, outwards.
fn lost<'a>(looked: &Looked<'a>, own: &Range<usize>, is_start: bool) -> Vec<&'a str> {
    let lines = &looked.item.lines;
    match is_start {
        true => lines[..own.start].iter().rev().map(|line| &**line).collect(),
        false => lines[own.end..].iter().map(|line| &**line).collect(),
    }
}

impl<'a> Edge<'a> {
    fn new(looked: &Looked<'a>, span: &Span, is_start: bool) -> Self {
        let places = looked.outwards(&span.at, is_start);
        let new = places.iter().take(NEXT).take_while(|at| !looked.matched().is_foreign(**at));
        let new = new.count();
        let far = match places.get(new) {
            Some(at) => looked.matched().distance(*at, is_start).filter(|far| *far <= FAR),
            None => looked.end_distance(is_start),
        };
        // If the text was moved, its old neighbours are elsewhere.
        let is_near = |lost: usize| new >= NEXT || far.is_some_and(|far| lost < far);
        let around = looked.neighbours(is_start);
        let is_gone = |lost: &usize| is_near(*lost) && looked.matched().is_gone(*lost, is_start);
        let gone = (1..=around.len()).filter(is_gone);
        let file = looked.beside(&span.at, is_start, new + 1);
        Self {
            beyond: file.get(new).copied(),
            new: file[..new].to_vec(),
            outside: gone.map(|far| around[far - 1]).collect(),
            around,
            own: lost(looked, &span.own, is_start),
            far: far.filter(|_| new < NEXT),
        }
    }

    /// Returns the number of new lines that belong to the text, if this number is certain.
    fn inner(&self) -> Option<usize> {
        let (length, own) = (self.new.len(), self.own.len());
        if own == 0 {
            return Some(0);
        }
        let is_closed = self.is_closed();
        if is_closed && length <= own {
            let is_outer = |line: &&str| {
                let outer = likeness_to(line, &self.around);
                outer >= LOST && outer > likeness_to(line, &self.own)
            };
            return (!self.new.iter().any(is_outer)).then_some(length);
        }
        let scores: Vec<f64> = (0..=length).map(|at| self.score(at)).collect();
        let best = scores.iter().copied().fold(0.0, f64::max);
        let mut likely = (0..=length).filter(|at| scores[*at] >= best - CLEAR);
        let least = likely.next()?;
        let most = likely.next_back().unwrap_or(least);
        // If the old neighbours are not near, and more new lines than lost ones seem to belong to
        // the text, the outermost of them must equal a lost line.
        let is_same = |at: usize| self.own.contains(&self.new[at - 1]);
        if self.far.is_none() && least > own && !is_same(least) {
            return None;
        }
        // The next line may belong to the text, or may only equal a line that the text has lost.
        let is_lost = |line: &str| self.own.contains(&line) && !self.new[..least].contains(&line);
        if self.far.is_none() && self.beyond.is_some_and(is_lost) {
            return None;
        }
        let is_found = |own: &&str| likeness_to(own, &self.new[..least]) > UNLIKE;
        let is_all = self.own.iter().all(is_found);
        if is_closed {
            return is_all.then_some(least);
        }
        let is_new = |line: &&str| {
            likeness_to(line, &self.own).max(likeness_to(line, &self.outside)) <= UNLIKE
        };
        // All of the new lines may belong to the place to which the text was moved.
        let is_moved = self.far.is_none() && least < length && !is_all;
        (!is_moved && self.new[least..most].iter().all(is_new)).then_some(least)
    }

    /// Returns whether the old neighbour of the text still follows, after new lines if there are
    /// any.
    fn is_closed(&self) -> bool {
        self.far == Some(1)
    }

    /// Returns how well the lost lines explain the new ones, if the first `inner` new lines belong
    /// to the text.
    fn score(&self, inner: usize) -> f64 {
        alignment(&self.own, &self.new[..inner]) + alignment(&self.outside, &self.new[inner..])
    }

    /// Returns whether the edge is clear if `inner` new lines belong to the text. It is clear if
    /// `inner` is 0, if the old neighbour follows, or if the outermost of these lines is telling.
    fn is_told(&self, inner: usize) -> bool {
        inner == 0 || self.is_closed() || is_telling(self.new[inner - 1])
    }

    /// Counts the new lines, beginning with the nearest, that are lost lines of the text in another
    /// order, or edited versions of lost lines.
    fn reordered(&self, lost: &[&str]) -> usize {
        let is_edited = |line: &str| {
            let own = likeness_to(line, lost);
            self.is_closed() && own >= LOST && own > likeness_to(line, &self.outside)
        };
        let is_lost = |line: &&&str| is_telling(line) && (lost.contains(line) || is_edited(line));
        self.new.iter().take_while(is_lost).count()
    }
}

/// Returns how well lines can be paired in order: the sum of the likenesses of the pairs.
fn alignment(old: &[&str], new: &[&str]) -> f64 {
    // For each new line, the best sum whose last pair has this line, and the best sum up to this
    // line.
    let mut row = vec![(0.0_f64, 0.0_f64); new.len() + 1];
    for old in old {
        let mut above = (0.0_f64, 0.0_f64);
        for (at, new) in new.iter().enumerate() {
            let like = likeness(old, new);
            let next = if above.0 > 0.0 { above.0 + NEXT_TO } else { 0.0 };
            let paired = if like > UNLIKE { like.powi(3) + above.1.max(next) } else { 0.0 };
            above = row[at + 1];
            row[at + 1] = (paired, paired.max(row[at + 1].1).max(row[at].1));
        }
    }
    row[new.len()].1
}
