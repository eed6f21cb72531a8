//! Pruning and summarizing sessions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::memory::SUMMARY;
use super::super::{Costs, Engine, EngineError, Event};
use super::settings::SessionSettings;
use crate::curation::budget::{Irreducible, WindowBudgetTooSmall};
use crate::curation::prune::{HistoryStats, Pruned, prune, stats};
use crate::curation::report::ReportPart;
use crate::curation::section::Section;
use crate::curation::summary::{
    self, Ahead, Folding, Summarizer, SummarySource, folding, folding_messages, summarize,
};
use crate::curation::unit::History;
use crate::session::message::Message;
use crate::session::state::Summary;
use crate::store::StoreError;
use crate::store::memory::{MemoryOrigin, MemoryScope, NewMemory};

/// Maximum size of the user's words in a summary, as a share of the session's token limit.
const SAID_SHARE: f64 = 0.2;
/// Share of the token limit that these words always get, however little room is left.
const LEAST_SAID_SHARE: f64 = 0.05;

/// Part of a session to keep out of its summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// This many of the last messages.
    Messages(usize),
    /// This many of the last turns.
    Turns(usize),
}

/// Result of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarized {
    /// Tokens in view before.
    pub tokens_before: u64,
    /// Tokens in view after.
    pub tokens_after: u64,
    /// Number of messages folded into the summary.
    pub messages: u64,
    /// Number of turns folded into the summary.
    pub turns: u64,
    /// Number of messages still in view.
    pub kept: u64,
    /// Text of the summary.
    pub text: String,
    /// Number of the memory made from the summary; `None` until the memory is stored.
    pub memory: Option<u64>,
}

/// Result of a pruning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PrunedView {
    /// Tokens in view before.
    pub original: u64,
    /// Tokens in view after.
    pub remaining: u64,
    /// Numbers of the pruned messages.
    pub removed: Vec<u64>,
    /// Number of messages still in view.
    pub kept: u64,
    /// Number of pruned messages that become memories.
    pub archived: u64,
}

