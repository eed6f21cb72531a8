//! Converts errors of the lower layers to errors for clients.

use super::error_data::{
    BadParameter, ErrorData, InTurn, NeededPart, PlainKind, ProviderData, StepData,
};
use super::limits::MAX_QUOTED_BYTES;
use super::shapes::ParamPath;
use crate::agent::{AgentError, BrokenOff};
use crate::context::manager::ManagerError;
use crate::context::render::budget::RenderBudgetTooSmall;
use crate::curation::budget::Irreducible;
use crate::curation::config::CurationConfigError;
use crate::curation::summary::SummaryError;
use crate::engine::{EngineError, VersionedName};
use crate::files::{FileError, TreeError};
use crate::ids::{CheckpointId, MemoryId, MessageId, SessionId};
use crate::provider::{ErrorKind, ProviderError};
use crate::store::StoreError;
use crate::value::{Keyword, Value};
use crate::visible::shortened;
use crate::wire::message::WireError;

/// Maximum number of existing sessions or checkpoints in the data of an error.
const NAMES_TOLD: usize = 100;

/// Converts an engine error, with its `:kind` and figures.
pub(crate) fn engine_error(error: EngineError) -> WireError {
    let text = error.to_string();
    match data_of(&error) {
        Some(data) => application(&data, text),
        None => plain(error.kind(), text),
    }
}

/// Returns the data of an engine error whose kind has members; `None` for any other error.
fn data_of(error: &EngineError) -> Option<ErrorData<'_>> {
    Some(match error {
        EngineError::Manager { manager, source } => manager_data(manager, source),
        EngineError::NoSuchItem { id, manager, held_by } => {
            ErrorData::NoSuchItem { id: *id, manager, held_by: held_by.as_deref() }
        }
        EngineError::Conflict { of, expected, version } => conflict(of, *expected, *version),
        EngineError::NothingToUndo(manager) => ErrorData::NothingToUndo(in_manager(manager)),
        EngineError::NothingToRedo(manager) => ErrorData::NothingToRedo(in_manager(manager)),
        EngineError::NoSessionUndo(session) => ErrorData::NothingToUndo(in_session(session)),
        EngineError::NoSessionRedo(session) => ErrorData::NothingToRedo(in_session(session)),
        EngineError::NoSuchSet { known, .. } => ErrorData::NoSuchSet { known },
        EngineError::BudgetTooSmall(error) => ErrorData::BudgetTooSmall {
            needed: error.needed,
            max_tokens: error.max_tokens,
            parts: Some(needed(&error.parts)),
        },
        EngineError::NoSuchMemory(number) => ErrorData::NoSuchMemory { memory: MemoryId(*number) },
        error => return session_data(error),
    })
}

fn in_manager(name: &str) -> StepData<'_> {
    StepData { manager: Some(name), session: None }
}

fn in_session(name: &str) -> StepData<'_> {
    StepData { manager: None, session: Some(name) }
}

fn conflict(of: &VersionedName, expected: u64, version: u64) -> ErrorData<'_> {
    let (manager, session, id) = match of {
        VersionedName::Manager(name) => (Some(name.as_str()), None, None),
        VersionedName::Session(name, id) => (None, Some(name.as_str()), *id),
    };
    ErrorData::Conflict { version, expected, manager, session, session_id: id.map(SessionId) }
}

fn manager_data<'a>(manager: &'a str, error: &ManagerError) -> ErrorData<'a> {
    match *error {
        ManagerError::CapacityFull { adding, capacity, pinned } => {
            let adding = adding as u64;
            ErrorData::CapacityFull { manager, adding, capacity, pinned, count: None, tokens: None }
        }
        ManagerError::PinnedExceedCapacity { .. } => ErrorData::PinnedExceedCapacity { manager },
        ManagerError::NoSuchItem(id) => ErrorData::NoSuchItem { id, manager, held_by: None },
    }
}

