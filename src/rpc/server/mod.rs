//! The server family: methods about the server itself.

pub(super) mod backup;
mod exchange;
mod initialize;
pub(super) mod limits;
mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::backup::BackupShown;
use self::limits::LimitsShown;
pub(super) use self::table::METHODS;
use super::call::{Call, Subscription, Topic};
use super::error::param_error;
use super::params::{Name, Nothing, given_list};
use super::{Finish, Step};
use crate::engine::Statistics;
use crate::store::recovery::Files;
use crate::store::recovery::backup::list;
use crate::value::{Keyword, Value};
use crate::wire::dialect::Dialect;
use crate::wire::message::{Id, WireError};

/// The answer to `ping`.
/// Returns the limits of a server with the default settings, by their names in JSON.
pub(crate) fn default_limits() -> serde_json::Value {
    // Numbers can always be written.
    serde_json::to_value(LimitsShown::by_default()).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ping {
    Pong,
}

pub(super) fn ping(_: Call, _: Nothing) -> Result<Step, WireError> {
    Step::done(&Ping::Pong)
}

/// The description of a server.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerInfo")]
struct ServerInfo<'a> {
    /// Always `contexture`.
    name: &'static str,
    /// Version of the program.
    version: &'static str,
    /// Dialects that the server understands.
    dialects: Vec<Keyword<&'static str>>,
    /// Id of the server's process.
    pid: u32,
    /// State folder; `nil` if the server keeps no state.
    state: Option<String>,
    /// Name of the counter that counts the tokens of new items.
    token_counter: Keyword<&'static str>,
    /// Limits in effect.
    limits: LimitsShown,
    /// Totals since the start of the server.
    statistics: Statistics,
    /// Problems found at the start, such as a damaged database.
    notices: &'a [String],
    /// Reason why changes cannot be stored now; `nil` if they can.
    read_only: Option<String>,
    /// Newest automatic backup; `nil` if there is none.
    backup: Option<BackupShown>,
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
    /// Names of the managers to notify about; defaults to all.
    #[serde(default, deserialize_with = "given_list")]
    managers: Option<Vec<Name>>,
    /// Names or ids of the sessions to notify about; defaults to all.
    #[serde(default, deserialize_with = "given_list")]
    sessions: Option<Vec<Name>>,
}

/// The topics of a connection.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Subscribed<'a> {
    /// Topics about which the connection now gets notifications.
    pub(crate) topics: &'a [Topic],
}

pub(super) fn subscribe(call: Call, given: Subscribe) -> Result<Step, WireError> {
    let is_editor = given.topics.contains(&Topic::TextWanted);
    call.tools.editors.note(&call.client, is_editor);
    call.tools.note_editor(call.caller, is_editor);
    let names = |given: Option<Vec<Name>>| {
        given.map(|names| names.into_iter().map(|Name(name)| name).collect())
    };
    let (managers, sessions) = (names(given.managers), names(given.sessions));
    Ok(Step::Subscribe(Subscription {
        topics: given.topics,
        managers,
        sessions,
        caller: call.caller,
    }))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Cancel {
    /// Id of the call.
    #[schemars(with = "serde_json::Value", extend("type" = ["integer", "string"]))]
    id: Value,
}

/// The outcome of cancelling a call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CancelledCall")]
pub(crate) struct CallCancelled {
    /// True if the call was waiting or running.
    pub(crate) cancelled: bool,
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
