//! Sessions, their messages, checkpoints and forks, as a client meets them.

use serde_json::json;

use crate::support::*;

fn say(client: &mut Client, role: &str, content: &str) -> String {
    let params = format!("(:role :{role} :content {})", quoted(content));
    client.ok("add-message", &params)["id"].as_str().unwrap().to_owned()
}

/// The contents of a session's messages in a view.
#[track_caller]
fn contents(client: &mut Client, params: &str) -> Vec<String> {
    let messages = client.ok("get-messages", params);
    let content = |message: &Json| message["content"].as_str().unwrap().to_owned();
    messages.as_array().into_iter().flatten().map(content).collect()
}

fn names(rows: &Json) -> Vec<String> {
    let name = |row: &Json| row["session"].as_str().unwrap().to_owned();
    rows.as_array().into_iter().flatten().map(name).collect()
}

#[test]
fn sessions_are_opened_listed_switched_renamed_deleted_and_restored_across_restarts() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let opened = client.ok("open-session", "(:name \"a\" :project \"/srv/a\")");
    assert_eq!((&opened["session"], &opened["id"]), (&"a".into(), &"ses-1".into()));
    assert_eq!(opened["created_now"], true);
    assert_eq!(opened["project"], "/srv/a");
    assert_eq!(client.ok("open-session", "nil")["session"], "conversation-2");
    say(&mut client, "user", "hello");
    assert!(is_nil(&client.ok("open-session", "(:name \"a\")")["created_now"]));
    assert_eq!(client.ok("open-session", "(:name \"ses-2\")")["session"], "conversation-2");
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["messages"], 1);
    client.ok("configure-session", "(:session \"ses-2\" :name \"b\")");
    assert_eq!(names(&client.ok("list-sessions", "(:project \"/srv/a\")")), ["a"]);
    client.ok("open-session", "(:create nil :name \"a\")");
    assert!(client.ok("delete-session", "(:session \"a\")")["deleted"].is_number());
    assert_eq!(names(&client.ok("list-sessions", "nil")), ["b"]);
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], "b");
    client.end();
    let mut client = home.stdio(&[]);
    assert_eq!(names(&client.ok("list-sessions", "(:deleted t)")).len(), 2);
    let gone = client.fails("get-messages", "(:session \"a\")");
    assert_eq!((gone.kind(), &gone.data["known"][0]), ("no-such-session", &"b".into()));
    client.ok("delete-session", "(:session \"a\" :deleted :false)");
    // One that is there already is as it should be.
    client.ok("delete-session", "(:session \"a\" :deleted :false)");
    assert_eq!(names(&client.ok("list-sessions", "nil")).len(), 2);
    assert_eq!(contents(&mut client, "(:session \"b\")"), ["hello"]);
    client.end();
}

#[test]
fn a_session_of_a_project_shows_its_items_unless_others_are_named() {
    let home = Home::new();
    home.write("app/.git/config", "");
    let root = home.file("app").canonicalize().unwrap();
    let project = format!("project:{}/", root.display());
    let mut client = home.ephemeral(&[]);
    client.add(&project, "of the project");
    client.add("*shared*", "of all");
    let layers = json!(["*shared*", project.as_str()]);
    let inner = root.join("src").display().to_string();
    for (number, (given, shown)) in [
        (format!(":project {:?}", root.display().to_string()), layers.clone()),
        (format!(":project {inner:?}"), layers),
        (format!(":project {inner:?} :managers []"), json!([])),
        (format!(":project {inner:?} :managers (\"m\")"), json!(["m"])),
        (format!(":project {inner:?} :manager \"m\""), json!([])),
        (":project \"a name\"".to_owned(), json!([])),
        (String::new(), json!([])),
    ]
    .into_iter()
    .enumerate()
    {
        let opened = client.ok("open-session", &format!("(:name \"s{number}\" {given})"));
        let mut managers = opened["managers"].as_array().cloned().unwrap_or_default();
        managers.retain(|name| *name != opened["manager"]);
        assert_eq!(Json::from(managers), shown, "{given}");
        let window = client.ok("build-window", &format!("(:session \"s{number}\")")).to_string();
        assert_eq!(window.contains("of the project"), shown[1] == project.as_str(), "{given}");
    }
}

