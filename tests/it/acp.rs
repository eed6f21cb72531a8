//! `contexture acp`: every byte goes through as it is, a session gets our server, a prompt gets what
//! changed, once, whatever is killed; and whatever goes wrong, client and agent go on.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::hook::{layer, project};
use crate::skips::skipped;
use crate::support::*;

/// A client and an agent, both played by the test, with the proxy between them.
pub(crate) struct Pair {
    proxy: Process,
    client_in: BufReader<ChildStdout>,
    client_out: Option<ChildStdin>,
    agent_in: BufReader<File>,
    agent_out: Option<File>,
    last: u64,
}

impl Pair {
    /// Starts the proxy, with an agent that passes all on to the test.
    pub(crate) fn start(home: &Home) -> Self {
        let pipes = ["to-agent", "from-agent"].map(|name| home.path(name));
        for pipe in &pipes {
            let _ = std::fs::remove_file(pipe);
            make_fifo(pipe);
        }
        let [to, from] = &pipes;
        let script = format!("exec 3<&0; cat <&3 >{to:?} & exec cat {from:?}");
        let mut command = home.command(&["acp", "--", "sh", "-c", &script]);
        command.stdin(Stdio::piped()).current_dir(project(home));
        let mut proxy = Process::start(command);
        Self {
            client_in: BufReader::new(proxy.child.stdout.take().unwrap()),
            client_out: proxy.child.stdin.take(),
            proxy,
            agent_in: BufReader::new(File::open(to).unwrap()),
            agent_out: Some(File::options().write(true).open(from).unwrap()),
            last: 0,
        }
    }

    /// Lets the client say a line. Gives the line that the agent gets.
    pub(crate) fn client_says(&mut self, line: &str) -> String {
        self.client_out.as_ref().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut got = String::new();
        self.agent_in.read_line(&mut got).unwrap();
        got.strip_suffix('\n').unwrap().to_owned()
    }

    /// Lets the agent say a message, which the client must get as it is.
    #[track_caller]
    pub(crate) fn agent_says(&mut self, message: &Json) {
        let line = format!("{message}\n");
        self.agent_out.as_ref().unwrap().write_all(line.as_bytes()).unwrap();
        let mut got = String::new();
        self.client_in.read_line(&mut got).unwrap();
        assert_eq!(got, line);
    }

    /// Lets the client send a request. Gives the request that the agent gets.
    fn ask(&mut self, method: &str, params: &Json) -> Json {
        self.last += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        serde_json::from_str(&self.client_says(&request.to_string())).unwrap()
    }

    fn answer(&mut self, result: &Json) {
        self.agent_says(&json!({ "jsonrpc": "2.0", "id": self.last, "result": result }));
    }

    pub(crate) fn initialize(&mut self, is_embedded: bool) {
        self.ask("initialize", &json!({ "protocolVersion": 1 }));
        let can = json!({ "promptCapabilities": { "embeddedContext": is_embedded } });
        self.answer(&json!({ "agentInfo": { "name": "played" }, "agentCapabilities": can }));
    }

    /// Opens a session in the project. Gives the request that the agent gets.
    fn open(&mut self, home: &Home, session: &str) -> Json {
        let params = json!({ "cwd": project(home), "mcpServers": [] });
        let got = self.ask("session/new", &params);
        self.answer(&json!({ "sessionId": session }));
        got
    }

    /// Sends a prompt. Gives the blocks that were added to it.
    fn sent(&mut self, session: &str) -> Vec<Json> {
        let own = json!({ "type": "text", "text": "x" });
        let got = self.ask("session/prompt", &json!({ "sessionId": session, "prompt": [own] }));
        let blocks = got["params"]["prompt"].as_array().unwrap();
        assert_eq!(blocks[0], own);
        blocks[1..].to_vec()
    }

    /// Sends prompts until something is added. The server may be too slow for a prompt.
    fn given(&mut self, session: &str) -> Vec<Json> {
        let mut added = Vec::new();
        until("something is added", || {
            added = self.sent(session);
            if added.is_empty() {
                self.answer(&json!({ "stopReason": "end_turn" }));
            }
            !added.is_empty()
        });
        added
    }

