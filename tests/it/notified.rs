//! Notifications: what they name, and that a client which redraws at each of them comes to rest.

use crate::support::*;

const TOPICS: &str = "(:topics (:context-changed :session-changed :window-built :context-pruned \
                      :context-summarized :checkpoint-created :management-failed :stats))";

/// The notifications that came until now, told apart from later ones by a change of another manager.
fn until_now(client: &mut Client) -> Vec<(String, Json)> {
    client.add("mark", "x");
    let mut told = Vec::new();
    loop {
        let message = client.any_notification();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("context-changed") if params["manager"] == "mark" => return told,
            // The mark is counted, too.
            Some("stats") | None => {}
            Some(topic) => told.push((topic.to_owned(), params.clone())),
        }
    }
}

/// Which method changed the session or manager, in order.
fn methods(told: &[(String, Json)], topic: &str) -> Vec<String> {
    let of_topic = told.iter().filter(|(name, _)| name == topic);
    of_topic.map(|(_, params)| params["method"].as_str().unwrap().to_owned()).collect()
}

/// Every reading that a dashboard may make.
fn redraw(client: &mut Client) {
    for (method, params) in [
        ("build-context", "(:brief t)"),
        ("explain-context", "nil"),
        ("context-stats", "nil"),
        ("get-messages", "nil"),
        ("get-context", "nil"),
        ("context-to-string", "nil"),
        ("usage-log", "nil"),
        ("list-sessions", "nil"),
        ("list-managers", "nil"),
        ("list-checkpoints", "nil"),
        ("list-revisions", "nil"),
        ("current-session", "nil"),
        ("server-info", "nil"),
    ] {
        client.ok(method, params);
    }
}

#[test]
fn a_client_that_redraws_at_every_notification_comes_to_rest() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("subscribe", TOPICS);
    client.ok("add-message", "(:content \"hello\")");
    let told = until_now(&mut client);
    assert_eq!(methods(&told, "session-changed"), ["add-message"]);
    redraw(&mut client);
    // The window is another one than before, which is told to those who show windows.
    let told = until_now(&mut client);
    let topics: Vec<&str> = told.iter().map(|(topic, _)| &**topic).collect();
    assert_eq!(topics, ["window-built"]);
    let window = &told[0].1;
    assert_eq!((&window["session"], &window["id"]), (&"a".into(), &"ses-1".into()));
    assert!(window["tokens"].as_u64() > Some(0) && window["max_tokens"] == 96000, "{window}");
    redraw(&mut client);
    assert_eq!(until_now(&mut client), []);
}

#[test]
fn a_window_counts_as_no_change() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("subscribe", "(:topics (:stats))");
    client.ok("build-context", "nil");
    client.ok("add-message", "(:content \"hello\")");
    let sums = client.notification("stats");
    assert_eq!(sums["session_changes"], 2, "{sums}");
}

#[test]
fn an_undo_is_called_so_with_what_it_undid_beside_it() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("subscribe", "(:topics (:context-changed))");
    client.add("m", "x");
    let told = client.notification("context-changed");
    assert_eq!((&told["method"], told.get("undone")), (&"add-context".into(), None));
    assert_eq!(client.ok("undo", "(:manager \"m\")")["undone"], "add-context");
    let told = client.notification("context-changed");
    assert_eq!((&told["method"], &told["undone"]), (&"undo".into(), &"add-context".into()));
    assert_eq!((&told["manager"], &told["count"]), (&"m".into(), &0.into()));
}
