//! What Emacs is told of agents: who is connected, what their sessions were given and when, and what
//! goes with their next prompts, once, whatever is killed.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;

use crate::support::*;

/// The folder of a project of the tests.
fn project(home: &Home, name: &str) -> PathBuf {
    let root = home.file(name);
    std::fs::create_dir_all(root.join(".git")).unwrap();
    root.canonicalize().unwrap()
}

/// The manager of the layer of a project.
fn layer(client: &mut Client, home: &Home, name: &str) -> String {
    client.layer(&project(home, name))
}

/// What a prompt of Claude Code in a project gets.
#[track_caller]
fn prompted(home: &Home, name: &str, session: &str) -> String {
    use std::io::Write;
    let mut command = home.command(&["hook", "claude", "UserPromptSubmit"]);
    command.current_dir(project(home, name)).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let event = json!({ "session_id": session }).to_string();
    child.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    match output.stdout.is_empty() {
        true => String::new(),
        false => {
            let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
            answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
        }
    }
}

/// Lets an item go with the next prompt of any session in the project. Gives its number.
fn send(emacs: &mut Client, home: &Home, manager: &str, id: &str) -> u64 {
    let params = format!(
        "(:id {id:?} :manager {} :directory {:?})",
        quoted(manager),
        project(home, "app").join("src")
    );
    emacs.ok("push-next", &params)["numbers"][0].as_u64().unwrap()
}

fn agents(emacs: &mut Client) -> Json {
    emacs.ok("list-agents", "nil")
}

/// The ids of the items in a list.
fn named(list: &Json) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// The ids of the items that wait.
fn waiting(emacs: &mut Client) -> Vec<String> {
    named(&agents(emacs)["waiting"])
}

