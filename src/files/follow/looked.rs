//! A text that is looked for in a file, with all that is known of both.

use std::cell::OnceCell;
use std::ops::Range;

use super::anchor::Anchor;
use super::bare::Bare;
use super::known::Known;

/// A text and the file in which it is looked for.
pub(super) struct Looked<'a> {
    /// The text.
    pub(super) item: &'a Bare,
    /// The file.
    pub(super) file: &'a Bare,
    /// The lines that were around the text.
    pub(super) around: &'a Anchor,
    /// Name of the thing that the text defines.
    pub(super) symbol: Option<&'a str>,
    /// The lines that were in the file, once somebody asked.
    pub(super) known: OnceCell<Known<'a>>,
}

impl<'a> Looked<'a> {
    /// Returns the lines of the file, compared with those that it had.
    pub(super) fn known(&self) -> &Known<'a> {
        self.known.get_or_init(|| Known::new(&self.around.known, self.item, self.file))
    }

    /// Returns the places of the whole text.
    pub(super) fn copies(&self) -> Vec<Range<usize>> {
        self.file.copies(self.item)
    }

    /// Returns the only place of the text with its lines broken differently.
    pub(super) fn joined(&self) -> Option<Range<usize>> {
        self.file.rewrapped(self.item)
    }

    /// Returns how many lines before and after a place are those that were around the text. The
    /// beginning and the end of the file count for those that it never had.
    pub(super) fn support(&self, at: &Range<usize>) -> (usize, usize) {
        let before = self.file.lines[..at.start].iter().rev();
        let after = self.file.lines[at.end..].iter();
        let count = |kept: Vec<&String>, lines: &mut dyn Iterator<Item = &String>, is_end: bool| {
            let mut same = 0;
            for kept in &kept {
                match lines.next() {
                    Some(line) if Anchor::is_line(kept, line) => same += 1,
                    _ => return same,
                }
            }
            let ends = is_end && lines.next().is_none();
            if ends { 3 } else { same }
        };
        let Anchor { before: kept_before, after: kept_after, .. } = self.around;
        (
            count(kept_before.iter().rev().collect(), &mut { before }, self.around.begins_file()),
            count(kept_after.iter().collect(), &mut { after }, self.around.ends_file()),
        )
    }
}
