//! Agents over HTTP: with the token, from no web page, and each in its project.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::*;

/// A server for agents, and what an honest one sends.
pub(crate) struct Site {
    pub(crate) server: Listening,
    pub(crate) host: String,
    token: String,
}

impl Site {
    pub(crate) fn new(home: &Home) -> Self {
        let mut server = home.listening(&["--http", "0"]);
        let mut url = String::new();
        server.stdout.read_line(&mut url).unwrap();
        let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp\n").unwrap().to_owned();
        let token = std::fs::read_to_string(home.state().join("http-token")).unwrap();
        Self { server, host, token: token.trim_end().to_owned() }
    }

    pub(crate) fn honest(&self) -> String {
        format!("Host: {}\r\nAuthorization: Bearer {}\r\n", self.host, self.token)
    }

    /// Posts a message with these headers. Returns the status, and the whole answer.
    pub(crate) fn post(&self, query: &str, headers: &str, message: &Json) -> (u16, String) {
        self.send(&posted(query, headers, message))
    }

    fn open(&self, request: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    pub(crate) fn send(&self, request: &str) -> (u16, String) {
        let mut answer = String::new();
        self.open(request).read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    /// Posts a request of the version without sessions, and returns the whole answer.
    fn ask(&self, query: &str, method: &str, params: Json) -> String {
        let (status, answer) = self.asked(query, method, params);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Like `ask`, whatever the status.
    pub(crate) fn answer(&self, query: &str, method: &str, params: Json) -> String {
        self.asked(query, method, params).1
    }

    fn asked(&self, query: &str, method: &str, params: Json) -> (u16, String) {
        self.send(&self.request(query, method, params))
    }

    /// Returns a request of the version without sessions.
    fn request(&self, query: &str, method: &str, params: Json) -> String {
        const VERSION: &str = "2026-07-28";
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().or(params["uri"].as_str());
        let name = name.unwrap_or_default().to_owned();
        let name = if name.is_empty() { name } else { format!("Mcp-Name: {name}\r\n") };
        let headers = format!(
            "{}MCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n{name}",
            self.honest()
        );
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        posted(query, &headers, &message)
    }

    /// Begins a session of an earlier version. Returns the headers of its requests.
    pub(crate) fn session(&self, query: &str) -> String {
        let (status, begun) = self.post(query, &self.honest(), &greeting());
        assert_eq!(status, 200, "{begun}");
        let begun = begun.to_lowercase();
        let session = begun.split("mcp-session-id: ").nth(1).unwrap().lines().next().unwrap();
        let headers = format!(
            "{}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n",
            self.honest()
        );
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(query, &headers, &note).0, 202);
        headers
    }

    fn tool(&self, query: &str, name: &str, arguments: Json) -> String {
        self.ask(query, "tools/call", json!({ "name": name, "arguments": arguments }))
    }
}

/// Returns the request that posts a message with these headers.
fn posted(query: &str, headers: &str, message: &Json) -> String {
    let body = message.to_string();
    format!(
        "POST /mcp{query} HTTP/1.1\r\n{headers}Accept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Waits for an event with `text` and returns it.
fn event(stream: &mut BufReader<TcpStream>, text: &str) -> String {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "ended before {text:?}");
    }
    line
}

/// A request that begins a session of an earlier version.
fn greeting() -> Json {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } })
}

/// Two projects with a file each.
fn projects(home: &Home) {
    for name in ["one", "two"] {
        home.write(&format!("{name}/.git/HEAD"), "");
        home.write(&format!("{name}/file.txt"), format!("text of {name}\n"));
    }
}

