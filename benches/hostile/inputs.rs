//! The inputs: everything that was found to block others once, and its kin.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context;

use crate::client::{Client, Ended, ended};
use crate::provider::{Endless, endless};
use crate::{Attack, LARGEST_MESSAGE, Prepared};

/// A hostile input.
pub(crate) struct Input {
    pub(crate) name: &'static str,
    /// The configuration of the server, in TOML.
    pub(crate) configuration: fn() -> anyhow::Result<String>,
    /// What is there before; not measured.
    pub(crate) prepare: fn(&mut Client) -> anyhow::Result<Prepared>,
    pub(crate) attack: Attack,
    /// True if the server refuses the input, as it should. Otherwise a refusal fails the measurement.
    pub(crate) is_refused: bool,
}

/// What a message may have beside the content that it is about.
const FRAME: usize = 1 << 10;
/// The size of what is made as large as it can be.
const LARGEST: usize = LARGEST_MESSAGE - FRAME;
/// How long a client waits that leaves before it is answered.
const LEAVES_AFTER: Duration = Duration::from_secs(2);
/// The most messages of one call.
const MESSAGES: usize = 100_000;

/// The length of a long name.
const LONG_NAME: usize = 8 << 20;
/// Connections that send half a message.
const HALF_OPEN: usize = 10_000;
/// Of these, the latest that stay open here. The server has closed the older ones.
const KEPT_OPEN: usize = 500;

macro_rules! input {
    ($name:literal, $attack:expr) => {
        input!($name, nothing, $attack)
    };
    ($name:literal, $prepare:expr, $attack:expr) => {
        Input {
            name: $name,
            configuration: || Ok(String::new()),
            prepare: $prepare,
            attack: $attack,
            is_refused: false,
        }
    };
}

macro_rules! refused {
    ($($input:tt)*) => {
        Input { is_refused: true, ..input!($($input)*) }
    };
}

macro_rules! provider {
    ($name:literal, $kind:ident) => {
        Input {
            name: $name,
            configuration: || endless(Endless::$kind),
            prepare: short_session,
            attack: |client, _| ask(client, "chat", "(:content \"go on\")"),
            is_refused: true,
        }
    };
}

