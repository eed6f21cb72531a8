//! The version of a manager whose live items a reading shows.
//!
//! A reading takes the items with their version, and then brings the live ones up to date, which
//! gives the manager a new version. The items that it shows are those of the new version, unless
//! somebody else changed the manager in between.

use std::cell::RefCell;

use crate::engine::VersionStep;

thread_local! {
    /// What the reading on this thread has changed.
    static STEPS: RefCell<Vec<VersionStep>> = const { RefCell::new(Vec::new()) };
}

/// Notes what the reading on this thread has changed.
pub(super) fn note(steps: Vec<VersionStep>) {
    STEPS.with_borrow_mut(|noted| noted.extend(steps));
}

/// Runs a reading of a manager, whose items it took at `version`. Returns its result and the version
/// of the items that it shows.
pub fn after<T>(manager: &str, version: u64, reading: impl FnOnce() -> T) -> (T, u64) {
    STEPS.take();
    let result = reading();
    let own = STEPS.take().into_iter().filter(|step| step.manager == manager);
    (result, own.fold(version, |now, step| if step.before == now { step.after } else { now }))
}
