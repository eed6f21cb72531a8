//! The recordings of Cline, Roo Code and Kilo Code: `api_conversation_history.json` in a folder for
//! each task, below the editor's `globalStorage/PUBLISHER.NAME/tasks`; and of Cline since 2026,
//! `~/.cline/data/sessions/ID/ID.messages.json`.
//!
//! The first is a list of messages as Anthropic's models have them, the second an object with such a
//! list. Until 2025, calls of tools stand as tags in the text of the agent. Their results, and those
//! of some later calls too, stand as texts that begin with the name of the tool.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::{Gathered, MOST_WAITING};
use super::json::{self, ContentBlock, content, join};
use super::parts::result_text;
use super::records::{JsonRecord, each, parsed};
use super::report::{NO_PART, REASONING, UNEXPECTED, UNKNOWN};
use crate::session::message::ToolCall;

/// A recording that is an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClineSession<'a> {
    session_id: Option<String>,
    cwd: Option<String>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClineMessage<'a> {
    #[serde(default)]
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    ts: Option<f64>,
    model_info: Option<ClineModel>,
    is_summary: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClineModel {
    id: Option<String>,
    model_id: Option<String>,
}

/// Maximum number of tags in a call that are not closed.
const MOST_UNCLOSED: usize = 100;
/// Names of the tools whose calls stand as tags in the text.
const TOOLS: &[&str] = &[
    "access_mcp_resource",
    "apply_diff",
    "apply_patch",
    "ask_followup_question",
    "attempt_completion",
    "browser_action",
    "codebase_search",
    "condense",
    "edit_file",
    "execute_command",
    "fetch_instructions",
    "generate_image",
    "insert_content",
    "list_code_definition_names",
    "list_files",
    "load_mcp_documentation",
    "new_rule",
    "new_task",
    "plan_mode_respond",
    "read_file",
    "replace_in_file",
    "report_bug",
    "run_slash_command",
    "search_and_replace",
    "search_files",
    "switch_mode",
    "update_todo_list",
    "use_mcp_tool",
    "web_fetch",
    "web_search",
    "write_to_file",
];

/// Beginnings of texts that are not part of a result, although they follow it.
const NOT_IN_RESULT: &[&str] =
    &["<environment_details>", "# TODO LIST UPDATE REQUIRED", "# task_progress"];
/// Beginnings of texts in which the program tells the model what the user said, in [`ANSWERS`], or
/// that the user said nothing.
const TOLD_BY_PROGRAM: &[&str] = &[
    "[TASK RESUMPTION]",
    "New message to respond to",
    "New instructions for task continuation:",
    "The user provided the following feedback:",
    "(The user did not provide",
];

/// Calls that have no result yet: of each, the id in the recording and the name of the tool.
type ClineOpenCalls = Vec<(String, String)>;

/// Tags around what the user said in the answer to a tool.
const ANSWERS: &[&str] = &["feedback", "answer", "user_message"];

/// Beginnings of the lines that name the folder of the task.
const FOLDERS: &[&str] = &["# Current Working Directory (", "# Current Workspace Directory ("];

/// Adds what the records say to `into`.
pub(super) fn read(records: &[JsonRecord<'_>], into: &mut Gathered) {
    for record in records {
        into.line = record.0;
        let messages = if record.1.trim_start().starts_with('[') {
            parsed::<Vec<&RawValue>>(&[*record], into).pop().map(|(_, messages)| messages)
        } else {
            parsed::<ClineSession<'_>>(&[*record], into).pop().map(|(_, session)| {
                Gathered::note_once(&mut into.mark.about.id, session.session_id.as_deref());
                Gathered::note_once(&mut into.mark.about.project, session.cwd.as_deref());
                session.messages
            })
        };
        let mut open = Vec::new();
        let messages = messages.unwrap_or_default();
        for message in each::<ClineMessage<'_>>(&messages, "message", into) {
            if tell(&message, &mut open, into).is_err() {
                into.leave_out("message", UNEXPECTED);
            }
        }
    }
}

