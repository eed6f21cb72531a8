//! The methods of the agents family.

use super::{introduce, listed, next, record};
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("agents", "list-agents", listed::list_agents => listed::AgentsListed)
        .pages(&Paged { lists: &["sessions", "sent", "connected", "waiting"], ..Paged::LIST })
        .doc(
            "Lists the agents that are connected, what sessions of agents were given and when, and \
             what waits for their next prompts. The topic `agents-changed` tells of changes.",
        )
        .result("The agents, their sessions, the items that these have, and what waits."),
    method!("agents", "pushed-context", record::pushed_context => record::Pushed)
        .doc(
            "Returns the items that a session of an agent was given by `contexture hook`, so that \
              only what changed is given again, and the items that are to go with its next prompt.",
        )
        .result("The number of the push, the items, and what goes with the next."),
    method!("agents", "record-push", record::record_push => record::Recorded)
        .changes()
        .doc(
            "Records the items that a session of an agent is given, before they are given. The \
              record of the push before is kept too: if the agent did not receive this push, the \
              next call of `pushed-context` names the push before, and nothing is lost. If \
              `:next` names an item that another push took meanwhile, the call fails and records \
              nothing. The records of the latest 1,000 sessions are kept.",
        )
        .result("The number of the push."),
    method!("agents", "push-next", next::push_next => next::PushesNext)
        .changes()
        .pace(Pace::InOrder)
        .doc(
            "Lets items go with the next prompt of an agent's session, once, even if the agent has \
             them already or they belong to another place. The first session that fits takes \
             them. `undo` of the manager cancels the newest such wish if nothing was changed \
             since.",
        )
        .result("Numbers for `cancel-push`. An item that waits already keeps its number."),
    method!("agents", "cancel-push", next::cancel_push => next::PushCancelled)
        .changes()
        .doc("Lets an item of `push-next` no longer wait.")
        .result("True if it still waited."),
    method!("agents", "introduce-agent", introduce::introduce_agent => introduce::Introduced)
        .doc(
            "Tells which agent a connection serves; `list-agents` lists it until the connection \
             ends. `contexture mcp` calls this.",
        )
        .result("The number of agents that are connected."),
];
