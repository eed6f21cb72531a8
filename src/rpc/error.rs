//! Converts errors of the lower layers to errors on the wire.

use schemars::JsonSchema;
use serde::Serialize;

use super::present::{entry, figure, keyword};
use crate::agent::{AgentError, BrokenOff};
use crate::context::manager::ManagerError;
use crate::context::render::budget::BudgetTooSmall;
use crate::curation::budget::Irreducible;
use crate::curation::config::ConfigError;
use crate::curation::summary::SummaryError;
use crate::engine::EngineError;
use crate::files::{FileError, TreeError};
use crate::ids::{CheckpointId, MemoryId, MessageId};
use crate::provider::{ErrorKind, ProviderError};
use crate::store::StoreError;
use crate::value::{self, Key, Keyword, Value};
use crate::wire::message::WireError;

/// Maximum number of existing names in the data of an error.
const NAMES_TOLD: usize = 100;

/// Converts an engine error, with its `:kind` and figures.
pub(crate) fn engine_error(error: EngineError) -> WireError {
    let code = match &error {
        EngineError::Panicked(_) => WireError::INTERNAL,
        EngineError::Cancelled => WireError::CANCELLED,
        _ => WireError::APPLICATION,
    };
    let mut data = vec![("kind", keyword(error.kind()))];
    match &error {
        EngineError::Manager { manager, source } => {
            data.push(("manager", text(manager)));
            if let ManagerError::CapacityFull { adding, capacity, pinned } = source {
                data.push(("adding", integer(*adding)));
                data.push(("capacity", integer(*capacity)));
                data.push(("pinned", integer(*pinned)));
            }
        }
        EngineError::NoSuchItem { id, manager, held_by } => {
            data.push(("id", text(&id.to_string())));
            data.push(("manager", text(manager)));
            data.push(("held-by", held_by.as_deref().map_or(Value::Nil, text)));
        }
        EngineError::NothingToUndo { manager } => data.push(("manager", text(manager))),
        EngineError::NoSuchSet { known, .. } => data.push(("known", texts(known))),
        error => data.extend(session_data(error)),
    }
    with_data(code, error.to_string(), data)
}

/// Converts an error of a turn with a model, or of a part of one.
pub(super) fn agent_error(error: AgentError) -> WireError {
    let text = error.to_string();
    match error {
        AgentError::Engine(error) => engine_error(error),
        AgentError::Provider { name, source } => provider_error(&name, &source),
        AgentError::Unconfigured => application("unconfigured", text, vec![]),
        AgentError::NoSuchProvider { known, .. } => {
            application("no-such-provider", text, vec![("known", texts(&known))])
        }
        AgentError::TooManyProviders { .. } => application("too-many-providers", text, vec![]),
        AgentError::NoSuchStrategy { .. } => named_param("strategy", text),
        AgentError::RelativeProject => named_param("project", text),
        AgentError::NeverFits { name, source, needed, parts } => {
            let parts = parts.iter().map(irreducible).collect();
            let more = [entry("needed", figure(needed)), entry("parts", Value::List(parts))];
            with_more(provider_error(&name, &source), more)
        }
        AgentError::InTurn { question, answer, source } => {
            let error = with_more(agent_error(*source), [entry("question", MessageId(question))]);
            let id = |BrokenOff { message }: BrokenOff| {
                message.map_or(Value::Nil, |number| MessageId(number).into())
            };
            with_more(error, answer.map(|answer| entry("id", id(answer))))
        }
        AgentError::Defect(what) => internal_error(what),
    }
}

/// Adds data to an error.
fn with_more(mut error: WireError, more: impl IntoIterator<Item = (Key, Value)>) -> WireError {
    if let Value::Map(data) = &mut error.data {
        data.extend(more);
    }
    error
}

/// Creates the error for a defect in `what`, and logs it for later investigation.
pub(crate) fn internal_error(what: &str) -> WireError {
    let message = format!("internal error in {what}");
    tracing::error!("{message}");
    WireError::new(WireError::INTERNAL, message)
}

