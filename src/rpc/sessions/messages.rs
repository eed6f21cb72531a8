//! Methods about the messages of a session.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{NewMessage, Reach};
use crate::ids::MessageId;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::params::{InSession, Short, at_most, given_list, not_negative, yes};
use crate::rpc::present::MessageShown;
use crate::rpc::{Finish, Step};
use crate::session::message::{Message, Phase, Role, ToolCall};
use crate::tokens::Counter;
use crate::value::Value;
use crate::value::json::json_text;
use crate::wire::message::WireError;

/// Maximum number of messages in one call.
pub(in crate::rpc) const MAX_ADDED: usize = 100_000;

/// Description of a parameter with a history that takes the place of the session.
pub(in crate::rpc) const HISTORY: &str = "A history of the client's own, oldest first, in \
     place of the session. Each message has `:role :content :tool-calls :tool-call-id :pinned`. \
     Nothing is stored.";

/// A message from a client.
#[derive(Deserialize, JsonSchema, Default)]
#[schemars(rename = "NewMessage")]
pub(in crate::rpc) struct MessageParam {
    /// Author; defaults to `:user`.
    role: Option<Role>,
    /// The text.
    content: Option<String>,
    /// Phase of the work.
    phase: Option<Phase>,
    /// Tool calls in an assistant's message.
    tool_calls: Option<Vec<ToolCallParam>>,
    /// Id of the call that a tool's message answers.
    tool_call_id: Option<Short>,
    /// Never leave the message out of a window.
    pinned: Option<bool>,
    /// Time in Unix seconds; defaults to now.
    timestamp: Option<i64>,
    /// Id from an earlier answer; ignored in calls.
    #[serde(default, rename = "id")]
    #[schemars(skip)]
    _id: Option<Value>,
    #[serde(default, rename = "tokens")]
    #[schemars(skip)]
    _tokens: Option<Value>,
    #[serde(default, rename = "token-counter")]
    #[schemars(skip)]
    _counter: Option<Value>,
    #[serde(default, rename = "out")]
    #[schemars(skip)]
    _out: Option<Value>,
    #[serde(default, rename = "fate")]
    #[schemars(skip)]
    _fate: Option<Value>,
}

/// A tool call from a client.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewToolCall")]
pub(super) struct ToolCallParam {
    /// Id by which the result refers to the call.
    id: Short,
    /// Name of the tool.
    name: Short,
    /// Arguments: an object, or a string, which is kept unchanged.
    #[schemars(with = "serde_json::Value")]
    arguments: Option<Value>,
}

impl MessageParam {
    pub(in crate::rpc) fn of_user(content: String, phase: Option<Phase>) -> Self {
        Self { role: Some(Role::User), content: Some(content), phase, ..Self::default() }
    }

    /// Checks the message, and counts its tokens.
    pub(in crate::rpc) fn counted(self, counter: &dyn Counter) -> Result<NewMessage, WireError> {
        let role = self.role.unwrap_or(Role::User);
        if self
            .tool_calls
            .as_ref()
            .is_some_and(|calls| !calls.is_empty() && role != Role::Assistant)
        {
            return Err(param_error("tool-calls", "are allowed only in assistant messages"));
        }
        if self.tool_call_id.is_some() && role != Role::Tool {
            return Err(param_error("tool-call-id", "is allowed only in tool messages"));
        }
        let tool_calls: Vec<ToolCall> = self
            .tool_calls
            .into_iter()
            .flatten()
            .map(|call| ToolCall {
                id: call.id.0,
                name: call.name.0,
                arguments: call.arguments.map_or_else(String::new, text_of),
            })
            .collect();
        let content = self.content.unwrap_or_default();
        let tokens = NewMessage::tokens_of(counter, &content, &tool_calls);
        Ok(NewMessage {
            role,
            content: content.into(),
            phase: self.phase,
            tool_calls,
            tool_call_id: self.tool_call_id.map(|Short(id)| id),
            opaque: None,
            pinned: self.pinned.unwrap_or(false),
            tokens,
            counted_by: counter.name(),
            timestamp: self.timestamp,
        })
    }
}

