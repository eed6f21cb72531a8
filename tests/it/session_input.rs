//! Bad input to sessions, and stores that refuse: each is answered clearly, and the server goes on.

#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit};

use crate::support::*;

fn open(home: &Home) -> Client {
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client
}

#[test]
fn budgets_are_checked() {
    let home = Home::new();
    let mut client = open(&home);
    client.ok("add-message", "(:content \"hello\")");
    for method in ["build-context", "prune-context"] {
        let error = client.fails(method, "(:max-tokens -1)");
        assert_eq!((error.code, error.param()), (-32602, "max-tokens"), "{method}");
        assert_eq!(error.message, "max-tokens must be 0 or more, got -1");
        for wrong in ["1.5", "\"many\"", "t", "99999999999999999999"] {
            let error = client.fails(method, &format!("(:max-tokens {wrong})"));
            assert_eq!((error.code, error.param()), (-32602, "max-tokens"), "{method} {wrong}");
        }
        assert_eq!(client.fails(method, "(:max-tokens 0)").kind(), "budget-too-small");
        client.ok(method, &format!("(:max-tokens {})", i64::MAX));
    }
    for (method, params) in [
        ("summarize-context", "(:max-items -1)"),
        ("summarize-context", "(:keep-turns 1 :max-items 1)"),
        ("get-messages", "(:limit -1)"),
        ("list-sessions", "(:limit -1)"),
        ("list-sessions", "(:query \"a\" :limit -1)"),
        ("ground-query", "(:query \"a\" :limit -1)"),
        ("session-report", "(:windows -5)"),
        ("session-report", "(:reports -5)"),
        ("restore", "(:session \"a\" :operation -1)"),
        ("configure-session", "(:max-tokens -1)"),
        ("process-turn", "(:content \"a\" :coherence 1.5)"),
        ("process-turn", "(:content \"a\" :coherence -0.1)"),
    ] {
        assert_eq!(client.fails(method, params).code, -32602, "{method} {params}");
    }
    for limit in [0, i64::MAX] {
        for (method, params) in [
            ("get-messages", ""),
            ("list-sessions", ""),
            ("list-sessions", ":query \"hello\""),
            ("ground-query", ":query \"hello\""),
            ("list-memories", ""),
            ("list-operations", ":session \"a\""),
        ] {
            client.ok(method, &format!("({params} :limit {limit})"));
        }
    }
    assert_eq!(client.ok("get-messages", "(:view :log)").as_array().unwrap().len(), 1);
    client.end();
}

#[test]
fn unknown_names_list_the_valid_ones_and_an_unknown_model_is_said() {
    let home = Home::new();
    let mut client = open(&home);
    client.ok("add-message", "(:content \"hello\")");
    let mut check = |method: &str, params: &str, param: &str, valid: &str| {
        let error = client.fails(method, params);
        assert_eq!((error.code, error.param()), (-32602, param), "{}", error.message);
        assert!(error.message.contains(valid), "{}", error.message);
    };
    let phases = "planning, interface, implementation, testing";
    check("build-context", "(:phase :dreaming)", "phase", phases);
    check("process-turn", "(:content \"a\" :phase :dreaming)", "phase", phases);
    check("add-message", "(:content \"a\" :role :king)", "role", "system, user, assistant, tool");
    check("build-context", "(:strategy :best)", "strategy", "tiered, query, sliding, importance");
    check("get-messages", "(:view :all)", "view", "conversation, view, log");
    check("export-session", "(:format :pdf)", "format", "markdown, json");
    check("remember", "(:content \"a\" :scope :mine)", "scope", "session, project, everywhere");
    check("build-context", "(:sections (:prompt \"a\"))", "sections.prompt", "system-prompt");
    let window = client.ok("build-context", "(:model \"no-such-model\" :brief t)");
    assert_eq!(window["model"], "no-such-model");
    assert!(is_nil(&window["model_known"]));
    let stats = client.ok("context-stats", "(:model \"no-such-model\")");
    assert_eq!((&stats["limit"], is_nil(&stats["model_known"])), (&100_000.into(), true));
    client.end();
}

