//! Messages in the form of the library and in the form of chat completions.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

use crate::curation::window::MessagePart;
use crate::engine::NewMessage;
use crate::provider::chat::ChatMessage;
use crate::session::message::{self as logged, Phase, Role, ToolCall};
use crate::tokens::Counter;

/// A message: an author, a text, and the message's tool calls.
///
/// Messages are serialized in the form of chat completions, so a program that keeps its own history
/// in this form can read the history directly. Only roles, texts, tool calls and the ids of calls
/// are read; images, names and other fields are dropped.
///
/// ```
/// # fn main() -> Result<(), serde_json::Error> {
/// let message: contexture::Message = serde_json::from_str(
///     r#"{"role": "assistant", "content": null, "tool_calls": [
///         {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]}"#,
/// )?;
/// assert_eq!(message.tool_calls[0].name, "now");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Author of the message.
    #[serde(with = "Author")]
    pub role: Role,
    /// The text.
    #[serde(default, deserialize_with = "text")]
    pub content: String,
    /// Tool calls of an assistant message.
    #[serde(default, with = "calls", skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Phase of the work. Not serialized.
    #[serde(skip)]
    pub phase: Option<Phase>,
    /// True if the message is never left out of a window. Not serialized.
    #[serde(skip)]
    pub pinned: bool,
}

impl Message {
    /// Creates a message that has only an author and a text.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            phase: None,
            pinned: false,
        }
    }

    /// Creates a user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates an assistant message.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// Creates an assistant message with tool calls.
    pub fn calling(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { tool_calls, ..Self::assistant(content) }
    }

    /// Creates a system message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System, content)
    }

    /// Creates the result of a tool call.
    pub fn tool(tool_call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(tool_call_id.into()), ..Self::new(Role::Tool, content) }
    }

    /// Marks the message as one that is never left out of a window.
    #[must_use]
    pub fn pinned(self) -> Self {
        Self { pinned: true, ..self }
    }

    /// Sets the phase of the work.
    #[must_use]
    pub fn phase(self, phase: Phase) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// Counts the message's tokens and converts it to the form for the engine.
    pub(super) fn counted(self, counter: &dyn Counter) -> NewMessage {
        NewMessage {
            phase: self.phase,
            tool_call_id: self.tool_call_id,
            pinned: self.pinned,
            ..NewMessage::counted(self.role, &self.content, self.tool_calls, counter)
        }
    }
}

impl From<&str> for Message {
    /// Creates a user message.
    fn from(content: &str) -> Self {
        Self::user(content)
    }
}

impl From<String> for Message {
    /// Creates a user message.
    fn from(content: String) -> Self {
        Self::user(content)
    }
}

impl From<&logged::Message> for Message {
    fn from(message: &logged::Message) -> Self {
        Self {
            role: message.role,
            content: message.content.to_string(),
            tool_calls: message.tool_calls.clone(),
            tool_call_id: message.tool_call_id.clone(),
            phase: message.phase,
            pinned: message.pinned,
        }
    }
}

impl From<&MessagePart> for Message {
    fn from(part: &MessagePart) -> Self {
        Self {
            tool_calls: part.tool_calls.clone(),
            tool_call_id: part.tool_call_id.clone(),
            ..Self::new(part.role, &*part.content)
        }
    }
}

impl From<Message> for ChatMessage {
    fn from(message: Message) -> Self {
        Self {
            tool_calls: message.tool_calls,
            tool_call_id: message.tool_call_id,
            ..Self::new(message.role, &message.content)
        }
    }
}

/// A history of these messages can be curated; see [`curate`](crate::curate).
impl contexture_curate::Message for Message {
    fn role(&self) -> Role {
        self.role
    }

    fn text(&self) -> Cow<'_, str> {
        (&self.content).into()
    }

    fn calls(&self) -> Vec<contexture_curate::Call<'_>> {
        let calls = self.tool_calls.iter();
        calls.map(|it| contexture_curate::Call::new(&it.id, &it.name, &it.arguments)).collect()
    }

    fn answers(&self) -> Vec<Cow<'_, str>> {
        self.tool_call_id.iter().map(Cow::from).collect()
    }

    fn is_pinned(&self) -> bool {
        self.pinned
    }
}

/// A role in the form of chat completions.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Role", rename_all = "lowercase")]
enum Author {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

/// Reads a text, or a list of parts, of which only the texts are used.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ChatContent {
        Text(String),
        Parts(Vec<TextPart>),
        None,
    }

    #[derive(Deserialize)]
    struct TextPart {
        #[serde(default)]
        text: String,
    }

    Ok(match ChatContent::deserialize(deserializer)? {
        ChatContent::Text(text) => text,
        ChatContent::Parts(parts) => parts.into_iter().map(|part| part.text).collect(),
        ChatContent::None => String::new(),
    })
}

/// Tool calls in the form of chat completions.
mod calls {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::ToolCall;

    #[derive(Serialize, Deserialize)]
    struct CallForm {
        id: String,
        #[serde(default)]
        r#type: String,
        function: Function,
    }

    #[derive(Serialize, Deserialize)]
    struct Function {
        name: String,
        #[serde(default)]
        arguments: String,
    }

    pub(super) fn serialize<S: Serializer>(
        calls: &[ToolCall],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let call = |ToolCall { id, name, arguments }| CallForm {
            id,
            r#type: "function".to_owned(),
            function: Function { name, arguments },
        };
        serializer.collect_seq(calls.iter().cloned().map(call))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<ToolCall>, D::Error> {
        let calls = Option::<Vec<CallForm>>::deserialize(deserializer)?;
        let call = |CallForm { id, function: Function { name, arguments }, .. }| ToolCall {
            id,
            name,
            arguments,
        };
        Ok(calls.into_iter().flatten().map(call).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &Message) {
        let message: Message = serde_json::from_str(json).unwrap();
        assert_eq!(message, *expected);
        let again: Message =
            serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
        assert_eq!(again, *expected);
    }

    #[test]
    fn chat_completions_are_read_and_written() {
        check(r#"{"role": "user", "content": "x"}"#, &Message::user("x"));
        check(
            r#"{"role": "assistant", "content": "x", "tool_calls": null}"#,
            &Message::assistant("x"),
        );
        check(r#"{"role": "developer", "content": "x"}"#, &Message::system("x"));
        check(r#"{"role": "tool", "content": "x", "tool_call_id": "1"}"#, &Message::tool("1", "x"));
        let call = ToolCall { id: "1".into(), name: "now".into(), arguments: "{}".into() };
        check(
            r#"{"role": "assistant", "content": null, "refusal": null, "tool_calls":
                [{"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]}"#,
            &Message::calling("", vec![call]),
        );
        check(
            r#"{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}"#,
            &Message::user("a"),
        );
    }
}