#[test]
fn deleting_and_restoring_tell_what_there_is() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    assert_eq!(
        client.fails("get-messages", "nil").message,
        "no session is open; call open-session to create one"
    );
    client.ok("open-session", "(:name \"a\")");
    client.ok("delete-session", "(:session \"a\")");
    client.ok("open-session", "(:name \"a\")");
    let taken = client.fails("delete-session", "(:session \"ses-1\" :deleted :false)");
    assert_eq!((taken.kind(), &taken.data["session"]), ("session-exists", &"a".into()));
    let other = client.fails("delete-session", "(:session \"z\" :deleted :false)");
    assert_eq!(other.message, "no deleted session \"z\"; the only deleted session is \"a\"");
    assert_eq!(other.data["known"][0], "a");
    let taken = client.fails("configure-session", "(:session \"ses-2\" :name \"ses-7\")");
    assert_eq!(taken.param(), "name");
    let missing = client.fails("open-session", "(:name \"ses-9\")");
    assert_eq!(missing.kind(), "no-such-session");
    client.end();
}

#[test]
fn a_session_has_items_of_its_own() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let a = client.ok("open-session", "(:name \"a\")")["manager"].as_str().unwrap().to_owned();
    let b = client.ok("open-session", "(:name \"b\")")["manager"].as_str().unwrap().to_owned();
    assert_ne!(a, b);
    client.add(&a, "only of a");
    client.add("*shared*", "of nobody");
    say(&mut client, "user", "hello b");
    client.ok("add-message", "(:session \"a\" :content \"hello a\")");
    let text = |client: &mut Client, name: &str| {
        client.ok("build-context", &format!("(:session \"{name}\")"))["parts"].to_string()
    };
    assert!(text(&mut client, "a").contains("only of a"));
    let of_b = text(&mut client, "b");
    assert!(!of_b.contains("only of a") && !of_b.contains("of nobody"), "{of_b}");
    client.end();
}

