//! `contexture hook`: an agent is given what changed, once, whatever is killed; and whatever goes
//! wrong, the agent goes on.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use crate::support::*;

/// The project of the tests.
pub(crate) fn project(home: &Home) -> PathBuf {
    let root = home.file("app");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    root
}

/// The manager of the project's layer.
pub(crate) fn layer(client: &mut Client, home: &Home) -> String {
    client.layer(&project(home))
}

/// Runs the hook with these bytes as its event. Gives its standard output, and its log.
#[track_caller]
fn run(home: &Home, args: &[&str], event: &[u8]) -> (String, String) {
    let mut command = home.command(&[&["hook"][..], args].concat());
    command.current_dir(project(home)).stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The hook may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(event);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// What the hook adds to a session of an agent; empty if nothing.
#[track_caller]
fn given(home: &Home, agent: &str, event: &str, session: &str, source: &str) -> String {
    let input = json!({ "session_id": session, "cwd": "/", "source": source, "prompt": "x" });
    let (out, log) = run(home, &[agent, event], input.to_string().as_bytes());
    assert_eq!(log, "");
    if out.is_empty() {
        return out;
    }
    assert!(out.len() <= 10_000, "{}", out.len());
    assert!(!out.trim_end().chars().any(char::is_control), "{out:?}");
    let answer: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], event);
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

/// What a prompt of Claude Code gets.
#[track_caller]
fn prompted(home: &Home, session: &str) -> String {
    given(home, "claude", "UserPromptSubmit", session, "")
}

#[test]
fn what_is_no_longer_marked_is_told_beside_what_is_too_long() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    let first = emacs.add(&manager, "the first mark");
    assert!(prompted(&home, "one").contains("the first mark"));
    emacs.ok("remove-items", &format!("(:ids ({first:?}) :manager {manager:?})"));
    // A line of this length cannot be shown in part.
    emacs.add(&manager, &"word ".repeat(20_000));
    let text = prompted(&home, "one");
    assert!(text.contains(&format!("No longer marked: {first}")), "{text}");
}

#[test]
fn an_event_is_answered_when_its_json_is_complete() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let mut command = home.command(&["hook", "claude", "UserPromptSubmit"]);
    let mut child =
        command.current_dir(project(&home)).stdin(std::process::Stdio::piped()).spawn().unwrap();
    // The pipe stays open until the hook has ended.
    let mut pipe = child.stdin.take().unwrap();
    let event = br#"{"session_id": "one", "prompt": "a } in a text"}"#;
    for part in event.chunks(20) {
        pipe.write_all(part).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(pipe);
    assert!(String::from_utf8(output.stdout).unwrap().contains("the mark"));
}

