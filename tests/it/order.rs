//! Changes take effect in the order sent, whatever they wait for, and every call is answered.

use std::io::Write;
use std::os::unix::net::UnixStream;

use crate::support::*;

/// A tree of so many files that its walk takes a while.
fn tree(home: &Home) -> String {
    for number in 0..400 {
        home.write(&format!("tree/{number}.txt"), format!("file {number}\n"));
    }
    quoted(home.file("tree").to_str().unwrap())
}

/// A server with a model that never says a word.
fn silent(home: &Home, more: &str) -> Listening {
    let script = home.write("silent.toml", "[[answer]]\nhang = true\n");
    let config = home.path("config/contexture/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let provider = format!(
        "[[providers]]\nname = \"silent\"\nkind = \"scripted\"\nmodel = \"m\"\nscript = {script:?}\n"
    );
    std::fs::write(config, provider + more).unwrap();
    home.listening(&[])
}

#[test]
fn a_change_behind_a_walk_takes_effect_after_it() {
    let home = Home::new();
    let tree = tree(&home);
    let mut client = home.ephemeral(&[]);
    client.ok("configure-manager", "(:manager \"m\" :max-items 1000)");
    let calls = [
        client.send("add-tree", &format!("(:manager \"m\" :path {tree})")),
        client.send("clear-context", "(:manager \"m\")"),
        client.send("add-context", "(:manager \"m\" :content \"last\")"),
        client.send("get-context", "(:manager \"m\" :brief t)"),
    ];
    let [walk, cleared, _, read] = calls.map(|id| client.reply(id).unwrap());
    assert_eq!((&walk["files"], &cleared["removed"]), (&400.into(), &400.into()));
    assert_eq!(read.as_array().unwrap().len(), 1, "{read}");
    for undone in ["add-item", "clear-manager", "add-tree", "configure-manager"] {
        assert_eq!(client.ok("undo", "(:manager \"m\")")["undone"], undone);
    }
}

#[test]
fn walks_refreshes_and_changes_of_one_manager_keep_their_order() {
    let home = Home::new();
    let tree = tree(&home);
    let mut client = home.ephemeral(&[]);
    let add = format!("(:manager \"m\" :path {tree} :mode :listing)");
    let mut calls = vec![client.send("configure-manager", "(:manager \"m\" :max-items 30)")];
    let mut expected = vec!["configure-manager"];
    for _ in 0..6 {
        for (method, params) in [
            ("add-tree", &*add),
            ("update-items", "(:pinned t :manager \"m\" :ids nil)"),
            ("add-item", "(:manager \"m\" :content \"x\")"),
            ("refresh-items", "(:manager \"m\")"),
        ] {
            calls.push(client.send(method, params));
            if method.starts_with("add") {
                expected.push(method);
            }
        }
    }
    for id in calls {
        // Pinning nothing is refused, and holds up nothing either.
        let _ = client.reply(id);
    }
    for method in expected.iter().rev() {
        assert_eq!(client.ok("undo", "(:manager \"m\")")["undone"], *method);
    }
}

#[test]
fn a_cancelled_walk_holds_up_nothing_and_a_cancelled_change_is_not_made() {
    let home = Home::new();
    let tree = tree(&home);
    let mut client = home.ephemeral(&[]);
    client.ok("configure-manager", "(:manager \"m\" :max-items 1000)");
    let walk = client.send("add-tree", &format!("(:manager \"m\" :path {tree})"));
    let held = client.send("add-context", "(:manager \"m\" :content \"no\")");
    let last = client.send("add-context", "(:manager \"m\" :content \"last\")");
    let told = client.ok("cancel", &format!("(:id {held})"))["cancelled"] == true;
    client.ok("cancel", &format!("(:id {walk})"));
    assert_eq!(client.reply(held).is_err_and(|error| error.code == -32800), told);
    let walked = client.reply(walk).is_ok();
    client.reply(last).unwrap();
    let held = client.contents("m");
    let expected = usize::from(walked) * 400 + usize::from(!told) + 1;
    assert_eq!((held.len(), held.contains(&"no".to_owned())), (expected, !told));
    assert_eq!(held.last().unwrap(), "last");
}

#[test]
fn changes_that_wait_are_made_although_their_client_has_gone() {
    let home = Home::new();
    let tree = tree(&home);
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    client.ok("configure-manager", "(:manager \"m\" :max-items 1000)");
    let mut leaving = UnixStream::connect(&server.socket).unwrap();
    let call = |method: &str, more: &str| {
        format!("(:id 1 :method {method} :params (:manager \"m\" {more}))\n")
    };
    let calls = call("add-tree", &format!(":path {tree}"))
        + &call("clear-context", "")
        + &call("add-context", ":content \"last\"");
    leaving.write_all(calls.as_bytes()).unwrap();
    drop(leaving);
    until("the last change to be made", || client.contents("m") == ["last"]);
}

#[test]
fn a_change_behind_a_chat_comes_after_its_question() {
    let home = Home::new();
    let server = silent(&home, "");
    let mut client = server.unix(Dialect::Native);
    client.ok("open-session", "(:name \"s\")");
    let chat = client.send("chat", "(:content \"first\")");
    let added = client.send("add-message", "(:content \"second\")");
    let read = client.send("get-messages", "nil");
    let built = client.send("build-window", "nil");
    client.reply(added).unwrap();
    let window = client.reply(built).unwrap();
    assert!(window["parts"].to_string().contains("second"), "{window}");
    let log = client.reply(read).unwrap();
    let said: Vec<&str> =
        log.as_array().unwrap().iter().map(|said| said["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["first", "second"]);
    client.ok("cancel", &format!("(:id {chat})"));
    assert_eq!(client.reply(chat).unwrap_err().code, -32800);
}

#[test]
fn after_a_shutdown_every_open_call_is_answered() {
    let home = Home::new();
    // Accepts connections, and answers nothing.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", deaf.local_addr().unwrap());
    let provider = format!(
        "[[providers]]\nname = \"deaf\"\nkind = \"openai\"\nmodel = \"m\"\nbase-url = {url:?}\n\
         api-key-command = \"echo key\"\n"
    );
    let server = silent(&home, &provider);
    let mut client = server.unix(Dialect::Native);
    client.ok("open-session", "(:name \"s\")");
    let chat = client.send("chat", "(:session \"s\" :content \"hi\" :provider \"silent\")");
    let models = client.send("list-providers", "(:models t :provider \"deaf\")");
    until("the model to be asked", || {
        client.ok("get-messages", "(:session \"s\")").as_array().is_some_and(|log| !log.is_empty())
    });
    let mut other = server.tcp(Dialect::Json);
    let ends = other.send("shutdown", "nil");
    let late = other.send("add-context", "(:content \"late\")");
    assert_eq!(other.reply(ends).unwrap(), true);
    assert!(other.reply(late).map_or_else(|error| error.kind() == "shutting-down", |_| true));
    let error = client.reply(chat).unwrap_err();
    assert_eq!((error.kind(), error.data["question"].as_str()), ("shutting-down", Some("msg-1")));
    assert_eq!(client.reply(models).unwrap_err().kind(), "shutting-down");
    assert_eq!((client.line(), other.line()), (None, None));
}
