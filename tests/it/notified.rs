//! Notifications: what they name, and that a client which redraws at each of them comes to rest.

use crate::support::*;

const TOPICS: &str = "(:topics (:context-changed :session-changed :window-built :context-pruned \
                      :context-summarized :checkpoint-created :management-failed \
                      :memories-changed :providers-changed :stats))";

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
        ("context-stats", "nil"),
        ("get-messages", "nil"),
        ("get-context", "nil"),
        ("context-to-string", "nil"),
        ("session-report", "(:reports 9 :windows 9)"),
        ("list-sessions", "nil"),
        ("list-managers", "nil"),
        ("list-operations", "nil"),
        ("list-sessions", "(:current t)"),
        ("initialize", "nil"),
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
    assert_eq!((&window["session"], &window["session_id"]), (&"a".into(), &"ses-1".into()));
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
    assert_eq!((&told["method"], told.get("undone")), (&"add-item".into(), None));
    assert_eq!(client.ok("undo", "(:manager \"m\")")["undone"], "add-item");
    let told = client.notification("context-changed");
    assert_eq!((&told["method"], &told["undone"]), (&"undo".into(), &"add-item".into()));
    assert_eq!((&told["manager"], &told["count"]), (&"m".into(), &0.into()));
}

#[test]
fn memories_and_providers_are_told_of() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("subscribe", "(:topics (:memories-changed :providers-changed))");
    let changed = |client: &mut Client, topic: &str, method: &str, params: &str| {
        client.ok(method, params);
        let told = client.notification(topic);
        assert_eq!(told["method"], method);
        told
    };
    let told = changed(&mut client, "memories-changed", "remember", "(:content \"port 3\")");
    assert_eq!(told["id"], "mem-1");
    changed(&mut client, "memories-changed", "update-memory", "(:id \"mem-1\" :forgotten t)");
    client.ok("ground-query", "(:query \"port\")");
    let added = "(:name \"p\" :kind :ollama :model \"m\")";
    let told = changed(&mut client, "providers-changed", "configure-provider", added);
    assert_eq!(told["provider"], "p");
    client.ok("configure-provider", "(:name \"q\" :kind :ollama :model \"m\")");
    client.notification("providers-changed");
    changed(&mut client, "providers-changed", "remove-provider", "(:name \"p\")");
    assert_eq!(client.ok("remove-provider", "(:name \"q\")")["default"], Json::Null);
    let error = client.fails("remove-provider", "(:name \"p\")");
    assert_eq!(error.kind(), "no-such-provider");
    assert_eq!(client.fails("chat", "(:content \"hi\")").kind(), "unconfigured");
    assert_eq!(client.set_aside("memories-changed"), 0, "a reading is no change");
}

#[test]
fn a_client_is_told_only_of_the_managers_and_sessions_that_it_names() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("open-session", "(:name \"b\")");
    client.ok(
        "subscribe",
        "(:topics (:context-changed :session-changed) :managers (\"m\") :sessions (\"ses-1\" \"c\"))",
    );
    client.add("other", "x");
    client.ok("add-message", "(:session \"b\" :content \"x\")");
    client.ok("configure-session", "(:session \"a\" :name \"renamed\")");
    client.ok("open-session", "(:name \"c\")");
    client.add("m", "x");
    let told: Vec<(String, String)> = (0..3)
        .map(|_| {
            let told = client.any_notification();
            let params = &told["params"];
            let of = params.get("manager").or(params.get("session")).unwrap();
            (told["method"].to_string(), of.to_string())
        })
        .collect();
    let expected = [
        ("\"session-changed\"", "\"renamed\""),
        ("\"session-changed\"", "\"c\""),
        ("\"context-changed\"", "\"m\""),
    ];
    assert_eq!(told, expected.map(|(topic, of)| (topic.to_owned(), of.to_owned())));
    let error = client.fails("subscribe", "(:topics (:stats) :managers nil)");
    assert!(error.message.contains("managers"), "{}", error.message);
}

#[test]
fn a_client_is_told_which_changes_are_its_own() {
    let server = Home::new().listening(&["--ephemeral"]);
    let [mut one, mut other] = [(); 2].map(|()| server.tcp(Dialect::Native));
    for client in [&mut one, &mut other] {
        client.ok("subscribe", "(:topics (:context-changed))");
    }
    one.add("m", "x");
    assert_eq!(one.notification("context-changed")["own"], true);
    assert_eq!(other.notification("context-changed").get("own"), None);
    other.ok("remove-items", "(:all t :manager \"m\")");
    assert_eq!(other.notification("context-changed")["own"], true);
    assert_eq!(one.notification("context-changed").get("own"), None);
}

#[test]
fn tools_of_clients_are_told_of_when_they_are_others() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    client.ok("subscribe", "(:topics (:tools-changed))");
    let mut other = server.unix(Dialect::Native);
    let mut bring = |tools: &str| other.ok("register-tools", &format!("(:tools ({tools}))"));
    let tool = "(:name \"look\" :description \"x\" :effect :reads";
    let sets = [
        (format!("{tool} :everywhere t)"), false),
        (format!("{tool} :agent-projects (\"/srv\"))"), true),
        (format!("{tool})"), true),
        (format!("{tool} :agents t)"), true),
    ];
    for (tools, agents) in &sets {
        bring(tools);
        assert_eq!(client.notification("tools-changed")["agents"] == true, *agents, "{tools}");
        bring(tools);
    }
    bring("");
    assert_eq!(client.notification("tools-changed")["agents"], true);
}
