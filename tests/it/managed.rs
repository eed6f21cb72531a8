//! Managed views: what a template and a model make of a long conversation, and what becomes of a
//! turn when any step of that fails.

use crate::support::*;

/// A template that says where each part of the conversation goes, and manages every turn.
const TEMPLATE: &str = "---\ntoken-threshold: 0\nrecent-runs: 2\npassthrough-runs: 1\n---\n\
                        NOTES so far [{{ prior_summary }}] said [{{ recent_conversation }}] now \
                        [{{ latest_input }}]\n";
/// Notes for whoever manages, and for everybody else what was sent.
const ANSWERS: &str = "[[answer]]\nwhen = \"NOTES\"\ntext = \"noted once\"\n\
                       usage = { input = 30, output = 3 }\n\
                       [[answer]]\nwhen = \"NOTES\"\ntext = \"noted twice\"\n\
                       [[answer]]\necho = true\n";

/// A home with a provider that plays these answers and the user's template `mine`.
fn configured(answers: &str, template: &str) -> Home {
    let home = Home::new();
    let script = home.write("answers.toml", answers);
    let templates = home.path("config/contexture/templates");
    std::fs::create_dir_all(&templates).unwrap();
    std::fs::write(templates.join("mine.md"), template).unwrap();
    let provider = format!(
        "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-1\"\nscript = {script:?}\n"
    );
    std::fs::write(home.path("config/contexture/config.toml"), provider).unwrap();
    home
}

/// A server with a managed session that has two turns behind it, and is told of what fails.
fn begin(home: &Home) -> Client {
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"s\" :template \"mine\")");
    for turn in ["first", "second"] {
        client.ok("add-message", &format!("(:role :user :content \"{turn} question\")"));
        client.ok("add-message", &format!("(:role :assistant :content \"{turn} answer\")"));
    }
    client.ok("subscribe", "(:topics (:management-failed :stats))");
    client
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// What the answer of an echo says was sent: roles and contents.
fn sent(answer: &Json) -> Vec<(String, String)> {
    let payload: Json = serde_json::from_str(text(&answer["content"])).unwrap();
    let messages = payload["messages"].as_array().unwrap();
    let said = |said: &Json| (text(&said["role"]).to_owned(), text(&said["content"]).to_owned());
    messages.iter().map(said).collect()
}

fn contents(answer: &Json) -> Vec<String> {
    sent(answer).into_iter().map(|(_, content)| content).collect()
}

fn views(client: &mut Client) -> Vec<Json> {
    client.ok("list-notes", "(:session \"s\")").as_array().cloned().unwrap_or_default()
}

#[test]
fn the_notes_and_the_last_runs_take_the_historys_place() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    let answer = client.ok("chat", "(:content \"third question\")");
    let expected = [
        ("system", "Context summary (managed):\nnoted once"),
        ("user", "second question"),
        ("assistant", "second answer"),
        ("user", "third question"),
    ];
    assert_eq!(sent(&answer), expected.map(|(role, said)| (role.to_owned(), said.to_owned())));
    let management = &answer["management"];
    assert_eq!(text(&management["status"]), "managed", "{management}");
    assert_eq!(text(&management["template"]), "mine");
    assert_eq!(text(&management["source"]), "user");
    assert_eq!(text(&management["model"]), "m-1");
    assert_eq!(management["cached"], Json::Null);

    let row = &views(&mut client)[0];
    let prompt = "NOTES so far [] said [User: first question\nAssistant: first answer\n\nUser: \
                  second question\nAssistant: second answer\n] now [third question]";
    assert_eq!(text(&row["prompt"]), prompt);
    assert!(text(&row["payload"]).contains("NOTES so far"), "{row}");
    assert_eq!(text(&row["output"]), "noted once");
    let file = home.path("config/contexture/templates/mine.md");
    assert_eq!(text(&row["path"]), file.to_str().unwrap());
    assert_eq!(text(&row["sha256"]).len(), 64);
    assert_eq!(
        row["sections"].to_string(),
        r#"["task","template","recent-conversation","latest-input"]"#
    );
    assert_eq!((row["turn"].as_i64(), text(&row["message"])), (Some(3), "msg-5"));
    for (name, least) in [
        ("created", 1),
        ("recent_runs", 2),
        ("passthrough_runs", 1),
        ("budget", 1000),
        ("prompt_tokens", 30),
        ("input_tokens", 30),
        ("output_tokens", 3),
        ("tokens_before", 10),
        ("tokens_after", 10),
    ] {
        assert!(row[name].as_i64().is_some_and(|figure| figure >= least), "{name} of {row}");
    }
    // The log has all that was said.
    assert_eq!(client.ok("get-messages", "nil").as_array().unwrap().len(), 6);
}

