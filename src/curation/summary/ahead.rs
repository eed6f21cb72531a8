//! Summaries whose ledger, the slow part, is computed ahead of time, for example on another thread.

use std::sync::Arc;

use super::{Extractive, Source, Summarizer, Summary, SummaryError};
use crate::curation::ledger::Ledger;
use crate::session::message::Message;
use crate::tokens::Measure;

/// The material for a summary that is expected; see [`Source`].
pub struct Ahead {
    /// The earlier summary.
    pub prior: Option<Summary>,
    /// Messages to fold, in the order of the log.
    pub messages: Vec<Arc<Message>>,
    /// Measure of costs.
    pub measure: Measure,
    /// Maximum size of the ledger, in tokens.
    pub ledger_tokens: u64,
}

/// A summarizer like [`Extractive`] that already has the ledger if the source is the expected one.
#[derive(Default)]
pub struct Prepared(Option<(Ahead, Ledger)>);

impl Ahead {
    /// Makes the ledger.
    pub fn prepare(self) -> Prepared {
        let messages: Vec<&Message> = self.messages.iter().map(|message| &**message).collect();
        let ledger = Source {
            prior: self.prior.as_ref(),
            messages: &messages,
            turns: 0,
            measure: &self.measure,
            ledger_tokens: self.ledger_tokens,
        }
        .ledger();
        Prepared(Some((self, ledger)))
    }

    /// Returns whether the source is the expected one, so that it has the same ledger.
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
        self.0.as_ref().is_some_and(|(ahead, _)| ahead.is_of(source))
    }
}

impl Summarizer for Prepared {
    fn summarize(&self, source: &Source<'_>) -> Result<String, SummaryError> {
        Extractive.summarize(source)
    }

    fn ledger(&self, source: &Source<'_>) -> Ledger {
        match &self.0 {
            Some((_, ledger)) if self.fits(source) => ledger.clone(),
            _ => source.ledger(),
        }
    }
}