#[test]
fn a_result_without_its_call_is_kept_as_a_unit_of_its_own_and_flagged() {
    let home = Home::new();
    let mut client = open(&home);
    client.ok("add-message", "(:content \"go\")");
    let said = client.ok("add-message", "(:role :tool :tool-call-id \"lost\" :content \"out\")");
    assert_eq!(said["without_call"], Json::from(vec!["msg-2"]));
    let said = client.ok("add-message", "(:role :tool :content \"of no call\")");
    assert_eq!(said["id"], "msg-3");
    client.ok("add-message", "(:content \"on\")");
    let window = client.ok("build-context", "(:strategy :sliding :explain t)");
    assert_eq!(window["parts"].as_array().unwrap().len(), 4);
    let units = window["report"]["parts"].as_array().unwrap();
    assert_eq!(units[1]["ids"], Json::from(vec!["msg-2"]));
    client.ok("prune-context", "(:max-tokens 2)");
    assert_eq!(client.ok("context-stats", "nil")["items"], 2);
    client.end();
}

#[test]
fn ids_of_calls_may_repeat_and_a_result_answers_the_newest_open_one() {
    let home = Home::new();
    let mut client = open(&home);
    let call = "(:role :assistant :tool-calls ((:id \"1\" :name \"run\")))";
    let result = "(:role :tool :tool-call-id \"1\" :content \"out\")";
    let twice = "(:role :assistant :tool-calls ((:id \"2\" :name \"a\") (:id \"2\" :name \"b\")))";
    let of_two = "(:role :tool :tool-call-id \"2\" :content \"two\")";
    let messages = format!(
        "({call} {result} {call} {result} {result} {twice} {of_two} {of_two} (:content \"end\"))"
    );
    client.ok("add-message", &format!("(:messages {messages})"));
    let window = client.ok("build-context", "(:explain t :strategy :sliding)");
    let units: Vec<Vec<String>> = window["report"]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| ids(&unit["ids"]))
        .collect();
    let expected: [&[&str]; 5] = [
        &["msg-1", "msg-2"],
        &["msg-3", "msg-4"],
        &["msg-5"],
        &["msg-6", "msg-7", "msg-8"],
        &["msg-9"],
    ];
    assert_eq!(units, expected);
    client.end();
}

#[test]
fn messages_are_checked() {
    let home = Home::new();
    let mut client = open(&home);
    let mut check = |params: &str, param: &str| {
        let error = client.fails("add-message", params);
        assert_eq!((error.code, error.param()), (-32602, param), "{params}: {}", error.message);
    };
    check("nil", "content");
    check("(:content 7)", "content");
    check("(:content \"a\" :messages ((:content \"b\")))", "messages");
    check("(:pinned t :messages ((:content \"b\")))", "messages");
    check("(:messages ((:content \"b\" :colour 1)))", "messages[0].colour");
    check("(:messages \"a\")", "messages");
    check("(:content \"a\" :tool-calls ((:id \"1\" :name \"run\")))", "tool-calls");
    check("(:content \"a\" :tool-call-id \"1\")", "tool-call-id");
    check("(:role :assistant :tool-calls ((:id \"1\")))", "tool-calls[0].name");
    check("(:content \"a\" :timestamp \"now\")", "timestamp");
    assert!(is_nil(&client.ok("get-messages", "(:view :log)")), "nothing of it was kept");
    let empty = client.ok("add-message", "(:content \"\")");
    assert_eq!((&empty["id"], &empty["messages"]), (&"msg-1".into(), &1.into()));
    client.end();
}