/// Reads the arguments of a tool call: a text, or data to convert to JSON.
fn text_of(arguments: Value) -> String {
    match arguments {
        Value::Str(text) => text,
        Value::Nil => String::new(),
        data => json_text(&data),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddMessage {
    session: Option<InSession>,
    /// Author; defaults to `:user`.
    role: Option<Role>,
    /// The text.
    content: Option<String>,
    /// Phase of the work.
    phase: Option<Phase>,
    /// Tool calls in an assistant's message: `:id :name :arguments`.
    tool_calls: Option<Vec<ToolCallParam>>,
    /// Id of the call that a tool's message answers.
    tool_call_id: Option<Short>,
    /// Never leave the message out of a window.
    pinned: Option<bool>,
    /// Time in Unix seconds; defaults to now.
    timestamp: Option<i64>,
    /// Several messages, in place of the members of a single one.
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
}

impl AddMessage {
    /// Returns the name of the first parameter in the call that describes a single message, if
    /// there is one.
    fn beside_messages(&self) -> Option<&'static str> {
        let given = [
            ("content", self.content.is_some()),
            ("role", self.role.is_some()),
            ("phase", self.phase.is_some()),
            ("tool-calls", self.tool_calls.is_some()),
            ("tool-call-id", self.tool_call_id.is_some()),
            ("pinned", self.pinned.is_some()),
            ("timestamp", self.timestamp.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

/// Added messages.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AddedMessages")]
pub(super) struct Appended {
    /// Id of the last added message; `nil` if none was added.
    id: Option<MessageId>,
    /// Ids of all added messages.
    ids: Vec<MessageId>,
    /// Ids of added tool results whose call is not in the log; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without_call: Vec<MessageId>,
    /// Name of the session.
    session: String,
    /// Number of messages in the log now.
    messages: u64,
    /// Total tokens of the messages in the log now.
    tokens: u64,
}

pub(super) fn add_message(call: MethodCall, given: AddMessage) -> Result<Step, WireError> {
    let of_one = given.beside_messages();
    let messages = match given.messages {
        Some(messages) => match of_one {
            None => messages,
            Some(name) => {
                let message = format!("cannot be combined with the parameter {name}");
                return Err(param_error("messages", &message));
            }
        },
        None if given.content.is_none() && given.tool_calls.is_none() => {
            return Err(param_error(
                "content",
                "is required unless tool-calls or messages is given",
            ));
        }
        None => vec![MessageParam {
            role: given.role,
            content: given.content,
            phase: given.phase,
            tool_calls: given.tool_calls,
            tool_call_id: given.tool_call_id,
            pinned: given.pinned,
            timestamp: given.timestamp,
            ..MessageParam::default()
        }],
    };
    at_most("messages", MAX_ADDED, messages.len())?;
    let new = counted(messages, &call.counter())?;
    let reach = Reach::Session(given.session.as_deref().map(str::to_owned));
    Step::state_within(reach, move |engine| {
        let session = given.session.as_deref();
        let (row, said) =
            engine.in_session(session, |engine, row| engine.add_messages(row.id, new))?;
        Ok(Appended {
            id: said.numbers.last().copied().map(MessageId),
            ids: MessageId::all(&said.numbers),
            without_call: MessageId::all(&said.orphans),
            session: row.name,
            messages: row.messages,
            tokens: row.tokens,
        })
    })
}

pub(in crate::rpc) fn counted(
    messages: Vec<MessageParam>,
    counter: &dyn Counter,
) -> Result<Vec<NewMessage>, WireError> {
    messages.into_iter().map(|message| message.counted(counter)).collect()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GetMessages {
    session: Option<InSession>,
    /// `:conversation` (the default): without messages that were rolled back; `:view`: only
    /// messages in view; `:log`: all messages.
    view: Option<Which>,
    /// Return only the messages with these ids, `msg-N`.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<HashSet<MessageId>>,
    /// Id of the first message to return, `msg-N`.
    from: Option<MessageId>,
    /// Id of the last message to return, `msg-N`.
    to: Option<MessageId>,
    /// Return only messages by these authors.
    roles: Option<Vec<Role>>,
    /// Maximum number of messages; the most recent ones are returned.
    limit: Option<i64>,
}

/// The part of a session's messages to return.
#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "MessageView")]
enum Which {
    /// The messages of the conversation, including pruned and summarized ones.
    Conversation,
    /// The messages in view.
    View,
    /// All messages of the log.
    Log,
}

pub(super) fn get_messages(_: MethodCall, given: GetMessages) -> Result<Step, WireError> {
    let limit: Option<usize> = not_negative("limit", given.limit)?;
    let reach = Reach::Session(given.session.as_deref().map(str::to_owned));
    Step::then_within(reach, move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let session = engine.session(row.id)?;
        let state = session.state();
        let which = given.view.unwrap_or(Which::Conversation);
        let in_range = |number: u64| {
            given.from.is_none_or(|from| from.0 <= number)
                && given.to.is_none_or(|to| number <= to.0)
                && given.ids.as_ref().is_none_or(|ids| ids.contains(&MessageId(number)))
        };
        let wanted = |message: &&Arc<Message>| {
            let shown = match which {
                Which::Log => true,
                Which::Conversation => state.is_active(message.number),
                Which::View => state.is_in_view(message.number),
            };
            shown
                && in_range(message.number)
                && given.roles.as_ref().is_none_or(|roles| roles.contains(&message.role))
        };
        let newest = session.log().iter().rev().filter(wanted).take(limit.unwrap_or(usize::MAX));
        let mut chosen: Vec<(Arc<Message>, Option<&'static str>)> =
            newest.map(|message| (Arc::clone(message), state.why_out(message.number))).collect();
        chosen.reverse();
        let bytes = chosen.iter().map(|(message, _)| message.content.len() + 64).sum();
        let shown = |(message, out): &(Arc<Message>, Option<&'static str>)| {
            let mut shown = MessageShown::from(&**message);
            shown.out = *out;
            Value::of(&shown)
        };
        Ok(Finish::of_size(bytes, move || Value::List(chosen.iter().map(shown).collect())))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PinMessage {
    session: Option<InSession>,
    /// Id of the message, `msg-N`.
    id: Option<MessageId>,
    /// Ids of several messages; `:id` or `:ids` is required.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<Vec<MessageId>>,
    /// Pin the messages; defaults to `t`. With `nil`, unpins them.
    #[serde(default = "yes")]
    pinned: bool,
}

/// Messages that were pinned or unpinned.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PinnedMessages")]
pub(super) struct Pinned {
    /// Name of the session.
    session: String,
    /// Ids of the messages.
    ids: Vec<MessageId>,
    /// True if the messages are pinned now, and so never left out of a window.
    pinned: bool,
}

pub(super) fn pin_message(_: MethodCall, given: PinMessage) -> Result<Step, WireError> {
    let ids: Vec<MessageId> = given.id.into_iter().chain(given.ids.into_iter().flatten()).collect();
    if ids.is_empty() {
        return Err(param_error("id", "is required, or ids for more than one"));
    }
    let (pinned, numbers) = (given.pinned, ids.iter().map(|id| id.0).collect::<Vec<_>>());
    let reach = Reach::Session(given.session.as_deref().map(str::to_owned));
    Step::state_within(reach, move |engine| {
        let session = given.session.as_deref();
        let (row, ()) = engine
            .in_session(session, |engine, row| engine.pin_messages(row.id, &numbers, pinned))?;
        Ok(Pinned { session: row.name, ids, pinned })
    })
}
