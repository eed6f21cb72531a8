//! What others notice of a client that asks for much: nothing. What is held here is held by a gate
//! that the test opens, so no test depends on how long anything takes.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use contexture_program::internals::context::change::ContextSettings;
use contexture_program::internals::engine::{Engine, Handle};
use contexture_program::internals::rpc::{Limits, Tools};
use contexture_program::internals::server::Server;
use contexture_program::internals::store::sqlite::SqliteStore;
use contexture_program::internals::tokens::{Counter, Estimate};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::endpoint::{Answer, Body, Endpoint};
use crate::support::*;

/// A server within this process, and the way to its engine.
fn server(counter: impl Counter + 'static) -> (Server, Handle) {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    let engine = Engine::new(store, Box::new(|| 0), ContextSettings { max_items: 50 }).unwrap();
    let limits = Limits { max_message_bytes: 1 << 20, max_file_bytes: 1 << 20, max_items: 50 };
    let mut handle = None;
    let server = Server::start(engine, |engine| {
        handle = Some(engine.clone());
        Tools::new(engine, Arc::new(counter), limits)
    });
    (server, handle.unwrap())
}

/// A client within this process.
pub(crate) struct Near(BufReader<DuplexStream>);

impl Near {
    pub(crate) fn of(server: &Server) -> Self {
        Self(BufReader::new(server.memory()))
    }

    async fn send(&mut self, method: &str, params: &str) {
        self.send_as(1, method, params).await;
    }

    pub(crate) async fn send_as(&mut self, id: u32, method: &str, params: &str) {
        let line = format!("(:id {id} :method {method} :params {params})\n");
        self.0.get_mut().write_all(line.as_bytes()).await.unwrap();
    }

    /// All that is said until every one of these was.
    pub(crate) async fn hear(&mut self, expected: &[&str]) -> String {
        let mut said = String::new();
        while !expected.iter().all(|part| said.contains(part)) {
            let line = self.answer().await;
            assert_ne!(line, "", "{expected:?} never came, only {said}");
            said += &line;
        }
        said
    }

    async fn answer(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line
    }

    pub(crate) async fn call(&mut self, method: &str, params: &str) -> String {
        self.send(method, params).await;
        self.answer().await
    }
}

const PONG: &str = "(:id 1 :result :pong)\n";

pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() });
    runtime.shutdown_background();
}

/// A gate and what opens it; a gate that nobody opens gives way, so that the test fails and ends.
fn gate() -> (Sender<()>, impl FnOnce() + Send) {
    let (open, closed) = channel();
    (open, move || {
        let _ = closed.recv_timeout(PATIENCE);
    })
}

#[test]
fn a_long_request_keeps_nobody_waiting_who_needs_no_engine() {
    run(async {
        let (server, engine) = server(Estimate);
        let (open, pass) = gate();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let long = tokio::spawn(async move {
            let held = engine.ask(move |_| {
                begun.send(()).unwrap();
                pass();
                Ok("ended")
            });
            held.await.unwrap()
        });
        has_begun.await.unwrap();
        let (mut one, mut other) = (Near::of(&server), Near::of(&server));
        one.send("add-context", "(:content \"x\")").await;
        assert_eq!(other.call("ping", "nil").await, PONG);
        assert!(other.call("schema", "nil").await.contains("add-context"));
        assert!(!long.is_finished(), "all of that was answered before");
        open.send(()).unwrap();
        assert_eq!(long.await.unwrap(), "ended");
        assert!(one.answer().await.contains("ctx-1"));
    });
}

/// Says that it was come to, and waits for its gate.
type Held = (Sender<()>, Box<dyn FnOnce() + Send>);

/// Holds whoever counts a text that begins with `hold`.
struct Holding(Mutex<Option<Held>>);

impl Counter for Holding {
    fn name(&self) -> &'static str {
        "estimate"
    }

    fn count(&self, text: &str) -> u64 {
        let held = text.starts_with("hold").then(|| self.0.lock().unwrap().take()).flatten();
        if let Some((begun, pass)) = held {
            begun.send(()).unwrap();
            pass();
        }
        1
    }
}

/// A server that counts no text that begins with `hold` until it is let, what says that it was come
/// to, and what lets it.
pub(crate) fn holding() -> (Server, Receiver<()>, Sender<()>) {
    let (open, pass) = gate();
    let (begun, has_begun) = channel();
    let (server, _) = server(Holding(Mutex::new(Some((begun, Box::new(pass))))));
    (server, has_begun, open)
}

#[test]
fn a_large_message_keeps_nobody_waiting_for_its_tokens() {
    run(async {
        let (server, has_begun, open) = holding();
        let mut hostile = Near::of(&server);
        let large = format!("(:content \"hold {}\")", "x".repeat(100_000));
        hostile.send("add-context", &large).await;
        until_begun(has_begun).await;
        let mut other = Near::of(&server);
        assert_eq!(other.call("ping", "nil").await, PONG);
        // Ids tell the order: these were added before.
        assert!(other.call("add-context", "(:content \"a\")").await.contains("\"ctx-1\""));
        assert!(other.call("get-context", "nil").await.contains("\"ctx-1\""));
        open.send(()).unwrap();
        assert!(hostile.answer().await.contains("\"ctx-2\""));
    });
}

