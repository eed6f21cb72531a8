//! Progress of turning messages into memories.

use crate::store::memory::ToArchive;

/// Progress of turning waiting messages into memories.
#[derive(Default)]
pub(super) struct Archiving {
    /// True if messages may be waiting.
    pub(super) is_due: bool,
    /// True if the last step failed. The engine's loop then runs no more steps until a request has
    /// run one or has made more messages wait.
    pub(super) is_stalled: bool,
    /// The messages that have waited longest, if they have been read from the store.
    pub(super) oldest: Option<ToArchive>,
}

impl Archiving {
    /// Makes the next step read from the store again, after requests were undone.
    pub(super) fn forget(&mut self) {
        *self = Self { is_due: true, is_stalled: self.is_stalled, oldest: None };
    }
}
