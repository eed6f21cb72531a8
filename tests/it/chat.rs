//! Chats with a model that plays a script, through the program itself.

use crate::support::*;

/// A server whose model plays these answers, in TOML, and an open session.
pub(crate) fn begin(home: &Home, answers: &str) -> Client {
    configure(home, answers);
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    client
}

/// Writes a configuration with a model that plays these answers.
fn configure(home: &Home, answers: &str) {
    let script = home.write("answers.toml", answers);
    let config = home.path("config/contexture/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let provider = format!(
        "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-1\"\n\
         script = {script:?}\nprice-input = 2.0\nprice-output = 10.0\n"
    );
    std::fs::write(config, provider).unwrap();
}

fn said(client: &mut Client) -> Vec<String> {
    lines(&client.ok("get-messages", "nil"))
}

fn logged(client: &mut Client) -> Vec<String> {
    lines(&client.ok("get-messages", "(:view :log)"))
}

fn lines(messages: &Json) -> Vec<String> {
    let line =
        |message: &Json| format!("{}: {}", text(&message["role"]), text(&message["content"]));
    // An empty list is `nil`, and that is null.
    messages.as_array().into_iter().flatten().map(line).collect()
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// The messages until the answer to the call with this id, with the answer.
fn heard(client: &mut Client, id: i64) -> (Vec<Json>, Json) {
    let mut progress = Vec::new();
    loop {
        let message = client.message();
        match message["id"] == id {
            true => return (progress, message),
            false => progress.push(message),
        }
    }
}

#[test]
fn an_answer_is_streamed_logged_and_accounted_for() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = [\"Hello \", \"λ.\"]\nreasoning = \"greet\"\n\
                   usage = { input = 1000, output = 100 }\n";
    let mut client = begin(&home, answers);
    let id = client.send("chat", "(:content \"hi\")");
    let (progress, answer) = heard(&mut client, id);
    let shown: Vec<(&str, &str)> = progress
        .iter()
        .map(|message| (text(&message["params"]["kind"]), text(&message["params"]["text"])))
        .collect();
    assert_eq!(shown, [("reasoning", "greet"), ("text", "Hello "), ("text", "λ.")]);
    let result = &answer["result"];
    assert_eq!(text(&result["content"]), "Hello λ.");
    assert_eq!(result["cost"], 0.003);
    assert_eq!(text(&result["stop_reason"]), "stop");
    assert_eq!(said(&mut client), ["user: hi", "assistant: Hello λ."]);
}

#[test]
fn all_that_a_chat_changes_is_told_as_a_chat() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"Hello\"\n");
    client.ok("subscribe", "(:topics (:session-changed :window-built))");
    client.ok("chat", "(:content \"hi\")");
    for messages in [1, 2] {
        let told = client.notification("session-changed");
        assert_eq!((&told["method"], &told["messages"]), (&"chat".into(), &messages.into()));
    }
    assert!(client.notification("window-built")["tokens"].as_u64() > Some(0));
    client.ok("add-message", "(:content \"more\")");
    assert_eq!(client.notification("session-changed")["method"], "add-message");
}

#[test]
fn the_usage_log_says_what_each_answer_took() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = \"one\"\nusage = { input = 1000, output = 100, cached = 800 }\n\
                   [[answer]]\ntext = \"two\"\n\
                   [[answer]]\nerror = \"unavailable\"\nmessage = \"no\"\n\
                   [[answer]]\ntext = \"thr\"\ncut = true\n";
    let mut client = begin(&home, answers);
    for number in 0..2 {
        client.ok("chat", &format!("(:content \"{number}\" :phase :testing)"));
    }
    assert_eq!(client.fails("chat", "(:content \"3\")").kind(), "unavailable");
    assert_eq!(client.fails("chat", "(:content \"4\")").kind(), "unavailable");
    client.ok("build-context", "(:brief t)");
    let log = client.ok("session-report", "(:windows 50)");
    let windows = log["windows"].as_array().unwrap();
    let fields = ["provider", "model", "input", "output", "cached", "cost"];
    let spent = |window: &Json| fields.map(|name| window[name].to_string());
    assert_eq!(spent(&windows[0]), ["\"play\"", "\"m-1\"", "1000", "100", "800", "0.003"]);
    let untold = ["\"play\"", "\"m-1\"", "null", "null", "null", "null"];
    assert_eq!(spent(&windows[1]), untold);
    // Nothing came: no model answered with this one.
    assert!(windows[2].get("provider").is_none(), "{log}");
    assert_eq!(spent(&windows[3]), untold);
    assert!(windows[4].get("provider").is_none(), "{log}");
    let phases = log["phases"].as_array().unwrap();
    let sums = |row: &Json| {
        ["windows", "reported", "input", "cached", "priced"].map(|n| row[n].as_u64().unwrap())
    };
    assert_eq!(sums(&phases[0]), [2, 1, 1000, 800, 1]);
    assert_eq!(phases[0]["cost"], 0.003);
    assert_eq!(sums(&phases[1]), [3, 0, 0, 0, 0]);
    assert_eq!(phases[1]["cost"], Json::Null);
}

