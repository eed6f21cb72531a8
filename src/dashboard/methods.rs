//! Methods of the protocol that the dashboard calls. A page can call no other method, whatever happens
//! in the browser.

use serde_json::{Map, Value as Json};

use super::pass::Right;

/// Methods that only read.
const READING: &[&str] = &[
    "count-window",
    "explain-window",
    "get-messages",
    "initialize",
    "list-agents",
    "list-approvals",
    "list-items",
    "list-operations",
    "list-sessions",
    "search-sessions",
    "session-stats",
    "usage-log",
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

/// Method that only reads if `dry_run` is on, which the dashboard always adds.
const WINDOW: &str = "build-window";

/// Returns whether a request with this right may call the method with these parameters.
pub(super) fn may(right: Right, method: &str, params: &mut Map<String, Json>) -> bool {
    if method == WINDOW {
        // Under either spelling of its name.
        params.remove("dry-run");
        params.insert("dry_run".to_owned(), true.into());
    }
    method == WINDOW
        || READING.contains(&method)
        || (right == Right::Change && CHANGING.contains(&method))
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
        assert!(takes(WINDOW, "dry-run") && !takes(WINDOW, "request-key"));
        for method in CHANGING {
            assert!(takes(method, "request-key"), "{method} changes nothing");
        }
    }

    #[test]
    fn a_reader_changes_nothing() {
        let mut params = Map::new();
        for method in CHANGING.iter().chain(&["chat", "shutdown", "configure-provider"]) {
            assert!(!may(Right::Read, method, &mut params), "{method}");
        }
        assert!(!may(Right::Change, "configure-provider", &mut params));
        assert!(may(Right::Change, "undo", &mut params) && params.is_empty());
        assert!(may(Right::Read, WINDOW, &mut params) && params["dry_run"] == true);
    }
}