    /// Sends a prompt, which the agent answers. Gives the text that was added to it.
    fn prompt(&mut self, session: &str) -> String {
        let added = self.sent(session);
        self.answer(&json!({ "stopReason": "end_turn" }));
        text(&added)
    }

    /// Ends client and agent.
    pub(crate) fn end(mut self) {
        self.client_out = None;
        self.agent_in.read_to_end(&mut Vec::new()).unwrap();
        self.agent_out = None;
        assert!(self.proxy.wait().success());
    }
}

fn text(added: &[Json]) -> String {
    let text = |block: &Json| match &block["resource"]["text"] {
        Json::String(text) => text.clone(),
        _ => block["text"].as_str().unwrap_or_default().to_owned(),
    };
    added.iter().map(text).collect()
}

/// Runs a program behind the proxy, with these bytes as its input.
fn through(home: &Home, agent: &[&str], input: &[u8]) -> Output {
    let mut command = home.command(&[&["acp", "--"][..], agent].concat());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The program may end before it has read all.
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

#[test]
fn ten_thousand_random_lines_pass_as_they_are() {
    let home = Home::new();
    let mut random = Random(7);
    let mut lines = Vec::new();
    let words: [&[u8]; 12] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":1e400,",
        b"\"method\":\"session/prompt\",",
        b"\"method\":\"session/new\",\"params\":{\"cwd\":7}}",
        b"\"params\":{\"sessionId\":\"a\",\"prompt\":[{}]}}",
        b"\"params\":{\"sessionId\":\"\\ud800\",\"update\":{\"sessionUpdate\":\"plan\"}}}",
        b"{\"id\":1,\"result\":{\"sessionId\":\"../../x\"}}",
        b"\xff\xfe\x00",
        b"\r",
        b"{}",
        b" \t",
        "λ\u{202e}".as_bytes(),
        b"[[[[",
    ];
    for _ in 0..10_000 {
        for _ in 0..random.below(5) {
            lines.extend_from_slice(words[random.below(words.len())]);
        }
        lines.push(b'\n');
    }
    lines.extend_from_slice(b"no end");
    let output = through(&home, &["cat"], &lines);
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), lines.len());
    assert!(output.stdout == lines);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_line_of_a_hundred_megabytes_passes_in_little_memory() {
    let home = Home::new();
    let mut command = home.command(&["acp", "--", "cat"]);
    let mut proxy = Process::start({
        command.stdin(Stdio::piped());
        command
    });
    let mut to = proxy.child.stdin.take().unwrap();
    let mut from = BufReader::new(proxy.child.stdout.take().unwrap());
    let writing = std::thread::spawn(move || {
        let part = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            to.write_all(&part).unwrap();
        }
        to.write_all(b"\nend\n").unwrap();
        to
    });
    let mut part = vec![0; 1 << 20];
    for _ in 0..100 {
        from.read_exact(&mut part).unwrap();
        assert!(part.iter().all(|byte| *byte == b'x'));
    }
    let mut rest = vec![0; 5];
    from.read_exact(&mut rest).unwrap();
    assert_eq!(rest, b"\nend\n");
    // Two lines of the largest size that is read, and the program itself.
    assert!(proxy.peak_memory() < 160 << 20, "{}", proxy.peak_memory());
    drop(writing.join().unwrap());
    assert!(proxy.wait().success());
}

#[test]
fn the_end_of_the_agent_is_passed_on() {
    let home = Home::new();
    let output = through(&home, &["sh", "-c", "cat; echo oops >&2; exit 7"], b"a");
    assert_eq!((output.status.code(), &*output.stdout), (Some(7), &b"a"[..]));
    assert_eq!(output.stderr, b"oops\n");
    let output = through(&home, &["sh", "-c", "kill -9 $$"], &vec![b'x'; 1 << 20]);
    assert_eq!(output.status.code(), Some(137));
    let output = through(&home, &["no-such-agent"], b"");
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot start no-such-agent"));
}