/// Returns the data of an error about a session, if its kind has members; `None` for any other
/// error.
fn session_data(error: &EngineError) -> Option<ErrorData<'_>> {
    Some(match error {
        EngineError::NoSuchSession { name, known } => no_session(name.as_deref(), known),
        EngineError::NotDeleted { name, known } => no_session(Some(name), known),
        EngineError::SessionExists(session)
        | EngineError::Store(StoreError::NameTaken(session)) => {
            ErrorData::SessionExists { session }
        }
        EngineError::NoSuchMessage { number, length } => {
            ErrorData::NoSuchMessage { message: MessageId(*number), length: *length }
        }
        EngineError::NoSuchOperation { number, newest } => {
            ErrorData::NoSuchOperation { operation: *number, newest: *newest }
        }
        EngineError::NoCheckpoint { session, known } => {
            let newest = &known[known.len().saturating_sub(NAMES_TOLD)..];
            ErrorData::NoCheckpoint { session, known: CheckpointId::all(newest) }
        }
        EngineError::NoVersioning(session) => ErrorData::VersioningNotEnabled { session },
        EngineError::SessionBusy(session) => ErrorData::SessionBusy { session },
        EngineError::BadSetting(CurationConfigError::OutOfRange { name, .. }) => {
            ErrorData::BadSetting { setting: Keyword(name) }
        }
        EngineError::NotSummarized(SummaryError::Nothing) => {
            ErrorData::NotSummarized { summary_tokens: None, source_tokens: None }
        }
        EngineError::NotSummarized(SummaryError::NoSmaller { summary, source_tokens }) => {
            let (summary_tokens, source_tokens) = (Some(*summary), Some(*source_tokens));
            ErrorData::NotSummarized { summary_tokens, source_tokens }
        }
        _ => return None,
    })
}

fn no_session<'a>(session: Option<&'a str>, known: &'a [String]) -> ErrorData<'a> {
    ErrorData::NoSuchSession { session, known: &known[..known.len().min(NAMES_TOLD)] }
}

impl From<EngineError> for WireError {
    fn from(error: EngineError) -> Self {
        engine_error(error)
    }
}

/// Converts an error of a turn with a model, or of a part of such a turn.
impl From<AgentError> for WireError {
    fn from(error: AgentError) -> Self {
        let text = error.to_string();
        match error {
            AgentError::Engine(error) => engine_error(error),
            AgentError::Provider { name, source } => provider_error(&name, &source),
            AgentError::Unconfigured => {
                application(&ErrorData::Unconfigured { provider: None, model: None }, text)
            }
            AgentError::NoSuchProvider { known, .. } => {
                application(&ErrorData::NoSuchProvider { known: &known }, text)
            }
            AgentError::TooManyProviders { .. } => refused(PlainKind::TooManyProviders, text),
            AgentError::NoSuchStrategy { .. } => named_param("strategy", text),
            AgentError::Picture(_) => named_param("pictures", text),
            AgentError::RelativeProject => named_param("project", text),
            AgentError::NeverFits { name, source, needed: tokens, parts } => {
                let of = provider_data(&name, &source);
                let (needed, parts) = (Some(tokens), Some(needed(&parts)));
                application(&ErrorData::ContextTooLong { of, needed, parts }, text)
            }
            AgentError::InTurn { question, answer, source } => {
                let id = answer.and_then(|BrokenOff { message }| message).map(MessageId);
                let more = InTurn { question: MessageId(question), id };
                with_more(Self::from(*source), &more)
            }
            AgentError::Defect(what) => internal_error(what),
        }
    }
}

fn with_more(mut error: WireError, more: &InTurn) -> WireError {
    if let (Value::Map(data), Value::Map(more)) = (&mut error.data, Value::of(more)) {
        data.extend(more);
    }
    error
}

/// Creates the error for a defect in `what`, and logs it for later investigation.
pub(crate) fn internal_error(what: &str) -> WireError {
    let message = format!("internal error in {what}");
    tracing::error!("{message}");
    refused(PlainKind::Internal, message)
}

fn needed(parts: &[Irreducible]) -> Vec<NeededPart> {
    let part = |part: &Irreducible| NeededPart {
        what: part.what.label(part.section),
        section: part.section,
        reason: part.reason,
        tokens: part.tokens,
    };
    parts.iter().map(part).collect()
}