pub(crate) const ALL: &[Input] = &[
    input!("nothing", |_, _| Ok(Ended::Well("–".to_owned()))),
    // Files.
    refused!("a sparse file of 100 GB with a raised limit", sparse_file, |client, prepared| {
        let path = path_of(&prepared);
        ask(client, "add-file", &format!("(:path {path:?} :max-file-bytes 1000000000000)"))
    }),
    input!("a sparse file, and the client leaves", sparse_file, |client, prepared| {
        let path = path_of(&prepared);
        client.send("add-file", &format!("(:path {path:?} :max-file-bytes 1000000000000)"))?;
        std::thread::sleep(LEAVES_AFTER);
        left()
    }),
    input!("a file of one word of 60 MiB", word_file, |client, prepared| {
        let path = path_of(&prepared);
        ask(client, "add-file", &format!("(:path {path:?} :max-file-bytes 64000000)"))
    }),
    input!("a listing of /usr", |client, _| {
        ask(client, "add-tree", "(:path \"/usr\" :mode :listing)")
    }),
    refused!("the files of /usr", |client, _| ask(client, "add-tree", "(:path \"/usr\")")),
    // Names, and connections.
    refused!("an unknown method of 8 MB", |client, _| ask(
        client,
        &"x-".repeat(LONG_NAME / 2),
        "nil"
    )),
    refused!("an unknown parameter of 8 MB", |client, _| {
        ask(client, "ping", &format!("(:{} 1)", "x-".repeat(LONG_NAME / 2)))
    }),
    refused!("a manager with a name of 8 MB", |client, _| {
        let name = "x-".repeat(LONG_NAME / 2);
        ask(client, "get-context", &format!("(:manager {name:?})"))
    }),
    input!("10,000 half-open connections", |client, _| half_open(client)),
    // One large message.
    input!("content of lines, 64 MiB", |client, _| {
        ask(client, "add-context", &content(&lines(LARGEST)))
    }),
    input!("content of one word, 64 MiB", |client, _| {
        ask(client, "add-context", &content(&"x".repeat(LARGEST)))
    }),
    input!("content of one run of spaces, 64 MiB", |client, _| {
        ask(client, "add-context", &content(&" ".repeat(LARGEST)))
    }),
    input!("content of one run of digits and marks, 64 MiB", |client, _| {
        ask(client, "add-context", &content(&"-=".repeat(LARGEST / 2)))
    }),
    refused!("metadata of 60 MiB in one text", |client, _| {
        let text = "x".repeat(60 << 20);
        ask(client, "add-context", &format!("(:content \"x\" :metadata (:note {text:?}))"))
    }),
    refused!("metadata of 30 M small data", |client, _| {
        let list = "1 ".repeat(30 << 20);
        ask(client, "add-context", &format!("(:content \"x\" :metadata (:note ({list})))"))
    }),
    refused!("30 M letters as a parameter", |client, _| {
        ask(client, "get-context", &format!("(:ids ({}))", "a ".repeat(30 << 20)))
    }),
    refused!("30 M keywords as parameters", |client, _| {
        ask(client, "ping", &format!("({})", ":a ".repeat(20 << 20)))
    }),
    refused!("12 M lists of one", |client, _| {
        ask(client, "get-context", &format!("(:ids ({}))", "(a) ".repeat(15 << 20)))
    }),
    refused!("30 M numbers in JSON", |client, _| {
        let list = "1,".repeat(30 << 20);
        let line = format!("{{\"id\":0,\"method\":\"ping\",\"params\":{{\"a\":[{list}1]}}}}\n");
        client.write(line.as_bytes())?;
        Ok(ended(&client.answer()?))
    }),
    refused!("a cancel with 30 M letters", |client, _| {
        ask(client, "cancel", &format!("(:id ({}))", "a ".repeat(30 << 20)))
    }),
    refused!("an unknown method with 30 M letters", |client, _| {
        ask(client, "nothing", &format!("(:ids ({}))", "a ".repeat(30 << 20)))
    }),
    refused!("a path of 60 MiB", |client, _| {
        ask(client, "add-file", &format!("(:path \"/{}\")", "x/".repeat(30 << 20)))
    }),
    refused!("an unfinished list of 64 MiB", |client, _| {
        client
            .write(&[&b"("[..], &b"(a ".repeat(500), &b"a ".repeat(LARGEST / 2), b"\n"].concat())?;
        Ok(ended(&client.answer()?))
    }),
    // Sessions.
    input!("a message of one word, 60 MiB", |client, _| {
        client.call("open-session", "(:name \"s\")")?;
        ask(client, "add-message", &content(&"x".repeat(60 << 20)))
    }),
    input!("a message of lines, 60 MiB", |client, _| {
        client.call("open-session", "(:name \"s\")")?;
        ask(client, "add-message", &content(&lines(60 << 20)))
    }),
    input!("a message with 60 MiB of arguments", |client, _| {
        client.call("open-session", "(:name \"s\")")?;
        let text = "x".repeat(60 << 20);
        let call = format!("(:id \"c\" :name \"f\" :arguments {text:?})");
        ask(client, "add-message", &format!("(:role :assistant :tool-calls ({call}))"))
    }),
    input!("100,000 messages in one call", |client, _| {
        client.call("open-session", "(:name \"s\")")?;
        ask(client, "add-message", &messages(MESSAGES))
    }),
    input!("process-turn over 100,000 messages", long_session, |client, _| {
        ask(client, "process-turn", "(:content \"and what of the parser?\")")
    }),
    input!("process-turn of 60 MiB", short_session, |client, _| {
        ask(client, "process-turn", &content(&lines(60 << 20)))
    }),
    input!("summarize-context of 100,000 messages", long_session, |client, _| {
        ask(client, "summarize-context", "(:session \"s\")")
    }),
    input!("prune-context of 100,000 messages", long_session, |client, _| {
        ask(client, "prune-context", "(:session \"s\" :max-tokens 5000)")
    }),
    input!("prune-context with 100,000 own messages", |client, _| {
        ask(client, "prune-context", &messages(MESSAGES))
    }),
    input!("auto-manage-context of 100,000 messages", long_session, |client, _| {
        ask(client, "auto-manage-context", "(:session \"s\")")
    }),
    input!("context-stats of 100,000 messages", long_session, |client, _| {
        ask(client, "context-stats", "(:session \"s\")")
    }),
    input!("build-context of 100,000 messages", long_session, |client, _| {
        ask(client, "build-context", "(:session \"s\" :query \"parser\" :explain t)")
    }),
    input!("an explained window of 100,000 messages", long_session, |client, _| {
        client.call("build-context", "(:session \"s\" :brief t)")?;
        ask(client, "session-report", "(:session \"s\" :reports 1 :explain t)")
    }),
    input!("get-messages of 100,000", long_session, |client, _| {
        ask(client, "get-messages", "(:session \"s\" :view :log)")
    }),
    input!("get-messages with 100,000 ids of 100,000", long_session, |client, _| {
        let ids: String = (1..=MESSAGES).map(|number| format!("\"msg-{number}\" ")).collect();
        ask(client, "get-messages", &format!("(:session \"s\" :ids ({ids}))"))
    }),
    input!("pin-message of 50,000", long_session, |client, _| {
        let ids: String = (1..=50_000).map(|n| format!("\"msg-{}\" ", 2 * n)).collect();
        ask(client, "pin-message", &format!("(:session \"s\" :ids ({ids}))"))
    }),
    input!("export-session of 100,000 messages", long_session, |client, _| {
        ask(client, "export-session", "(:session \"s\" :format :json)")
    }),
    input!("import of 100,000 messages", exported, |client, prepared| {
        let text = path_of(&prepared);
        ask(client, "open-session", &format!("(:name \"t\" :text {text})"))
    }),
    input!("a fork of 100,000 messages", long_session, |client, _| {
        ask(client, "open-session", "(:fork-of \"s\" :name \"t\")")
    }),
    input!("checkpoint and rollback of 100,000 messages", long_session, |client, _| {
        client.call("checkpoint", "(:session \"s\" :message \"c\")")?;
        client.call("prune-context", "(:session \"s\" :max-tokens 5000)")?;
        ask(client, "rollback", "(:session \"s\")")
    }),
    input!("search for 300,000 letters", long_session, |client, _| {
        let query = "a ".repeat(300_000);
        ask(client, "list-sessions", &format!("(:query {query:?})"))
    }),
    input!("search for 300,000 words", long_session, |client, _| {
        let query: String = (0..300_000).map(|number| format!("w{number} ")).collect();
        ask(client, "list-sessions", &format!("(:query {query:?})"))
    }),
    input!("search for the commonest word", long_session, |client, _| {
        ask(client, "list-sessions", "(:query \"the parser module\" :limit 1000)")
    }),
    input!("ground-query of 60 MiB", long_session, |client, _| {
        let query: String = (0..6_000_000).map(|number| format!("w{number} ")).collect();
        ask(client, "ground-query", &format!("(:query {query:?})"))
    }),
    refused!("remember of 60 MiB", |client, _| {
        ask(client, "remember", &content(&"x".repeat(60 << 20)))
    }),
    // Items.
    input!("render-items of 1,000 items of 60 KB", full_manager, |client, _| {
        ask(client, "render-items", "(:max-tokens 1000000 :format :json)")
    }),
    input!("get-context of 1,000 items of 60 KB", full_manager, |client, _| {
        ask(client, "get-context", "(:limit 1000)")
    }),
    input!("save-set of 1,000 items of 60 KB", full_manager, |client, _| {
        ask(client, "save-set", "(:name \"x\")")
    }),
    input!("undo of clearing 1,000 items of 60 KB", full_manager, |client, _| {
        client.call("clear-context", "nil")?;
        ask(client, "undo", "nil")
    }),
    input!("drop-manager of 1,000 items of 60 KB", full_manager, |client, _| {
        ask(client, "remove-items", "(:all t :reset t)")
    }),
    input!("list-managers of 5,000", many_managers, |client, _| ask(
        client,
        "list-managers",
        "nil"
    )),
    input!("get-context of 5,000 managers", many_managers, |client, _| {
        let names: String = (0..1000).map(|number| format!("\"m{number}\" ")).collect();
        ask(client, "get-context", &format!("(:managers ({names}))"))
    }),
    input!("list-sessions of 5,000", many_sessions, |client, _| ask(
        client,
        "list-sessions",
        "nil"
    )),
    // Servers of models.
    provider!("a provider: an endless line", Line),
    provider!("a provider: endless small pieces", Pieces),
    provider!("a provider: endless thoughts", Thoughts),
    provider!("a provider: endless arguments", Arguments),
    provider!("a provider: endless headers", Headers),
    provider!("a provider: an endless refusal", Refusal),
    provider!("a provider: 20 MB without a space", OneWord),
    Input {
        name: "a provider: an endless list of models",
        configuration: || endless(Endless::Models),
        prepare: nothing,
        attack: |client, _| ask(client, "list-providers", "(:models t)"),
        is_refused: true,
    },
    Input {
        name: "a provider: endless pieces, and the client leaves",
        configuration: || endless(Endless::Pieces),
        prepare: short_session,
        attack: |client, _| {
            client.send("chat", "(:content \"go on\")")?;
            std::thread::sleep(LEAVES_AFTER);
            left()
        },
        is_refused: false,
    },
];

