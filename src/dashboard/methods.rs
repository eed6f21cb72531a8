//! Methods of the protocol that the dashboard calls. A page can call no other method, whatever happens
//! in the browser.

use super::pass::Right;

/// Methods that only read.
const READING: &[&str] = &[
    "count-window",
    "get-messages",
    "initialize",
    "list-agents",
    "list-approvals",
    "list-items",
    "list-operations",
    "list-sessions",
    "session-report",
];

/// Methods that change a session.
const CHANGING: &[&str] = &[
    "add-item",
    "approve",
    "pin-message",
    "prune-session",
    "redo",
    "restore",
    "summarize-session",
    "undo",
];

/// Returns whether a request with this right may call the method.
pub(super) fn may(right: Right, method: &str) -> bool {
    READING.contains(&method) || (right == Right::Change && CHANGING.contains(&method))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc;

    #[test]
    fn the_lists_are_true() {
        let takes = |name: &str, param: &str| {
            let method = rpc::methods().find(|method| method.name == name).unwrap();
            method.params().iter().any(|it| it.name == param)
        };
        for method in READING {
            assert!(!takes(method, "request-key"), "{method} changes something");
        }
        for method in CHANGING {
            assert!(takes(method, "request-key"), "{method} changes nothing");
        }
    }

    #[test]
    fn a_reader_changes_nothing() {
        for method in CHANGING.iter().chain(&["chat", "build-window", "shutdown"]) {
            assert!(!may(Right::Read, method), "{method}");
        }
        assert!(!may(Right::Change, "configure-provider"));
        assert!(may(Right::Change, "undo") && may(Right::Read, "count-window"));
    }
}
