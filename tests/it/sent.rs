//! Calls that name no session are about the one that was current when they were sent, whatever
//! becomes current before they run.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};

use crate::endpoint::{Answer, Asked, Endpoint};
use crate::support::*;

/// How often each is tried: what runs beside other calls is in time by chance.
const TRIES: usize = 20;

fn configured(more: &str) -> Home {
    let home = Home::new();
    let script = home.write("answers.toml", "[[answer]]\ntext = \"yes\"\n");
    let folder = home.path("config/contexture");
    std::fs::create_dir_all(&folder).unwrap();
    let provider = format!(
        "{more}\n[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m\"\n\
         script = {script:?}\n"
    );
    std::fs::write(folder.join("config.toml"), provider).unwrap();
    home
}

/// Sends calls in one write and gives their results.
#[track_caller]
fn in_one_write(client: &mut Client, calls: &[(&str, &str)]) -> Vec<Json> {
    let from = 1_000_000 + client.set_aside("progress") as i64 * 1000;
    let ids: Vec<i64> = (from..).take(calls.len()).collect();
    let line = |(id, (method, params)): (&i64, &(&str, &str))| {
        request(Dialect::Native, &id.to_string(), method, params)
    };
    let lines: String = ids.iter().zip(calls).map(line).collect();
    client.write(lines.as_bytes());
    let results = ids.iter().zip(calls).map(|(id, (method, _))| match client.reply(*id) {
        Ok(result) => result,
        Err(error) => panic!("{method}: {error:?}"),
    });
    results.collect()
}

/// Every method that is about the current session, as a call that is answered with its name or
/// id.
const CALLS: &[(&str, &str)] = &[
    ("chat", "(:content \"q\")"),
    ("chat", "(:content \"q\" :session nil)"),
    ("chat", "(:content \"q\" :dry-run t)"),
    ("take-notes", "(:template \"goal-oriented\" :dry-run t)"),
    ("process-turn", "(:content \"q\")"),
    ("add-message", "(:content \"q\")"),
    ("add-message", "(:messages ((:role :user :content \"q\")))"),
    ("build-context", "nil"),
    ("context-stats", "nil"),
    ("quality-score", "nil"),
    ("configure-session", "(:template \"goal-oriented\")"),
    ("checkpoint", "nil"),
    ("remember", "(:content \"q\" :scope :session)"),
];

#[test]
fn a_call_is_about_the_session_that_was_current_when_it_was_sent() {
    let home = configured("");
    let mut client = home.ephemeral(&[]);
    for (method, params) in CALLS {
        for _ in 0..TRIES {
            let calls = [
                ("open-session", "(:name \"a\")"),
                (*method, *params),
                ("open-session", "(:name \"b\")"),
            ];
            let results = in_one_write(&mut client, &calls);
            let session = &results[1]["session"];
            let is_first = *session == "a" || *session == results[0]["id"];
            assert!(is_first, "{method} {params}: {}", results[1]);
        }
    }
}

#[test]
fn a_call_that_was_sent_when_there_was_no_session_finds_none_later() {
    for _ in 0..TRIES {
        let home = configured("");
        let mut client = home.ephemeral(&[]);
        let asked = client.send("chat", "(:content \"q\")");
        client.ok("open-session", "(:name \"b\")");
        assert_eq!(client.reply(asked).unwrap_err().kind(), "no-such-session");
    }
}

#[test]
fn nobody_else_moves_a_call_that_waits() {
    // A text is embedded once the gate is open for it: once another client has opened another
    // session. Texts that the server embeds of itself, beside the call, wait or pass with it.
    let open = Arc::new((Mutex::new(HashSet::new()), Condvar::new()));
    let gate = open.clone();
    let server = Endpoint::new(move |asked, _| {
        let texts = asked.body["input"].to_string();
        let is_closed = |open: &mut HashSet<&str>| !open.iter().any(|text| texts.contains(text));
        let waits = gate.1.wait_timeout_while(gate.0.lock().unwrap(), PATIENCE, is_closed);
        drop(waits.unwrap());
        Answer::new(200, "{\"data\": [{\"embedding\": [1]}]}")
    });
    let home = configured(&format!(
        "[embeddings]\nurl = \"{}\"\nmodel = \"e\"\ntimeout = 60\n",
        server.url
    ));
    let listening = home.listening(&[]);
    let (mut one, mut other) = (listening.unix(Dialect::Native), listening.unix(Dialect::Native));
    for (method, params, text) in [
        ("chat", "(:content \"apples\")", "apples"),
        ("process-turn", "(:content \"pears\")", "pears"),
        ("remember", "(:content \"plums\" :scope :session)", "plums"),
    ] {
        let id = one.ok("open-session", "(:name \"a\")")["id"].clone();
        let asked = one.send(method, params);
        let is_asked = |asked: &Asked| asked.body["input"].to_string().contains(text);
        until("the embedding to be asked for", || server.asked().iter().any(is_asked));
        other.ok("open-session", "(:name \"b\")");
        open.0.lock().unwrap().insert(text);
        open.1.notify_all();
        let session = one.reply(asked).unwrap()["session"].clone();
        assert!(session == "a" || session == id, "{method}: {session}");
    }
}

#[test]
fn each_connection_has_a_current_session_of_its_own() {
    let home = Home::new();
    let listening = home.listening(&[]);
    let connect = || listening.unix(Dialect::Native);
    let (mut one, mut other, mut third) = (connect(), connect(), connect());
    let current =
        |client: &mut Client| client.ok("list-sessions", "(:current t)")[0]["session"].clone();
    one.ok("open-session", "(:name \"a\")");
    other.ok("open-session", "(:name \"b\")");
    third.ok("open-session", "(:name \"c\" :current nil)");
    assert_eq!([current(&mut one), current(&mut other)], ["a", "b"]);
    assert_eq!(current(&mut third), "b", "it has opened none as its own");
    assert_eq!(one.ok("add-message", "(:content \"x\")")["session"], "a");
    one.ok("open-session", "(:create nil :name \"c\")");
    assert_eq!([current(&mut one), current(&mut other), current(&mut third)], ["c", "b", "c"]);
    let listed = other.ok("list-sessions", "nil");
    let is_current = |row: &&Json| row["current"] == true;
    let marked: Vec<&Json> = listed.as_array().unwrap().iter().filter(is_current).collect();
    assert_eq!((marked.len(), &marked[0]["session"]), (1, &"b".into()));
    other.ok("delete-session", "(:session \"b\")");
    assert_eq!(current(&mut other), "c", "the one that a client opened last");
    assert_eq!(current(&mut connect()), "c");
}