/// Returns the data for programs in errors about sessions and memories.
fn session_data(error: &EngineError) -> Vec<(&'static str, Value)> {
    match error {
        EngineError::NoSuchSession { name, known } => vec![
            ("session", name.as_deref().map_or(Value::Nil, text)),
            ("known", texts(&known[..known.len().min(NAMES_TOLD)])),
        ],
        EngineError::NotDeleted { name, known } => {
            vec![("session", text(name)), ("known", texts(&known[..known.len().min(NAMES_TOLD)]))]
        }
        EngineError::SessionExists { name } | EngineError::Store(StoreError::NameTaken(name)) => {
            vec![("session", text(name))]
        }
        EngineError::NoSuchMessage { number, length } => {
            vec![("message", MessageId(*number).into()), ("length", figure(*length))]
        }
        EngineError::NoSuchRevision { number, newest } => {
            vec![("revision", figure(*number)), ("newest", figure(*newest))]
        }
        EngineError::NoCheckpoint { session, known } => {
            let newest = &known[known.len().saturating_sub(NAMES_TOLD)..];
            let known = newest.iter().map(|number| CheckpointId(*number).into()).collect();
            vec![("session", text(session)), ("known", Value::List(known))]
        }
        EngineError::NoVersioning { session } | EngineError::NoRollback { session } => {
            vec![("session", text(session))]
        }
        EngineError::NoSuchMemory(number) => vec![("memory", MemoryId(*number).into())],
        EngineError::BudgetTooSmall(error) => vec![
            ("needed", figure(error.needed)),
            ("max-tokens", figure(error.max_tokens)),
            ("parts", Value::List(error.parts.iter().map(irreducible).collect())),
        ],
        EngineError::BadSetting(ConfigError::OutOfRange { name, .. }) => {
            vec![("setting", keyword(name))]
        }
        EngineError::NotSummarized(SummaryError::NoSmaller { summary, source_tokens }) => {
            vec![("summary-tokens", figure(*summary)), ("source-tokens", figure(*source_tokens))]
        }
        _ => Vec::new(),
    }
}

/// A part that a window cannot leave out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NeededPart")]
struct Needed<'a> {
    /// Name of the part.
    what: Value,
    /// Section of the part.
    section: Keyword<&'static str>,
    /// Reason why it cannot be left out.
    reason: &'a str,
    /// Tokens of the part.
    tokens: u64,
}

fn irreducible(part: &Irreducible) -> Value {
    Value::of(&Needed {
        what: part.what.label(part.section).into(),
        section: Keyword(part.section.name()),
        reason: part.reason,
        tokens: part.tokens,
    })
}

/// Converts the error of a file that could not be read.
pub(super) fn file_error(error: &FileError) -> WireError {
    application(error.kind(), error.to_string(), vec![])
}

/// Converts the error of a directory that could not be walked.
pub(super) fn tree_error(error: &TreeError) -> WireError {
    match error {
        TreeError::Cancelled { .. } => cancelled(),
        error => application(error.kind(), error.to_string(), vec![]),
    }
}

/// Converts the error of a rendering that cannot be made small enough.
pub(super) fn budget_error(error: &BudgetTooSmall) -> WireError {
    let data = vec![("needed", figure(error.needed)), ("max-tokens", figure(error.max_tokens))];
    application("budget-too-small", error.to_string(), data)
}

/// Converts the error of a provider.
pub(super) fn provider_error(name: &str, error: &ProviderError) -> WireError {
    if error.kind == ErrorKind::Cancelled {
        return cancelled();
    }
    let mut data = vec![("provider", text(name)), ("model", text(&error.model))];
    data.extend(error.retry_after.map(|wait| ("retry-after", figure(wait.as_secs()))));
    application(error.kind.name(), error.to_string(), data)
}

/// Converts the error of parameters that cannot be decoded.
pub(super) fn value_error(error: value::Error) -> WireError {
    param_error(&error.path, &error.message)
}

/// Creates the error for an invalid parameter. `path` names the parameter, and `message` continues
/// from the name.
pub(super) fn param_error(path: &str, message: &str) -> WireError {
    if path.is_empty() {
        return with_data(WireError::INVALID_PARAMS, format!("the parameters: {message}"), vec![]);
    }
    named_param(path, format!("{path} {message}"))
}

/// Creates the error for an invalid parameter; the message contains its name.
fn named_param(path: &str, message: String) -> WireError {
    with_data(WireError::INVALID_PARAMS, message, vec![("param", keyword(path))])
}

/// Creates an error of the application, which programs recognize by `kind`.
pub(super) fn application(
    kind: &str,
    message: String,
    more: Vec<(&'static str, Value)>,
) -> WireError {
    let mut data = vec![("kind", keyword(kind))];
    data.extend(more);
    with_data(WireError::APPLICATION, message, data)
}

/// Creates the error for a call that its client cancelled.
pub(super) fn cancelled() -> WireError {
    engine_error(EngineError::Cancelled)
}

fn with_data(code: i32, message: String, data: Vec<(&'static str, Value)>) -> WireError {
    let data = data.into_iter().map(|(name, value)| (name.into(), value)).collect();
    WireError { data: Value::Map(data), ..WireError::new(code, message) }
}

fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

fn texts(names: &[String]) -> Value {
    Value::List(names.iter().map(|name| text(name)).collect())
}

fn integer(number: usize) -> Value {
    Value::Int(number as i64)
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
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(said.contains("ERROR") && said.contains("internal error in a test"), "{said}");
    }
}