fn nothing(_: &mut Client) -> anyhow::Result<Prepared> {
    Ok(None)
}

fn ask(client: &mut Client, method: &str, params: &str) -> anyhow::Result<Ended> {
    Ok(ended(&client.ask(method, params)?))
}

fn left() -> anyhow::Result<Ended> {
    Ok(Ended::Well("the client left".to_owned()))
}

fn content(text: &str) -> String {
    // The texts have nothing to be escaped but line ends.
    format!("(:content \"{}\")", text.replace('\n', "\\n"))
}

/// Lines of code of so many bytes as they are written in a message.
fn lines(bytes: usize) -> String {
    let line = "let number = parse(text, 17) + offset; // the sum of both\n";
    line.repeat(bytes / (line.len() + 1))
}

fn messages(count: usize) -> String {
    let mut text = String::from("(:messages (");
    for number in 0..count {
        let role = [":user", ":assistant"][number % 2];
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "(:role {role} :content \"Step {number}: the parser module in src/p{number}.rs returned \
             error E{number} after {number} ms; we decided to retry it with the other path.\")"
        );
    }
    text + "))"
}

fn long_session(client: &mut Client) -> anyhow::Result<Prepared> {
    client.call("open-session", "(:name \"s\")")?;
    client.call("add-message", &messages(MESSAGES))?;
    // What the store put off until a quiet moment is done in one.
    std::thread::sleep(LEAVES_AFTER);
    Ok(None)
}

