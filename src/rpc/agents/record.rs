//! Records of the items that sessions of agents were given.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::marked::{FoundItems, Marked};
use super::next::DueItem;
use super::text;
use crate::engine::{Engine, EngineError, NewPush};
use crate::rpc::call::MethodCall;
use crate::rpc::connected::{SessionState, Signal};
use crate::rpc::context::layers::layers_of;
use crate::rpc::context::unsaved::ask;
use crate::rpc::error::param_error;
use crate::rpc::params::{Short, not_negative};
use crate::rpc::sessions::recordings::import_after;
use crate::rpc::{Finish, Step};
use crate::wire::message::WireError;

/// Maximum number of items in a record.
pub(in crate::rpc) const MAX_PUSHED_ITEMS: usize = 10_000;
/// Maximum length of an id or a digest, in bytes.
pub(in crate::rpc) const MAX_DIGEST_BYTES: usize = 128;

/// An item that an agent has.
#[derive(Deserialize, JsonSchema)]
struct PushedItem {
    /// Id of the item.
    id: String,
    /// Digest of the item as the agent was shown it; at most 128 bytes, in any form.
    digest: String,
}

/// An item that an agent has, as it is recorded.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RecordedItem")]
pub(super) struct RecordedItem {
    /// Id of the item.
    pub(super) id: String,
    /// Digest of the item in the form that was shown to the agent.
    digest: String,
    /// Time at which the agent was last shown the item, in Unix seconds; 0 if unknown.
    #[serde(default)]
    pub(super) at: i64,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PushedCall {
    /// Name of the agent, such as `claude`.
    agent: Short,
    /// Id that the agent gives its session.
    agent_session: Short,
    /// Folder of the project; items that wait for prompts in other projects are left out.
    project: Option<Short>,
    /// Number of the last push that the agent received; defaults to the latest.
    number: Option<i64>,
    /// Also return the marked items of the project as they are now: ask the editors for text that is
    /// not saved, and bring live items up to date with their files; defaults to `nil`.
    marked: Option<bool>,
    /// What the agent is doing now in the session, as its hook tells.
    state: Option<SessionState>,
    /// Number of the agent's process. Once it is gone, the session counts as ended.
    process: Option<i32>,
    /// Absolute path of a recording of the session. The server imports the recording once the
    /// client has left, but after a second at the latest.
    recording: Option<Short>,
}

/// The items that a session of an agent was given.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PushedContext")]
pub(super) struct Pushed {
    /// Number of the push after which the agent has `:items`; 0 if no push is known.
    number: u64,
    /// The items that the agent has.
    items: Vec<RecordedItem>,
    /// Folder of the project of the latest push; empty if unknown.
    project: String,
    /// Items to send once, with the next prompt.
    next: Vec<DueItem>,
    /// The marked items of the project; only if the call asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    marked: Option<Marked>,
    /// True if the recording will be imported, false if too many other recordings are being
    /// imported; only if the call names a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    importing: Option<bool>,
}

pub(super) fn pushed_context(call: MethodCall, given: PushedCall) -> Result<Step, WireError> {
    let number = not_negative("number", given.number)?;
    let importing = given.recording.map(|recording| import_after(&call, recording));
    let project = text(given.project.clone());
    let signal = given.state.map(|state| (state, given.process, Arc::clone(&call.tools)));
    let pushed = move |engine: &mut Engine| {
        if let Some((state, process, tools)) = signal {
            let signal = Signal { state, at: engine.now(), process };
            tools.agents.signal(engine, &given.agent, &given.agent_session, signal);
        }
        let (state, due, of) =
            engine.pushed(&given.agent, &given.agent_session, &project, number)?;
        let next = due.into_iter().map(DueItem::from).collect();
        let (number, items) = (state.number, items_of(&state.items));
        Ok::<_, EngineError>(Pushed { number, items, project: of, next, marked: None, importing })
    };
    if given.marked != Some(true) {
        return Step::state(pushed);
    }
    let layers = layers_of(given.project)?;
    Ok(Step::Await(Box::pin(async move {
        let late = ask(&call, None).await?.late;
        Step::then(move |engine| {
            let (pushed, found) = (pushed(engine)?, FoundItems::of(engine, layers)?);
            Ok(Finish::later(move || {
                Ok(Pushed { marked: Some(found.up_to_date(&call, late)?), ..pushed })
            }))
        })
    })))
}

/// Returns the items of a record. A record in an unknown form counts as empty.
pub(super) fn items_of(record: &str) -> Vec<RecordedItem> {
    serde_json::from_str(record).unwrap_or_default()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RecordPush {
    /// Name of the agent, such as `claude`.
    agent: Short,
    /// Id that the agent gives its session.
    agent_session: Short,
    /// Number of the last push that the agent received; absent if it received none.
    after: Option<i64>,
    /// All items that the agent has after this push, at most 10,000.
    items: Vec<PushedItem>,
    /// Folder of the project.
    project: Option<Short>,
    /// Ids of the items that this push shows; defaults to those that the agent did not have, or had
    /// with another digest.
    shown: Option<Vec<String>>,
    /// Tokens of the items that this push shows.
    tokens: Option<i64>,
    /// Numbers of the items from `:next` of `pushed-context` that this push contains. These items
    /// are not sent with another push, unless the agent does not receive this one.
    next: Option<Vec<u64>>,
}

/// A recorded push of items to a session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RecordedPush")]
pub(super) struct PushRecorded {
    /// Number of the push.
    number: u64,
}

pub(super) fn record_push(_: MethodCall, given: RecordPush) -> Result<Step, WireError> {
    let after = not_negative("after", given.after)?.unwrap_or(0);
    let tokens = not_negative("tokens", given.tokens)?.unwrap_or(0);
    check(&given.items)?;
    let (agent, session) = (given.agent.0, given.agent_session.0);
    let project = text(given.project);
    let next = given.next.unwrap_or_default();
    Step::then(move |engine| {
        let (before, ..) = engine.pushed(&agent, &session, &project, Some(after))?;
        let items = recorded(given.items, given.shown, items_of(&before.items), engine.now());
        let items = serde_json::to_string(&items).unwrap_or_default();
        let push = NewPush { agent, session, after, items, project, tokens, next };
        Ok(match engine.record_push(push)? {
            Some(number) => Finish::now(&PushRecorded { number }),
            None => Finish::Refused(param_error(
                "next",
                "has the number of an item that no longer waits; call pushed-context again",
            )),
        })
    })
}

fn check(items: &[PushedItem]) -> Result<(), WireError> {
    if items.len() > MAX_PUSHED_ITEMS {
        return Err(param_error("items", &format!("must have at most {MAX_PUSHED_ITEMS} entries")));
    }
    if items.iter().any(|item| item.id.len().max(item.digest.len()) > MAX_DIGEST_BYTES) {
        let message = format!("must have ids and digests of at most {MAX_DIGEST_BYTES} bytes");
        return Err(param_error("items", &message));
    }
    Ok(())
}

/// Returns the items, each with the time at which the agent was last shown it: `now` if this push
/// shows it or `before` does not have it, else the time in `before`.
fn recorded(
    items: Vec<PushedItem>,
    shown: Option<Vec<String>>,
    before: Vec<RecordedItem>,
    now: i64,
) -> Vec<RecordedItem> {
    let shown: Option<HashSet<String>> = shown.map(HashSet::from_iter);
    let mut before: HashMap<String, RecordedItem> =
        before.into_iter().map(|item| (item.id.clone(), item)).collect();
    let record = |PushedItem { id, digest }: PushedItem| {
        let known = before.remove(&id).filter(|known| match &shown {
            Some(shown) => !shown.contains(&id),
            None => known.digest == digest,
        });
        RecordedItem { at: known.map_or(now, |known| known.at), id, digest }
    };
    items.into_iter().map(record).collect()
}
