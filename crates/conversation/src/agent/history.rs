//! Curation of histories that a client keeps itself.

use crate::curation::summary::{Extractive, SummarySource, summarize};
use crate::curation::unit::History;
use crate::curation::used::handed_over;
use crate::engine::{Costs, EngineError, Keep, NewMessage};
use crate::session::message::{Message, Role};

use super::AgentError;

/// Maximum size of the user's words in a summary, as a share of the history's tokens.
const SAID_SHARE: f64 = 0.2;

/// A history whose older messages were summarized.
pub struct SummarizedHistory {
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
pub fn messages(new: Vec<NewMessage>) -> Vec<Message> {
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
pub fn summarized(
    messages: Vec<Message>,
    keep: Keep,
    costs: &Costs,
) -> Result<SummarizedHistory, AgentError> {
    let history = History::new(messages.iter().collect(), &costs.measure);
    let folding = keep.folding(&history);
    let folded = folding.messages(&history);
    let source = SummarySource {
        prior: None,
        messages: &folded,
        turns: folding.turns,
        measure: &costs.measure,
        said_tokens: (history.tokens() as f64 * SAID_SHARE) as u64,
    };
    let summary = summarize(&source, &Extractive).map_err(EngineError::NotSummarized)?;
    // Nobody can look into what such a client leaves out, so the note has what the work used, too.
    let handed = handed_over(&folded, source.said_tokens, &costs.measure);
    let note = format!("{}\n\n{handed}", summary.counts.header());
    let is_smaller = costs.measure.note(&note) < source.tokens();
    let note = if is_smaller { note } else { summary.render() };
    let folded: Vec<u64> = folded.iter().map(|message| message.number).collect();
    let tokens = costs.measure.note(&note);
    let stays = |message: &Message| folded.binary_search(&message.number).is_err();
    let kept: Vec<Message> = messages.into_iter().filter(stays).collect();
    let prompts = kept.iter().take_while(|message| message.role == Role::System).count();
    Ok(SummarizedHistory { kept, prompts, note, tokens, summarized: folded.len() as u64 })
}
