//! The dashboard over HTTP, without a browser: who gets in, what a page may ask, and what it is told. In
//! Chromium, `tests/browser/dashboard.py` does the rest.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::*;
use crate::tiers::may_use;

/// A dashboard, and what an honest browser sends.
struct Board {
    process: Process,
    stdout: BufReader<std::process::ChildStdout>,
    host: String,
    /// Path with the one-time token.
    entrance: String,
    cookie: String,
}

impl Board {
    /// Starts a dashboard and opens its address.
    fn new(home: &Home, args: &[&str]) -> Self {
        let mut board = Self::unopened(home, args);
        let (status, answer) = board.get(&board.entrance, &format!("Host: {}\r\n", board.host));
        assert_eq!(status, 200, "{answer}");
        board.cookie = cookie_of(&answer);
        board
    }

    fn unopened(home: &Home, args: &[&str]) -> Self {
        let mut all = vec!["dashboard", "--no-open"];
        all.extend(args);
        let mut command = home.command(&all);
        command.stdin(Stdio::piped());
        let mut process = Process::start(command);
        let stdout = BufReader::new(process.child.stdout.take().unwrap());
        let nothing = String::new;
        let mut board =
            Self { process, stdout, host: nothing(), entrance: nothing(), cookie: nothing() };
        board.invited();
        board
    }

    /// Reads the next address that is printed.
    fn invited(&mut self) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let (_, rest) = line.trim_end().split_once("://").unwrap_or_else(|| panic!("{line:?}"));
        let (host, path) = rest.split_once('/').unwrap();
        (self.host, self.entrance) = (host.to_owned(), format!("/{path}"));
    }

    fn honest(&self) -> String {
        format!("Host: {}\r\nCookie: {}\r\n", self.host, self.cookie)
    }

    fn open(&self, request: &str) -> BufReader<TcpStream> {
        let port = self.host.rsplit(':').next().unwrap().parse().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may refuse a request before it has read all of it.
        let _ = stream.write_all(request.as_bytes());
        BufReader::new(stream)
    }

    fn send(&self, request: &str) -> (u16, String) {
        let mut answer = Vec::new();
        let _ = self.open(request).read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("{request}: {answer:?}"));
        (status.parse().unwrap(), answer)
    }

    fn get(&self, path: &str, headers: &str) -> (u16, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"))
    }

    /// Calls a method with these headers.
    fn call(&self, headers: &str, method: &str, params: &Json) -> (u16, String) {
        self.send(&call(headers, &json!({ "method": method, "params": params }).to_string()))
    }

    /// Calls a method as the page does. Returns the reply.
    #[track_caller]
    fn reply(&self, method: &str, params: &Json) -> Json {
        let (status, answer) = self.call(&self.honest(), method, params);
        assert_eq!(status, 200, "{answer}");
        let mut reply = read_json(answer.split_once("\r\n\r\n").unwrap().1);
        assert!(reply["error"].is_null(), "{reply}");
        reply["result"].take()
    }

    /// Opens the stream of events.
    fn events(&self) -> BufReader<TcpStream> {
        self.open(&format!("GET /events HTTP/1.1\r\n{}\r\n", self.honest()))
    }
}