#[test]
fn messages_keep_what_they_have_in_both_dialects() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut native = server.unix(Dialect::Native);
    native.ok("open-session", "(:name \"a\")");
    native.ok(
        "add-message",
        "(:messages ((:role :system :content \"be brief\" :pinned t) \
           (:role :user :content \"a\\nb \\\"c\\\" \u{1F600}\" :phase :testing) \
           (:role :assistant :content \"\" :tool-calls ((:id \"1\" :name \"run\" :arguments (:cmd \"ls\" :n 3)))) \
           (:role :tool :tool-call-id \"1\" :content \"ok\")))",
    );
    let expected = native.ok("get-messages", "nil");
    assert_eq!(expected[0]["pinned"], true);
    assert_eq!(expected[1]["content"], "a\nb \"c\" \u{1F600}");
    assert_eq!(expected[1]["phase"], "testing");
    assert_eq!(expected[2]["tool_calls"][0]["arguments"], "{\"cmd\":\"ls\",\"n\":3}");
    assert_eq!(expected[3]["tool_call_id"], "1");
    let mut json = server.tcp(Dialect::Json);
    let same = json.ok("get-messages", "nil");
    let content = |messages: &Json| {
        let all = messages.as_array().unwrap().iter();
        all.map(|m| (m["id"].clone(), m["content"].clone(), m["role"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(content(&same), content(&expected));
    assert_eq!(contents(&mut json, "(:roles (:user :tool))").len(), 2);
    assert_eq!(contents(&mut json, "(:from \"msg-2\" :to \"msg-3\")").len(), 2);
    assert_eq!(contents(&mut json, "(:limit 1)"), ["ok"]);
    // What one answer has of a message, another call takes.
    let text = native.ok("get-messages", "nil");
    let stats = json.ok("context-stats", "nil");
    let again = Json::Object([("messages".to_owned(), text)].into_iter().collect());
    json.write(
        format!("{{\"id\":99,\"method\":\"context_stats\",\"params\":{again}}}\n").as_bytes(),
    );
    assert_eq!(json.reply(99).unwrap()["tokens"], stats["tokens"]);
}

#[test]
fn words_are_found_in_the_names_and_messages_of_sessions() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"Parser work\")");
    say(&mut client, "user", "why does parseHttpHeader fail?");
    say(&mut client, "assistant", "It reads past the end.");
    client.ok("open-session", "(:name \"other\")");
    say(&mut client, "user", "nothing of the kind");
    let hits = client.ok("list-sessions", "(:query \"header\")");
    assert_eq!((hits.as_array().unwrap().len(), &hits[0]["session"]), (1, &"Parser work".into()));
    assert_eq!((&hits[0]["message"], &hits[0]["role"]), (&"msg-1".into(), &"user".into()));
    assert_eq!(names(&client.ok("list-sessions", "(:query \"parsers\")"))[0], "Parser work");
    client.ok("delete-session", "(:session \"Parser work\")");
    assert!(is_nil(&client.ok("list-sessions", "(:query \"header\")")));
    assert_eq!(names(&client.ok("list-sessions", "(:query \"header\" :deleted t)")).len(), 1);
    client.end();
}

#[test]
fn a_session_is_exported_as_a_transcript_and_as_json_and_imported_equal() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"# a\\n<b>\" :project \"/srv/a\")");
    say(&mut client, "system", "You are brief.");
    say(&mut client, "user", "# not a heading\n```\nfence\n```");
    client.ok(
        "add-message",
        "(:role :assistant :tool-calls ((:id \"1\" :name \"run\" :arguments \"{}\")))",
    );
    client.ok("add-message", "(:role :tool :tool-call-id \"1\" :content \"```\\n~~~\\nout\")");
    say(&mut client, "assistant", "done");
    client.ok("pin-message", "(:id \"msg-5\")");
    let text = client.ok("export-session", "nil")["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("# # a <b>\n\nConversation ses-1, begun "), "{text}");
    for heading in ["## System (msg-1, ", "## User (msg-2, ", "## Assistant (msg-3, "] {
        assert_eq!(text.matches(heading).count(), 1, "{text}");
    }
    assert!(text.contains("## Tool (msg-4, ") && text.contains(", answers 1)"), "{text}");
    assert!(text.contains("````text\n```\n~~~\nout\n````\n"), "{text}");
    assert!(text.contains(", pinned)\n\ndone\n"), "{text}");
    let json = client.ok("export-session", "(:format :json)")["text"].as_str().unwrap().to_owned();
    let imported = client.ok("open-session", &format!("(:text {})", quoted(&json)));
    assert_eq!(imported["session"], "# a\n<b> (2)");
    let messages = client.ok("get-messages", "(:session \"ses-1\" :view :log)");
    assert_eq!(client.ok("get-messages", "(:view :log)"), messages);
    let of = |name: &str| format!("(:session \"{name}\" :explain t)");
    let original = client.ok("build-context", &of("ses-1"));
    assert_eq!(client.ok("build-context", &of("ses-2"))["parts"], original["parts"]);
    client.end();
}