#[test]
fn the_notes_of_the_turn_before_are_built_upon() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    client.ok("chat", "(:content \"third question\")");
    let answer = client.ok("chat", "(:content \"fourth question\")");
    assert!(contents(&answer)[0].ends_with("noted twice"), "{answer}");
    let rows = views(&mut client);
    assert!(text(&rows[0]["prompt"]).starts_with("NOTES so far [noted once] said"), "{}", rows[0]);

    // A fork goes on from them, and a rollback behind the turn forgets them.
    client.ok("open-session", "(:fork-of \"s\" :name \"fork\")");
    let shown = client.ok("take-notes", "(:session \"fork\" :template \"mine\" :dry-run t)");
    assert!(text(&shown["prompt"]).starts_with("NOTES so far [noted once] said"), "{shown}");
    client.ok("open-session", "(:create nil :name \"s\")");
    client.ok("checkpoint", "(:message \"now\")");
    client.ok("chat", "(:content \"fifth question\")");
    client.ok("rollback", "nil");
    let shown = client.ok("take-notes", "(:dry-run t)");
    assert!(text(&shown["prompt"]).starts_with("NOTES so far [noted once] said"), "{shown}");
}

#[test]
fn a_turn_is_managed_once() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    client.ok("add-message", "(:role :user :content \"third question\")");
    let first = client.ok("take-notes", "nil");
    assert_eq!((text(&first["status"]), &first["cached"]), ("managed", &Json::Null));
    assert_eq!(text(&first["text"]), "Context summary (managed):\nnoted once");
    assert_eq!(first["messages"].to_string(), r#"["msg-3","msg-4","msg-5"]"#);
    let again = client.ok("take-notes", "nil");
    assert_eq!((&again["cached"], &again["view"]), (&Json::Bool(true), &first["view"]));
    assert_eq!(again["text"], first["text"]);
    assert_eq!(views(&mut client).len(), 1);
    // Another question to the manager is another view.
    let other = client.ok("take-notes", "(:recent-runs 1)");
    assert_eq!(other["cached"], Json::Null);
    assert_eq!(views(&mut client).len(), 2);
}

#[test]
fn the_settings_decide_whether_there_is_anything_to_manage() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    client.ok("configure-session", "(:token-threshold 4000)");
    let answer = client.ok("chat", "(:content \"x\")");
    assert_eq!(text(&answer["management"]["status"]), "below-threshold");
    assert_eq!(contents(&answer).len(), 5, "the whole history passes");
    client.ok("configure-session", "(:recent-runs 0)");
    let answer = client.ok("chat", "(:content \"y\")");
    assert_eq!(text(&answer["management"]["status"]), "disabled");
    let set = client.ok("configure-session", "(:recent-runs -1 :token-threshold -1)");
    assert_eq!((&set["recent_runs"], &set["token_threshold"]), (&Json::Null, &Json::Null));
    let answer = client.ok("chat", "(:content \"z\")");
    assert_eq!(text(&answer["management"]["status"]), "managed");
    let statuses: Vec<String> =
        views(&mut client).iter().map(|row| text(&row["status"]).to_owned()).collect();
    assert_eq!(statuses, ["managed", "disabled", "below-threshold"]);
    assert_eq!(client.ok("list-notes", "(:status :disabled)").as_array().unwrap().len(), 1);

    // For a turn alone, and from now on.
    let answer = client.ok("chat", "(:content \"raw\" :manage nil)");
    assert_eq!(answer["management"], Json::Null);
    client.ok("configure-session", "(:manage nil)");
    assert_eq!(client.ok("chat", "(:content \"raw\")")["management"], Json::Null);
    let answer = client.ok("chat", "(:content \"raw\" :manage t)");
    assert_eq!(text(&answer["management"]["status"]), "managed");
}