impl Engine {
    /// Compares the size of a session's view with the limit of the model in `costs`.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn session_stats(&mut self, id: u64, costs: &Costs) -> Result<HistoryStats, EngineError> {
        let (messages, summary) = self.in_view(id)?;
        let summary = summary.map_or(0, |summary| costs.measure.message(summary.tokens));
        let history = History::new(references(&messages), &costs.measure);
        Ok(stats(&history, &costs.model).with(summary))
    }

    /// If a session's view exceeds the target share of the model's limit, prunes the view like
    /// [`prune_session`](Self::prune_session). Otherwise changes nothing.
    ///
    /// # Errors
    /// Same as [`prune_session`](Self::prune_session).
    pub fn auto_manage_session(
        &mut self,
        id: u64,
        max_tokens: Option<u64>,
        costs: &Costs,
    ) -> Result<PrunedView, EngineError> {
        let HistoryStats { needs_pruning, tokens, items, .. } = self.session_stats(id, costs)?;
        if needs_pruning {
            return self.prune_session(id, max_tokens, costs);
        }
        let (original, remaining, kept) = (tokens, tokens, items);
        Ok(PrunedView { original, remaining, kept, removed: Vec::new(), archived: 0 })
    }

    /// Prunes a session's view by importance to `max_tokens`, by default the target share of the
    /// model's limit. Pruned messages become memories if the session's settings say so.
    ///
    /// # Errors
    /// [`EngineError::BudgetTooSmall`].
    pub fn prune_session(
        &mut self,
        id: u64,
        max_tokens: Option<u64>,
        costs: &Costs,
    ) -> Result<PrunedView, EngineError> {
        let (messages, summary) = self.in_view(id)?;
        let summary = summary.map_or(0, |summary| costs.measure.message(summary.tokens));
        let mut history = History::new(references(&messages), &costs.measure);
        let aim = max_tokens.unwrap_or(costs.model.target());
        let room = Some(aim.saturating_sub(summary));
        let mut pruned = prune(&history, room, &costs.model);
        if pruned.is_err() && history.let_go_of_first() {
            pruned = prune(&history, room, &costs.model);
        }
        let pruned = pruned.map_err(|error| with_summary(error, summary, aim))?;
        let archived = self.take_out(id, &messages, &pruned, summary)?;
        Ok(PrunedView {
            original: pruned.stats.original + summary,
            remaining: pruned.stats.remaining + summary,
            kept: pruned.stats.items_kept,
            removed: pruned.removed,
            archived,
        })
    }

    /// Returns the input of the summary that [`summarize_session`](Self::summarize_session) would
    /// make now, so that a model can describe it.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn summary_ahead(
        &mut self,
        id: u64,
        keep: Keep,
        max_tokens: u64,
        costs: &Costs,
    ) -> Result<Ahead, EngineError> {
        let (messages, prior) = self.in_view(id)?;
        ahead(&messages, prior.as_ref(), keep, max_tokens, costs)
    }

    /// Folds older messages into a summary that takes their place. A later summary includes the
    /// earlier one.
    ///
    /// # Errors
    /// [`EngineError::NotSummarized`] if there is nothing to fold, the summary is not smaller than
    /// its input, or the summarizer fails.
    pub fn summarize_session(
        &mut self,
        id: u64,
        keep: Keep,
        max_tokens: u64,
        costs: &Costs,
        summarizer: &dyn Summarizer,
    ) -> Result<Summarized, EngineError> {
        let (messages, prior) = self.in_view(id)?;
        let history = History::new(references(&messages), &costs.measure);
        let folding = keep.folding(&history);
        let source = source_of(prior.as_ref())?;
        let prior_tokens = prior.as_ref().map_or(0, |prior| costs.measure.message(prior.tokens));
        let tokens_before = history.tokens() + prior_tokens;
        let folded = folding.messages(&history);
        let folded_tokens: u64 = folded.iter().map(|m| costs.measure.message(m.tokens)).sum();
        let made = summarize(
            &SummarySource {
                prior: source.as_ref(),
                messages: &folded,
                turns: folding.turns,
                measure: &costs.measure,
                said_tokens: said_tokens(max_tokens, history.tokens() - folded_tokens),
            },
            summarizer,
        )
        .map_err(EngineError::NotSummarized)?;
        let text = made.render();
        let tokens = costs.measure.counter().count(&text);
        let numbers: Vec<u64> = folded.iter().map(|message| message.number).collect();
        let after = history.tokens() - folded_tokens + costs.measure.message(tokens);
        let summarized = Summarized {
            tokens_before,
            tokens_after: after,
            messages: numbers.len() as u64,
            turns: folding.turns,
            kept: messages.len() as u64 - numbers.len() as u64,
            memory: None,
            text,
        };
        let source = serde_json::to_value(&made).map_err(damaged)?;
        self.put_summary(id, &numbers, summarized, tokens, source)
    }

    /// Returns the messages in view, and the summary of earlier ones.
    pub(super) fn in_view(
        &mut self,
        id: u64,
    ) -> Result<(Vec<Arc<Message>>, Option<Summary>), EngineError> {
        let session = self.session(id)?;
        Ok((session.in_view().cloned().collect(), session.state().summary.clone()))
    }

    fn take_out(
        &mut self,
        id: u64,
        messages: &[Arc<Message>],
        pruned: &Pruned,
        summary: u64,
    ) -> Result<u64, EngineError> {
        if pruned.removed.is_empty() {
            return Ok(0);
        }
        self.operate(id, "prune-session", |state| {
            pruned.removed.iter().for_each(|&number| state.pruned.insert(number, number));
        })?;
        let is_removed =
            |message: &&Arc<Message>| pruned.removed.binary_search(&message.number).is_ok();
        let removed: Vec<&Arc<Message>> = messages.iter().filter(is_removed).collect();
        let archive = SessionSettings::parse(&self.row(id)?.settings)?.archive_pruned;
        let archived = if archive { self.archive(id, &removed)? } else { 0 };
        let session = self.session_name(id)?;
        self.events.push(Event::ContextPruned {
            session,
            before: pruned.stats.original + summary,
            after: pruned.stats.remaining + summary,
            removed: removed.into_iter().map(|message| Message::clone(message)).collect(),
        });
        self.session_changed(id, "prune-session")?;
        Ok(archived)
    }

    fn put_summary(
        &mut self,
        id: u64,
        numbers: &[u64],
        summarized: Summarized,
        tokens: u64,
        source: serde_json::Value,
    ) -> Result<Summarized, EngineError> {
        let text = summarized.text.clone();
        let first = numbers.first().copied().unwrap_or_default();
        let last = numbers.last().copied().unwrap_or_default();
        self.operate(id, "summarize-session", |state| {
            let mut covers = state.summary.take().map(|summary| summary.covers).unwrap_or_default();
            numbers.iter().for_each(|&number| covers.insert(number, number));
            let position = state.base;
            state.summary = Some(Summary { text: text.clone(), tokens, covers, position, source });
            state.summaries += 1;
        })?;
        let origin = Some(MemoryOrigin { session: id, first, last });
        let memory = self.remember_summary(id, &text, origin)?;
        if SessionSettings::parse(&self.row(id)?.settings)?.archive_pruned {
            let log = self.session(id)?.log();
            let folded: Vec<Arc<Message>> =
                log.iter().filter(|m| numbers.binary_search(&m.number).is_ok()).cloned().collect();
            self.archive(id, &folded.iter().collect::<Vec<_>>())?;
        }
        let session = self.session_name(id)?;
        self.events.push(Event::ContextSummarized {
            session,
            summarized: summarized.messages,
            kept: summarized.kept,
            summary: text,
        });
        self.session_changed(id, "summarize-session")?;
        Ok(Summarized { memory: Some(memory), ..summarized })
    }

    fn remember_summary(
        &mut self,
        id: u64,
        text: &str,
        origin: Option<MemoryOrigin>,
    ) -> Result<u64, EngineError> {
        let scope = match self.row(id)?.project {
            Some(project) => MemoryScope::Project(project),
            None => MemoryScope::Session(id),
        };
        let new = NewMemory {
            scope,
            kind: SUMMARY.to_owned(),
            origin,
            content: format!("[context-summary] {text}"),
            created: self.now(),
        };
        let memory = self.store.change()?.add_memory(&new)?;
        self.events.push(Event::MemoriesChanged { method: "summarize-session", id: memory });
        Ok(memory)
    }
}

