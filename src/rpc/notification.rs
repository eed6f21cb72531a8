//! The topics of notifications, and their parameters. The protocol's reference shows these comments.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::present::MessageShown;
use crate::curation::notes::{NotesStatus, NotesStep};
use crate::engine::{Event, SessionName, Statistics};
use crate::ids::{CheckpointId, MemoryId, SessionId};
use crate::names::names;
use crate::value::Value;

names! {
    /// A topic that a client can subscribe to.
    Topic {
        /// A manager's items or settings changed.
        ContextChanged => "context-changed",
        /// Messages of a session were pruned.
        ContextPruned => "context-pruned",
        /// A session's older messages were summarized.
        ContextSummarized => "context-summarized",
        /// A checkpoint was taken.
        CheckpointCreated => "checkpoint-created",
        /// A session was opened, made current, renamed, deleted or restored, or its messages, view
        /// or settings changed.
        SessionChanged => "session-changed",
        /// A window of a session was built, and differs from the previous one.
        WindowBuilt => "window-built",
        /// A memory was added, forgotten or restored.
        MemoriesChanged => "memories-changed",
        /// A provider was added, replaced or removed.
        ProvidersChanged => "providers-changed",
        /// A chat waits for an approval, or no longer does.
        ApprovalsChanged => "approvals-changed",
        /// An agent connected, disconnected or was given items, or an item began or stopped waiting
        /// for the next prompt of an agent.
        AgentsChanged => "agents-changed",
        /// A client brought tools with `register-tools`, or withdrew them.
        ToolsChanged => "tools-changed",
        /// A call needs the unsaved text of editors. Subscribers answer with `give-result`.
        TextWanted => "text-wanted",
        /// Note-taking for a turn failed.
        ManagementFailed => "management-failed",
        /// The server's statistics, which are totals over all events since its start, have changed.
        Stats => "stats",
    }
}

/// Returns the topic of an event; `None` for an event that only counts in the statistics.
pub(crate) fn topic(event: &Event) -> Option<Topic> {
    Some(match event {
        Event::ContextChanged { .. } => Topic::ContextChanged,
        Event::SessionChanged { .. } => Topic::SessionChanged,
        Event::WindowBuilt { .. } => Topic::WindowBuilt,
        Event::MemoriesChanged { .. } => Topic::MemoriesChanged,
        Event::ProvidersChanged { .. } => Topic::ProvidersChanged,
        Event::ApprovalsChanged { .. } => Topic::ApprovalsChanged,
        Event::AgentsChanged { .. } => Topic::AgentsChanged,
        Event::ToolsChanged { .. } => Topic::ToolsChanged,
        Event::TextWanted { .. } => Topic::TextWanted,
        Event::ContextPruned { .. } => Topic::ContextPruned,
        Event::ContextSummarized { .. } => Topic::ContextSummarized,
        Event::CheckpointCreated { .. } => Topic::CheckpointCreated,
        Event::TurnManaged { failure: Some(_), .. } => Topic::ManagementFailed,
        Event::TurnManaged { failure: None, .. } => return None,
    })
}

