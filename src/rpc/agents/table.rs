//! The methods of the agent family.

use crate::rpc::method::{Method, method};

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("agents", "pushed-context", super::pushed_context => super::Pushed)
        .doc(
            "Returns the items that a session of an agent was given by `contexture hook`, so that \
              only what changed is given again.",
        )
        .result("The number of the push, and the items."),
    method!("agents", "record-push", super::record_push => super::Recorded)
        .changes()
        .doc(
            "Records the items that a session of an agent is given, before they are given. The \
              record of the push before is kept too: if the agent did not receive this push, the \
              next call of `pushed-context` names the push before, and nothing is lost. The \
              records of the latest 1,000 sessions are kept.",
        )
        .result("The number of the push."),
];
