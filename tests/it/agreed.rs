//! Rules that hold for all methods alike, as a client relies on them that was written from the
//! document alone.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::json;

use crate::model::configure;
use crate::schema::document;
use crate::support::*;

/// A client over a socket, of a server whose model plays these answers, in TOML.
fn playing(home: &Home, answers: &str) -> (Listening, Client) {
    let script = home.write("answers.toml", answers);
    configure(
        home,
        &format!(
            "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m\"\nscript = {script:?}\n"
        ),
    );
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    client.ok("open-session", "(:name \"s\" :manager \"m\")");
    (server, client)
}

#[test]
fn fields_are_checked_against_the_type_whatever_entries_there_are() {
    let document = document();
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    for (method, of) in document["methods"].as_object().unwrap() {
        if of["params"]["properties"]["cursor"].is_null() {
            continue;
        }
        let error = client.fails(method, "(:fields (:no-such))");
        assert_eq!((error.code, error.param()), (-32602, "fields"), "{method}: {error:?}");
        // The message names the members, and each of them is right.
        let known = error.message.rsplit_once("the entries have ").unwrap().1.to_owned();
        for member in known.split(", ") {
            client.ok(method, &format!("(:fields ({member:?}))"));
        }
    }
}

#[test]
fn fields_of_one_of_several_lists_leave_the_others_empty() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    client.ok("add-message", "(:content \"a\")");
    client.ok("add-item", "(:content \"x\" :manager \"*session 1*\")");
    let window = client.ok("build-window", "(:fields (:content))");
    assert!(window["parts"].as_array().unwrap().iter().all(|part| !is_nil(&part["content"])));
    assert!(is_nil(&window["items"]), "{window}");
}

#[test]
fn the_schema_says_which_members_brief_leaves_out() {
    let document = document();
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.dialect = Dialect::Json;
    client.ok("open-session", "(:name \"s\")");
    client.ok("add-message", "(:content \"a\")");
    client.ok("remember", "(:content \"a\")");
    let mut checked = 0;
    for (method, of) in document["methods"].as_object().unwrap() {
        let Some(left_out) = of["left_out_by_brief"].as_array() else { continue };
        let result = client.ok(method, "(:brief t)");
        let entry = &result[0];
        assert!(left_out.iter().all(|name| entry.get(name.as_str().unwrap()).is_none()), "{entry}");
        let forms = of["result"]["anyOf"].as_array().unwrap();
        let part = forms.iter().find_map(|form| {
            let (_, name) = form["items"]["$ref"].as_str()?.rsplit_once('/')?;
            name.starts_with("PartOf").then(|| &document["$defs"][name])
        });
        let part = part.unwrap_or_else(|| panic!("{method} has no form with parts"));
        assert_eq!(part["required"], json!([]));
        checked += 1;
    }
    assert_eq!(checked, 2);
}

#[test]
fn what_takes_the_question_away_is_refused_while_a_chat_runs() {
    let home = Home::new();
    let answers = "[[answer]]\nwhen = \"hang\"\ntext = \"begun\"\nhang = true\n\
                   [[answer]]\ntext = \"fine\"\n";
    let (server, mut client) = playing(&home, answers);
    client.ok("chat", "(:content \"one\")");
    client.ok("checkpoint", "nil");
    client.ok("chat", "(:content \"two\")");
    client.ok("rollback", "nil");
    client.ok("undo", "(:session \"s\")");
    let id = client.send("chat", "(:content \"hang\" :request-key \"k\")");
    while client.notification("progress")["text"] != "begun" {}
    let mut other = server.unix(Dialect::Native);
    let asked = |client: &mut Client| client.ok("get-messages", "(:session \"s\")").to_string();
    let before = asked(&mut other);
    for (method, params) in [
        ("rollback", ""),
        ("undo", ""),
        ("redo", ""),
        ("restore", ":operation 0"),
        ("summarize-session", ":keep-messages 0"),
        ("process-turn", ":content \"x\""),
        ("chat", ":content \"x\""),
    ] {
        let error = other.fails(method, &format!("(:session \"s\" {params})"));
        assert_eq!(error.kind(), "session-busy", "{method}: {error:?}");
    }
    assert_eq!(asked(&mut other), before);
    other.ok("add-message", "(:session \"s\" :role :system :content \"x\")");
    other.ok("delete-session", "(:session \"s\")");
    client.send("cancel", &format!("(:id {id})"));
    let error = client.reply(id).unwrap_err();
    assert_eq!(error.code, -32800);
    assert_eq!((&error.data["kind"], error.data["id"].is_string()), (&"cancelled".into(), true));
    other.ok("delete-session", "(:session \"s\" :deleted :false)");
    other.ok("rollback", "(:session \"s\")");
}