#[test]
fn signals_and_closed_pipes_are_passed_on() {
    let home = Home::new();
    let script = "trap 'kill $!; exit 9' TERM; sleep 60 >/dev/null 2>&1 & echo ready; wait";
    let mut proxy = Process::start(home.command(&["acp", "--", "sh", "-c", script]));
    let mut from = BufReader::new(proxy.child.stdout.take().unwrap());
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.wait().code(), Some(9));
    // An agent that closes its output and its input, and goes on.
    let script =
        "echo a; exec >/dev/null </dev/null; echo $$ >pid; while test -e pid; do sleep 0.01; done";
    let mut command = home.command(&["acp", "--", "sh", "-c", script]);
    let mut proxy = Process::start({
        command.stdin(Stdio::piped());
        command
    });
    let mut all = String::new();
    proxy.child.stdout.take().unwrap().read_to_string(&mut all).unwrap();
    assert_eq!(all, "a\n");
    let mut to = proxy.child.stdin.take().unwrap();
    until("nobody reads", || to.write_all(b"x\n").is_err());
    assert!(proxy.is_running());
    std::fs::remove_file(home.file("pid")).unwrap();
    assert!(proxy.wait().success());
}

#[test]
fn a_session_gets_our_server_and_nothing_else_changes() {
    let home = Home::new();
    let mut pair = Pair::start(&home);
    let program = env!("CARGO_BIN_EXE_contexture");
    let line = r#"{"id":"n", "params":{"mcpServers":[{"name":"a","x":1.50}],"cwd":"/p","_meta":{"z":1e400,"a":[ ]}},"method":"session/new"}"#;
    let server = json!({ "name": "contexture", "command": program,
        "args": ["mcp", "--project", "/p"], "env": [] });
    let expected = line.replace("}],\"cwd\"", &format!("}},{server}],\"cwd\""));
    assert_eq!(pair.client_says(line), expected);
    for method in ["load", "resume", "fork"] {
        let line = line.replace("session/new", &format!("session/{method}"));
        assert_eq!(
            pair.client_says(&line),
            expected.replace("session/new", &format!("session/{method}"))
        );
    }
    let there = line.replace("\"name\":\"a\"", "\"name\":\"contexture\"");
    assert_eq!(pair.client_says(&there), there);
    let other = line.replace("session/new", "session/list");
    assert_eq!(pair.client_says(&other), other);
    pair.end();
}

#[test]
fn a_prompt_gets_what_changed_and_nothing_twice() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    let mut pair = Pair::start(&home);
    pair.initialize(true);
    pair.open(&home, "one");
    assert_eq!(pair.prompt("one"), "");
    emacs.add(&manager, "the first \u{202e}mark");
    let added = pair.given("one");
    assert_eq!(added[0]["type"], "resource");
    assert_eq!(added[0]["resource"]["uri"], "contexture://marked");
    assert!(text(&added).contains("the first \\u{202e}mark"), "{added:?}");
    // The agent works on the prompt, and then fails.
    pair.agent_says(&json!({ "method": "session/update", "params": { "sessionId": "one",
        "update": { "sessionUpdate": "agent_message_chunk" } } }));
    let refused = json!({ "id": pair.last, "error": { "code": -1, "message": "no" } });
    pair.agent_says(&refused);
    assert_eq!(pair.prompt("one"), "");
    emacs.add(&manager, "the second mark");
    // The agent fails before it works on the prompt, and is cancelled before that.
    assert!(text(&pair.given("one")).contains("second"));
    let refused = json!({ "id": pair.last, "error": { "code": -1, "message": "no" } });
    pair.agent_says(&refused);
    assert!(text(&pair.given("one")).contains("second"));
    pair.answer(&json!({ "stopReason": "cancelled" }));
    // A second prompt that does not wait for the first.
    let added = text(&pair.given("one"));
    assert!(added.contains("second") && !added.contains("first"), "{added}");
    assert_eq!(pair.prompt("one"), "");
    assert_eq!(pair.prompt("one"), "");
    // Another session has been given nothing, and one that nobody opened gets nothing.
    pair.open(&home, "two");
    assert!(text(&pair.given("two")).contains("first"));
    pair.answer(&json!({ "stopReason": "end_turn" }));
    for strange in ["three", "../../x", &"x".repeat(1_000)] {
        assert_eq!(pair.prompt(strange), "");
    }
    pair.end();
    // A session that is loaded has what it was given, also by another proxy.
    let mut pair = Pair::start(&home);
    pair.initialize(false);
    let params = json!({ "cwd": project(&home), "mcpServers": [], "sessionId": "two" });
    pair.ask("session/load", &params);
    pair.answer(&Json::Null);
    assert_eq!(pair.prompt("two"), "");
    emacs.add(&manager, "the third mark");
    let added = pair.given("two");
    assert_eq!(added[0]["type"], "text");
    assert!(text(&added).contains("third") && !text(&added).contains("first"), "{added:?}");
    pair.end();
}

