//! The methods of the agents family.

use super::{listed, next, record};
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;

/// Methods, in the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("agents", "list-agents", listed::list_agents => listed::AgentsListed)
        .pages(&Paged { lists: &["sessions", "sent", "connected", "waiting"], ..Paged::LIST })
        .doc(
            "Lists the agents that are connected, what their sessions were given and when, and the items that wait for their next prompts. The topic `agents-changed` announces changes.",
        )
        .result("The agents, their sessions, the items of these sessions, and those that wait."),
    method!("agents", "pushed-context", record::pushed_context => record::Pushed)
        .pace(Pace::InOrder)
        .doc(
            "Returns the items that a session of an agent was given by `contexture hook` or `contexture acp`, and those to send with the session's next prompt. The next push then needs only the changes. With `:marked`, the caller learns in one call what it needs to push.",
        )
        .result("The number of the push, its items, those to send with the next prompt, and the items that are marked now."),
    method!("agents", "record-push", record::record_push => record::PushRecorded)
        .changes()
        .doc(
            "Records the items for an agent's session before the session gets them. The record of the previous push is kept too: if the agent does not receive this push, the next call of `pushed-context` names the previous one, and nothing is lost. If \
              `:next` names an item that another push took meanwhile, the call fails and records \
              nothing. The records of the latest 1,000 sessions are kept.",
        )
        .result("The number of the push."),
    method!("agents", "push-next", next::push_next => next::PushesNext)
        .changes()
        .pace(Pace::InOrder)
        .doc(
            "Sends items once, with the next prompt of an agent's session, even if the agent already has them or they belong to another place. The first session that matches takes them. With `:cancel`, stops waiting items from being sent. Until the manager changes again, `undo` in it stops the newest of its waiting items from being sent.",
        )
        .result("The numbers of the items. An item that is already waiting keeps its number."),
];
