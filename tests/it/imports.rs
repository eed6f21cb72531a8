//! Sessions that other agents recorded, imported over the wire and from the command line.

use std::io::{BufRead, BufReader};

use crate::support::*;

/// A recording of Claude Code.
pub(crate) const FIRST: &str = r#"{"type":"user","uuid":"u1","sessionId":"s-1","cwd":"/srv/db","timestamp":"2025-02-11T20:36:45Z","message":{"role":"user","content":"Which port does the database use?"}}
{"type":"assistant","uuid":"a1","timestamp":"2025-02-11T20:36:47Z","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"db.toml"}}]}}
{"type":"user","uuid":"u2","timestamp":"2025-02-11T20:36:48Z","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"port = 5433"}]}}
{"type":"progress","uuid":"p1"}
"#;
const MORE: &str = r#"{"type":"assistant","uuid":"a2","timestamp":"2025-02-11T20:36:50Z","message":{"id":"m2","content":[{"type":"text","text":"Port 5433."}]}}
"#;

/// Returns the only file of an import of the folder `records`.
#[track_caller]
fn import(client: &mut Client, home: &Home, more: &str) -> Json {
    let folder = quoted(home.file("records").to_str().unwrap());
    let done = client.ok("import-sessions", &format!("(:paths ({folder}) {more})"));
    assert_eq!(done["files"].as_array().map(Vec::len), Some(1), "{done}");
    done["files"][0].clone()
}

fn contents(client: &mut Client, id: &str) -> Vec<String> {
    let messages = client.ok("get-messages", &format!("(:session \"{id}\" :view :log)"));
    let content = |it: &Json| it["content"].as_str().unwrap().to_owned();
    messages.as_array().unwrap().iter().map(content).collect()
}

#[test]
fn a_recording_becomes_a_session_that_grows_with_its_file() {
    let home = Home::new();
    home.write("records/a.jsonl", FIRST);
    home.write("records/README.md", "# No recording\n");
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"mine\")");
    let looked_at = import(&mut client, &home, ":dry-run t");
    assert_eq!((&looked_at["state"], &looked_at["messages"]), (&"new".into(), &3.into()));
    assert_eq!(looked_at["session"], "Which port does the database use?");
    assert_eq!(client.ok("list-sessions", "nil").as_array().unwrap().len(), 1);

    let imported = import(&mut client, &home, "");
    assert_eq!((&imported["state"], &imported["id"]), (&"new".into(), &"ses-2".into()));
    assert_eq!(
        (&imported["format"], &imported["project"]),
        (&"claude-code".into(), &"/srv/db".into())
    );
    assert_eq!(
        (&imported["tokens"], &imported["started"]),
        (&looked_at["tokens"], &1_739_306_205.into())
    );
    assert_eq!(imported["left_out"][0]["kind"], "progress");
    assert_eq!(imported["left_out"][0]["first_line"], 4);
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], "mine");
    let listed = client.ok("list-sessions", "(:project \"/srv/db\")");
    assert!(listed[0]["source"].as_str().unwrap().ends_with("records/a.jsonl"), "{listed}");
    assert_eq!(
        (&listed[0]["created"], &listed[0]["updated"]),
        (&1_739_306_205.into(), &1_739_306_208.into())
    );

    let again = import(&mut client, &home, "");
    assert_eq!((&again["state"], &again["messages"]), (&"unchanged".into(), &0.into()));
    // A line that is being written is left for the next time.
    home.write("records/a.jsonl", format!("{FIRST}{}", &MORE[..40]));
    assert_eq!(import(&mut client, &home, "")["state"], "unchanged");
    home.write("records/a.jsonl", format!("{FIRST}{MORE}"));
    let grown = import(&mut client, &home, "");
    assert_eq!((&grown["state"], &grown["messages"]), (&"grown".into(), &1.into()));
    let expected = ["Which port does the database use?", "", "port = 5433", "Port 5433."];
    assert_eq!(contents(&mut client, "ses-2"), expected);

    // Written anew with another beginning, only what is new is added.
    let other = FIRST.replace("5433", "5434").replace("\"u1\"", "\"u9\"");
    home.write("records/a.jsonl", format!("{other}{MORE}"));
    assert_eq!(import(&mut client, &home, "")["messages"], 1);
    let hits = client.ok("list-sessions", "(:query \"5433\" :project \"/srv/db\")");
    assert_eq!((&hits[0]["id"], &hits[0]["timestamp"]), (&"ses-2".into(), &1_739_306_210.into()));
    assert!(is_nil(&client.ok("list-sessions", "(:query \"5433\" :project \"/srv\")")[0]));

    client.ok("add-message", "(:session \"ses-2\" :content \"and the host?\")");
    client.ok("build-context", "(:session \"ses-2\")");
    client.ok("delete-session", "(:session \"ses-2\")");
    assert_eq!(import(&mut client, &home, "")["state"], "deleted");
    client.end();
}

