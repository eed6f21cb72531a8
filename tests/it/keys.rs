//! Request keys: a call that is repeated is answered as it was before, and changes nothing.

use std::collections::BTreeSet;

use contexture::internals::rpc::{Method, methods};

use crate::support::*;

/// Calls of every method that takes a key, each of which can be made after those before it.
fn calls(folder: &str, exported: &str) -> Vec<(&'static str, String)> {
    let project = quoted(folder);
    let of_m = |more: &str| format!(":manager \"m\" {more}");
    vec![
        ("add-context", of_m(":content \"one\" :metadata (:a_b (1 . 2) :origin :region)")),
        ("batch", ":calls ((:method add-item :params (:content \"in a batch\")))".to_owned()),
        ("add-file", of_m(&format!(":path {}", quoted(&format!("{folder}/a.txt"))))),
        ("add-tree", of_m(&format!(":path {project}"))),
        ("update-context", of_m(":id \"ctx-1\" :content \"two\"")),
        ("move-context", of_m(":id \"ctx-1\" :to 1")),
        ("pin-context", of_m(":id \"ctx-1\"")),
        ("refresh-context", of_m("")),
        ("save-set", of_m(":name \"s\"")),
        ("remove-context", of_m(":id \"ctx-1\"")),
        ("load-set", of_m(":name \"s\"")),
        ("drop-set", of_m(":name \"s\"")),
        ("undo", of_m("")),
        ("configure-manager", of_m(":max-items 7")),
        ("clear-context", of_m("")),
        ("drop-manager", of_m("")),
        ("process-turn", ":content \"which port?\"".to_owned()),
        ("add-message", ":content \"said\" :pinned t".to_owned()),
        ("configure-session", ":grounding-memories 3".to_owned()),
        ("checkpoint", ":message \"x\"".to_owned()),
        ("prune-context", ":max-tokens 150".to_owned()),
        ("auto-manage-context", String::new()),
        ("pin-message", ":id \"msg-29\"".to_owned()),
        ("summarize-context", ":max-items 1".to_owned()),
        ("restore-revision", ":revision 3".to_owned()),
        ("rollback", String::new()),
        ("undo-rollback", String::new()),
        ("fork-session", String::new()),
        ("import-session", format!(":text {}", quoted(exported))),
        ("open-session", String::new()),
        ("switch-session", ":session \"other\"".to_owned()),
        ("remember", ":content \"port 3 is taken\"".to_owned()),
        ("ground-query", ":query \"which port?\"".to_owned()),
        ("forget", ":id \"mem-1\"".to_owned()),
        ("report-usage", ":model \"claude-x\" :counted 1000 :reported 1500".to_owned()),
        ("rename-session", ":session \"other\" :name \"renamed\"".to_owned()),
        ("delete-session", ":session \"renamed\"".to_owned()),
        ("restore-session", ":session \"renamed\"".to_owned()),
        ("trust-project", format!(":project {project}")),
        ("distrust-project", format!(":project {project}")),
    ]
}

/// What can be changed, apart from which session is current.
fn state(client: &mut Client) -> Vec<Json> {
    let rows = client.ok("list-sessions", "(:deleted t)");
    let mut rows: Vec<Json> = rows.as_array().cloned().unwrap_or_default();
    rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("current")));
    rows.sort_by_key(|row| row["id"].to_string());
    let lists = [
        ("list-managers", "nil"),
        ("list-sets", "nil"),
        ("list-memories", "(:forgotten t)"),
        ("list-checkpoints", "(:session \"a\")"),
        ("list-revisions", "(:session \"a\")"),
        ("get-messages", "(:session \"a\" :view :log)"),
        ("list-trusted-projects", "nil"),
    ];
    lists.iter().map(|(method, params)| client.ok(method, params)).chain([rows.into()]).collect()
}

#[test]
fn every_change_is_answered_alike_and_made_once_however_often_it_is_sent() {
    let home = Home::new();
    let path = home.write("p/a.txt", "one\n");
    let folder = std::path::Path::new(&path).parent().unwrap().to_str().unwrap().to_owned();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"other\")");
    client.ok("open-session", "(:name \"a\")");
    for number in 0..30 {
        let said = format!("(:content \"message {number} is about port {number}\")");
        client.ok("add-message", &said);
    }
    client.ok("configure-session", "(:max-tokens 300 :checkpoint-interval 1)");
    let json = client.ok("export-session", "(:format :json)")["text"].as_str().unwrap().to_owned();
    let calls = calls(&folder, &json);
    let takes_key = |method: &&Method| method.params().iter().any(|p| p.name == "request-key");
    let taking: BTreeSet<&str> = methods().filter(takes_key).map(|method| method.name).collect();
    // A turn with a model knows its question and its answer by the key; see the tests of `chat`.
    let now = |name: &str| {
        let is_it = |it: &&Method| it.name == name || it.earlier_names().any(|it| it == name);
        methods().find(is_it).unwrap().name
    };
    let called = calls.iter().map(|(name, _)| *name).chain(["chat"]);
    let called: BTreeSet<&str> = called.map(now).collect();
    assert_eq!(called, taking);
    let mut answers = Vec::new();
    for (method, params) in &calls {
        client.ok("switch-session", "(:session \"a\")");
        let call = format!("({params} :request-key \"k\")");
        let first = client.ok(method, &call);
        let after = state(&mut client);
        assert_eq!(client.ok(method, &call), first, "{method}");
        assert_eq!(state(&mut client), after, "{method}");
        answers.push(first);
    }
    let after = state(&mut client);
    client.end();
    let mut client = home.stdio(&[]);
    client.ok("switch-session", "(:session \"renamed\")");
    for ((method, params), first) in calls.iter().zip(answers) {
        assert_eq!(client.ok(method, &format!("({params} :request-key \"k\")")), first, "{method}");
    }
    assert_eq!(state(&mut client), after);
}

#[test]
fn a_key_is_for_one_call_in_one_place() {
    let mut client = Home::new().ephemeral(&[]);
    let first =
        client.ok("add-context", "(:content \"x\" :metadata (:a 1 :b nil) :request-key \"k\")");
    // The order of the names does not matter, nor what is left out.
    let again = "(:request_key \"k\" :metadata (:a 1) :pinned nil :content \"x\")";
    assert_eq!(client.ok("add-context", again), first);
    let error = client.fails("add-context", "(:content \"y\" :request-key \"k\")");
    assert_eq!((error.code, error.kind()), (1, "key-reused"));
    assert!(error.message.contains("use a new key"), "{}", error.message);
    assert_eq!(client.contents("*shared*"), ["x"]);
    client.ok("add-context", "(:content \"x\" :manager \"m\" :request-key \"k\")");
    assert_eq!(client.contents("m"), ["x"]);
    for session in ["a", "b"] {
        client.ok("open-session", &format!("(:name {session:?} :request-key \"k\")"));
        client.ok(
            "add-message",
            &format!("(:session {session:?} :content \"q\" :request-key \"k\")"),
        );
        assert_eq!(client.ok("current-session", "nil")["messages"], 1);
    }
}

#[test]
fn a_call_that_failed_may_be_made_again_with_its_key() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let remove = "(:id \"ctx-1\" :request-key \"k\")";
    assert_eq!(client.fails("remove-context", remove).kind(), "no-such-item");
    client.add("*shared*", "x");
    assert_eq!(client.ok("remove-context", remove)["removed"], 1);
    let error = client.fails("get-context", "(:request-key \"k\")");
    assert!(error.message.contains("request-key is not a parameter here"), "{}", error.message);
}
