//! OpenCode's recordings: the object that `opencode export` writes, with the session and its
//! messages, each with its parts. OpenCode itself keeps them apart, each in a file below
//! `~/.local/share/opencode/storage`, and since 2026 as rows of `~/.local/share/opencode/opencode.db`;
//! the importer puts them together in the form of an export.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::{CalledAndAnswered, Gathered};
use super::json::{arguments, join};
use super::parts::result_text;
use super::records::{JsonRecord, each, parsed};
use super::report::{NO_PART, REASONING, WENT_BACK, clipped};

#[derive(Deserialize)]
struct OpencodeExport<'a> {
    info: OpencodeSession,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct OpencodeSession {
    id: Option<String>,
    #[serde(rename = "parentID")]
    parent_id: Option<String>,
    title: Option<String>,
    directory: Option<String>,
    time: Option<OpencodeTimes>,
    revert: Option<Revert>,
}

/// The message from which the user went back.
#[derive(Deserialize)]
struct Revert {
    #[serde(rename = "messageID")]
    message_id: String,
}

/// Times in milliseconds.
#[derive(Deserialize)]
struct OpencodeTimes {
    created: Option<f64>,
}

#[derive(Deserialize)]
struct OpencodeMessage<'a> {
    info: Info,
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Info {
    id: Option<String>,
    #[serde(default)]
    role: String,
    time: Option<OpencodeTimes>,
    #[serde(rename = "modelID")]
    model_id: Option<String>,
    path: Option<Path>,
    summary: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Path {
    cwd: Option<String>,
}

/// A part of a message. Which members a part has depends on its kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpencodePart<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    synthetic: Option<bool>,
    ignored: Option<bool>,
    #[serde(rename = "callID")]
    call_id: Option<String>,
    tool: Option<String>,
    #[serde(borrow)]
    state: Option<OpencodeToolState<'a>>,
    filename: Option<String>,
    mime: Option<String>,
}

#[derive(Deserialize)]
struct OpencodeToolState<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Beginning of the title that OpenCode gives a session before it knows what the session is about.
const UNTITLED: &str = "New session - ";
/// Beginning of such a title of a subagent.
const UNTITLED_CHILD: &str = "Child session - ";

/// Adds what the records say to `into`.
pub(super) fn read(records: &[JsonRecord<'_>], into: &mut Gathered) {
    for (line, export) in parsed::<OpencodeExport<'_>>(records, into) {
        into.line = line;
        let OpencodeExport { info: session, messages } = export;
        let about = &mut into.mark.about;
        Gathered::note_once(&mut about.id, session.id.as_deref());
        Gathered::note_once(&mut about.project, session.directory.as_deref());
        Gathered::note_once(&mut about.parent, session.parent_id.as_deref());
        let title = session
            .title
            .filter(|title| !title.starts_with(UNTITLED) && !title.starts_with(UNTITLED_CHILD));
        about.title = title.as_deref().map(clipped);
        into.mark.is_subagent |= session.parent_id.is_some();
        into.milliseconds(session.time.and_then(|time| time.created));
        let reverted = session.revert.map(|revert| revert.message_id);
        let messages: Vec<OpencodeMessage<'_>> = each(&messages, "message", into);
        let until = messages.iter().position(|it| it.info.id.is_some() && it.info.id == reverted);
        let until = until.unwrap_or(messages.len());
        for (at, message) in messages.into_iter().enumerate() {
            match at < until {
                true => tell(message, into),
                false => into.leave_out("message", WENT_BACK),
            }
        }
    }
}

fn tell(message: OpencodeMessage<'_>, into: &mut Gathered) {
    let OpencodeMessage { info, parts } = message;
    let time = into.milliseconds(info.time.and_then(|time| time.created));
    into.note_model(info.model_id.as_deref());
    let folder = info.path.and_then(|path| path.cwd);
    Gathered::note_once(&mut into.mark.about.project, folder.as_deref());
    let is_summary = info.summary == Some(serde_json::Value::Bool(true));
    if info.role == "assistant" && is_summary && !into.is_empty() {
        into.leave_out("compaction", "a summary of messages that are recorded in full");
        return;
    }
    let is_user = info.role == "user";
    let mut answer = OpencodeAnswer::default();
    for part in each::<OpencodePart<'_>>(&parts, "part", into) {
        match &*part.kind {
            "text" if part.synthetic == Some(true) || part.ignored == Some(true) => {
                into.leave_out("text in the user's turn", "text that a program added");
            }
            "text" => {
                if !answer.calls.is_empty() {
                    answer.tell(time, into);
                }
                join(&mut answer.said, &part.text.unwrap_or_default());
            }
            "tool" => {
                let OpencodeToolState { input, output, error } = part
                    .state
                    .unwrap_or(OpencodeToolState { input: None, output: None, error: None });
                let id = part.call_id.unwrap_or_default();
                let call = into.call(&id, &part.tool.unwrap_or_default(), arguments(input));
                answer.calls.push((call, id, output.or(error).map(result_text)));
            }
            "file" => {
                let name = part.filename.or(part.mime).unwrap_or_default();
                into.leave_out("file", "replaced by a text such as [file: a.png]");
                join(&mut answer.said, &format!("[file: {name}]"));
            }
            "reasoning" => {
                into.leave_out("reasoning", REASONING);
            }
            kind => into.leave_out(kind, NO_PART),
        }
    }
    match is_user {
        true => into.user(&unquoted(&answer.said), time),
        false => answer.tell(time, into),
    }
}

/// Returns a prompt without the quotation marks in which `opencode run` records one with spaces.
fn unquoted(said: &str) -> Cow<'_, str> {
    let inner = said.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner.map(|inner| (inner.contains(' '), inner.replace("\\\"", "\u{0}"))) {
        Some((true, inner)) if !inner.contains('"') => inner.replace('\u{0}', "\"").into(),
        _ => said.into(),
    }
}

/// What the agent said, with its calls, their ids in the recording, and their results.
#[derive(Default)]
struct OpencodeAnswer {
    said: String,
    calls: Vec<CalledAndAnswered>,
}

impl OpencodeAnswer {
    fn tell(&mut self, time: Option<i64>, into: &mut Gathered) {
        let Self { said, calls } = std::mem::take(self);
        into.answer(&said, calls, time);
    }
}