/// Adds the summary in view to the error's figures, since the summary cannot be pruned.
fn with_summary(
    mut error: WindowBudgetTooSmall,
    summary: u64,
    max_tokens: u64,
) -> WindowBudgetTooSmall {
    if summary > 0 {
        error.parts.insert(
            0,
            Irreducible {
                section: Section::Summary,
                what: ReportPart::Text,
                reason: "the summary of earlier messages",
                tokens: summary,
            },
        );
    }
    WindowBudgetTooSmall { needed: error.needed + summary, max_tokens, ..error }
}

/// Returns the tokens for the user's words in a summary if the rest of the view has `beside`. Aims
/// to keep the view below half of `max_tokens`.
fn said_tokens(max_tokens: u64, beside: u64) -> u64 {
    let least = (max_tokens as f64 * LEAST_SAID_SHARE) as u64;
    let left = (max_tokens / 2).saturating_sub(beside);
    left.clamp(least, most_said_tokens(max_tokens))
}

/// Returns the maximum number of tokens of the user's words in a summary.
pub(super) fn most_said_tokens(max_tokens: u64) -> u64 {
    (max_tokens as f64 * SAID_SHARE) as u64
}

pub(super) fn references(messages: &[Arc<Message>]) -> Vec<&Message> {
    messages.iter().map(|message| &**message).collect()
}

impl Keep {
    /// Returns the part of a history that a summary replaces.
    pub fn folding(self, history: &History<'_>) -> Folding {
        match self {
            Self::Messages(count) => folding_messages(history, count),
            Self::Turns(count) => folding(history, count),
        }
    }
}

/// Returns the input of a new summary: `messages` without those to `keep`, and the earlier summary
/// `prior`, if there is one.
pub(super) fn ahead(
    messages: &[Arc<Message>],
    prior: Option<&Summary>,
    keep: Keep,
    max_tokens: u64,
    costs: &Costs,
) -> Result<Ahead, EngineError> {
    let history = History::new(references(messages), &costs.measure);
    let Folding { units, turns } = keep.folding(&history);
    let members = units.iter().flat_map(|unit| &history.units[*unit].members);
    let mut folded: Vec<usize> = members.copied().collect();
    folded.sort_unstable();
    let folded: Vec<Arc<Message>> = folded.iter().map(|at| Arc::clone(&messages[*at])).collect();
    let folded_tokens: u64 = folded.iter().map(|m| costs.measure.message(m.tokens)).sum();
    Ok(Ahead {
        prior: source_of(prior)?,
        messages: folded,
        turns,
        measure: costs.measure.clone(),
        said_tokens: said_tokens(max_tokens, history.tokens() - folded_tokens),
    })
}

/// Parses the stored form of the summary `prior`, if there is one.
fn source_of(prior: Option<&Summary>) -> Result<Option<summary::SummaryText>, EngineError> {
    let source = prior.map(|prior| serde_json::from_value(prior.source.clone()));
    source.transpose().map_err(damaged)
}

fn damaged(error: serde_json::Error) -> EngineError {
    StoreError::Damaged(format!("a session's summary: {error}")).into()
}
