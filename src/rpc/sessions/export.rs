//! The method that exports a session, whole or as what to hand over.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::transcript;
use crate::curation::used;
use crate::files;
use crate::ids::SharedId;
use crate::rpc::call::MethodCall;
use crate::rpc::hub;
use crate::rpc::params::{InSession, Short, not_negative};
use crate::rpc::{Finish, Step};
use crate::session::message::Message;
use crate::session::state::Revision;
use crate::tokens::Measure;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Export {
    session: Option<InSession>,
    /// Folder of the project to which a session on the hub, `hub-N`, must belong.
    project: Option<Short>,
    /// Format of the text; defaults to `:markdown`.
    format: Option<transcript::ExportFormat>,
    /// Maximum number of tokens of a text in place of the log: what to hand over to another agent.
    /// It has the user's words, newest first, and the commands, paths, addresses and figures that
    /// the work used.
    max_tokens: Option<i64>,
}

/// An exported session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExportedSession")]
pub(super) struct Exported {
    /// Name of the session.
    session: String,
    /// Number of messages in the log.
    messages: usize,
    /// The log as text, or what to hand over, which is empty if there is nothing.
    text: String,
}

pub(super) fn export_session(call: MethodCall, given: Export) -> Result<Step, WireError> {
    let format = given.format.unwrap_or(transcript::ExportFormat::Markdown);
    let shared = given.session.as_ref().and_then(|InSession(name)| name.parse::<SharedId>().ok());
    if let Some(source) = shared.filter(|_| call.tools.hub.is_some() || given.project.is_some()) {
        let project = given.project.map(|folder| files::project_of(&folder));
        return on_hub(&call, source, project, not_negative("max-tokens", given.max_tokens)?);
    }
    if let Some(tokens) = not_negative("max-tokens", given.max_tokens)? {
        return handed_over(given.session, tokens);
    }
    Step::then(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let session = engine.session(row.id)?;
        let (state, learned) = (session.state().clone(), session.learned());
        let (log, revision) = (session.log().to_vec(), Revision { state, learned });
        Ok(Finish::later(move || {
            let text = transcript::write(format, &row, &log, &revision);
            Ok(Exported { session: row.name, messages: log.len(), text })
        }))
    })
}

/// Returns what somebody else said in a session on the hub.
fn on_hub(
    call: &MethodCall,
    source: SharedId,
    project: Option<String>,
    tokens: Option<u64>,
) -> Result<Step, WireError> {
    let counter = Arc::clone(&call.tools.counter);
    let read = hub::read(call, source, project)?;
    Ok(Step::Await(Box::pin(async move {
        let (session, messages) = read.await?;
        let all: Vec<&Message> = messages.iter().collect();
        let text = match tokens {
            Some(tokens) => used::handed_over(&all, tokens, &Measure::plain(counter)),
            None => {
                let one = |it: &&Message| format!("{}: {}\n", it.role.name(), it.content);
                all.iter().map(one).collect::<Vec<_>>().join("\n")
            }
        };
        Step::done(&Exported { session, messages: all.len(), text })
    })))
}

/// Returns what another agent needs of a session, in at most `tokens` tokens.
fn handed_over(session: Option<InSession>, tokens: u64) -> Result<Step, WireError> {
    Step::then(move |engine| {
        let context = engine.session_context(session.as_deref(), None)?;
        let session = engine.session(context.row.id)?;
        let is_active = |message: &&Arc<Message>| session.state().is_active(message.number);
        let messages: Vec<Arc<Message>> = session.log().iter().filter(is_active).cloned().collect();
        Ok(Finish::later(move || {
            let messages: Vec<&Message> = messages.iter().map(|message| &**message).collect();
            let text = used::handed_over(&messages, tokens, &context.costs.measure);
            Ok(Exported { session: context.row.name, messages: messages.len(), text })
        }))
    })
}
