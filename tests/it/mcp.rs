//! `contexture mcp`: raw lines of the Model Context Protocol over stdio, in both of its eras.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;

use crate::support::*;

/// Versions that begin with a handshake.
const WITH_SESSIONS: [&str; 3] = ["2024-11-05", "2025-03-26", "2025-06-18"];
/// The version whose requests stand alone.
const WITHOUT: &str = "2026-07-28";

/// An agent that speaks to the program.
pub(crate) struct Agent {
    pub(crate) client: Client,
    last: u64,
    /// What goes along with each request.
    meta: Option<Json>,
}

impl Agent {
    /// Starts the program in the folder of a project, and no conversation yet.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let mut all = vec!["mcp"];
        all.extend(args);
        let mut command = home.command(&all);
        command.current_dir(project(home));
        Self { client: Client::over_stdio(command, Dialect::Json), last: 0, meta: None }
    }

    /// Starts the program and shakes hands.
    pub(crate) fn with(home: &Home, args: &[&str]) -> Self {
        let mut agent = Self::start(home, args);
        let begun = agent.begin("2025-06-18", &json!({}));
        assert_eq!(begun["protocolVersion"], "2025-06-18");
        agent
    }

    pub(crate) fn begin(&mut self, version: &str, capabilities: &Json) -> Json {
        let begun = self.ok(
            "initialize",
            &json!({
                "protocolVersion": version, "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        begun
    }

    /// An agent whose requests stand alone.
    pub(crate) fn without_session(home: &Home) -> Self {
        let mut agent = Self::start(home, &[]);
        agent.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": WITHOUT,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        agent
    }

    pub(crate) fn say(&mut self, message: &Json) {
        self.client.write(format!("{message}\n").as_bytes());
    }

    pub(crate) fn send(&mut self, method: &str, params: &Json) -> u64 {
        self.last += 1;
        let mut params = params.clone();
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for a notification. Gives its parameters.
    #[track_caller]
    pub(crate) fn notification(&mut self, method: &str) -> Json {
        loop {
            let mut message: Json = serde_json::from_str(&self.client.line().unwrap()).unwrap();
            if message["method"] == method {
                return message["params"].take();
            }
        }
    }

    /// The answer to a request, with its result or error.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Json {
        loop {
            let message: Json = serde_json::from_str(&self.client.line().unwrap()).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    #[track_caller]
    pub(crate) fn ok(&mut self, method: &str, params: &Json) -> Json {
        let id = self.send(method, params);
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    #[track_caller]
    pub(crate) fn fails(&mut self, method: &str, params: &Json) -> String {
        let id = self.send(method, params);
        let answer = self.answer(id);
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// The text of a tool's result, and whether it is an error.
    #[track_caller]
    pub(crate) fn result(&mut self, tool: &str, arguments: &Json) -> (String, bool) {
        let result = self.ok("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (text, result["isError"] == true)
    }

    #[track_caller]
    pub(crate) fn tool(&mut self, tool: &str, arguments: Json) -> String {
        let (text, is_error) = self.result(tool, &arguments);
        assert!(!is_error, "{tool} {arguments}: {text}");
        text
    }

    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: Json) -> String {
        let (text, is_error) = self.result(tool, &arguments);
        assert!(is_error, "{tool} {arguments}: {text}");
        text
    }
}

/// The project of the tests, with a marker and a file.
pub(crate) fn project(home: &Home) -> PathBuf {
    let root = home.file("app");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::fs::create_dir_all(root.join("src")).unwrap();
    let file = root.join("src/port.rs");
    if !file.exists() {
        std::fs::write(file, "fn port() -> u16 {\n    8080\n}\n").unwrap();
    }
    root
}

/// The project as sessions and memories name it.
pub(crate) fn key(home: &Home) -> String {
    format!("{}/", project(home).canonicalize().unwrap().to_str().unwrap())
}

/// The manager of the project's layer.
pub(crate) fn layer(client: &mut Client, home: &Home) -> String {
    client.layer(&project(home))
}

fn revision(text: &str) -> u64 {
    let after = text.strip_prefix("revision ").unwrap_or_else(|| panic!("{text}"));
    after.split(' ').next().unwrap().parse().unwrap()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in: {text}"));
}

#[test]
fn every_version_of_the_protocol_has_the_tools() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "marked text");
    for version in WITH_SESSIONS {
        let mut agent = Agent::start(&home, &[]);
        let begun = agent.begin(version, &json!({}));
        assert_eq!(begun["protocolVersion"], version);
        assert_eq!(begun["serverInfo"]["name"], "contexture");
        check_tools(&mut agent);
    }
    let mut agent = Agent::without_session(&home);
    let found = agent.ok("server/discover", &json!({}));
    has(&found["supportedVersions"].to_string(), &[WITHOUT, "2024-11-05"]);
    check_tools(&mut agent);
}

fn check_tools(agent: &mut Agent) {
    let listed = agent.ok("tools/list", &json!({}));
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["context", "search", "read", "remember", "handoff", "explain", "map"]);
    for tool in listed["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["annotations"]["readOnlyHint"], tool["name"] != "remember");
    }
    has(&agent.tool("context", json!({})), &["marked text", "1 item · ", "tokens", "project app"]);
}

#[test]
fn an_agent_gets_what_is_marked_and_then_only_what_changed() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    let mut agent = Agent::with(&home, &[]);
    has(&agent.tool("context", json!({})), &["nothing is marked"]);
    let shared = emacs.add("*shared*", "for everything");
    emacs.add(&manager, "the first mark");
    let file = project(&home).join("src/port.rs");
    emacs.ok("add-file", &format!("(:path {file:?} :manager {} :live t)", quoted(&manager)));
    let text = agent.tool("context", json!({}));
    has(&text, &["3 items", "for everything", "the first mark", "8080"]);
    let since = revision(&text);
    let same = agent.tool("context", json!({ "since": since }));
    assert_eq!(same, format!("unchanged since revision {since} (0 tokens of items)\n"));
    // An item that is new, a file that changed on disk, and an item that is gone.
    emacs.add(&manager, "the second mark");
    std::fs::write(&file, "fn port() -> u16 {\n    9090\n}\n").unwrap();
    let text = agent.tool("context", json!({ "since": since }));
    has(&text, &["changes since", "2 items new or changed", "the second mark", "9090"]);
    assert!(!text.contains("the first mark"), "{text}");
    emacs.ok("remove-items", &format!("(:id {shared:?})"));
    let text = agent.tool("context", json!({ "since": revision(&text) }));
    has(&text, &["No longer marked: ctx-1", "0 tokens"]);
    let since = revision(&text);
    has(&agent.tool("context", json!({ "since": since })), &["unchanged since"]);
    // A revision that this process never gave.
    let text = agent.tool("context", json!({ "since": 999_999 }));
    has(&text, &["no longer known here", "the first mark", "the second mark"]);
}

#[test]
fn the_editor_sees_an_agent_and_sends_it_an_item_once() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    emacs.ok("subscribe", "(:topics (:agents-changed))");
    for is_of_today in [false, true] {
        let mut agent = match is_of_today {
            true => Agent::without_session(&home),
            false => Agent::with(&home, &[]),
        };
        if !is_of_today {
            assert_eq!(emacs.notification("agents-changed")["method"], "initialize");
        }
        has(&agent.tool("context", json!({})), &["revision"]);
        let shown = &emacs.ok("list-agents", "nil")["connected"][0];
        let root = key(&home);
        let expected =
            json!({ "name": "test", "version": "1", "project": root.trim_end_matches('/') });
        assert_eq!(*shown, expected);
        let id = emacs.add("elsewhere", "of another place");
        let since = revision(&agent.tool("context", json!({})));
        let wish = format!("(:id {id:?} :manager \"elsewhere\" :directory {root:?})");
        emacs.ok("push-next", &wish);
        let text = agent.tool("context", json!({ "since": since }));
        has(&text, &["unchanged since", "Sent by the user", "of another place"]);
        let text = agent.tool("context", json!({ "since": since }));
        assert!(!text.contains("another place"), "{text}");
        let session = emacs.ok("list-agents", "nil")["sessions"][0].take();
        assert_eq!((&session["agent"], &session["items"][0]["id"]), (&json!("test"), &json!(id)));
        drop(agent);
        until("the agent is gone", || is_nil(&emacs.ok("list-agents", "nil")["connected"]));
    }
}

#[test]
fn what_does_not_fit_is_named_and_explained() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    let mut agent = Agent::with(&home, &[]);
    let long = emacs.add(&manager, &"long ".repeat(2_000));
    emacs.add(&manager, "short");
    has(&agent.tool("explain", json!({})), &["shows 2 items in full"]);
    let text = agent.tool("context", json!({ "budget": 300 }));
    has(&text, &["short", "Cut or left out: ", &long]);
    let why = agent.tool("explain", json!({}));
    has(&why, &["1 of 2 items", &long, "tokens"]);
    has(&agent.tool("explain", json!({ "id": long })), &[&long]);
    agent.refused("explain", json!({ "id": "ctx-99" }));
    has(&agent.tool("read", json!({ "what": long })), &["long long"]);
    let error = agent.refused("context", json!({ "budget": 1 }));
    has(&error, &["token"]);
}

