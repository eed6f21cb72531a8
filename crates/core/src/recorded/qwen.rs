//! Qwen Code's recordings, in `~/.qwen/projects/PROJECT/chats/ID.jsonl`: JSON lines of which each
//! names the record that it follows, with content as Google's models have it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::Gathered;
use super::parts::{PartsContent, result_text};
use super::records::JsonRecord;
use super::report::{NO_PART, NOTICE, clipped};
use super::tree::{TreePlace, tell_branch};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QwenEntry<'a> {
    uuid: Option<String>,
    parent_uuid: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    git_branch: Option<String>,
    timestamp: Option<String>,
    #[serde(rename = "type", default)]
    kind: String,
    subtype: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    message: Option<QwenMessage<'a>>,
    #[serde(borrow)]
    tool_call_result: Option<QwenToolResult<'a>>,
    system_payload: Option<QwenPayload>,
}

#[derive(Deserialize)]
struct QwenMessage<'a> {
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QwenToolResult<'a> {
    call_id: Option<String>,
    #[serde(borrow)]
    result_display: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QwenPayload {
    custom_title: Option<String>,
    /// What the user typed, without what the program put into it.
    display_text: Option<String>,
}

/// Adds what the records say to `into`.
pub(super) fn read(records: &[JsonRecord<'_>], into: &mut Gathered) {
    tell_branch(records, into, place, tell);
}

fn place<'b>(entry: &'b QwenEntry<'_>) -> TreePlace<'b> {
    (entry.uuid.as_deref(), entry.parent_uuid.as_deref())
}

fn tell(entry: QwenEntry<'_>, into: &mut Gathered) -> serde_json::Result<()> {
    let time = into.time(entry.timestamp.as_deref());
    into.note_model(entry.model.as_deref());
    let about = &mut into.mark.about;
    Gathered::note_once(&mut about.id, entry.session_id.as_deref());
    Gathered::note_once(&mut about.project, entry.cwd.as_deref());
    Gathered::note_last(&mut about.branch, entry.git_branch.as_deref());
    let parts = entry.message.and_then(|message| message.parts);
    let payload = entry.system_payload;
    match (&*entry.kind, entry.subtype.as_deref()) {
        ("user", Some(subtype @ ("notification" | "cron"))) => {
            into.leave_out(&format!("{subtype} notice"), NOTICE);
        }
        ("user", _) => {
            let content = PartsContent::of(parts, into)?;
            let typed = payload.and_then(|it| it.display_text).filter(|it| !it.trim().is_empty());
            into.user(&typed.unwrap_or(content.text), time);
        }
        ("assistant", _) => {
            let content = PartsContent::of(parts, into)?;
            into.agent(&content.text, content.calls, time, false);
        }
        ("tool_result", _) => {
            let content = PartsContent::of(parts, into)?;
            let outcome = entry.tool_call_result;
            let called = outcome.as_ref().and_then(|it| it.call_id.clone()).unwrap_or_default();
            let shown = outcome.and_then(|it| it.result_display).map(result_text);
            if content.results.is_empty() {
                into.result(&called, shown.unwrap_or(content.text), time);
                return Ok(());
            }
            for (id, result) in content.results {
                into.result(&id.unwrap_or_else(|| called.clone()), result, time);
            }
        }
        ("system", subtype) => {
            if let Some(title) = payload.and_then(|it| it.custom_title) {
                into.mark.about.title = Some(clipped(&title));
            }
            into.leave_out(&format!("{} notice", subtype.unwrap_or("system")), NOTICE);
        }
        (kind, _) => into.leave_out(kind, NO_PART),
    }
    Ok(())
}