/// Counts without an end until nobody wants to know any more, and then says so.
struct Endless {
    begun: Sender<()>,
    stopped: Sender<()>,
}

impl Counter for Endless {
    fn name(&self) -> &'static str {
        "estimate"
    }

    fn count(&self, _: &str) -> u64 {
        1
    }

    fn count_while(&self, _: &str, is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<u64> {
        self.begun.send(()).unwrap();
        while is_wanted() {
            std::thread::yield_now();
        }
        self.stopped.send(()).unwrap();
        None
    }
}

/// A message that is counted on a thread of its own.
fn long_count() -> String {
    format!("(:id 1 :method add-context :params (:content \"{}\"))\n", "x".repeat(100_000))
}

pub(crate) async fn until_begun(has_begun: Receiver<()>) {
    let begun = move || has_begun.recv_timeout(PATIENCE).unwrap();
    tokio::task::spawn_blocking(begun).await.unwrap();
}

#[test]
fn work_that_is_cancelled_stops() {
    run(async {
        let ((begun, has_begun), (stopped, has_stopped)) = (channel(), channel());
        let (server, _) = server(Endless { begun, stopped });
        let mut client = Near::of(&server);
        client.0.get_mut().write_all(long_count().as_bytes()).await.unwrap();
        until_begun(has_begun).await;
        let cancel = b"(:id 2 :method cancel :params (:id 1))\n";
        client.0.get_mut().write_all(cancel).await.unwrap();
        let answers = [client.answer().await, client.answer().await].concat();
        assert!(answers.contains(":code -32800"), "{answers}");
        let stopped = tokio::task::spawn_blocking(move || has_stopped.recv_timeout(PATIENCE));
        assert!(stopped.await.unwrap().is_ok(), "nobody wants it, and it goes on");
    });
}

#[track_caller]
fn refused(client: &mut Client, method: &str, params: &str, words: &[&str]) {
    let error = client.fails(method, params);
    for word in words {
        assert!(error.message.contains(word), "{method}: {error:?}");
    }
    assert_eq!(client.ok("ping", "nil"), "pong");
}

#[test]
fn each_limit_is_met_with_an_error_that_names_it() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    assert_eq!(client.ok("ping", "nil"), "pong");
    let many = "a ".repeat(2_000_001);
    client.write(format!("(:id 7 :method get-context :params (:ids ({many})))\n").as_bytes());
    let line = client.line().unwrap();
    assert!(line.contains("2000000 values"), "{line}");
    let long = "x".repeat(65_537);
    let metadata = format!("(:content \"x\" :metadata (:note \"{long}\"))");
    refused(&mut client, "add-context", &metadata, &["metadata", "65536"]);
    let metadata = format!("(:content \"x\" :metadata (:note ({})))", "1 ".repeat(5_000));
    refused(&mut client, "add-context", &metadata, &["metadata", "65536"]);
    let path = "x".repeat(4_097);
    refused(&mut client, "open-session", &format!("(:project \"{path}\")"), &["project", "4096"]);
    let call = format!("(:role :assistant :tool-calls ((:id \"{path}\" :name \"f\")))");
    refused(&mut client, "add-message", &call, &["4096"]);
    let cancel = format!("(:id \"{}\")", "x".repeat(20_000));
    refused(&mut client, "cancel", &cancel, &["16384"]);
}

#[test]
fn json_has_the_same_limit_of_data() {
    let home = Home::new();
    let mut client =
        Client::over_stdio(home.command(&["serve", "--stdio", "--ephemeral"]), Dialect::Json);
    assert_eq!(client.ok("ping", "nil"), "pong");
    let list = "1,".repeat(2_000_000);
    client.write(
        format!("{{\"id\":7,\"method\":\"ping\",\"params\":{{\"a\":[{list}1]}}}}\n").as_bytes(),
    );
    let line = client.line().unwrap();
    assert!(line.contains("2000000 values"), "{line}");
    assert_eq!(client.ok("ping", "nil"), "pong");
}

#[test]
fn files_are_no_larger_than_messages_whatever_the_limit_on_files() {
    let home = Home::new();
    let mut client = home.ephemeral(&["--max-message-bytes", "8192"]);
    let sparse = home.write("sparse", "");
    std::fs::File::options().write(true).open(&sparse).unwrap().set_len(1 << 40).unwrap();
    let raised = format!("(:path {sparse:?} :max-file-bytes {})", 1_u64 << 50);
    refused(&mut client, "add-file", &raised, &["8192"]);
    for name in ["tree/a.txt", "tree/b.txt"] {
        home.write(name, "line of text\n".repeat(400));
    }
    let tree = home.file("tree");
    let error = client.fails("add-tree", &format!("(:path {tree:?})"));
    assert_eq!(error.kind(), "tree-too-large");
    assert!(error.message.contains("8192") && error.message.contains("10400"), "{error:?}");
    let listed = client.ok("add-tree", &format!("(:path {tree:?} :mode :listing)"));
    assert_eq!((&listed["files"], &listed["bytes"]), (&2.into(), &10_400.into()));
}

