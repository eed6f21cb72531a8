//! Servers that are in a bad state: whoever asks is told which one, and what to do.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::skips::skipped;
use crate::support::*;

/// The owner of a state folder whose server is not ours.
struct Owner {
    home: Home,
    _lock: File,
}

impl Owner {
    /// Listens in place of a server. `answer` is given each line that a client sends, and what it
    /// returns is sent back. Without it, the connections are not even accepted.
    fn new(answer: Option<fn(&Json) -> Json>) -> Self {
        let home = Home::new();
        let socket = home.path("s.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        std::fs::create_dir_all(home.state()).unwrap();
        let lock = File::create(home.state().join("lock")).unwrap();
        lock.try_lock().unwrap();
        let note = format!("{}\n{}\n", std::process::id(), socket.display());
        std::fs::write(home.state().join("server"), note).unwrap();
        std::thread::spawn(move || match answer {
            None => std::mem::forget(listener),
            Some(answer) => {
                for stream in listener.incoming().flatten() {
                    std::thread::spawn(move || converse(&stream, answer));
                }
            }
        });
        Self { home, _lock: lock }
    }

    /// What each way to ask the server says of it: the doctor, a call and a hook.
    fn said(&self) -> [String; 3] {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let call = self.home.run(&["call", "ping", "--json"]);
        let mut hook = self.home.command(&["hook", "claude", "UserPromptSubmit"]);
        let mut hook = hook.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let event = json!({ "session_id": "one" }).to_string();
        hook.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
        let doctor = self.home.run(&["doctor"]);
        assert!(!doctor.status.success());
        let hook = hook.wait_with_output().unwrap();
        assert!(hook.status.success(), "the agent goes on");
        [text(doctor.stdout), text(call.stderr), text(hook.stderr)]
    }
}

fn converse(mut stream: &UnixStream, answer: fn(&Json) -> Json) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let reply = answer(&serde_json::from_str(&line).unwrap());
        let _ = writeln!(stream, "{reply}");
    }
}

#[test]
fn a_server_that_says_nothing_is_told_from_one_that_answers() {
    let owner = Owner::new(None);
    let pid = std::process::id();
    for said in owner.said() {
        let told = format!("the server (process {pid}) does not answer on ");
        assert!(said.contains(&told) && said.contains(" within 2 s"), "{said}");
        assert!(said.contains(&format!("`kill {pid}`")), "{said}");
    }
}

#[test]
fn a_server_of_another_version_is_named_with_both_versions() {
    let owner = Owner::new(Some(|call| match call["method"].as_str().unwrap() {
        "ping" => json!({ "id": call["id"], "result": "pong" }),
        "initialize" => json!({ "id": call["id"], "result": { "version": "9.9.9\u{1b}" } }),
        _ => json!({ "id": call["id"], "error": { "code": 1, "message": "no" } }),
    }));
    for said in owner.said() {
        assert!(said.contains("is version 9.9.9"), "{said}");
        assert!(said.contains(env!("CARGO_PKG_VERSION")) && !said.contains('\u{1b}'), "{said}");
        assert!(said.contains("contexture call shutdown"), "{said}");
    }
}

/// Sends a signal to a server.
fn signal(server: &Listening, name: &str) {
    let pid = server.process.child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn a_stopped_server_is_told_with_what_resumes_it() {
    let home = Home::new();
    let server = home.listening(&[]);
    signal(&server, "-STOP");
    let resume = format!("`kill -CONT {}`", server.process.child.id());
    let doctor = home.run(&["doctor"]);
    assert!(!doctor.status.success());
    for said in [String::from_utf8(doctor.stdout).unwrap(), home.fail(&["call", "ping"])] {
        assert!(said.contains("is stopped") && said.contains(&resume), "{said}");
    }
    signal(&server, "-CONT");
    assert!(home.succeed(&["doctor"]).contains("a server is running"));
}

#[test]
fn a_folder_for_sockets_whose_path_is_too_long_is_found_by_the_doctor() {
    let home = Home::new();
    let long = home.path(&"x".repeat(90));
    std::fs::create_dir(&long).unwrap();
    let output = home.command(&["doctor"]).env("XDG_RUNTIME_DIR", &long).output().unwrap();
    assert!(!output.status.success());
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("at most 1") && report.contains("XDG_RUNTIME_DIR"), "{report}");
}

/// User whose folders a test makes.
const NOBODY: u32 = 65534;

/// Gives a new folder to another user, if this user may do so.
fn given(folder: PathBuf) -> bool {
    std::fs::create_dir_all(&folder).unwrap();
    chown(&folder, Some(NOBODY), None).is_ok()
}

#[test]
fn a_folder_of_another_user_is_named_with_the_command_that_mends_it() {
    let home = Home::new();
    if !given(home.state()) {
        return skipped("only the superuser may give folders away");
    }
    let output = home.run(&["doctor"]);
    assert!(!output.status.success());
    let told = [String::from_utf8(output.stdout).unwrap(), home.fail(&["serve", "--stdio"])];
    for said in told {
        assert!(said.contains("belongs to user 65534"), "{said}");
        assert!(said.contains("`sudo chown -R 0 "), "{said}");
    }
}

#[test]
fn a_server_leaves_nothing_in_the_home_of_another_user() {
    let home = Home::new();
    if !given(home.path("theirs")) {
        return skipped("only the superuser may give folders away");
    }
    let state = home.path("theirs/.local/state");
    for args in [&["serve", "--stdio"][..], &["call", "ping"]] {
        let mut command = home.command(args);
        let output = command.env("XDG_STATE_HOME", &state).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("belongs to user 65534"), "{said}");
    }
    assert!(std::fs::read_dir(home.path("theirs")).unwrap().next().is_none());
}

#[test]
fn an_agent_is_told_that_the_server_is_stopped() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut agent = crate::mcp::Agent::with(&home, &[]);
    agent.tool("context", json!({}));
    signal(&server, "-STOP");
    let (said, is_error) = agent.result("context", &json!({}));
    assert!(is_error && said.contains("does not answer"), "{said}");
    signal(&server, "-CONT");
    agent.tool("context", json!({}));
}
