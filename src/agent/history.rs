//! Curation of histories that a client keeps itself.

use crate::curation::summary::{Extractive, Source, summarize};
use crate::curation::unit::History;
use crate::engine::{Costs, EngineError, Keep, NewMessage};
use crate::session::message::{Message, Role};

use super::AgentError;

/// Maximum size of the ledger in a summary, as a share of the history's tokens.
const LEDGER_SHARE: f64 = 0.2;

/// A history whose older messages were summarized.
pub(crate) struct SummarizedHistory {
    /// Messages that are kept, oldest first.
    pub kept: Vec<Message>,
    /// Number of kept messages that come before the note: the system prompts.
    pub prompts: usize,
    /// The note that replaces the summarized messages.
    pub note: String,
    /// Cost of the note, in tokens.
    pub tokens: u64,
    /// Number of messages that were summarized.
    pub summarized: u64,
}

/// Returns a client's own history as messages, numbered from 1.
pub(crate) fn messages(new: Vec<NewMessage>) -> Vec<Message> {
    let message = |(number, new): (u64, NewMessage)| {
        let timestamp = new.timestamp.unwrap_or_default();
        new.into_message(number, timestamp)
    };
    (1..).zip(new).map(message).collect()
}

/// Summarizes the older messages of a history.
///
/// # Errors
/// [`EngineError::NotSummarized`] if a summary would not help.
pub(crate) fn summarized(
    messages: Vec<Message>,
    keep: Keep,
    costs: &Costs,
) -> Result<SummarizedHistory, AgentError> {
    let history = History::new(messages.iter().collect(), &costs.measure);
    let folding = keep.folding(&history);
    let folded = folding.messages(&history);
    let source = Source {
        prior: None,
        messages: &folded,
        turns: folding.turns,
        measure: &costs.measure,
        ledger_tokens: (history.tokens() as f64 * LEDGER_SHARE) as u64,
    };
    let note = summarize(&source, &Extractive).map_err(EngineError::NotSummarized)?.render();
    let folded: Vec<u64> = folded.iter().map(|message| message.number).collect();
    let tokens = costs.measure.note(&note);
    let stays = |message: &Message| folded.binary_search(&message.number).is_err();
    let kept: Vec<Message> = messages.into_iter().filter(stays).collect();
    let prompts = kept.iter().take_while(|message| message.role == Role::System).count();
    Ok(SummarizedHistory { kept, prompts, note, tokens, summarized: folded.len() as u64 })
}
