//! Decides where an edited text begins and ends.

use std::ops::Range;

use super::align::{Aligned, Pair};
use super::bare::{Looked, balance, is_telling};

/// Likeness from which a changed line at an edge is taken for the same line.
const SAME_LINE: f64 = 0.8;
/// Number of lines put into a text at one place which need no proof.
const GAP: usize = 2;
/// Number of lines next to an uncertain edge in which the text may go on.
const NEXT: usize = 4;
/// Likeness from which a line outside may be an edited line of the text.
const ALIKE: f64 = 0.6;
/// Distance from a place, beyond the length of the text, in which its lost lines must not be.
const NEARBY: usize = 8;
/// Number of lines that must not be in a place more often than in the text, nor, if they are lost,
/// anywhere.
const REPEATED: usize = 2;

/// One edge of a text, seen from inside: the lines of the text from the edge on, as distances
/// from the beginning or the end of the file.
struct Edge {
    /// Counterparts of the text's lines, the outermost first.
    pairs: Vec<Option<Pair>>,
    /// Line next to the text, outside.
    outside: Option<usize>,
    /// True if the outermost lines are unchanged up to one that tells its place.
    tells: bool,
}

impl Aligned {
    /// Returns the lines of the file that are now the text, if both edges are certain.
    pub(super) fn edges(&self, looked: &Looked<'_>) -> Option<Range<usize>> {
        let around = looked.around;
        let last = looked.file.len();
        let begins = around.begins_file() && around.before.is_empty();
        let ends = around.ends_file() && around.after.is_empty();
        // Distances count from one, so that the edge of the file can be the line outside.
        let from_start = |at: usize| at + 1;
        let from_end = |at: usize| last - at;
        let map = |pairs: &mut dyn Iterator<Item = &Option<Pair>>, far: &dyn Fn(usize) -> usize| {
            let far = |pair: Pair| Pair { at: far(pair.at), ..pair };
            pairs.map(|pair| pair.map(far)).collect()
        };
        let start = Edge {
            pairs: map(&mut self.pairs.iter(), &from_start),
            outside: self.before.map(from_start).or(begins.then_some(0)),
            tells: tells(&mut looked.item.lines.iter().zip(&self.pairs)),
        };
        let end = Edge {
            pairs: map(&mut self.pairs.iter().rev(), &from_end),
            outside: self.after.map(from_end).or(ends.then_some(0)),
            tells: tells(&mut looked.item.lines.iter().zip(&self.pairs).rev()),
        };
        let (first, past) = (start.place()?, end.place()?);
        let found = first.checked_sub(1)?..last + 1 - past;
        let is_firm = |edge: &Edge, at: usize| {
            edge.tells || edge.outside.is_some_and(|outside| outside + 1 == at)
        };
        let is_firm = is_firm(&start, first) && is_firm(&end, past);
        let is_like = !found.is_empty()
            && found.len() <= looked.item.len() + looked.item.len() / 2 + 3
            && self.is_together(looked, start.is_next(), end.is_next())
            && (is_firm || keeps_balance(looked, &found))
            && self.is_whole(looked, &found)
            && self.is_alone(looked, &found, start.is_next(), end.is_next());
        is_like.then_some(found)
    }

    /// Returns whether no lost line of the text, and no other version of an edge that is not
    /// certain, stands next to a place.
    fn is_alone(
        &self,
        looked: &Looked<'_>,
        found: &Range<usize>,
        begins: bool,
        ends: bool,
    ) -> bool {
        let (item, file) = (looked.item, looked.file);
        let lines = item.lines.iter().zip(&self.pairs);
        let mut lost: Vec<&String> =
            lines.filter(|(_, pair)| pair.is_none()).map(|(line, _)| line).collect();
        let is_like = |line: &String, other: &String| {
            line == other || (is_telling(line) && strsim::sorensen_dice(line, other) > ALIKE)
        };
        let near = |begin: usize, end: usize| &file.lines[begin..end.min(file.len())];
        let is_outside = |lost: &[&String], outside: &[String]| {
            outside.iter().any(|line| lost.iter().any(|lost| is_like(lost, line)))
        };
        if !begins {
            lost.extend(item.lines.first());
        }
        if !ends {
            lost.extend(item.lines.last());
        }
        let above = if begins { 0 } else { NEXT.min(found.start) };
        let below = if ends { 0 } else { NEXT };
        !is_outside(&lost, near(found.start - above, found.start))
            && !is_outside(&lost, near(found.end, found.end + below))
    }

