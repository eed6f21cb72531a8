//! Codex's recordings, which it calls rollouts: JSON lines with items of the model's protocol.
//! Each item is in an envelope, except in early versions.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::RecordedUsage;
use super::gathered::Gathered;
use super::json::{ContentBlock, DEEPEST, content, join, too_deep};
use super::records::{JsonRecord, parsed};
use super::report::{NO_PART, REASONING, UNEXPECTED, UNKNOWN, WENT_BACK};
use super::rewound::line_id;

/// A line: an envelope with its payload, or an item by itself.
#[derive(Deserialize)]
struct CodexRecord<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    id: Option<String>,
    items: Option<IgnoredAny>,
}

/// The facts at the beginning of a rollout, or of a turn.
#[derive(Deserialize)]
struct Meta {
    id: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    thread_source: Option<String>,
    source: Option<serde_json::Value>,
    parent_thread_id: Option<String>,
    forked_from_id: Option<String>,
    git: Option<Git>,
}

#[derive(Deserialize)]
struct Git {
    branch: Option<String>,
    repository_url: Option<String>,
}

impl Meta {
    /// Returns the id of the session whose agent began this one, if the source tells it.
    fn spawned_by(&self) -> Option<&str> {
        let spawned = self.source.as_ref()?.get("subagent")?.get("thread_spawn")?;
        spawned.get("parent_thread_id")?.as_str()
    }
}

#[derive(Deserialize)]
struct Compacted {
    message: Option<String>,
}

/// An event that may tell the tokens of a request.
#[derive(Deserialize)]
struct CodexEvent {
    info: Option<CodexTokenCounts>,
}

/// Tokens of all requests so far, and of the last one.
#[derive(Deserialize)]
struct CodexTokenCounts {
    total_token_usage: CodexUsage,
    last_token_usage: CodexUsage,
    model_context_window: Option<u64>,
}

/// Tokens, as the model's server counted them; those of a cache are among the input.
#[derive(Deserialize)]
struct CodexUsage {
    input_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: u64,
}

/// An item of the protocol. Which members an item has depends on its kind.
#[derive(Deserialize)]
struct CodexItem<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    name: Option<String>,
    call_id: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

/// The output of a tool: content, or, in early versions, a text with data about the run.
#[derive(Deserialize)]
struct Output<'a> {
    output: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Adds what the line `text` says to `into`. Fails if the line is malformed.
pub(super) fn record(text: &str, into: &mut Gathered) -> serde_json::Result<()> {
    let record: CodexRecord<'_> = serde_json::from_str(text)?;
    let time = into.time(record.timestamp.as_deref());
    let is_said = record.kind.as_deref() == Some("response_item");
    if is_said && into.rewound.has(Some(&line_id(into.line))) {
        into.leave_out("record", WENT_BACK);
        return Ok(());
    }
    let about = &mut into.mark.about;
    match (record.kind.as_deref(), record.payload) {
        (Some("session_meta" | "turn_context"), Some(payload)) => {
            let meta: Meta = serde_json::from_str(payload.get())?;
            // A fork repeats the beginning of its parent, and that has a heading of its own.
            if about.id.is_none() {
                let parent = meta.spawned_by().or(meta.parent_thread_id.as_deref());
                Gathered::note_once(&mut about.parent, parent);
                Gathered::note_once(&mut about.forked_from, meta.forked_from_id.as_deref());
            }
            if let Some(Git { branch, repository_url }) = &meta.git {
                Gathered::note_last(&mut about.branch, branch.as_deref());
                Gathered::note_once(&mut about.remote, repository_url.as_deref());
            }
            Gathered::note_once(&mut about.id, meta.id.as_deref());
            Gathered::note_once(&mut about.project, meta.cwd.as_deref());
            into.note_model(meta.model.as_deref());
            let spawned = meta.source.is_some_and(|source| source.get("subagent").is_some());
            if into.is_empty() && (spawned || meta.thread_source.as_deref() == Some("subagent")) {
                into.mark.is_subagent = true;
            }
        }
        (Some("response_item"), Some(payload)) => return item(payload.get(), time, into),
        (Some("compacted"), Some(payload)) => {
            let compacted: Compacted = serde_json::from_str(payload.get())?;
            match compacted.message {
                Some(summary) if into.is_empty() => into.agent(&summary, Vec::new(), time, false),
                _ => into.leave_out("compacted", "a summary of messages that are recorded in full"),
            }
        }
        (Some("event_msg"), Some(payload)) => match serde_json::from_str(payload.get()) {
            Ok(CodexEvent { info: Some(counted) }) => note_tokens(&counted, time, into),
            _ => into.leave_out("event_msg", "repeats other records, or is about the agent itself"),
        },
        (Some(_), None) => return item(text, time, into),
        (Some(kind), Some(_)) => into.leave_out(kind, NO_PART),
        (None, _) if record.items.is_some() => read_value(&[(into.line, text)], into),
        (None, _) if record.id.is_some() => {
            Gathered::note_once(&mut about.id, record.id.as_deref());
        }
        (None, _) => into.leave_out("record", "the record has no type"),
    }
    Ok(())
}