#[test]
fn sessions_and_memories_are_found_and_handed_over() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let mut agent = Agent::with(&home, &[]);
    has(&agent.refused("handoff", json!({})), &["no session"]);
    let key = key(&home);
    emacs.ok("open-session", &format!("(:name \"port work\" :project {key:?})"));
    emacs.ok("add-message", "(:content \"We use port 8080. Never touch src/secret.rs.\")");
    emacs.ok("add-message", "(:role :assistant :content \"I ran the tests of src/port.rs.\")");
    emacs.ok("open-session", "(:name \"elsewhere\" :project \"/other/\")");
    emacs.ok("add-message", "(:content \"The port elsewhere is 1234.\")");
    let handed = agent.tool("handoff", json!({}));
    has(&handed, &["ses-1 \"port work\"", "2 messages", "src/secret.rs", "port.rs"]);
    agent.tool("handoff", json!({ "session": "port work" }));
    has(&agent.refused("handoff", json!({ "session": "elsewhere" })), &["no session"]);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "fn openPort() {}");
    has(&agent.tool("remember", json!({ "text": "The port is 8080." })), &["mem-1", "project app"]);
    let found = agent.tool("search", json!({ "query": "port" }));
    has(&found, &["1 item, ", "1 memory", "ctx-1", "openPort", "ses-1/msg-1", "mem-1", "tokens"]);
    assert!(!found.contains("1234"), "{found}");
    let found = agent.tool("search", json!({ "query": "port", "in": "memory" }));
    assert!(found.starts_with("1 memory · ") && !found.contains("ctx-1"), "{found}");
    has(&agent.tool("read", json!({ "what": "ses-1/msg-1" })), &["user", "We use port 8080"]);
    has(&agent.tool("read", json!({ "what": "msg-1" })), &["ses-1/msg-1", "We use port 8080"]);
    agent.refused("read", json!({ "what": "msg-9" }));
    agent.refused("read", json!({ "what": "ses-2/msg-1" }));
    agent.refused("read", json!({ "what": "ses-1/msg-9" }));
    agent.refused("search", json!({ "query": "port", "in": "elsewhere" }));
    has(&agent.tool("explain", json!({ "id": "ses-1" })), &["no window"]);
    emacs.ok("build-window", "(:session \"port work\")");
    has(&agent.tool("explain", json!({ "id": "ses-1" })), &["ses-1", "in a window of"]);
    // Searching wrote nothing.
    let memories = emacs.ok("list-memories", "nil");
    assert_eq!((&memories[0]["accesses"], &memories[0]["project"]), (&json!(0), &json!(key)));
}

