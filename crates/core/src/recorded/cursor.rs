//! Cursor's transcripts of its agent, in `~/.cursor/projects/PROJECT/agent-transcripts`: JSON lines
//! in `ID/ID.jsonl` or `ID.jsonl`, and until 2026 text in `ID.txt`.
//!
//! The JSON lines often tell no ids of calls and no results, and times only in what the user said.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::Gathered;
use super::json::{self, content, join};
use super::records::{JsonRecord, parsed};
use super::report::{NO_PART, REASONING, UNEXPECTED, UNKNOWN};
use super::time::in_words;
use crate::session::message::ToolCall;

mod text;

pub(super) use self::text::{begins_text, is_text, read_text};

#[derive(Deserialize)]
struct CursorEntry<'a> {
    #[serde(default)]
    role: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(borrow)]
    message: Option<CursorMessage<'a>>,
    timestamp: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct CursorMessage<'a> {
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Text in place of what Cursor does not record.
const REDACTED: &str = "[REDACTED]";

/// Adds what the JSON lines say to `into`.
pub(super) fn read(records: &[JsonRecord<'_>], into: &mut Gathered) {
    let mut reading = CursorReader::default();
    for (line, entry) in parsed::<CursorEntry<'_>>(records, into) {
        into.line = line;
        if reading.tell(&entry, into).is_err() {
            into.leave_out("record", UNEXPECTED);
        }
    }
    into.end_calls(reading.time);
}

/// What is known so far.
#[derive(Default)]
struct CursorReader {
    /// The last time that was told, which counts until another is.
    time: Option<i64>,
    /// Ids that were made up for the calls of the last answer, which have no result yet.
    open: Vec<String>,
}

impl CursorReader {
    /// Adds a record.
    fn tell(&mut self, entry: &CursorEntry<'_>, into: &mut Gathered) -> serde_json::Result<()> {
        let message = entry.message.as_ref();
        into.note_model(message.and_then(|it| it.model.as_deref()));
        let own = match &entry.timestamp {
            Some(serde_json::Value::String(text)) => into.time(Some(text)),
            Some(number) => into.milliseconds(number.as_f64()),
            None => None,
        };
        self.time = own.or(self.time);
        let (mut text, blocks) = content(message.and_then(|it| it.content))?;
        let is_result = |kind: &str| matches!(kind, "tool_result" | "tool-result");
        if !blocks.iter().any(|block| is_result(&block.kind)) && !entry.role.is_empty() {
            // Results, if there are any, come next.
            into.end_calls(self.time);
            self.open.clear();
        }
        let mut calls: Vec<ToolCall> = Vec::new();
        for block in &blocks {
            match (&*block.kind, &block.name, block.as_text()) {
                ("tool_use" | "tool_call", Some(name), _) => {
                    let made_up = || format!("call-{}", into.mark.calls.len() + 1);
                    let id = block.id.clone().filter(|id| !id.is_empty()).unwrap_or_else(made_up);
                    calls.push(into.call(&id, name, json::arguments(block.input)));
                    self.open.push(id);
                }
                (kind, ..) if is_result(kind) => {
                    let (mut result, inner) = content(block.content)?;
                    let texts = inner.iter().filter_map(|it| it.as_text());
                    texts.for_each(|it| join(&mut result, &it));
                    let named = block.tool_use_id.as_deref();
                    let at = self.open.iter().position(|id| Some(&**id) == named).unwrap_or(0);
                    // Results without a known id are in the order of the calls.
                    let id = match self.open.is_empty() {
                        true => named.unwrap_or_default().to_owned(),
                        false => self.open.remove(at),
                    };
                    into.result(&id, result, self.time);
                }
                ("thinking", ..) => into.leave_out("thinking", REASONING),
                (_, _, Some(part)) => join(&mut text, &part),
                (kind, ..) => into.leave_out(&format!("{kind} block"), UNKNOWN),
            }
        }
        match &*entry.role {
            "user" => user(&text, &mut self.time, into),
            "assistant" => {
                let text = without_redacted(&text, into);
                into.agent(&text, calls, self.time, false);
            }
            "" => into.leave_out(&entry.kind, NO_PART),
            role => into.leave_out(&format!("{role} message"), NO_PART),
        }
        Ok(())
    }
}

/// Adds a user's turn, before which Cursor writes the time in words.
fn user(text: &str, time: &mut Option<i64>, into: &mut Gathered) {
    let told = text.trim_start().strip_prefix("<timestamp>");
    let told = told.and_then(|rest| rest.split_once("</timestamp>"));
    let said = told.map_or(text, |(_, said)| said);
    *time = told.and_then(|(words, _)| in_words(words)).or(*time);
    let started = &mut into.mark.about.started;
    *started = started.or(*time);
    into.user(said, *time);
}

/// Returns an answer without the lines that stand for what Cursor does not record.
fn without_redacted(text: &str, into: &mut Gathered) -> String {
    if !text.contains(REDACTED) {
        return text.to_owned();
    }
    let lines = text.lines().filter(|line| {
        let is_redacted = line.trim() == REDACTED;
        if is_redacted {
            into.leave_out("redacted text", "Cursor did not record it");
        }
        !is_redacted
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