#[test]
fn ids_of_other_kinds_are_refused_by_name() {
    let home = Home::new();
    let mut client = open(&home);
    client.ok("add-message", "(:content \"hello\")");
    let huge = u64::MAX;
    for id in ["msg-0", "msg-x", "msg-", "msg--1", "ctx-1", "1", "", "msg-99999999999999999999"] {
        for (method, params) in [
            ("pin-message", format!("(:id \"{id}\")")),
            ("get-messages", format!("(:ids (\"{id}\"))")),
        ] {
            let error = client.fails(method, &params);
            assert_eq!(error.code, -32602, "{method} {params}: {}", error.message);
            assert!(error.message.contains("such as msg-3"), "{}", error.message);
        }
    }
    for number in [2, 1 << 40, huge] {
        let error = client.fails("pin-message", &format!("(:id \"msg-{number}\")"));
        assert_eq!((error.kind(), &error.data["length"]), ("no-such-message", &1.into()));
        assert_eq!(error.data["message"], format!("msg-{number}"));
        assert!(is_nil(&client.ok("get-messages", &format!("(:from \"msg-{number}\")"))));
        let error = client.fails("get-messages", &format!("(:session \"ses-{number}\")"));
        assert_eq!(error.kind(), "no-such-session");
        assert_eq!(error.data["known"], Json::from(vec!["a"]));
        for (method, of) in [("rollback", ""), ("open-session", ":fork-of \"a\"")] {
            let error = client.fails(method, &format!("({of} :checkpoint \"chk-{number}\")"));
            assert_eq!(error.kind(), "no-checkpoint", "{}", error.message);
        }
        let error = client.fails("update-memory", &format!("(:id \"mem-{number}\")"));
        assert_eq!(error.kind(), "no-such-memory", "{}", error.message);
        for method in ["delete-session", "session-report"] {
            let error = client.fails(method, &format!("(:session \"ses-{number}\")"));
            assert_eq!(error.kind(), "no-such-session", "{}", error.message);
        }
    }
    let error = client.fails("restore", &format!("(:session \"a\" :operation {})", i64::MAX));
    assert_eq!(error.kind(), "no-such-operation");
    for (method, params) in [
        ("rollback", "(:checkpoint \"msg-1\")"),
        ("rollback", "(:checkpoint \"chk-x\")"),
        ("update-memory", "(:id \"ctx-1\")"),
    ] {
        assert_eq!(client.fails(method, params).code, -32602, "{method} {params}");
    }
    client.end();
}

#[test]
fn a_clock_that_goes_back_does_not_take_the_messages_along() {
    let home = Home::new();
    let times = ["1700000900", "1700000500", "1700001000"];
    for time in times {
        let mut client = home.stdio(&["--fixed-time", time]);
        client.ok("open-session", "(:name \"a\")");
        client.ok("process-turn", "(:content \"tick\")");
        client.ok("checkpoint", "nil");
        client.end();
    }
    let mut client = home.stdio(&["--fixed-time", "1699999000"]);
    let said =
        "(:messages ((:content \"old\" :timestamp 5) (:content \"new\" :timestamp 1700002000)))";
    client.ok("add-message", said);
    client.ok("add-message", "(:content \"last\")");
    let messages = client.ok("get-messages", "nil");
    let times: Vec<i64> =
        messages.as_array().unwrap().iter().map(|m| m["timestamp"].as_i64().unwrap()).collect();
    let base = 1_700_000_000;
    let expected = [900, 900, 1000, 1000, 2000, 2000].map(|seconds| base + seconds);
    assert_eq!(times, expected);
    client.end();
}

#[test]
fn names_may_be_anything_of_up_to_1024_bytes() {
    let home = Home::new();
    let long = "é".repeat(512);
    let hostile = [
        "ünïcödé \u{1F600}\u{202E}\u{0301}",
        "\"quoted\" 'and' `more`",
        "two\nlines\tand\r\nmore",
        "'; DROP TABLE session; --",
        "../../etc/passwd",
        "*shared*",
        " ",
        "nil",
        ":keyword",
        "chk-1",
        "%s%n",
        "\u{0}nul",
        &long,
    ];
    let mut client = home.stdio(&[]);
    for (number, name) in hostile.iter().enumerate() {
        let name = quoted(name);
        client.ok("open-session", &format!("(:name {name} :project {name})"));
        client.ok("process-turn", &format!("(:content {name} :session {name})"));
        client.ok("configure-session", &format!("(:session {name} :name \"x\")"));
        client.ok("configure-session", &format!("(:session \"x\" :name {name})"));
        client.ok("checkpoint", &format!("(:message {name})"));
        client.ok("remember", &format!("(:content {name} :session {name})"));
        client.ok("export-session", "nil");
        let id = format!("ses-{}", number + 1);
        assert_eq!(client.ok("list-sessions", "(:current t)")[0]["id"], id);
    }
    client.end();
    let mut client = home.stdio(&[]);
    let rows = client.ok("list-sessions", "nil");
    let mut names: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["session"].as_str().unwrap()).collect();
    let mut expected = hostile.to_vec();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for name in hostile {
        let messages = client.ok("get-messages", &format!("(:session {})", quoted(name)));
        assert_eq!(messages[0]["content"], name);
        client.ok("delete-session", &format!("(:session {})", quoted(name)));
        client.ok("delete-session", &format!("(:session {} :deleted :false)", quoted(name)));
    }
    for wrong in [String::new(), format!("{long}x")] {
        let error = client.fails("open-session", &format!("(:name {})", quoted(&wrong)));
        assert_eq!((error.code, error.param()), (-32602, "name"));
        let error = client.fails("get-messages", &format!("(:session {})", quoted(&wrong)));
        assert_eq!((error.code, error.param()), (-32602, "session"));
    }
    client.end();
}