#[test]
fn files_are_read_as_the_editor_has_them_and_only_those_of_the_project() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    let mut agent = Agent::with(&home, &[]);
    let root = project(&home);
    let text = agent.tool("read", json!({ "what": "src/port.rs" }));
    has(&text, &["src/port.rs of 3 lines", "on disk", "8080"]);
    let text = agent.tool("read", json!({ "what": "src/port.rs:2-3" }));
    assert!(
        text.ends_with("\n\n    8080\n}\n") && text.starts_with("file src/port.rs:2-3 "),
        "{text}"
    );
    agent.tool("read", json!({ "what": "src/port.rs", "lines": "1" }));
    let path = root.join("src/port.rs");
    has(&agent.tool("read", json!({ "what": path })), &["8080"]);
    // The text of a buffer that is not saved.
    let add = format!("(:path {path:?} :manager {} :live t)", quoted(&manager));
    let id = emacs.ok("add-file", &add)["id"].as_str().unwrap().to_owned();
    let update = format!(
        "(:manager {} :items ((:id {id:?} :content \"fn typed() {{}}\\n\" :metadata (:unsaved t))))",
        quoted(&manager)
    );
    emacs.ok("update-items", &update);
    let text = agent.tool("read", json!({ "what": "src/port.rs" }));
    has(&text, &["unsaved text of the editor", "fn typed()"]);
    has(&agent.tool("read", json!({ "what": id })), &["fn typed()", "src/port.rs:1"]);
    has(&agent.tool("context", json!({})), &["fn typed()"]);
    agent.refused("read", json!({ "what": id, "lines": "7-9" }));
    // What the editor gives when it is asked, for a file without an item.
    emacs.ok("subscribe", "(:topics (:text-wanted))");
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| agent.tool("read", json!({ "what": "src/port.rs" })));
        let question = emacs.notification("text-wanted")["question"].clone();
        let given = format!("(:question {question} :content \"fn now() {{}}\\n\")");
        emacs.ok("give-result", &given);
        has(&reading.join().unwrap(), &["unsaved text of the editor", "fn now()"]);
    });
    let late = agent.tool("context", json!({}));
    has(&late, &["fn typed()", "The editor did not answer"]);
    emacs.ok("subscribe", "(:topics nil)");
    // Everything else is outside.
    let secret = home.write("secret.txt", "hidden");
    std::os::unix::fs::symlink(&secret, root.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(home.file(""), root.join("up")).unwrap();
    let other = emacs.add("other", "of another manager");
    for what in [
        "../secret.txt",
        "src/../../secret.txt",
        "missing/../../secret.txt",
        "link.txt",
        "up/secret.txt",
        &secret,
        "/etc/passwd",
        "~/.profile",
        "/:/etc/passwd",
        "src",
        "",
        "\0",
        "/proc/self/environ",
        "/dev/zero",
        "src/none.rs",
        &other,
        "ctx-99999999999999999999",
        "/ssh:host:/x",
        "file:///etc/passwd",
    ] {
        let said = agent.refused("read", json!({ "what": what }));
        assert!(!said.contains("hidden") && !said.contains("root:"), "{what}: {said}");
    }
    agent.refused("context", json!({ "project": home.file("") }));
    agent.refused("context", json!({ "project": "/" }));
    agent.tool("context", json!({ "project": "app" }));
    agent.tool("context", json!({ "project": root.join("src") }));
    for uri in [
        "contexture://app/item/ctx-99",
        "contexture://..%2f/context",
        "file:///etc/passwd",
        "contexture://app/session/ses-9/facts",
        "contexture://app",
        "",
    ] {
        agent.fails("resources/read", &json!({ "uri": uri }));
    }
}

