//! The method `chat`: its parameters, and the conversion of a turn's events to progress.

mod reply;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Step;
use super::call::MethodCall;
use super::error::param_error;
use super::error_data::PlainKind;
use super::keyed::End;
use super::messages::MessageParam;
use super::params::{InSession, ManagerName, Name, Switch, given_list, manager_names};
use super::peer::Peer;
use super::shapes::{CallId, Either};
use super::tool_names::ToolNames;
use super::window::{SectionTexts, numbers};
use crate::agent::tools::Outcome;
use crate::agent::{self, ApprovalQuestion, ChatRequest, EventSink, Later, MAX_ROUNDS, TurnEvent};
use crate::curation::summary::Extractive;
use crate::ids::MessageId;
use crate::names::names;
use crate::provider::chat;
use crate::session::message::Phase;
use crate::value::Value;
use crate::wire::message::{RequestId, WireError};

/// The result: a reply, or the preview of a dry run.
pub(super) type ChatAnswer = Either<reply::ChatResult<'static>, reply::PreviewResult<'static>>;

#[derive(Deserialize, JsonSchema, Default)]
pub(super) struct ChatParams {
    pub(super) session: Option<InSession>,
    /// The user's message.
    pub(super) content: String,
    /// Phase of the work.
    pub(super) phase: Option<Phase>,
    /// Name of the provider; defaults to the one that has the model, else to the first configured.
    pub(super) provider: Option<Name>,
    /// Model, or the name of a provider. Defaults to the model of `:provider`, else to the session's
    /// model, else to that of the default provider.
    pub(super) model: Option<Name>,
    /// Replace the history with notes in this turn; defaults to the session's setting.
    #[serde(default)]
    pub(super) manage: Switch,
    /// Template to use; implies `:manage t`. A first line `@context-helper NAME` in the message
    /// does the same.
    pub(super) template: Option<Name>,
    /// Tools that the model may call in this turn: `t` means all, `nil` none. Defaults to the
    /// session's setting, and the tools that clients bring for the session.
    #[serde(default)]
    pub(super) tools: ToolNames,
    /// Tools that the model may call without asking in this turn, besides those that are allowed
    /// in the session. `t` means the server's tools; a client's tool must be named.
    #[serde(default)]
    pub(super) allow: ToolNames,
    /// Texts to include with the conversation, as in `build-window`.
    pub(super) sections: Option<SectionTexts>,
    /// Managers whose items to include in this turn, in place of the session's managers, from
    /// general to specific.
    #[serde(default, deserialize_with = "given_list")]
    pub(super) managers: Option<Vec<ManagerName>>,
    /// Ids of messages to bring back into the windows of this turn, whole and with the messages that
    /// belong to them, as far as they fit. The first ids come first. Ids that are not in view are ignored.
    #[serde(default, deserialize_with = "given_list")]
    pub(super) restore: Option<Vec<MessageId>>,
    /// Show the request that would be sent from the session as it is now. It is without new notes, and
    /// without the memories that the turn would find. Nothing is sent or changed.
    pub(super) dry_run: Option<bool>,
}

pub(super) fn chat(call: MethodCall, given: ChatParams) -> Result<Step, WireError> {
    if given.content.trim().is_empty() {
        return Err(param_error("content", "must not be blank"));
    }
    let dry_run = given.dry_run.unwrap_or(false);
    let request = request(&call, given)?;
    // Reports invalid names before anything is done.
    let (provider, model) = (request.provider.as_deref(), request.model.as_deref());
    call.tools.providers.find(provider, model)?;
    Ok(Step::AwaitEnd(Box::pin(async move {
        Ok(Step::Done(match dry_run {
            true => reply::preview(&agent::preview(call.job(), request).await?),
            false => turn(call, request).await?,
        }))
    })))
}

pub(super) fn request(call: &MethodCall, given: ChatParams) -> Result<ChatRequest, WireError> {
    let counter = &call.counter();
    let message = MessageParam::of_user(given.content, given.phase).counted(counter)?;
    Ok(ChatRequest {
        session: given.session.map(|InSession(name)| name),
        message,
        coherence: None,
        phase: given.phase,
        sections: given.sections.unwrap_or_default().counted(counter),
        provider: given.provider.map(|Name(name)| name),
        model: given.model.map(|Name(name)| name),
        max_rounds: MAX_ROUNDS,
        temperature: None,
        max_tokens: None,
        summarizer: Arc::new(Extractive),
        manage: given.manage.0,
        template: given.template.map(|Name(name)| name),
        toolbox: call.tools.client_tools.toolbox(&call.client),
        tools: given.tools.offered(call, "tools")?,
        choice: chat::ToolChoice::default(),
        output: None,
        allow: given.allow.stored(call, "allow")?.unwrap_or_default(),
        managers: given.managers.map(manager_names).transpose()?,
        restored: numbers(given.restore),
        if_version: call.in_steps.if_version,
        key: call.in_steps.key.as_ref().map(|key| key.name().to_owned()),
    })
}