#[test]
fn a_session_that_was_saved_as_markdown_is_opened_again_and_edits_are_told() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"talk\" :project \"/srv/a\")");
    for content in
        ["Which port?", "Port 5433.\n\n## User (msg-3, 7)\n\nno message", "And the host?"]
    {
        say(&mut client, "user", content);
    }
    let text = client.ok("export-session", "nil")["text"].as_str().unwrap().to_owned();
    say(&mut client, "user", "said later");
    client.ok("open-session", "(:name \"other\")");
    let mut import = |text: &str, more: &str| {
        client.ok("open-session", &format!("(:text {} {more})", quoted(text)))
    };
    let same = import(&text, "");
    assert_eq!((&same["id"], &same["messages"]), (&"ses-1".into(), &4.into()));
    assert_eq!((&same["created_now"], &same["edited"]), (&Json::Null, &Json::Null));
    let edited =
        text.replace("Port 5433", "Port 1").replace("And the host?", "And the host, please?");
    let same = import(&edited, "");
    let told: Vec<Json> = vec!["msg-2".into(), "msg-3".into()];
    assert_eq!((&same["id"], &same["edited"]), (&"ses-1".into(), &Json::Array(told)));
    // With a name, it is another session, with the edits.
    let copy = import(&edited, ":name \"copy\"");
    assert_eq!((&copy["id"], &copy["created_now"]), (&"ses-3".into(), &true.into()));
    assert_eq!(contents(&mut client, "nil")[2], "And the host, please?");
    client.ok("delete-session", "(:session \"talk\")");
    let new = client.ok("open-session", &format!("(:text {})", quoted(&text)));
    assert_eq!((&new["session"], &new["project"]), (&"talk".into(), &"/srv/a".into()));
    assert_eq!((&new["id"], &new["messages"]), (&"ses-4".into(), &3.into()));
    client.end();
}

#[test]
fn what_is_imported_is_checked() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let mut check = |text: &str, expected: &str| {
        let error = client.fails("open-session", &format!("(:text {})", quoted(text)));
        assert_eq!(error.param(), "text");
        assert!(error.message.contains(expected), "{}", error.message);
    };
    check("", "must be what export-session returns");
    check("{}", "contexture-session is required");
    check("{\"contexture_session\":9,\"name\":\"a\",\"messages\":[]}", "has format 9");
    check("{\"contexture_session\":1,\"name\":\"\",\"messages\":[]}", "must not be empty");
    check(
        "{\"contexture_session\":1,\"name\":\"a\",\"messages\":[{\"role\":\"king\"}]}",
        "must be one of",
    );
    check(
        "{\"contexture_session\":1,\"name\":\"a\",\"messages\":[{\"tool_call_id\":\"c\"}]}",
        "text has an invalid message: tool",
    );
    check("{\"contexture_session\":1,\"name\":\"a\",\"messages\":[],\"state\":\"[\"}", "state");
    // A state that does not fit the messages is made to.
    let state = "{\\\"base\\\":99,\\\"active\\\":[[3,90],[0,1]],\\\"relevance\\\":1e300}";
    let messages = "[{\"content\":\"a\"},{\"content\":\"b\"},{\"content\":\"c\"}]";
    let text = format!(
        "{{\"contexture_session\":1,\"name\":\"ses-1\",\"messages\":{messages},\"state\":\"{state}\"}}"
    );
    let imported = client.ok("open-session", &format!("(:text {})", quoted(&text)));
    assert_eq!(imported["session"], "imported ses-1");
    assert_eq!(contents(&mut client, "nil"), ["a", "c"]);
    let score = client.ok("quality-score", "nil")["quality_score"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&score));
    client.end();
}