#[test]
fn the_folders_of_agents_are_shown() {
    let home = Home::new();
    let shown = |claude: &str, codex: &str| {
        let mut command = home.command(&["import"]);
        let output = command.env("CLAUDE_CONFIG_DIR", claude).env("CODEX_HOME", codex).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let named = shown("/claude", "/codex");
    assert!(named.contains(" /claude/projects ") && named.contains(" /codex/sessions "), "{named}");
    let usual = home.path("home");
    let usual = usual.display();
    let unset = shown("", "");
    assert!(unset.contains(&format!(" {usual}/.claude/projects ")), "{unset}");
    assert!(unset.contains(&format!(" {usual}/.codex/sessions ")), "{unset}");
}

#[test]
fn sessions_that_an_agent_keeps_in_parts_are_put_together() {
    let home = Home::new();
    let info =
        r#"{"id":"ses_1","title":"Ports","directory":"/srv/db","time":{"created":1770842205000}}"#;
    let asked = r#"{"id":"msg_1","role":"user","time":{"created":1770842205000}}"#;
    let part = r#"{"id":"prt_1","type":"text","text":"Which port?"}"#;
    home.write("records/storage/session/p/ses_1.json", info);
    home.write("records/storage/message/ses_1/msg_1.json", asked);
    home.write("records/storage/part/msg_1/prt_1.json", part);
    home.write("records/package.json", "{\"name\":\"app\"}");
    let chat = |day: u8, text: &str| {
        format!("\n# aider chat started at 2026-02-0{day} 20:36:45\n\n#### {text}  \n\nYes.\n")
    };
    let history = chat(1, "one") + &chat(2, "two");
    home.write("records/app/.aider.chat.history.md", &history);
    let mut client = home.stdio(&[]);
    let folder = quoted(home.file("records").to_str().unwrap());
    let import = |client: &mut Client| {
        let done = client.ok("import-sessions", &format!("(:paths ({folder}))"));
        let line = |it: &Json| {
            format!("{} {} {}", it["state"], it["session"], it["messages"]).replace('"', "")
        };
        let files = done["files"].as_array().unwrap();
        (files.iter().map(line).collect::<Vec<_>>(), done["files"].clone())
    };
    let (told, files) = import(&mut client);
    assert_eq!(told, ["new one 2", "new two 2", "new Ports 1"]);
    let project = home.file("records/app").canonicalize().unwrap();
    assert_eq!(files[0]["project"], project.to_str().unwrap());
    assert_eq!(
        (&files[2]["format"], &files[2]["project"]),
        (&"opencode".into(), &"/srv/db".into())
    );
    home.write("records/app/.aider.chat.history.md", history + &chat(3, "three"));
    let (told, _) = import(&mut client);
    assert_eq!(told, ["unchanged one 0", "unchanged two 0", "new three 2", "unchanged Ports 0"]);
    client.end();
}

#[test]
fn the_name_of_an_agent_stands_for_its_places() {
    let home = Home::new();
    let run = |agent: &str| home.command(&["import", agent, "--dry-run"]).output().unwrap();
    let none = String::from_utf8(run("qwen").stderr).unwrap();
    assert!(none.contains("Qwen Code keeps no sessions here; looked for"), "{none}");
    let chats = home.path("home").join(".qwen/projects/p/chats");
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::write(
        chats.join("q.jsonl"),
        r#"{"uuid":"1","parentUuid":null,"sessionId":"q","type":"user","cwd":"/srv/db","message":{"role":"user","parts":[{"text":"Which port?"}]}}"#,
    )
    .unwrap();
    let found = String::from_utf8(run("qwen").stdout).unwrap();
    assert!(found.contains("Which port?") && found.contains("Would import 1 message"), "{found}");
}

#[test]
fn what_cannot_be_imported_is_named() {
    let home = Home::new();
    let text = home.write("a.md", "# No recording\n");
    let mut client = home.ephemeral(&[]);
    let file = |client: &mut Client, path: &str| {
        client.ok("import-sessions", &format!("(:paths ({}))", quoted(path)))["files"][0].clone()
    };
    let failed = file(&mut client, &text);
    assert_eq!(failed["state"], "failed");
    assert!(
        failed["error"].as_str().unwrap().starts_with("the file is not a recorded session"),
        "{failed}"
    );
    home.write("meta.jsonl", "{\"type\":\"summary\",\"summary\":\"x\"}\n");
    let meta = home.file("meta.jsonl");
    assert_eq!(file(&mut client, meta.to_str().unwrap())["state"], "empty");
    for (paths, kind) in [("\"/none/at/all\"", "file-missing"), ("\"a\"", "not-absolute")] {
        let error = client.fails("import-sessions", &format!("(:paths ({paths}))"));
        assert_eq!(error.kind(), kind);
    }
    assert_eq!(client.fails("import-sessions", "(:paths [])").param(), "paths");
    assert!(is_nil(&client.ok("list-sessions", "nil")[0]));
}

#[test]
fn others_are_answered_while_many_sessions_are_imported_and_cancelling_leaves_whole_units() {
    let home = Home::new();
    let line = |number: usize| {
        let text = "word ".repeat(200);
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"sessionId\":\"s\",\"message\":{{\"content\":\"{number} {text}\"}}}}\n\
             {{\"type\":\"assistant\",\"uuid\":\"a{number}\",\"message\":{{\"id\":\"m{number}\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"t{number}\",\"name\":\"Run\",\"input\":{{}}}}]}}}}\n\
             {{\"type\":\"user\",\"uuid\":\"r{number}\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t{number}\",\"content\":\"{text}\"}}]}}}}\n"
        )
    };
    home.write("records/a.jsonl", (0..2000).map(line).collect::<String>());
    let server = home.listening(&[]);
    let mut one = server.unix(Dialect::Native);
    let mut other = server.unix(Dialect::Native);
    let folder = quoted(home.file("records").to_str().unwrap());
    let id = one.send("import-sessions", &format!("(:paths ({folder}))"));
    one.notification("progress");
    // Once a portion is there, the import is stopped.
    until("a portion is imported", || {
        other.ok("ping", "nil");
        let sessions = other.ok("list-sessions", "nil");
        sessions[0]["messages"].as_u64().is_some_and(|messages| messages > 0)
    });
    one.send("cancel", &format!("(:id {id})"));
    let stopped = one.reply(id).err().map(|error| error.kind().to_owned());
    let count = other.ok("list-sessions", "nil")[0]["messages"].as_u64().unwrap();
    assert_eq!(count % 3, 0, "{count}");
    assert_eq!(stopped.as_deref(), Some("cancelled"), "{count}");
    let again = one.ok("import-sessions", &format!("(:paths ({folder}))"));
    // A portion that was on its way when the import was stopped may have come since, whole.
    let left = again["files"][0]["messages"].as_u64().unwrap();
    assert!((1..=6000 - count).contains(&left) && left.is_multiple_of(3), "{left} after {count}");
    let numbers: Vec<String> = contents(&mut other, "ses-1");
    let asked = numbers.iter().step_by(3).map(|text| text.split(' ').next().unwrap().to_owned());
    assert_eq!(asked.collect::<Vec<_>>(), (0..2000).map(|it| it.to_string()).collect::<Vec<_>>());
}