#[test]
fn a_first_line_has_one_turn_managed() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    client.ok("configure-session", "(:manage nil)");
    let prompt = "(:content \"@context-helper mine\\nthird question\")";
    let answer = client.ok("chat", prompt);
    assert_eq!(text(&answer["management"]["template"]), "mine");
    assert_eq!(contents(&answer).last().unwrap(), "third question");
    let log = client.ok("get-messages", "nil");
    assert_eq!(text(&log[4]["content"]), "@context-helper mine\nthird question");
    let answer = client.ok("chat", "(:content \"fourth question\")");
    assert_eq!(answer["management"], Json::Null);
    assert!(contents(&answer).contains(&"third question".to_owned()), "{answer}");
    let shown = client.ok("chat", "(:content \"@context-helper mine\\nfifth\" :dry-run t)");
    assert!(!text(&shown["payload"]).contains("@context-helper"), "{shown}");
    assert_eq!(text(&shown["managed_by"]), "mine");
}

#[test]
fn a_template_is_read_anew_for_each_turn() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    let before = client.ok("chat", "(:content \"x\")");
    let changed = TEMPLATE.replace("NOTES so far", "NOTES up to now");
    std::fs::write(home.path("config/contexture/templates/mine.md"), changed).unwrap();
    let after = client.ok("chat", "(:content \"y\")");
    assert_ne!(before["management"]["sha256"], after["management"]["sha256"]);
    assert!(text(&views(&mut client)[0]["prompt"]).starts_with("NOTES up to now"));
}

/// What is broken before a turn, with access to the server's folders and to its sessions.
type Fault = fn(&Home, &mut Client);

/// Whatever `fault` breaks, the turn goes on with the raw history, and the result's status, the
/// event, the counter and the stored row say why.
#[track_caller]
fn check_failure(answers: &str, fault: Fault, step: &str, reason: &str) {
    let home = configured(answers, TEMPLATE);
    let mut client = begin(&home);
    fault(&home, &mut client);
    let id = client.send("chat", "(:content \"third question\" :template \"mine\")");
    let (mut event, mut counted, mut managed) = (None, None, 0);
    let answer = loop {
        let message = client.message();
        match text(&message["method"]) {
            "management-failed" => event = Some(message["params"].clone()),
            "stats" => {
                counted = message["params"]["management_failures"].as_i64().max(counted);
                managed = message["params"]["turns_managed"].as_i64().unwrap().max(managed);
            }
            _ if message["id"] == id => break message["result"].clone(),
            _ => {}
        }
    };
    let raw = ["first question", "first answer", "second question", "second answer"];
    let shown = contents(&answer);
    assert_eq!(shown[..4], raw, "the raw history was sent");
    assert_eq!(shown[4], "third question");
    let management = &answer["management"];
    assert_eq!((text(&management["status"]), text(&management["step"])), ("failed", step));
    assert!(text(&management["reason"]).contains(reason), "{management}");
    let event = event.unwrap();
    assert_eq!((text(&event["session"]), text(&event["step"])), ("s", step));
    assert!(text(&event["reason"]).contains(reason), "{event}");
    assert_eq!(counted, Some(1));
    assert_eq!(managed, 0, "what failed was not managed");
    if step != "prior-summary" {
        let row = &views(&mut client)[0];
        assert_eq!((text(&row["status"]), text(&row["step"])), ("failed", step));
        assert_eq!(row["reason"], management["reason"]);
        assert_eq!(row["id"], management["view"]);
    }
    // The session is usable, and nothing was lost.
    let log = client.ok("get-messages", "nil");
    assert_eq!(text(&log[4]["content"]), "third question");
    client.ok("chat", "(:content \"more\" :manage nil)");
}

fn template(home: &Home, text: &str) {
    std::fs::write(home.path("config/contexture/templates/mine.md"), text).unwrap();
}

