//! Tools that clients bring: offered where they belong, called over the connection that brought
//! them, and answered by nobody else.

use crate::support::*;

const LOOK: &str = "(:name \"look\" :description \"Looks at a place.\" :effect :reads :schema \
    \"{\\\"type\\\":\\\"object\\\"}\" :everywhere t)";

/// A server whose model plays these answers, in TOML, a client with tools, and one that chats.
struct Stage {
    _home: Home,
    server: Listening,
    tools: Client,
    chat: Client,
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn begin(answers: &str) -> Stage {
    let home = Home::new();
    let script = home.write("answers.toml", answers);
    let config = home.path("config/contexture/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let provider = format!(
        "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-1\"\nscript = {script:?}\n"
    );
    std::fs::write(config, provider).unwrap();
    let server = home.listening(&[]);
    let (tools, mut chat) = (server.unix(Dialect::Native), server.unix(Dialect::Native));
    chat.ok("open-session", r#"(:name "s" :project "/srv/app")"#);
    Stage { _home: home, server, tools, chat }
}

/// A call of `look`, and an answer that repeats what the model was sent.
fn calling(arguments: &str) -> String {
    format!(
        "[[answer]]\ncalls = [{{ name = \"look\", arguments = '{arguments}' }}]\n\
         [[answer]]\necho = true\n"
    )
}

impl Stage {
    fn bring(&mut self, tools: &str) {
        self.tools.ok("register-tools", &format!("(:tools ({tools}))"));
    }

    /// Begins a chat, and waits until the client with the tools is called. Returns the ids of the
    /// chat and of the call.
    fn until_called(&mut self) -> (i64, Json) {
        let id = self.chat.send("chat", "(:content \"x\")");
        (id, self.tools.notification("tool-called"))
    }

    fn give(&mut self, call: &Json, more: &str) -> bool {
        let given = self.tools.ok("give-result", &format!("(:call {call} {more})"));
        given["taken"] == true
    }

    /// Returns the answer to a chat with one call: the outcome of the call, and what the model was
    /// sent then.
    fn answer(&mut self, id: i64) -> (String, String) {
        let answer = self.chat.reply(id).unwrap();
        let calls = answer["tool_calls"].as_array().unwrap();
        assert_eq!(calls.len(), 1, "{answer}");
        (text(&calls[0]["outcome"]).to_owned(), text(&answer["content"]).to_owned())
    }
}

#[test]
fn a_model_calls_a_tool_of_another_client_and_sees_its_result() {
    let mut stage = begin(&calling(r#"{"place": "a/b-c"}"#));
    stage.bring(LOOK);
    let (id, called) = stage.until_called();
    assert_eq!((text(&called["tool"]), text(&called["session"])), ("look", "s"));
    assert_eq!(text(&called["arguments"]), r#"{"place": "a/b-c"}"#);
    assert_eq!(text(&called["project"]), "/srv/app");
    assert!(stage.give(&called["call"], ":content \"a dark room\""));
    let (outcome, sent) = stage.answer(id);
    assert_eq!(outcome, "done");
    assert!(sent.contains("a dark room"), "{sent}");
    // A result is taken once.
    assert!(!stage.give(&called["call"], ":content \"again\""));
    let log = stage.chat.ok("get-messages", "nil");
    assert_eq!(text(&log[2]["content"]), "a dark room");
}

#[test]
fn tools_exist_for_the_calls_right_after_they_were_registered() {
    let mut stage = begin("[[answer]]\necho = true\n");
    let mut lines = String::new();
    for round in 0..40 {
        let tools = if round % 2 == 0 { LOOK } else { "" };
        let call = |id: i64, method: &str, params: &str| {
            request(Dialect::Native, &id.to_string(), method, params)
        };
        lines += &call(1000 + round, "register-tools", &format!("(:tools ({tools}))"));
        lines += &call(2000 + round, "list-tools", "()");
        let allowed = "(:session \"s\" :allowed-tools (\"look\"))";
        lines += &call(3000 + round, "configure-session", allowed);
    }
    stage.tools.write(lines.as_bytes());
    for round in 0..40 {
        let listed = stage.tools.reply(2000 + round).unwrap();
        assert_eq!(listed.as_array().map_or(0, Vec::len) as i64, 1 - round % 2, "{round}");
        let allowed = stage.tools.reply(3000 + round);
        assert_eq!(allowed.is_ok(), round % 2 == 0, "{round}: {allowed:?}");
    }
}

#[test]
fn what_a_tool_cannot_do_is_told_to_the_model() {
    let mut stage = begin(&calling("{}"));
    stage.bring(LOOK);
    let (id, called) = stage.until_called();
    for wrong in ["", ":content \"x\" :error \"y\""] {
        let failure =
            stage.tools.fails("give-result", &format!("(:call {} {wrong})", called["call"]));
        assert_eq!(failure.message, "content or error must be given, but not both");
    }
    assert!(stage.give(&called["call"], ":error \"there is no light\""));
    let (outcome, sent) = stage.answer(id);
    assert_eq!(outcome, "failed");
    assert!(sent.contains("there is no light"), "{sent}");
}

#[test]
fn arguments_that_are_no_object_reach_no_client() {
    for (arguments, why) in
        [("[1]", "the arguments must be a JSON object"), ("{", "did not arrive as whole JSON")]
    {
        let mut stage = begin(&calling(arguments));
        stage.bring(LOOK);
        let id = stage.chat.send("chat", "(:content \"x\")");
        let (outcome, sent) = stage.answer(id);
        assert_eq!(outcome, "failed");
        assert!(sent.contains(why), "{sent}");
    }
}

#[test]
fn a_result_of_ten_megabytes_is_cut() {
    let mut stage = begin(&calling("{}"));
    stage.bring(LOOK);
    let (id, called) = stage.until_called();
    let content = "word ".repeat(2 << 20);
    assert!(stage.give(&called["call"], &format!(":content {content:?}")));
    assert_eq!(stage.answer(id).0, "done");
    let log = stage.chat.ok("get-messages", "nil");
    let seen = text(&log[2]["content"]);
    assert!(seen.ends_with("… (65536 of 10485760 bytes)"), "{}", &seen[seen.len() - 40..]);
}

#[test]
fn only_the_connection_that_was_asked_can_answer() {
    let mut stage = begin(&calling("{}"));
    stage.bring(LOOK);
    let mut other = stage.server.unix(Dialect::Native);
    other.ok("register-tools", &format!("(:tools ({LOOK}))"));
    let (id, called) = stage.until_called();
    let forged = format!("(:call {} :content \"forged\")", called["call"]);
    assert_ne!(other.ok("give-result", &forged)["taken"], true);
    assert_ne!(stage.chat.ok("give-result", &forged)["taken"], true);
    assert!(stage.give(&called["call"], ":content \"true\""));
    assert!(!stage.answer(id).1.contains("forged"));
}

#[test]
fn of_two_tools_with_one_name_the_own_one_is_called() {
    let answers = calling("{}");
    let mut stage = begin(&(answers.clone() + &answers));
    stage.bring(LOOK);
    let mut second = stage.server.unix(Dialect::Native);
    second.ok("register-tools", &format!("(:tools ({LOOK}))"));
    let listed = stage.chat.ok("list-tools", "nil");
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let id = second.send("chat", "(:session \"s\" :content \"x\")");
    let called = second.notification("tool-called");
    second.ok("give-result", &format!("(:call {} :content \"mine\")", called["call"]));
    second.reply(id).unwrap();
    // Somebody else's turn has the one that came first.
    let (id, called) = stage.until_called();
    assert!(stage.give(&called["call"], ":content \"first\""));
    assert_eq!(stage.answer(id).0, "done");
}

#[test]
fn a_client_that_goes_away_is_told_of() {
    let mut stage = begin(&calling("{}"));
    stage.bring(LOOK);
    let (id, _) = stage.until_called();
    stage.tools.close();
    let answer = stage.chat.reply(id).unwrap();
    let sent = text(&answer["content"]);
    assert!(sent.contains("the client that brought the tool look has disconnected"), "{sent}");
    assert_eq!(stage.chat.ok("list-tools", "nil"), Json::Null);
}

#[test]
fn a_result_that_comes_too_late_is_not_taken() {
    let mut stage = begin(&calling("{}"));
    stage.bring(&LOOK.replace(":everywhere t", ":everywhere t :seconds 1"));
    let (id, called) = stage.until_called();
    let (outcome, sent) = stage.answer(id);
    assert_eq!(outcome, "failed");
    assert!(sent.contains("look gave no result within 1 second"), "{sent}");
    assert_eq!(stage.tools.notification("tool-cancelled")["call"], called["call"]);
    assert!(!stage.give(&called["call"], ":content \"late\""));
}

#[test]
fn a_cancelled_turn_cancels_the_call() {
    let mut stage = begin(&calling("{}"));
    stage.bring(LOOK);
    let (id, called) = stage.until_called();
    stage.chat.send("cancel", &format!("(:id {id})"));
    assert_eq!(stage.chat.reply(id).unwrap_err().kind(), "cancelled");
    let told = stage.tools.notification("tool-cancelled");
    assert_eq!((&told["call"], text(&told["tool"])), (&called["call"], "look"));
    assert!(!stage.give(&called["call"], ":content \"late\""));
}

#[test]
fn what_changes_something_is_asked_for() {
    let answers = calling(r#"{"place": "x"}"#);
    let mut stage = begin(&(answers.clone() + &answers + &answers));
    stage.bring(&LOOK.replace(":reads", ":changes :touches \"rooms\""));
    let id = stage.chat.send("chat", "(:content \"x\" :allow t)");
    let asked = loop {
        let told = stage.chat.notification("progress");
        if text(&told["kind"]) == "approval" {
            break told;
        }
    };
    assert_eq!(text(&asked["text"]), r#"call look (reaches rooms) with {"place": "x"}"#);
    let refuse = format!("(:approval {} :decision :refuse)", asked["approval"]);
    stage.chat.ok("approve", &refuse);
    assert_eq!(stage.answer(id).0, "refused");
    // Allowed by its name, for a turn and for the session.
    let id = stage.chat.send("chat", "(:content \"x\" :allow (look))");
    let called = stage.tools.notification("tool-called");
    assert!(stage.give(&called["call"], ":content \"y\""));
    assert_eq!(stage.answer(id).0, "done");
    stage.chat.ok("configure-session", "(:allowed-tools (:look))");
    let (id, called) = stage.until_called();
    assert!(stage.give(&called["call"], ":content \"y\""));
    assert_eq!(stage.answer(id).0, "done");
}

#[test]
fn what_was_approved_for_one_place_runs_in_no_other() {
    let mut stage = begin(&calling(r#"{"place": "x"}"#));
    let tool = LOOK.replace(":reads", ":changes :touches \"rooms\"");
    stage.bring(&tool);
    let id = stage.chat.send("chat", "(:content \"x\")");
    let asked = loop {
        let told = stage.chat.notification("progress");
        if text(&told["kind"]) == "approval" {
            break told;
        }
    };
    stage.bring(&tool.replace("rooms", "cellars"));
    stage.chat.ok("approve", &format!("(:approval {} :decision :once)", asked["approval"]));
    let (outcome, said) = stage.answer(id);
    assert_eq!(outcome, "failed");
    assert!(said.contains("another tool now"), "{said}");
}

#[test]
fn a_tool_is_offered_where_it_belongs() {
    let mut stage = begin("[[answer]]\necho = true\n");
    stage.chat.ok("open-session", "(:name \"other\" :current :false)");
    let is_offered = |stage: &mut Stage, params: &str| {
        let answer = stage.chat.ok("chat", &format!("(:content \"x\" :dry-run t {params})"));
        let parts = answer["parts"].as_array().unwrap();
        parts.iter().any(|part| text(&part["section"]) == "tool-schemas")
    };
    for (place, in_s, in_other) in [
        ("", false, false),
        (":everywhere t", true, true),
        (":sessions (\"s\" \"none\")", true, false),
        (":sessions (\"ses-1\")", true, false),
        (":projects (\"/srv/app/\")", true, false),
        (":projects (\"/srv\")", false, false),
    ] {
        stage.bring(&LOOK.replace(":everywhere t", place));
        assert_eq!(is_offered(&mut stage, ""), in_s, "{place}");
        assert_eq!(is_offered(&mut stage, ":session \"other\""), in_other, "{place}");
    }
    stage.bring(LOOK);
    assert!(!is_offered(&mut stage, ":tools nil"));
    assert!(is_offered(&mut stage, ":tools (look)"));
    // The next call replaces the tools.
    stage.bring("");
    assert!(!is_offered(&mut stage, ""));
    let failure = stage.chat.fails("chat", "(:content \"x\" :tools (look))");
    assert!(failure.message.starts_with("tools must name existing tools, got \"look\""));
}

#[test]
fn wrong_descriptions_and_strangers_bring_nothing() {
    let mut stage = begin("[[answer]]\ntext = \"x\"\n");
    for (wrong, why) in [
        ("\"look\"", "\"add_file\"", "must not be the name of one of the server's tools"),
        ("{\\\"type", "[\\\"type", "tools[0].schema must be JSON"),
        (":reads", ":eats", "effect"),
        (":everywhere t", ":seconds 0", "must be from 1 to 3600"),
        (":everywhere t", ":sometimes t", "sometimes"),
    ]
    .map(|(from, to, why)| (LOOK.replace(from, to), why))
    {
        let failure = stage.tools.fails("register-tools", &format!("(:tools ({wrong}))"));
        assert!(failure.message.contains(why), "{}", failure.message);
    }
    let mut over_tcp = stage.server.tcp(Dialect::Native);
    let failure = over_tcp.fails("register-tools", &format!("(:tools ({LOOK}))"));
    assert_eq!(failure.kind(), "not-allowed");
    assert_eq!(stage.chat.ok("list-tools", "nil"), Json::Null);
}

#[test]
fn what_is_allowed_is_the_tool_of_one_client() {
    let answers = calling("{}");
    let mut stage = begin(&answers.repeat(7));
    let changing = LOOK.replace(":reads", ":changes");
    stage.bring(&changing);
    let approval = |stage: &mut Stage| loop {
        let told = stage.chat.notification("progress");
        if text(&told["kind"]) == "approval" {
            return told["approval"].clone();
        }
    };
    let allowed =
        |stage: &mut Stage| stage.chat.ok("configure-session", "nil")["allowed_tools"].clone();
    let id = stage.chat.send("chat", "(:content \"x\")");
    let number = approval(&mut stage);
    stage.chat.ok("approve", &format!("(:approval {number} :decision :always)"));
    let called = stage.tools.notification("tool-called");
    assert!(stage.give(&called["call"], ":content \"y\""));
    assert_eq!(stage.answer(id).0, "done");
    assert_eq!(allowed(&mut stage), serde_json::json!(["look"]));
    // The same client may bring its tools again.
    stage.bring(&changing);
    let (id, called) = stage.until_called();
    assert!(stage.give(&called["call"], ":content \"y\""));
    assert_eq!(stage.answer(id).0, "done");
    // What was allowed is what was shown: the permission ends when the tool says something else.
    for changed in [
        changing.replace("Looks at", "Runs"),
        changing.replace("object\\\"", "object\\\",\\\"properties\\\":{}"),
        changing.replace(":effect", ":touches \"all files\" :effect"),
    ] {
        assert_ne!(changed, changing);
        stage.chat.ok("configure-session", "(:allowed-tools (look list_context))");
        stage.bring(&changed);
        assert_eq!(allowed(&mut stage), serde_json::json!(["list_context"]), "{changed}");
        let id = stage.chat.send("chat", "(:content \"x\")");
        let number = approval(&mut stage);
        stage.chat.ok("approve", &format!("(:approval {number} :decision :refuse)"));
        assert_eq!(stage.answer(id).0, "refused");
        stage.bring(&changing);
        assert_eq!(allowed(&mut stage), serde_json::json!(["list_context"]), "it ended");
    }
    // A tool of that name of another client is another tool, in a turn and beside the first.
    let mut second = stage.server.unix(Dialect::Native);
    second.ok("register-tools", &format!("(:tools ({changing}))"));
    stage.chat.ok("configure-session", "(:allowed-tools (look list_context))");
    stage.tools.close();
    let id = stage.chat.send("chat", "(:content \"x\")");
    let number = approval(&mut stage);
    assert_eq!(allowed(&mut stage), serde_json::json!(["list_context"]));
    stage.chat.ok("approve", &format!("(:approval {number} :decision :refuse)"));
    assert_eq!(stage.answer(id).0, "refused");
    // By its name, the tool that is here now is meant.
    stage.chat.ok("configure-session", "(:allowed-tools (look))");
    let id = stage.chat.send("chat", "(:content \"x\")");
    let called = second.notification("tool-called");
    second.ok("give-result", &format!("(:call {} :content \"z\")", called["call"]));
    assert_eq!(stage.answer(id).0, "done");
    stage.chat.ok("configure-session", "(:allowed-tools nil)");
    assert_eq!(allowed(&mut stage), Json::Null);
}

#[test]
fn other_agents_call_what_is_offered_to_them() {
    let mut stage = begin("[[answer]]\ntext = \"x\"\n");
    let mine = LOOK.replace(":everywhere t", ":agent-projects (\"/srv/app/\")");
    stage.bring(&format!("{mine} {}", LOOK.replace("\"look\"", "\"smell\"")));
    let listed = stage.chat.ok("list-tools", "(:agent-project \"/srv/app\")");
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(stage.chat.ok("list-tools", "(:agent-project \"/srv\")"), Json::Null);
    let call = |tool: &str, project: &str, more: &str| {
        format!("(:tool {tool:?} :project {project:?} :agent \"other\" {more})")
    };
    for (tool, project) in [("smell", "/srv/app"), ("look", "/srv"), ("none", "/srv/app")] {
        let failure = stage.chat.fails("call-tool", &call(tool, project, ""));
        assert!(failure.message.starts_with("tool must name one of the tools that are offered to"));
    }
    let wrong = stage.chat.ok("call-tool", &call("look", "/srv/app", ":arguments \"[]\""));
    assert_eq!(text(&wrong["content"]), "the arguments must be a JSON object");
    let id =
        stage.chat.send("call-tool", &call("look", "/srv/app", ":arguments \"{\\\"a\\\": 1}\""));
    let called = stage.tools.notification("tool-called");
    assert_eq!((text(&called["agent"]), text(&called["project"])), ("other", "/srv/app"));
    assert_eq!((&called["session"], text(&called["arguments"])), (&Json::Null, "{\"a\": 1}"));
    // Whoever called cannot answer.
    let forged = format!("(:call {} :content \"forged\")", called["call"]);
    assert_ne!(stage.chat.ok("give-result", &forged)["taken"], true);
    assert!(stage.give(&called["call"], ":error \"The user did not allow the call\""));
    let result = stage.chat.reply(id).unwrap();
    assert_eq!(
        (text(&result["content"]), &result["failed"]),
        ("The user did not allow the call", &Json::Bool(true))
    );
    // An owner that goes away.
    let id = stage.chat.send("call-tool", &call("look", "/srv/app", ""));
    stage.tools.notification("tool-called");
    stage.tools.close();
    let result = stage.chat.reply(id).unwrap();
    assert_eq!(text(&result["content"]), "the client that brought the tool look has disconnected");
    let mut over_tcp = stage.server.tcp(Dialect::Native);
    assert_eq!(over_tcp.fails("call-tool", &call("look", "/srv/app", "")).kind(), "not-allowed");
}