#[test]
fn calls_that_import_the_same_file_at_once_import_it_once() {
    let home = Home::new();
    let line = |number: usize| {
        let text = format!("{number} {}", "word ".repeat(1_000));
        format!("{}\n", FIRST.lines().next().unwrap().replace("\"u1\"", &format!("\"u{number}\"")))
            .replace("Which", &text)
    };
    home.write("records/a.jsonl", (0..500).map(line).collect::<String>());
    let server = home.listening(&[]);
    let mut clients: Vec<Client> = (0..4).map(|_| server.unix(Dialect::Native)).collect();
    let folder = quoted(home.file("records").to_str().unwrap());
    let params = format!("(:paths ({folder}))");
    let ids: Vec<_> =
        clients.iter_mut().map(|client| client.send("import-sessions", &params)).collect();
    for (client, id) in clients.iter_mut().zip(ids) {
        assert!(client.reply(id).is_ok());
    }
    let sessions = clients[0].ok("list-sessions", "nil");
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "{sessions}");
    assert_eq!(sessions[0]["messages"], 500);
}

#[test]
fn a_recording_that_a_bridge_names_is_imported_when_the_bridge_has_left() {
    let home = Home::new();
    let recording = quoted(&home.write("records/a.jsonl", FIRST));
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    let asked = format!("(:agent \"claude\" :agent-session \"s\" :recording {recording})");
    assert_eq!(client.ok("pushed-context", &asked)["importing"], true);
    drop(client);
    let mut client = server.unix(Dialect::Native);
    until("the session is there", || client.ok("list-sessions", "nil")[0]["messages"] == 3);
}

