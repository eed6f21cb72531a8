//! Tools by which a model looks at its context and changes it: allowed, carried out, seen in the
//! same turn, and logged as units.

use crate::support::*;

/// A server whose model plays these answers, in TOML, and an open session of a project.
fn begin(home: &Home, answers: &str) -> Client {
    let script = home.write("answers.toml", answers);
    let config = home.path("config/contexture/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let provider = format!(
        "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-1\"\nscript = {script:?}\n"
    );
    std::fs::write(config, provider).unwrap();
    let mut client = home.ephemeral(&[]);
    let project = home.path("files");
    client.ok("open-session", &format!("(:name \"s\" :manager \"m\" :project {project:?})"));
    client
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// Sends a chat and answers every question whether a tool may be used; what was asked, each in its
/// line, and the answer.
fn decide(client: &mut Client, params: &str, decision: &str) -> (Vec<String>, Json) {
    let id = client.send("chat", params);
    let mut asked = Vec::new();
    loop {
        let message = client.message();
        if message["id"] == id {
            assert_eq!(message["error"], Json::Null, "{message}");
            return (asked, message["result"].clone());
        }
        let told = &message["params"];
        if text(&told["kind"]) == "approval" {
            asked.push(text(&told["text"]).to_owned());
            client
                .send("approve", &format!("(:approval {} :decision {decision})", told["approval"]));
        }
    }
}

fn outcomes(answer: &Json) -> Vec<(&str, &str)> {
    let calls = answer["tool_calls"].as_array().into_iter().flatten();
    calls.map(|call| (text(&call["tool"]), text(&call["outcome"]))).collect()
}

fn calling(name: &str, arguments: &str) -> String {
    format!("[[answer]]\ncalls = [{{ name = \"{name}\", arguments = '{arguments}' }}]\n")
}

#[test]
fn tools_reach_what_the_turn_shows_and_what_they_added() {
    let home = Home::new();
    let answers = [
        calling("list_context", "{}"),
        calling("read", r#"{"id":"ctx-2"}"#),
        calling("drop_context", r#"{"ids":["ctx-2"]}"#),
        calling("add_text", r#"{"content":"noted"}"#),
        calling("list_context", "{}"),
        "[[answer]]\ntext = [\"done\"]\n".to_owned(),
    ];
    let mut client = begin(&home, &answers.concat());
    client.ok("add-item", "(:manager \"m\" :content \"of the session\")");
    client.ok("add-item", "(:manager \"other\" :content \"of the turn\")");
    let turn = "(:content \"x\" :tools t :managers (\"other\"))";
    let (_, answer) = decide(&mut client, turn, ":once");
    let said = |call: usize| text(&answer["tool_calls"][call]["text"]).to_owned();
    assert!(said(0).contains("ctx-2"), "{answer}");
    assert!(said(1).contains("of the turn"), "{answer}");
    assert_eq!(said(2), r#"{"removed":1}"#);
    assert!(said(4).contains("ctx-3") && !said(4).contains("ctx-2"), "{answer}");
}

#[test]
fn a_model_has_no_tools_unless_it_is_given_some() {
    let home = Home::new();
    let mut client = begin(&home, "[[answer]]\necho = true\n");
    let payload = |answer: &Json| text(&answer["content"]).to_owned();
    assert!(!payload(&client.ok("chat", "(:content \"x\")")).contains("\"tools\""));
    let two = client.ok("chat", "(:content \"x\" :tools (list_context :read))");
    assert!(payload(&two).contains(r#""tools":["list_context","read"]"#), "{two}");
    let set = client.ok("configure-session", "(:tools t :allowed-tools (:list-context))");
    assert_eq!(set["tools"].as_array().unwrap().len(), 8);
    assert_eq!(set["allowed_tools"].to_string(), r#"["list_context"]"#);
    let all = client.ok("chat", "(:content \"x\")");
    assert!(payload(&all).contains("search_session"));
    let dry = client.ok("chat", "(:content \"x\" :dry-run t)");
    let parts = dry["parts"].as_array().unwrap();
    assert!(parts.iter().any(|part| text(&part["section"]) == "tool-schemas"), "{dry}");
    let without = client.ok("chat", "(:content \"x\" :tools nil)");
    assert!(!payload(&without).contains("\"tools\""));
    let set = client.ok("configure-session", "(:tools nil :allowed-tools nil)");
    assert_eq!((&set["tools"], &set["allowed_tools"]), (&Json::Null, &Json::Null));
    let failure = client.fails("chat", "(:content \"x\" :tools (:dance))");
    assert!(
        failure.message.starts_with(
            "tools must name existing tools, got \"dance\"; the tools are list_context"
        )
    );
    let failure = client.fails("chat", "(:content \"x\" :tools \"all\")");
    assert_eq!(failure.message, "tools must be t or nil, or a list of tool names, got \"all\"");
}

#[test]
fn what_a_model_adds_it_sees_in_the_same_turn() {
    let home = Home::new();
    home.write("a.rs", "fn found_in_a() {}\n");
    let answers = calling("add_file", r#"{"path": "a.rs"}"#) + "[[answer]]\necho = true\n";
    let mut client = begin(&home, &answers);
    let (asked, answer) = decide(&mut client, "(:content \"look\" :tools t)", ":once");
    assert_eq!(asked, ["add the file a.rs"]);
    assert!(text(&answer["content"]).contains("fn found_in_a()"), "{answer}");
    assert_eq!(outcomes(&answer), [("add_file", "done")]);
    assert_eq!(answer["rounds"], 2);
    let log = client.ok("get-messages", "nil");
    let roles: Vec<&str> = log.as_array().unwrap().iter().map(|said| text(&said["role"])).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(log[1]["tool_calls"][0]["id"], log[2]["tool_call_id"]);
    assert_eq!(client.contents("m"), ["fn found_in_a() {}\n"]);
}

#[test]
fn a_model_adds_only_the_lines_that_it_names() {
    let home = Home::new();
    home.write("a.rs", "one\ntwo\nthree\nfour\n");
    let named = r#"{"path": "a.rs", "start_line": 2, "end_line": 3}"#;
    let answers = calling("add_file", named) + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &answers);
    let (asked, answer) = decide(&mut client, "(:content \"look\" :tools t)", ":once");
    assert_eq!(asked, ["add the file a.rs, lines 2 to 3"]);
    assert_eq!(outcomes(&answer), [("add_file", "done")]);
    assert_eq!(client.contents("m"), ["two\nthree\n"]);
}

#[test]
fn what_is_refused_is_not_done_and_the_model_is_told() {
    let home = Home::new();
    let answers = calling("add_text", r#"{"content": "x"}"#) + "[[answer]]\necho = true\n";
    let mut client = begin(&home, &answers);
    let (_, answer) = decide(&mut client, "(:content \"look\" :tools t)", ":refuse");
    assert_eq!(outcomes(&answer), [("add_text", "refused")]);
    assert!(text(&answer["content"]).contains("the user did not allow the call"), "{answer}");
    assert!(client.contents("m").is_empty());
}

#[test]
fn what_is_always_allowed_is_not_asked_again() {
    let home = Home::new();
    let answers = calling("list_context", "")
        + "[[answer]]\ntext = \"one\"\n"
        + &calling("list_context", "{}")
        + "[[answer]]\ntext = \"two\"\n";
    let mut client = begin(&home, &answers);
    let (asked, _) = decide(&mut client, "(:content \"look\" :tools t)", ":always");
    assert_eq!(asked, ["list the context"]);
    let (asked, answer) = decide(&mut client, "(:content \"again\" :tools t)", ":refuse");
    assert!(asked.is_empty());
    assert_eq!(outcomes(&answer), [("list_context", "done")]);
    let set = client.ok("configure-session", "nil");
    assert_eq!(set["allowed_tools"].to_string(), r#"["list_context"]"#);
}

#[test]
fn a_file_outside_the_project_is_asked_for_each_time() {
    let home = Home::new();
    std::fs::write(home.path("home/secret"), "the secret\n").unwrap();
    std::os::unix::fs::symlink(home.path("home/secret"), home.file("link")).unwrap();
    let answers = calling("add_file", r#"{"path": "link"}"#) + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &answers);
    let (asked, answer) =
        decide(&mut client, "(:content \"look\" :tools t :allow (add_file))", ":refuse");
    assert_eq!(asked, ["add the file link"]);
    assert_eq!(outcomes(&answer), [("add_file", "refused")]);
    assert!(client.contents("m").is_empty());
}

#[test]
fn a_file_that_may_hold_secrets_is_asked_for_each_time() {
    for (name, link) in [(".env", None), ("deploy.pem", None), (".env", Some("notes.txt"))] {
        let home = Home::new();
        home.write(name, "the secret\n");
        if let Some(link) = link {
            std::os::unix::fs::symlink(name, home.file(link)).unwrap();
        }
        let named = link.unwrap_or(name);
        let call = format!(r#"{{"path": "{named}"}}"#);
        let answers = calling("add_file", &call) + "[[answer]]\ntext = \"x\"\n";
        let mut client = begin(&home, &answers);
        let (asked, answer) =
            decide(&mut client, "(:content \"look\" :tools t :allow (add_file))", ":refuse");
        assert_eq!(asked, [format!("add the file {named} (may hold secrets)")]);
        assert_eq!(outcomes(&answer), [("add_file", "refused")]);
        assert!(client.contents("m").is_empty());
    }
}

#[test]
fn no_name_leads_out_of_the_project_unasked() {
    let home = Home::new();
    home.write("in.txt", "inside\n");
    std::fs::write(home.path("home/secret.txt"), "the secret\n").unwrap();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, home.file(name)).unwrap();
    };
    link("in.txt", "link-in");
    link("../home/secret.txt", "link-out");
    link("link-out", "link-to-link");
    link("../home", "folder-out");
    let secret = home.path("home/secret.txt").to_str().unwrap().to_owned();
    let names = [
        "missing/../../home/secret.txt",
        "in.txt/../../home/secret.txt",
        "../home/secret.txt/",
        &format!("/:/:{secret}"),
        &format!("/:{secret}"),
        &secret,
        "~/secret.txt",
        "link-out",
        "link-to-link",
        "folder-out/secret.txt",
        "./folder-out/../home/secret.txt",
        &format!("file://{secret}"),
        "../files/../home/secret.txt",
    ];
    let calls: Vec<String> = names
        .iter()
        .chain(&["link-in", "../files/in.txt"])
        .map(|name| format!("{{ name = \"add_file\", arguments = '{{\"path\": \"{name}\"}}' }}"))
        .collect();
    let answers = format!("[[answer]]\ncalls = [{}]\n[[answer]]\ntext = \"x\"\n", calls.join(", "));
    let mut client = begin(&home, &answers);
    let (asked, answer) =
        decide(&mut client, "(:content \"look\" :tools t :allow (add_file))", ":refuse");
    let outcomes: Vec<&str> = outcomes(&answer).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes.len(), names.len() + 2);
    assert_eq!(outcomes[names.len()..], ["done", "done"], "{answer}");
    for (name, outcome) in names.iter().zip(&outcomes) {
        assert!(["refused", "failed"].contains(outcome), "{name}: {outcome}");
    }
    assert!(asked.len() >= 9, "{asked:?}");
    // Both names are of one file, which is one item.
    assert_eq!(client.contents("m"), ["inside\n"]);
}

#[test]
fn a_name_that_cannot_be_resolved_fails_for_its_own_reason() {
    let home = Home::new();
    let names = ["~you/x", "/ssh:host:/x"];
    let calls = names
        .map(|name| format!("{{ name = \"add_file\", arguments = '{{\"path\": \"{name}\"}}' }}"));
    let once = format!("[[answer]]\ncalls = [{}]\n[[answer]]\ntext = \"x\"\n", calls.join(", "));
    let relative = calling("add_file", r#"{"path": "x"}"#) + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &(once + &relative));
    client.ok("open-session", "(:name \"nowhere\" :current nil)");
    let mut results = |session: &str| {
        let call = format!("(:session {session:?} :content \"look\" :tools t)");
        let answer = client.ok("chat", &call);
        let calls = answer["tool_calls"].as_array().unwrap();
        calls.iter().map(|call| text(&call["text"]).to_owned()).collect::<Vec<_>>()
    };
    let found = results("s");
    assert!(found[0].contains("must begin with / or ~/"), "{found:?}");
    assert!(found[1].contains("is on another machine"), "{found:?}");
    let found = results("nowhere");
    assert!(found[0].contains("the session has no project folder"), "{found:?}");
}

#[test]
fn what_is_allowed_is_what_is_read() {
    let home = Home::new();
    std::fs::write(home.path("home/harmless"), "harmless\n").unwrap();
    std::fs::write(home.path("home/secret"), "the secret\n").unwrap();
    std::os::unix::fs::symlink(home.path("home/harmless"), home.file("link")).unwrap();
    let answers = calling("add_file", r#"{"path": "link"}"#) + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &answers);
    let id = client.send("chat", "(:content \"look\" :tools t :allow (add_file))");
    let told = loop {
        let message = client.message();
        if text(&message["params"]["kind"]) == "approval" {
            break message["params"].clone();
        }
    };
    let place = home.path("home/harmless").canonicalize().unwrap();
    assert_eq!(text(&told["outside"]), place.to_str().unwrap());
    std::fs::remove_file(home.file("link")).unwrap();
    std::os::unix::fs::symlink(home.path("home/secret"), home.file("link")).unwrap();
    client.send("approve", &format!("(:approval {} :decision :once)", told["approval"]));
    client.reply(id).unwrap();
    assert_eq!(client.contents("m"), ["harmless\n"]);
}

#[test]
fn every_tool_does_what_it_says() {
    let home = Home::new();
    let call =
        |name: &str, arguments: &str| format!("{{ name = \"{name}\", arguments = '{arguments}' }}");
    let calls = [
        call("add_text", r#"{"content": "a note of the model"}"#),
        call("read", r#"{"id": "ctx-1"}"#),
        call("functions.list_context", "{}"),
        call(" search_memory", r#"{"query": "parser"}"#),
        call("search_session", r#"{"query": "lighthouse"}"#),
        call("drop_context", r#"{"ids": ["ctx-1"]}"#),
        call("read", r#"{"id": "ctx-1"}"#),
        call("add_file", r#"{"path": "nowhere.rs"}"#),
        call("add_text", r#"{"text": "x"}"#),
        call("dance", "{}"),
    ];
    let answers = format!("[[answer]]\ncalls = [{}]\n[[answer]]\ntext = \"x\"\n", calls.join(", "));
    let mut client = begin(&home, &answers);
    client.ok("add-context", "(:manager \"m\" :content \"what the user marked\")");
    client.ok("remember", "(:session \"s\" :content \"the parser is recursive\")");
    client.ok("add-message", "(:role :user :content \"the lighthouse is white\")");
    let answer = client.ok("chat", "(:content \"go\" :tools t :allow t :session \"s\")");
    let texts: Vec<(&str, &str)> = answer["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| (text(&call["outcome"]), text(&call["text"])))
        .collect();
    let expected = [
        ("done", "ctx-2"),
        ("done", "what the user marked"),
        ("done", "ctx-2"),
        ("done", "the parser is recursive"),
        ("done", "lighthouse"),
        ("done", "removed"),
        ("failed", "no item \"ctx-1\""),
        ("failed", "nowhere.rs"),
        ("failed", "missing properties 'content'"),
        ("failed", "there is no tool dance"),
    ];
    assert_eq!(texts.len(), expected.len());
    for ((outcome, text), (wanted, part)) in texts.iter().zip(expected) {
        assert_eq!(*outcome, wanted, "{text}");
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(client.contents("m"), ["a note of the model"]);
    client.ok("undo", "(:manager \"m\")");
    assert_eq!(client.contents("m").len(), 2);
}

#[test]
fn a_model_that_only_calls_is_stopped() {
    let home = Home::new();
    let mut client = begin(&home, &format!("{}text = \"So far\"\n", calling("list_context", "{}")));
    let answer = client.ok("chat", "(:content \"go\" :tools t :allow t)");
    assert_eq!(answer["rounds"], 9, "eight with tools, and one for the answer");
    assert_eq!(text(&answer["content"]), "So far");
    assert_eq!((outcomes(&answer).len(), outcomes(&answer).last().unwrap().1), (8, "refused"));
    assert_eq!(text(&answer["id"]), "msg-18", "the answer without calls");
    // Every call has its result, so the next request is sound.
    let log = client.ok("get-messages", "nil");
    let of_role = |role: &str| {
        log.as_array().unwrap().iter().filter(|said| text(&said["role"]) == role).count()
    };
    assert_eq!((of_role("assistant"), of_role("tool")), (9, 8));
    // Who has nothing to say then has said nothing: the last answer with a call is named.
    let home = Home::new();
    let mut client = begin(&home, &calling("list_context", "{}"));
    let answer = client.ok("chat", "(:content \"go\" :tools t :allow t)");
    assert_eq!((text(&answer["content"]), text(&answer["id"])), ("", "msg-16"));
}

#[test]
fn a_turn_that_waits_for_leave_can_be_cancelled() {
    let home = Home::new();
    let answers = calling("list_context", "{}") + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &answers);
    let id = client.send("chat", "(:content \"go\" :tools t)");
    let number = loop {
        let message = client.message();
        if text(&message["params"]["kind"]) == "approval" {
            break message["params"]["approval"].clone();
        }
    };
    client.send("cancel", &format!("(:id {id})"));
    assert_eq!(client.reply(id).unwrap_err().code, -32800);
    until("the unit to be whole", || {
        client.ok("get-messages", "nil").as_array().unwrap().len() == 3
    });
    let late = format!("(:approval {number} :decision :once)");
    assert_eq!(client.fails("approve", &late).kind(), "no-such-approval");
    until("the session to be free", || client.call("chat", "(:content \"y\")").is_ok());
}

#[test]
fn what_a_provider_wants_back_is_sent_with_the_results_and_never_stored() {
    let home = Home::new();
    let answers = "[[answer]]\ncalls = [{ name = \"list_context\", arguments = \"{}\" }]\n\
                   opaque = { signature = \"5ign3d\" }\n[[answer]]\necho = true\n";
    let mut client = begin(&home, answers);
    let answer = client.ok("chat", "(:content \"go\" :tools t :allow t)");
    assert!(text(&answer["content"]).contains("5ign3d"), "{answer}");
    let log = client.ok("get-messages", "nil");
    assert!(!log[1].to_string().contains("5ign3d") && !log[2].to_string().contains("5ign3d"));
}

#[test]
fn an_answer_that_calls_too_much_is_carried_out_in_part_or_not_at_all() {
    let home = Home::new();
    let call = "{ name = \"list_context\", arguments = \"{}\" }, ";
    let answers = format!(
        "[[answer]]\ncalls = [{}]\n[[answer]]\ntext = \"x\"\n[[answer]]\ncalls = [{}]\n",
        call.repeat(18),
        call.repeat(129)
    );
    let mut client = begin(&home, &answers);
    let answer = client.ok("chat", "(:content \"go\" :tools t :allow t)");
    let outcomes = outcomes(&answer);
    assert_eq!(outcomes.len(), 18);
    assert!(outcomes[..16].iter().all(|(_, outcome)| *outcome == "done"));
    assert!(outcomes[16..].iter().all(|(_, outcome)| *outcome == "refused"));
    let failure = client.fails("chat", "(:content \"go\" :tools t :allow t)");
    assert_eq!(failure.kind(), "malformed");
    assert!(failure.message.contains("more than 128 tool calls"), "{}", failure.message);
}

#[test]
fn a_model_reads_what_its_window_left_out() {
    let home = Home::new();
    let call = |arguments: &str| format!("{{ name = \"read\", arguments = '{arguments}' }}");
    let calls = [
        call(r#"{"id": "msg-2"}"#),
        call(r#"{"id": "msg-2", "start_line": 2, "end_line": 2}"#),
        call(r#"{"id": "msg-2", "start_line": 9}"#),
        call(r#"{"id": "msg-99"}"#),
        call(r#"{"id": "mem-1"}"#),
        call(r#"{"id": "msg-2", "end_line": 2}"#),
    ];
    let answers = format!("[[answer]]\ncalls = [{}]\n[[answer]]\ntext = \"x\"\n", calls.join(", "));
    let mut client = begin(&home, &answers);
    client.ok("add-message", "(:role :user :content \"look\")");
    let calls = r#":tool-calls ((:id "1" :name "run" :arguments "{}"))"#;
    client.ok("add-message", &format!("(:role :assistant :content \"one\\ntwo\" {calls})"));
    client.ok("add-message", "(:role :tool :tool-call-id \"1\" :content \"done\")");
    let answer = client.ok("chat", "(:content \"go\" :tools t :allow t)");
    let texts = answer["tool_calls"].as_array().unwrap().iter().map(|call| text(&call["text"]));
    let expected = [
        "\"one\\ntwo\\nrun {}\\n\"",
        "\"two\\n\"",
        "ask for lines from 1 to 3",
        "there is no message msg-99",
        "such as ctx-7 or msg-12",
        "end_line requires start_line",
    ];
    for (found, expected) in texts.zip(expected) {
        assert!(found.contains(expected), "{found} lacks {expected}");
    }
}

#[test]
fn a_long_result_is_cut_and_says_so() {
    let home = Home::new();
    let answers = calling("read", r#"{"id": "ctx-1"}"#) + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &answers);
    client.add("m", &"λ".repeat(50_000));
    let answer = client.ok("chat", "(:content \"go\" :tools t :allow t)");
    let result = text(&answer["tool_calls"][0]["text"]);
    assert!(result.len() < (64 << 10) + 100, "{}", result.len());
    assert!(result.ends_with("bytes)"), "{}", &result[result.len() - 40..]);
}

#[test]
fn a_managed_turn_can_use_tools_and_is_managed_once() {
    let home = Home::new();
    let notes = "[[answer]]\nwhen = \"Write the notes anew\"\ntext = \"noted\"\n\
                 usage = { input = 7, output = 1 }\n";
    let answers = format!("{notes}{}[[answer]]\necho = true\n", calling("list_context", "{}"));
    let mut client = begin(&home, &answers);
    client.ok("open-session", "(:name \"s\" :template \"freeform-chat\")");
    client.ok("configure-session", "(:token-threshold 0 :tools t :allowed-tools t)");
    for turn in ["first", "second"] {
        client.ok("add-message", &format!("(:role :user :content \"{turn} question\")"));
        client.ok("add-message", &format!("(:role :assistant :content \"{turn} answer\")"));
    }
    let answer = client.ok("chat", "(:content \"third question\")");
    let sent = text(&answer["content"]);
    assert!(sent.contains("noted") && sent.contains("second answer"), "{sent}");
    assert!(!sent.contains("first answer"), "{sent}");
    assert_eq!(sent.matches("\"role\":\"tool\"").count(), 1, "{sent}");
    assert_eq!(answer["rounds"], 2);
    assert_eq!(answer["usage"]["input"], 7, "what the notes took is counted");
    assert_eq!(client.ok("list-notes", "nil").as_array().unwrap().len(), 1);
}

#[test]
fn a_relative_name_needs_a_project_and_nobody_is_asked() {
    let home = Home::new();
    let answers = calling("add_file", r#"{"path": "notes.txt"}"#) + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &answers);
    client.ok("open-session", "(:name \"homeless\")");
    let (asked, answer) = decide(&mut client, "(:content \"look\" :tools t)", ":once");
    assert!(asked.is_empty());
    let result = text(&answer["tool_calls"][0]["text"]);
    assert!(result.starts_with("\"notes.txt\" is not an absolute file name"), "{result}");
}

/// The call of the log's last unit, with its result.
fn last_result(client: &mut Client) -> String {
    let log = client.ok("get-messages", "nil");
    let results = log.as_array().into_iter().flatten().filter(|said| text(&said["role"]) == "tool");
    results.map(|said| text(&said["content"]).to_owned()).next_back().unwrap_or_default()
}

#[test]
fn who_cannot_be_asked_is_not_waited_for() {
    let answers = calling("add_text", r#"{"content": "x"}"#) + "[[answer]]\ntext = \"well\"\n";
    let home = Home::new();
    // A call without an id has no progress.
    let mut client = begin(&home, &answers);
    client.write(b"(:method chat :params (:content \"look\" :tools t))\n");
    until("the tool to be refused", || last_result(&mut client).contains("nobody could be asked"));
    // Nor has any of EPC.
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Epc);
    client.ok("open-session", "(:name \"s\" :manager \"m\")");
    let answer = client.ok("chat", "(:content \"look\" :tools t)");
    assert_eq!(text(&answer["content"]), "well", "{answer}");
    assert!(last_result(&mut client).contains("nobody could be asked"));
    assert!(client.contents("m").is_empty());
    // What is allowed needs no leave.
    client.ok("chat", "(:content \"look\" :tools t :allow (add_text))");
    assert_eq!(client.contents("m"), ["x"]);
}

/// A file, a recording or another machine may name any folder as the project of a session. That is
/// shown, and sessions are listed by it, but a model reaches nothing there until a client names it.
#[test]
fn a_project_that_is_only_told_is_shown_and_opens_nothing() {
    let home = Home::new();
    home.write(".git/HEAD", "");
    let inside = home.write("in.txt", "inside\n");
    std::fs::write(home.path("home/in.txt"), "inside\n").unwrap();
    let call = |path: &str| calling("add_file", &format!(r#"{{"path": "{path}"}}"#));
    let round = call(&inside) + &call("in.txt") + "[[answer]]\ntext = \"x\"\n";
    let mut client = begin(&home, &round.repeat(12));
    let places = [home.path("files"), home.path("home"), "/".into()];
    for place in places.map(|place| place.to_str().unwrap().to_owned()) {
        client.ok("remember", &format!("(:content \"the port is 5433\" :project {place:?})"));
        let own = format!("(:name \"own\" :project {place:?})");
        client.ok("open-session", &own);
        client.ok("add-message", "(:role :user :content \"which port?\")");
        let mut exported = |format: &str| {
            let text = client.ok("export-session", &format!("(:format {format})"));
            text["text"].as_str().unwrap().replace("Conversation ses-", "Conversation ses-9")
        };
        let texts = [exported(":json"), exported(":markdown")];
        client.ok("delete-session", "(:session \"own\")");
        let mut told: Vec<Json> = Vec::new();
        for text in texts {
            assert!(text.contains(&place), "{text}");
            told.push(client.ok("open-session", &format!("(:text {})", quoted(&text))));
        }
        let recording = crate::imports::FIRST.replace("/srv/db", &place).replace("s-1", &place);
        let file = home.write("a.jsonl", recording);
        let done = client.ok("import-sessions", &format!("(:paths ({file:?}))"));
        let id = text(&done["files"][0]["id"]).to_owned();
        let listed = client.ok("list-sessions", &format!("(:project {place:?})"));
        let found = listed.as_array().unwrap().iter().find(|it| it["id"] == id.as_str());
        told.push(found.unwrap_or_else(|| panic!("{place}: {listed}")).clone());
        std::fs::remove_file(home.file("a.jsonl")).unwrap();
        for session in told {
            let id = text(&session["id"]);
            assert_eq!((&session["told"], text(&session["project"])), (&true.into(), &*place));
            let ask = format!("(:session {id:?} :content \"look\" :tools t :allow (add_file))");
            let (asked, answer) = decide(&mut client, &ask, ":refuse");
            assert_eq!(asked, [format!("add the file {inside}")], "{place}, {session}");
            assert_eq!(outcomes(&answer), [("add_file", "refused"), ("add_file", "failed")]);
            let query = format!("(:session {id:?} :query \"port\")");
            let grounded = client.ok("ground-query", &query).to_string();
            assert!(!grounded.contains("5433"), "{grounded}");
            // A client names the project, and it is the session's.
            let set = format!("(:session {id:?} :project {place:?})");
            client.ok("configure-session", &set);
            assert!(client.ok("ground-query", &query).to_string().contains("5433"));
            let listed = client.ok("list-sessions", &format!("(:project {place:?})"));
            let found = listed.as_array().unwrap().iter().find(|it| it["id"] == id).unwrap();
            assert!(is_nil(&found["told"]), "{found}");
            client.ok("delete-session", &format!("(:session {id:?})"));
        }
    }
}