/// Notes what a request took. Codex tells the same several times; the sum then stays as it was.
fn note_tokens(counted: &CodexTokenCounts, time: Option<i64>, into: &mut Gathered) {
    let CodexTokenCounts { total_token_usage: total, last_token_usage: last, .. } = counted;
    if total.total_tokens <= into.mark.spent {
        return;
    }
    into.mark.spent = total.total_tokens;
    let usage = RecordedUsage {
        time,
        model: into.mark.about.model.clone(),
        used: last.total_tokens,
        room: counted.model_context_window.unwrap_or(0),
        input: last.input_tokens,
        output: last.output_tokens,
        cached: last.cached_input_tokens,
        ..RecordedUsage::default()
    };
    into.spend(usage, false);
}

/// A rollout of April 2025: one object with the session and its items.
#[derive(Deserialize)]
struct Rollout<'a> {
    session: CodexSession,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct CodexSession {
    id: Option<String>,
    timestamp: Option<String>,
}

/// Adds what rollouts of one object say to `into`.
pub(super) fn read_value(records: &[JsonRecord<'_>], into: &mut Gathered) {
    for (line, Rollout { session, items }) in parsed::<Rollout<'_>>(records, into) {
        into.line = line;
        let time = into.time(session.timestamp.as_deref());
        Gathered::note_once(&mut into.mark.about.id, session.id.as_deref());
        for text in items {
            if item(text.get(), time, into).is_err() {
                into.leave_out("item", UNEXPECTED);
            }
        }
    }
}

fn item(text: &str, time: Option<i64>, into: &mut Gathered) -> serde_json::Result<()> {
    let item: CodexItem<'_> = serde_json::from_str(text)?;
    match &*item.kind {
        "message" => message(&item, time, into)?,
        "reasoning" => {
            into.leave_out("reasoning", REASONING);
        }
        kind if kind.ends_with("_output") => {
            let text = item.output.map(output_text).transpose()?.unwrap_or_default();
            into.result(item.call_id.as_deref().unwrap_or_default(), text, time);
        }
        kind if kind.ends_with("_call") => call(&item, time, into)?,
        kind => into.leave_out(kind, NO_PART),
    }
    Ok(())
}

fn message(item: &CodexItem<'_>, time: Option<i64>, into: &mut Gathered) -> serde_json::Result<()> {
    let role = item.role.as_deref().unwrap_or_default();
    if !matches!(role, "user" | "assistant") {
        into.leave_out(&format!("{role} message"), "instructions from the agent itself");
        return Ok(());
    }
    let (text, blocks) = content(item.content)?;
    let mut parts = vec![Cow::Owned(text)];
    for block in &blocks {
        match block.as_text() {
            // Tags around a picture.
            Some(text) if is_picture_tag(&text) => {}
            Some(text) => parts.push(text),
            None => into.leave_out(&format!("{} block", block.kind), UNKNOWN),
        }
    }
    let mut said = String::new();
    for part in parts {
        if role == "user" {
            Gathered::note_once(&mut into.mark.about.project, folder_of(&part));
        }
        join(&mut said, &part);
    }
    match role {
        "user" => {
            into.user(&said, time);
            into.note_prompt(&line_id(into.line));
        }
        // Nothing may stand between a call and its result.
        _ => into.agent(&said, Vec::new(), time, into.is_waiting()),
    }
    Ok(())
}

fn call(item: &CodexItem<'_>, time: Option<i64>, into: &mut Gathered) -> serde_json::Result<()> {
    let name = item.name.as_deref().unwrap_or_else(|| item.kind.trim_end_matches("_call"));
    let given = item.arguments.or(item.input).or(item.action).map_or("{}", |raw| raw.get());
    // Arguments are JSON in a string; the input of a custom tool is any text.
    let arguments = match given.starts_with('"') {
        false => given.to_owned(),
        true if item.input.is_some() => format!("{{\"input\":{given}}}"),
        true => serde_json::from_str(given)?,
    };
    let call = into.call(item.call_id.as_deref().unwrap_or_default(), name, arguments);
    // Calls in a row are one answer of the model, with the text before them.
    into.agent("", vec![call], time, true);
    Ok(())
}

fn output_text(mut raw: &RawValue) -> serde_json::Result<String> {
    let mut depth = 0;
    while raw.get().starts_with('{') {
        let output: Output<'_> = serde_json::from_str(raw.get())?;
        match (output.output, output.content) {
            (Some(text), _) => return Ok(text),
            (None, Some(_)) if depth == DEEPEST => return Err(too_deep()),
            (None, Some(content)) => (raw, depth) = (content, depth + 1),
            (None, None) => {
                let (_, blocks) = content(Some(raw))?;
                let text = blocks.first().and_then(ContentBlock::as_text).map(Cow::into_owned);
                return Ok(text.unwrap_or_else(|| raw.get().to_owned()));
            }
        }
    }
    let (mut text, blocks) = content(Some(raw))?;
    if text.starts_with('{')
        && let Ok(Output { output: Some(inner), .. }) = serde_json::from_str(&text)
    {
        return Ok(inner);
    }
    for part in blocks.iter().filter_map(ContentBlock::as_text) {
        join(&mut text, &part);
    }
    Ok(text)
}

fn is_picture_tag(text: &str) -> bool {
    let text = text.trim();
    text == "</image>"
        || text.starts_with("<image name=") && text.ends_with('>') && !text.contains('\n')
}

/// Returns the folder that a text about the environment names between `<cwd>` tags.
fn folder_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<cwd>")?;
    rest.split_once("</cwd>").map(|(folder, _)| folder.trim())
}
