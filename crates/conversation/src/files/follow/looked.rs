//! A text and the file that is searched for it, with everything that is known of both.

use std::cell::OnceCell;
use std::ops::Range;

use super::anchor::Anchor;
use super::bare::{Bare, is_telling};
use super::known::NEAR as WINDOW;
use super::likeness::{LOST, likeness};
use super::line_hash::LineHash;
use super::matched::Matched;

/// Number of lines on each side of a place that are compared with the old neighbours of the text.
const NEAR: usize = 3;

/// Number of lines on one side of a place that are searched for lost lines of the text.
pub(super) const NEXT: usize = 12;
/// Maximum number of lines on one side of a place that are examined.
const OUTWARDS: usize = 32;

/// A text and the file that is searched for it.
pub(super) struct Looked<'a> {
    /// The text.
    pub(super) item: &'a Bare,
    /// The file.
    pub(super) file: &'a Bare,
    /// The old neighbours of the text, and hashes of other lines.
    pub(super) around: &'a Anchor,
    /// Name of the thing that the text defines.
    pub(super) symbol: Option<&'a str>,
    /// Pairs of the lines of the old and the new file, computed on first use.
    pub(super) matched: OnceCell<Matched>,
}

impl<'a> Looked<'a> {
    /// Returns the lines of the new file, matched with those of the old one.
    pub(super) fn matched(&self) -> &Matched {
        self.matched.get_or_init(|| Matched::new(self.around, self.item, self.file))
    }

    /// Returns the number of lines on one side of a place that match the old neighbours of the text.
    /// A side that reaches the beginning or the end of the file, as it did before, counts in full.
    pub(super) fn support(&self, at: &Range<usize>, is_start: bool) -> usize {
        let mut kept = self.neighbours(is_start);
        kept.truncate(NEAR);
        let lines = self.beside(at, is_start, NEAR + 1);
        let same = kept.iter().zip(&lines).take_while(|(kept, line)| Anchor::is_line(kept, line));
        let same = same.count();
        let is_end = same == kept.len() && same == lines.len() && self.reaches_end(is_start);
        if is_end { NEAR } else { same }
    }

    /// Returns whether all lines of the file before a place, or all after it, are as they were.
    pub(super) fn is_framed(&self, at: &Range<usize>) -> bool {
        let (above, below) =
            self.around.known.split_at(self.around.above.min(self.around.known.len()));
        let is_as_before = |known: &[LineHash], lines: &mut dyn Iterator<Item = usize>| {
            known.len() < WINDOW && lines.map(|at| self.file.hash(at)).eq(known.iter().copied())
        };
        self.around.is_known()
            && (is_as_before(above, &mut (0..at.start))
                || is_as_before(below, &mut (at.end..self.file.len())))
    }

    /// Returns the indices of the lines on one side of a place, the nearest first.
    pub(super) fn outwards(&self, at: &Range<usize>, is_start: bool) -> Vec<usize> {
        match is_start {
            true => (0..at.start).rev().take(OUTWARDS).collect(),
            false => (at.end..self.file.len()).take(OUTWARDS).collect(),
        }
    }

    /// Returns the old neighbours of the text on one side, the nearest first.
    pub(super) fn neighbours(&self, is_start: bool) -> Vec<&'a str> {
        match is_start {
            true => self.around.before.iter().rev().map(|line| &**line).collect(),
            false => self.around.after.iter().map(|line| &**line).collect(),
        }
    }

    /// Returns whether the old neighbours of the text reached the beginning or the end of the file.
    pub(super) fn reaches_end(&self, is_start: bool) -> bool {
        if is_start { self.around.begins_file } else { self.around.ends_file }
    }

    /// Returns how far the text was from the beginning or the end of the old file, if it was near.
    pub(super) fn end_distance(&self, is_start: bool) -> Option<usize> {
        self.reaches_end(is_start).then(|| self.neighbours(is_start).len() + 1)
    }

    /// Returns whether a place is between the nearest old neighbours of the text.
    pub(super) fn is_between(&self, at: &Range<usize>) -> bool {
        [true, false].into_iter().all(|is_start| match self.outwards(at, is_start).first() {
            Some(at) => self.matched().distance(*at, is_start) == Some(1),
            None => self.end_distance(is_start) == Some(1),
        })
    }

    /// Returns whether one side of a place has the old neighbours of the text, up to a telling one,
    /// or has no lines at all.
    pub(super) fn is_known(&self, at: &Range<usize>, is_start: bool) -> bool {
        let places = self.outwards(at, is_start);
        let is_same =
            |(far, at): &(usize, &usize)| self.matched().distance(**at, is_start) == Some(*far);
        let mut same = (1..).zip(&places).take_while(is_same);
        places.is_empty() || same.any(|(_, at)| is_telling(&self.file.lines[*at]))
    }

    /// Returns whether the lines on one side of a place are certainly the old neighbours of the
    /// text. One line is not enough, since it may have changed places with a line of the text.
    pub(super) fn is_closed(&self, at: &Range<usize>, is_start: bool) -> bool {
        let is_second = |at: &usize| self.matched().distance(*at, is_start) == Some(2);
        self.is_known(at, is_start) && self.outwards(at, is_start).get(1).is_none_or(is_second)
    }

    /// Returns whether a line occurs less often in a place than in the text.
    pub(super) fn is_missing(&self, line: &str, at: &Range<usize>) -> bool {
        let count = |lines: &[String]| lines.iter().filter(|other| *other == line).count();
        count(&self.file.lines[at.clone()]) < count(&self.item.lines)
    }

    /// Returns the lines of the text that a place does not have, even edited.
    pub(super) fn lost(&self, at: &Range<usize>) -> Vec<&'a str> {
        let is_new = |at: &usize| {
            self.matched().is_free(*at) && !self.item.lines.contains(&self.file.lines[*at])
        };
        let mut free: Vec<&str> =
            at.clone().filter(is_new).map(|at| &*self.file.lines[at]).collect();
        // Each new line is an edited version of one line only.
        let mut is_edited = |line: &str| {
            let edited = free.iter().position(|new| likeness(line, new) >= LOST);
            edited.map(|at| free.swap_remove(at)).is_some()
        };
        let lines = self.item.lines.iter().map(|line| &**line);
        lines.filter(|line| self.is_missing(line, at) && !is_edited(line)).collect()
    }

    /// Returns up to `most` lines on one side of a place, the nearest first.
    pub(super) fn beside(&self, at: &Range<usize>, is_start: bool, most: usize) -> Vec<&'a str> {
        let places = self.outwards(at, is_start).into_iter().take(most);
        places.map(|at| &*self.file.lines[at]).collect()
    }

    /// Returns whether a place leaves as many brackets of each kind open as the text did.
    pub(super) fn is_balanced(&self, at: &Range<usize>) -> bool {
        self.file.balance(at.clone()) == self.item.balance(0..self.item.len())
    }
}
