//! Sessions as text: a transcript to read, and JSON, which can be imported again.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages::{MessageParam, counted};
use crate::context::render::fence;
use crate::curation::summary;
use crate::engine::NewMessage;
use crate::ids::MessageId;
use crate::rpc::params::{Name, is_session_id};
use crate::rpc::present::MessageShown;
use crate::session::message::{Message, Role};
use crate::session::state::{Revision, State};
use crate::store::session::SessionRow;
use crate::tokens::Counter;
use crate::value::Value;
use crate::value::json::{from_json, json_text};
use crate::visible::visible;

/// Version of the JSON form. Raise it when older programs cannot read the new form.
const VERSION: i64 = 1;

/// Format of an exported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ExportFormat")]
pub(super) enum Format {
    /// A transcript in Markdown, to read.
    Markdown,
    /// JSON for programs, which `open-session` reads.
    Json,
}

/// A session read from text.
pub(super) struct Read {
    pub(super) name: String,
    pub(super) project: Option<String>,
    pub(super) messages: Vec<NewMessage>,
    /// State of the view, if the text contains it.
    pub(super) view: Option<Revision>,
}

pub(super) fn write(
    format: Format,
    row: &SessionRow,
    log: &[Arc<Message>],
    revision: &Revision,
) -> String {
    match format {
        Format::Markdown => markdown(row, log, &revision.state),
        Format::Json => json(row, log, revision),
    }
}

/// Reads the JSON that [`write`] wrote. An error is a phrase that says what is wrong with the text.
pub(super) fn read(text: &str, counter: &dyn Counter) -> Result<Read, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct File {
        contexture_session: i64,
        name: String,
        project: Option<String>,
        messages: Vec<MessageParam>,
        state: Option<String>,
    }
    let value = from_json(text.as_bytes())
        .map_err(|error| format!("must be the JSON that export-session returns: {error}"))?;
    let file: File = value
        .decode()
        .map_err(|error| format!("must be the JSON that export-session returns: {error}"))?;
    if file.contexture_session > VERSION {
        let found = file.contexture_session;
        return Err(format!(
            "has format {found}, but this server reads only formats up to {VERSION}; update the server"
        ));
    }
    let name: Name = Value::Str(file.name)
        .decode()
        .map_err(|error| format!("has an invalid session name, which {}", error.message))?;
    let Name(name) = match is_session_id(&name) {
        true => Name(format!("imported {}", name.0)),
        false => name,
    };
    let messages = counted(file.messages, counter)
        .map_err(|error| format!("has an invalid message: {}", error.message))?;
    let view = file.state.as_deref().map(view).transpose()?;
    Ok(Read { name, project: file.project, messages, view })
}

fn view(text: &str) -> Result<Revision, String> {
    let wrong = |error: serde_json::Error| format!("has a state that cannot be read: {error}");
    let revision = Revision::parse(text).map_err(wrong)?;
    if let Some(summary) = &revision.state.summary {
        serde_json::from_value::<summary::Summary>(summary.source.clone()).map_err(wrong)?;
    }
    Ok(revision)
}

/// A session in the form that [`read`] parses.
#[derive(Serialize)]
struct Written<'a> {
    contexture_session: i64,
    name: &'a str,
    project: Option<&'a str>,
    created: i64,
    summary: Option<&'a str>,
    messages: Vec<MessageShown<'a>>,
    /// State of the view, as text, since its names are not part of the protocol.
    state: Option<String>,
}

fn json(row: &SessionRow, log: &[Arc<Message>], revision: &Revision) -> String {
    let state = &revision.state;
    let messages = log.iter().map(|message| {
        let mut shown = MessageShown::from(&**message);
        shown.fate = fate(message, state);
        shown
    });
    let session = Written {
        contexture_session: VERSION,
        name: &row.name,
        project: row.project.as_deref(),
        created: row.created,
        summary: state.summary.as_ref().map(|summary| &*summary.text),
        messages: messages.collect(),
        state: serde_json::to_string(&revision.clone().of_log(log.len() as u64)).ok(),
    };
    json_text(&Value::of(&session)) + "\n"
}

fn markdown(row: &SessionRow, log: &[Arc<Message>], state: &State) -> String {
    let mut text = format!("# {}\n\n", one_line(&row.name));
    let project =
        row.project.as_deref().map_or(String::new(), |p| format!(" Project: {}.", one_line(p)));
    text += &format!("Begun {}.{project} Messages: {}.\n", time(row.created), log.len());
    if let Some(summary) = &state.summary {
        text +=
            &format!("\n## Summary of messages no longer in view\n\n{}\n", summary.text.trim_end());
    }
    for message in log {
        text += &heading(message, state);
        text += &body(message);
    }
    text
}

fn heading(message: &Message, state: &State) -> String {
    let role = match message.role {
        Role::System => "System",
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool",
    };
    let mut notes = vec![MessageId(message.number).to_string(), time(message.timestamp)];
    notes.extend(message.phase.map(|phase| phase.name().to_owned()));
    notes.extend(message.tool_call_id.as_ref().map(|id| format!("answers {}", one_line(id))));
    notes.extend(fate(message, state).map(str::to_owned));
    format!("\n## {role} ({})\n\n", notes.join(", "))
}

fn body(message: &Message) -> String {
    let content = message.content.trim_end_matches('\n');
    let mut text = match message.role {
        Role::Tool => fenced("text", content),
        _ if content.is_empty() => String::new(),
        _ => format!("{content}\n"),
    };
    for call in &message.tool_calls {
        text += &format!("Calls `{}` ({}):\n\n", one_line(&call.name), one_line(&call.id));
        text += &fenced("json", &call.arguments);
    }
    text
}

fn fenced(language: &str, content: &str) -> String {
    let fence = fence(content);
    format!("{fence}{language}\n{content}\n{fence}\n")
}

/// Returns what happened to a message; `None` if it is in view and not pinned.
fn fate(message: &Message, state: &State) -> Option<&'static str> {
    let number = message.number;
    let covered = || state.summary.as_ref().is_some_and(|s| s.covers.contains(number));
    match () {
        () if !state.is_active(number) => Some("rolled back"),
        () if state.pinned.contains(number) => Some("pinned"),
        () if covered() => Some("summarized"),
        () if state.pruned.contains(number) => Some("pruned"),
        () => None,
    }
}

fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(
        |_| seconds.to_string(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}