#[test]
fn an_event_is_understood_however_it_is_written() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let mut session = 100;
    let mut written = |way: usize, before: &str, after: &str| {
        session += 1;
        let text = match way {
            0 => format!(r#"{{"session_id": "s{session}", "prompt": "x"}}"#),
            1 => format!(r#"{{"session_id": "other", "prompt": "x", "session_id": "s{session}"}}"#),
            2 => format!(
                r#"{{"prompt": "\ud83d", "cwd": 7, "source": {{}}, "session_id": "s{session}"}}"#
            ),
            3 => format!("{{\n  \"session_id\":\n    \"s{session}\"\n}}"),
            4 => format!(r#"{{"session_id": {session}}}"#),
            _ => format!(r#"{{"session_id": {session}.0, "more": [[{{}}]]}}"#),
        };
        format!("{before}{text}{after}")
    };
    for way in 0..6 {
        for (before, after) in
            [("", ""), ("\u{feff}", ""), (" \r\n", "\r\n"), ("", "\n{}"), ("", "\nrest")]
        {
            let event = written(way, before, after);
            for expected in [true, false] {
                let (out, log) = run(&home, &["claude", "UserPromptSubmit"], event.as_bytes());
                assert_eq!((out.contains("the mark"), &*log), (expected, ""), "{event}");
            }
        }
    }
    let event = b"{\"prompt\": \"\xff\", \"session_id\": \"bytes\"}";
    assert!(run(&home, &["claude", "UserPromptSubmit"], event).0.contains("the mark"));
}

#[test]
fn the_folder_that_the_agent_names_counts_and_not_where_a_command_went() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    // A repository within the project is a project of its own.
    let vendor = project(&home).join("vendor/lib");
    std::fs::create_dir_all(vendor.join(".git")).unwrap();
    for (agent, event, variable) in [
        ("claude", "UserPromptSubmit", "CLAUDE_PROJECT_DIR"),
        ("gemini", "BeforeAgent", "GEMINI_PROJECT_DIR"),
    ] {
        let first = given(&home, agent, event, "one", "");
        assert!(first.contains("the mark"), "{first}");
        let mut command = home.command(&["hook", agent, event]);
        command.current_dir(&vendor).env(variable, project(&home));
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let input = json!({ "session_id": "one", "cwd": vendor, "prompt": "x" }).to_string();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{agent}: nothing was unmarked");
    }
}

#[test]
fn a_session_is_given_what_changed_and_nothing_twice() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    assert_eq!(prompted(&home, "one"), "");
    let first = emacs.add(&manager, "the first mark");
    emacs.add(&manager, "the \u{1b}[31msecond\u{202e} mark");
    let text = prompted(&home, "one");
    assert!(text.contains("the first mark") && text.contains("\\u{1b}[31msecond"), "{text}");
    assert_eq!(prompted(&home, "one"), "");
    emacs.ok("update-items", &format!("(:id {first:?} :manager {manager:?} :content \"changed\")"));
    let text = prompted(&home, "one");
    assert!(text.contains("changed") && !text.contains("second"), "{text}");
    emacs.ok("remove-items", &format!("(:ids ({first:?}) :manager {manager:?})"));
    let text = prompted(&home, "one");
    assert!(text.contains(&format!("No longer marked: {first}")), "{text}");
    assert_eq!(prompted(&home, "one"), "");
    // Another session, and the same id with another agent, have been given nothing yet.
    assert!(prompted(&home, "two").contains("second"));
    assert!(given(&home, "gemini", "BeforeAgent", "one", "").contains("second"));
    assert!(given(&home, "codex", "UserPromptSubmit", "one", "").contains("second"));
    assert_eq!(given(&home, "gemini", "BeforeAgent", "one", ""), "");
    assert_eq!(given(&home, "claude", "SessionStart", "one", "resume"), "");
    assert_eq!(given(&home, "codex", "SessionStart", "one", "resume"), "");
    // Gemini CLI does not keep what hooks added.
    assert!(given(&home, "gemini", "SessionStart", "one", "resume").contains("second"));
    assert_eq!(given(&home, "gemini", "BeforeAgent", "one", ""), "");
    assert!(given(&home, "claude", "SessionStart", "one", "clear").contains("second"));
    assert_eq!(prompted(&home, "one"), "");
}

#[test]
fn gemini_is_given_the_items_again_after_a_compaction_that_the_user_asked_for() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let compacts = |trigger: &str| {
        let event = json!({ "session_id": "one", "trigger": trigger }).to_string();
        assert_eq!(run(&home, &["gemini", "PreCompress"], event.as_bytes()).0, "");
    };
    let prompted = || given(&home, "gemini", "BeforeAgent", "one", "");
    compacts("manual");
    assert!(prompted().contains("the mark"));
    // Gemini CLI says this before every prompt.
    compacts("auto");
    assert_eq!(prompted(), "");
    compacts("manual");
    assert!(prompted().contains("the mark"));
    assert_eq!(prompted(), "");
}

#[test]
fn a_compaction_does_not_write_what_a_running_hook_is_about_to_write() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    assert!(given(&home, "gemini", "BeforeAgent", "one", "").contains("the mark"));
    let mut receipts = std::fs::read_dir(home.path("run/contexture/pushed")).unwrap();
    let receipt = receipts.next().unwrap().unwrap().path();
    let before = std::fs::read_to_string(&receipt).unwrap();
    let running = std::fs::File::open(&receipt).unwrap();
    running.lock().unwrap();
    let event = b"{\"session_id\": \"one\", \"trigger\": \"manual\"}";
    let (_, log) = run(&home, &["gemini", "PreCompress"], event);
    assert!(log.contains("another hook of the session is still running"), "{log}");
    assert_eq!(std::fs::read_to_string(&receipt).unwrap(), before);
}