#[test]
fn files_that_may_hold_secrets_are_read_only_if_they_are_marked() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut agent = Agent::with(&home, &[]);
    let root = project(&home);
    for name in [".env", ".git/config", "deploy/id_rsa", ".npmrc", "tls.key"] {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::write(root.join(name), "token = hunter2\n").unwrap();
    }
    std::os::unix::fs::symlink(".env", root.join("notes.txt")).unwrap();
    std::os::unix::fs::symlink(".git", root.join("docs")).unwrap();
    let names = [
        ".env",
        "./.env",
        ".ENV",
        ".git/config",
        "src/../.env",
        "deploy/id_rsa",
        ".npmrc",
        "tls.key",
        "notes.txt",
        "docs/config",
        "notes.txt:1",
    ];
    for name in names {
        let said = agent.refused("read", json!({ "what": name }));
        assert!(!said.contains("hunter2"), "{name}: {said}");
        if name != ".ENV" {
            has(&said, &["ask the user to mark it"]);
        }
    }
    let path = root.join(".env");
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.ok("add-file", &format!("(:manager {manager:?} :path {path:?})"));
    has(&agent.tool("read", json!({ "what": "ctx-1" })), &["hunter2"]);
}

#[test]
fn resources_and_prompts_give_the_same_as_the_tools() {
    let home = Home::new();
    let mut agent = Agent::with(&home, &[]);
    // The agent's program is the server of the state folder now, which others join.
    agent.tool("context", json!({}));
    let mut emacs = home.stdio(&[]);
    let manager = layer(&mut emacs, &home);
    let id = emacs.add(&manager, "marked text");
    let key = key(&home);
    emacs.ok("open-session", &format!("(:name \"s\" :project {key:?})"));
    emacs.ok("add-message", "(:content \"We decided to use port 8080.\")");
    let listed = agent.ok("resources/list", &json!({}));
    assert_eq!(listed["resources"][0]["uri"], "contexture://app/context");
    let templates = agent.ok("resources/templates/list", &json!({}));
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
    let mut read = |uri: &str| {
        let read = agent.ok("resources/read", &json!({ "uri": uri }));
        read["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    has(&read("contexture://app/context"), &["revision", "marked text"]);
    assert_eq!(read(&format!("contexture://app/item/{id}")), "marked text");
    has(&read("contexture://app/session/ses-1/facts"), &["8080"]);
    let prompts = agent.ok("prompts/list", &json!({}));
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 2);
    for (name, expected) in [("context", "marked text"), ("handoff", "8080")] {
        let prompt = agent.ok("prompts/get", &json!({ "name": name }));
        has(prompt["messages"][0]["content"]["text"].as_str().unwrap(), &[expected]);
    }
    agent.fails("prompts/get", &json!({ "name": "none" }));
}

#[test]
fn the_project_is_the_clients_root_or_the_named_one() {
    let home = Home::new();
    let root = home.file("my other");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    let mut agent = Agent::start(&home, &[]);
    agent.begin("2025-06-18", &json!({ "roots": {} }));
    let id = agent.send("tools/call", &json!({ "name": "context", "arguments": {} }));
    let asked: Json = serde_json::from_str(&agent.client.line().unwrap()).unwrap();
    assert_eq!(asked["method"], "roots/list");
    let uri = format!("file://{}", root.to_str().unwrap().replace(' ', "%20"));
    let roots = json!({ "roots": [{ "uri": uri }] });
    agent.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots }));
    has(&agent.answer(id)["result"].to_string(), &["project my other"]);
    let mut agent = Agent::with(&home, &["--project", root.to_str().unwrap()]);
    has(&agent.tool("context", json!({})), &["project my other"]);
    // A folder without a marker is no project.
    let mut command = home.command(&["mcp"]);
    command.current_dir(home.path("home"));
    let client = Client::over_stdio(command, Dialect::Json);
    let mut agent = Agent { client, last: 0, meta: None };
    agent.begin("2025-06-18", &json!({}));
    std::fs::write(home.path("home/key"), "hidden").unwrap();
    has(&agent.refused("read", json!({ "what": "key" })), &["is not a project", "--project"]);
    has(&home.fail(&["mcp", "--project", "/none"]), &["not a folder"]);
}

