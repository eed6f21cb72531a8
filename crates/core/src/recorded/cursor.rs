//! Cursor's transcripts of its agent, in `~/.cursor/projects/PROJECT/agent-transcripts`: JSON lines
//! in `ID/ID.jsonl` or `ID.jsonl`, and until 2026 text in `ID.txt`.
//!
//! Neither form tells times. The JSON lines tell no ids of calls and no results. The text tells
//! results, indented, in the order of their calls.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::{Gathered, Told};
use super::json::{self, content, join};
use super::records::{Record, parsed};
use super::report::{NO_PART, REASONING, UNEXPECTED, UNKNOWN};

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(default)]
    role: String,
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Adds what the JSON lines say to `into`.
pub(super) fn read(records: &[Record<'_>], into: &mut Gathered) {
    for (line, entry) in parsed::<Entry<'_>>(records, into) {
        into.line = line;
        if tell(&entry, into).is_err() {
            into.leave_out("record", UNEXPECTED);
        }
    }
}

fn tell(entry: &Entry<'_>, into: &mut Gathered) -> serde_json::Result<()> {
    let (mut text, blocks) = content(entry.message.as_ref().and_then(|it| it.content))?;
    let mut calls: Vec<Told> = Vec::new();
    for block in &blocks {
        match (&*block.kind, &block.name, block.as_text()) {
            ("tool_use", Some(name), _) => {
                let id = block.id.clone().unwrap_or_default();
                calls.push((into.call(&id, name, json::arguments(block.input)), id, None));
            }
            ("tool_result", ..) => {
                let (mut result, inner) = content(block.content)?;
                inner.iter().filter_map(|it| it.as_text()).for_each(|it| join(&mut result, &it));
                into.result(block.tool_use_id.as_deref().unwrap_or_default(), result, None);
            }
            (_, _, Some(part)) => join(&mut text, &part),
            (kind, ..) => {
                into.leave_out(&format!("{kind} block"), UNKNOWN);
            }
        }
    }
    match &*entry.role {
        "user" => into.user(without_time(&text), None),
        "assistant" => {
            let has_ids = calls.iter().any(|(_, id, _)| !id.is_empty());
            match has_ids {
                true => {
                    into.agent(
                        &text,
                        calls.into_iter().map(|(call, ..)| call).collect(),
                        None,
                        false,
                    );
                }
                false => into.answer(&text, calls, None),
            }
        }
        role => into.leave_out(&format!("{role} message"), NO_PART),
    }
    Ok(())
}

/// Returns a user's turn without the time that Cursor writes before it, in words.
fn without_time(text: &str) -> &str {
    let said = text.trim_start().strip_prefix("<timestamp>");
    said.and_then(|rest| rest.split_once("</timestamp>")).map_or(text, |(_, said)| said)
}

/// Lines that begin a turn.
const TURNS: [&str; 2] = ["user:", "assistant:"];
const CALL: &str = "[Tool call] ";
const RESULT: &str = "[Tool result]";
const THINKING: &str = "[Thinking]";

/// Returns whether a line begins a transcript as text.
pub(super) fn begins_text(line: &str) -> bool {
    line.trim_end() == TURNS[0]
}

/// Returns whether lines are a transcript as text.
pub(super) fn is_text(lines: &[String]) -> bool {
    let mut said = lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty());
    said.next() == Some(TURNS[0])
        && (said.next().is_some_and(|line| line.starts_with("<user_query>"))
            || said.any(|line| line == TURNS[1]))
}

/// Adds what a transcript as text says to `into`.
pub(super) fn read_text(lines: &[String], into: &mut Gathered) {
    let mut at = 0;
    while at < lines.len() {
        let is_user = lines[at].trim_end() == TURNS[0];
        into.line = at as u64 + 1;
        let begins = |line: &String| TURNS.contains(&line.trim_end());
        let end = lines[at + 1..].iter().position(begins).map_or(lines.len(), |it| at + 1 + it);
        match is_user {
            true => into.user(lines[at + 1..end].join("\n").trim(), None),
            false => answer(&lines[at + 1..end], into),
        }
        at = end;
    }
}

/// Adds a turn of the agent.
fn answer(lines: &[String], into: &mut Gathered) {
    let (mut said, mut calls) = (String::new(), Vec::<Told>::new());
    let mut at = 0;
    while at < lines.len() {
        let line = &lines[at];
        let is_inner = |line: &String| line.trim().is_empty() || line.starts_with([' ', '\t']);
        let end = at + 1 + lines[at + 1..].iter().take_while(|line| is_inner(line)).count();
        let inner = &lines[at + 1..end];
        if line.starts_with(THINKING) {
            into.leave_out("thinking", REASONING);
        } else if let Some(name) = line.strip_prefix(CALL) {
            let id = format!("call-{}", into.mark.calls.len() + 1);
            let call = into.call(&id, name.trim(), arguments(inner));
            calls.push((call, id, None));
        } else if let Some(name) = line.strip_prefix(RESULT) {
            let name = name.trim();
            let is_it = |(call, _, result): &&mut Told| {
                result.is_none() && (name.is_empty() || call.name == name)
            };
            let result = unindented(inner);
            match calls.iter_mut().find(is_it) {
                Some((_, _, slot)) => *slot = Some(result).filter(|it| !it.is_empty()),
                None => into.leave_out("tool result", "its call is not in the recording"),
            }
        } else {
            // Text goes on to the next mark, indented or not.
            if !line.trim().is_empty() && !calls.is_empty() {
                into.answer(&std::mem::take(&mut said), std::mem::take(&mut calls), None);
            }
            said.push_str(line);
            said.push('\n');
            at += 1;
            continue;
        }
        at = end;
    }
    into.answer(said.trim(), calls, None);
}

fn unindented(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| line.strip_prefix("  ").unwrap_or(line).trim_end());
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

/// Returns as JSON the arguments that stand below a call, one a line, or several lines of one.
fn arguments(lines: &[String]) -> String {
    let mut members = serde_json::Map::new();
    let mut last: Option<String> = None;
    for line in lines.iter().map(|line| line.strip_prefix("  ").unwrap_or(line)) {
        let named = line.split_once(':').filter(|(name, _)| {
            !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_')
        });
        match (named, &last) {
            (Some((name, value)), _) => {
                members.insert(name.to_owned(), value.trim_start().into());
                last = Some(name.to_owned());
            }
            (None, Some(name)) => {
                if let Some(serde_json::Value::String(value)) = members.get_mut(name) {
                    value.push('\n');
                    value.push_str(line);
                }
            }
            (None, None) => {}
        }
    }
    for value in members.values_mut() {
        if let serde_json::Value::String(text) = value {
            text.truncate(text.trim_end().len());
        }
    }
    serde_json::Value::Object(members).to_string()
}