/// Returns the parameters of an event's notification; `None` for an event that only counts in the
/// statistics.
pub(crate) fn params(event: &Event, is_own: bool) -> Option<Value> {
    Some(match event {
        Event::ContextChanged {
            manager,
            method,
            undone,
            redone,
            count,
            tokens,
            version,
            followed,
            ..
        } => {
            let (undone, redone) = (undone.as_deref(), redone.as_deref());
            let (count, tokens) = (*count, *tokens);
            let (version, own) = (*version, is_own.then_some(true));
            let followed = followed.then_some(true);
            Value::of(&ContextChanged {
                manager,
                method,
                undone,
                redone,
                count,
                tokens,
                version,
                followed,
                own,
            })
        }
        Event::SessionChanged { session, method, messages } => {
            Value::of(&SessionChanged { of: session.into(), method, messages: *messages })
        }
        Event::WindowBuilt { session, tokens, max_tokens } => {
            let (of, tokens, max_tokens) = (session.into(), *tokens, *max_tokens);
            Value::of(&WindowBuilt { of, tokens, max_tokens })
        }
        Event::MemoriesChanged { method, id } => {
            Value::of(&MemoriesChanged { method, id: MemoryId(*id) })
        }
        Event::ProvidersChanged { method, provider } => {
            Value::of(&ProvidersChanged { method, provider })
        }
        Event::ApprovalsChanged { session, approval, is_open } => {
            let (approval, open) = (*approval, *is_open);
            Value::of(&ApprovalsChanged { of: session.into(), approval, open })
        }
        Event::AgentsChanged { method, agent, session } => {
            Value::of(&AgentsChanged { method, agent, agent_session: session })
        }
        Event::ToolsChanged { is_for_agents } => {
            Value::of(&ToolsChanged { agents: *is_for_agents })
        }
        Event::TextWanted { question, path } => {
            Value::of(&TextWanted { question: *question, path: path.as_deref() })
        }
        Event::ContextPruned { session, before, after, removed } => Value::of(&ContextPruned {
            of: session.into(),
            original: *before,
            r#final: *after,
            token_reduction: before.saturating_sub(*after),
            removed: removed.iter().map(MessageShown::from).collect(),
        }),
        Event::ContextSummarized { session, summarized, kept, summary } => {
            let (of, summarized, kept) = (session.into(), *summarized, *kept);
            Value::of(&ContextSummarized { of, summarized, kept, summary })
        }
        Event::CheckpointCreated { session, checkpoint, turn, message, automatic } => {
            let (checkpoint, turn, automatic) = (CheckpointId(*checkpoint), *turn, *automatic);
            Value::of(&CheckpointCreated {
                of: session.into(),
                checkpoint,
                turn,
                message,
                automatic,
            })
        }
        Event::TurnManaged { session, turn, template, status, failure } => {
            let (step, reason) = failure.as_ref()?;
            let (of, turn, status, step) = (session.into(), *turn, *status, *step);
            Value::of(&ManagementFailed { of, turn, template, status, step, reason })
        }
    })
}

/// The session of a notification.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct OfSession<'a> {
    /// Name of the session.
    session: &'a str,
    /// Id of the session.
    session_id: SessionId,
    /// Version of the session after the change.
    version: u64,
}

impl<'a> From<&'a SessionName> for OfSession<'a> {
    fn from(SessionName { id, name, version }: &'a SessionName) -> Self {
        let version = *version;
        Self { session: name, session_id: SessionId(*id), version }
    }
}

/// Declares the parameters of notifications about sessions.
macro_rules! of_sessions {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Serialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) struct $name<'a> {
            /// The session.
            #[serde(flatten)]
            pub(crate) of: OfSession<'a>,
            $($(#[$field_doc])* pub(crate) $field: $type,)*
        }
    )*};
}

/// A manager's items or settings changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ContextChanged<'a> {
    /// Name of the manager.
    pub(crate) manager: &'a str,
    /// Method that made the change. For a model's tool, the method that does the same: `add-item`,
    /// `add-file` or `remove-items`.
    pub(crate) method: &'a str,
    /// Method whose change was undone; only if the method is `undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undone: Option<&'a str>,
    /// Method whose change was redone; only if the method is `redo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redone: Option<&'a str>,
    /// Number of items now.
    pub(crate) count: usize,
    /// Tokens of the items now.
    pub(crate) tokens: u64,
    /// Version of the manager now.
    pub(crate) version: u64,
    /// True if items only got the current texts and lines of the same files, and this notification
    /// covers no other change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) followed: Option<bool>,
    /// True if a call of the notified connection made the change, and this notification covers no
    /// other change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) own: Option<bool>,
}

/// `remember` or a summary added a memory, or a memory was forgotten or restored. There is no
/// notification of messages that become memories.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MemoriesChanged<'a> {
    /// Method that made the change.
    pub(crate) method: &'a str,
    /// Id of the memory that changed last.
    pub(crate) id: MemoryId,
}

/// A provider was added, replaced or removed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProvidersChanged<'a> {
    /// Method that made the change.
    pub(crate) method: &'a str,
    /// Name of the provider.
    pub(crate) provider: &'a str,
}

/// An agent connected or disconnected, an agent's session was given items, or an item began or
/// stopped waiting for a prompt. `list-agents` returns the current state.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct AgentsChanged<'a> {
    /// Method that made the change; `initialize` if an agent connected or disconnected.
    pub(crate) method: &'a str,
    /// Name of the agent; empty if the change is not about a single agent.
    pub(crate) agent: &'a str,
    /// Id of the agent's session; empty if the change is not about a single session.
    pub(crate) agent_session: &'a str,
}