#[test]
fn checkpoints_are_gone_back_to_and_that_is_undone() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let manager =
        client.ok("open-session", "(:name \"a\")")["manager"].as_str().unwrap().to_owned();
    let none = client.fails("rollback", "nil");
    assert_eq!((none.kind(), none.data["session"].as_str()), ("no-checkpoint", Some("a")));
    client.add(&manager, "then");
    say(&mut client, "user", "one");
    say(&mut client, "assistant", "uno");
    let taken = client.ok("checkpoint", "(:message \"a start\")");
    assert_eq!((&taken["checkpoint"], &taken["turn"]), (&"chk-1".into(), &1.into()));
    client.add(&manager, "later");
    say(&mut client, "user", "two");
    say(&mut client, "user", "three");
    client.end();
    let mut client = home.stdio(&[]);
    let done = client.ok("rollback", "nil");
    assert_eq!((&done["turns_lost"], &done["messages_lost"]), (&2.into(), &2.into()));
    assert_eq!(contents(&mut client, "nil"), ["one", "uno"]);
    assert_eq!(contents(&mut client, "(:view :log)").len(), 4);
    assert_eq!(client.contents(&manager), ["then"]);
    say(&mut client, "user", "another two");
    client.end();
    let mut client = home.stdio(&[]);
    assert_eq!(client.ok("checkpoint", "nil")["turn"], 2);
    let undone = client.ok("undo", "(:session \"a\")");
    assert_eq!((&undone["turns_restored"], &undone["turns_lost"]), (&2.into(), &1.into()));
    assert_eq!(contents(&mut client, "nil"), ["one", "uno", "two", "three"]);
    assert_eq!(client.contents(&manager), ["then", "later"]);
    let rows = client.ok("list-operations", "(:session \"a\" :checkpoints t)");
    assert_eq!((&rows[1]["message"], &rows[1]["turn"]), (&"a start".into(), &1.into()));
    let unknown = client.fails("rollback", "(:checkpoint \"chk-9\")");
    assert_eq!(unknown.data["known"], Json::from(vec!["chk-1", "chk-2"]));
    client.end();
}

#[test]
fn a_session_is_forked_at_a_checkpoint_with_copies_of_its_items() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let manager =
        client.ok("open-session", "(:name \"a\")")["manager"].as_str().unwrap().to_owned();
    client.add(&manager, "item");
    say(&mut client, "user", "one");
    client.ok("checkpoint", "nil");
    say(&mut client, "user", "two");
    let fork = client.ok("open-session", "(:fork-of \"a\" :checkpoint \"chk-1\" :name \"b\")");
    assert_eq!((&fork["forked_from"], &fork["shared_messages"]), (&"ses-1".into(), &1.into()));
    say(&mut client, "user", "another");
    let its_own = fork["manager"].as_str().unwrap().to_owned();
    assert_eq!(client.contents(&its_own), ["item"]);
    client.ok("clear-context", &format!("(:manager {})", quoted(&its_own)));
    client.end();
    let mut client = home.stdio(&[]);
    assert_eq!(contents(&mut client, "(:session \"b\")"), ["one", "another"]);
    assert_eq!(contents(&mut client, "(:session \"a\")"), ["one", "two"]);
    assert_eq!(client.contents(&manager), ["item"]);
    client.ok("delete-session", "(:session \"a\")");
    assert_eq!(contents(&mut client, "(:session \"b\")"), ["one", "another"]);
    let text = client.ok("export-session", "(:session \"b\" :format :json)")["text"].clone();
    let params = format!("(:text {} :name \"c\")", quoted(text.as_str().unwrap()));
    client.ok("open-session", &params);
    assert_eq!(contents(&mut client, "nil"), ["one", "another"]);
    client.end();
}

#[test]
fn without_versions_there_are_no_checkpoints() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("configure-session", "(:versioning nil)");
    let settings = client.ok("configure-session", "nil");
    assert!(is_nil(&settings["versioning"]), "{settings}");
    assert!(is_nil(&client.ok("checkpoint", "nil")));
    let error = client.fails("rollback", "nil");
    assert_eq!((error.kind(), &error.data["session"]), ("versioning-not-enabled", &"a".into()));
    client.end();
}

