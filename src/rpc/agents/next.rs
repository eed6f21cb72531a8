//! Items to send once, with the next prompts of agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text;
use crate::engine::{EngineError, QueuedItem};
use crate::files::{project_root, true_outside};
use crate::ids::ItemId;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::params::{ManagerName, Short, given_list, ids};
use crate::rpc::{Finish, Step};
use crate::store::session::NextPush;
use crate::wire::message::WireError;

/// Maximum number of items that wait for prompts.
pub(in crate::rpc) const MAX_WAITING: usize = 100;

/// An item to send with the next prompt of a session.
#[derive(Serialize, JsonSchema)]
pub(super) struct DueItem {
    /// Number of the waiting item, for `record-push`.
    number: u64,
    /// Manager of the item.
    manager: String,
    /// Id of the item.
    id: ItemId,
}

impl From<NextPush> for DueItem {
    fn from(NextPush { number, manager, item, .. }: NextPush) -> Self {
        Self { number, manager, id: ItemId(item) }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PushNext {
    /// Id of the item.
    id: Option<ItemId>,
    /// Ids of several items; `:id` or `:ids` is required.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<Vec<ItemId>>,
    manager: Option<ManagerName>,
    /// Name of the agent; defaults to any agent.
    agent: Option<Short>,
    /// Id of the agent's session; defaults to any session.
    agent_session: Option<Short>,
    /// Folder of the project in which the agent must work, or a folder in it; defaults to any
    /// project.
    directory: Option<Short>,
    /// Numbers of items that shall no longer wait, in place of items to send.
    #[serde(default, deserialize_with = "given_list")]
    cancel: Option<Vec<u64>>,
}

/// The numbers of the items that wait for a prompt.
#[derive(Serialize, JsonSchema)]
pub(super) struct PushesNext {
    /// Number of each item that waits, for `:cancel`, or of each that was still waiting and does so
    /// no more.
    numbers: Vec<u64>,
}

pub(super) fn push_next(_: MethodCall, given: PushNext) -> Result<Step, WireError> {
    if let Some(numbers) = given.cancel {
        return Step::state(move |engine| {
            let mut cancelled = Vec::new();
            for number in numbers {
                cancelled.extend(engine.cancel_push(number)?.then_some(number));
            }
            Ok::<_, EngineError>(PushesNext { numbers: cancelled })
        });
    }
    let ids = ids(given.id, given.ids)?;
    let manager = given.manager.unwrap_or_default().0;
    let (agent, session) = (text(given.agent), text(given.agent_session));
    let project = given.directory.map_or_else(String::new, |folder| project_of(&folder));
    Step::then(move |engine| {
        let wish = |item| QueuedItem {
            manager: manager.clone(),
            item,
            agent: agent.clone(),
            session: session.clone(),
            project: project.clone(),
        };
        let wishes = ids.into_iter().map(wish).collect();
        let Some(numbers) = engine.push_next(wishes, MAX_WAITING)? else {
            let message = format!(
                "would let more than {MAX_WAITING} items wait for prompts; cancel some first"
            );
            return Ok(Finish::Refused(param_error("ids", &message)));
        };
        Ok(Finish::now(&PushesNext { numbers }))
    })
}

/// Returns the root of the project that contains `folder`, or `folder` itself if it is in no
/// project, with links resolved. The programs that serve agents name their projects in the same
/// way.
fn project_of(folder: &str) -> String {
    let Some(folder) = true_outside(folder) else { return folder.to_owned() };
    project_root(&folder).unwrap_or(folder).to_string_lossy().into_owned()
}
