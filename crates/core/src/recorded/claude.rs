//! Claude Code's JSON lines: one record per line. Several records may be pieces of one message.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::RecordedUsage;
use super::acp::sum;
use super::gathered::Gathered;
use super::json::{ContentBlock, arguments, content, join};
use super::report::{NO_PART, NOTICE, REASONING, UNKNOWN, WENT_BACK, clipped};
use crate::session::message::ToolCall;

/// A record. Which members a record has depends on its kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeRecord<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    subtype: Option<String>,
    uuid: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    timestamp: Option<String>,
    is_sidechain: Option<bool>,
    agent_id: Option<String>,
    git_branch: Option<String>,
    forked_from: Option<Forked>,
    origin: Option<ClaudeAuthor>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
    summary: Option<String>,
    custom_title: Option<String>,
    ai_title: Option<String>,
}

/// The session of which a record is a copy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Forked {
    session_id: Option<String>,
}

/// Who wrote a message of the user's turn.
#[derive(Deserialize)]
struct ClaudeAuthor {
    kind: Option<String>,
}

impl ClaudeAuthor {
    fn is_program(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| !matches!(kind, "human" | "user"))
    }
}

#[derive(Deserialize)]
struct ClaudeMessage<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// Tokens of a request, as the model's server counted them.
#[derive(Deserialize)]
struct ClaudeUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attachment<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    command_mode: Option<String>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    filename: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The content of an attached file.
#[derive(Deserialize)]
struct Attached {
    file: Option<AttachedFile>,
}

#[derive(Deserialize)]
struct AttachedFile {
    content: Option<String>,
}

/// Model name in messages that Claude Code itself writes.
const SYNTHETIC: &str = "<synthetic>";

/// Adds what the record `text` says to `into`. Fails if the record is malformed.
pub(super) fn record(text: &str, into: &mut Gathered) -> serde_json::Result<()> {
    let record: ClaudeRecord<'_> = serde_json::from_str(text)?;
    let time = into.time(record.timestamp.as_deref());
    note_session(&record, into);
    let about = &mut into.mark.about;
    // The user's own title wins over a model's title, and later titles win over earlier ones.
    let is_named = into.mark.title_is_given;
    match &*record.kind {
        "summary" | "ai-title" if is_named => {}
        "summary" => retitle(&mut about.title, record.summary),
        "ai-title" => retitle(&mut about.title, record.ai_title),
        "custom-title" => {
            into.mark.title_is_given = record.custom_title.is_some();
            retitle(&mut about.title, record.custom_title);
        }
        "user" | "assistant" | "attachment" => return conversation(text, &record, time, into),
        "system" => {
            let subtype = record.subtype.as_deref().unwrap_or("system");
            into.leave_out(&format!("{subtype} notice"), NOTICE);
        }
        "progress" => into.leave_out("progress", "shows the progress of a tool or subagent"),
        "" => into.leave_out("record", "the record has no type"),
        kind => into.leave_out(kind, NO_PART),
    }
    Ok(())
}

/// Notes which session a record belongs to. In a file of a subagent, every record belongs to a
/// sidechain, and has the id of the session whose agent began it.
fn note_session(record: &ClaudeRecord<'_>, into: &mut Gathered) {
    let is_first = into.is_empty() && into.mark.about.id.is_none();
    let about = &mut into.mark.about;
    Gathered::note_once(&mut about.project, record.cwd.as_deref());
    Gathered::note_last(&mut about.branch, record.git_branch.as_deref());
    let forked = record.forked_from.as_ref().and_then(|forked| forked.session_id.as_deref());
    Gathered::note_once(&mut about.forked_from, forked);
    match (&record.session_id, &record.agent_id) {
        (Some(session), Some(agent)) if is_first && record.is_sidechain == Some(true) => {
            about.parent = Some(session.clone());
            about.id = Some(format!("{session}/{agent}"));
            into.mark.is_subagent = true;
        }
        (session, _) => Gathered::note_once(&mut about.id, session.as_deref()),
    }
}

/// Sets the title, unless the record has none.
fn retitle(title: &mut Option<String>, new: Option<String>) {
    *title = new.as_deref().map(clipped).or(title.take());
}

fn conversation(
    text: &str,
    record: &ClaudeRecord<'_>,
    time: Option<i64>,
    into: &mut Gathered,
) -> serde_json::Result<()> {
    if record.is_sidechain == Some(true) && !into.mark.is_subagent {
        into.leave_out("sidechain", "the conversation of a subagent");
        return Ok(());
    }
    if into.rewound.has(record.uuid.as_deref()) {
        into.leave_out("record", WENT_BACK);
        return Ok(());
    }
    if !into.is_new_record(record.uuid.as_deref().unwrap_or(text)) {
        return Ok(());
    }
    match (&*record.kind, record.message, record.attachment) {
        ("user", Some(message), _) => user(record, message, time, into),
        ("assistant", Some(message), _) => assistant(message, time, into),
        ("attachment", _, Some(attachment)) => attached(attachment, time, into),
        (kind, ..) => {
            into.leave_out(kind, "the record has no content");
            Ok(())
        }
    }
}