#[test]
fn counts_that_no_request_has_do_not_break_the_usage_log() {
    let home = Home::new();
    let most = i64::MAX;
    let answers =
        format!("[[answer]]\ntext = \"x\"\nusage = {{ input = {most}, output = {most} }}\n");
    let mut client = begin(&home, &answers);
    for number in 0..3 {
        client.ok("chat", &format!("(:content \"{number}\")"));
    }
    let log = client.ok("session-report", "(:windows 50)");
    assert_eq!(log["windows"].as_array().unwrap().len(), 3);
    assert_eq!(log["phases"][0]["input"], 3 * (1_i64 << 40));
}

#[test]
fn what_would_be_sent_can_be_seen_and_changes_nothing() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"x\"\n");
    let shown =
        client.ok("chat", "(:content \"hi\" :dry-run t :sections (:system-prompt \"Be brief.\"))");
    assert!(text(&shown["payload"]).contains("Be brief."), "{shown}");
    let parts = shown["parts"].as_array().unwrap();
    let tokens: i64 = parts.iter().map(|part| part["tokens"].as_i64().unwrap()).sum();
    assert_eq!(shown["tokens"], tokens);
    assert!(said(&mut client).is_empty());
}

#[test]
fn an_answer_that_breaks_off_keeps_what_had_come() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"This breaks o\"\ncut = true\n");
    let failure = client.fails("chat", "(:content \"hi\")");
    assert_eq!(failure.kind(), "unavailable");
    assert_eq!(said(&mut client), ["user: hi", "assistant: This breaks o"]);
}

#[test]
fn after_every_refusal_the_question_is_only_in_the_log_and_can_be_asked_again() {
    for kind in ["authentication", "rate-limited", "bad-request", "malformed", "unavailable"] {
        let home = Home::new();
        let answers = format!(
            "[[answer]]\nerror = \"{kind}\"\nmessage = \"no\"\n[[answer]]\ntext = \"yes\"\n"
        );
        let mut client = begin(&home, &answers);
        let failure = client.fails("chat", "(:content \"hi\")");
        assert_eq!((failure.kind(), &failure.data["question"]), (kind, &"msg-1".into()));
        assert_eq!(said(&mut client), [""; 0]);
        assert_eq!(logged(&mut client), ["user: hi"]);
        client.ok("chat", "(:content \"hi\")");
        assert_eq!(said(&mut client), ["user: hi", "assistant: yes"]);
    }
}

#[test]
fn a_question_that_got_no_answer_because_the_server_ended_is_not_sent_twice() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"yes\"\n");
    client.ok("add-message", "(:content \"hi\")");
    client.ok("chat", "(:content \"hi\")");
    assert_eq!(said(&mut client), ["user: hi", "assistant: yes"]);
    assert_eq!(logged(&mut client), ["user: hi", "user: hi", "assistant: yes"]);
}

#[test]
fn what_cannot_be_sent_is_said_before_it_is_stored() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"yes\"\n");
    client.ok("configure-session", "(:max-tokens 500)");
    let long = format!("(:content {})", quoted(&"word ".repeat(2_000)));
    let failure = client.fails("chat", &long);
    assert_eq!((failure.kind(), failure.data["question"].is_null()), ("budget-too-small", true));
    assert_eq!(client.fails("count-window", &long).kind(), "budget-too-small");
    assert_eq!(logged(&mut client), [""; 0]);
    client.ok("chat", "(:content \"hi\")");
    assert_eq!(said(&mut client), ["user: hi", "assistant: yes"]);
}

#[test]
fn a_window_that_is_too_long_is_made_smaller_once() {
    let home = Home::new();
    let answers = "[[answer]]\nerror = \"context-too-long\"\nmessage = \"too long\"\n\
                   [[answer]]\ntext = \"fits\"\n\
                   [[answer]]\nerror = \"context-too-long\"\nmessage = \"too long\"\n\
                   [[answer]]\nerror = \"context-too-long\"\nmessage = \"too long\"\n";
    let mut client = begin(&home, answers);
    for number in 0..20 {
        let content = format!("message {number} {}", "word ".repeat(40));
        client.ok("add-message", &format!("(:role :assistant :content {content:?})"));
    }
    let answer = client.ok("chat", "(:content \"hi\")");
    assert_eq!(text(&answer["content"]), "fits");
    assert!(answer["window_tokens"].as_i64().unwrap() < 600, "{answer}");
    assert_eq!(client.fails("chat", "(:content \"more\")").kind(), "context-too-long");
}

