//! The files of a state folder: their names, the high-water marks, and the copies that are set
//! aside.
//!
//! This module knows nothing of the stores that use these files.

pub(in crate::store) mod aside;
pub(in crate::store) mod files;
pub(in crate::store) mod marks;

pub use self::files::{Files, TRUST_FILE};

/// A problem found in a state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Set when acknowledged data is missing.
    pub lost: bool,
    /// Description of the problem and of the repair.
    pub text: String,
}

impl Finding {
    pub(in crate::store) fn repaired(text: impl Into<String>) -> Self {
        Self { lost: false, text: text.into() }
    }

    pub(in crate::store) fn lost(text: impl Into<String>) -> Self {
        Self { lost: true, text: text.into() }
    }
}