fn user(
    record: &ClaudeRecord<'_>,
    message: &RawValue,
    time: Option<i64>,
    into: &mut Gathered,
) -> serde_json::Result<()> {
    let message: ClaudeMessage<'_> = serde_json::from_str(message.get())?;
    if message.content.is_none() {
        into.leave_out("user", "the record has no content");
    }
    let (mut said, blocks) = content(message.content)?;
    for block in &blocks {
        match (&*block.kind, &block.tool_use_id) {
            ("tool_result", Some(id)) => {
                let result = text_of(block.content, into)?;
                into.result(id, result, time);
            }
            _ => add(block, &mut said, into),
        }
    }
    match () {
        () if said.trim().is_empty() => {}
        () if record.is_compact_summary == Some(true) && !into.is_empty() => {
            into.leave_out("compaction", "a summary of messages that are recorded in full");
        }
        () if record.origin.as_ref().is_some_and(ClaudeAuthor::is_program) => {
            into.leave_out("text in the user's turn", "text that a program added");
        }
        () if record.is_meta == Some(true) => {
            if !into.add_to_result(&said) {
                into.leave_out("meta", "text that the agent itself added");
            }
        }
        () => {
            into.user(&said, time);
            into.note_prompt(record.uuid.as_deref().unwrap_or_default());
        }
    }
    Ok(())
}

fn assistant(message: &RawValue, time: Option<i64>, into: &mut Gathered) -> serde_json::Result<()> {
    let message: ClaudeMessage<'_> = serde_json::from_str(message.get())?;
    if message.model.as_deref() == Some(SYNTHETIC) {
        into.leave_out("synthetic", NOTICE);
        return Ok(());
    }
    into.note_model(message.model.as_deref());
    let id = message.id.unwrap_or_default();
    let goes_on = !id.is_empty() && into.mark.last_answer == id;
    if !goes_on {
        // A model is asked again only when all its calls have been answered.
        into.end_calls(time);
        into.mark.last_answer = id;
    }
    if let Some(Ok(tokens)) = message.usage.map(|usage| serde_json::from_str(usage.get())) {
        let model = into.mark.about.model.clone();
        into.spend(RecordedUsage { time, model, ..usage(&tokens) }, goes_on);
    }
    if message.content.is_none() {
        into.leave_out("assistant", "the record has no content");
    }
    let (mut said, blocks) = content(message.content)?;
    let mut calls = Vec::<ToolCall>::new();
    for block in &blocks {
        match (&*block.kind, &block.id, &block.name) {
            ("tool_use" | "server_tool_use", Some(id), Some(name)) => {
                calls.push(into.call(id, name, arguments(block.input)));
            }
            (kind, ..)
                if kind.ends_with("_tool_result")
                    && let Some(id) = &block.tool_use_id =>
            {
                into.agent(&std::mem::take(&mut said), std::mem::take(&mut calls), time, goes_on);
                let result = text_of(block.content, into)?;
                into.result(id, result, time);
            }
            _ => add(block, &mut said, into),
        }
    }
    into.agent(&said, calls, time, goes_on);
    Ok(())
}

/// Returns what a request took. The window has the answer afterwards, too.
fn usage(tokens: &ClaudeUsage) -> RecordedUsage {
    let ClaudeUsage {
        input_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
        output_tokens,
    } = *tokens;
    let input = sum([input_tokens, cache_creation_input_tokens, cache_read_input_tokens]);
    RecordedUsage {
        used: sum([input, output_tokens, None]).unwrap_or(0),
        input,
        output: output_tokens,
        cached: cache_read_input_tokens,
        ..RecordedUsage::default()
    }
}

/// Appends to `text` the text of a block that is neither a call nor a result. Counts a block
/// without text as left out.
fn add(block: &ContentBlock<'_>, text: &mut String, into: &mut Gathered) {
    match (block.as_text(), &*block.kind) {
        (Some(part), _) => {
            if block.text.is_none() {
                into.leave_out(&block.kind, "replaced by a text such as [image]");
            }
            join(text, &part);
        }
        (None, "thinking" | "redacted_thinking") => {
            into.leave_out("thinking", REASONING);
        }
        (None, kind) => into.leave_out(&format!("{kind} block"), UNKNOWN),
    }
}

fn text_of(raw: Option<&RawValue>, into: &mut Gathered) -> serde_json::Result<String> {
    let (mut text, blocks) = content(raw)?;
    blocks.iter().for_each(|block| add(block, &mut text, into));
    Ok(text)
}

/// Reads an attachment: text that the user typed while the agent worked, or a file. Counts other
/// attachments as left out.
fn attached(
    attachment: &RawValue,
    time: Option<i64>,
    into: &mut Gathered,
) -> serde_json::Result<()> {
    let attachment: Attachment<'_> = serde_json::from_str(attachment.get())?;
    let is_typed = attachment.command_mode.as_deref().is_none_or(|mode| mode == "prompt");
    match (&*attachment.kind, attachment.prompt, attachment.content) {
        ("queued_command", Some(prompt), _) if is_typed => {
            let said = text_of(Some(prompt), into)?;
            into.user(&said, time);
        }
        ("file", _, Some(content)) => {
            let file: Option<Attached> = serde_json::from_str(content.get()).ok();
            let text = file.and_then(|it| it.file).and_then(|file| file.content);
            match text {
                Some(text) => {
                    let name = attachment.filename.unwrap_or_default();
                    into.user(&format!("[attached file: {name}]\n{text}"), time);
                }
                None => into.leave_out("file attachment", "the file has no text"),
            }
        }
        (kind, ..) => {
            into.leave_out(&format!("{kind} attachment"), NOTICE);
        }
    }
    Ok(())
}
