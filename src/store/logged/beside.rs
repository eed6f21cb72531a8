//! The files of a store that has a log in front of it.

use super::super::folder::marks::{Mark, Marks};
use super::super::log::Log;
use super::super::{Counters, Extent};

/// The files that a [`LoggedStore`](super::LoggedStore) maintains in the state folder.
pub(super) struct Beside {
    pub(super) log: Log,
    pub(super) marks: Marks,
    /// Extent of the inner store after its last commit or checkpoint.
    pub(super) extent: Extent,
}

impl Beside {
    /// Writes the high-water mark, to both files if `in_both`. A failure only causes a warning,
    /// because the commit itself is already stored.
    pub(super) fn note(&mut self, counters: Counters, in_both: bool) {
        let mark = Mark { counters, extent: self.extent, opening: false };
        let noted = if in_both { self.marks.note_in_both(&mark) } else { self.marks.note(&mark) };
        if let Err(error) = noted {
            tracing::warn!(
                "cannot write the state's high-water mark: {error}; the change itself is stored"
            );
        }
    }
}
