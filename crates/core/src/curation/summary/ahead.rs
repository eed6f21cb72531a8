//! Describes a summary ahead of time, since asking a model takes long.

use std::sync::Arc;

use super::{Extractive, Summarizer, SummaryError, SummarySource, SummaryText, summarize};
use crate::session::message::Message;
use crate::tokens::Measure;

/// The material for a summary that is expected; see [`SummarySource`].
pub struct Ahead {
    /// The earlier summary.
    pub prior: Option<SummaryText>,
    /// Messages to fold, in the order of the log.
    pub messages: Vec<Arc<Message>>,
    /// Number of turns that the messages belong to.
    pub turns: u64,
    /// Measure of costs.
    pub measure: Measure,
    /// Maximum size of the user's words, in tokens.
    pub said_tokens: u64,
}

/// A summarizer with a model's description of the source that was expected. For any other source,
/// it works like [`Extractive`](super::Extractive).
#[derive(Default)]
pub struct Prepared(Option<(Ahead, String)>);

impl Ahead {
    /// Adds a model's description.
    pub fn described(self, description: String) -> Prepared {
        Prepared(Some((self, description)))
    }

    /// Makes the expected summary, without a description.
    ///
    /// # Errors
    /// The errors of [`summarize`].
    pub fn summary(&self) -> Result<SummaryText, SummaryError> {
        let messages: Vec<&Message> = self.messages.iter().map(|message| &**message).collect();
        let source = SummarySource {
            prior: self.prior.as_ref(),
            messages: &messages,
            turns: self.turns,
            measure: &self.measure,
            said_tokens: self.said_tokens,
        };
        summarize(&source, &Extractive)
    }

    /// Returns whether the source is the expected one.
    fn is_of(&self, source: &SummarySource<'_>) -> bool {
        let same = |(held, message): (&Arc<Message>, &&Message)| std::ptr::eq(&**held, *message);
        self.prior.as_ref() == source.prior
            && self.messages.len() == source.messages.len()
            && self.messages.iter().zip(source.messages).all(same)
    }
}

impl Prepared {
    /// Returns the description of the source; `None` if this is not the one that was expected.
    pub fn description(&self, source: &SummarySource<'_>) -> Option<&str> {
        let (ahead, description) = self.0.as_ref()?;
        ahead.is_of(source).then_some(&**description)
    }
}

impl Summarizer for Prepared {
    fn summarize(&self, source: &SummarySource<'_>) -> Result<String, SummaryError> {
        Ok(self.description(source).unwrap_or_default().to_owned())
    }
}