/// A model that falls silent the first time.
const SILENT_ONCE: &str = "[[answer]]\ntext = \"begun\"\nhang = true\n\
                           [[answer]]\ntext = \"fine\"\n";
const REPEATED: &str = "(:session \"s\" :content \"go\" :request-key \"k\")";

/// Repeats the chat once the session is free, and checks what ended the first.
#[track_caller]
fn check_failed_before(client: &mut Client, expected: &str) {
    let mut answer = Json::Null;
    until("the session to be free", || match client.call("chat", REPEATED) {
        Ok(ended) => {
            answer = ended;
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), "session-busy", "{error:?}");
            false
        }
    });
    assert_eq!(answer["failed_before"], expected, "{answer}");
}

#[test]
fn a_repeated_chat_says_that_the_client_hung_up() {
    let home = Home::new();
    let (server, mut other) = playing(&home, SILENT_ONCE);
    let mut leaving = UnixStream::connect(&server.socket).unwrap();
    writeln!(leaving, "(:id 1 :method chat :params {REPEATED})").unwrap();
    let lines = BufReader::new(leaving).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("begun")));
    check_failed_before(&mut other, "hung-up");
}

#[test]
fn a_repeated_chat_says_that_the_server_ended() {
    let home = Home::new();
    let (server, mut client) = playing(&home, SILENT_ONCE);
    let id = client.send("chat", REPEATED);
    client.notification("progress");
    server.unix(Dialect::Native).ok("shutdown", "nil");
    assert_eq!(client.reply(id).unwrap_err().kind(), "shutting-down");
    drop((client, server));
    home.write("answers.toml", "[[answer]]\ntext = \"fine\"\n");
    let server = home.listening(&[]);
    check_failed_before(&mut server.unix(Dialect::Native), "shutting-down");
}

#[test]
fn messages_name_parameters_and_methods_as_the_dialect_spells_them() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.dialect = Dialect::Json;
    client.ok("ping", "nil");
    let calls = [
        ("list-items", "(:max-items 1)"),
        ("list-items", "(:fields (:no-such))"),
        ("list-items", "(:max-bytes 1)"),
        ("get-messages", "nil"),
        ("chat", "(:content \"hi\")"),
        ("batch", "(:atomic t :calls ((:method remove-items :params (:id \"ctx-9\"))))"),
        ("batch", "(:atomic t :calls ((:method list-items :params (:max-items 1))))"),
    ];
    let methods = document()["methods"].as_object().unwrap().clone();
    for (method, params) in calls {
        let error = client.fails(method, params);
        let words = error.message.split(|c: char| !c.is_alphanumeric() && !"-_".contains(c));
        let kebab: Vec<&str> = words.filter(|word| word.contains('-')).collect();
        let is_known = |word: &&&str| {
            methods.contains_key(**word)
                || ["max-items", "max-bytes", "token-counter"].contains(*word)
        };
        assert!(kebab.iter().find(is_known).is_none(), "{method}: {}", error.message);
        if method == "batch" {
            assert!(!error.data["method"].to_string().contains('-'), "{error:?}");
        }
    }
}

#[test]
fn a_path_of_a_parameter_is_printed_plainly() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("ping", "nil");
    let id = client.send("list-items", "(:types (:zzz))");
    let line = client.line().unwrap();
    assert!(line.ends_with(":data (:param \"types[0]\")))"), "{id}: {line}");
    client.send("list-items", "(:limit -1)");
    assert!(client.line().unwrap().ends_with(":data (:param :limit)))"));
}

