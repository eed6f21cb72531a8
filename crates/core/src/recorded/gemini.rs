//! Gemini CLI's recordings, in `~/.gemini/tmp/PROJECT/chats/session-*.json`, and since 2026 in
//! `session-*.jsonl`. Early versions of Qwen Code write the first form too.
//!
//! The first form is one object with all messages. The second is JSON lines: an object with the
//! facts, messages (a later one with the same id replaces an earlier one), changes (`$set`), and the
//! places to which the user went back (`$rewindTo`).

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::gathered::{Gathered, MOST_WAITING};
use super::json::arguments;
use super::parts::{PartsContent, result_text};
use super::records::{JsonRecord, each, parsed};
use super::report::{NOTICE, REASONING, UNEXPECTED, WENT_BACK, clipped};

/// A record: a message, facts about the session, or a change.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiRecord<'a> {
    session_id: Option<String>,
    start_time: Option<String>,
    summary: Option<String>,
    /// Kind of the session.
    kind: Option<String>,
    directories: Option<Vec<String>>,
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(rename = "$set", borrow)]
    set: Option<Box<GeminiRecord<'a>>>,
    #[serde(rename = "$rewindTo")]
    rewind_to: Option<String>,
    id: Option<String>,
    #[serde(rename = "type")]
    message_kind: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    display_content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<GeminiCall<'a>>>,
    thoughts: Option<Vec<IgnoredAny>>,
    model: Option<String>,
    /// Number of the line.
    #[serde(skip)]
    line: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCall<'a> {
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    result_display: Option<&'a RawValue>,
}

/// Adds what the records say to `into`.
pub(super) fn read(records: &[JsonRecord<'_>], into: &mut Gathered) {
    let mut kept: Vec<GeminiRecord<'_>> = Vec::new();
    for (line, entry) in parsed::<GeminiRecord<'_>>(records, into) {
        into.line = line;
        let mut next = Some(entry);
        while let Some(entry) = next.take() {
            next = apply(entry, line, &mut kept, into).map(|set| *set);
        }
    }
    for message in kept {
        into.line = message.line;
        if tell(message, into).is_err() {
            into.leave_out("message", UNEXPECTED);
        }
    }
}

fn apply<'a>(
    mut entry: GeminiRecord<'a>,
    line: u64,
    kept: &mut Vec<GeminiRecord<'a>>,
    into: &mut Gathered,
) -> Option<Box<GeminiRecord<'a>>> {
    if let Some(id) = entry.rewind_to {
        let from = kept.iter().rposition(|message| message.id.as_ref() == Some(&id)).unwrap_or(0);
        kept.drain(from..).for_each(|_| into.leave_out("message", WENT_BACK));
        return None;
    }
    let about = &mut into.mark.about;
    Gathered::note_once(&mut about.id, entry.session_id.as_deref());
    let folder = entry.directories.as_ref().and_then(|all| all.first());
    Gathered::note_once(&mut about.project, folder.map(String::as_str));
    if let Some(title) = entry.summary.as_deref().filter(|title| !title.trim().is_empty()) {
        about.title = Some(clipped(title));
    }
    into.mark.is_subagent |= entry.kind.as_deref() == Some("subagent");
    into.time(entry.start_time.as_deref());
    if let Some(messages) = entry.messages.take() {
        let messages: Vec<GeminiRecord<'_>> = each(&messages, "message", into);
        *kept = messages.into_iter().map(|message| GeminiRecord { line, ..message }).collect();
    }
    if entry.set.is_some() {
        return entry.set.take();
    }
    if entry.message_kind.is_some() && entry.content.is_some() {
        entry.line = line;
        // What is written again was written before not long ago.
        let mut last = kept.iter_mut().rev().take(MOST_WAITING);
        match last.find(|other| entry.id.is_some() && other.id == entry.id) {
            Some(earlier) => *earlier = entry,
            None => kept.push(entry),
        }
    }
    None
}

fn tell(message: GeminiRecord<'_>, into: &mut Gathered) -> serde_json::Result<()> {
    let time = into.time(message.timestamp.as_deref());
    let shown = message.display_content.filter(|raw| raw.get() != "null").or(message.content);
    match message.message_kind.as_deref() {
        Some("user") => {
            let content = PartsContent::of(shown, into)?;
            into.user(&content.text, time);
        }
        Some("gemini" | "qwen" | "assistant" | "model") => {
            into.note_model(message.model.as_deref());
            if message.thoughts.is_some_and(|thoughts| !thoughts.is_empty()) {
                into.leave_out("thinking", REASONING);
            }
            let mut content = PartsContent::of(message.content, into)?;
            let (mut results, mut unanswered) = (Vec::new(), Vec::new());
            for GeminiCall { id, name, args, result, result_display } in
                message.tool_calls.into_iter().flatten()
            {
                let id = id.unwrap_or_default();
                let call = into.call(&id, &name, arguments(args));
                let given = result.filter(|raw| !matches!(raw.get(), "null" | "[]"));
                match (given, result_display) {
                    (Some(raw), _) => {
                        let PartsContent { text, results: parts, .. } =
                            PartsContent::of(Some(raw), into)?;
                        let mut all: Vec<String> = parts.into_iter().map(|(_, it)| it).collect();
                        all.extend(Some(text).filter(|text| !text.is_empty()));
                        results.push((id, all.join("\n")));
                    }
                    (None, Some(raw)) if raw.get() != "null" => {
                        results.push((id, result_text(raw)));
                    }
                    _ => unanswered.push(call.id.clone()),
                }
                content.calls.push(call);
            }
            into.agent(&content.text, content.calls, time, false);
            for (id, result) in results {
                into.result(&id, result, time);
            }
            for told in unanswered {
                into.end_call(&told, time);
            }
        }
        kind => into.leave_out(kind.unwrap_or("message"), NOTICE),
    }
    Ok(())
}
