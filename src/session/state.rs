//! What of a log is in view, as data: each change of it makes another revision, and every
//! revision is kept, so that each can be gone back to.

use serde::{Deserialize, Serialize};

use super::spans::Spans;

/// A revision of what is in view of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// How many messages the log had when the revision was made; later ones are in view too.
    pub base: u64,
    /// Which of those belong to the conversation; the others were rolled back.
    pub active: Spans,
    /// Which of the active ones were pruned.
    #[serde(default)]
    pub pruned: Spans,
    /// What stands in place of the older ones.
    #[serde(default)]
    pub summary: Option<Summary>,
    /// Which are never to be left out.
    #[serde(default)]
    pub pinned: Spans,
    /// How many summaries were made.
    #[serde(default)]
    pub summaries: u64,
    /// How many summaries in a row did not help.
    #[serde(default)]
    pub futile: u64,
    /// The turn in which a summary was last tried.
    #[serde(default)]
    pub tried_in_turn: u64,
    /// The turn before which the last checkpoint was taken.
    #[serde(default)]
    pub checkpoint_turn: u64,
    /// How well the memories found in the last turn fitted it, from 0 to 1.
    #[serde(default)]
    pub relevance: f64,
    /// How coherent the last answer was, from 0 to 1, if somebody judged it.
    #[serde(default)]
    pub coherence: Option<f64>,
    /// What the last rollback, if nothing was gone back to since, took out of view.
    #[serde(default)]
    pub before_rollback: Option<Moment>,
}

/// A moment of a session, to which it can go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Moment {
    /// The revision that was present then.
    pub revision: u64,
    /// How many messages the log had then.
    pub position: u64,
    /// The stored set of the context items of then.
    pub items: Option<u64>,
}

/// What stands in place of messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// The text.
    pub text: String,
    /// How many tokens it has, as [`Message::tokens`](super::message::Message::tokens).
    pub tokens: u64,
    /// The messages that it stands for, those of earlier summaries included.
    pub covers: Spans,
    /// What the next summary is made from, beside the messages: kept by whoever makes summaries.
    #[serde(default)]
    pub source: serde_json::Value,
}

impl State {
    /// Whether the message belongs to the conversation, pruned or not.
    pub fn is_active(&self, number: u64) -> bool {
        number > self.base || self.active.contains(number)
    }

    /// Whether the message itself is in view.
    pub fn is_in_view(&self, number: u64) -> bool {
        self.is_active(number) && !self.is_hidden(number)
    }

    /// The revision as of a log of `length` messages: the same view, said of all of them.
    #[must_use]
    pub fn rebased(&self, length: u64) -> Self {
        let mut state = self.clone();
        state.active.insert(self.base + 1, length);
        state.base = length;
        state
    }

    /// The revision in which the conversation ends after message `last` and is otherwise that of
    /// `then`, in a log that has `length` messages by now.
    #[must_use]
    pub fn back_at(then: &Self, last: u64, length: u64) -> Self {
        let mut state = then.rebased(last.max(then.base));
        state.active.truncate(last);
        state.base = length;
        state
    }

    /// What another session's state says of a log of `length` messages, for a session that has no
    /// checkpoints yet and nothing to go back to. Whatever the state was, the result is sound.
    #[must_use]
    pub fn of_log(self, length: u64) -> Self {
        let within = |spans: &Spans| spans.within(length);
        let share = |share: f64| if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        let mut active = within(&self.active);
        active.insert(self.base.saturating_add(1), length);
        let summary = self.summary.map(|summary| Summary {
            covers: within(&summary.covers),
            tokens: summary.tokens.min(u64::from(u32::MAX)),
            ..summary
        });
        Self {
            base: length,
            active,
            pruned: within(&self.pruned),
            summary,
            pinned: within(&self.pinned),
            checkpoint_turn: 0,
            relevance: share(self.relevance),
            coherence: self.coherence.map(share),
            before_rollback: None,
            ..self
        }
    }

    fn is_hidden(&self, number: u64) -> bool {
        if self.pinned.contains(number) {
            return false;
        }
        self.pruned.contains(number)
            || self.summary.as_ref().is_some_and(|summary| summary.covers.contains(number))
    }
}