#[test]
fn an_agent_with_the_token_sees_the_project_that_its_address_names() {
    let home = Home::new();
    projects(&home);
    let site = Site::new(&home);
    let mut emacs = site.server.unix(Dialect::Native);
    let root = home.file("one");
    let manager = emacs.layer(&root);
    emacs.add(&manager, "marked in one");
    let (one, two) = (format!("?project={}", root.display()), home.file("two"));
    let two = format!("?a=b&project={}", two.display().to_string().replace('/', "%2F"));
    let text = site.tool(&one, "context", json!({}));
    assert!(text.contains("marked in one"), "{text}");
    let revision = text.split("revision ").nth(1).unwrap().split(' ').next().unwrap();
    let since: u64 = revision.parse().unwrap();
    let text = site.tool(&one, "context", json!({ "since": since }));
    assert!(text.contains(&format!("unchanged since revision {since}")), "{text}");
    assert!(site.tool(&two, "context", json!({})).contains("nothing is marked"));
    assert!(site.tool(&two, "read", json!({ "what": "file.txt" })).contains("text of two"));
    let text = site.tool(&two, "read", json!({ "what": root.join("file.txt") }));
    assert!(!text.contains("text of one"), "{text}");
    for query in ["", "?project=", "?project=relative", "?project=/no/such/folder"] {
        let text = site.tool(query, "context", json!({}));
        assert!(text.contains("no project is named"), "{text}");
        let text = site.tool(query, "context", json!({ "project": "one" }));
        assert!(text.contains("no project is named"), "{text}");
    }
    assert!(site.ask("", "tools/list", json!({})).contains("handoff"));
    // Earlier versions of the protocol, with a session.
    let headers = site.session(&one);
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                       "params": { "name": "context", "arguments": {} } });
    let (_, text) = site.post(&one, &headers, &call);
    assert!(text.contains("marked in one"), "{text}");
}

#[test]
fn agents_are_told_when_tools_come_and_go() {
    let changed = "notifications/tools/list_changed";
    let home = Home::new();
    projects(&home);
    let site = Site::new(&home);
    let query = format!("?project={}", home.file("one").display());
    // Without a session, the answer to a request is the stream.
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut alone = site.open(&site.request(&query, "subscriptions/listen", wanted));
    event(&mut alone, "notifications/subscriptions/acknowledged");
    // A session has a stream of its own.
    let headers = site.session(&query);
    let mut held = site
        .open(&format!("GET /mcp{query} HTTP/1.1\r\n{headers}Accept: text/event-stream\r\n\r\n"));
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(site.post(&query, &headers, &list).0, 200);
    let mut emacs = site.server.unix(Dialect::Native);
    for places in [":agents t", ":everywhere t"] {
        let tool = format!(
            "(:name \"look\" :description \"Looks.\" :effect :reads {places} \
             :schema \"{{\\\"type\\\":\\\"object\\\"}}\")"
        );
        emacs.ok("register-tools", &format!("(:tools ({tool}))"));
        for stream in [&mut alone, &mut held] {
            event(stream, changed);
        }
    }
}

