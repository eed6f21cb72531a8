//! The server family: the server itself.

pub(super) mod backup;
mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::backup::BackupShown;
pub(super) use self::table::METHODS;
use super::call::{Call, Topic};
use super::error::param_error;
use super::params::{MAX_METADATA_BYTES, Nothing};
use super::{Finish, Step};
use crate::agent::Limits;
use crate::engine::Statistics;
use crate::store::recovery::Files;
use crate::store::recovery::backup::list;
use crate::value::sexp::MAX_DEPTH;
use crate::value::{Keyword, MAX_DATA, Value};
use crate::wire::dialect::Dialect;
use crate::wire::message::{Id, WireError};

pub(super) fn ping(_: Call, _: Nothing) -> Result<Step, WireError> {
    Step::done(&Keyword("pong"))
}

#[derive(Serialize)]
struct ServerInfo<'a> {
    name: &'static str,
    version: &'static str,
    dialects: Vec<Keyword<&'static str>>,
    pid: u32,
    state: Option<String>,
    token_counter: Keyword<&'static str>,
    limits: LimitsShown,
    statistics: Statistics,
    notices: &'a [String],
    read_only: Option<String>,
    backup: Option<BackupShown>,
}

#[derive(Serialize)]
struct LimitsShown {
    max_message_bytes: usize,
    max_depth: usize,
    max_data: usize,
    max_metadata_bytes: usize,
    max_file_bytes: u64,
    max_items: usize,
}

impl From<Limits> for LimitsShown {
    fn from(Limits { max_message_bytes, max_file_bytes, max_items }: Limits) -> Self {
        Self {
            max_message_bytes,
            max_depth: MAX_DEPTH,
            max_data: MAX_DATA,
            max_metadata_bytes: MAX_METADATA_BYTES,
            max_file_bytes,
            max_items,
        }
    }
}

pub(super) fn server_info(call: Call, _: Nothing) -> Result<Step, WireError> {
    let tools = call.tools;
    Step::then(move |engine| {
        let (statistics, read_only) = (engine.statistics(), engine.refusal());
        Ok(Finish::Later(Box::new(move || {
            let folder = tools.state_folder.as_ref();
            let newest = folder.and_then(|folder| list(&Files::new(folder)).pop());
            Ok(Value::of(&ServerInfo {
                name: "contexture",
                version: env!("CARGO_PKG_VERSION"),
                dialects: Dialect::ALL.iter().map(|dialect| Keyword(dialect.name())).collect(),
                pid: std::process::id(),
                state: folder.map(|path| path.to_string_lossy().into_owned()),
                token_counter: Keyword(tools.counter.name()),
                limits: tools.limits.into(),
                statistics,
                notices: &tools.notices,
                read_only,
                backup: newest.map(BackupShown::from),
            }))
        })))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Subscribe {
    /// The topics; `nil` for none.
    topics: Vec<Topic>,
}

pub(super) fn subscribe(_: Call, given: Subscribe) -> Result<Step, WireError> {
    Ok(Step::Subscribe(given.topics))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Cancel {
    /// Id of the call.
    #[schemars(with = "serde_json::Value", extend("type" = ["integer", "string"]))]
    id: Value,
}

pub(super) fn cancel(_: Call, given: Cancel) -> Result<Step, WireError> {
    match given.id {
        Value::Int(id) => Ok(Step::Cancel(Id::Int(id))),
        Value::Str(id) => Ok(Step::Cancel(Id::Str(id))),
        _ => Err(param_error("id", "must be a request's id, an integer or a string")),
    }
}

pub(super) fn shutdown(_: Call, _: Nothing) -> Result<Step, WireError> {
    Ok(Step::ShutDown)
}