impl From<FileError> for WireError {
    fn from(error: FileError) -> Self {
        plain(error.kind(), error.to_string())
    }
}

impl From<TreeError> for WireError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Cancelled { .. } => cancelled(),
            TreeError::Root(_) => plain(error.kind(), error.to_string()),
            TreeError::TooManyEntries { .. } => {
                application(&ErrorData::TreeTooLarge { bytes: None }, error.to_string())
            }
        }
    }
}

impl From<RenderBudgetTooSmall> for WireError {
    fn from(error: RenderBudgetTooSmall) -> Self {
        let (needed, max_tokens) = (error.needed, error.max_tokens);
        let data = ErrorData::BudgetTooSmall { needed, max_tokens, parts: None };
        application(&data, error.to_string())
    }
}

pub(super) fn provider_error(name: &str, error: &ProviderError) -> WireError {
    let of = provider_data(name, error);
    let data = match error.kind {
        ErrorKind::Cancelled => return cancelled(),
        ErrorKind::Unconfigured => {
            ErrorData::Unconfigured { provider: Some(of.provider), model: Some(of.model) }
        }
        ErrorKind::Authentication => ErrorData::Authentication(of),
        ErrorKind::RateLimited => ErrorData::RateLimited(of),
        ErrorKind::QuotaExhausted => ErrorData::QuotaExhausted(of),
        ErrorKind::ContextTooLong => ErrorData::ContextTooLong { of, needed: None, parts: None },
        ErrorKind::BadRequest => ErrorData::BadRequest(of),
        ErrorKind::Unavailable => ErrorData::Unavailable(of),
        ErrorKind::Malformed => ErrorData::Malformed(of),
    };
    application(&data, error.to_string())
}

fn provider_data<'a>(provider: &'a str, error: &'a ProviderError) -> ProviderData<'a> {
    let retry_after = error.retry_after.map(|wait| wait.as_secs());
    ProviderData { provider, model: &error.model, retry_after }
}

/// Creates the error for an invalid parameter. `path` names the parameter, and `message` continues
/// from the name.
pub(super) fn param_error(path: &str, message: &str) -> WireError {
    let path = &*shortened(path, MAX_QUOTED_BYTES);
    if path.is_empty() {
        let data = Value::of(&BadParameter { param: None });
        return with_data(WireError::INVALID_PARAMS, format!("the parameters {message}"), data);
    }
    named_param(path, format!("{path} {message}"))
}

/// Creates the error for an invalid parameter. `message` must contain the parameter's name.
fn named_param(path: &str, message: String) -> WireError {
    let data = Value::of(&BadParameter { param: Some(ParamPath(path)) });
    with_data(WireError::INVALID_PARAMS, message, data)
}

/// Creates an error of the application, which programs recognize by its kind.
pub(super) fn application(data: &ErrorData<'_>, message: String) -> WireError {
    with_data(WireError::APPLICATION, message, data.shown())
}

/// Creates an error whose kind has no members.
pub(super) fn refused(kind: PlainKind, message: String) -> WireError {
    let data = Value::Map(vec![("kind".into(), Value::of(&kind))]);
    with_data(kind.code(), message, data)
}

/// Creates the error for clients from the kind and the message of a lower layer's error. An unknown
/// kind is an internal error.
fn plain(kind: &str, message: String) -> WireError {
    match PlainKind::from_name(kind) {
        Some(kind) => refused(kind, message),
        None => {
            internal_error(&format!("the table of errors, which lacks the kind {kind}: {message}"))
        }
    }
}

pub(super) fn cancelled() -> WireError {
    engine_error(EngineError::Cancelled)
}

fn with_data(code: i32, message: String, data: Value) -> WireError {
    WireError::new(code, message).with(data)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_internal_error_is_in_the_log() {
        let log = Log::default();
        let writer = log.clone();
        let logged = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let error = tracing::subscriber::with_default(logged, || internal_error("a test"));
        assert_eq!(error.message, "internal error in a test");
        assert_eq!(error.data.get("kind"), Some(&Value::Keyword("internal".into())));
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(said.contains("ERROR") && said.contains("internal error in a test"), "{said}");
    }
}