#[test]
fn an_open_approval_is_told_and_listed_to_all_clients() {
    let home = Home::new();
    let answers = "[[answer]]\ncalls = [{ name = \"add_text\", arguments = '{\"content\": \"x\"}' }]\n\
                   [[answer]]\ntext = \"fine\"\n";
    let (server, mut client) = playing(&home, answers);
    let mut other = server.unix(Dialect::Native);
    other.ok("subscribe", "(:topics (:approvals-changed :context-changed))");
    assert!(is_nil(&other.ok("list-approvals", "nil")));
    let id = client.send("chat", "(:content \"go\" :tools t)");
    let told = other.notification("approvals-changed");
    assert_eq!((&told["session"], &told["open"]), (&"s".into(), &true.into()), "{told}");
    let open = other.ok("list-approvals", "nil");
    assert_eq!((&open[0]["approval"], &open[0]["tool"]), (&told["approval"], &"add_text".into()));
    assert_eq!((&open[0]["session_id"], &open[0]["session"]), (&"ses-1".into(), &"s".into()));
    other.ok("approve", &format!("(:approval {} :decision :once)", told["approval"]));
    // What a model's tool changes is told under the method that does the same.
    assert_eq!(other.notification("context-changed")["method"], "add-item");
    client.reply(id).unwrap();
    assert!(is_nil(&other.ok("list-approvals", "nil")));
}

#[test]
fn a_subscription_by_name_is_for_the_name_and_one_by_id_for_the_session() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("subscribe", "(:topics (:session-changed) :sessions (\"a\"))");
    client.ok("configure-session", "(:session \"ses-1\" :name \"b\")");
    client.ok("add-message", "(:session \"ses-1\" :content \"x\")");
    client.ok("open-session", "(:name \"a\")");
    // The session that has the name now is another.
    assert_eq!(client.notification("session-changed")["session_id"], "ses-2");
    client.ok("subscribe", "(:topics (:session-changed) :sessions (\"ses-1\"))");
    client.ok("configure-session", "(:session \"ses-1\" :name \"c\")");
    assert_eq!(client.notification("session-changed")["session"], "c");
}

#[test]
fn restoring_a_session_that_is_not_deleted_says_that_nothing_was_done() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    assert!(is_nil(&client.ok("delete-session", "(:session \"a\" :deleted :false)")["restored"]));
    client.ok("delete-session", "(:session \"a\")");
    assert_eq!(client.ok("delete-session", "(:session \"a\" :deleted :false)")["restored"], true);
    assert_eq!(
        client.fails("delete-session", "(:session \"z\" :deleted :false)").kind(),
        "no-such-session"
    );
}

#[test]
fn turns_count_the_log_in_one_place_and_the_conversation_in_the_other() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("add-message", "(:content \"1\")");
    client.ok("checkpoint", "nil");
    client.ok("add-message", "(:content \"2\")");
    client.ok("rollback", "nil");
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["turns"], 2);
    assert_eq!(client.ok("session-report", "nil")["turns"], 1);
}

#[test]
fn a_limit_counts_only_what_is_asked_for() {
    let mut client = Home::new().ephemeral(&[]);
    let first = client.add("m", "one");
    client.add("m", "two");
    let params = format!("(:manager \"m\" :ids ({first:?}) :limit 1)");
    assert_eq!(client.ok("list-items", &params)[0]["id"], json!(first));
    assert!(client.ok("context-to-string", &params).as_str().unwrap().contains("one"));
    let home = Home::new();
    let file = home.write("a.txt", "text\n");
    for manager in ["a", "b"] {
        client.ok("add-file", &format!("(:manager {manager:?} :path {file:?} :live t)"));
    }
    let params = format!("(:filenames ({file:?}) :limit 1)");
    assert_eq!(client.ok("list-items", &params).as_array().unwrap().len(), 1);
}

