//! Request keys: a call that is repeated is answered as it was before, and changes nothing.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use contexture_program::internals::rpc::{Method, methods};

use crate::support::*;

/// Calls of every method that takes a key, each of which can be made after those before it.
fn calls(folder: &str, exported: &str) -> Vec<(&'static str, String)> {
    let project = quoted(folder);
    let of_m = |more: &str| format!(":manager \"m\" {more}");
    vec![
        ("add-context", of_m(":content \"one\" :metadata (:a_b (1 . 2) :origin :region)")),
        ("batch", ":calls ((:method add-item :params (:content \"in a batch\")))".to_owned()),
        ("move-items", ":id \"ctx-2\" :into \"there\"".to_owned()),
        ("add-file", of_m(&format!(":path {}", quoted(&format!("{folder}/a.txt"))))),
        ("add-tree", of_m(&format!(":path {project}"))),
        ("update-items", of_m(":id \"ctx-1\" :content \"two\"")),
        ("move-items", of_m(":id \"ctx-1\" :to 1")),
        ("update-items", of_m(":pinned t :id \"ctx-1\"")),
        ("update-items", of_m(":live :false :id \"ctx-1\"")),
        ("update-items", of_m(":items ((:id \"ctx-1\" :content \"z\"))")),
        ("refresh-items", of_m("")),
        ("push-next", of_m(":id \"ctx-1\"")),
        ("push-next", ":cancel (1)".to_owned()),
        ("save-set", of_m(":name \"s\"")),
        ("remove-items", of_m(":id \"ctx-1\"")),
        ("load-set", of_m(":name \"s\"")),
        ("save-set", of_m(":name \"s\" :drop t")),
        ("undo", of_m("")),
        ("redo", of_m("")),
        ("configure-manager", of_m(":max-items 7")),
        ("clear-context", of_m("")),
        ("remove-items", of_m(":all t :reset t ")),
        ("process-turn", ":content \"which port?\"".to_owned()),
        ("add-message", ":content \"said\" :pinned t".to_owned()),
        ("configure-session", ":grounding-memories 3".to_owned()),
        ("checkpoint", ":message \"x\"".to_owned()),
        ("prune-context", ":max-tokens 150".to_owned()),
        ("auto-manage-context", String::new()),
        ("pin-message", ":id \"msg-29\"".to_owned()),
        ("summarize-context", ":max-items 1".to_owned()),
        ("restore", ":session \"a\" :operation 3".to_owned()),
        ("rollback", String::new()),
        ("undo", ":session \"a\"".to_owned()),
        ("redo", ":session \"a\"".to_owned()),
        ("open-session", ":fork-of \"a\"".to_owned()),
        ("open-session", format!(":text {}", quoted(exported))),
        ("import-sessions", format!(":paths ({project})")),
        (
            "record-push",
            ":agent \"a\" :agent-session \"b\" :items ((:id \"ctx-1\" :digest \"d\"))".to_owned(),
        ),
        ("open-session", String::new()),
        ("remember", ":content \"port 3 is taken\"".to_owned()),
        ("ground-query", ":query \"which port?\"".to_owned()),
        ("update-memory", ":id \"mem-1\" :forgotten t".to_owned()),
        ("report-usage", ":model \"claude-x\" :counted 1000 :reported 1500".to_owned()),
        ("configure-session", ":session \"other\" :name \"renamed\"".to_owned()),
        ("delete-session", ":session \"renamed\"".to_owned()),
        ("delete-session", ":session \"renamed\" :deleted nil".to_owned()),
        ("trust-project", format!(":project {project}")),
        ("trust-project", format!(":project {project} :trusted :false")),
        ("configure-provider", ":name \"p\" :kind :ollama :model \"m\"".to_owned()),
        ("remove-provider", ":name \"p\"".to_owned()),
        ("open-layers", format!(":root {project}")),
        ("backup", String::new()),
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
        ("list-operations", "(:session \"a\")"),
        ("get-messages", "(:session \"a\" :view :log)"),
        ("trust-project", "nil"),
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
    // Those that need a model are in the tests below, and in those of `chat`.
    let with_model = ["chat", "approve", "take-notes"];
    let now = |name: &str| {
        let is_it = |it: &&Method| it.name == name || it.contract_names().any(|it| it == name);
        methods().find(is_it).unwrap().name
    };
    let called = calls.iter().map(|(name, _)| *name).chain(with_model);
    let called: BTreeSet<&str> = called.map(now).collect();
    assert_eq!(called, taking);
    let mut answers = Vec::new();
    for (number, (method, params)) in calls.iter().enumerate() {
        client.ok("open-session", "(:create nil :name \"a\")");
        let call = format!("({params} :request-key \"k{number}\")");
        let first = client.ok(method, &call);
        let after = state(&mut client);
        assert_eq!(client.ok(method, &call), first, "{method}");
        assert_eq!(state(&mut client), after, "{method}");
        answers.push(first);
    }
    let after = state(&mut client);
    client.end();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:create nil :name \"renamed\")");
    for (number, ((method, params), first)) in calls.iter().zip(answers).enumerate() {
        let call = format!("({params} :request-key \"k{number}\")");
        assert_eq!(client.ok(method, &call), first, "{method}");
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
        assert_eq!(client.ok("list-sessions", "(:current t)")[0]["messages"], 1);
    }
}

