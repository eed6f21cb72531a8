//! Tells which program wrote a recording. Several members of a record decide together, since many
//! programs write records with a `type` and a `message`.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::specstory::is_markdown;
use super::{Format, aider};

/// What a record tells about the program that wrote the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Format(Format),
    /// A program whose recordings cannot be read.
    Other(&'static str),
}

/// Kinds of records that only Claude Code writes and that have no session id.
const CLAUDE: &[&str] =
    &["summary", "file-history-snapshot", "queue-operation", "custom-title", "ai-title"];
/// Kinds of items that Codex writes without an envelope.
const CODEX: &[&str] = &["message", "reasoning", "function_call", "function_call_output"];
/// Kinds of records that Qwen Code writes.
const QWEN: &[&str] = &["user", "assistant", "tool_result", "system"];

/// A record as far as it shows its format.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Any<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "record_type")]
    record_type: Option<IgnoredAny>,
    payload: Option<IgnoredAny>,
    session_id: Option<IgnoredAny>,
    project_hash: Option<IgnoredAny>,
    uuid: Option<IgnoredAny>,
    is_sidechain: Option<IgnoredAny>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    #[serde(borrow)]
    session: Option<&'a RawValue>,
    items: Option<IgnoredAny>,
    role: Option<IgnoredAny>,
    content: Option<IgnoredAny>,
    data: Option<IgnoredAny>,
    #[serde(rename = "call_id")]
    call_id: Option<IgnoredAny>,
    summary: Option<IgnoredAny>,
    version: Option<IgnoredAny>,
    cwd: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
    acp: Option<IgnoredAny>,
    timestamp: Option<IgnoredAny>,
    start_time: Option<IgnoredAny>,
}

/// The members by which agents' messages and sessions differ.
#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Inner {
    role: Option<IgnoredAny>,
    content: Option<IgnoredAny>,
    parts: Option<IgnoredAny>,
    info: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
}

impl Inner {
    fn of(raw: Option<&RawValue>) -> Self {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Reads the first element of a list.
    fn first(raw: Option<&RawValue>) -> Self {
        let list = raw.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        Self::of(list.and_then(|list| list.first().copied()))
    }

    fn is_message(&self) -> bool {
        self.role.is_some() && self.content.is_some()
    }
}

/// Returns what a line, or a JSON value on several lines, tells about the recording's format.
pub(super) fn line(text: &str) -> Option<Sign> {
    let format = match text {
        _ if text.starts_with(aider::HEADING) => Format::Aider,
        _ if is_markdown(text) => Format::Specstory,
        _ if text.trim_start().starts_with('[') => list(text)?,
        _ => return record(&serde_json::from_str(text).ok()?),
    };
    Some(Sign::Format(format))
}

/// Returns the format of a list of messages.
fn list(text: &str) -> Option<Format> {
    let raw: &RawValue = serde_json::from_str(text.trim()).ok()?;
    Inner::first(Some(raw)).is_message().then_some(Format::Cline)
}

fn record(any: &Any<'_>) -> Option<Sign> {
    let message = Inner::of(any.message);
    let of_claude = any.session_id.is_some() || any.uuid.is_some();
    let is_item = any.role.is_some() && any.content.is_some() || any.call_id.is_some();
    let format = match any.kind.as_deref() {
        Some("session_start") if any.id.is_some() => return Some(Sign::Other("Droid")),
        Some("session") if any.id.is_some() && (any.version.is_some() || any.cwd.is_some()) => {
            Format::Pi
        }
        Some("session.start") if any.data.is_some() => Format::Copilot,
        Some("user.message" | "assistant.message")
            if any.data.is_some() && any.id.is_some() && any.timestamp.is_some() =>
        {
            Format::Copilot
        }
        Some(kind) if message.parts.is_some() && of_claude && QWEN.contains(&kind) => Format::Qwen,
        Some(_) if any.payload.is_some() => Format::Codex,
        Some("user" | "assistant") if message.content.is_some() => Format::ClaudeCode,
        Some("reasoning") if any.summary.is_some() || any.content.is_some() => Format::Codex,
        Some(kind) if CODEX.contains(&kind) && is_item => Format::Codex,
        Some(kind) if CLAUDE.contains(&kind) => Format::ClaudeCode,
        Some(_) if of_claude && any.is_sidechain.is_some() => Format::ClaudeCode,
        Some(_) => return None,
        None => return without_kind(any, &message).map(Sign::Format),
    };
    Some(Sign::Format(format))
}

/// Returns the format that a record without a `type` shows.
fn without_kind(any: &Any<'_>, message: &Inner) -> Option<Format> {
    Some(match () {
        () if any.acp.is_some() => Format::Acp,
        () if any.record_type.is_some() => Format::Codex,
        () if any.session_id.is_some()
            && any.project_hash.is_some()
            && (any.messages.is_some() || any.start_time.is_some()) =>
        {
            Format::Gemini
        }
        () if Inner::of(any.info).id.is_some() && has_exported_messages(any.messages) => {
            Format::Opencode
        }
        () if Inner::of(any.session).id.is_some() && any.items.is_some() => Format::Codex,
        () if any.session_id.is_some() && Inner::first(any.messages).is_message() => Format::Cline,
        () if any.role.is_some() && message.content.is_some() => Format::Cursor,
        () if any.id.is_some() && any.timestamp.is_some() => Format::Codex,
        () => return None,
    })
}

/// Returns whether a list is empty or has messages as OpenCode exports them.
fn has_exported_messages(raw: Option<&RawValue>) -> bool {
    let first = Inner::first(raw);
    raw.is_some_and(|raw| raw.get() == "[]") || first.info.is_some() && first.parts.is_some()
}