/// Takes the turn, unless an earlier call with the same key did.
async fn turn(call: MethodCall, request: ChatRequest) -> Result<Value, WireError> {
    let (job, engine, key) = (call.job(), call.tools.engine.clone(), call.in_steps.key);
    if let Some(key) = &key
        && let Some(answer) = key.begin(&engine).await?
    {
        return answer;
    }
    let ending = call.tools.ending.clone();
    let events = Arc::new(ChatProgress { id: call.id, peer: call.peer, effective: call.effective });
    let reply = agent::chat(job, request, events).await;
    let failed_before = match &key {
        Some(key) if reply.is_ok() => key.failed_before(&engine).await?,
        _ => None,
    };
    let answer = reply.map(|reply| reply::reply(&reply, failed_before.as_deref()));
    let answer = answer.map_err(WireError::from);
    if let Some(key) = key {
        let end = match () {
            () if ending.is_cancelled() => End::BrokenOff(PlainKind::ShuttingDown.name()),
            () if call.hung_up.is_cancelled() => End::BrokenOff(HUNG_UP),
            () if call.cancelled.is_cancelled() => End::Cancelled,
            () => End::ByItself,
        };
        key.end(&engine, &answer, end).await;
    }
    answer
}

/// Value of `:failed-before` for a turn whose client hung up.
const HUNG_UP: &str = "hung-up";

/// Sends the events of a turn to the client as progress. Sends nothing for a call without an id.
struct ChatProgress {
    id: Option<RequestId>,
    peer: Arc<dyn Peer>,
    effective: CancellationToken,
}

impl EventSink for ChatProgress {
    fn begun(&self) {
        self.effective.cancel();
    }

    fn send(&self, event: TurnEvent) -> bool {
        let Some(id) = self.id.clone() else { return false };
        let (kind, text, more) = kind_text_and_more(event);
        let params = ProgressParams { id: id.into(), kind, text, more };
        self.peer.progress(Value::of(&params))
    }

    fn room(&self) -> Later<'_, ()> {
        self.peer.room()
    }
}

names! {
    /// The kind of an event in a chat.
    ProgressKind {
        /// A step of the turn, as a phrase to read.
        Status => "status",
        /// The reason why the model is asked again, as a phrase to read.
        Retry => "retry",
        /// More of the answer.
        Text => "text",
        /// More of the model's reasoning.
        Reasoning => "reasoning",
        /// The model calls a tool.
        ToolCall => "tool-call",
        /// A call of a tool has ended.
        ToolResult => "tool-result",
        /// The turn waits until `approve` decides on a tool call.
        Approval => "approval",
    }
}

/// Progress of a chat.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChatProgress")]
pub(in crate::rpc) struct ProgressParams {
    /// Id of the call.
    #[schemars(with = "CallId")]
    id: Value,
    /// Kind of the event.
    kind: ProgressKind,
    /// Text of the event: more of the answer or of the reasoning, a phrase to read, or in
    /// `:tool-call` the name of the tool.
    text: String,
    #[serde(flatten)]
    more: More,
}

/// Fields that only some events have.
#[derive(Serialize, JsonSchema, Default)]
struct More {
    /// Number of the question, for `approve`; only in `:approval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<u64>,
    /// Name of the tool; only in `:tool-result` and `:approval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Outcome of the call; only in `:tool-result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    /// Arguments as JSON; only in `:tool-call` and `:approval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
    /// Place outside the session's project that the call reaches; only in `:approval`, and only if
    /// there is such a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<String>,
}

fn kind_text_and_more(event: TurnEvent) -> (ProgressKind, String, More) {
    let more = More::default();
    match event {
        TurnEvent::Status(text) => (ProgressKind::Status, text, more),
        TurnEvent::Retry(text) => (ProgressKind::Retry, text, more),
        TurnEvent::Text(text) => (ProgressKind::Text, text, more),
        TurnEvent::Reasoning(text) => (ProgressKind::Reasoning, text, more),
        TurnEvent::ToolCall { tool, arguments, .. } => {
            (ProgressKind::ToolCall, tool, More { arguments: Some(arguments), ..more })
        }
        TurnEvent::ToolResult { tool, outcome, text, .. } => {
            let line = match outcome {
                Outcome::Done => format!("{tool}: {}", outcome.name()),
                _ => format!("{tool}: {}: {text}", outcome.name()),
            };
            (
                ProgressKind::ToolResult,
                line,
                More { tool: Some(tool), outcome: Some(outcome), ..more },
            )
        }
        TurnEvent::Approval(ApprovalQuestion {
            number, tool, arguments, phrase, outside, ..
        }) => {
            let (approval, tool, arguments) = (Some(number), Some(tool), Some(arguments));
            (
                ProgressKind::Approval,
                phrase,
                More { approval, tool, arguments, outside, outcome: None },
            )
        }
    }
}