#[test]
fn hostile_input_is_refused_and_the_next_call_works() {
    let home = Home::new();
    let mut agent = Agent::with(&home, &["--ephemeral"]);
    for line in [
        "not json",
        "{",
        "[]",
        "null",
        "7",
        "\u{0}",
        "{\"jsonrpc\":\"1.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}",
    ] {
        agent.client.write(format!("{line}\n").as_bytes());
    }
    agent.client.write(b"\xff\xfe\n");
    let deep = "[".repeat(100_000);
    agent.client.write(format!("{deep}\n").as_bytes());
    agent.tool("context", json!({}));
    agent.fails("tools/call", &json!({ "name": "shell", "arguments": {} }));
    agent.fails("no/such", &json!({}));
    for (tool, arguments, said) in [
        ("context", json!({ "budget": -1 }), "arguments are wrong"),
        ("context", json!({ "budget": "all" }), "arguments are wrong"),
        ("context", json!({ "colour": 1 }), "unknown field"),
        ("search", json!({}), "query"),
        ("search", json!({ "query": " " }), "a word"),
        ("read", json!({ "what": "src/port.rs", "lines": "x" }), "must look like"),
        ("read", json!({ "what": "x".repeat(100_000) }), ""),
        ("remember", json!({ "text": "" }), "must not be empty"),
        ("remember", json!({ "text": "x".repeat(100_000) }), "at most"),
    ] {
        has(&agent.refused(tool, arguments), &[said]);
    }
    agent.result("search", &json!({ "query": "a ".repeat(50_000) }));
    agent.tool("search", json!({ "query": "\" OR * ) -x", "limit": 9_999_999 }));
    agent.tool("context", json!({}));
    // A first message that begins nothing.
    let mut agent = Agent::start(&home, &["--ephemeral"]);
    agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(agent.client.line(), None);
}