/// Runs SQL on the database while the server, which has it for itself, is not there.
fn sabotage(home: &Home, client: &mut Client, sql: &str) {
    std::mem::replace(client, home.ephemeral(&[])).end();
    let db = rusqlite::Connection::open(home.database()).unwrap();
    db.execute_batch(sql).unwrap();
    // A start would take other definitions of the tables for damage.
    let number = contexture_program::internals::store::sqlite::schema_number(&db).unwrap();
    db.pragma_update(None, "application_id", number).unwrap();
    drop(db);
    home.forget_what_is_beside();
    *client = home.stdio(&[]);
    client.ok("open-session", "(:create nil :name \"s\")");
    client.ok("subscribe", "(:topics (:management-failed :stats))");
}

#[test]
fn a_template_that_is_not_there_or_broken_fails_open() {
    let gone: Fault =
        |home, _| std::fs::remove_file(home.path("config/contexture/templates/mine.md")).unwrap();
    check_failure(ANSWERS, gone, "template", "no template \"mine\"; the templates are");
    let front: Fault = |home, _| template(home, "---\nrecent-runs: many\n---\nNOTES\n");
    check_failure(ANSWERS, front, "template", "line 2, column 13");
    let unclosed: Fault = |home, _| template(home, "a\nb {{ c\n");
    check_failure(ANSWERS, unclosed, "template", "line 2");
}

#[test]
fn a_prompt_that_cannot_be_made_fails_open() {
    let loops: Fault = |home, _| {
        let inner = "{% for b in range(9999) %}x{% endfor %}";
        let outer = format!("{{% for a in range(9999) %}}{inner}{{% endfor %}}");
        template(home, &format!("---\ntoken-threshold: 0\n---\n{outer}"));
    };
    check_failure(ANSWERS, loops, "prompt", "too many steps");
    let too_long: Fault = |home, _| {
        let many = "{% for a in range(15000) %}fifteen thousand lines of words that say nothing {% endfor %}";
        template(home, &format!("---\ntoken-threshold: 0\n---\n{many}"));
    };
    check_failure(ANSWERS, too_long, "prompt", "even without earlier turns");
}

#[test]
fn a_manager_that_fails_in_any_way_fails_open() {
    let whole: Fault = |_, _| {};
    let answers = |manager: &str| {
        format!("[[answer]]\nwhen = \"NOTES\"\n{manager}\n[[answer]]\necho = true\n")
    };
    for kind in ["authentication", "rate-limited", "context-too-long", "bad-request"] {
        let failing = answers(&format!("error = \"{kind}\"\nmessage = \"because {kind}\""));
        check_failure(&failing, whole, "answer", &format!("because {kind}"));
    }
    check_failure(&answers("text = \"This br\"\ncut = true"), whole, "answer", "m-1");
    check_failure(&answers("text = \" \""), whole, "answer", "returned no notes");
    check_failure(&answers("text = \"So\"\nstop = \"length\""), whole, "answer", "max-tokens");
    check_failure(
        &answers("text = \"So\"\nstop = \"refused\""),
        whole,
        "answer",
        "refused to finish",
    );
    let endless = answers(&format!("text = \"{}\"", "x".repeat((1 << 20) + 1)));
    check_failure(&endless, whole, "answer", "more than 1048576 bytes");
}

#[test]
fn a_store_that_fails_fails_open() {
    let full: Fault = |home, client| {
        sabotage(
            home,
            client,
            "CREATE INDEX full ON managed_view
             (abs(CASE status WHEN 'managed' THEN -9223372036854775808 END))",
        );
    };
    check_failure(ANSWERS, full, "store", "integer overflow");
    let unreadable: Fault = |home, client| sabotage(home, client, "DROP TABLE managed_view");
    check_failure(ANSWERS, unreadable, "prior-summary", "no such table");
}

#[test]
fn notes_that_do_not_fit_fail_open() {
    let long = format!(
        "[[answer]]\nwhen = \"NOTES\"\ntext = \"{}\"\n[[answer]]\necho = true\n",
        "word ".repeat(2_000)
    );
    let narrow: Fault = |_, client| {
        client.ok("configure-session", "(:max-tokens 256)");
    };
    check_failure(&long, narrow, "window", "");
}