#[test]
fn a_call_that_failed_may_be_made_again_with_its_key() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let remove = "(:id \"ctx-1\" :request-key \"k\")";
    assert_eq!(client.fails("remove-items", remove).kind(), "no-such-item");
    client.add("*shared*", "x");
    assert_eq!(client.ok("remove-items", remove)["removed"], 1);
}

/// A server that outlives its clients, whose model plays these answers, with an open session.
fn with_model(home: &Home, answers: &str) -> (Listening, Client) {
    let script = home.write("answers.toml", answers);
    let config = home.path("config/contexture/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let provider = "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m\"\n";
    std::fs::write(config, format!("{provider}script = {script:?}\n")).unwrap();
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    client.ok("open-session", "(:name \"s\")");
    (server, client)
}

fn log_of(client: &mut Client) -> Vec<String> {
    let log = client.ok("get-messages", "(:session \"s\" :view :log)");
    let said = |message: &Json| message["content"].as_str().unwrap().to_owned();
    log.as_array().into_iter().flatten().map(said).collect()
}

#[test]
fn a_chat_is_answered_alike_however_often_it_is_sent_and_bound_to_its_parameters() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = \"one\"\nusage = { input = 10, output = 2 }\n\
                   [[answer]]\ntext = \"two\"\n";
    let (server, mut client) = with_model(&home, answers);
    let call = "(:content \"hi\" :request-key \"k\")";
    let first = client.ok("chat", call);
    assert_eq!(client.ok("chat", call), first, "the whole answer, with its usage");
    let mut other = server.tcp(Dialect::Native);
    assert_eq!(other.ok("chat", call), first);
    let error = client.fails("chat", "(:content \"ho\" :request-key \"k\")");
    assert_eq!(error.kind(), "key-reused");
    assert_eq!(log_of(&mut client), ["hi", "one"]);
    client.ok("open-session", "(:name \"elsewhere\")");
    let elsewhere = "(:session \"elsewhere\" :content \"hi\" :request-key \"k\")";
    assert_eq!(client.ok("chat", elsewhere)["content"], "two");
    drop((client, other, server));
    let mut client = home.stdio(&[]);
    assert_eq!(client.ok("chat", call), first, "also after a restart");
}

#[test]
fn a_chat_that_failed_may_be_made_again_and_says_that_it_failed() {
    let home = Home::new();
    let answers =
        "[[answer]]\nerror = \"unavailable\"\nmessage = \"no\"\n[[answer]]\ntext = \"yes\"\n";
    let (_server, mut client) = with_model(&home, answers);
    let call = "(:content \"hi\" :request-key \"k\")";
    assert_eq!(client.fails("chat", call).kind(), "unavailable");
    let error = client.fails("chat", "(:content \"ho\" :request-key \"k\")");
    assert_eq!(error.kind(), "key-reused");
    let answer = client.ok("chat", call);
    assert_eq!(
        (&answer["content"], &answer["failed_before"]),
        (&"yes".into(), &"unavailable".into())
    );
    assert_eq!(client.ok("chat", call), answer);
    assert_eq!(log_of(&mut client), ["hi", "yes"]);
    let answer = client.ok("chat", "(:content \"fresh\" :request-key \"l\" :dry-run t)");
    assert!(answer.get("failed_before").is_none());
}