#[test]
fn a_signal_of_an_agent_says_nothing_of_another_with_the_same_id() {
    let home = Home::new();
    home.write("records/a.jsonl", FIRST);
    let mut client = home.stdio(&[]);
    client.ok(
        "import-sessions",
        &format!("(:paths ({}))", quoted(home.file("records").to_str().unwrap())),
    );
    let first: Json = serde_json::from_str(FIRST.lines().next().unwrap()).unwrap();
    let mut state_after = |agent: &str, state: &str| {
        let session = quoted(first["sessionId"].as_str().unwrap());
        let signal = format!("(:agent {agent:?} :agent-session {session} :state {state:?})");
        client.ok("pushed-context", &signal);
        client.ok("list-sessions", "nil")[0]["state"].take()
    };
    assert_eq!(state_after("claude", "waiting"), "waiting");
    assert_eq!(state_after("codex", "ended"), "waiting");
    assert_eq!(state_after("claude", "ended"), "ended");
}

#[test]
fn the_log_says_why_a_recording_that_a_bridge_names_is_not_imported() {
    let home = Home::new();
    let text = quoted(&home.write("a.md", "# No recording\n"));
    let mut server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    let asked = format!("(:agent \"claude\" :agent-session \"s\" :recording {text})");
    assert_eq!(client.ok("pushed-context", &asked)["importing"], true);
    drop(client);
    let log = BufReader::new(server.process.child.stderr.take().unwrap());
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        log.lines().map_while(Result::ok).try_for_each(|it| sender.send(it))
    });
    let line = lines.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
    assert!(line.contains("cannot import the recording") && line.contains("a.md"), "{line}");
}

#[test]
fn the_command_line_imports_and_says_where_agents_keep_their_sessions() {
    let home = Home::new();
    home.write("records/a.jsonl", FIRST);
    let told = home.succeed(&["import", "records", "--dry-run"]);
    assert!(told.contains("Would import 3 messages; new sessions: 1."), "{told}");
    let told = home.succeed(&["import", "records"]);
    assert!(told.starts_with("new        Which port does the database use?\n"), "{told}");
    assert!(told.contains("left out or changed: 1 × progress ("), "{told}");
    assert!(told.contains("Imported 3 messages; new sessions: 1."), "{told}");
    let told = home.succeed(&["import", "records/a.jsonl"]);
    assert!(told.contains("unchanged") && told.contains("Imported 0 messages"), "{told}");
    home.write("a.md", "# No recording\n");
    let output = home.run(&["import", "a.md"]);
    assert!(!output.status.success());
    let places = home.succeed(&["import"]);
    for place in [".claude/projects", "sessions", ".specstory/history"] {
        assert!(places.contains(place), "{places}");
    }
}

