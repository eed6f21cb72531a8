//! Redo on the wire: across restarts, with versions, keys and notifications.

use crate::support::*;

#[test]
fn what_was_undone_is_redone_after_a_restart() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    for content in ["a", "b", "c"] {
        client.add("m", content);
    }
    client.ok("remove-items", "(:all t :manager \"m\")");
    for undone in ["clear-manager", "add-item", "add-item"] {
        assert_eq!(client.ok("undo", "(:manager \"m\")")["undone"], undone);
    }
    client.end();
    let mut client = home.stdio(&[]);
    let next = client.ok("list-operations", "(:manager \"m\" :next t :since 0)");
    let lines = next["items"].as_array().unwrap();
    let [redo, undo] = &lines[..] else { panic!("{next}") };
    assert_eq!((&redo["next"], &redo["count"]), (&"redo".into(), &1.into()));
    assert_eq!((&undo["next"], &undo["method"]), (&"undo".into(), &"add-item".into()));
    let mut version = next["version"].as_u64().unwrap();
    for expected in [&["a", "b"][..], &["a", "b", "c"], &[]] {
        version = {
            let redone = client.ok("redo", &format!("(:manager \"m\" :if-version {version})"));
            assert_eq!(redone["count"], expected.len());
            let now = redone["version"].as_u64().unwrap();
            assert!(now > version);
            now
        };
        assert_eq!(client.contents("m"), expected);
    }
    assert_eq!(client.fails("redo", "(:manager \"m\")").kind(), "nothing-to-redo");
    client.end();
}

#[test]
fn a_redo_is_made_once_told_of_and_refused_after_another_change() {
    let mut client = Home::new().ephemeral(&[]);
    let version = client.ok("add-item", "(:manager \"m\" :content \"x\")")["version"].clone();
    client.ok("undo", "(:manager \"m\")");
    let stale = format!("(:manager \"m\" :if-version {version})");
    assert_eq!(client.fails("redo", &stale).kind(), "conflict");
    let dry = client.ok("redo", "(:manager \"m\" :dry-run t :describe t)");
    assert_eq!((&dry["redone"], &dry["count"]), (&"add-item".into(), &1.into()));
    assert_eq!(dry["change"]["items"][0]["id"], "ctx-1");
    assert!(client.contents("m").is_empty(), "a dry run changes nothing");
    client.ok("subscribe", "(:topics (:context-changed))");
    let keyed = "(:manager \"m\" :request-key \"again\")";
    let first = client.ok("redo", keyed);
    assert_eq!(client.ok("redo", keyed), first);
    let told = client.notification("context-changed");
    assert_eq!((&told["method"], &told["redone"]), (&"redo".into(), &"add-item".into()));
    assert_eq!((&told["count"], &told["version"]), (&1.into(), &first["version"]));
    client.ok("undo", "(:manager \"m\")");
    client.add("m", "y");
    assert_eq!(client.fails("redo", "(:manager \"m\")").kind(), "nothing-to-redo");
    assert_eq!(client.contents("m"), ["y"]);
}
