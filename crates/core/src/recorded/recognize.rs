//! Tells which program wrote a recording. Several members of a record decide together, since many
//! programs write records with a `type` and a `message`.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::specstory::is_markdown;
use super::{Format, aider};

/// What a record tells about the program that wrote the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatSign {
    Format(Format),
    /// A sign that counts only in the first record.
    Weak(Format),
    /// A program whose recordings cannot be read.
    Other(&'static str),
}

/// Kinds of records that only Claude Code writes and that have no session id.
const CLAUDE: &[&str] = &["file-history-snapshot", "queue-operation", "custom-title", "ai-title"];
/// Kinds of items that Codex writes without an envelope.
const CODEX: &[&str] = &["message", "reasoning", "function_call", "function_call_output"];
/// Kinds of records that Qwen Code writes.
const QWEN: &[&str] = &["user", "assistant", "tool_result", "system"];

/// Programs whose recordings cannot be read, each with members that stand together in a record, and the
/// value of the first.
const OTHERS: &[(&str, &[&str], &str)] = &[
    ("Amp", &["v", "id", "messages", "created"], ""),
    ("Antigravity", &["step_index", "source", "status"], ""),
    ("ChatGPT", &["mapping", "title"], ""),
    ("claude.ai", &["chat_messages", "uuid"], ""),
    ("Continue", &["history", "sessionId", "workspaceDirectory"], ""),
    ("GitHub Copilot Chat", &["requests", "responderUsername"], ""),
    ("Droid", &["type", "id"], "\"session_start\""),
    ("goose", &["working_dir", "description"], ""),
    ("Grok", &["method", "params"], "\"session/update\""),
    ("Hermes", &["session_id", "session_start", "messages"], ""),
    ("Kimi", &["type", "protocol_version"], "\"metadata\""),
    ("Kimi", &["role", "id"], "\"_checkpoint\""),
];
/// Lines in texts that programs export or record, each with its beginning and a part of it.
const LINES: &[(&str, &str, &str)] = &[
    ("Cursor, exported", "_Exported on ", " from Cursor"),
    ("Qwen Code, exported", "# Qwen Code Conversation Export", ""),
    ("Copilot CLI, exported", "# 🤖 Copilot CLI Session", ""),
    ("Grok", "{\"type\":\"system\",\"content\":\"You are Grok", ""),
];
/// Kinds of envelopes that Codex writes.
const ENVELOPES: &[&str] =
    &["compacted", "event_msg", "response_item", "session_meta", "turn_context", "world_state"];

/// A record as far as it shows its format.
#[derive(Deserialize)]
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
    leaf_uuid: Option<IgnoredAny>,
    /// True if the record has instructions, be they null.
    #[serde(default, deserialize_with = "present")]
    instructions: bool,
}

fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}

/// The members by which agents' messages and sessions differ.
#[derive(Deserialize, Default)]
#[serde(default)]
struct InnerMembers {
    role: Option<IgnoredAny>,
    content: Option<IgnoredAny>,
    parts: Option<IgnoredAny>,
    info: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
}

impl InnerMembers {
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
pub(super) fn line(text: &str) -> Option<FormatSign> {
    let format = match text {
        _ if text.starts_with(aider::HEADING) => Format::Aider,
        _ if is_markdown(text) => Format::Specstory,
        _ if let Some(program) = other(text) => return Some(FormatSign::Other(program)),
        _ if text.trim_start().starts_with('[') => list(text)?,
        _ => return record(&first_value(text)?),
    };
    Some(FormatSign::Format(format))
}

/// Returns the program whose recordings cannot be read, if a line shows one.
fn other(text: &str) -> Option<&'static str> {
    let is_line =
        |(_, start, part): &&(_, &str, &str)| text.starts_with(start) && text.contains(part);
    if let Some((program, ..)) = LINES.iter().find(is_line) {
        return Some(program);
    }
    let text = text.trim_start();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let members: HashMap<Cow<'_, str>, &RawValue> = match text.starts_with('[') {
        true => serde_json::from_str::<Vec<HashMap<_, _>>>(text).ok()?.into_iter().next()?,
        false => first_value(text)?,
    };
    let is_it = |(_, names, first): &&(&str, &[&str], &str)| {
        names.iter().all(|name| members.contains_key(*name))
            && (first.is_empty() || members[names[0]].get() == *first)
    };
    OTHERS.iter().find(is_it).map(|(program, ..)| *program)
}

/// Returns the first JSON value in a line. Another may follow, if a program was ended while it wrote.
fn first_value<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// Returns the format of a list of messages.
fn list(text: &str) -> Option<Format> {
    let raw: &RawValue = serde_json::from_str(text.trim()).ok()?;
    InnerMembers::first(Some(raw)).is_message().then_some(Format::Cline)
}

fn record(any: &Any<'_>) -> Option<FormatSign> {
    let message = InnerMembers::of(any.message);
    let of_claude = any.session_id.is_some() || any.uuid.is_some();
    let is_item = any.role.is_some() && any.content.is_some() || any.call_id.is_some();
    let format = match any.kind.as_deref() {
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
        Some(kind) if any.payload.is_some() && ENVELOPES.contains(&kind) => Format::Codex,
        Some("user" | "assistant") if message.content.is_some() => Format::ClaudeCode,
        Some("reasoning") if any.summary.is_some() || any.content.is_some() => {
            return Some(FormatSign::Weak(Format::Codex));
        }
        Some(kind) if CODEX.contains(&kind) && is_item => {
            return Some(FormatSign::Weak(Format::Codex));
        }
        Some(kind) if CLAUDE.contains(&kind) => Format::ClaudeCode,
        Some("summary") if any.leaf_uuid.is_some() => Format::ClaudeCode,
        Some("summary") if any.summary.is_some() => {
            return Some(FormatSign::Weak(Format::ClaudeCode));
        }
        Some(_) if of_claude && any.is_sidechain.is_some() => Format::ClaudeCode,
        Some(_) => return None,
        None if any.instructions && any.id.is_some() && any.timestamp.is_some() => {
            let format = without_kind(any, &message);
            return format.map(FormatSign::Format).or(Some(FormatSign::Weak(Format::Codex)));
        }
        None => return without_kind(any, &message).map(FormatSign::Format),
    };
    Some(FormatSign::Format(format))
}

/// Returns the format that a record without a `type` shows.
fn without_kind(any: &Any<'_>, message: &InnerMembers) -> Option<Format> {
    Some(match () {
        () if any.acp.is_some() => Format::Acp,
        () if any.record_type.is_some() => Format::Codex,
        () if any.session_id.is_some()
            && any.project_hash.is_some()
            && (any.messages.is_some() || any.start_time.is_some()) =>
        {
            Format::Gemini
        }
        () if InnerMembers::of(any.info).id.is_some() && has_exported_messages(any.messages) => {
            Format::Opencode
        }
        () if InnerMembers::of(any.session).id.is_some() && any.items.is_some() => Format::Codex,
        () if any.session_id.is_some() && InnerMembers::first(any.messages).is_message() => {
            Format::Cline
        }
        () if any.role.is_some() && message.content.is_some() => Format::Cursor,
        () => return None,
    })
}

/// Returns whether a list is empty or has messages as OpenCode exports them.
fn has_exported_messages(raw: Option<&RawValue>) -> bool {
    let first = InnerMembers::first(raw);
    raw.is_some_and(|raw| raw.get() == "[]") || first.info.is_some() && first.parts.is_some()
}