#[test]
fn what_sessions_were_given_is_listed_and_told() {
    let home = Home::new();
    let server = home.listening(&["--fixed-time", "1000"]);
    let mut emacs = server.unix(Dialect::Native);
    let none = agents(&mut emacs);
    assert!(["connected", "sessions", "sent", "waiting"].iter().all(|list| is_nil(&none[list])));
    emacs.ok("subscribe", "(:topics (:agents-changed))");
    let manager = layer(&mut emacs, &home, "app");
    let first = emacs.add(&manager, "the first mark");
    assert!(prompted(&home, "app", "one").contains("first"));
    let told = emacs.notification("agents-changed");
    assert_eq!(told["method"], "record-push");
    assert_eq!((&told["agent"], &told["agent_session"]), (&json!("claude"), &json!("one")));
    let second = emacs.add(&manager, "the second mark");
    assert!(prompted(&home, "app", "one").contains("second"));
    assert!(prompted(&home, "app", "two").contains("second"));
    let listed = agents(&mut emacs);
    let [two, one] = &listed["sessions"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!((&two["agent_session"], &one["agent_session"]), (&json!("two"), &json!("one")));
    assert_eq!((&one["number"], &two["number"]), (&json!(2), &json!(1)));
    assert_eq!((&one["at"], &one["count"]), (&json!(1000), &json!(2)));
    assert_eq!(one["project"], json!(project(&home, "app")));
    assert!(two["tokens"].as_u64() > one["tokens"].as_u64() && one["tokens"] != 0, "{listed}");
    assert_eq!(named(&one["items"]), [first.clone(), second.clone()]);
    assert_eq!(named(&listed["sent"]), [first, second]);
    assert_eq!(listed["sent"][0]["agent"], "claude");
    assert_eq!(emacs.ok("list-agents", "(:limit 1)")["sessions"].as_array().unwrap().len(), 1);
    assert!(emacs.ok("list-agents", "(:brief t)")["sessions"][0]["items"].is_null());
}

#[test]
fn an_unchanged_item_keeps_the_time_at_which_it_was_shown() {
    let home = Home::new();
    let times = |after: u64, time: &str, shown: &str| {
        let mut client = home.stdio(&["--fixed-time", time]);
        let record = format!(
            "(:agent \"a\" :agent-session \"s\" :after {after} {shown} :items \
             ((:id \"ctx-1\" :digest \"d\") (:id \"ctx-2\" :digest \"{time}\")))"
        );
        client.ok("record-push", &record);
        let had = client.ok("pushed-context", "(:agent \"a\" :agent-session \"s\")");
        [0, 1].map(|place| had["items"][place]["at"].as_i64().unwrap())
    };
    assert_eq!(times(0, "1000", ""), [1000, 1000]);
    assert_eq!(times(1, "2000", ""), [1000, 2000]);
    assert_eq!(times(2, "3000", ":shown (\"ctx-1\")"), [3000, 2000]);
}

#[test]
fn what_is_sent_goes_with_the_next_prompt_and_with_no_other() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home, "app");
    let had = emacs.add(&manager, "the old mark");
    let elsewhere = emacs.add("elsewhere", "of another place");
    assert!(prompted(&home, "app", "one").contains("old"));
    // An item that the agent has, and one that is not pushed by itself.
    let number = send(&mut emacs, &home, &manager, &had);
    assert_eq!(send(&mut emacs, &home, &manager, &had), number);
    send(&mut emacs, &home, "elsewhere", &elsewhere);
    assert_eq!(waiting(&mut emacs), [had.clone(), elsewhere.clone()]);
    assert_eq!(prompted(&home, "other", "far"), "");
    let text = prompted(&home, "app", "one");
    assert!(text.contains("Sent by the user") && text.contains("the old mark"), "{text}");
    assert!(text.contains("of another place") && !text.contains("new or changed"), "{text}");
    assert!(waiting(&mut emacs).is_empty());
    for session in ["one", "two", "one"] {
        let text = prompted(&home, "app", session);
        assert!(!text.contains("Sent by") && !text.contains("of another place"), "{text}");
    }
    let listed = agents(&mut emacs);
    assert!(named(&listed["sent"]).contains(&elsewhere), "{listed}");
    // For one session only, wherever it works.
    let to = format!(
        "(:id {had:?} :manager {} :agent \"claude\" :agent-session \"far\")",
        quoted(&manager)
    );
    emacs.ok("push-next", &to);
    assert_eq!(prompted(&home, "app", "one"), "");
    assert!(prompted(&home, "other", "far").contains("the old mark"));
    assert_eq!(prompted(&home, "other", "far"), "");
}