#[test]
fn a_turn_that_is_cancelled_while_it_is_managed_keeps_the_question_in_the_log() {
    let answers = "[[answer]]\nwhen = \"NOTES\"\ntext = \"So\"\nhang = true\n\
                   [[answer]]\necho = true\n";
    let home = configured(answers, TEMPLATE);
    let mut client = begin(&home);
    let id = client.send("chat", "(:content \"third question\")");
    let told = client.notification("progress");
    assert_eq!(text(&told["text"]), "taking notes with the template mine");
    client.send("cancel", &format!("(:id {id})"));
    let failure = client.reply(id).unwrap_err();
    assert_eq!(failure.code, -32800);
    until("the session to be free", || client.call("chat", "(:content \"x\" :manage nil)").is_ok());
    let log = client.ok("get-messages", "(:view :log)");
    assert_eq!(text(&log[4]["content"]), "third question");
    assert!(views(&mut client).is_empty(), "a managing that nobody wanted has not failed");
}

#[test]
fn a_fork_has_the_notes_of_where_it_was_taken_however_many_came_after() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    client.ok("chat", "(:content \"third question\")");
    client.ok("chat", "(:content \"fourth question\")");
    let checkpoint = client.ok("checkpoint", "(:message \"here\")");
    for turn in 0..20 {
        client.ok("chat", &format!("(:content \"later question {turn}\")"));
    }
    let from = text(&checkpoint["checkpoint"]).to_owned();
    client.ok("open-session", &format!("(:fork-of \"s\" :checkpoint {from:?} :name \"fork\")"));
    let shown = client.ok("take-notes", "(:session \"fork\" :template \"mine\" :dry-run t)");
    assert!(text(&shown["prompt"]).starts_with("NOTES so far [noted once] said"), "{shown}");
}

#[test]
fn a_client_is_told_that_the_history_is_managed_before_it_is() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    let id = client.send("chat", "(:content \"third question\")");
    let mut told = Vec::new();
    loop {
        let message = client.message();
        if message["id"] == id {
            break;
        }
        if text(&message["method"]) == "progress" && text(&message["params"]["kind"]) == "status" {
            told.push(text(&message["params"]["text"]).to_owned());
        }
    }
    assert_eq!(told, ["taking notes with the template mine"]);
}

#[test]
fn one_view_can_be_asked_for() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    let first = client.ok("chat", "(:content \"third question\")");
    client.ok("chat", "(:content \"fourth question\")");
    let id = text(&first["management"]["view"]).to_owned();
    let rows = client.ok("list-notes", &format!("(:view {id:?})"));
    let rows = rows.as_array().unwrap();
    assert_eq!((rows.len(), text(&rows[0]["output"])), (1, "noted once"), "{rows:?}");
    let brief = client.ok("list-notes", &format!("(:view {id:?} :brief t)"));
    assert_eq!((&brief[0]["id"], &brief[0]["output"]), (&rows[0]["id"], &Json::Null));
    assert_eq!(client.ok("list-notes", "(:view \"view-99\")"), Json::Null);
    let error = client.call("list-notes", "(:view \"3\")").unwrap_err();
    assert!(error.message.contains("a note's id such as view-12"), "{}", error.message);
}

#[test]
fn a_list_of_views_has_an_end() {
    let home = configured(ANSWERS, TEMPLATE);
    let mut client = begin(&home);
    for _ in 0..251 {
        client.ok("take-notes", "(:recent-runs 0)");
    }
    let listed = client.ok("list-notes", "(:brief t :limit 99999)");
    assert_eq!(listed.as_array().unwrap().len(), 250);
}