#[test]
fn hooks_that_run_at_once_give_it_once() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let events = ["SessionStart", "BeforeAgent", "BeforeAgent", "SessionStart"];
    let all = std::thread::scope(|scope| {
        let home = &home;
        let input = b"{\"session_id\": \"one\", \"source\": \"startup\"}";
        let start = |event| scope.spawn(move || run(home, &["gemini", event], input).0);
        events.map(start).map(|thread| thread.join().unwrap())
    });
    assert_eq!(all.concat().matches("the mark").count(), 1, "{all:?}");
}

#[test]
fn items_that_are_too_long_are_cut() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    for _ in 0..5 {
        emacs.add(&manager, &"\u{1}\"long\" words ".repeat(3_000));
    }
    assert!(prompted(&home, "one").contains("Cut or left out: "));
    assert_eq!(prompted(&home, "one"), "");
}

#[test]
fn facts_come_back_after_a_compaction() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let folder = home.path("home").join(".claude/projects/p");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |role: &str, text: &str| {
        let message = json!({ "role": role, "content": text });
        let line = json!({ "type": role, "sessionId": "s", "uuid": text, "cwd": project(&home),
            "timestamp": "2026-01-01T00:00:00.000Z", "message": message });
        format!("{line}\n")
    };
    let asked = line("user", "We decided: the port is 5433, in src/db/pool.rs.");
    let transcript = folder.join("s.jsonl");
    std::fs::write(&transcript, asked + &line("assistant", "I run `cargo test --lib`.")).unwrap();
    assert!(prompted(&home, "s").contains("the mark"));
    let event = json!({ "session_id": "s", "source": "compact", "transcript_path": transcript });
    let (out, _) = run(&home, &["claude", "SessionStart"], event.to_string().as_bytes());
    assert!(out.contains("src/db/pool.rs") && out.contains("the mark"), "{out}");
    assert_eq!(prompted(&home, "s"), "");
    assert_eq!(emacs.ok("list-sessions", "nil").as_array().unwrap().len(), 1);
}

#[test]
fn a_transcript_is_recorded_only_from_the_folder_of_its_agent() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let folder = home.path("home").join(".claude/projects/p");
    std::fs::create_dir_all(&folder).unwrap();
    let message = json!({ "role": "user", "content": "which port?" });
    let line = json!({ "type": "user", "sessionId": "s", "uuid": "u", "cwd": project(&home),
        "timestamp": "2026-01-01T00:00:00.000Z", "message": message });
    let outside = home.write("secret.jsonl", format!("{line}\n"));
    std::os::unix::fs::symlink(&outside, folder.join("link.jsonl")).unwrap();
    let recorded = |path: &std::path::Path, source: &str| {
        let event = json!({ "session_id": "s", "transcript_path": path, "source": source });
        run(&home, &["claude", "SessionStart"], event.to_string().as_bytes());
    };
    recorded(outside.as_ref(), "compact");
    recorded(&folder.join("link.jsonl"), "compact");
    recorded(&folder.join("../../../../secret.jsonl"), "compact");
    assert_eq!(emacs.ok("list-sessions", "nil").as_array().map_or(0, Vec::len), 0);
    std::fs::write(folder.join("s.jsonl"), format!("{line}\n")).unwrap();
    recorded(&folder.join("s.jsonl"), "startup");
    until("the transcript is recorded", || {
        emacs.ok("list-sessions", "nil").as_array().map_or(0, Vec::len) == 1
    });
}

