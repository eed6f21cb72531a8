//! What has versions, and what changes without one.

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

/// A part of the state, for an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionedName {
    /// The manager with this name.
    Manager(String),
    /// The session with this name, and its number; `None` if there is no such session.
    Session(String, Option<u64>),
}

/// What a reading shows that changes without its manager or session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Files of live items.
    Files,
    /// Token counts that providers reported.
    Models,
    /// Windows that were built.
    Windows,
    /// Token counts that providers reported, and the items of the session's manager.
    Window,
}

/// Numbers, from the counter of versions, of the last changes of what has no version.
pub(super) struct Moments {
    pub(super) began: u64,
    pub(super) models: u64,
    /// Last change of the record of windows, by session.
    pub(super) windows: HashMap<u64, u64>,
}

impl Moments {
    /// Starts with this number, at which all may have changed.
    pub(super) fn since(began: u64) -> Self {
        Self { began, models: began, windows: HashMap::new() }
    }
}

impl fmt::Display for VersionedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manager(name) => write!(f, "the manager {name:?}"),
            Self::Session(name, Some(_)) => write!(f, "the session {name:?}"),
            Self::Session(name, None) => write!(f, "the session {name:?}, which does not exist,"),
        }
    }
}
