//! A parameter that is given and empty is empty, and never means what is left out; and everything
//! that JSON can say can be said in Lisp.

use crate::support::*;

/// Every parameter that is a list and chooses what a call is about.
const LISTS: [(&str, &str, &str); 11] = [
    ("prune-context", "messages", ""),
    ("auto-manage-context", "messages", ""),
    ("context-stats", "messages", ""),
    ("summarize-context", "messages", ""),
    ("add-message", "messages", ""),
    ("pin-message", "ids", ""),
    ("get-context", "ids", ""),
    ("get-context", "managers", ""),
    ("refresh-items", "ids", ""),
    ("remove-items", "ids", ""),
    ("update-items", "ids", ":pinned t"),
];

fn with_a_session(home: &Home) -> Client {
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    for number in 1..=4 {
        client.ok("process-turn", &format!("(:content \"{number}\")"));
    }
    client.ok("add-context", "(:content \"x\")");
    client
}

#[test]
fn nil_for_a_list_that_chooses_is_refused_and_changes_nothing() {
    let home = Home::new();
    let mut client = with_a_session(&home);
    let before = (client.ok("get-messages", "nil"), client.ok("get-context", "nil"));
    for (method, list, more) in LISTS {
        let error = client.fails(method, &format!("(:{list} () {more})"));
        let hint = format!("{list} must not be nil: write [] for an empty list");
        let rest = error.message.strip_prefix(&hint).unwrap_or_else(|| panic!("{error:?}"));
        assert!(["", ", or leave the parameter out"].contains(&rest), "{method}: {rest}");
        assert_eq!((error.code, error.param()), (-32602, list), "{method}");
    }
    assert_eq!((client.ok("get-messages", "nil"), client.ok("get-context", "nil")), before);
}

#[test]
fn an_empty_list_chooses_nothing() {
    let home = Home::new();
    let mut client = with_a_session(&home);
    let pruned = client.ok("prune-context", "(:messages [] :max-tokens 1)");
    let stats = &pruned["stats"];
    assert_eq!((&stats["original"], &stats["final"]), (&0.into(), &0.into()), "{pruned}");
    assert_eq!(client.ok("context-stats", "(:messages [])")["tokens"], 0);
    assert!(is_nil(&client.ok("get-context", "(:ids [])")));
    assert_eq!(client.ok("refresh-items", "(:ids [])")["updated"], 0);
    assert_eq!(client.ok("get-messages", "nil").as_array().unwrap().len(), 4);
}

#[test]
fn false_and_empty_metadata_can_be_said_in_lisp() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let add = "(:content \"x\" :live t :metadata (:filename \"/a\" :k 1))";
    let id = client.ok("add-context", add)["id"].as_str().unwrap().to_owned();
    for no in [":false", ":json-false"] {
        client.ok("update-items", &format!("(:id \"{id}\" :live t)"));
        let now = client.ok("update-items", &format!("(:id \"{id}\" :live {no})"));
        assert!(is_nil(&now["item"]["live"]), "{no}: {now}");
    }
    let now = client.ok("update-items", &format!("(:id \"{id}\" :metadata nil)"));
    assert_eq!(now["item"]["metadata"]["k"], 1, "nil leaves it as it is");
    let now = client.ok("update-items", &format!("(:id \"{id}\" :metadata [])"));
    assert!(is_nil(&now["item"]["metadata"]), "{now}");
}
