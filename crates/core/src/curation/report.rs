//! The report of a window: the outcome of each part with its reason, the costs of what was offered
//! and of what is shown, and how much of the previous window is unchanged.

use std::sync::Arc;

use serde::Serialize;

use super::section::Section;
use super::strategy::{Fate, Score};
use crate::ids::MessageId;
use crate::session::message::{Phase, Role};
pub use crate::wording::SentCount;

/// The report of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Strategy that chose from the messages.
    pub strategy: &'static str,
    /// Phase for which the sections were chosen, if one was given.
    pub phase: Option<Phase>,
    /// Maximum cost of the window, in tokens.
    pub max_tokens: u64,
    /// Cost of everything that was offered to the window, in tokens.
    pub tokens_before: u64,
    /// Cost of the window, in tokens.
    pub tokens_after: u64,
    /// True if the counts are the model's own rather than estimates.
    pub exact: bool,
    /// How many of the messages are in the window.
    pub messages: SentCount,
    /// Costs of each section, in the order of the window. Sections for which nothing was offered
    /// are not listed.
    pub sections: Vec<SectionTokens>,
    /// Outcome of each part, in the order of the window.
    pub entries: Vec<Entry>,
    /// Sections that the phase requires and the window lacks.
    pub missing: Vec<Section>,
    /// Comparison with the previous window, if there was one.
    pub stable: Option<Stable>,
}

/// The costs of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SectionTokens {
    /// The section.
    pub section: Section,
    /// Cost of everything that was offered in this section, in tokens.
    pub before: u64,
    /// Cost of the section's texts that are in the window, in tokens.
    pub after: u64,
}

/// The outcome of a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Section of the part.
    pub section: Section,
    /// The part itself.
    pub what: ReportPart,
    /// Outcome of the part.
    pub fate: Fate,
    /// Reason for the outcome.
    pub reason: &'static str,
    /// Score, if the strategy gives scores.
    pub score: Option<Score>,
    /// Cost of the whole part, in tokens; 0 for a note that replaces messages, and for a unit of
    /// code whose text was not needed.
    pub before: u64,
    /// Cost in the window, in tokens. For messages, lines of them that a note has count too; for a
    /// note, they do not.
    pub after: u64,
}

/// A part of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportPart {
    /// The text of a section.
    Text,
    /// A unit of code, by name.
    CodeUnit(String),
    /// Messages that belong together, by number.
    Messages(Vec<u64>),
    /// A note that replaces messages.
    Note,
}

/// The common beginning of two windows. Bytes are counted over the contents of the parts, one part
/// after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stable {
    /// Number of bytes in the common beginning.
    pub bytes: u64,
    /// Cost of the leading parts that are entirely equal, in tokens.
    pub tokens: u64,
    /// Offset of the first byte that differs, from 0; none if the windows are equal.
    pub first_difference: Option<u64>,
    /// Section in which the new window differs; none if the windows are equal, or if the new
    /// window only ends earlier.
    pub section: Option<Section>,
}

/// Neighbouring units of messages that have the same outcome for the same reason. A part that is
/// not a unit of messages stands alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Section of the units.
    pub section: Section,
    /// Name of the units: a range such as `msg-3…msg-980`, or the text of [`ReportPart::label`].
    pub label: String,
    /// Outcome of the units.
    pub fate: Fate,
    /// Reason for the outcome.
    pub reason: &'static str,
    /// Number of units.
    pub units: u64,
    /// Lowest and highest score; `None` if the units have no scores.
    pub scores: Option<(f64, f64)>,
    /// Cost of the whole units, in tokens.
    pub before: u64,
    /// Cost in the window, in tokens.
    pub after: u64,
}

/// A record of a window, with which the next window is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint {
    pub(super) prints: Vec<Print>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) section: Section,
    pub(super) role: Role,
    /// Number of the message. The message's calls are not compared, since they never change.
    pub(super) message: Option<u64>,
    pub(super) content: Arc<str>,
    pub(super) tokens: u64,
}

impl ReportPart {
    /// Returns a readable name: `msg-3`, `msg-3…msg-5`, `note`, or the name of the unit of code or
    /// of the section.
    pub fn label(&self, section: Section) -> String {
        match self {
            Self::Text => section.name().to_owned(),
            Self::CodeUnit(name) => name.clone(),
            Self::Note => "note".to_owned(),
            Self::Messages(numbers) => {
                let first = numbers.first().copied().unwrap_or_default();
                span(first, numbers.last().copied().unwrap_or(first))
            }
        }
    }
}

impl Report {
    /// Returns the entries. Joins neighbouring units of messages that have the same outcome for the
    /// same reason, so that the report of a long history stays readable.
    pub fn condensed(&self) -> Vec<Run> {
        let alike = |a: &Entry, b: &Entry| {
            let messages = |entry: &Entry| matches!(entry.what, ReportPart::Messages(_));
            let reasons = (a.fate, a.reason) == (b.fate, b.reason);
            a.section == b.section && reasons && messages(a) && messages(b)
        };
        self.entries.chunk_by(alike).map(Run::of).collect()
    }
}

impl Run {
    fn of(entries: &[Entry]) -> Self {
        let first = &entries[0];
        let numbers = || {
            entries.iter().flat_map(|entry| match &entry.what {
                ReportPart::Messages(numbers) => numbers.iter(),
                _ => [].iter(),
            })
        };
        let label = match (numbers().min(), numbers().max()) {
            (Some(least), Some(most)) => span(*least, *most),
            _ => first.what.label(first.section),
        };
        let totals = || entries.iter().filter_map(|entry| Some(entry.score.as_ref()?.total));
        let lowest = totals().min_by(f64::total_cmp);
        Self {
            section: first.section,
            label,
            fate: first.fate,
            reason: first.reason,
            units: entries.len() as u64,
            scores: lowest.zip(totals().max_by(f64::total_cmp)),
            before: entries.iter().map(|entry| entry.before).sum(),
            after: entries.iter().map(|entry| entry.after).sum(),
        }
    }
}

impl Fingerprint {
    /// Compares the next window with this one.
    pub(super) fn compared_with(&self, next: &Self) -> Stable {
        let mut stable = Stable { first_difference: None, section: None, bytes: 0, tokens: 0 };
        for (old, new) in self.prints.iter().zip(&next.prints) {
            let common = if old.role == new.role { common(&old.content, &new.content) } else { 0 };
            stable.bytes += common as u64;
            let whole = common == old.content.len() && common == new.content.len();
            if !whole || old.role != new.role || old.message != new.message {
                return Stable {
                    first_difference: Some(stable.bytes),
                    section: Some(new.section),
                    ..stable
                };
            }
            stable.tokens += new.tokens;
        }
        let same = self.prints.len() == next.prints.len();
        let section = next.prints.get(self.prints.len()).map(|added| added.section);
        Stable { first_difference: (!same).then_some(stable.bytes), section, ..stable }
    }
}

/// Returns the number of bytes that two texts have in common at their beginnings. Checks for equal
/// texts first, since most pairs are equal.
fn common(old: &Arc<str>, new: &Arc<str>) -> usize {
    if Arc::ptr_eq(old, new) || old == new {
        return old.len();
    }
    old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count()
}

fn span(first: u64, last: u64) -> String {
    let (first, last) = (MessageId(first), MessageId(last));
    if first == last { first.to_string() } else { format!("{first}…{last}") }
}

#[cfg(test)]
mod tests;