#[test]
fn a_chat_that_was_cancelled_stays_so() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = \"Half\"\nhang = true\n[[answer]]\ntext = \"again\"\n";
    let (server, mut client) = with_model(&home, answers);
    let call = "(:content \"hi\" :request-key \"k\")";
    let id = client.send("chat", call);
    assert_eq!(client.notification("progress")["text"], "Half");
    client.ok("cancel", &format!("(:id {id})"));
    let first = client.reply(id).unwrap_err();
    assert_eq!(first.code, -32800);
    let again = client.fails("chat", call);
    assert_eq!((again.code, &again.message, &again.data), (-32800, &first.message, &first.data));
    assert_eq!((&again.data["question"], &again.data["id"]), (&"msg-1".into(), &"msg-2".into()));
    assert_eq!(log_of(&mut client), ["hi", "Half"]);
    assert_eq!(client.ok("chat", "(:content \"hi\")")["content"], "again");
    drop(server);
}

#[test]
fn a_chat_whose_client_was_cut_off_goes_on_when_it_is_sent_again() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = \"Half\"\nhang = true\n[[answer]]\ntext = \"whole\"\n";
    let (server, mut client) = with_model(&home, answers);
    let call = "(:session \"s\" :content \"hi\" :request-key \"k\")";
    let mut leaving = UnixStream::connect(&server.socket).unwrap();
    writeln!(leaving, "(:id 1 :method chat :params {call})").unwrap();
    let mut told = String::new();
    BufReader::new(&leaving).read_line(&mut told).unwrap();
    assert!(told.contains("Half"), "{told}");
    drop(leaving);
    let mut answer = None;
    until("the session to be free", || {
        answer = client.call("chat", call).ok();
        answer.is_some()
    });
    assert_eq!(answer.unwrap()["content"], "whole");
    assert_eq!(log_of(&mut client), ["hi", "Half", "whole"]);
}

#[test]
fn an_approval_is_given_once_however_often_it_is_sent() {
    let home = Home::new();
    let answers = "[[answer]]\ncalls = [{ name = \"add_file\", arguments = '{\"path\": \"/etc/hostname\"}' }]\n\
                   [[answer]]\ntext = \"done\"\n";
    let (_server, mut client) = with_model(&home, answers);
    let id = client.send("chat", "(:content \"hi\" :tools t)");
    let asked = loop {
        let told = client.notification("progress");
        if told["kind"] == "approval" {
            break told["approval"].clone();
        }
    };
    let call = format!("(:approval {asked} :decision :refuse :request-key \"a\")");
    let approved = client.ok("approve", &call);
    assert_eq!(client.ok("approve", &call), approved);
    assert_eq!(client.reply(id).unwrap()["content"], "done");
    let error = client.fails("approve", &format!("(:approval {asked} :decision :refuse)"));
    assert_eq!(error.kind(), "no-such-approval");
}

#[test]
fn notes_are_taken_once_however_often_they_are_asked_for() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = \"one\"\n[[answer]]\ntext = \"two\"\n";
    let (_server, mut client) = with_model(&home, answers);
    client.ok("add-message", "(:content \"we use tabs\")");
    let call = "(:session \"s\" :token-threshold 0 :recent-runs 1 :request-key \"n\")";
    let notes = client.ok("take-notes", call);
    assert_eq!(client.ok("take-notes", call), notes);
    let other = "(:session \"s\" :token-threshold 1 :recent-runs 1 :request-key \"n\")";
    assert_eq!(client.fails("take-notes", other).kind(), "key-reused");
}

#[test]
fn every_reading_ignores_a_key_and_no_call_ignores_a_version_that_there_is_not() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "nil");
    client.add("*shared*", "one");
    for (method, params) in [
        ("list-items", ""),
        ("render-items", ""),
        ("get-messages", ""),
        ("list-sessions", ""),
        ("list-providers", ""),
        ("ping", ""),
        ("initialize", ""),
    ] {
        let first = client.ok(method, &format!("({params} :request-key \"k\")"));
        assert_eq!(first, client.ok(method, &format!("({params})")), "{method}");
    }
    client.add("*shared*", "two");
    let items = client.ok("list-items", "(:request-key \"k\")");
    assert_eq!(items.as_array().unwrap().len(), 2, "a reading is never repeated from memory");
    for method in ["ping", "list-items", "list-providers", "remember", "backup"] {
        let error = client.fails(method, "(:if-version 1)");
        assert_eq!((error.code, error.param()), (-32602, "if-version"), "{method}");
    }
}
