//! The visible part of a log, as data. Each change makes a new revision, and every revision is kept
//! so that the session can go back to it.

use serde::{Deserialize, Serialize};

use super::spans::Spans;

/// Reason why a message that was rolled back is not in view.
const TAKEN_BACK: &str = "taken back by going to an earlier turn";
/// Reason why a pruned message is not in view.
const LEAST_IMPORTANT: &str = "least important by age, author, errors and edits";
/// Reason why a message that a summary stands in for is not in view.
const SUMMARIZED: &str = "in a summary";

/// A revision of a session's visible part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionState {
    /// Number of messages in the log when the revision was made. Later messages are in view too.
    pub base: u64,
    /// Messages up to `base` that belong to the conversation. The others were rolled back.
    pub active: Spans,
    /// Active messages that were pruned.
    #[serde(default)]
    pub pruned: Spans,
    /// Summary that stands in for the older messages.
    #[serde(default)]
    pub summary: Option<Summary>,
    /// Messages that are never left out.
    #[serde(default)]
    pub pinned: Spans,
    /// Number of summaries made.
    #[serde(default)]
    pub summaries: u64,
    /// Number of turns before the last checkpoint; 0 if there is none.
    #[serde(default)]
    pub checkpoint_turn: u64,
    /// Operation that the next `undo` takes back. `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<ViewOperation>,
    /// Undone operation that the next `redo` makes again, unless the session has continued since.
    /// `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redo: Option<ViewOperation>,
}

/// An operation on the view that can be undone or redone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ViewOperation {
    /// Method that made the change.
    pub method: String,
    /// Number of the revision that the method made.
    pub revision: u64,
    /// Moment to return to: for an undo, the one before the change; for a redo, the one before the
    /// change was undone.
    pub moment: Moment,
    /// True if the operation changes the context items, too.
    pub with_items: bool,
}

/// Figures learned in the turns of a session. These figures are not part of the view, so a turn
/// that changes nothing else makes no revision.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Learned {
    /// Number of attempts to summarize in a row that did not help.
    pub futile: u64,
    /// Turn in which a summary was last tried.
    pub tried_in_turn: u64,
    /// Mean relevance of the memories found in the last turn, from 0 to 1.
    pub relevance: f64,
    /// Coherence of the last rated answer, from 0 to 1; `None` if no answer was rated.
    pub coherence: Option<f64>,
}

/// A revision as it is stored and exported, with the figures learned by then. A rollback to the
/// revision also restores the figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Revision {
    /// The visible part.
    #[serde(flatten)]
    pub state: SessionState,
    /// Figures that had been learned when the revision was made.
    #[serde(flatten)]
    pub learned: Learned,
}

/// A moment to which a session can return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Moment {
    /// Number of the revision at that moment.
    pub revision: u64,
    /// Number of messages in the log at that moment.
    pub position: u64,
    /// Number of the stored set of the context items at that moment, if any.
    pub items: Option<u64>,
}

/// A text that stands in for messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// The text.
    pub text: String,
    /// Number of tokens of the text, counted like
    /// [`Message::tokens`](super::message::Message::tokens).
    pub tokens: u64,
    /// Messages that the summary stands in for, including those of earlier summaries.
    pub covers: Spans,
    /// Number of messages in the log when the summary was made; 0 if that is unknown.
    #[serde(default)]
    pub position: u64,
    /// The structured summary from which the text was rendered, and from which the next summary is
    /// made; null if it is not known. Its form is that of
    /// [`curation::summary`](crate::curation::summary).
    #[serde(default)]
    pub source: serde_json::Value,
}

impl Revision {
    /// Parses the JSON of a revision.
    ///
    /// # Errors
    /// The error of the JSON parser.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        // Does not use `flatten`, which fails on numbers in a build that keeps all their digits.
        Ok(Self { state: serde_json::from_str(text)?, learned: serde_json::from_str(text)? })
    }

    /// Adapts the revision of another session to a log of `length` messages; see
    /// [`SessionState::of_log`].
    #[must_use]
    pub fn of_log(self, length: u64) -> Self {
        let share = |share: f64| if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        let learned = Learned {
            relevance: share(self.learned.relevance),
            coherence: self.learned.coherence.map(share),
            ..self.learned
        };
        Self { state: self.state.of_log(length), learned }
    }
}

impl SessionState {
    /// Returns whether the message belongs to the conversation, pruned or not.
    pub fn is_active(&self, number: u64) -> bool {
        number > self.base || self.active.contains(number)
    }

    /// Returns whether the message itself, and not only a summary of it, is in view.
    pub fn is_in_view(&self, number: u64) -> bool {
        self.why_out(number).is_none()
    }

    /// Returns why the message itself is not in view; `None` if it is.
    pub fn why_out(&self, number: u64) -> Option<&'static str> {
        let is_covered = |summary: &Summary| summary.covers.contains(number);
        match () {
            () if !self.is_active(number) => Some(TAKEN_BACK),
            () if self.pinned.contains(number) => None,
            () if self.pruned.contains(number) => Some(LEAST_IMPORTANT),
            () if self.summary.as_ref().is_some_and(is_covered) => Some(SUMMARIZED),
            () => None,
        }
    }

    /// Returns whether windows may show the message: it is in view, or a summary stands in for it.
    pub fn is_offered(&self, number: u64) -> bool {
        self.is_active(number) && (self.pinned.contains(number) || !self.pruned.contains(number))
    }

    /// Returns the same view with `base` raised to `length`. Adds the messages in between, which
    /// are already in view, to `active`.
    #[must_use]
    pub fn rebased(&self, length: u64) -> Self {
        let mut state = self.clone();
        state.active.insert(self.base + 1, length);
        state.base = length;
        state
    }

    /// Returns the state `then`, but with the conversation ending after message `last`, for a log
    /// that now has `length` messages.
    #[must_use]
    pub fn back_at(then: &Self, last: u64, length: u64) -> Self {
        let mut state = then.rebased(last.max(then.base));
        state.active.truncate(last);
        state.base = length;
        state
    }

    /// Adapts the state of another session to a log of `length` messages, for a session that has no
    /// checkpoints yet and nothing to go back to. The result is valid even if the state is not.
    #[must_use]
    pub fn of_log(self, length: u64) -> Self {
        let within = |spans: &Spans| spans.within(length);
        let mut active = within(&self.active);
        active.insert(self.base.saturating_add(1), length);
        let summary = self.summary.map(|summary| Summary {
            covers: within(&summary.covers),
            tokens: summary.tokens.min(u64::from(u32::MAX)),
            position: summary.position.min(length),
            ..summary
        });
        Self {
            base: length,
            active,
            pruned: within(&self.pruned),
            summary,
            pinned: within(&self.pinned),
            checkpoint_turn: 0,
            undo: None,
            redo: None,
            ..self
        }
    }

    /// Returns whether this state has the same messages, summary and pins in view as an earlier
    /// one.
    pub fn shows_same(&self, earlier: &Self) -> bool {
        let then = earlier.rebased(self.base.max(earlier.base));
        (&self.active, &self.pruned, &self.summary) == (&then.active, &then.pruned, &then.summary)
            && self.pinned == then.pinned
    }
}
