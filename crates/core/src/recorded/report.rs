//! The report of records that were left out or changed.

use serde::{Deserialize, Serialize};

use super::LONGEST_TITLE;

/// Maximum number of entries. Records that would need more are counted together in one further
/// entry.
const MOST_ENTRIES: usize = 64;

// Reasons that several formats have for leaving a record out.
pub(super) const NOTICE: &str = "a notice from the agent itself";
pub(super) const NO_PART: &str = "not part of the conversation";
pub(super) const REASONING: &str = "a model's reasoning is not sent to models again";
pub(super) const UNEXPECTED: &str = "a record in an unexpected form";
pub(super) const UNKNOWN: &str = "an unknown kind of content";
pub(super) const WENT_BACK: &str = "the user went back before it";

/// Records of one kind that were left out, or changed, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct LeftOut {
    /// Kind of the records, often as the recording names it.
    pub kind: String,
    /// Reason why the records were left out, or the way in which they were changed.
    pub reason: String,
    /// Number of the records.
    pub count: u64,
    /// Number of the line with the first of the records, counted from 1.
    pub first_line: u64,
}

/// All records that were left out or changed.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadingReport {
    pub(super) entries: Vec<LeftOut>,
}

impl ReadingReport {
    /// Counts a record that is left out or changed.
    pub(super) fn note(&mut self, kind: &str, mut reason: &str, line: u64) {
        let mut kind = clipped(kind);
        if self.entries.len() >= MOST_ENTRIES && self.find(&kind, reason).is_none() {
            (kind, reason) = ("other".to_owned(), "there are too many kinds to name");
        }
        match self.find(&kind, reason) {
            Some(at) => self.entries[at].count += 1,
            None => {
                let reason = reason.to_owned();
                self.entries.push(LeftOut { kind, reason, count: 1, first_line: line });
            }
        }
    }

    fn find(&self, kind: &str, reason: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.kind == kind && entry.reason == reason)
    }
}

/// Returns a text on one line, cut after [`LONGEST_TITLE`] characters.
pub(super) fn clipped(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 {
            line.push(' ');
        }
        for letter in word.chars() {
            if length >= LONGEST_TITLE {
                line.push('…');
                return line;
            }
            line.push(letter);
            length += 1;
        }
        length += 1;
    }
    line
}
