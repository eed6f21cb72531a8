//! The server for agents as clients see it that others wrote: the conformance suite and the command
//! line of the Inspector, which `scripts/mcp-clients` installs, and the official client for Python.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::agents_over_http::Site;
use crate::mcp::{Agent, project};
use crate::support::*;
use crate::tiers::may_use;

const CLIENTS: &str = "clients of MCP (scripts/mcp-clients)";

/// The folder into which `scripts/mcp-clients` installs, if it did, and if its clients are to run.
#[track_caller]
fn clients() -> Option<PathBuf> {
    let installed = installed();
    if may_use(CLIENTS, installed.is_some()) { installed } else { None }
}

fn installed() -> Option<PathBuf> {
    let cache = || {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))
    };
    let named = std::env::var_os("CONTEXTURE_MCP_CLIENTS").map(PathBuf::from);
    let folder = named.or_else(|| Some(cache()?.join("contexture/mcp-clients")))?;
    folder.join("node_modules/.bin/node").exists().then_some(folder)
}

/// Returns the command of a client from npm.
fn client(folder: &Path, home: &Home, name: &str) -> Command {
    let programs = folder.join("node_modules/.bin");
    let mut command = Command::new(programs.join("node"));
    command.arg(programs.join(name)).env_clear().env("HOME", home.path("home"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = [programs].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(first).unwrap());
    command.env("CONTEXTURE_TOKENIZER", "estimate").env("XDG_RUNTIME_DIR", home.path("home"));
    command.current_dir(project(home));
    command
}

/// Runs a client, which must succeed. Returns what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{said}\n{error}");
    said
}

/// Passes connections on to a site, and adds the token to the first request of each, since these
/// clients cannot. Returns its address.
fn relay(site: &Site) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = listener.local_addr().unwrap().to_string();
    let (host, honest, from) = (site.host.clone(), site.honest(), ours.clone());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (host, honest, from) = (host.clone(), honest.clone(), from.clone());
            std::thread::spawn(move || relayed(client?, &host, &honest, &from));
        }
    });
    ours
}

/// Passes one connection on, with one request.
fn relayed(client: TcpStream, host: &str, honest: &str, from: &str) -> std::io::Result<()> {
    let server = TcpStream::connect(host)?;
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut line, mut head) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        let lower = line.to_lowercase();
        if lower == format!("host: {from}\r\n") {
            head.push_str(honest);
        } else if !lower.starts_with("connection:") {
            head.push_str(&line.replace(from, host));
        }
        line.clear();
    }
    (&server).write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    let (mut back, mut answers) = (client, server.try_clone()?);
    std::thread::spawn(move || {
        // The client may have gone, too.
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    std::io::copy(&mut reader, &mut &server)?;
    server.shutdown(Shutdown::Write)
}

#[test]
fn the_conformance_suite_finds_what_a_server_without_its_samples_can_have() {
    let Some(folder) = clients() else { return };
    let home = Home::new();
    let site = Site::new(&home);
    let url = format!("http://{}/mcp?project={}", relay(&site), project(&home).display());
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/conformance.yml");
    let mut suite = client(&folder, &home, "conformance");
    suite.args(["server", "--url", &url, "--expected-failures"]).arg(expected);
    let said = run(&mut suite);
    for scenario in ["server-initialize", "ping", "tools-list", "server-sse-multiple-streams"] {
        assert!(said.contains(&format!("✓ {scenario}: ")), "{said}");
    }
    assert!(said.contains("✓ dns-rebinding-protection: 2 passed"), "{said}");
}

/// A call of every tool of a project where nothing is marked, and a part of its answer.
fn calls() -> Vec<Json> {
    let Json::Array(calls) = read_json(include_str!("../mcp/calls.json")) else { panic!() };
    calls
}

/// The clients of others expect these answers, too. This test needs none of them.
#[test]
fn every_tool_answers_as_the_clients_expect() {
    let home = Home::new();
    let mut agent = Agent::with(&home, &[]);
    let listed = agent.ok("tools/list", &serde_json::json!({}));
    let tools = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]);
    let mut tools: Vec<&str> = tools.map(|name| name.as_str().unwrap()).collect();
    let mut called = Vec::new();
    for call in calls() {
        let params = serde_json::json!({ "name": call["tool"], "arguments": call["arguments"] });
        let said = agent.ok("tools/call", &params)["content"][0]["text"].take();
        let expected = call["says"].as_str().unwrap();
        assert!(said.as_str().unwrap().contains(expected), "{call}: {said}");
        called.push(call["tool"].as_str().unwrap().to_owned());
    }
    tools.sort_unstable();
    called.sort_unstable();
    assert_eq!(tools, called);
}

/// Calls every tool, and lists resources and prompts, by the Inspector with these arguments.
fn inspect(folder: &Path, home: &Home, server: &[&str]) {
    // It fails if a tool's answer is an error, as that of `handoff` is without a session.
    let ask = |arguments: &[&str]| {
        let mut inspector = client(folder, home, "mcp-inspector");
        let output = inspector.arg("--cli").args(server).args(arguments).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let tools = ask(&["--method", "tools/list"]);
    for call in calls() {
        let name = call["tool"].as_str().unwrap();
        assert!(tools.contains(&format!("\"name\": \"{name}\"")), "{tools}");
        let mut arguments = vec!["--method", "tools/call", "--tool-name", name];
        let given = call["arguments"].as_object().unwrap();
        let given: Vec<_> =
            given.iter().map(|(name, it)| format!("{name}={}", it.as_str().unwrap())).collect();
        arguments.extend(given.iter().flat_map(|it| ["--tool-arg", it]));
        let said = ask(&arguments);
        assert!(said.contains(call["says"].as_str().unwrap()), "{name}: {said}");
    }
    for (list, expected) in [("resources/list", "contexture://"), ("prompts/list", "handoff")] {
        let said = ask(&["--method", list]);
        assert!(said.contains(expected), "{list}: {said}");
    }
}

#[test]
fn the_inspector_uses_every_tool_over_stdio() {
    let Some(folder) = clients() else { return };
    let home = Home::new();
    let state = home.path("state");
    let server = [env!("CARGO_BIN_EXE_contexture"), "--state", state.to_str().unwrap(), "mcp"];
    inspect(&folder, &home, &server);
}

#[test]
fn the_inspector_uses_every_tool_over_http() {
    let Some(folder) = clients() else { return };
    let home = Home::new();
    let site = Site::new(&home);
    let url = format!("http://{}/mcp?project={}", relay(&site), project(&home).display());
    inspect(&folder, &home, &[&url, "--transport", "http"]);
}

#[test]
fn the_official_client_for_python_uses_every_tool_in_both_eras() {
    let Some(folder) = clients() else { return };
    let python = folder.join("python/bin/python3");
    let home = Home::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
    let mut python = Command::new(python);
    python.arg(script).arg(env!("CARGO_BIN_EXE_contexture")).arg(project(&home));
    python.arg(home.path("state")).env("HOME", home.path("home"));
    assert!(run(&mut python).contains("MCP: 7 tools in 2 eras"));
}