/// A model that never stops; another is served meanwhile, and the model is hung up on.
#[track_caller]
fn never_stops(answer: impl Fn() -> Answer + Send + Sync + 'static, method: &str, words: &str) {
    let model = match method {
        "chat" => Endpoint::new(move |_, _| answer()),
        _ => Endpoint::listing(move |_, _| answer()),
    };
    let home = Home::new();
    let server = home.listening(&[]);
    let (mut client, mut other) = (server.unix(Dialect::Native), server.unix(Dialect::Native));
    let params = format!("(:name \"x\" :kind \"openai\" :model \"m\" :base-url {:?})", model.url);
    client.ok("configure-provider", &params);
    let params =
        if method == "chat" { "(:session \"s\" :content \"go on\")" } else { "(:models t)" };
    client.ok("open-session", "(:name \"s\")");
    let id = client.send(method, params);
    for _ in 0..10 {
        assert_eq!(other.ok("ping", "nil"), "pong");
        other.add("m", "a");
    }
    let outcome = client.reply(id);
    let told = format!("{outcome:?}");
    assert!(told.contains(words), "{told}");
    until("the model to be hung up on", || model.left() > 0);
}

fn events(delta: &str) -> Answer {
    let event = format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    Answer::streaming(Body::Endless(event.repeat(1000).into_bytes()))
}

#[test]
fn a_model_that_never_stops_is_stopped() {
    let long = "x".repeat(10_000);
    let text = format!("{{\"content\":\"{long}\"}}");
    never_stops(move || events(&text), "chat", "has more than 16777216 bytes");
    let thoughts = format!("{{\"reasoning_content\":\"{long}\"}}");
    never_stops(move || events(&thoughts), "chat", "has more than 16777216 bytes");
    let line = || Answer::streaming(Body::Endless(vec![b'x'; 1 << 16]));
    never_stops(line, "chat", "more than 16777216 bytes");
    let models = || Answer::streaming(Body::Endless(b"{\"id\":\"m\"},".repeat(1000)));
    never_stops(models, "list-providers", "more than 4194304 bytes");
}

/// What each kind of parameter can be at its largest, in about so many bytes.
fn largest(kind: &str, name: &str, bytes: usize) -> String {
    let list = |element: &str| format!("({})", element.repeat(bytes / element.len()));
    match kind {
        "integer" | "number" => "999999999999".to_owned(),
        "boolean" => "t".to_owned(),
        "plist" => list(":a \"b\" "),
        "list of strings" if name.ends_with("ids") => list("\"ctx-1\" "),
        "list of strings" => list("\"a b\" "),
        "list of names" => list(":a "),
        "list of plists" => list("(:role :user :content \"so it is\") "),
        _ => format!("\"{}\"", "word ".repeat(bytes / 5)),
    }
}

/// Every method, with each parameter in its turn as large as a message may be, and once with all of
/// them a share: it is answered, with a result or an error that says what is wrong, and another
/// client's calls are answered in between.
#[test]
fn every_method_takes_its_largest_input_or_says_why_not() {
    const LARGEST: usize = 64 << 10;
    let home = Home::new();
    let server = home.listening(&["--max-message-bytes", "65536"]);
    let (mut client, mut other) = (server.unix(Dialect::Native), server.unix(Dialect::Native));
    client.ok("open-session", "(:name \"s\")");
    for number in 0..20 {
        client.add("*shared*", &format!("(defun f-{number} (x) x)"));
        client.ok("add-message", &format!("(:session \"s\" :content \"word {number}\")"));
    }
    for method in
        contexture_program::internals::rpc::methods().filter(|method| method.name != "shutdown")
    {
        let params = method.params();
        let whole = LARGEST - 4096;
        let mut inputs: Vec<String> = (0..params.len())
            .map(|large| {
                let one = |(at, param): (usize, &contexture_program::internals::rpc::Param)| {
                    let bytes = if at == large { whole } else { 8 };
                    let needed = param.required || at == large;
                    let value = || largest(param.kind, param.name, bytes);
                    match needed {
                        true => format!(":{} {}", param.name, value()),
                        false => String::new(),
                    }
                };
                params.iter().enumerate().map(one).collect::<Vec<_>>().join(" ")
            })
            .collect();
        let share = whole / params.len().max(1) - 32;
        let all = params.iter().map(|p| format!(":{} {}", p.name, largest(p.kind, p.name, share)));
        inputs.push(all.collect::<Vec<_>>().join(" "));
        for input in inputs {
            let id = client.send(method.name, &format!("({input})"));
            assert_eq!(other.ok("ping", "nil"), "pong");
            other.add("others", "a");
            if let Err(error) = client.reply(id) {
                assert_ne!(error.code, -32603, "{}: {error:?}", method.name);
                assert!(error.message.len() < LARGEST / 2, "{}: a long error", method.name);
            }
        }
    }
}