fn call(headers: &str, body: &str) -> String {
    format!(
        "POST /call HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    let start = format!("{name}: ");
    head.lines().find_map(|line| line.strip_prefix(start.as_str()))
}

fn cookie_of(answer: &str) -> String {
    header(answer, "set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// Waits for the next event. Returns its number and its notifications; `None` at the end.
fn event(stream: &mut BufReader<TcpStream>) -> Option<(u64, Json)> {
    let mut number = None;
    loop {
        let mut line = String::new();
        // The last piece of an answer is empty.
        if stream.read_line(&mut line).unwrap() == 0 || line == "0\r\n" {
            return None;
        }
        if let Some(id) = line.strip_prefix("id: ") {
            number = Some(id.trim_end().parse().unwrap());
        } else if let Some(data) = line.strip_prefix("data: ") {
            return Some((number.unwrap_or(0), read_json(data)));
        }
    }
}

/// Everything that the dashboard answers, as requests without headers.
const ROUTES: [&str; 5] = ["GET /", "GET /page.js", "GET /page.css", "GET /events", "POST /call"];

#[test]
fn an_address_works_once_and_its_cookie_afterwards() {
    let home = Home::new();
    let mut board = Board::unopened(&home, &[]);
    let host = format!("Host: {}\r\n", board.host);
    let (status, answer) = board.get(&board.entrance, &host);
    assert_eq!(status, 200, "{answer}");
    let set = header(&answer, "set-cookie").unwrap();
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{set}");
    let token = board.entrance.split('=').nth(1).unwrap();
    assert!(!answer.contains(token));
    assert_eq!(board.get(&board.entrance, &host).0, 401, "it was used");
    board.cookie = cookie_of(&answer);
    let (status, page) = board.get("/", &board.honest());
    assert!(status == 200 && header(&page, "set-cookie").is_none(), "no route gives it away");
    assert!(!page.contains(board.cookie.split('=').nth(1).unwrap()));
    // A line on standard input asks for another address.
    let first = board.entrance.clone();
    board.process.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    board.invited();
    assert!(first != board.entrance && board.get(&board.entrance, &host).0 == 200);
}

#[test]
fn every_route_wants_the_proof_the_name_the_page_and_the_path() {
    let home = Home::new();
    let board = Board::new(&home, &[]);
    let (host, cookie) = (&board.host, &board.cookie);
    let port = host.split(':').nth(1).unwrap();
    let name = cookie.split('=').next().unwrap();
    let with = |line: &str| format!("Host: {host}\r\nCookie: {cookie}\r\n{line}\r\n");
    for (headers, expected) in [
        (format!("Host: {host}\r\n"), 401),
        (format!("Host: {host}\r\nCookie: {name}=x\r\n"), 401),
        (format!("Host: {host}\r\nCookie: {cookie}x\r\n"), 401),
        (format!("Host: {host}\r\nAuthorization: Bearer {cookie}\r\n"), 401),
        (format!("Host: evil.example\r\nCookie: {cookie}\r\n"), 403),
        (format!("Host: evil.example:{port}\r\nCookie: {cookie}\r\n"), 403),
        (format!("Host: 127.0.0.1\r\nCookie: {cookie}\r\n"), 403),
        (format!("Host: 0.0.0.0:{port}\r\nCookie: {cookie}\r\n"), 403),
        (with(&format!("Host: {host}")), 403),
        (with("Origin: http://evil.example"), 403),
        (with(&format!("Origin: https://{host}")), 403),
        (with("Origin: http://127.0.0.1:1"), 403),
        (with("Origin: null"), 403),
        (with(&format!("Origin: http://{host}\r\nOrigin: http://{host}")), 403),
        (with("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors"), 403),
        (with("Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors"), 403),
        (with("Sec-Fetch-Dest: iframe\r\nSec-Fetch-Mode: navigate"), 403),
        (with("Sec-Fetch-Dest: object\r\nSec-Fetch-Mode: navigate"), 403),
    ] {
        for route in ROUTES {
            let request = format!("{route} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
            let (status, answer) = board.send(&request);
            assert_eq!(status, expected, "{route} {headers}{answer}");
            assert_eq!(header(&answer, "x-frame-options"), Some("DENY"), "{answer}");
            let policy = header(&answer, "content-security-policy").unwrap();
            assert!(policy.contains("frame-ancestors 'none'") && !policy.contains('*'));
            assert!(!answer.contains("access-control-allow-origin"), "{answer}");
        }
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] {
        for site in ["cross-site", "same-site"] {
            let form = with(&format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: navigate"));
            for path in ["/", "/call", "/events"] {
                let request =
                    format!("{method} {path} HTTP/1.1\r\n{form}Connection: close\r\n\r\n");
                assert_eq!(board.send(&request).0, 403, "{method} {path} from {site}");
            }
        }
    }
    for path in
        ["/x/../call", "/./", "//", "//call", "/%63all", "/page.js/..", "/call/.", "/\\call"]
    {
        let (status, answer) = board.get(path, &board.honest());
        assert_eq!(status, 400, "{path}: {answer}");
    }
    let absolute = format!("GET http://{host}/ HTTP/1.1\r\n{}Connection: close\r\n\r\n", with(""));
    assert!([400, 403].contains(&board.send(&absolute).0));
    assert_eq!(board.get("/other", &board.honest()).0, 404);
    let localhost = format!("Host: localhost:{port}\r\nCookie: {cookie}\r\n");
    assert_eq!(board.get("/", &localhost).0, 200);
    assert_eq!(board.get("/", &with(&format!("Origin: http://{host}"))).0, 200);
}

#[test]
fn a_call_is_bounded_and_of_methods_that_the_page_uses() {
    let home = Home::new();
    let board = Board::new(&home, &[]);
    assert_eq!(board.reply("list-sessions", &json!({})), json!([]));
    let honest = board.honest();
    for method in
        ["configure-provider", "shutdown", "call-tool", "chat", "no-such", "LIST-SESSIONS"]
    {
        assert_eq!(board.call(&honest, method, &json!({})).0, 403, "{method}");
    }
    let large = json!({ "query": "x".repeat(300 << 10) });
    assert_eq!(board.call(&honest, "list-sessions", &large).0, 413);
    for body in ["", "[]", "{\"method\":1}", "{\"params\":{}}", "{\"method\":\"x\",\"params\":[]}"]
    {
        assert_eq!(board.send(&call(&honest, body)).0, 400, "{body}");
    }
    let plain =
        call(&honest, "{\"method\":\"list-sessions\"}").replace("application/json", "text/plain");
    assert_eq!(board.send(&plain).0, 415, "a form could send it");
    let (status, answer) = board.call(&honest, "session-report", &json!({ "session": "nobody" }));
    assert!(status == 200 && answer.contains("no-such-session"), "{answer}");
}

#[test]
fn a_tunnel_needs_its_name_to_be_declared() {
    let home = Home::new();
    let board = Board::new(&home, &[]);
    let foreign = format!("Host: box.example\r\nCookie: {}\r\n", board.cookie);
    let (status, answer) = board.get("/", &foreign);
    assert!(status == 403 && answer.contains("--public-url"), "{answer}");
    let port = board.host.split(':').nth(1).unwrap().to_owned();
    drop(board);
    let board = Board::unopened(&home, &["--port", &port, "--public-url", "https://box.example"]);
    assert_eq!(board.host, "box.example");
    let at = |host: &str| format!("Host: {host}\r\n");
    let open = |request: String| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let get = |path: &str, headers: &str| {
        open(format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"))
    };
    let answer = get(&board.entrance, &at("box.example"));
    assert!(header(&answer, "set-cookie").unwrap().ends_with("; Secure"), "{answer}");
    let cookie = format!("Cookie: {}\r\n", cookie_of(&answer));
    let own = format!("127.0.0.1:{port}");
    for (headers, expected) in [
        (at("box.example") + &cookie, "200"),
        (at(&own) + &cookie, "200"),
        (at("box.example") + &cookie + "Origin: https://box.example\r\n", "200"),
        (at("box.example"), "401"),
        (at("other.example") + &cookie, "403"),
        (at("box.example:444") + &cookie, "403"),
        (at("box.example") + &cookie + "Origin: http://box.example\r\n", "403"),
        (at("box.example") + &cookie + "Origin: https://evil.example\r\n", "403"),
        (at("box.example") + &cookie + "Sec-Fetch-Dest: iframe\r\n", "403"),
    ] {
        assert_eq!(get("/", &headers).split(' ').nth(1), Some(expected), "{headers}");
    }
    assert_eq!(get("/x/../call", &at("box.example")).split(' ').nth(1), Some("400"));
    for wrong in ["*", "box.example", "https://box.example/path"] {
        let said = home.fail(&["dashboard", "--no-open", "--public-url", wrong]);
        assert!(said.contains("must be an origin"), "{said}");
    }
}

#[test]
fn an_embedded_element_reads_with_its_token_and_changes_nothing() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"s\")");
    let board = Board::new(&home, &["--embed-origin", "https://wiki.example"]);
    let token = std::fs::read_to_string(home.state().join("dashboard-token")).unwrap();
    let token = token.trim_end();
    let page = format!("Host: {}\r\nOrigin: https://wiki.example\r\n", board.host);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let embedded = format!("{page}{bearer}");
    let (status, answer) = board.call(&embedded, "list-sessions", &json!({}));
    assert!(status == 200 && answer.contains("\"session\":\"s\""), "{answer}");
    assert_eq!(header(&answer, "access-control-allow-origin"), Some("https://wiki.example"));
    assert!(!answer.to_lowercase().contains("access-control-allow-credentials"));
    for method in ["add-item", "approve", "build-window", "prune-session", "undo"] {
        assert_eq!(board.call(&embedded, method, &json!({ "dry_run": true })).0, 403, "{method}");
    }
    // Looking at the window is not sending it.
    assert_eq!(board.call(&embedded, "count-window", &json!({ "explain": true })).0, 200);
    assert!(is_nil(&client.ok("session-report", "(:windows 50)")["windows"]));
    // The cookie is for the dashboard's own pages, and the token for those that were named.
    let cookie = format!("Cookie: {}\r\n", board.cookie);
    assert_eq!(board.call(&format!("{page}{cookie}"), "list-sessions", &json!({})).0, 401);
    let alone = format!("Host: {}\r\n{bearer}", board.host);
    assert_eq!(board.call(&alone, "list-sessions", &json!({})).0, 401);
    let other = format!("Host: {}\r\nOrigin: https://evil.example\r\n{bearer}", board.host);
    assert_eq!(board.call(&other, "list-sessions", &json!({})).0, 403);
    // The script may be loaded with the token in its address, and nothing else may.
    assert_eq!(board.get(&format!("/page.js?token={token}"), &page).0, 200);
    assert_eq!(board.get(&format!("/events?token={token}"), &page).0, 401);
    assert_eq!(board.get(&format!("/?token={token}"), &format!("Host: {}\r\n", board.host)).0, 401);
    let preflight = |origin: &str| {
        board.send(&format!(
            "OPTIONS /call HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n",
            board.host
        ))
    };
    let (status, answer) = preflight("https://wiki.example");
    assert!(status == 204 && answer.contains("authorization, content-type"), "{answer}");
    assert_eq!(preflight("https://evil.example").0, 403);
    client.end();
}

#[test]
fn a_message_is_counted_once_and_what_was_sent_is_counted() {
    let home = Home::new();
    let script = home.write("script.toml", SCRIPT);
    let mut client = home.stdio(&[]);
    let provider = format!("(:name \"p\" :kind :scripted :model \"m\" :script {script:?})");
    client.ok("configure-provider", &provider);
    client.ok("open-session", "(:name \"s\")");
    let board = Board::new(&home, &[]);
    for _ in 0..2 {
        client.ok("chat", "(:content \"hello\" :request-key \"k\")");
    }
    let log = board.reply("session-report", &json!({ "session": "s", "windows": 50 }));
    let windows = log["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 1, "the repeated request was sent once: {log}");
    assert_eq!((&windows[0]["input"], &windows[0]["cached"]), (&json!(100), &json!(80)));
    // No price is configured, so there is no cost.
    assert!(windows[0]["cost"].is_null(), "{log}");
    // A window that the page looks at was not sent.
    board.reply("count-window", &json!({ "session": "s", "explain": true }));
    let log = board.reply("session-report", &json!({ "session": "s", "windows": 50 }));
    assert_eq!(log["windows"].as_array().unwrap().len(), 1);
    client.end();
}

#[test]
fn what_agents_recorded_of_tokens_has_the_price_of_their_model() {
    let home = Home::new();
    let script = home.write("script.toml", SCRIPT);
    let mut client = home.stdio(&[]);
    let answer = |name: &str, input: u64| {
        json!({ "type": "assistant", "uuid": name, "sessionId": "s", "timestamp": "2026-02-01T10:00:09Z",
            "message": { "id": name, "model": "m", "role": "assistant",
                "content": [{ "type": "text", "text": name }],
                "usage": { "input_tokens": input, "cache_read_input_tokens": 800, "output_tokens": 100 } } })
    };
    let asked = json!({ "type": "user", "uuid": "u", "sessionId": "s", "timestamp": "2026-02-01T10:00:01Z",
        "message": { "role": "user", "content": "hello" } });
    let lines = [asked, answer("one", 100), answer("one", 100), answer("two", 200)];
    let mut lines = lines.map(|line| line.to_string());
    // The same record again is another one to the file, and the same request.
    lines[2] = lines[2].replace("\"uuid\":\"one\"", "\"uuid\":\"one again\"");
    let file = home.write("s.jsonl", &(lines.join("\n") + "\n"));
    client.ok("import-sessions", &format!("(:paths ({file:?}))"));
    let board = Board::new(&home, &[]);
    let log = || {
        board.reply("session-report", &json!({ "session": "hello", "windows": 50 }))["windows"]
            .clone()
    };
    let told = |window: &Json| {
        (window["input"].as_u64(), window["cached"].as_u64(), window["cost"].as_f64())
    };
    let windows = log();
    let all: Vec<_> = windows.as_array().unwrap().iter().map(told).collect();
    assert_eq!(all, [(Some(900), Some(800), None), (Some(1000), Some(800), None)], "{windows}");
    let provider = format!(
        "(:name \"p\" :kind :scripted :model \"m\" :script {script:?} \
                             :price-input 2.0 :price-output 10.0)"
    );
    client.ok("configure-provider", &provider);
    assert_eq!(told(&log()[1]), (Some(1000), Some(800), Some(0.003)));
    client.end();
}

/// An answer with the counts that a provider reported.
const SCRIPT: &str =
    "[[answer]]\ntext = \"hi\"\nusage = { input = 100, output = 5, cached = 80 }\n";

#[test]
fn a_shortening_is_shown_before_it_is_done_and_undone_with_its_number() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"s\")");
    for turn in 0..6 {
        let text = format!("question {turn} {}", "with some words ".repeat(20));
        let call = format!("(:id \"c{turn}\" :name \"read\" :arguments \"{{}}\")");
        let messages = format!(
            "((:content {text:?}) (:role :assistant :content \"\" :tool-calls ({call})) \
             (:role :tool :tool-call-id \"c{turn}\" :content {text:?}))"
        );
        client.ok("add-message", &format!("(:messages {messages})"));
    }
    let board = Board::new(&home, &[]);
    let about = json!({ "session": "s" });
    let before = board.reply("session-report", &about);
    let prune = |is_dry: bool| {
        let params =
            json!({ "session": "s", "keep_tokens": 400, "brief": true, "dry_run": is_dry });
        board.reply("prune-session", &params)
    };
    let dry = prune(true);
    assert_eq!(board.reply("session-report", &about)["tokens"], before["tokens"]);
    assert!(is_nil(&board.reply("list-operations", &about)));
    let done = prune(false);
    assert_eq!((&dry["removed"], &dry["stats"]), (&done["removed"], &done["stats"]));
    // A call goes with its result.
    let removed = ids(&done["removed"]);
    let number = |id: &String| id["msg-".len()..].parse::<u64>().unwrap();
    let calls = removed.iter().map(number).filter(|number| number % 3 == 2);
    let calls: Vec<_> = calls.collect();
    assert!(!calls.is_empty());
    for call in calls {
        assert!(removed.contains(&format!("msg-{}", call + 1)), "{removed:?}");
    }
    // The step has a number and its sizes, and its undo says what comes back.
    let step = board.reply("list-operations", &about)[0].take();
    assert_eq!((&step["operation"], &step["count"]), (&json!(1), &json!(removed.len())));
    let sizes = |step: &Json| (step["tokens_before"].clone(), step["tokens_after"].clone());
    let (original, remaining) = (&done["stats"]["original"], &done["stats"]["final"]);
    assert_eq!(sizes(&step), (original.clone(), remaining.clone()));
    // Each message that left says why, and no other.
    let log = board.reply("get-messages", &json!({ "session": "s", "view": "log" }));
    let why = |it: &Json| it["out"].as_str().map(str::to_owned);
    let log: Vec<_> =
        log.as_array().unwrap().iter().map(|it| (ids(&json!([it["id"]])), why(it))).collect();
    let left: Vec<_> = log.iter().filter(|(_, why)| why.is_some()).collect();
    assert_eq!(left.iter().flat_map(|(id, _)| id.clone()).collect::<Vec<_>>(), removed);
    assert!(left.iter().all(|(_, why)| why.as_ref().unwrap().starts_with("least important by ")));
    let undo = json!({ "session": "s", "dry_run": true });
    let dry = board.reply("undo", &undo);
    assert_eq!((&dry["returned"], &dry["left"]), (&done["removed"], &Json::Null));
    let again = board.reply("undo", &undo);
    assert_eq!(again, dry, "looking changes nothing");
    let restored = json!({ "session": "s", "operation": 0, "dry_run": true });
    assert_eq!(board.reply("restore", &restored)["returned"], done["removed"]);
    board.reply("undo", &about);
    assert_eq!(board.reply("session-report", &about)["tokens"], before["tokens"]);
    let step = board.reply("list-operations", &about)[0].take();
    assert_eq!(
        (&step["method"], sizes(&step)),
        (&json!("undo"), (remaining.clone(), original.clone()))
    );
    let redone = board.reply("redo", &undo);
    assert_eq!(redone["left"], done["removed"]);
    // A summary says what it would save, and a short history is not summarized at all.
    let summary = json!({ "session": "s", "keep_messages": 4, "dry_run": true });
    let dry = board.reply("summarize-session", &summary);
    assert!(dry["tokens_after"].as_u64() < dry["tokens_before"].as_u64(), "{dry}");
    assert_eq!(board.reply("session-report", &about)["summaries"], 0);
    client.end();
}

#[test]
fn a_stream_begins_with_the_whole_state_and_ends_with_the_server() {
    let home = Home::new();
    let mut server = home.listening(&[]);
    let board = Board::new(&home, &[]);
    let mut stream = board.events();
    let (first, told) = event(&mut stream).unwrap();
    assert_eq!(told[0]["method"], "state");
    let mut client = server.unix(Dialect::Native);
    client.ok("open-session", "(:name \"s\")");
    let (second, told) = event(&mut stream).unwrap();
    assert_eq!((&told[0]["method"], second > first), (&json!("session-changed"), true));
    server.process.kill();
    assert!(event(&mut stream).is_none(), "the page has to ask again");
    // The next server, perhaps the dashboard itself, has the whole state.
    let mut stream = board.events();
    let (third, told) = event(&mut stream).unwrap();
    assert_eq!((&told[0]["method"], third > second), (&json!("state"), true));
    assert_eq!(board.reply("list-sessions", &json!({}))[0]["session"], "s");
}

#[test]
fn closed_pages_leave_no_streams() {
    let home = Home::new();
    let board = Board::new(&home, &[]);
    let open = || {
        let mut stream = board.events();
        let mut status = String::new();
        stream.read_line(&mut status).unwrap();
        (status.contains(" 200 "), stream)
    };
    for _ in 0..3 {
        let streams: Vec<_> = (0..40).map(|_| open()).collect();
        let kept = streams.iter().filter(|(is_kept, _)| *is_kept).count();
        assert_eq!(kept, 32, "all but these are refused");
        drop(streams);
        until("the places to be free again", || {
            let streams: Vec<_> = (0..32).map(|_| open()).collect();
            streams.iter().all(|(is_kept, _)| *is_kept)
        });
        until("these, too", || open().0);
    }
}

#[test]
fn a_browser_shows_and_changes_sessions_and_runs_nothing_of_them() {
    let works = |program: &str| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    if !may_use("chromium and python3", works("chromium") && works("python3")) {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/dashboard.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(env!("CARGO_BIN_EXE_contexture"));
    let output = python.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("dashboard: all seen"), "{said}\n{wrong}");
}