#[test]
fn runs_that_the_prompt_had_no_room_for_are_counted() {
    let home = configured(ANSWERS, &TEMPLATE.replace("recent-runs: 2", "recent-runs: 9"));
    let mut client = begin(&home);
    client.ok("chat", "(:content \"third question\")");
    let row = &views(&mut client)[0];
    assert_eq!((row["recent_runs"].as_i64(), row["runs_shown"].as_i64()), (Some(9), Some(2)));
    let long = "many words ".repeat(40_000);
    client.ok("add-message", &format!("(:role :user :content {long:?})"));
    let shown = client.ok("take-notes", "(:dry-run t :recent-runs 9)");
    assert_eq!(text(&shown["step"]), "prompt", "what is said now is not left out: {shown}");
    client.ok("add-message", "(:role :assistant :content \"so it is\")");
    client.ok("add-message", "(:role :user :content \"fourth question\")");
    let made = client.ok("take-notes", "nil");
    assert_eq!((text(&made["status"]), made["runs_shown"].as_i64()), ("managed", Some(0)));
    assert_eq!(views(&mut client)[0]["runs_shown"].as_i64(), Some(0));
}

#[test]
fn notes_of_another_provider_are_not_taken_for_its_own() {
    let home = configured(ANSWERS, TEMPLATE);
    add_provider(&home, "other", "m-1");
    let mut client = begin(&home);
    client.ok("add-message", "(:role :user :content \"third question\")");
    client.ok("take-notes", "(:provider \"play\")");
    let other = client.ok("take-notes", "(:provider \"other\")");
    assert_eq!((&other["cached"], text(&other["provider"])), (&Json::Null, "other"));
    let again = client.ok("take-notes", "(:provider \"play\")");
    assert_eq!((&again["cached"], text(&again["provider"])), (&Json::Bool(true), "play"));
}

/// Configures another provider that plays the same answers.
fn add_provider(home: &Home, name: &str, model: &str) {
    let file = home.path("config/contexture/config.toml");
    let first = std::fs::read_to_string(&file).unwrap();
    let second = first.replace("\"play\"", &format!("{name:?}"));
    std::fs::write(file, first + &second.replace("\"m-1\"", &format!("{model:?}"))).unwrap();
}

/// Who makes the notes when the project's template, or the user's, names this model.
#[track_caller]
fn check_manager(named: &str, of_project: (&str, &str), of_user: (&str, &str)) {
    let template = TEMPLATE.replacen("---\n", &format!("---\nmodel: {named}\n"), 1);
    let home = configured(ANSWERS, &template);
    add_provider(&home, "hosted", "m-9");
    let project = home.path("project");
    std::fs::create_dir_all(project.join(".contexture/templates")).unwrap();
    std::fs::write(project.join(".contexture/templates/theirs.md"), &template).unwrap();
    let mut client = home.stdio(&[]);
    client.ok("open-session", &format!("(:name \"s\" :project {project:?})"));
    let refused = client.ok("chat", "(:content \"x\" :template \"theirs\")");
    assert_eq!(text(&refused["management"]["status"]), "failed", "{refused}");
    assert!(text(&refused["management"]["reason"]).contains("is not trusted"), "{refused}");
    let dry = client.ok("chat", "(:content \"x\" :template \"theirs\" :dry-run t)");
    assert!(text(&dry["template_error"]).contains("is not trusted"), "{dry}");
    client.ok("trust-project", &format!("(:project {project:?})"));
    let dry = client.ok("chat", "(:content \"x\" :template \"theirs\" :dry-run t)");
    assert_eq!(text(&dry["template_source"]), "project", "{dry}");
    assert!(text(&dry["template_path"]).ends_with("theirs.md"), "{dry}");
    for (name, expected) in [("theirs", of_project), ("mine", of_user)] {
        let answer = client.ok("chat", &format!("(:content \"x\" :template {name:?})"));
        let management = &answer["management"];
        assert_eq!(text(&management["status"]), "managed", "{management}");
        assert_eq!((text(&management["provider"]), text(&management["model"])), expected, "{name}");
        assert!(text(&management["path"]).ends_with(&format!("{name}.md")), "{management}");
    }
}

#[test]
fn a_projects_template_does_not_choose_who_reads_the_conversation() {
    check_manager("hosted", ("play", "m-1"), ("hosted", "m-9"));
    check_manager("m-9", ("play", "m-1"), ("hosted", "m-9"));
    check_manager("m-5", ("play", "m-5"), ("play", "m-5"));
    check_manager("play", ("play", "m-1"), ("play", "m-1"));
}