#[test]
fn a_recording_is_compacted_with_a_receipt() {
    let home = Home::new();
    let said = |at: usize| {
        let text = format!("Look at src/part_{at}.rs next, it is long. ").repeat(20);
        let message = serde_json::json!({ "role": "user", "content": text });
        serde_json::json!({ "type": "user", "uuid": format!("v{at}"), "message": message })
    };
    let lines: Vec<String> = (0..40).map(|at| said(at).to_string()).collect();
    home.write("long.jsonl", &(FIRST.to_owned() + &lines.join("\n")));
    let file = home.file("long.jsonl").to_str().unwrap().to_owned();

    let shown = read_json(&home.succeed(&["compact", &file, "--max-tokens", "2000", "--json"]));
    assert!(shown["tokens-after"].as_u64() <= Some(2000), "{shown}");
    assert!(shown["tokens-before"].as_u64() > Some(2000) && shown["messages"] == 43, "{shown}");
    let left_out = shown["left-out"].as_array().unwrap();
    assert!(left_out.iter().all(|run| run["reason"] != "" && run["tokens"].as_u64() > Some(0)));
    let text = home.succeed(&["compact", &file, "--max-tokens", "2000"]);
    assert!(text.contains("── Left out, whole or in part (") && text.contains("[msg-"), "{text}");

    assert_eq!(home.succeed(&["compact", &file, "--read", "msg-3"]), "port = 5433");
    let wrong = home.fail(&["compact", &file, "--read", "msg-44"]);
    assert!(wrong.contains("msg-1 to msg-43"), "{wrong}");
}

/// Imports the folder `records`, and returns the sessions by their last words.
fn sessions_after_import(client: &mut Client, home: &Home) -> Vec<Json> {
    let folder = quoted(home.file("records").to_str().unwrap());
    client.ok("import-sessions", &format!("(:paths ({folder}))"));
    client.ok("list-sessions", "nil").as_array().cloned().unwrap_or_default()
}

