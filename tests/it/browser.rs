//! A web page in a real browser tries whatever needs nobody's leave to reach the server over TCP.
//! Without Chromium nothing is tested, which is said.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use crate::support::*;
use crate::tiers::may_use;

const PAGE: &str = include_str!("../browser/page.html");
/// What of it may come from a browser without asking first; see `ways` in the page.
const BODIES: [&str; 14] = [
    "fetch-no-cors",
    "fetch-no-cors-credentials",
    "fetch-cors",
    "fetch-keepalive",
    "fetch-urlencoded",
    "fetch-text-plain",
    "fetch-multipart",
    "fetch-blob",
    "fetch-text-blob",
    "fetch-buffer",
    "xhr",
    "beacon",
    "beacon-blob",
    "form-text",
];
const HOSTS: [&str; 2] = ["127.0.0.1", "evil.test"];

/// A listener that takes any HTTP request and answers it; `hear` is told the first line and the body.
fn listener(hear: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let hear = Arc::new(hear);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (hear, stream) = (hear.clone(), stream.unwrap());
            // A browser may leave in the middle.
            std::thread::spawn(move || drop(answer(stream, &*hear)));
        }
    });
    port
}

fn answer(stream: TcpStream, hear: &dyn Fn(&str, &str) -> String) -> std::io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? <= 2 {
            break;
        }
        let header = header.to_ascii_lowercase();
        if let Some(bytes) = header.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let page = hear(first.trim_end(), &String::from_utf8_lossy(&body));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n\
                Connection: close\r\n";
    write!(&stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len())
}

/// A server of Contexture with and without a secret, and what shows that a command of it ran.
struct Target {
    name: &'static str,
    home: Home,
    server: Listening,
}

impl Target {
    fn new(name: &'static str, args: &[&str]) -> Self {
        let home = Home::new();
        let secret = home.write("secret", "s3cret\n");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut all = vec!["--ephemeral"];
        all.extend(args.iter().map(|arg| if *arg == "SECRET" { &*secret } else { arg }));
        let server = home.listening(&all);
        Self { name, home, server }
    }

    #[track_caller]
    fn check_nothing_executed(&mut self) {
        assert!(self.server.process.is_running(), "{}", self.name);
        let mut client = self.server.unix(Dialect::Native);
        for method in ["list-managers", "list-sessions", "list-providers", "list-memories"] {
            let listed = client.ok(method, "nil");
            assert!(is_nil(&listed), "{}: {method} gives {listed}", self.name);
        }
        assert!(!self.home.path("canary").exists(), "{}: a command ran", self.name);
    }
}

/// Lines that change a manager, a session and the providers, and run a command, if they are executed.
fn messages(canaries: &[String]) -> Json {
    let touch = format!("touch {}", canaries.join(" "));
    let provider = |name: &str| {
        format!(
            "(:name {name:?} :kind \"openai\" :model \"m\" :base-url \"http://127.0.0.1:1/v1\" \
             :default t :api-key-command {touch:?})"
        )
    };
    let calls = [
        ("add-context", "(:manager \"m\" :content \"@WAY@\")".to_owned()),
        ("open-session", "(:name \"@WAY@\")".to_owned()),
        ("configure-provider", provider("evil")),
        ("list-providers", "(:models t :provider \"evil\")".to_owned()),
    ];
    let lines = |dialect| {
        let call = |(id, (method, params)): (usize, &(&str, String))| {
            request(dialect, &id.to_string(), method, params)
        };
        calls.iter().enumerate().map(call).collect::<String>()
    };
    serde_json::json!({"native": lines(Dialect::Native), "json": lines(Dialect::Json)})
}

/// The command that opens a page in a browser of its own.
fn chromium(folder: &std::path::Path, url: &str) -> Command {
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--host-resolver-rules=MAP evil.test 127.0.0.1",
    ]);
    chromium.arg(format!("--user-data-dir={}", folder.display())).arg(url);
    chromium.env("HOME", folder).stdout(Stdio::null()).stderr(Stdio::null());
    chromium
}

/// Serves the page until it says that it is done; what it says.
fn page(targets: &Json, messages: &Json, done: Sender<Json>) -> u16 {
    let page = PAGE.replace("@TARGETS@", &targets.to_string());
    let page = page.replace("@MESSAGES@", &messages.to_string());
    listener(move |first, body| {
        if first.starts_with("POST /done ") {
            // The test may be over.
            let _ = done.send(read_json(body));
        }
        if first.starts_with("GET / ") { page.clone() } else { String::new() }
    })
}

#[test]
fn no_web_page_executes_anything() {
    let version = Command::new("chromium").arg("--version").output();
    if !may_use("chromium", version.is_ok_and(|out| out.status.success())) {
        return;
    }
    let mut targets =
        [Target::new("open", &[]), Target::new("secret", &["--secret-file", "SECRET"])];
    // Takes whatever a browser sends, to show that it does.
    let heard: Arc<Mutex<String>> = Arc::default();
    let hearing = heard.clone();
    let control = listener(move |_, body| {
        *hearing.lock().unwrap() += body;
        String::new()
    });
    let rows = targets.iter().map(|target| (target.name, target.server.port));
    let rows: Vec<_> = rows
        .chain([("control", control)])
        .map(|(name, port)| serde_json::json!({"name": name, "port": port}))
        .collect();
    let rows_and_kinds = rows.len() * 2;
    let canaries =
        targets.each_ref().map(|target| target.home.path("canary").display().to_string());
    let (done, tried) = channel();
    let port = page(&rows.into(), &messages(&canaries), done);
    let home = Home::new();
    let url = format!("http://evil.test:{port}/");
    let mut browser = Process::start(chromium(&home.path("home"), &url));

    let tried = tried.recv_timeout(10 * PATIENCE).expect("the page says that it is done");
    let tried = tried.as_array().unwrap();
    let of_each_way = rows_and_kinds * HOSTS.len();
    assert!(tried.len() >= 30 * of_each_way && tried.len() % of_each_way == 0, "{tried:?}");
    for body in BODIES {
        for host in HOSTS {
            let sent = format!("{host}/native/{body}");
            until(&sent, || heard.lock().unwrap().contains(&format!("\"{sent}\"")));
        }
    }
    for target in &mut targets {
        target.check_nothing_executed();
    }
    browser.signal(rustix::process::Signal::TERM);
    browser.wait();
}