#[test]
fn every_change_of_view_is_an_operation_that_can_be_restored() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    for number in 0..40 {
        say(&mut client, "user", &format!("we use port {number}"));
        say(&mut client, "assistant", &format!("fine {number} {}", "and so on ".repeat(20)));
    }
    let before = contents(&mut client, "(:view :view)");
    client.ok("prune-context", "(:max-tokens 1000)");
    let pruned = contents(&mut client, "(:view :view)");
    client.ok("summarize-context", "(:max-items 4)");
    say(&mut client, "user", "since then");
    let rows = client.ok("list-operations", "(:session \"a\")");
    let methods: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["summarize-session", "prune-session"]);
    client.ok("restore", "(:session \"a\" :operation 1)");
    let and = |mut contents: Vec<String>, last: &str| {
        contents.push(last.to_owned());
        contents
    };
    assert_eq!(contents(&mut client, "(:view :view)"), and(pruned, "since then"));
    client.ok("restore", "(:session \"a\" :operation 0)");
    assert_eq!(contents(&mut client, "(:view :view)"), and(before, "since then"));
    let error = client.fails("restore", "(:session \"a\" :operation 99)");
    assert_eq!((error.kind(), &error.data["newest"]), ("no-such-operation", &4.into()));
    client.end();
}

#[test]
fn a_session_tells_its_subscribers_what_becomes_of_it() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut listener = server.unix(Dialect::Native);
    listener.ok(
        "subscribe",
        "(:topics (:session-changed :context-pruned :context-summarized :checkpoint-created))",
    );
    let mut client = server.tcp(Dialect::Native);
    let mut changed = |client: &mut Client, method: &str, params: &str, messages: u64| {
        client.ok(method, params);
        let told = listener.notification("session-changed");
        assert_eq!((&told["session"], &told["session_id"]), (&"a".into(), &"ses-1".into()));
        assert_eq!((&told["method"], &told["messages"]), (&method.into(), &messages.into()));
    };
    changed(&mut client, "open-session", "(:name \"a\")", 0);
    let many: String = (0..20)
        .map(|n| format!("(:role :assistant :content \"well {n} {}\")", ". ".repeat(40)))
        .collect();
    changed(&mut client, "add-message", &format!("(:messages ({many} (:content \"last\")))"), 21);
    changed(&mut client, "pin-message", "(:id \"msg-7\")", 21);
    changed(&mut client, "process-turn", "(:content \"go on\")", 22);
    changed(&mut client, "configure-session", "(:grounding-memories 2)", 22);
    client.ok("checkpoint", "(:message \"now\")");
    let told = listener.notification("checkpoint-created");
    assert_eq!((&told["checkpoint"], &told["message"]), (&"chk-1".into(), &"now".into()));
    assert!(is_nil(&told["automatic"]) && told["turn"] == 2, "{told}");
    let pruned = client.ok("prune-context", "(:max-tokens 300)");
    let told = listener.notification("context-pruned");
    assert_eq!(told["removed"], pruned["removed"], "the messages themselves");
    assert!(told["removed"][0]["content"].as_str().unwrap().starts_with("well 0"));
    assert_eq!(told["token_reduction"], pruned["stats"]["token_reduction"]);
    let summarized = client.ok("summarize-context", "(:max-items 1)");
    let told = listener.notification("context-summarized");
    assert_eq!(told["summary"], summarized["summary"]);
    assert_eq!(told["summarized"], summarized["stats"]["summarized_items"]);
    client.ok("rollback", "nil");
    client.ok("open-session", "(:name \"b\")");
    client.ok("open-session", "(:create nil :name \"a\")");
    let is_open = |told: Json| told["method"] == "open-session" && told["session"] == "a";
    while !is_open(listener.notification("session-changed")) {}
    client.ok("open-session", "(:name \"b\")");
    let told = listener.notification("session-changed");
    assert_eq!((&told["session"], &told["method"]), (&"b".into(), &"open-session".into()));
    client.ok("open-session", "(:name \"b\")");
    client.ok("delete-session", "(:session \"a\")");
    let told = listener.notification("session-changed");
    assert_eq!(told["method"], "delete-session", "nothing is told of what is current already");
}

#[test]
fn a_result_that_names_no_call_is_flagged_as_one_whose_call_is_lost() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "nil");
    let said =
        client.ok("add-message", "(:messages ((:content \"u\") (:role :tool :content \"r\")))");
    assert_eq!(said["without_call"].to_string(), "[\"msg-2\"]");
    client.end();
}
