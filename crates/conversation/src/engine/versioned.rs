//! The parts of the state that have versions, and the data that can change without a new version.

use std::collections::HashMap;
use std::fmt;

/// A part of the state that has a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versioned {
    /// The manager with this name.
    Manager(String),
    /// The session with this number.
    Session(u64),
}

/// The name of a part of the state that has a version, for an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionedName {
    /// The manager with this name.
    Manager(String),
    /// The session with this name, and its number; `None` if there is no such session.
    Session(String, Option<u64>),
}

/// Data in a result that can change without a new version of the manager or session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// The result has no such data.
    Nothing,
    /// Files of live items.
    Files,
    /// Token counts that providers reported, and windows that were built.
    Windows,
    /// Token counts that providers reported, the items of the session's managers, and the files of
    /// live items.
    Window,
}

/// The last changes to data without a version, each as a number from the counter of versions.
pub(super) struct Moments {
    pub(super) began: u64,
    pub(super) models: u64,
    /// Last change to the records of windows, by session.
    pub(super) windows: HashMap<u64, u64>,
}

impl Moments {
    /// Creates the moments for a server that starts: all data count as changed at number `began`.
    pub(super) fn since(began: u64) -> Self {
        Self { began, models: began, windows: HashMap::new() }
    }
}

impl fmt::Display for VersionedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manager(name) => write!(f, "the manager {name:?}"),
            Self::Session(name, _) => write!(f, "the session {name:?}"),
        }
    }
}