#[test]
fn a_cancelled_answer_keeps_what_had_come_and_frees_the_session() {
    let home = Home::new();
    let answers =
        "[[answer]]\ntext = \"Nothing more com\"\nhang = true\n[[answer]]\ntext = \"ok\"\n";
    let mut client = begin(&home, answers);
    let id = client.send("chat", "(:content \"hi\")");
    assert_eq!(text(&client.message()["params"]["text"]), "Nothing more com");
    let busy = client.send("chat", "(:content \"meanwhile\")");
    let (_, refused) = heard(&mut client, busy);
    assert!(refused["error"]["data"].to_string().contains("session-busy"), "{refused}");
    client.send("cancel", &format!("(:id {id})"));
    let (_, answer) = heard(&mut client, id);
    assert_eq!(answer["error"]["code"], -32800);
    // The answer comes when what had come is in the log and the session is free.
    assert_eq!(said(&mut client), ["user: hi", "assistant: Nothing more com"]);
    client.ok("chat", "(:content \"again\")");
    assert_eq!(said(&mut client).last().unwrap(), "assistant: ok");
}

#[test]
fn many_models_may_answer_one_client_at_a_time() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"beginning\"\nhang = true\n");
    let calls: Vec<i64> = (0..20)
        .map(|number| {
            client.ok("open-session", &format!("(:name \"s {number}\" :current nil)"));
            client.send("chat", &format!("(:content \"hi\" :session \"s {number}\")"))
        })
        .collect();
    let mut begun: Vec<i64> =
        (0..20).map(|_| client.notification("progress")["id"].as_i64().unwrap()).collect();
    begun.sort_unstable();
    assert_eq!(begun, calls);
    // What needs a thread of its own waits for none of them.
    let root = home.file("t");
    home.write("t/a.txt", "a line\n");
    client.ok("add-tree", &format!("(:path {} :mode :listing)", quoted(root.to_str().unwrap())));
    for id in &calls {
        client.send("cancel", &format!("(:id {id})"));
        assert_eq!(client.reply(*id).unwrap_err().code, -32800);
    }
}

#[test]
fn a_call_that_is_made_again_asks_nobody_twice() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"one\"\n[[answer]]\ntext = \"two\"\n");
    let first = client.ok("chat", "(:content \"hi\" :request-key \"k\")");
    let again = client.ok("chat", "(:content \"hi\" :request-key \"k\")");
    assert_eq!((&again["id"], &again["content"]), (&first["id"], &first["content"]));
    assert_eq!(said(&mut client), ["user: hi", "assistant: one"]);
}

#[test]
fn without_a_provider_it_says_how_to_set_one_up() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    let failure = client.fails("chat", "(:content \"hi\")");
    assert_eq!(failure.kind(), "unconfigured");
    assert!(failure.message.contains("[[providers]]"), "{}", failure.message);
    assert!(said(&mut client).is_empty());
    assert_eq!(client.ok("list-providers", "nil"), Json::Null);
}

#[test]
fn a_window_has_no_more_than_its_server_makes_room_for() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    for number in 0..20 {
        let content = format!("message {number} {}", "word ".repeat(200));
        client.ok("add-message", &format!("(:role :assistant :content {content:?})"));
    }
    client.ok("configure-provider", "(:name \"o\" :kind :ollama :model \"m\" :context 2048)");
    let shown = client.ok("chat", "(:content \"hi\" :dry-run t)");
    // Half of it is left for the answer.
    assert!(shown["tokens"].as_i64().unwrap() <= 1024, "{}", shown["tokens"]);
    client.ok("configure-session", "(:max-tokens 100000)");
    let shown = client.ok("chat", "(:content \"hi\" :dry-run t)");
    assert!(shown["tokens"].as_i64().unwrap() <= 2048, "{}", shown["tokens"]);
}

#[test]
fn a_call_that_is_made_again_after_half_an_answer_asks_for_the_whole() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = \"Half of an\"\ncut = true\n[[answer]]\necho = true\n";
    let mut client = begin(&home, answers);
    let call = "(:content \"hi\" :request-key \"k\")";
    assert_eq!(client.fails("chat", call).kind(), "unavailable");
    let answer = client.ok("chat", call);
    assert!(!text(&answer["content"]).contains("Half of an"), "the model is not shown it");
    assert_eq!(client.ok("chat", call)["content"], answer["content"]);
    let log = said(&mut client);
    assert_eq!((log.len(), &*log[1]), (3, "assistant: Half of an"), "it is still in the log");
}