/// The requests of agents, with a text in each place that can have one.
pub(crate) fn requests(version: &str) -> Vec<Json> {
    let text = json!("x");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let all = [
        ("tools/list", json!({ "cursor": text })),
        ("tools/call", json!({ "name": text, "arguments": { "x": text } })),
        ("tools/call", json!({ "name": "read", "arguments": { "what": text, "lines": text } })),
        ("tools/call", json!({ "name": "search", "arguments": { "kind": text } })),
        ("prompts/get", json!({ "name": text, "arguments": { "x": text } })),
        ("resources/read", json!({ "uri": text })),
        ("logging/setLevel", json!({ "level": text })),
        ("completion/complete", json!({ "ref": { "type": text, "name": text } })),
        ("tasks/get", json!({ "taskId": text })),
        ("server/discover", json!({})),
        ("no/such", json!({})),
    ];
    let request = |(method, mut params): (&str, Json)| {
        params["_meta"] = meta.clone();
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
    };
    all.into_iter().map(request).collect()
}

/// The same request with a long text in place of each of its texts and names.
pub(crate) fn lengthened(request: &Json, long: &str) -> Vec<Json> {
    fn change(at: &Json, long: &str) -> Vec<Json> {
        let Json::Object(members) = at else {
            return if at.is_string() { vec![json!(long)] } else { Vec::new() };
        };
        let mut all = Vec::new();
        for (name, member) in members.iter().filter(|(name, _)| *name != "jsonrpc") {
            for changed in change(member, long) {
                let mut other = at.clone();
                other[name] = changed;
                all.push(other);
            }
            let mut other = at.clone();
            other[long] = member.clone();
            all.push(other);
        }
        all
    }
    change(request, long)
}

#[test]
fn no_answer_repeats_a_long_text() {
    let home = Home::new();
    let long = "x".repeat(200_000);
    let mut cases = 0;
    for (version, shakes_hands) in [(WITHOUT, false), ("2025-06-18", true)] {
        let mut agent = match shakes_hands {
            true => Agent::with(&home, &["--ephemeral"]),
            false => Agent::start(&home, &["--ephemeral"]),
        };
        for request in requests(version) {
            for request in lengthened(&request, &long) {
                agent.say(&request);
                agent.say(&json!({ "jsonrpc": "2.0", "id": 8, "method": "ping" }));
                loop {
                    let line = agent.client.line().unwrap();
                    assert!(line.len() < 20_000, "{}: {:.300}", request["method"], line);
                    if serde_json::from_str::<Json>(&line).unwrap()["id"] == 8 {
                        break;
                    }
                }
                cases += 1;
            }
        }
    }
    assert!(cases > 150, "{cases}");
    let begins = json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": long } });
    let mut command = home.command(&["mcp", "--ephemeral"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut program = command.spawn().unwrap();
    writeln!(program.stdin.take().unwrap(), "{begins}").unwrap();
    let output = program.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("does not speak") && said.len() < 20_000, "{said:.300}");
}

#[test]
fn a_server_that_is_killed_costs_one_call() {
    let home = Home::new();
    let mut server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    emacs.add(&manager, "kept");
    let mut agent = Agent::with(&home, &[]);
    agent.tool("context", json!({}));
    server.process.signal(rustix::process::Signal::STOP);
    let id = agent.send("tools/call", &json!({ "name": "context", "arguments": {} }));
    // A ping is answered while the call waits, so the call has been read.
    agent.ok("ping", &json!({}));
    server.process.kill();
    let answer = agent.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    has(&answer.to_string(), &["call the tool again"]);
    // Now the agent's program is the server, which others join.
    has(&agent.tool("context", json!({})), &["kept"]);
    let mut emacs = home.stdio(&[]);
    emacs.add(&manager, "added later");
    has(&agent.tool("context", json!({})), &["kept", "added later"]);
    // A server that ends between two calls costs nothing.
    emacs.ok("shutdown", "nil");
    has(&agent.tool("context", json!({})), &["kept", "added later"]);
}
