//! Progress of turning messages into memories.

use crate::store::memory::ToArchive;

/// Progress of the postponed work.
#[derive(Default)]
pub(super) struct Archiving {
    /// True if there may be work left.
    pub(super) is_due: bool,
    /// True if the last step failed. The loop then leaves the rest to the next search for memories.
    pub(super) is_stalled: bool,
    /// The oldest stored piece of work, if it has been read.
    pub(super) oldest: Option<ToArchive>,
}

impl Archiving {
    pub(super) fn new(is_due: bool) -> Self {
        Self { is_due, ..Self::default() }
    }

    /// Drops the cached work after requests were undone.
    pub(super) fn forget(&mut self) {
        *self = Self { is_due: true, is_stalled: self.is_stalled, oldest: None };
    }
}