#[test]
fn a_server_that_does_not_answer_holds_no_prompt_up() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let mut pair = Pair::start(&home);
    pair.open(&home, "one");
    server.process.signal(Signal::STOP);
    let asked = std::time::Instant::now();
    assert_eq!(pair.prompt("one"), "");
    assert!(asked.elapsed() < PATIENCE / 4);
    server.process.signal(Signal::CONT);
    until("the mark comes", || pair.prompt("one").contains("the mark"));
    assert_eq!(pair.prompt("one"), "");
    pair.end();
}

#[test]
fn without_a_state_folder_the_agent_runs() {
    let home = Home::new();
    let file = home.write("file", "x");
    let mut command = home.command(&["acp", "--state", &file, "--config", "/none", "--", "cat"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let lines = b"{\"id\":1,\"method\":\"session/prompt\",\"params\":{\"prompt\":[]}}\n";
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, lines);
}

#[test]
fn a_server_killed_at_any_moment_of_a_prompt_neither_repeats_nor_loses_a_push() {
    let home = Home::new();
    let mut given = Vec::new();
    let loaded = |pair: &mut Pair| {
        let params = json!({ "cwd": project(&home), "mcpServers": [], "sessionId": "one" });
        pair.ask("session/load", &params);
        pair.answer(&Json::Null);
    };
    for round in 0..10_u64 {
        let mut server = home.listening(&[]);
        let mut emacs = server.unix(Dialect::Native);
        let manager = layer(&mut emacs, &home);
        emacs.add(&manager, &format!("mark-{round}-"));
        let mut pair = Pair::start(&home);
        loaded(&mut pair);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(round));
            server.process.kill();
        });
        given.push(pair.prompt("one"));
        killer.join().unwrap();
        pair.end();
    }
    let _server = home.listening(&[]);
    let mut pair = Pair::start(&home);
    loaded(&mut pair);
    until("all marks came", || {
        given.push(pair.prompt("one"));
        (0..10).all(|round| given.concat().contains(&format!("mark-{round}-")))
    });
    pair.end();
    let all = given.concat();
    for round in 0..10 {
        assert_eq!(all.matches(&format!("mark-{round}-")).count(), 1, "{round}: {given:#?}");
    }
}

#[test]
fn hooks_of_an_agent_behind_the_proxy_give_nothing_twice() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let program = env!("CARGO_BIN_EXE_contexture");
    let event = b"{\"session_id\": \"one\"}";
    let hook = [program, "hook", "claude", "UserPromptSubmit"];
    let mut command = home.command(&[&["acp", "--"][..], &hook].concat());
    command.stdin(Stdio::piped()).current_dir(project(&home));
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(event).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
}

#[test]
fn opencode_itself_gets_the_same_bytes() {
    let Some(opencode) = std::env::var_os("OPENCODE") else {
        return skipped("OPENCODE names no program of OpenCode");
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/session.py");
    let mut python = Command::new("python3");
    let output = python.args([script, env!("CARGO_BIN_EXE_contexture")]).arg(opencode).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The sessions of the server, without their messages.
fn sessions(emacs: &mut Client) -> Vec<Json> {
    emacs.ok("list-sessions", "nil").as_array().cloned().unwrap_or_default()
}

/// Waits until the recorded session has so many messages. Gives them.
fn recorded(emacs: &mut Client, count: u64) -> Vec<Json> {
    let mut id = String::new();
    until("the session is recorded", || {
        let all = sessions(emacs);
        let is_it = |it: &&Json| it["messages"].as_u64() == Some(count);
        id =
            all.iter().find(is_it).map_or_else(String::new, |it| it["id"].as_str().unwrap().into());
        !id.is_empty()
    });
    let messages = emacs.ok("get-messages", &format!("(:session \"{id}\" :view :log)"));
    messages.as_array().unwrap().clone()
}

impl Pair {
    fn update(&mut self, session: &str, update: Json) {
        let params = json!({ "sessionId": session, "update": update });
        self.agent_says(&json!({ "method": "session/update", "params": params }));
    }

    fn chunk(&mut self, session: &str, text: &str) {
        let content = json!({ "type": "text", "text": text });
        self.update(session, json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
    }

    /// Plays a turn with a call in two sentences.
    fn turn(&mut self, session: &str) {
        self.sent(session);
        self.chunk(session, "I ");
        self.chunk(session, "look.");
        self.update(session, json!({ "sessionUpdate": "agent_thought_chunk" }));
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "kind": "execute",
            "rawInput": { "command": "ls" } });
        self.update(session, call);
        let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t",
            "status": "completed", "rawOutput": "a.rs" });
        self.update(session, done);
        let told = json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100 });
        self.update(session, told);
        self.chunk(session, "One file.");
        let usage = json!({ "inputTokens": 7, "outputTokens": 3, "totalTokens": 10 });
        self.answer(&json!({ "stopReason": "end_turn", "usage": usage }));
    }

    fn load(&mut self, home: &Home, session: &str) {
        let params = json!({ "cwd": project(home), "mcpServers": [], "sessionId": session });
        self.ask("session/load", &params);
    }
}

