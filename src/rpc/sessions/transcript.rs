//! Sessions as text: Markdown, which is opened again as the same session, and JSON, of which the
//! import makes an equal one.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::markdown::{self, Read, SavedSession, fate, no_id};
use super::messages::{MessageParam, counted};
use super::{NO_SETTINGS, SessionShown};
use crate::curation::summary;
use crate::engine::{Engine, EngineError};
use crate::ids::SessionId;
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::error::{internal_error, param_error};
use crate::rpc::params::{Name, new_name};
use crate::rpc::present::MessageShown;
use crate::session::message::Message;
use crate::session::state::Revision;
use crate::store::session::{NewSession, SessionRow};
use crate::tokens::Counter;
use crate::value::Value;
use crate::value::json::{from_json, json_text};
use crate::wire::message::WireError;

/// Version of the JSON form. Raise it when older programs cannot read the new form.
const VERSION: i64 = 1;

/// Writes a session as text.
pub(super) fn write(
    format: ExportFormat,
    row: &SessionRow,
    log: &[Arc<Message>],
    revision: &Revision,
) -> String {
    match format {
        ExportFormat::Markdown => markdown::write(row, log, &revision.state),
        ExportFormat::Json => json(row, log, revision),
    }
}

/// Opens the session that a text was exported from, or makes one of the text. The text is read on a
/// thread that may block.
pub(super) fn open(call: MethodCall, text: String, name: Option<Name>) -> Result<Step, WireError> {
    let name = name.map(new_name).transpose()?;
    Ok(Step::Await(Box::pin(async move {
        let read = move || {
            let (saved, counter) = (markdown::read(&text), call.counter());
            let read = match &saved {
                Some(saved) => saved.read(&counter),
                None => read(&text, &counter),
            };
            read.map(|read| (saved, read))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let read = read.map_err(|_| internal_error("reading a session"))?;
        let (saved, read) = read.map_err(|message| param_error("text", &message))?;
        Step::state(move |engine| {
            if name.is_none()
                && let Some(saved) = saved
                && let Some(shown) = opened(engine, &saved)?
            {
                return Ok(shown);
            }
            let (name, settings) = (name.unwrap_or(read.name), NO_SETTINGS.to_owned());
            let new = NewSession { name, told: read.project, settings, ..NewSession::default() };
            let opened = engine.import_session(new, read.messages, read.view)?;
            let shown = SessionShown::new(engine.row(opened.id)?, true);
            Ok(SessionShown { created_now: Some(true), ..shown })
        })
    })))
}

/// Makes the session that a Markdown file tells of the current one; `None` if it is not here, or was
/// deleted.
fn opened(engine: &mut Engine, saved: &SavedSession) -> Result<Option<SessionShown>, EngineError> {
    let id = SessionId(saved.session).to_string();
    match engine.find_session(Some(&id)) {
        Ok(row) if row.id == saved.session && row.created == saved.begun => {}
        Ok(_) | Err(EngineError::NoSuchSession { .. }) => return Ok(None),
        Err(error) => return Err(error),
    }
    let row = engine.switch_session(&id)?;
    let edited = Some(saved.edited(engine.session(row.id)?.log()));
    Ok(Some(SessionShown { created_now: Some(false), edited, ..SessionShown::new(row, true) }))
}

/// Format of an exported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ExportFormat")]
pub(super) enum ExportFormat {
    /// Markdown, to read and to open as the same conversation.
    Markdown,
    /// JSON, of which `open-session` makes an equal conversation.
    Json,
}

/// Reads the JSON that [`json`] wrote. An error is a phrase that says what is wrong with the text.
fn read(text: &str, counter: &dyn Counter) -> Result<Read, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct ExportedFile {
        contexture_session: i64,
        name: String,
        project: Option<String>,
        messages: Vec<MessageParam>,
        state: Option<String>,
    }
    let value = from_json(text.as_bytes())
        .map_err(|error| format!("must be what export-session returns: {error}"))?;
    let file: ExportedFile =
        value.decode().map_err(|error| format!("must be what export-session returns: {error}"))?;
    if file.contexture_session > VERSION {
        let found = file.contexture_session;
        return Err(format!(
            "has format {found}, but this server reads only formats up to {VERSION}; update the server"
        ));
    }
    let name: Name = Value::Str(file.name)
        .decode()
        .map_err(|error| format!("has an invalid session name, which {}", error.message))?;
    let name = no_id(name.0);
    let messages = counted(file.messages, counter)
        .map_err(|error| format!("has an invalid message: {}", error.message))?;
    let view = file.state.as_deref().map(view).transpose()?;
    Ok(Read { name, project: file.project, messages, view })
}

fn view(text: &str) -> Result<Revision, String> {
    let wrong = |error: serde_json::Error| format!("has a state that cannot be read: {error}");
    let revision = Revision::parse(text).map_err(wrong)?;
    if let Some(summary) = &revision.state.summary {
        serde_json::from_value::<summary::SummaryText>(summary.source.clone()).map_err(wrong)?;
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
        project: row.named_project(),
        created: row.created,
        summary: state.summary.as_ref().map(|summary| &*summary.text),
        messages: messages.collect(),
        state: serde_json::to_string(&revision.clone().of_log(log.len() as u64)).ok(),
    };
    json_text(&Value::of(&session)) + "\n"
}
