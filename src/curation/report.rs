//! The account of a window: what became of each part and why, what it cost before and after, and
//! how much of the window before it still stands.

use std::sync::Arc;

use super::section::Section;
use super::strategy::{Fate, Score};
use crate::session::message::{Phase, Role};

/// The account of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The strategy that chose from the messages.
    pub strategy: &'static str,
    /// The phase for which the sections were chosen.
    pub phase: Option<Phase>,
    /// How many tokens the window was allowed.
    pub max_tokens: u64,
    /// What everything that was offered costs.
    pub tokens_before: u64,
    /// What the window costs.
    pub tokens_after: u64,
    /// Whether the counts are those of the model itself, rather than estimates.
    pub exact: bool,
    /// What was offered and taken of each section, in the order of the window; those of which
    /// nothing was offered are not listed.
    pub sections: Vec<SectionTokens>,
    /// What became of each part, in the order of the window.
    pub entries: Vec<Entry>,
    /// The sections that the phase requires and the window does not have.
    pub missing: Vec<Section>,
    /// What the window has in common with the one before it, if there was one.
    pub stable: Option<Stable>,
}

/// What a section costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionTokens {
    /// The section.
    pub section: Section,
    /// What all that was offered of it costs.
    pub before: u64,
    /// What is in the window of it costs.
    pub after: u64,
}

/// What became of a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The section that it belongs to.
    pub section: Section,
    /// What it is.
    pub what: What,
    /// What became of it.
    pub fate: Fate,
    /// Why.
    pub reason: &'static str,
    /// Its score, if the strategy scores.
    pub score: Option<Score>,
    /// What it costs whole; 0 of what is in no log.
    pub before: u64,
    /// What it costs in the window; 0 of what is left out.
    pub after: u64,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The text of a section.
    Text,
    /// A unit of the work, by its name.
    CodeUnit(String),
    /// Messages that belong together, by their numbers.
    Messages(Vec<u64>),
    /// A note in place of messages.
    Note,
}

/// What two windows have in common. Bytes are those of the parts' contents, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stable {
    /// The first byte that differs, counted from 0, which is how many are in common; `None` when
    /// the windows are the same.
    pub first_difference: Option<u64>,
    /// The section in which the new window differs; `None` as well when it only ends earlier.
    pub section: Option<Section>,
    /// How many bytes are in common.
    pub bytes: u64,
    /// What the parts cost that are in common as a whole.
    pub tokens: u64,
}

/// Neighbouring units with the same fate for the same reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The section that they belong to.
    pub section: Section,
    /// What they are: `msg-3…msg-980`, or as [`What::label`] has it.
    pub label: String,
    /// What became of them.
    pub fate: Fate,
    /// Why.
    pub reason: &'static str,
    /// How many units they are.
    pub units: u64,
    /// The lowest and the highest of their scores.
    pub scores: Option<(f64, f64)>,
    /// What they cost whole.
    pub before: u64,
    /// What they cost in the window.
    pub after: u64,
}

/// What of a window decides how much of the next one is the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint {
    pub(super) prints: Vec<Print>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) section: Section,
    pub(super) role: Role,
    /// The message's calls never change, so its number stands for them.
    pub(super) message: Option<u64>,
    pub(super) content: Arc<str>,
    pub(super) tokens: u64,
}

impl What {
    /// How a person reads it: `msg-3`, `msg-3…msg-5`, the name of a unit of the work or of the section.
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
    /// The entries with runs of neighbours told in one line, as a long history needs it.
    pub fn condensed(&self) -> Vec<Run> {
        let alike = |a: &Entry, b: &Entry| {
            let messages = |entry: &Entry| matches!(entry.what, What::Messages(_));
            let reasons = (a.fate, a.reason) == (b.fate, b.reason);
            a.section == b.section && reasons && messages(a) && messages(b)
        };
        self.entries.chunk_by(alike).filter_map(Run::of).collect()
    }
}

impl Run {
    fn of(entries: &[Entry]) -> Option<Self> {
        let first = entries.first()?;
        let numbers = || entries.iter().filter_map(|entry| entry.what.numbers()).flatten();
        let label = match (numbers().min(), numbers().max()) {
            (Some(least), Some(most)) => span(*least, *most),
            _ => first.what.label(first.section),
        };
        let totals = || entries.iter().filter_map(|entry| Some(entry.score.as_ref()?.total));
        let lowest = totals().min_by(f64::total_cmp);
        Some(Self {
            section: first.section,
            label,
            fate: first.fate,
            reason: first.reason,
            units: entries.len() as u64,
            scores: lowest.zip(totals().max_by(f64::total_cmp)),
            before: entries.iter().map(|entry| entry.before).sum(),
            after: entries.iter().map(|entry| entry.after).sum(),
        })
    }
}

impl What {
    fn numbers(&self) -> Option<&[u64]> {
        match self {
            Self::Messages(numbers) => Some(numbers),
            _ => None,
        }
    }
}

impl Fingerprint {
    /// What `next` has in common with it.
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

/// How many bytes two texts have in common; most are the very same text.
fn common(old: &Arc<str>, new: &Arc<str>) -> usize {
    if Arc::ptr_eq(old, new) || old == new {
        return old.len();
    }
    old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count()
}

fn span(first: u64, last: u64) -> String {
    if first == last { format!("msg-{first}") } else { format!("msg-{first}…msg-{last}") }
}

#[cfg(test)]
mod tests;