#[test]
fn a_session_is_recorded_once_with_its_usage_and_the_items_that_went_along() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "the mark");
    let mut pair = Pair::start(&home);
    pair.initialize(true);
    pair.open(&home, "one/../..");
    pair.turn("one/../..");
    let messages = recorded(&mut emacs, 4);
    let said: Vec<&str> = messages.iter().map(|it| it["content"].as_str().unwrap()).collect();
    // What was added to the prompt is no part of what the user said.
    assert_eq!(said, ["x", "I look.", "a.rs", "One file."]);
    assert_eq!(messages[1]["tool_calls"][0]["name"], "execute");
    let all = sessions(&mut emacs);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["project"], project(&home).to_str().unwrap());
    let id = all[0]["id"].as_str().unwrap();
    let usage = emacs.ok("session-report", &format!("(:session \"{id}\" :windows 50)"));
    let text = usage.to_string();
    assert!(text.contains("\"input\":7") && text.contains("\"output\":3"), "{text}");
    until("the item is marked as sent", || {
        let agents = emacs.ok("list-agents", "nil");
        agents["sent"][0]["agent_session"] == "one/../.." && agents["sent"][0]["agent"] == "played"
    });
    pair.end();
    // What the agent repeats of a session that is loaded is not recorded again.
    let mut pair = Pair::start(&home);
    pair.initialize(true);
    pair.load(&home, "one/../..");
    pair.chunk("one/../..", "I look.");
    pair.answer(&Json::Null);
    pair.turn("one/../..");
    recorded(&mut emacs, 8);
    assert_eq!(sessions(&mut emacs).len(), 1);
    pair.end();
}

#[test]
fn a_session_is_recorded_without_a_server_and_not_at_all_if_it_is_not_to_be() {
    let home = Home::new();
    let mut pair = Pair::start(&home);
    pair.initialize(false);
    pair.open(&home, "one");
    pair.turn("one");
    pair.end();
    let recordings = home.state().join("acp");
    let mut server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let folder = quoted(recordings.to_str().unwrap());
    emacs.ok("import-sessions", &format!("(:paths ({folder}))"));
    assert_eq!(recorded(&mut emacs, 4).len(), 4);
    // A server that hangs holds no turn up, and gets the session later.
    server.process.signal(Signal::STOP);
    let mut pair = Pair::start(&home);
    pair.initialize(false);
    pair.open(&home, "two");
    pair.turn("two");
    server.process.signal(Signal::CONT);
    pair.turn("two");
    assert_eq!(recorded(&mut emacs, 8).len(), 8);
    pair.end();
    server.process.kill();
    let files = || std::fs::read_dir(&recordings).unwrap().count();
    assert_eq!(files(), 2);
    let prompt = json!({ "id": 1, "method": "session/prompt", "params": {
        "sessionId": "s", "prompt": [] } });
    let mut command = home.command(&["acp", "--no-record", "--", "cat"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let opened =
        "{\"id\":0,\"method\":\"session/load\",\"params\":{\"cwd\":\"/\",\"sessionId\":\"s\"}}";
    let lines = format!("{opened}\n{prompt}\n{{\"id\":1,\"result\":{{}}}}\n");
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(files(), 2);
}
