//! The agent family: what sessions of agents were given.

mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::table::METHODS;
use super::Step;
use super::call::Call;
use super::error::{internal_error, param_error};
use super::params::{Short, not_negative};
use crate::engine::EngineError;
use crate::wire::message::WireError;

/// Maximum number of items in a record.
pub(super) const MAX_PUSHED_ITEMS: usize = 10_000;
/// Maximum length of an id or a digest, in bytes.
pub(super) const MAX_DIGEST_BYTES: usize = 128;

/// An item that an agent has.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PushedItem")]
pub(super) struct PushedItem {
    /// Id of the item.
    id: String,
    /// Digest of what the agent was shown of the item; at most 128 bytes, in a form of the caller's.
    digest: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PushedCall {
    /// Name of the agent, such as `claude`.
    agent: Short,
    /// Id that the agent gives its session.
    agent_session: Short,
    /// Number of the last push that the agent received; defaults to the latest.
    number: Option<i64>,
}

/// What a session of an agent was given.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PushedContext")]
pub(super) struct Pushed {
    /// Number of the push; 0 if none is known.
    number: u64,
    /// The items that the agent has.
    items: Vec<PushedItem>,
}

pub(super) fn pushed_context(_: Call, given: PushedCall) -> Result<Step, WireError> {
    let number = not_negative("number", given.number)?;
    Step::state(move |engine| {
        let state = engine.pushed(&given.agent.0, &given.agent_session.0, number)?;
        // A record in another form is as good as none.
        let items = serde_json::from_str(&state.items).unwrap_or_default();
        Ok::<_, EngineError>(Pushed { number: state.number, items })
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RecordPush {
    /// Name of the agent, such as `claude`.
    agent: Short,
    /// Id that the agent gives its session.
    agent_session: Short,
    /// Number of the last push that the agent received; defaults to 0, for none.
    after: Option<i64>,
    /// All items that the agent has after this push, at most 10,000.
    items: Vec<PushedItem>,
}

/// A recorded push.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RecordedPush")]
pub(super) struct Recorded {
    /// Number of the push.
    number: u64,
}

pub(super) fn record_push(_: Call, given: RecordPush) -> Result<Step, WireError> {
    let after = not_negative("after", given.after)?.unwrap_or(0);
    if given.items.len() > MAX_PUSHED_ITEMS {
        return Err(param_error("items", &format!("must be at most {MAX_PUSHED_ITEMS}")));
    }
    if given.items.iter().any(|item| item.id.len().max(item.digest.len()) > MAX_DIGEST_BYTES) {
        let message = format!("must have ids and digests of at most {MAX_DIGEST_BYTES} bytes");
        return Err(param_error("items", &message));
    }
    let items = serde_json::to_string(&given.items).map_err(|_| internal_error("record-push"))?;
    Step::state(move |engine| {
        let number = engine.record_push(&given.agent.0, &given.agent_session.0, after, items)?;
        Ok::<_, EngineError>(Recorded { number })
    })
}