#[test]
fn nobody_without_the_token_and_no_web_page_gets_in() {
    let home = Home::new();
    let site = Site::new(&home);
    let (host, token) = (&site.host, &site.token);
    let port = host.split(':').nth(1).unwrap();
    let with = |line: &str| format!("{}{line}\r\n", site.honest());
    for (headers, expected) in [
        (format!("Host: {host}\r\n"), 401),
        (format!("Host: {host}\r\nAuthorization: Bearer x\r\n"), 401),
        (format!("Host: {host}\r\nAuthorization: Bearer {token}x\r\n"), 401),
        (format!("Host: {host}\r\nAuthorization: Bearer \r\n"), 401),
        (format!("Host: {host}\r\nAuthorization: {token}\r\n"), 401),
        (format!("Host: {host}\r\nCookie: token={token}\r\n"), 401),
        (with("Origin: http://evil.example"), 403),
        (with(&format!("Origin: http://{host}")), 200),
        (with("Origin: http://localhost"), 403),
        (with(&format!("Origin: https://{host}")), 403),
        (with("Origin: null"), 403),
        (format!("Host: evil.example\r\nAuthorization: Bearer {token}\r\n"), 403),
        (format!("Host: evil.example:{port}\r\nAuthorization: Bearer {token}\r\n"), 403),
        (format!("Host: 127.0.0.1:1\r\nAuthorization: Bearer {token}\r\n"), 403),
        (format!("Host: localhost:{port}\r\nAuthorization: Bearer {token}\r\n"), 200),
        (format!("Host: {host}\r\nAuthorization: bearer {token}\r\n"), 200),
        (format!("Host: {host}\r\nAuthorization: Basic {token}\r\n"), 401),
        // What stands twice could be read in two ways.
        (with("Authorization: Bearer x"), 401),
        (with("Host: evil.example"), 403),
        (with(&format!("Host: {host}")), 403),
        (format!("Host: evil.example\r\n{}", site.honest()), 403),
        (format!("Authorization: Bearer {token}\r\n"), 403),
    ] {
        let (status, answer) = site.post("", &headers, &greeting());
        assert_eq!(status, expected, "{headers}{answer}");
        assert!(!answer.contains(token.as_str()), "{answer}");
    }
    let get = |path: &str, headers: &str| {
        site.send(&format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")).0
    };
    assert_eq!(get("/", &format!("Host: {host}\r\n")), 401);
    assert_eq!(get("/other", &site.honest()), 404);
    let preflight = format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\n\
         Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
    );
    let (status, answer) = site.send(&preflight);
    assert!(status == 403 && !answer.to_lowercase().contains("access-control-allow"), "{answer}");
    // What a page could send without a preflight is refused by the other listener, as before.
    site.server.tcp(Dialect::Json).ok("ping", "nil");
}

#[test]
fn the_token_is_made_once_and_only_for_the_user() {
    let home = Home::new();
    let first = Site::new(&home);
    let file = home.state().join("http-token");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, first.token.len()), (0o600, 64));
    let token = first.token.clone();
    drop(first);
    assert_eq!(Site::new(&home).token, token);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let args = ["serve", "--stdio", "--http", "0"];
    assert!(home.fail(&args).contains("chmod 600"));
    let args = ["--ephemeral", "serve", "--stdio", "--http", "0"];
    assert!(home.fail(&args).contains("--secret-file"));
    // A chosen secret file takes its place, also without a state folder.
    let own = home.path("own");
    std::fs::write(&own, "own token\n").unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut site = Site {
        server: home.listening(&[
            "--http",
            "0",
            "--ephemeral",
            "--secret-file",
            own.to_str().unwrap(),
        ]),
        host: String::new(),
        token: "own token".to_owned(),
    };
    let mut url = String::new();
    site.server.stdout.read_line(&mut url).unwrap();
    site.host = url["http://".len()..].strip_suffix("/mcp\n").unwrap().to_owned();
    assert_eq!(site.post("", &site.honest(), &greeting()).0, 200);
}

#[test]
fn a_refused_request_is_not_logged() {
    let home = Home::new();
    projects(&home);
    let mut site = Site::new(&home);
    let query = format!("?project={}", home.file("one").display());
    let refused = site.tool(&query, "no-such-tool", json!({}));
    assert!(refused.contains("no tool") && refused.contains("no-such-tool"), "{refused}");
    let log = site.server.process.end_and_log();
    assert!(!log.contains("no-such-tool"), "{log}");
}

#[test]
fn no_answer_over_http_repeats_a_long_text() {
    let home = Home::new();
    let site = Site::new(&home);
    let long = "x".repeat(200_000);
    let version = "2026-07-28";
    for request in crate::mcp::requests(version) {
        let method = request["method"].as_str().unwrap();
        let headers =
            format!("{}MCP-Protocol-Version: {version}\r\nMcp-Method: {method}\r\n", site.honest());
        for request in crate::mcp::lengthened(&request, &long) {
            let (status, answer) = site.post("", &headers, &request);
            assert!(answer.len() < 20_000, "{method}, {status}: {answer:.300}");
        }
        let long = format!("{}MCP-Protocol-Version: {}\r\n", site.honest(), &long[..30_000]);
        let (status, answer) = site.post("", &long, &request);
        assert!(status == 400 && answer.len() < 20_000, "{method}, {status}: {answer:.300}");
    }
}