/// A client brought, replaced or withdrew tools with `register-tools`, or withdrew them by
/// disconnecting. `list-tools` returns the current ones.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ToolsChanged {
    /// True if agents other than the server's own may call one of the changed tools, or could
    /// before.
    pub(crate) agents: bool,
}

/// A call needs the unsaved text of editors. Send what changed in live items with `update-items`,
/// and then answer with `give-result`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TextWanted<'a> {
    /// Number of the question, for `give-result`.
    pub(crate) question: u64,
    /// Absolute path of the file whose text is wanted, without links; `nil` if only the changes of
    /// live items are wanted.
    pub(crate) path: Option<&'a str>,
}

of_sessions! {
    /// A session was opened, made current, renamed, deleted or restored, or its messages, view or
    /// settings changed.
    SessionChanged {
        /// Method that made the change.
        method: &'a str,
        /// Number of messages in the session's log now.
        messages: u64,
    }
    /// A chat waits for `approve`, or no longer does. A chat that ends with its client's connection
    /// withdraws its question without a notification.
    ApprovalsChanged {
        /// Number of the question; `list-approvals` returns the question.
        approval: u64,
        /// True if the question waits now, `nil` if it was answered or withdrawn.
        open: bool,
    }
    /// A window of a session was built, and differs from the previous one.
    WindowBuilt {
        /// Tokens of the window.
        tokens: u64,
        /// Maximum number of tokens in the window.
        max_tokens: u64,
    }
    /// Messages of a session were pruned.
    ContextPruned {
        /// Tokens in view before.
        original: u64,
        /// Tokens in view after.
        r#final: u64,
        /// Number of tokens saved: `:original` minus `:final`.
        token_reduction: u64,
        /// The pruned messages.
        removed: Vec<MessageShown<'a>>,
    }
    /// A session's older messages were summarized.
    ContextSummarized {
        /// Number of messages that the summary replaces.
        summarized: u64,
        /// Number of messages that stay in view.
        kept: u64,
        /// Text of the summary.
        summary: &'a str,
    }
    /// A checkpoint was taken.
    CheckpointCreated {
        /// Id of the checkpoint.
        checkpoint: CheckpointId,
        /// Number of turns before the checkpoint.
        turn: u64,
        /// Purpose of the checkpoint.
        message: &'a str,
        /// True if the server took the checkpoint by itself.
        automatic: bool,
    }
    /// Note-taking for a turn failed; the turn went on with the history in place of notes.
    ManagementFailed {
        /// Number of the turn.
        turn: u64,
        /// Name of the template.
        template: &'a str,
        /// Always `:failed`.
        status: NotesStatus,
        /// Step that failed.
        step: NotesStep,
        /// Reason for the failure.
        reason: &'a str,
    }
}

/// Returns the schema of the parameters of a topic's notifications.
pub(super) fn schema_of(topic: Topic, generator: &mut SchemaGenerator) -> Schema {
    match topic {
        Topic::ContextChanged => generator.subschema_for::<ContextChanged<'_>>(),
        Topic::SessionChanged => generator.subschema_for::<SessionChanged<'_>>(),
        Topic::WindowBuilt => generator.subschema_for::<WindowBuilt<'_>>(),
        Topic::MemoriesChanged => generator.subschema_for::<MemoriesChanged<'_>>(),
        Topic::ProvidersChanged => generator.subschema_for::<ProvidersChanged<'_>>(),
        Topic::ApprovalsChanged => generator.subschema_for::<ApprovalsChanged<'_>>(),
        Topic::AgentsChanged => generator.subschema_for::<AgentsChanged<'_>>(),
        Topic::ToolsChanged => generator.subschema_for::<ToolsChanged>(),
        Topic::TextWanted => generator.subschema_for::<TextWanted<'_>>(),
        Topic::ContextPruned => generator.subschema_for::<ContextPruned<'_>>(),
        Topic::ContextSummarized => generator.subschema_for::<ContextSummarized<'_>>(),
        Topic::CheckpointCreated => generator.subschema_for::<CheckpointCreated<'_>>(),
        Topic::ManagementFailed => generator.subschema_for::<ManagementFailed<'_>>(),
        Topic::Stats => generator.subschema_for::<Statistics>(),
    }
}