#[test]
fn no_search_text_is_a_syntax_error() {
    let home = Home::new();
    let mut client = open(&home);
    client.ok("add-message", "(:content \"the port is NEAR the gate\")");
    client.ok("remember", "(:content \"the port is NEAR the gate\")");
    let long = "port ".repeat(20_000);
    let hostile = [
        "",
        "\"",
        "\"port",
        "port\"",
        "NEAR",
        "NEAR(port gate)",
        "port AND",
        "NOT port",
        "port*",
        "*",
        "-port",
        "col:port",
        "words:port",
        "{port}",
        "(port",
        "port)",
        "^port",
        "port OR",
        "'; DROP TABLE message; --",
        "\u{0}",
        "\u{202E}",
        "%",
        "_",
        "\\",
        &long,
    ];
    for text in hostile {
        for method in ["list-sessions", "ground-query"] {
            client.ok(method, &format!("(:query {})", quoted(text)));
        }
        client.ok("build-context", &format!("(:strategy :query :query {})", quoted(text)));
        client.ok("process-turn", &format!("(:content {})", quoted(text)));
    }
    let hits = client.ok("list-sessions", "(:query \"gate\" :limit 1)");
    assert_eq!(hits.as_array().unwrap().len(), 1);
    client.end();
}

#[test]
fn a_message_of_64_mib_is_refused_and_one_of_a_few_is_kept() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    let large = "word ".repeat(16 << 20);
    let id = client.send("add-message", &format!("(:content \"{large}\")"));
    let message = client.message();
    assert_eq!(message["error"]["code"], -32600, "{message}");
    assert_eq!(message["id"], id);
    let smaller = &large[..8 << 20];
    client.ok("add-message", &format!("(:content \"{smaller}\")"));
    client.ok("process-turn", "(:content \"and now?\")");
    let error = client.fails("build-context", "(:max-tokens 1)");
    assert_eq!(error.kind(), "budget-too-small");
    client.end();
    let mut client = home.stdio(&[]);
    let messages = client.ok("get-messages", "nil");
    assert_eq!(messages[0]["content"].as_str().unwrap().len(), 8 << 20);
    assert_eq!(messages.as_array().unwrap().len(), 2);
    client.end();
}

#[test]
fn a_hundred_thousand_messages_are_added_at_once_and_no_more() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    let many = "(:content \"x\")".repeat(100_000);
    let error = client.fails("add-message", &format!("(:messages ({many} (:content \"x\")))"));
    assert_eq!((error.code, error.param()), (-32602, "messages"));
    assert_eq!(error.message, "messages must have at most 100000 entries, got 100001");
    let said = client.ok("add-message", &format!("(:messages ({many}))"));
    assert_eq!((&said["id"], &said["messages"]), (&"msg-100000".into(), &100_000.into()));
    client.ok("add-message", "(:role :assistant :content \"y\")");
    client.end();
    let mut client = home.stdio(&[]);
    assert_eq!(client.ok("context-stats", "nil")["turns"], 100_000);
    assert_eq!(client.ok("get-messages", "(:limit 1)")[0]["id"], "msg-100001");
    let window = client.ok("build-context", "(:max-tokens 50)");
    assert!(window["tokens"].as_u64().unwrap() <= 50);
    client.end();
}