fn short_session(client: &mut Client) -> anyhow::Result<Prepared> {
    client.call("open-session", "(:name \"s\")")?;
    client.call("add-message", &messages(20))?;
    Ok(None)
}

fn exported(client: &mut Client) -> anyhow::Result<Prepared> {
    long_session(client)?;
    let answer = client.call("export-session", "(:session \"s\" :format :json)")?;
    let (_, text) = answer.split_once(":text \"").context("no text")?;
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    let end = end.context("a text without an end")?;
    Ok(Some(Box::new(format!("\"{}\"", &text[..end]))))
}

fn full_manager(client: &mut Client) -> anyhow::Result<Prepared> {
    client.call("configure-manager", "(:max-items 1000)")?;
    let text = lines(60_000);
    for _ in 0..1000 {
        client.call("add-context", &content(&text))?;
    }
    std::thread::sleep(LEAVES_AFTER);
    Ok(None)
}

fn many_managers(client: &mut Client) -> anyhow::Result<Prepared> {
    for number in 0..5000 {
        client.call("add-context", &format!("(:manager \"m{number}\" :content \"x\")"))?;
    }
    Ok(None)
}

fn many_sessions(client: &mut Client) -> anyhow::Result<Prepared> {
    for number in 0..5000 {
        client.call("open-session", &format!("(:name \"s{number}\")"))?;
    }
    Ok(None)
}

fn sparse_file(_: &mut Client) -> anyhow::Result<Prepared> {
    let file = tempfile::Builder::new().tempfile_in(env!("CARGO_TARGET_TMPDIR"))?;
    let head = b"x".repeat(16 << 10);
    std::io::Write::write_all(&mut &file, &head)?;
    file.as_file().set_len(100_000_000_000)?;
    Ok(Some(Box::new(file)))
}

fn word_file(_: &mut Client) -> anyhow::Result<Prepared> {
    let file = tempfile::Builder::new().tempfile_in(env!("CARGO_TARGET_TMPDIR"))?;
    std::io::Write::write_all(&mut &file, &b"x".repeat(60 << 20))?;
    Ok(Some(Box::new(file)))
}

/// The path of a prepared file, or the text that was prepared.
fn path_of(prepared: &Prepared) -> String {
    let Some(prepared) = prepared else { return String::new() };
    if let Some(file) = prepared.downcast_ref::<tempfile::NamedTempFile>() {
        return file.path().to_string_lossy().into_owned();
    }
    prepared.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// Opens many connections over TCP, and sends half a message on each.
fn half_open(client: &Client) -> anyhow::Result<Ended> {
    let mut held = std::collections::VecDeque::new();
    for _ in 0..HALF_OPEN {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", client.port))?;
        // The server may have closed it already.
        let _ = std::io::Write::write_all(&mut stream, b"(:id 1 :method pi");
        held.push_back(stream);
        if held.len() > KEPT_OPEN {
            held.pop_front();
        }
    }
    Ok(Ended::Well(format!("{} are still open here", held.len())))
}
