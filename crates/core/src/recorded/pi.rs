//! The recordings of pi, in `~/.pi/agent/sessions/PROJECT/TIME_ID.jsonl`, and of OpenClaw, in
//! `~/.openclaw/agents/AGENT/sessions/ID.jsonl`: JSON lines with a heading. Since version 2 each
//! record names the record that it follows.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::Gathered;
use super::json::{ContentBlock, arguments, content, join};
use super::records::JsonRecord;
use super::report::{NO_PART, REASONING, UNKNOWN, clipped};
use super::tree::{TreePlace, tell_branch};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PiEntry<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    id: Option<String>,
    parent_id: Option<String>,
    timestamp: Option<String>,
    cwd: Option<String>,
    #[serde(alias = "branchedFrom")]
    parent_session: Option<String>,
    model_id: Option<String>,
    name: Option<String>,
    summary: Option<String>,
    #[serde(borrow)]
    message: Option<PiMessage<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PiMessage<'a> {
    #[serde(default)]
    role: String,
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_call_id: Option<String>,
    command: Option<String>,
}

/// Adds what the records say to `into`.
pub(super) fn read(records: &[JsonRecord<'_>], into: &mut Gathered) {
    tell_branch(records, into, place, tell);
}

/// Returns the ids of a record and of the one that it follows. The heading has an id too, but it is
/// the session's.
fn place<'b>(entry: &'b PiEntry<'_>) -> TreePlace<'b> {
    let id = entry.id.as_deref().filter(|_| entry.kind != "session");
    (id, entry.parent_id.as_deref())
}

fn tell(entry: PiEntry<'_>, into: &mut Gathered) -> serde_json::Result<()> {
    // A branch has the messages of before, which are older than its heading.
    let is_branch = entry.kind == "session" && entry.parent_session.is_some();
    let time = into.time(entry.timestamp.as_deref().filter(|_| !is_branch));
    into.note_model(entry.model_id.as_deref());
    match (&*entry.kind, entry.message) {
        ("session", _) => {
            let about = &mut into.mark.about;
            Gathered::note_once(&mut about.id, entry.id.as_deref());
            Gathered::note_once(&mut about.project, entry.cwd.as_deref());
            let parent = entry.parent_session.as_deref().map(id_in_name);
            Gathered::note_once(&mut about.forked_from, parent);
        }
        ("session_info", _) => {
            into.mark.about.title = entry.name.as_deref().map(clipped);
        }
        ("message", Some(it)) => message(&it, time, into)?,
        ("compaction", _) if into.is_empty() => {
            into.agent(&entry.summary.unwrap_or_default(), Vec::new(), time, false);
        }
        ("compaction", _) => {
            into.leave_out("compaction", "a summary of messages that are recorded in full");
        }
        (kind, _) => into.leave_out(kind, NO_PART),
    }
    Ok(())
}

/// Returns the session's id in the path of a recording, `TIME_ID.jsonl` or `ID.jsonl`.
fn id_in_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".jsonl");
    name.split_once('_').map_or(name, |(_, id)| id)
}

fn message(it: &PiMessage<'_>, time: Option<i64>, into: &mut Gathered) -> serde_json::Result<()> {
    into.note_model(it.model.as_deref());
    let (mut text, blocks) = content(it.content)?;
    let mut calls = Vec::new();
    for block in &blocks {
        match (&*block.kind, block.as_text()) {
            ("toolCall", _) => {
                let (id, name) = (block.id.as_deref(), block.name.as_deref());
                let arguments = arguments(block.arguments.or(block.input));
                calls.push(into.call(id.unwrap_or_default(), name.unwrap_or_default(), arguments));
            }
            ("thinking", _) => {
                into.leave_out("thinking", REASONING);
            }
            (_, Some(part)) => add(block, &part, &mut text, into),
            (kind, None) => {
                into.leave_out(&format!("{kind} block"), UNKNOWN);
            }
        }
    }
    match &*it.role {
        "user" => into.user(&text, time),
        "assistant" => into.agent(&text, calls, time, false),
        "toolResult" => {
            into.result(it.tool_call_id.as_deref().unwrap_or_default(), text, time);
        }
        "bashExecution" => {
            into.leave_out("output of a command", "the user ran the command, not the agent");
            into.user(&format!("!{}", it.command.as_deref().unwrap_or_default()), time);
        }
        role => into.leave_out(&format!("{role} message"), "text that the agent itself added"),
    }
    Ok(())
}

fn add(block: &ContentBlock<'_>, part: &str, text: &mut String, into: &mut Gathered) {
    if block.text.is_none() {
        into.leave_out(&block.kind, "replaced by a text such as [image]");
    }
    join(text, part);
}
