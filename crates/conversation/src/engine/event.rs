//! Events: the only source of notifications and statistics.

use std::mem::discriminant;

use serde::Serialize;

use super::Caller;
use crate::context::change::Change;
use crate::context::item::Item;
use crate::context::manager::Manager;
use crate::curation::notes::{NotesStatus, NotesStep};
use crate::session::message::Message;
use crate::store::Way;

/// A change to the state, or another occurrence that clients may want to know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The items or settings of a manager changed.
    ContextChanged {
        /// Name of the manager.
        manager: String,
        /// Method that made the change.
        method: String,
        /// Method whose change was undone; `None` if the
        /// change is not an undo.
        undone: Option<String>,
        /// Method whose change was redone; `None` if the
        /// change is not a redo.
        redone: Option<String>,
        /// Number of items in the manager now.
        count: usize,
        /// Total tokens of the items in the manager now.
        tokens: u64,
        /// Version of the manager now.
        version: u64,
        /// Number of items added.
        entered: u64,
        /// Number of items removed.
        left: u64,
        /// True if items only got the current texts and lines of the same files.
        followed: bool,
        /// Caller whose request made the change.
        by: Caller,
    },
    /// A session was opened, made current, renamed, deleted or restored, or its messages, view or
    /// settings changed.
    SessionChanged {
        /// The session.
        session: SessionName,
        /// Method that made the change.
        method: &'static str,
        /// Number of messages in the session's log now.
        messages: u64,
    },
    /// `remember` or a summary added a memory, or a memory was forgotten or restored. There is no
    /// event for messages that become memories.
    MemoriesChanged {
        /// Method that made the change.
        method: &'static str,
        /// Number of the memory, `mem-N` for clients.
        id: u64,
    },
    /// A provider was added, replaced or removed.
    ProvidersChanged {
        /// Method that made the change.
        method: &'static str,
        /// Name of the provider.
        provider: String,
    },
    /// A client has started or stopped offering tools.
    ToolsChanged {
        /// True if agents other than the server's own can, or until now could, call one of the
        /// tools.
        is_for_agents: bool,
    },
    /// A turn has started or stopped waiting for the user's approval of a tool call.
    ApprovalsChanged {
        /// Session of the turn.
        session: SessionName,
        /// Number of the question to the user.
        approval: u64,
        /// True if the user was asked, false if the question was decided or withdrawn.
        is_open: bool,
    },
    /// The server asks editors for text that they have not saved.
    TextWanted {
        /// Number of the question, which the answers must name.
        question: u64,
        /// Absolute path of the wanted file; `None` if only the changed text of live items is
        /// wanted.
        path: Option<String>,
    },
    /// An agent connected or disconnected, an agent's session was given items, or an item began or
    /// stopped waiting for a prompt.
    AgentsChanged {
        /// Method that made the change.
        method: &'static str,
        /// Name of the agent; empty if the change is not about a single agent.
        agent: String,
        /// Id of the agent's session; empty if the change is not about a single session.
        session: String,
    },
    /// A window of a session was built, and differs from the previous one.
    WindowBuilt {
        /// The session.
        session: SessionName,
        /// Cost of the window in tokens.
        tokens: u64,
        /// Maximum cost of the window in tokens.
        max_tokens: u64,
    },
    /// Messages were pruned from a session's view.
    ContextPruned {
        /// The session.
        session: SessionName,
        /// Tokens in view before.
        before: u64,
        /// Tokens in view after.
        after: u64,
        /// The pruned messages.
        removed: Vec<Message>,
    },
    /// Messages of a session were replaced by a summary.
    ContextSummarized {
        /// The session.
        session: SessionName,
        /// Number of messages that the summary replaces.
        summarized: u64,
        /// Number of messages still in view.
        kept: u64,
        /// Text of the summary.
        summary: String,
    },
    /// A checkpoint of a session was taken.
    CheckpointCreated {
        /// The session.
        session: SessionName,
        /// Number of the checkpoint, `chk-N` for clients.
        checkpoint: u64,
        /// Number of turns before the checkpoint.
        turn: u64,
        /// Purpose of the checkpoint.
        message: String,
        /// True if the server took the checkpoint by itself.
        automatic: bool,
    },
    /// The note-taking for a turn has ended.
    TurnManaged {
        /// The session.
        session: SessionName,
        /// Number of the turn, counted from 1.
        turn: u64,
        /// Name of the template for the notes.
        template: String,
        /// Outcome of the note-taking.
        status: NotesStatus,
        /// Step that failed, and the reason; `None` unless the note-taking failed.
        failure: Option<(NotesStep, String)>,
    },
}

