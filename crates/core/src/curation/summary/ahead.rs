//! Makes the ledger of a summary, the slow part, ahead of time, for example on another thread.

use std::sync::Arc;

use super::{Extractive, Source, Summarizer, Summary, SummaryError, summarize};
use crate::curation::ledger::Ledger;
use crate::session::message::Message;
use crate::tokens::Measure;

/// The material for a summary that is expected; see [`Source`].
pub struct Ahead {
    /// The earlier summary.
    pub prior: Option<Summary>,
    /// Messages to fold, in the order of the log.
    pub messages: Vec<Arc<Message>>,
    /// Number of turns that the messages belong to.
    pub turns: u64,
    /// Measure of costs.
    pub measure: Measure,
    /// Maximum size of the ledger, in tokens.
    pub ledger_tokens: u64,
}

/// A summarizer with a ledger made ahead of time, and a description if a model wrote one. Uses both
/// if the source is the expected one, and otherwise works like [`Extractive`](super::Extractive).
#[derive(Default)]
pub struct Prepared(Option<Made>);

/// The prepared parts of a summary.
struct Made {
    ahead: Ahead,
    ledger: Ledger,
    /// The description; empty if no model wrote one.
    description: String,
}

impl Ahead {
    /// Makes the ledger of the expected summary.
    pub fn prepare(self) -> Prepared {
        let ledger = self.with_source(|source| source.ledger());
        Prepared(Some(Made { ahead: self, ledger, description: String::new() }))
    }

    /// Makes the expected summary, without a description.
    ///
    /// # Errors
    /// The errors of [`summarize`].
    pub fn summary(&self) -> Result<Summary, SummaryError> {
        self.with_source(|source| summarize(source, &Extractive))
    }

    fn with_source<T>(&self, of: impl FnOnce(&Source<'_>) -> T) -> T {
        let messages: Vec<&Message> = self.messages.iter().map(|message| &**message).collect();
        of(&Source {
            prior: self.prior.as_ref(),
            messages: &messages,
            turns: self.turns,
            measure: &self.measure,
            ledger_tokens: self.ledger_tokens,
        })
    }

    /// Returns whether the source is the expected one and therefore has the same ledger.
    fn is_of(&self, source: &Source<'_>) -> bool {
        let same = |(held, message): (&Arc<Message>, &&Message)| std::ptr::eq(&**held, *message);
        self.prior.as_ref().map(|prior| &prior.ledger) == source.prior.map(|prior| &prior.ledger)
            && self.ledger_tokens == source.ledger_tokens
            && self.measure.is_like(source.measure)
            && self.messages.len() == source.messages.len()
            && self.messages.iter().zip(source.messages).all(same)
    }
}

impl Prepared {
    /// Returns whether the ledger of the source was made ahead of time.
    pub fn fits(&self, source: &Source<'_>) -> bool {
        self.of(source).is_some()
    }

    /// Returns the expected source and its ledger; `None` if no source is expected or it has no
    /// messages.
    pub fn expected(&self) -> Option<(&Ahead, &Ledger)> {
        let made = self.0.as_ref().filter(|made| !made.ahead.messages.is_empty())?;
        Some((&made.ahead, &made.ledger))
    }

    /// Adds a description of the expected source, written by a model. Does nothing if no source is
    /// expected.
    pub fn described(mut self, description: String) -> Self {
        if let Some(made) = &mut self.0 {
            made.description = description;
        }
        self
    }

    fn of(&self, source: &Source<'_>) -> Option<&Made> {
        self.0.as_ref().filter(|made| made.ahead.is_of(source))
    }
}

impl Summarizer for Prepared {
    fn summarize(&self, source: &Source<'_>) -> Result<String, SummaryError> {
        Ok(self.of(source).map(|made| made.description.clone()).unwrap_or_default())
    }

    fn ledger(&self, source: &Source<'_>) -> Ledger {
        self.of(source).map_or_else(|| source.ledger(), |made| made.ledger.clone())
    }
}
