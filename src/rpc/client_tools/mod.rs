//! Tools that clients bring: which connection brought which tool, and the calls that wait for
//! results.

mod agents;
mod allowed;
mod given;
mod remote;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value as Json};
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;

use self::allowed::Allowed;
pub(super) use self::given::{
    ClientTool, Effect, MAX_CLIENT_TOOLS, MAX_DESCRIPTION_BYTES, MAX_TOOL_NAME_BYTES,
    MAX_TOOL_PLACES, MAX_TOOL_SECONDS, ToolDescription, checked,
};
use self::remote::{Remote, ToolCalled, ToolCancelled};
use super::client::Client;
use super::locked;
use super::peer::Peer;
use crate::agent::tools::{OfferedTool, context};
use crate::engine::Engine;

/// Name of the notification about a call.
const CALLED: &str = "tool-called";
/// Name of the notification that the result of a call is no longer wanted.
const CANCELLED: &str = "tool-cancelled";

/// The tools of all connections. Clones share the tools.
#[derive(Clone, Default)]
pub struct ClientTools(Arc<Mutex<KnownTools>>);

#[derive(Default)]
struct KnownTools {
    tools: Vec<Arc<RegisteredTool>>,
    allowed: Vec<Allowed>,
    /// Number of the last call.
    last: u64,
    calls: HashMap<u64, WaitingCall>,
}

/// A tool, with the connection that brought it.
pub(super) struct RegisteredTool {
    pub(super) owner: ToolOwner,
    pub(super) tool: ToolDescription,
}

/// The connection that brought a tool. It can end at any time.
#[derive(Clone)]
pub(super) struct ToolOwner {
    pub(super) client: Weak<Client>,
    pub(super) peer: Weak<dyn Peer>,
    /// Cancelled when the connection ends.
    pub(super) gone: CancellationToken,
}

/// A call that waits for its result.
struct WaitingCall {
    client: Weak<Client>,
    result: Sender<Result<String, String>>,
}

impl ToolOwner {
    fn is_here(&self) -> bool {
        self.client.strong_count() > 0 && !self.gone.is_cancelled()
    }
}

impl ClientTools {
    /// Replaces the tools of a connection. Returns the earlier and the new tools, so that the
    /// caller can [announce] the change; returns no tools if they are the same as before. Ends the
    /// permissions for tools that are gone or described in other words.
    pub(super) fn set(
        &self,
        owner: &ToolOwner,
        tools: Vec<ToolDescription>,
    ) -> Vec<Arc<RegisteredTool>> {
        let mut known = self.known();
        let mut changed = known.take(&owner.client);
        let is_same = changed.iter().map(|brought| &brought.tool).eq(&tools);
        let is_shown = |allowed: &Allowed| {
            !allowed.client.ptr_eq(&owner.client) || tools.contains(&allowed.tool)
        };
        known.allowed.retain(is_shown);
        let brought = |tool| Arc::new(RegisteredTool { owner: owner.clone(), tool });
        let new: Vec<_> = tools.into_iter().map(brought).collect();
        known.tools.extend(new.iter().cloned());
        changed.extend(new);
        if is_same { Vec::new() } else { changed }
    }

    /// Returns the tools of the connections that are open, in the order in which the tools came.
    pub(super) fn here(&self) -> Vec<Arc<RegisteredTool>> {
        self.known().tools.iter().filter(|tool| tool.owner.is_here()).cloned().collect()
    }

    /// Returns whether a tool is still there, and reaches what it reached when it was brought.
    pub(super) fn has(&self, brought: &RegisteredTool) -> bool {
        let is_same = |known: &Arc<RegisteredTool>| {
            known.owner.client.ptr_eq(&brought.owner.client)
                && known.tool.name == brought.tool.name
                && known.tool.touches == brought.tool.touches
        };
        self.known().tools.iter().any(is_same)
    }

    /// Forgets the tools of a connection that sends nothing more, and the permissions for these
    /// tools. Ends the calls of these tools, and announces that the tools are gone.
    pub(crate) fn forget(&self, engine: &mut Engine, client: &Arc<Client>) {
        let client = Arc::downgrade(client);
        let mut known = self.known();
        let gone = known.take(&client);
        if !gone.is_empty() {
            announce(engine, gone.iter().map(|brought| &brought.tool));
        }
        known.allowed.retain(|allowed| !allowed.client.ptr_eq(&client));
        known.calls.retain(|_, call| !call.client.ptr_eq(&client));
    }

    /// Returns the names of the tools, each once.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.here().iter().map(|tool| tool.tool.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns all tools for a turn that this client asks for: first the server's, then the
    /// client's own, then those of other clients. If several tools have the same name, the turn
    /// offers the first.
    pub(super) fn toolbox(&self, client: &Arc<Client>) -> Vec<Arc<dyn OfferedTool>> {
        let remote =
            |brought| Arc::new(Remote { brought, tools: self.clone() }) as Arc<dyn OfferedTool>;
        let here = self.own_first(client).into_iter().map(remote);
        context::toolbox().into_iter().chain(here).collect()
    }

    /// Returns the tools of the connections that are open, those of this client first.
    fn own_first(&self, client: &Arc<Client>) -> Vec<Arc<RegisteredTool>> {
        let client = Arc::downgrade(client);
        let mut here = self.here();
        here.sort_by_key(|tool| !tool.owner.client.ptr_eq(&client));
        here
    }

    /// Opens a call. Returns its number, and the receiver of its result.
    fn open(&self, owner: &ToolOwner) -> (u64, Receiver<Result<String, String>>) {
        let (result, receiver) = oneshot::channel();
        let mut known = self.known();
        known.last += 1;
        let number = known.last;
        known.calls.insert(number, WaitingCall { client: Weak::clone(&owner.client), result });
        (number, receiver)
    }

    /// Withdraws a call. Returns whether the call was still waiting.
    fn withdraw(&self, number: u64) -> bool {
        self.known().calls.remove(&number).is_some()
    }

    /// Gives the result of a call. Returns whether the call waited for this client.
    pub(super) fn answer(
        &self,
        client: &Arc<Client>,
        number: u64,
        result: Result<String, String>,
    ) -> bool {
        let client = Arc::downgrade(client);
        let mut known = self.known();
        if !known.calls.get(&number).is_some_and(|call| call.client.ptr_eq(&client)) {
            return false;
        }
        known.calls.remove(&number).is_some_and(|call| call.result.send(result).is_ok())
    }

    fn known(&self) -> MutexGuard<'_, KnownTools> {
        locked(&self.0)
    }
}

impl KnownTools {
    /// Removes the tools of a connection, and returns them.
    fn take(&mut self, client: &Weak<Client>) -> Vec<Arc<RegisteredTool>> {
        self.tools.extract_if(.., |tool| tool.owner.client.ptr_eq(client)).collect()
    }
}

/// Announces that tools came or went.
pub(super) fn announce<'a>(
    engine: &mut Engine,
    mut tools: impl Iterator<Item = &'a ToolDescription>,
) {
    engine.note_tools(tools.any(ToolDescription::is_for_some_agents));
}

/// Adds the schemas of the notifications that clients with tools get without subscribing.
pub(super) fn describe(generator: &mut SchemaGenerator, notifications: &mut Map<String, Json>) {
    let called = generator.subschema_for::<ToolCalled<'_>>().to_value();
    let cancelled = generator.subschema_for::<ToolCancelled<'_>>().to_value();
    notifications.extend([(CALLED.to_owned(), called), (CANCELLED.to_owned(), cancelled)]);
}