/// Number, name and version of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName {
    /// Number, `ses-N` for clients.
    pub id: u64,
    /// Name at the time of the event.
    pub name: String,
    /// Version of the session after the request; 0 while the request runs.
    pub version: u64,
}

/// Totals over all events since the start of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Statistics {
    /// Number of changes to managers.
    pub changes: u64,
    /// Number of items added.
    pub items_entered: u64,
    /// Number of items removed.
    pub items_left: u64,
    /// Number of changes to sessions.
    pub session_changes: u64,
    /// Number of messages pruned.
    pub messages_pruned: u64,
    /// Number of summaries made.
    pub summaries: u64,
    /// Number of checkpoints taken.
    pub checkpoints: u64,
    /// Number of turns in which notes replaced the history.
    pub turns_managed: u64,
    /// Number of turns with too little history for notes.
    pub turns_below_threshold: u64,
    /// Number of turns without notes because settings turn them off.
    pub turns_with_managing_disabled: u64,
    /// Number of turns that used the plain history because note-taking failed.
    pub management_failures: u64,
}

/// Returns the session that an event is about, if any, by reference as the event.
macro_rules! session_of {
    ($event:expr) => {
        match $event {
            Event::SessionChanged { session, .. }
            | Event::WindowBuilt { session, .. }
            | Event::ContextPruned { session, .. }
            | Event::ContextSummarized { session, .. }
            | Event::CheckpointCreated { session, .. }
            | Event::ApprovalsChanged { session, .. }
            | Event::TurnManaged { session, .. } => Some(session),
            Event::ContextChanged { .. }
            | Event::MemoriesChanged { .. }
            | Event::ProvidersChanged { .. }
            | Event::AgentsChanged { .. }
            | Event::ToolsChanged { .. }
            | Event::TextWanted { .. } => None,
        }
    };
}

impl Event {
    /// Returns the subject of the event: the name of a manager, session, provider or agent;
    /// `agents` for tools that agents may call; empty for all other events. Among events with the
    /// same kind and subject, the last one describes the current state.
    pub fn subject(&self) -> &str {
        match self {
            Self::ContextChanged { manager, .. } => manager,
            Self::ProvidersChanged { provider, .. } => provider,
            Self::AgentsChanged { agent, .. } => agent,
            Self::ToolsChanged { is_for_agents } => match is_for_agents {
                true => "agents",
                false => "",
            },
            Self::MemoriesChanged { .. } | Self::TextWanted { .. } => "",
            Self::SessionChanged { session, .. }
            | Self::WindowBuilt { session, .. }
            | Self::ContextPruned { session, .. }
            | Self::ContextSummarized { session, .. }
            | Self::CheckpointCreated { session, .. }
            | Self::ApprovalsChanged { session, .. }
            | Self::TurnManaged { session, .. } => &session.name,
        }
    }

