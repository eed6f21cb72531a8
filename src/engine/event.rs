//! What happened: the only source of notifications and statistics.

use std::mem::discriminant;

use serde::Serialize;

use crate::context::change::Change;
use crate::context::manager::Manager;
use crate::curation::managed::{Status, Step};
use crate::session::message::Message;

/// Something that happened to the state and is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A manager's items or settings changed.
    ContextChanged {
        /// The manager's name.
        manager: String,
        /// The method that changed it.
        method: String,
        /// How many items it holds now.
        count: usize,
        /// Their tokens together.
        tokens: u64,
        /// How many items came in.
        entered: u64,
        /// How many items left.
        left: u64,
    },
    /// A session was opened, became the current one, was renamed or deleted, or got messages or
    /// another view.
    SessionChanged {
        /// Which.
        session: SessionName,
        /// The method that changed it.
        method: &'static str,
        /// How many messages its log has now.
        messages: u64,
    },
    /// Messages of a session were taken out of view for good.
    ContextPruned {
        /// Which.
        session: SessionName,
        /// The tokens in view before.
        before: u64,
        /// The tokens in view after.
        after: u64,
        /// The messages themselves.
        removed: Vec<Message>,
    },
    /// Messages of a session were replaced by a summary.
    ContextSummarized {
        /// Which.
        session: SessionName,
        /// How many messages the summary stands for.
        summarized: u64,
        /// How many messages are still in view.
        kept: u64,
        /// Its text.
        summary: String,
    },
    /// A checkpoint of a session was taken.
    CheckpointCreated {
        /// Which.
        session: SessionName,
        /// The checkpoint's number, `chk-N` on the wire.
        checkpoint: u64,
        /// How many turns the session had.
        turn: u64,
        /// What it was taken for.
        message: String,
        /// Whether the server took it by itself.
        automatic: bool,
    },
    /// A turn that was to be managed has been looked at.
    TurnManaged {
        /// Which session's.
        session: SessionName,
        /// Which turn it was, from 1.
        turn: u64,
        /// The template's name.
        template: String,
        /// What became of it.
        status: Status,
        /// Where it failed and why, if it did.
        failure: Option<(Step, String)>,
    },
}

/// A session's number and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName {
    /// The number, `ses-N` on the wire.
    pub id: u64,
    /// The name at that time.
    pub name: String,
}

/// Sums over all events since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Statistics {
    /// Changes made to managers.
    pub changes: u64,
    /// Items that came in.
    pub items_entered: u64,
    /// Items that left.
    pub items_left: u64,
    /// Changes made to sessions.
    pub session_changes: u64,
    /// Messages taken out of view by pruning.
    pub messages_pruned: u64,
    /// Summaries made.
    pub summaries: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Turns in which a managed view took the history's place.
    pub turns_managed: u64,
    /// Turns that were to be managed and had too little history for it.
    pub turns_below_threshold: u64,
    /// Turns that were to be managed but for settings that say that nothing is.
    pub turns_with_managing_disabled: u64,
    /// Turns that were to be managed and went on with the raw history because that failed.
    pub management_failures: u64,
}

impl Event {
    /// What it is about. Of several events of one kind and subject, the last says how it is now.
    pub fn subject(&self) -> &str {
        match self {
            Self::ContextChanged { manager, .. } => manager,
            Self::SessionChanged { session, .. }
            | Self::ContextPruned { session, .. }
            | Self::ContextSummarized { session, .. }
            | Self::CheckpointCreated { session, .. }
            | Self::TurnManaged { session, .. } => &session.name,
        }
    }

    /// Whether both are of one kind and subject.
    pub fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other) && self.subject() == other.subject()
    }

    /// The event of a change that `manager` has just taken.
    pub fn changed(name: &str, manager: &Manager, change: &Change) -> Self {
        let count = |came: bool| {
            let moves = change.slots.iter().filter(|slot| {
                let there = (slot.before.is_some(), slot.after.is_some());
                there == (!came, came)
            });
            moves.count() as u64
        };
        Self::ContextChanged {
            manager: name.to_owned(),
            method: change.method.clone(),
            count: manager.len(),
            tokens: manager.tokens(),
            entered: count(true),
            left: count(false),
        }
    }
}

impl Statistics {
    /// Counts an event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::ContextChanged { entered, left, .. } => {
                self.changes += 1;
                self.items_entered += entered;
                self.items_left += left;
            }
            Event::SessionChanged { .. } => self.session_changes += 1,
            Event::ContextPruned { removed, .. } => self.messages_pruned += removed.len() as u64,
            Event::ContextSummarized { .. } => self.summaries += 1,
            Event::CheckpointCreated { .. } => self.checkpoints += 1,
            Event::TurnManaged { status, .. } => match status {
                Status::Managed => self.turns_managed += 1,
                Status::BelowThreshold => self.turns_below_threshold += 1,
                Status::Disabled => self.turns_with_managing_disabled += 1,
                Status::Failed => self.management_failures += 1,
            },
        }
    }
}
