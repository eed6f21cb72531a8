//! The server family: methods about the server itself.

pub(super) mod backup;
mod changes;
mod exchange;
pub(super) mod hub;
mod initialize;
pub(super) mod limits;
mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::table::METHODS;
use super::Step;
use super::call::{MethodCall, Subscription};
use super::error::param_error;
use super::notification::Topic;
use super::params::{Name, Nothing, given_list};
use crate::value::Value;
use crate::wire::message::{RequestId, WireError};

/// The answer to `ping`.
/// Returns the limits of a server with the default settings, by their names in JSON.
pub(crate) fn default_limits() -> serde_json::Value {
    // Numbers can always be written.
    serde_json::to_value(self::limits::LimitsShown::by_default()).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ping {
    Pong,
}

pub(super) fn ping(_: MethodCall, _: Nothing) -> Result<Step, WireError> {
    Step::done(&Ping::Pong)
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

pub(super) fn subscribe(call: MethodCall, given: Subscribe) -> Result<Step, WireError> {
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

pub(super) fn cancel(_: MethodCall, given: Cancel) -> Result<Step, WireError> {
    match given.id {
        Value::Int(id) => Ok(Step::Cancel(RequestId::Int(id))),
        Value::Str(id) => Ok(Step::Cancel(RequestId::Str(id))),
        _ => Err(param_error("id", "must be a request's id, an integer or a string")),
    }
}

pub(super) fn shutdown(_: MethodCall, _: Nothing) -> Result<Step, WireError> {
    Ok(Step::ShutDown)
}