    /// Returns whether on both sides of all that was put into the text is a line that tells its
    /// place, or an edge that is certain.
    fn is_together(&self, looked: &Looked<'_>, begins: bool, ends: bool) -> bool {
        let lines = looked.item.lines.iter().zip(&self.pairs);
        let known: Vec<(usize, usize, bool)> = lines
            .enumerate()
            .filter_map(|(line, (text, pair))| {
                let Pair { at, like } = (*pair)?;
                Some((line, at, like >= 1.0 && is_telling(text)))
            })
            .collect();
        let has_telling = |part: &[(usize, usize, bool)]| part.iter().any(|(.., tells)| *tells);
        (1..known.len()).all(|next| {
            let ((line, at, _), (next_line, next_at, _)) = (known[next - 1], known[next]);
            let is_wide = next_at.abs_diff(at) > next_line - line + GAP;
            !is_wide
                || ((begins || has_telling(&known[..next]))
                    && (ends || has_telling(&known[next..])))
        })
    }

    /// Returns whether the lost lines of the text are not near a place, and no line of it is there
    /// more often than it was.
    pub(super) fn is_whole(&self, looked: &Looked<'_>, found: &Range<usize>) -> bool {
        let (item, file) = (looked.item, looked.file);
        let reach = item.len() + NEARBY;
        let above = found.start.saturating_sub(reach)..found.start;
        let below = found.end..(found.end + reach).min(file.len());
        let times = |range: Range<usize>, line: &String| {
            file.lines[range].iter().filter(|other| *other == line).count()
        };
        let was = |line: &String| item.lines.iter().filter(|other| *other == line).count();
        let telling = || item.lines.iter().zip(&self.pairs).filter(|(line, _)| is_telling(line));
        let lost = telling().filter(|(_, pair)| pair.is_none());
        let lost: Vec<&String> = lost.map(|(line, _)| line).collect();
        let is_near = |line: &&&String| times(above.clone(), line) + times(below.clone(), line) > 0;
        let strays = lost.iter().filter(|line| times(0..file.len(), line) > 0);
        let repeated = telling().filter(|(line, _)| times(found.clone(), line) > was(line));
        !lost.iter().any(|line| is_near(&line))
            && strays.count() < REPEATED
            && repeated.count() < REPEATED
    }
}

/// Returns whether the first lines are unchanged and together up to one that tells its place.
fn tells(lines: &mut dyn Iterator<Item = (&String, &Option<Pair>)>) -> bool {
    let mut previous: Option<usize> = None;
    for (line, pair) in lines {
        let Some(Pair { at, like }) = pair else { return false };
        // The outermost may have changed a little.
        if *like < if previous.is_none() { SAME_LINE } else { 1.0 } {
            return false;
        }
        if previous.is_some_and(|previous| previous.abs_diff(*at) != 1) {
            return false;
        }
        if is_telling(line) && *like >= 1.0 {
            return true;
        }
        previous = Some(*at);
    }
    false
}

impl Edge {
    /// Returns whether the outermost line is next to the one that was next to it.
    fn is_next(&self) -> bool {
        let outermost = self.pairs.first().copied().flatten();
        self.outside.zip(outermost).is_some_and(|(outside, pair)| outside + 1 == pair.at)
    }

    /// Returns the place of the edge, as a distance.
    fn place(&self) -> Option<usize> {
        let outermost = self.pairs.first().copied().flatten();
        match (outermost, self.outside) {
            (Some(pair), Some(outside)) if outside < pair.at => {
                (self.is_next() || self.tells).then_some(pair.at)
            }
            (Some(_), Some(_)) => None,
            (Some(pair), None) => self.tells.then_some(pair.at),
            (None, Some(outside)) => {
                let first = self.pairs.iter().flatten().next()?.at;
                (first == outside + 1).then_some(first)
            }
            (None, None) => None,
        }
    }
}

/// Returns whether a place closes the brackets that it opens, if the text did.
pub(super) fn keeps_balance(looked: &Looked<'_>, at: &Range<usize>) -> bool {
    balance(&looked.item.lines) != [0; 3] || balance(&looked.file.lines[at.clone()]) == [0; 3]
}