    /// Returns whether the event says how something is now, so that only the last one for each subject
    /// matters.
    pub fn is_state(&self) -> bool {
        match self {
            Self::ContextChanged { .. }
            | Self::SessionChanged { .. }
            | Self::WindowBuilt { .. }
            | Self::MemoriesChanged { .. }
            | Self::ProvidersChanged { .. }
            | Self::AgentsChanged { .. }
            | Self::ToolsChanged { .. } => true,
            Self::ContextPruned { .. }
            | Self::ContextSummarized { .. }
            | Self::CheckpointCreated { .. }
            | Self::ApprovalsChanged { .. }
            | Self::TextWanted { .. }
            | Self::TurnManaged { .. } => false,
        }
    }

    /// Returns the session that the event is about, if any.
    pub fn session(&self) -> Option<&SessionName> {
        session_of!(self)
    }

    /// Returns the session that the event is about, if any.
    pub(super) fn session_mut(&mut self) -> Option<&mut SessionName> {
        session_of!(self)
    }

    /// Returns whether both events have the same kind and subject.
    pub fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other) && self.subject() == other.subject()
    }

    /// Returns the event as one that is told in place of an earlier one like it, too.
    #[must_use]
    pub fn covering(mut self, earlier: &Self) -> Self {
        if let (
            Self::ContextChanged { followed, .. },
            Self::ContextChanged { followed: before, .. },
        ) = (&mut self, earlier)
        {
            *followed &= *before;
        }
        self
    }

    /// Returns whether the event counts in the statistics.
    pub fn is_counted(&self) -> bool {
        let mut sums = Statistics::default();
        sums.note(self);
        sums != Statistics::default()
    }

    /// Creates the event of a change that `manager` has just applied. `way` is set if the change
    /// was an undo or a redo; `change` then has the method whose change was undone or redone.
    pub fn changed(
        name: &str,
        manager: &Manager,
        change: &Change,
        way: Option<Way>,
        by: Caller,
    ) -> Self {
        let of = |that: Way| (way == Some(that)).then(|| change.method.clone());
        let count = |came: bool| {
            let moves = change.slots.iter().filter(|slot| {
                let there = (slot.before.is_some(), slot.after.is_some());
                there == (!came, came)
            });
            moves.count() as u64
        };
        Self::ContextChanged {
            manager: name.to_owned(),
            method: way.map_or_else(|| change.method.clone(), |way| way.name().to_owned()),
            undone: of(Way::Undo),
            redone: of(Way::Redo),
            count: manager.len(),
            tokens: manager.tokens(),
            version: manager.version(),
            entered: count(true),
            left: count(false),
            followed: way.is_none() && change.is_following() && !moves(change),
            by,
        }
    }
}

/// Returns whether the text of an item is elsewhere after the change: in a file with another name,
/// or in its file instead of an unsaved buffer.
fn moves(change: &Change) -> bool {
    let is_elsewhere = |before: &Item, after: &Item| {
        before.metadata.filename() != after.metadata.filename()
            || (before.is_unsaved() && !after.is_unsaved())
    };
    change.slots.iter().any(|slot| match (&slot.before, &slot.after) {
        (Some(before), Some(after)) => is_elsewhere(&before.item, &after.item),
        _ => false,
    })
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
            Event::WindowBuilt { .. }
            | Event::MemoriesChanged { .. }
            | Event::ProvidersChanged { .. }
            | Event::ApprovalsChanged { .. }
            | Event::AgentsChanged { .. }
            | Event::ToolsChanged { .. }
            | Event::TextWanted { .. } => {}
            Event::ContextPruned { removed, .. } => self.messages_pruned += removed.len() as u64,
            Event::ContextSummarized { .. } => self.summaries += 1,
            Event::CheckpointCreated { .. } => self.checkpoints += 1,
            Event::TurnManaged { status, .. } => match status {
                NotesStatus::Managed => self.turns_managed += 1,
                NotesStatus::BelowThreshold => self.turns_below_threshold += 1,
                NotesStatus::Disabled => self.turns_with_managing_disabled += 1,
                NotesStatus::Failed => self.management_failures += 1,
            },
        }
    }
}