/// Returns a rollout of Codex with these questions, each with an answer.
fn rollout(meta: &str, questions: &[&str]) -> String {
    let said = |role: &str, kind: &str, text: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
        )
    };
    let mut lines = vec![format!(r#"{{"type":"session_meta","payload":{{{meta}}}}}"#)];
    for question in questions {
        lines.push(said("user", "input_text", question));
        lines.push(said("assistant", "output_text", &format!("answer to {question}")));
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_fork_repeats_nothing_of_its_parent_in_whatever_order_they_are_found() {
    for (fork, parent) in [("a", "b"), ("b", "a")] {
        let home = Home::new();
        let name = |name: &str| format!("records/{name}.jsonl");
        home.write(&name(parent), rollout(r#""id":"c3""#, &["one", "two", "later"]));
        let forked = rollout(r#""id":"c4","forked_from_id":"c3""#, &["one", "two", "three"]);
        home.write(&name(fork), forked);
        let mut client = home.stdio(&[]);
        let listed = sessions_after_import(&mut client, &home);
        let whole = listed.iter().find(|it| it["agent_session"] == "c3").unwrap();
        let listed = listed.iter().find(|it| it["agent_session"] == "c4").unwrap();
        assert_eq!(
            (&listed["forked_from"], &listed["shared_messages"]),
            (&whole["id"], &4.into()),
            "{listed}"
        );
        assert_eq!(listed["last_words"], "answer to three");
        assert_eq!((&whole["session"], &listed["session"]), (&"one".into(), &"three".into()));
        let hits = client.ok("list-sessions", "(:query \"answer to one\")");
        assert_eq!(hits.as_array().unwrap().len(), 1, "{hits}");
        client.end();
    }
}

#[test]
fn a_folder_names_the_sessions_that_cannot_be_read() {
    let home = Home::new();
    home.write("records/a.jsonl", FIRST);
    home.write("records/droid.jsonl", r#"{"type":"session_start","id":"d","cwd":"/tmp"}"#);
    home.write("records/other.jsonl", "{\"a\": 1}\n");
    let output = home.run(&["import", "records"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("failed") && shown.contains("a session of Droid"), "{shown}");
    assert!(shown.contains("new sessions: 1; files left out: 1"), "{shown}");
    assert!(!output.status.success());
}

#[test]
fn folders_in_which_an_agent_will_record_are_told_with_those_in_which_it_does() {
    let home = Home::new();
    home.write("../home/.claude/settings.json", "{}");
    home.write("../home/.codex/sessions/2026/a.jsonl", rollout(r#""id":"c1""#, &["one"]));
    let mut client = home.stdio(&[]);
    let told = client.ok("import-sessions", "nil");
    let folders: Vec<&str> =
        told["folders"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let at = |name: &str| home.path("home").join(name).to_str().unwrap().to_owned();
    // Claude Code makes `projects` with its first session.
    for name in [".claude", ".codex/sessions", ".codex/sessions/2026"] {
        assert!(folders.contains(&&*at(name)), "{name}: {folders:?}");
    }
    assert!(!folders.contains(&home.path("home").to_str().unwrap()), "{folders:?}");
    client.end();
}

#[test]
fn a_subagents_session_belongs_to_its_parent_and_stands_below_it() {
    let home = Home::new();
    let spawned =
        r#""id":"c5","source":{"subagent":{"thread_spawn":{"parent_thread_id":"c3","depth":1}}}"#;
    home.write("records/a.jsonl", rollout(spawned, &["You review. Never edit."]));
    home.write("records/b.jsonl", rollout(r#""id":"c3""#, &["one"]));
    let said = |agent: &str, time: u8, role: &str| {
        format!(
            r#"{{"isSidechain":true,"sessionId":"s","agentId":"{agent}","type":"{role}","uuid":"{agent}{time}","timestamp":"2026-03-01T10:00:{time}Z","message":{{"role":"{role}","content":"{role} {agent}"}}}}"#
        )
    };
    home.write("records/s.jsonl", FIRST.replace("s-1", "s"));
    for agent in ["x", "y"] {
        let lines = [said(agent, 10, "user"), said(agent, 11, "assistant")].join("\n");
        home.write(&format!("records/s/subagents/agent-{agent}.jsonl"), lines);
    }
    let mut client = home.stdio(&[]);
    let listed = sessions_after_import(&mut client, &home);
    let line = |it: &Json| {
        let whole = listed.iter().find(|other| other["id"] == it["part_of"]);
        let whole = whole.map_or("", |it| it["agent_session"].as_str().unwrap());
        format!("{} {whole}", it["agent_session"].as_str().unwrap())
    };
    let mut told: Vec<String> = listed.iter().map(line).collect();
    // The order of sessions with the same time is open.
    let mut groups: Vec<Vec<String>> =
        told.chunk_by(|_, part| !part.ends_with(' ')).map(<[String]>::to_vec).collect();
    groups.iter_mut().for_each(|group| group[1..].sort());
    groups.sort();
    assert_eq!(groups.concat(), ["c3 ", "c5 c3", "s ", "s/x s", "s/y s"]);
    told.sort();
    assert_eq!(told.len(), 5, "two subagents are two sessions: {told:?}");
    let subagent = listed.iter().find(|it| it["agent_session"] == "c5").unwrap();
    let id = subagent["id"].as_str().unwrap();
    let messages = client.ok("get-messages", &format!("(:session \"{id}\" :view :log)"));
    assert_eq!(messages[0]["role"], "assistant", "{messages}");
    // The latest session is never a subagent's.
    let current = client.ok("list-sessions", "(:current t)")[0].clone();
    assert!(is_nil(&current["part_of"]) && current["agent_session"] != "c5", "{current}");
    client.end();
}

#[test]
fn a_session_stays_one_when_its_file_is_renamed_or_copied() {
    let home = Home::new();
    home.write("records/a.jsonl", FIRST);
    let mut client = home.stdio(&[]);
    assert_eq!(sessions_after_import(&mut client, &home).len(), 1);
    std::fs::rename(home.file("records/a.jsonl"), home.file("records/b.jsonl")).unwrap();
    home.write("records/b.jsonl", format!("{FIRST}{MORE}"));
    let listed = sessions_after_import(&mut client, &home);
    assert_eq!((listed.len(), &listed[0]["messages"]), (1, &4.into()), "{listed:?}");
    home.write("records/copy.jsonl", format!("{FIRST}{MORE}"));
    let listed = sessions_after_import(&mut client, &home);
    assert_eq!((listed.len(), &listed[0]["messages"]), (1, &4.into()), "{listed:?}");
    client.end();
}

#[test]
fn a_file_that_was_replaced_by_another_session_becomes_one_of_its_own() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let told = |listed: &[Json]| -> Vec<(String, u64)> {
        let one = |it: &Json| (it["agent_session"].to_string(), it["messages"].as_u64().unwrap());
        let mut told: Vec<_> = listed.iter().map(one).collect();
        told.sort();
        told
    };
    let [first, second] = [("c1", ["one", "two"]), ("c2", ["three", "four"])]
        .map(|(id, questions)| rollout(&format!(r#""id":"{id}""#), &questions));
    home.write("records/a.jsonl", &first);
    assert_eq!(sessions_after_import(&mut client, &home).len(), 1);
    // The new file is cut in a line, and its session is known once it has a message.
    home.write("records/a.jsonl", &second[..second.len() - 9]);
    let whole = |count| vec![("\"c1\"".to_owned(), 4), ("\"c2\"".to_owned(), count)];
    assert_eq!(told(&sessions_after_import(&mut client, &home)), whole(3));
    home.write("records/a.jsonl", &second);
    assert_eq!(told(&sessions_after_import(&mut client, &home)), whole(4));
    // The first session comes back under another name, and each goes on.
    let more = rollout(r#""id":"c1""#, &["five"]);
    let more = more.split_once('\n').unwrap().1;
    home.write("records/b.jsonl", format!("{first}{more}"));
    let listed = sessions_after_import(&mut client, &home);
    assert_eq!(told(&listed), [("\"c1\"".to_owned(), 6), ("\"c2\"".to_owned(), 4)]);
    client.end();
}

fn conversation(client: &mut Client, id: &str) -> Vec<String> {
    let messages = client.ok("get-messages", &format!("(:session \"{id}\")"));
    let content = |it: &Json| it["content"].as_str().unwrap().to_owned();
    messages.as_array().unwrap().iter().map(content).collect()
}

#[test]
fn an_answer_that_grew_is_one_answer() {
    let home = Home::new();
    let chat = |answer: &str| {
        format!("\n# aider chat started at 2026-02-01 20:36:45\n\n#### one  \n\n{answer}\n")
    };
    let name = "records/app/.aider.chat.history.md";
    let mut client = home.stdio(&[]);
    for answer in ["The port", "The port is 5433", "The port is 5433.\n\n#### two  \n\nYes."] {
        home.write(name, chat(answer));
        sessions_after_import(&mut client, &home);
    }
    let expected = ["one", "The port is 5433.", "two", "Yes."];
    assert_eq!(conversation(&mut client, "ses-1"), expected);
    client.end();
}

#[test]
fn what_the_user_went_back_before_is_not_part_of_the_session_also_if_it_was_imported() {
    let said = |id: &str, after: &str, role: &str| {
        let after = if after.is_empty() { "null".into() } else { format!("\"{after}\"") };
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"{id}\",\"parentUuid\":{after},\"sessionId\":\"s\",\
             \"message\":{{\"id\":\"{id}\",\"role\":\"{role}\",\"content\":\"say {id}\"}}}}\n"
        )
    };
    let (user, agent) = ("user", "assistant");
    let begun = said("u1", "", user) + &said("a1", "u1", agent);
    let left = said("u2", "a1", user) + &said("a2", "u2", agent);
    let went_on = said("u3", "a1", user) + &said("a3", "u3", agent);
    let expected = ["say u1", "say a1", "say u3", "say a3"];
    // At once, and in two imports.
    for first in [String::new(), begun.clone() + &left] {
        let home = Home::new();
        let mut client = home.stdio(&[]);
        home.write("records/s.jsonl", &first);
        sessions_after_import(&mut client, &home);
        home.write("records/s.jsonl", [&*begun, &*left, &*went_on].concat());
        sessions_after_import(&mut client, &home);
        assert_eq!(conversation(&mut client, "ses-1"), expected, "{first}");
        client.end();
    }
}

#[test]
fn turns_that_codex_undid_leave_a_session_that_was_imported() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let begun = rollout(r#""id":"c9""#, &["one", "two"]);
    home.write("records/a.jsonl", &begun);
    sessions_after_import(&mut client, &home);
    let undo =
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\",\"num_turns\":1}}\n";
    let more = rollout(r#""id":"c9""#, &["three"]);
    let (_, more) = more.split_once('\n').unwrap();
    home.write("records/a.jsonl", format!("{begun}{undo}{more}"));
    sessions_after_import(&mut client, &home);
    let expected = ["one", "answer to one", "three", "answer to three"];
    assert_eq!(conversation(&mut client, "ses-1"), expected);
    client.end();
}

#[test]
fn sessions_of_subfolders_worktrees_and_moved_folders_belong_to_the_project() {
    let home = Home::new();
    let at = |name: &str| home.file(name).display().to_string();
    home.write("main/.git/config", "[remote \"origin\"]\nurl = https://me:key@h/app.git\n");
    home.write("main/src/a.rs", "");
    for name in ["side", "gone"] {
        home.write(&format!("main/.git/worktrees/{name}/gitdir"), at(name) + "/.git\n");
        let described = at(&format!("main/.git/worktrees/{name}"));
        home.write(&format!("{name}/.git"), format!("gitdir: {described}\n"));
    }
    std::fs::remove_dir_all(home.file("gone")).unwrap();
    home.write("other/.git/config", "");
    for (name, folder) in [("a", "main/src"), ("b", "side"), ("c", "gone"), ("d", "other")] {
        let text = FIRST.replace("/srv/db", &at(folder)).replace("s-1", name);
        home.write(&format!("records/{name}.jsonl"), text);
    }
    let mut client = home.stdio(&[]);
    sessions_after_import(&mut client, &home);
    let found = |client: &mut Client, folder: &str| {
        let listed = client.ok("list-sessions", &format!("(:project {})", quoted(&at(folder))));
        let ids = listed.as_array().unwrap().iter();
        let mut ids: Vec<_> =
            ids.map(|it| it["agent_session"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids.concat()
    };
    assert_eq!(found(&mut client, "main"), "abc");
    assert_eq!(found(&mut client, "side"), "abc", "a worktree is the project, too");
    assert_eq!(found(&mut client, "other"), "d");
    let listed = client.ok("list-sessions", "nil");
    let side = listed.as_array().unwrap().iter().find(|it| it["agent_session"] == "b").unwrap();
    assert_eq!((&side["project"], &side["folder"]), (&at("main").into(), &at("side").into()));
    std::fs::rename(home.file("main"), home.file("moved")).unwrap();
    assert_eq!(found(&mut client, "moved"), "abc");
    client.end();
}

#[test]
fn without_paths_the_places_of_agents_are_imported_and_named_for_watching() {
    let home = Home::new();
    let chats = home.path("home").join(".qwen/projects/p/chats");
    std::fs::create_dir_all(&chats).unwrap();
    let line = r#"{"uuid":"1","parentUuid":null,"sessionId":"q","type":"user","message":{"role":"user","parts":[{"text":"Which port?"}]}}"#;
    std::fs::write(chats.join("q.jsonl"), line).unwrap();
    let mut client = home.stdio(&[]);
    let done = client.ok("import-sessions", "nil");
    let folders: Vec<&str> =
        done["folders"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    for folder in ["projects", "p", "chats"] {
        assert!(folders.iter().any(|it| it.ends_with(folder)), "{folder}: {folders:?}");
    }
    let listed = client.ok("list-sessions", "nil");
    assert_eq!(
        (&listed[0]["agent"], &listed[0]["last_words"]),
        (&"qwen".into(), &"Which port?".into())
    );
    client.end();
}