#[test]
fn filters_pass_over_ids_that_do_not_exist_and_changes_fail() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("add-message", "(:content \"1\")");
    client.ok("add-item", "(:content \"1\")");
    let filters = [
        ("list-items", "(:ids (\"ctx-9\"))"),
        ("list-items", "(:manager \"none\")"),
        ("get-messages", "(:ids (\"msg-9\"))"),
        ("get-messages", "(:from \"msg-9\")"),
        ("list-notes", "(:view \"view-9\")"),
    ];
    for (method, params) in filters {
        assert!(is_nil(&client.ok(method, params)), "{method} {params}");
    }
    let changes = [
        ("remove-items", "(:ids (\"ctx-1\" \"ctx-9\"))", "no-such-item"),
        ("update-items", "(:pinned t :ids (\"ctx-1\" \"ctx-9\"))", "no-such-item"),
        ("refresh-items", "(:ids (\"ctx-1\" \"ctx-9\"))", "no-such-item"),
        ("move-items", "(:id \"ctx-1\" :before \"ctx-9\")", "no-such-item"),
        ("pin-message", "(:ids (\"msg-1\" \"msg-9\"))", "no-such-message"),
        ("update-memory", "(:id \"mem-9\")", "no-such-memory"),
        ("rollback", "(:checkpoint \"chk-9\")", "no-checkpoint"),
    ];
    for (method, params, kind) in changes {
        assert_eq!(client.fails(method, params).kind(), kind, "{method} {params}");
    }
    assert!(is_nil(&client.ok("list-items", "nil")[0]["pinned"]));
}

#[test]
fn the_first_page_has_the_newest_and_says_that_a_limit_was_hit() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    for number in 0..3 {
        client.ok("add-message", &format!("(:content \"{number}\")"));
        client.ok("build-window", "(:brief t)");
        client.ok("checkpoint", &format!("(:message \"{number} {}\")", "x".repeat(400)));
    }
    let all = client.ok("session-report", "(:windows 50)")["windows"].as_array().unwrap().clone();
    let page = client.ok("session-report", "(:windows 9 :max-bytes 1300)");
    let shown = page["windows"].as_array().unwrap();
    assert_eq!((shown.last(), &page["left"]), (all.last(), &(3 - shown.len()).into()));
    assert!(shown.len() < 3, "{page}");
    let page = client.ok("list-operations", "(:session \"a\" :checkpoints t :max-bytes 1024)");
    assert!(page["items"][0]["message"].as_str().unwrap().starts_with("2 "), "{page}");
    let moved = client.ok("add-item", "(:content \"1\")");
    client.ok("add-item", "(:content \"2\")");
    let order = client.ok("move-items", &format!("(:id {} :to 99)", moved["id"]));
    assert_eq!(order["ids"][1], moved["id"]);
}

#[test]
fn limits_are_those_of_a_small_message() {
    let home = Home::new();
    let mut client = home.stdio(&["--max-message-bytes", "16384"]);
    let limits = client.ok("initialize", "nil")["limits"].clone();
    for name in ["max_message_bytes", "max_framed_bytes", "max_file_bytes", "page_bytes"] {
        assert_eq!(limits[name], 16384, "{name}: {limits}");
    }
    let text = "word ".repeat(1000);
    for _ in 0..6 {
        client.ok("add-item", &format!("(:content {text:?} :brief t)"));
    }
    let page = client.ok("list-items", "(:max-bytes 16384)");
    assert_eq!(page["truncated"], true, "{:.100}", page.to_string());
}

#[test]
fn the_answer_to_an_addition_does_not_look_at_the_file() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let missing = home.path("none.txt");
    let params = format!("(:content \"x\" :metadata (:filename {missing:?}))");
    assert_eq!(client.ok("add-item", &params)["state"], "fresh");
    assert_eq!(client.ok("list-items", "nil")[0]["state"], "missing");
}

#[test]
fn numbers_are_kept_as_the_document_says() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let metadata = "(:a 1e3 :b 1.0 :c 123456789012345678901234567890 :d ?a :e 1.50 :f 5.)";
    client.ok("add-item", &format!("(:content \"x\" :metadata {metadata})"));
    client.send("list-items", "nil");
    let kept = "(:a 1000.0 :b 1.0 :c 123456789012345678901234567890 :d 97 :e 1.5 :f 5)";
    let line = client.line().unwrap();
    assert!(line.contains(kept), "{line}");
}

#[test]
fn what_clients_are_shown_of_a_member_stands_alone() {
    let document = document().to_string();
    for words in [
        "This and the next",
        "as in the next",
        "`None`",
        "`Some`",
        "the next two",
        "the next three",
    ] {
        assert!(!document.contains(words), "{words:?} is in the schema");
    }
}
