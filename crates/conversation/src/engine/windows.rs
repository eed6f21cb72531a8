//! Records of the windows that were built last.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::context::render::report::ItemVerdict;
use crate::curation::report::{Fingerprint, Report};

/// Maximum number of window reports in memory, over all sessions.
pub const REPORTS_KEPT: usize = 64;

/// Record of a built window, without its content.
#[derive(Clone)]
#[non_exhaustive]
pub struct Noted {
    /// Number of the window's session.
    pub session: u64,
    /// Time when the window was built, in Unix seconds.
    pub at: i64,
    /// Costs of the window, and the reasons for its content.
    pub report: Arc<Report>,
    /// Outcome for each item that was offered to the window.
    pub items: Vec<ItemVerdict>,
    pub(super) fingerprint: Fingerprint,
}

/// Records of recent windows, newest last.
#[derive(Default)]
pub(super) struct Windows {
    noted: VecDeque<Noted>,
}

impl Windows {
    /// Adds a record, and drops the oldest if there are too many.
    pub(super) fn note(&mut self, noted: Noted) {
        if self.noted.len() == REPORTS_KEPT {
            self.noted.pop_front();
        }
        self.noted.push_back(noted);
    }

    /// Iterates over the records of a session, newest first.
    pub(super) fn of(&self, id: u64) -> impl Iterator<Item = &Noted> {
        self.noted.iter().rev().filter(move |noted| noted.session == id)
    }
}
