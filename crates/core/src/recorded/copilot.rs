//! Recordings of GitHub Copilot CLI, in `~/.copilot/session-state/ID/events.jsonl`, and of its
//! early versions in `session-state/ID.jsonl`: JSON lines of events with a type and data.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::Gathered;
use super::parts::result_text;
use super::records::{JsonRecord, parsed};
use super::report::{NO_PART, WENT_BACK, clipped};

/// Kind of the event by which the user goes back.
const REWIND: &str = "session.snapshot_rewind";

#[derive(Deserialize)]
struct CopilotEvent<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    id: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    data: Option<CopilotData<'a>>,
}

/// The data of an event. Which members they have depends on the event.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CopilotData<'a> {
    session_id: Option<String>,
    selected_model: Option<String>,
    new_model: Option<String>,
    model: Option<String>,
    context: Option<Context>,
    title: Option<String>,
    content: Option<String>,
    /// Who wrote a message of the user's turn.
    source: Option<String>,
    #[serde(borrow)]
    tool_requests: Option<Vec<CopilotRequest<'a>>>,
    tool_call_id: Option<String>,
    parent_tool_call_id: Option<String>,
    tool_name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Events that the user undid; in early versions, only the first of them is told.
    event_ids: Option<Vec<String>>,
    up_to_event_id: Option<String>,
}

#[derive(Deserialize)]
struct Context {
    cwd: Option<String>,
    branch: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CopilotRequest<'a> {
    tool_call_id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Adds what the records say to `into`.
pub(super) fn read(records: &[JsonRecord<'_>], into: &mut Gathered) {
    let events = parsed::<CopilotEvent<'_>>(records, into);
    let undone = undone(&events);
    for ((line, event), is_undone) in events.into_iter().zip(undone) {
        into.line = line;
        if is_undone {
            into.leave_out(&event.kind, WENT_BACK);
            continue;
        }
        let time = into.time(event.timestamp.as_deref());
        tell(&event.kind, event.data.unwrap_or_default(), time, into);
    }
}

/// Returns of each event whether the user went back before it.
fn undone(events: &[(u64, CopilotEvent<'_>)]) -> Vec<bool> {
    let mut undone = vec![false; events.len()];
    for (at, (_, event)) in events.iter().enumerate() {
        let Some(data) = event.data.as_ref().filter(|_| event.kind == REWIND) else { continue };
        let before = &events[..at];
        let is = |event: &CopilotEvent<'_>, id: &String| event.id.as_ref() == Some(id);
        if let Some(ids) = &data.event_ids {
            for (at, (_, event)) in before.iter().enumerate() {
                undone[at] |= ids.iter().any(|id| is(event, id));
            }
        } else if let Some(id) = &data.up_to_event_id
            && let Some(from) = before.iter().position(|(_, event)| is(event, id))
        {
            undone[from..at].fill(true);
        }
    }
    undone
}

fn tell(kind: &str, data: CopilotData<'_>, time: Option<i64>, into: &mut Gathered) {
    if data.parent_tool_call_id.is_some() {
        into.leave_out("sidechain", "the conversation of a subagent");
        return;
    }
    let called = data.tool_call_id.unwrap_or_default();
    match kind {
        "session.start" | "session.resume" => {
            let about = &mut into.mark.about;
            Gathered::note_once(&mut about.id, data.session_id.as_deref());
            let context = data.context.unwrap_or(Context { cwd: None, branch: None });
            Gathered::note_once(&mut about.project, context.cwd.as_deref());
            Gathered::note_last(&mut about.branch, context.branch.as_deref());
            into.note_model(data.selected_model.as_deref());
        }
        "session.model_change" => into.note_model(data.new_model.as_deref()),
        "session.title_changed" => {
            into.mark.about.title = data.title.as_deref().map(clipped);
        }
        "user.message" if data.source.as_deref().is_some_and(is_program) => {
            into.leave_out("text in the user's turn", "text that a program added");
        }
        "user.message" => into.user(&data.content.unwrap_or_default(), time),
        "assistant.message" => {
            into.note_model(data.model.as_deref());
            let (mut calls, mut is_begun) = (Vec::new(), false);
            for CopilotRequest { tool_call_id, name, arguments } in
                data.tool_requests.into_iter().flatten()
            {
                let (id, name) = (tool_call_id.unwrap_or_default(), name.unwrap_or_default());
                // The event of the call's start may come first.
                if into.has_called(&id) {
                    is_begun |= into.waits_for(&id);
                    into.leave_out("tool request", "repeats the call of the agent");
                } else {
                    calls.push(into.call(&id, &name, given(arguments)));
                }
            }
            into.agent(&data.content.unwrap_or_default(), calls, time, is_begun);
        }
        "abort" => into.mark.is_stopped = true,
        "tool.execution_start" if !into.has_called(&called) => {
            let name = data.tool_name.unwrap_or_default();
            let call = into.call(&called, &name, given(data.arguments));
            into.agent("", vec![call], time, true);
        }
        "tool.execution_start" => {
            into.leave_out("tool.execution_start", "repeats the call of the agent");
        }
        "tool.execution_complete" => {
            let given = data.result.filter(|raw| raw.get() != "null").or(data.error);
            into.result(&called, given.map(outcome).unwrap_or_default(), time);
        }
        kind => into.leave_out(kind, NO_PART),
    }
}

/// Returns whether a message with this source was written by a program, and not by the user.
fn is_program(source: &str) -> bool {
    ["jit", "skill", "system"].iter().any(|start| source.starts_with(start))
}

/// Returns arguments as JSON; they may be JSON in a string.
fn given(raw: Option<&RawValue>) -> String {
    let text = raw.map_or("{}", RawValue::get);
    let inner = text.starts_with('"').then(|| serde_json::from_str(text).ok()).flatten();
    inner.unwrap_or_else(|| text.to_owned())
}

fn outcome(raw: &RawValue) -> String {
    #[derive(Deserialize)]
    struct CopilotFailure {
        message: String,
    }
    serde_json::from_str(raw.get())
        .map_or_else(|_| result_text(raw), |CopilotFailure { message }| message)
}
