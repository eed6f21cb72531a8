//! The clients' tools that the user allowed in sessions. A permission is for the tool of one
//! connection as it was shown: the user is asked again about another tool with the same name, and
//! about the same tool once its client describes it in other words.

use std::sync::{Arc, Weak};

use super::{ClientTools, RegisteredTool, ToolDescription};
use crate::rpc::client::Client;
use crate::store::session::SessionRow;

/// A tool that needs no approval in a session.
pub(super) struct Allowed {
    session: u64,
    pub(super) tool: ToolDescription,
    pub(super) client: Weak<Client>,
}

impl Allowed {
    fn is(&self, session: u64, brought: &RegisteredTool) -> bool {
        self.session == session
            && self.tool == brought.tool
            && self.client.ptr_eq(&brought.owner.client)
    }
}

impl ClientTools {
    /// Allows all calls of a tool in a session.
    pub(super) fn allow(&self, session: u64, brought: &RegisteredTool) {
        let mut known = self.known();
        if !known.allowed.iter().any(|allowed| allowed.is(session, brought)) {
            let (tool, client) = (brought.tool.clone(), Weak::clone(&brought.owner.client));
            known.allowed.push(Allowed { session, tool, client });
        }
    }

    pub(super) fn is_allowed(&self, session: u64, brought: &RegisteredTool) -> bool {
        self.known().allowed.iter().any(|allowed| allowed.is(session, brought))
    }

    /// Returns the names of the tools that are allowed in a session.
    pub(in crate::rpc) fn allowed(&self, session: u64) -> Vec<String> {
        let here = self.here();
        let known = self.known();
        let is_here = |allowed: &&Allowed| here.iter().any(|tool| allowed.is(session, tool));
        known.allowed.iter().filter(is_here).map(|allowed| allowed.tool.name.clone()).collect()
    }

    /// Allows the tools with these names in a session, and no others. A name that is already
    /// allowed stays with its tool; any other name means the tool that turns of this client would
    /// call.
    pub(in crate::rpc) fn allow_only(
        &self,
        client: &Arc<Client>,
        session: &SessionRow,
        names: &[String],
    ) {
        let before = self.allowed(session.id);
        let is_wanted = |allowed: &Allowed| names.contains(&allowed.tool.name);
        self.known().allowed.retain(|allowed| allowed.session != session.id || is_wanted(allowed));
        for name in names.iter().filter(|name| !before.contains(name)) {
            let mut named = self.own_first(client);
            named.retain(|brought| brought.tool.name == *name);
            let offered = named.iter().find(|brought| brought.tool.is_for(session));
            if let Some(brought) = offered.or(named.first()) {
                self.allow(session.id, brought);
            }
        }
    }
}