#[test]
fn a_transcript_is_recorded_in_the_state_that_the_hook_names() {
    let home = Home::new();
    let folder = home.path("home").join(".claude/projects/p");
    std::fs::create_dir_all(&folder).unwrap();
    let transcript = folder.join("s.jsonl");
    let line = json!({ "type": "user", "sessionId": "s", "uuid": "u", "cwd": project(&home),
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": { "role": "user", "content": "which port?" } });
    std::fs::write(&transcript, format!("{line}\n")).unwrap();
    let event = json!({ "session_id": "s", "transcript_path": transcript }).to_string();
    let state = home.path("elsewhere/hook");
    let state = state.to_str().unwrap();
    run(&home, &["claude", "PreCompact", "--state", state], event.as_bytes());
    until("the transcript is recorded", || {
        home.succeed(&["--state", state, "call", "list-sessions"]).contains("which port?")
    });
    assert_eq!(home.succeed(&["call", "list-sessions"]), "nil\n");
}

#[test]
fn whatever_goes_wrong_the_agent_goes_on() {
    let home = Home::new();
    let long = vec![b'['; 100_000];
    let id = format!("{{\"session_id\": {:?}}}", "x".repeat(1_000));
    let events: [&[u8]; 10] = [
        b"",
        b"{}",
        b"[]",
        b"secret-1",
        b"{\"session_id\": null}",
        b"\xff\xfe{\0\"\0",
        b"{\"session_id\": \"a\\u001b\"}",
        b"{\"session_id\": \"secret-1 ",
        &long,
        id.as_bytes(),
    ];
    for event in events {
        let (out, log) = run(&home, &["claude", "UserPromptSubmit"], event);
        assert_eq!(out, "");
        assert!(log.contains("hook claude UserPromptSubmit"), "{log}");
        assert!(!log.contains("secret-1"), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
    let event = b"{\"session_id\": \"a\"}";
    for args in [&["nobody", "UserPromptSubmit"][..], &["claude"], &["claude", "x", "y"]] {
        let (out, log) = run(&home, args, event);
        assert_eq!(out, "", "{args:?}");
        assert!(!log.is_empty(), "{args:?}");
    }
    assert_eq!(run(&home, &["claude", "Unheard"], event).0, "");
    // A state folder that is none, and one that others may enter.
    let file = home.write("file", "x");
    let (out, log) = run(&home, &["claude", "UserPromptSubmit", "--state", &file], event);
    assert!(out.is_empty() && !log.is_empty(), "{out} {log}");
}

#[test]
fn a_killed_server_neither_repeats_nor_loses_a_push() {
    let home = Home::new();
    let mut server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the first mark");
    assert!(prompted(&home, "one").contains("first"));
    server.process.kill();
    // Without a server, the hook is one for as long as it takes.
    assert_eq!(prompted(&home, "one"), "");
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    emacs.add(&manager, "the second mark");
    // A hook that was killed after the server recorded the push, and before the agent had it.
    let had = emacs.ok("pushed-context", "(:agent \"claude\" :agent-session \"one\")");
    let number = had["number"].as_u64().unwrap();
    let lost = "(:agent \"claude\" :agent-session \"one\" :items ((:id \"x\" :digest \"y\"))";
    let lost = format!("{lost} :after {number})");
    emacs.ok("record-push", &lost);
    let text = prompted(&home, "one");
    assert!(text.contains("second") && !text.contains("first"), "{text}");
    assert_eq!(prompted(&home, "one"), "");
}

#[test]
fn a_server_killed_at_any_moment_of_a_hook_neither_repeats_nor_loses_a_push() {
    let home = Home::new();
    let mut given = Vec::new();
    for round in 0..12_u64 {
        let mut server = home.listening(&[]);
        let mut emacs = server.unix(Dialect::Native);
        let manager = layer(&mut emacs, &home);
        emacs.add(&manager, &format!("mark-{round}-"));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(round));
            server.process.kill();
        });
        let event = b"{\"session_id\": \"one\"}";
        given.push(run(&home, &["claude", "UserPromptSubmit"], event).0);
        killer.join().unwrap();
    }
    given.push(run(&home, &["claude", "UserPromptSubmit"], b"{\"session_id\": \"one\"}").0);
    let all = given.concat();
    for round in 0..12 {
        assert_eq!(all.matches(&format!("mark-{round}-")).count(), 1, "{round}: {given:#?}");
    }
}