#[test]
fn what_waits_can_be_cancelled_and_undone() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home, "app");
    let id = emacs.add(&manager, "the mark");
    assert!(prompted(&home, "app", "one").contains("mark"));
    let number = send(&mut emacs, &home, &manager, &id);
    let cancel = format!("(:cancel ({number}))");
    assert_eq!(emacs.ok("push-next", &cancel)["numbers"][0], number);
    assert!(is_nil(&emacs.ok("push-next", &cancel)["numbers"]));
    let of = format!("(:manager {})", quoted(&manager));
    send(&mut emacs, &home, &manager, &id);
    assert_eq!(emacs.ok("list-operations", &of)[0]["method"], "push-next");
    assert_eq!(emacs.ok("undo", &of)["undone"], "push-next");
    assert!(waiting(&mut emacs).is_empty());
    assert_eq!(prompted(&home, "app", "one"), "");
    // A later change is undone first, and what went is not taken back.
    send(&mut emacs, &home, &manager, &id);
    emacs.add(&manager, "a later mark");
    assert_eq!(emacs.ok("undo", &of)["undone"], "add-item");
    assert_eq!(waiting(&mut emacs), std::slice::from_ref(&id));
    assert!(prompted(&home, "app", "one").contains("the mark"));
    assert_eq!(emacs.ok("undo", &of)["undone"], "add-item");
    // An item that is gone waits no longer, until it is back.
    emacs.ok("redo", &of);
    send(&mut emacs, &home, &manager, &id);
    emacs.ok("remove-items", &format!("(:id {id:?} :manager {})", quoted(&manager)));
    assert!(waiting(&mut emacs).is_empty());
    emacs.ok("undo", &of);
    assert_eq!(waiting(&mut emacs), std::slice::from_ref(&id));
    // One that moves waits on.
    let there = format!("(:id {id:?} :manager {} :into \"there\")", quoted(&manager));
    emacs.ok("move-items", &there);
    assert_eq!(agents(&mut emacs)["waiting"][0]["manager"], "there");
    let refused =
        emacs.fails("push-next", &format!("(:id \"ctx-99\" :manager {})", quoted(&manager)));
    assert_eq!(refused.kind(), "no-such-item");
    for _ in 0..100 {
        emacs.add(&manager, "more");
    }
    let all = emacs.ok("list-items", &of);
    let all = named(&all).iter().map(|id| format!("{id:?}")).collect::<Vec<_>>().join(" ");
    let many = format!("(:ids ({all}) :manager {})", quoted(&manager));
    assert_eq!(emacs.fails("push-next", &many).param(), "ids");
    // Items that wait already take no further place.
    let most = all.split(' ').take(99).collect::<Vec<_>>().join(" ");
    let most = format!("(:ids ({most}) :manager {})", quoted(&manager));
    let numbers = emacs.ok("push-next", &most)["numbers"].take();
    assert_eq!(emacs.ok("push-next", &most)["numbers"], numbers);
}

#[test]
fn two_sessions_never_take_the_same() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let id = client.add("m", "the mark");
    client.ok("push-next", &format!("(:id {id:?} :manager \"m\")"));
    let due = |client: &mut Client, session: &str| {
        let asked =
            format!("(:agent \"a\" :agent-session \"{session}\" :project \"/p\" :number 0)");
        let next = client.ok("pushed-context", &asked)["next"].take();
        next.as_array().map_or(0, Vec::len)
    };
    assert_eq!((due(&mut client, "one"), due(&mut client, "two")), (1, 1));
    let number = agents(&mut client)["waiting"][0]["number"].clone();
    let take = |session: &str, after: u64| {
        format!(
            "(:agent \"a\" :agent-session \"{session}\" :after {after} :items [] :next ({number}))"
        )
        .replace("[]", "nil")
    };
    client.ok("record-push", &take("one", 0));
    assert_eq!(client.fails("record-push", &take("two", 0)).param(), "next");
    assert!(agents(&mut client)["sessions"].as_array().unwrap().len() == 1);
    // The push was lost: it goes again with that session's next prompt, and with no other.
    assert_eq!((due(&mut client, "one"), due(&mut client, "two")), (1, 0));
    assert_eq!(client.ok("record-push", &take("one", 0))["number"], 2);
    let asked = "(:agent \"a\" :agent-session \"one\" :number 2)";
    assert!(is_nil(&client.ok("pushed-context", asked)["next"]));
    assert_eq!(client.fails("record-push", &take("one", 2)).param(), "next");
}

#[test]
fn a_server_killed_at_any_moment_sends_it_once() {
    let home = Home::new();
    let mut given = Vec::new();
    for round in 0..12_u64 {
        let mut server = home.listening(&[]);
        let mut emacs = server.unix(Dialect::Native);
        let id = emacs.add("elsewhere", &format!("sent-{round}-"));
        send(&mut emacs, &home, "elsewhere", &id);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(round));
            server.process.kill();
        });
        given.push(prompted(&home, "app", "one"));
        killer.join().unwrap();
    }
    given.push(prompted(&home, "app", "one"));
    let all = given.concat();
    for round in 0..12 {
        assert_eq!(all.matches(&format!("sent-{round}-")).count(), 1, "{round}: {given:#?}");
    }
}