/// Adds a message. `open` has the calls that have no result yet.
fn tell(
    message: &ClineMessage<'_>,
    open: &mut ClineOpenCalls,
    into: &mut Gathered,
) -> serde_json::Result<()> {
    let time = into.milliseconds(message.ts);
    let model = message.model_info.as_ref();
    into.note_model(model.and_then(|it| it.id.as_deref().or(it.model_id.as_deref())));
    let (text, blocks) = content(message.content)?;
    if message.is_summary == Some(true) && !into.is_empty() {
        into.leave_out("compaction", "a summary of messages that are recorded in full");
        return Ok(());
    }
    match &*message.role {
        "user" => user(&text, &blocks, open, time, into),
        "assistant" => agent(text, &blocks, open, time, into),
        role => {
            into.leave_out(&format!("{role} message"), "text that the agent itself added");
            Ok(())
        }
    }
}

fn user(
    text: &str,
    blocks: &[ContentBlock<'_>],
    open: &mut ClineOpenCalls,
    time: Option<i64>,
    into: &mut Gathered,
) -> serde_json::Result<()> {
    let mut said = text.to_owned();
    // The call whose result is being read, and the result so far.
    let mut result: Option<(String, String)> = None;
    for block in blocks {
        if let ("tool_result", Some(id)) = (&*block.kind, &block.tool_use_id) {
            let text = result_of(block.content)?;
            join(&mut said, &answers(&text));
            into.result(id, text, time);
            open.retain(|(other, _)| other != id);
            continue;
        }
        let Some(part) = block.as_text() else {
            let kind = &block.kind;
            into.leave_out(&format!("{kind} block"), NO_PART);
            continue;
        };
        note_folder(&part, into);
        let begins = |starts: &[&str]| starts.iter().any(|it| part.trim_start().starts_with(it));
        if begins(TOLD_BY_PROGRAM) {
            join(&mut said, &answers(&part));
            continue;
        }
        let is_about = begins(NOT_IN_RESULT);
        if let Some((name, rest)) = after_result_heading(&part).filter(|_| !open.is_empty()) {
            finish(result.take(), time, &mut said, into);
            let called = open.iter().position(|(_, called)| called == name).unwrap_or(0);
            result = Some((open.remove(called).0, rest.trim().to_owned()));
        } else if let Some((_, result)) = result.as_mut().filter(|_| !is_about) {
            join(result, &part);
        } else {
            join(&mut said, &part);
        }
    }
    finish(result, time, &mut said, into);
    note_folder(text, into);
    into.user(&said, time);
    Ok(())
}

/// What one of several queries of a call gave.
#[derive(Deserialize)]
struct ClineResult<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Returns the text of a result: a text, blocks, or the outcomes of queries.
fn result_of(raw: Option<&RawValue>) -> serde_json::Result<String> {
    let (mut text, blocks) = content(raw)?;
    if blocks.is_empty() || blocks.iter().any(|block| !block.kind.is_empty()) {
        blocks.iter().filter_map(ContentBlock::as_text).for_each(|part| join(&mut text, &part));
        return Ok(text);
    }
    let raw = raw.map_or("[]", RawValue::get);
    let outcomes: Vec<ClineResult<'_>> = match raw.starts_with('{') {
        true => vec![serde_json::from_str(raw)?],
        false => serde_json::from_str(raw)?,
    };
    for part in outcomes.iter().filter_map(|it| it.result.or(it.error)) {
        join(&mut text, &result_text(part));
    }
    Ok(text)
}

/// Adds a result, and to `said` what the user said in it.
fn finish(
    result: Option<(String, String)>,
    time: Option<i64>,
    said: &mut String,
    into: &mut Gathered,
) {
    if let Some((id, text)) = result {
        join(said, &answers(&text));
        into.result(&id, text, time);
    }
}

/// Returns what the user said in the result of a tool.
fn answers(result: &str) -> String {
    let mut said = String::new();
    for tag in ANSWERS {
        let opening = format!("<{tag}>");
        let begins = |at: &usize| result[..*at].is_empty() || result[..*at].ends_with('\n');
        let at = result.match_indices(&opening).map(|(at, _)| at).find(begins);
        let inner = at.and_then(|at| result[at + opening.len()..].split_once(&format!("</{tag}>")));
        join(&mut said, inner.map_or("", |(inner, _)| inner.trim()));
    }
    said
}

/// Returns the name of the tool in a heading such as `[read_file for 'a.rs'] Result:`, and what
/// follows the heading.
fn after_result_heading(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start().strip_prefix('[')?;
    let (call, rest) = inner.split_once("] Result:")?;
    let end = call.find(|it: char| !(it.is_alphanumeric() || "_-.".contains(it)));
    let (name, about) = call.split_at(end.unwrap_or(call.len()));
    let is_heading = !name.is_empty() && (about.is_empty() || about.starts_with(' '));
    is_heading.then_some((name, rest))
}

fn note_folder(text: &str, into: &mut Gathered) {
    let folder = FOLDERS.iter().find_map(|start| text.split_once(start)?.1.split_once(')'));
    Gathered::note_once(&mut into.mark.about.project, folder.map(|(folder, _)| folder));
}

fn agent(
    mut said: String,
    blocks: &[ContentBlock<'_>],
    open: &mut ClineOpenCalls,
    time: Option<i64>,
    into: &mut Gathered,
) -> serde_json::Result<()> {
    let mut calls: Vec<ToolCall> = Vec::new();
    // A call without a result when the agent goes on will never get one as text.
    open.clear();
    for block in blocks {
        match (&*block.kind, &block.id, &block.name, block.as_text()) {
            ("tool_use", Some(id), Some(name), _) => {
                if open.len() < MOST_WAITING {
                    open.push((id.clone(), name.clone()));
                }
                calls.push(into.call(id, name, json::arguments(block.input)));
            }
            ("thinking" | "redacted_thinking" | "reasoning", ..) => {
                into.leave_out("thinking", REASONING);
            }
            (_, _, _, Some(part)) => join(&mut said, &part),
            (kind, ..) => {
                into.leave_out(&format!("{kind} block"), UNKNOWN);
            }
        }
    }
    let text = std::mem::take(&mut said);
    let (mut rest, mut unclosed) = (&*text, Vec::new());
    while let Some((before, name, inner, after)) = first_call(rest, &mut unclosed) {
        join(&mut said, before.trim());
        let id = format!("line-{}-{}", into.mark.calls.len() + 1, name);
        calls.push(into.call(&id, name, arguments(inner)));
        if open.len() < MOST_WAITING {
            open.push((id, name.to_owned()));
        }
        rest = after;
    }
    join(&mut said, rest.trim_end());
    into.agent(&said, calls, time, false);
    Ok(())
}

/// Finds the first call in tags. Returns the text before it, its name, the text in it and the text
/// after it. A tag that is not closed, or is within a line, counts as text. `unclosed` has the tools of
/// which no closing tag is left.
fn first_call<'a>(
    text: &'a str,
    unclosed: &mut Vec<&'static str>,
) -> Option<(&'a str, &'static str, &'a str, &'a str)> {
    for (at, _) in text.match_indices('<') {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let (name, inner) = text[at + 1..].split_at(name_length(&text[at + 1..]));
        let known = TOOLS.iter().find(|tool| **tool == name && !unclosed.contains(tool));
        let (Some(tool), Some(inner)) = (known, inner.strip_prefix('>')) else { continue };
        if !(before.is_empty() || before.ends_with('\n')) {
            continue;
        }
        // Arguments may quote the tag itself.
        match inner.split_once(&format!("</{tool}>")) {
            Some((inner, after)) => return Some((&text[..at], tool, inner, after)),
            None => unclosed.push(tool),
        }
    }
    None
}

/// Returns the length of the name with which a text begins, as far as a tool's can be.
fn name_length(text: &str) -> usize {
    let longest = TOOLS.iter().map(|tool| tool.len()).max().unwrap_or_default() + 1;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.bytes().take(longest).take_while(is_part).count()
}

/// Returns the arguments of a call in tags as JSON.
fn arguments(mut inner: &str) -> String {
    let (mut members, mut unclosed) = (serde_json::Map::new(), 0);
    while let Some((_, rest)) = inner.split_once('<') {
        let Some((name, rest)) = rest.split_once('>') else { break };
        let is_name = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
        let closing = format!("</{name}>");
        // A file that is written may contain the tag that ends it.
        let end = match name {
            "content" | "diff" => rest.rsplit_once(&closing),
            _ => rest.split_once(&closing),
        };
        inner = match (is_name, end) {
            (true, Some((value, after))) => {
                let value = value.strip_prefix('\n').unwrap_or(value);
                let value = value.strip_suffix('\n').unwrap_or(value);
                members.insert(name.to_owned(), value.into());
                after
            }
            // For each of these, the whole rest was looked at.
            (true, None) if unclosed == MOST_UNCLOSED => break,
            (is_name, _) => {
                unclosed += usize::from(is_name);
                rest
            }
        };
    }
    serde_json::Value::Object(members).to_string()
}