#[test]
fn a_server_that_is_told_to_end_keeps_what_had_come() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        let home = Home::new();
        configure(&home, "[[answer]]\ntext = \"Nothing more com\"\nhang = true\n");
        let mut client = home.stdio(&[]);
        client.ok("open-session", "(:name \"s\")");
        client.send("chat", "(:content \"hi\")");
        assert_eq!(text(&client.message()["params"]["text"]), "Nothing more com");
        let process = client.process.as_mut().unwrap();
        process.signal(signal);
        process.child.wait().unwrap();
        let mut client = home.stdio(&[]);
        client.ok("open-session", "(:create nil :name \"s\")");
        assert_eq!(said(&mut client), ["user: hi", "assistant: Nothing more com"], "{signal:?}");
    }
}

#[test]
fn items_get_the_room_that_nothing_else_needs_and_the_rest_is_named() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\necho = true\n");
    client.ok("open-session", "(:name \"with items\" :manager \"m\")");
    client.ok("configure-session", "(:max-tokens 2000)");
    for number in 0..4 {
        client.add("m", &format!("item {number} {}", "word ".repeat(400)));
    }
    let answer = client.ok("chat", "(:content \"hi\")");
    let sent = text(&answer["content"]);
    let there = (0..4).filter(|number| sent.contains(&format!("item {number} "))).count();
    assert_eq!(there, 3, "of 2,000 tokens, seven eighths are free for items of 500");
    let left_out = answer["left_out"].as_array().unwrap();
    assert_eq!(text(&left_out[0]["id"]), "ctx-1");
    assert_ne!(text(&left_out[0]["reason"]), "");
    let explained = client.ok("session-report", "(:reports 1)")["reports"].clone();
    assert_eq!(explained[0]["items"].as_array().unwrap().len(), 4);
    // A conversation that needs the room has a half of the window.
    for _ in 0..20 {
        let content = "word ".repeat(100);
        client.ok("add-message", &format!("(:role :assistant :content {content:?})"));
    }
    let answer = client.ok("chat", "(:content \"hi\")");
    let sent = text(&answer["content"]);
    let there = (0..4).filter(|number| sent.contains(&format!("item {number} "))).count();
    assert!(there < 3, "{there}");
}

#[test]
fn a_question_must_say_something() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"x\"\n");
    for content in ["", " \\n"] {
        let params = format!("(:content \"{content}\")");
        assert_eq!(client.fails("chat", &params).param(), "content");
    }
    assert!(said(&mut client).is_empty());
}

#[test]
fn a_session_is_only_managed_by_a_template_that_can_be_used() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"x\"\n");
    let folder = home.file(".contexture/templates");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("broken.md"), "a\n{{ b\n").unwrap();
    let project = home.path("files");
    let open = format!("(:name \"p\" :project {project:?} :template \"broken\")");
    assert_eq!(client.fails("open-session", &open).kind(), "template-untrusted");
    client.ok("trust-project", &format!("(:project {project:?})"));
    assert_eq!(client.fails("open-session", &open).kind(), "template-malformed");
    let failure = client.fails("configure-session", "(:template \"nosuch\")");
    assert_eq!(failure.kind(), "no-such-template");
    assert_eq!(text(&client.ok("configure-session", "nil")["template"]), "freeform-chat");
    client.ok("configure-session", "(:template \"debug-error\" :manage t)");
    client.ok("configure-session", "(:template \"\")");
    assert_eq!(text(&client.ok("configure-session", "nil")["template"]), "freeform-chat");
}

#[test]
fn chats_that_wait_for_a_place_keep_none_from_working() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\ntext = \"Nothing more com\"\nhang = true\n");
    // 256 may wait for their models at a time, and four calls may work.
    let sessions: Vec<String> = (0..264).map(|number| format!("c-{number}")).collect();
    for name in &sessions {
        client.ok("open-session", &format!("(:name {name:?} :current nil)"));
    }
    let chat = |name| client.send("chat", &format!("(:content \"hi\" :session {name:?})"));
    let chats: Vec<i64> = sessions.iter().map(chat).collect();
    let mut begun = 0;
    while begun < 256 {
        begun += i32::from(text(&client.message()["params"]["kind"]) == "text");
    }
    client.ok("refresh-items", "nil");
    // Those that wait for a place can be given up, too.
    let waiting = *chats.last().unwrap();
    client.send("cancel", &format!("(:id {waiting})"));
    assert_eq!(client.reply(waiting).unwrap_err().code, -32800);
}

#[test]
fn an_answer_without_text_says_what_the_model_did_instead() {
    let home = Home::new();
    let call = "calls = [{ name = \"read_file\", arguments = '{\"path\": \"a\"}' }]";
    let script = format!("[[answer]]\n{call}\n[[answer]]\ntext = \"\"\n");
    let mut client = begin(&home, &script);
    let why =
        |client: &mut Client| text(&client.ok("chat", "(:content \"x\")")["ending"]).to_owned();
    assert!(why(&mut client).contains("called a tool, but may call none; turn tools on"));
    assert!(why(&mut client).contains("without any text; ask again"));
}