/// Lets no file of the process become longer than this from now on.
#[cfg(target_os = "linux")]
fn limit_files(client: &mut Client, bytes: Option<u64>) {
    let pid = rustix::process::Pid::from_child(&client.process().child);
    let limit = Rlimit { current: bytes, maximum: None };
    rustix::process::prlimit(Some(pid), Resource::Fsize, limit).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_store_that_is_full_fails_the_call_and_nothing_is_half_written() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\" )");
    for number in 0..20 {
        client.ok("process-turn", &format!("(:content \"before {number}\")"));
    }
    client.ok("checkpoint", "nil");
    let before = client.ok("get-messages", "(:view :log)");
    let revisions = client.ok("list-operations", "(:session \"a\")");
    limit_files(&mut client, Some(1));
    for (method, params) in [
        ("process-turn", "(:content \"lost\")"),
        ("add-message", "(:messages ((:content \"lost\") (:content \"lost\" :pinned t)))"),
        ("prune-context", "(:max-tokens 30)"),
        ("rollback", "nil"),
        ("checkpoint", "nil"),
        ("open-session", "(:name \"lost\")"),
        ("open-session", "(:fork-of \"a\" :name \"lost\")"),
        ("remember", "(:content \"lost\")"),
        ("configure-session", "(:session \"a\" :name \"lost\")"),
        ("delete-session", "(:session \"a\")"),
    ] {
        let error = client.fails(method, params);
        assert_eq!((error.code, error.kind()), (1, "store-failed"), "{method}: {}", error.message);
    }
    // Reading goes on.
    client.ok("build-context", "nil");
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], "a");
    assert_eq!(client.ok("get-messages", "(:view :log)"), before);
    assert_eq!(client.ok("list-operations", "(:session \"a\")"), revisions);
    limit_files(&mut client, None);
    let done = client.ok("process-turn", "(:content \"after\")");
    assert_eq!((&done["id"], &done["turn"]), (&"msg-21".into(), &21.into()));
    client.end();
    let mut client = home.stdio(&[]);
    let messages = client.ok("get-messages", "(:view :log)");
    assert_eq!(messages.as_array().unwrap().len(), 21);
    assert_eq!(messages.as_array().unwrap()[..20], before.as_array().unwrap()[..]);
    assert!(is_nil(&client.ok("list-memories", "nil")));
    assert_eq!(client.ok("list-sessions", "(:deleted t)").as_array().unwrap().len(), 1);
    client.end();
    assert!(home.succeed(&["doctor"]).contains("contexture.db is sound"));
}

#[test]
fn a_newer_database_is_refused_and_one_beyond_mending_is_kept_with_its_sessions() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("add-message", "(:content \"kept\")");
    client.end();
    let database = std::fs::read(home.database()).unwrap();
    let set_version = |version: u32| {
        let mut bytes = database.clone();
        bytes[60..64].copy_from_slice(&version.to_be_bytes());
        std::fs::write(home.database(), bytes).unwrap();
        home.forget_what_is_beside();
    };
    set_version(999);
    let said = home.fail(&["serve", "--stdio"]);
    assert!(said.contains("has format 999") && said.contains("--state"), "{said}");
    assert_eq!(std::fs::read(home.database()).unwrap().len(), database.len());
    std::fs::write(home.database(), b"this is no database at all, whatever its name says").unwrap();
    let mut client = home.stdio(&[]);
    let notices = client.ok("initialize", "nil")["notices"].to_string();
    assert!(
        notices.contains("there is no good backup") && notices.contains("is lost"),
        "{notices}"
    );
    assert!(is_nil(&client.ok("list-sessions", "nil")));
    client.ok("open-session", "(:name \"b\")");
    client.ok("process-turn", "(:content \"new\")");
    client.end();
    let aside: Vec<_> = std::fs::read_dir(home.state().join("damaged")).unwrap().collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
}
