//! Clients that send rubbish, vanish, or do not read: nobody else notices.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use crate::support::*;

/// How many messages of each sort each transport gets, and over how many connections.
const MESSAGES: usize = 10_000;
const BATCHES: usize = 20;
const SENTINEL: &str = "stands λ \"untouched\"\n";

/// A server, whence connections to it come.
enum Target {
    /// One client at a time: a server over stdio ends with its client.
    Stdio(Home),
    Unix(Listening),
    Tcp(Listening),
}

impl Target {
    fn connect(&self, dialect: Dialect) -> Client {
        match self {
            Self::Stdio(home) => {
                let mut client = home.stdio(&[]);
                client.dialect = dialect;
                client
            }
            Self::Unix(server) => server.unix(dialect),
            Self::Tcp(server) => server.tcp(dialect),
        }
    }
}

/// Sends batches made by `batch` over each transport, each followed by calls whose answers are
/// known. `replies` is how many answers a batch must get, where that is known.
#[track_caller]
fn abuse(seed: u64, batch: impl Fn(&mut Random, Dialect) -> (Vec<u8>, Option<usize>) + Sync) {
    let homes = [Home::new(), Home::new()];
    let [one, two] = &homes;
    let targets = [
        Target::Stdio(Home::new()),
        Target::Unix(one.listening(&[])),
        Target::Tcp(two.listening(&[])),
    ];
    let batch = &batch;
    std::thread::scope(|scope| {
        for (index, target) in targets.iter().enumerate() {
            scope.spawn(move || {
                let mut random = Random(seed + index as u64);
                let mut first = target.connect(Dialect::Native);
                first.add("sentinel", SENTINEL);
                if matches!(target, Target::Stdio(_)) {
                    first.end();
                }
                for number in 0..BATCHES {
                    let dialect = [Dialect::Native, Dialect::Json][number % 2];
                    let (bytes, replies) = batch(&mut random, dialect);
                    one_batch(target.connect(dialect), &bytes, replies, number);
                }
            });
        }
    });
}

#[track_caller]
fn one_batch(mut client: Client, bytes: &[u8], replies: Option<usize>, number: usize) {
    let begin = request(client.dialect, "\"begin\"", "ping", "nil");
    client.number_from(1_000_000);
    client.write(begin.as_bytes());
    assert!(client.line().unwrap().contains("begin"));
    client.write(bytes);
    client.write(b"\n");
    let id = format!("\"after batch {number}\"");
    client.write(request(client.dialect, &id, "ping", "nil").as_bytes());
    let mut answers = 0;
    loop {
        let line = client.line().expect("the connection stays usable");
        if line.contains(&id) {
            let message = parse(client.dialect, &line);
            assert_eq!((&message["id"].to_string(), &message["result"]), (&id, &"pong".into()));
            break;
        }
        answers += 1;
    }
    if let Some(replies) = replies {
        assert_eq!(answers, replies, "every bad message is answered once");
    }
    assert_eq!(client.contents("sentinel"), [SENTINEL]);
    if client.process.is_some() {
        client.end();
    }
}

#[test]
fn random_bytes_are_answered_and_harm_nobody() {
    abuse(1, |random, _| {
        let mut bytes = Vec::new();
        for _ in 0..MESSAGES / BATCHES {
            let length = random.below(120);
            let printable = random.below(2) == 0;
            for _ in 0..length {
                let byte = random.next() as u8;
                bytes.push(if printable {
                    b"()[]{}\"\\:;., #?'`@&ax09-+~\t\r"[byte as usize % 28]
                } else {
                    byte
                });
            }
            bytes.push(b'\n');
        }
        let counts = |line: &&[u8]| {
            let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
            first.is_some_and(|first| *first != b';')
        };
        let replies = bytes.split(|byte| *byte == b'\n').filter(counts).count();
        (bytes, Some(replies))
    });
}

/// Calls to be mutated; none is about the sentinel's manager, and none walks a tree.
const CALLS: &[(&str, &str)] = &[
    ("ping", "nil"),
    ("add-context", r#"(:manager "m" :content "(defun f (x) \"doc\\n\" x)" :type :code)"#),
    (
        "add-context",
        r#"(:content "λ😀" :metadata (:filename "a.el" :start-line 1 :end-line 2 :x (1 2.5 nil t)))"#,
    ),
    ("add-context", r#"(:manager "m" :content "p" :pinned t :request-key "k" :brief t)"#),
    ("add-file", r#"(:path "/nonexistent/x.txt" :start-line 1 :end-line 20)"#),
    ("get-context", r#"(:manager "m" :limit 2 :types (:code :error))"#),
    ("context-to-string", r#"(:format :xml :max-tokens 200 :limit 3)"#),
    ("render-items", r#"(:managers ("m" "n") :max-tokens 50)"#),
    ("remove-items", r#"(:manager "m" :ids ("ctx-3" "ctx-4"))"#),
    ("update-items", r#"(:manager "m" :id "ctx-2" :content "new")"#),
    ("move-items", r#"(:manager "m" :id "ctx-2" :to 0)"#),
    ("update-items", r#"(:manager "m" :id "ctx-2" :pinned nil)"#),
    ("undo", r#"(:manager "m")"#),
    ("clear-context", r#"(:manager "m")"#),
    ("configure-manager", r#"(:manager "m" :max-items 40)"#),
    ("save-set", r#"(:name "s" :manager "m")"#),
    ("load-set", r#"(:name "s" :manager "n" :mode :append)"#),
    ("refresh-items", r#"(:manager "m")"#),
    ("list-items", "(:count-only t)"),
    ("list-managers", "nil"),
    ("initialize", "nil"),
    ("subscribe", "(:topics (:context-changed :stats))"),
    ("cancel", "(:id 7)"),
];

#[test]
fn mutated_messages_are_answered_and_harm_nobody() {
    abuse(100, |random, dialect| {
        let mut bytes = Vec::new();
        for number in 0..MESSAGES / BATCHES {
            let (method, params) = CALLS[random.below(CALLS.len())];
            let line = request(dialect, &number.to_string(), method, params);
            let mut message = line.trim_end().as_bytes().to_vec();
            for _ in 0..1 + random.below(4) {
                mutate(&mut message, random);
            }
            // Over TCP, the header of a web request ends the connection.
            if message.split(|byte| *byte == b'\n').any(is_header) {
                continue;
            }
            bytes.extend(message);
            bytes.push(b'\n');
        }
        (bytes, None)
    });
}

fn is_header(line: &[u8]) -> bool {
    let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let name = line.iter().take_while(is_of_name).count();
    name > 0 && line.get(name) == Some(&b':')
}

fn mutate(message: &mut Vec<u8>, random: &mut Random) {
    if message.is_empty() {
        return message.push(random.next() as u8);
    }
    let at = random.below(message.len());
    let length = random.below(8).min(message.len() - at);
    match random.below(7) {
        0 => message[at] ^= 1 << random.below(8),
        1 => message[at] = random.next() as u8,
        2 => message.insert(at, random.next() as u8),
        3 => drop(message.drain(at..at + length)),
        4 => {
            let part = message[at..at + length].to_vec();
            let to = random.below(message.len());
            message.splice(to..to, part);
        }
        5 => message.truncate(at),
        _ => {
            let tricky: [&[u8]; 8] =
                [b"(((((((", b"\"", b"\\", b"nil", b"99999999999999999999", b"\0", b"\xff", b"#1="];
            message.splice(at..at, tricky[random.below(8)].iter().copied());
        }
    }
}

#[test]
fn half_messages_and_a_disconnect_harm_nobody() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut other = server.unix(Dialect::Native);
    other.add("sentinel", SENTINEL);
    let whole =
        "(:id 1 :method add-context :params (:manager \"half\" :content \"half a message\"))";
    for number in 0..200 {
        let dialect = Dialect::Native;
        let mut client = if number % 2 == 0 { server.unix(dialect) } else { server.tcp(dialect) };
        client.write(&whole.as_bytes()[..1 + number % (whole.len() - 1)]);
        drop(client);
    }
    let mut large = server.unix(Dialect::Native);
    large.write(b"(:id 1 :method add-context :params (:content \"");
    large.write(&vec![b'x'; 5_000_000]);
    drop(large);
    assert_eq!(other.ok("ping", "nil"), "pong");
    assert!(other.contents("half").is_empty());
    assert_eq!(other.contents("sentinel"), [SENTINEL]);
}

#[test]
fn a_client_that_does_not_read_costs_little_and_harms_nobody() {
    let home = Home::new();
    let mut server = home.listening(&["--ephemeral"]);
    let mut other = server.unix(Dialect::Native);
    for _ in 0..20 {
        let content = "0123456789".repeat(50_000);
        other.ok("add-context", &format!("(:manager \"big\" :content \"{content}\" :brief t)"));
    }
    let before = server.process.peak_memory();
    for (method, params) in [
        ("get-context", "(:manager \"big\")"),
        ("context-to-string", "(:manager \"big\")"),
        ("update-items", "(:manager \"big\" :id \"ctx-1\" :type :text)"),
    ] {
        let mut deaf = UnixStream::connect(&server.socket).unwrap();
        let call = format!("(:id 1 :method {method} :params {params})\n");
        deaf.write_all(call.repeat(1000).as_bytes()).unwrap();
        // It does get an answer; it only has to read it.
        let mut begin = [0; 14];
        deaf.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"(:id 1 :result");
        for _ in 0..50 {
            other.ok("ping", "nil");
            other.ok("list-items", "(:count-only t :manager \"big\")");
        }
    }
    assert!(server.process.is_running());
    let grown = server.process.peak_memory() - before;
    assert!(grown < 200 << 20, "memory grew by {} MiB", grown >> 20);
}

#[test]
fn a_slow_reader_gets_every_answer() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut other = server.unix(Dialect::Native);
    other.add("big", &"0123456789".repeat(30_000));
    let mut slow = UnixStream::connect(&server.socket).unwrap();
    for number in 0..50 {
        let call = format!("(:id {number} :method get-context :params (:manager \"big\"))\n");
        slow.write_all(call.as_bytes()).unwrap();
        other.ok("ping", "nil");
    }
    slow.shutdown(Shutdown::Write).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut received = String::new();
    slow.read_to_string(&mut received).unwrap();
    let ids = received.lines().map(|line| line[5..].split(' ').next().unwrap().parse().unwrap());
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
}

#[test]
fn a_client_that_leaves_much_unread_is_turned_away() {
    let home = Home::new();
    let mut server = home.listening(&["--ephemeral", "--max-message-bytes", "200000"]);
    let mut deaf = UnixStream::connect(&server.socket).unwrap();
    deaf.set_write_timeout(Some(PATIENCE)).unwrap();
    // Each answer is an error that names the parameter, and is three times as long as the call.
    let call = format!("(:id 1 :method list-items :params (:{} 1))\n", "x".repeat(200));
    let calls = call.repeat(20_000);
    // The server may close the connection before it has read all of it.
    let _ = deaf.write_all(calls.as_bytes());
    let mut other = server.tcp(Dialect::Native);
    other.ok("ping", "nil");
    deaf.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut received = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match deaf.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => received += count,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(received < 10_000_000, "{received} bytes came");
    assert_eq!(other.ok("ping", "nil"), "pong");
    assert!(server.process.is_running());
}

#[test]
fn a_subscriber_that_does_not_read_harms_nobody() {
    let home = Home::new();
    let mut server = home.listening(&["--ephemeral"]);
    let mut deaf = UnixStream::connect(&server.socket).unwrap();
    deaf.write_all(b"(:id 1 :method subscribe :params (:topics (:context-changed :stats)))\n")
        .unwrap();
    let mut answer = [0; 10];
    deaf.read_exact(&mut answer).unwrap();
    let mut other = server.tcp(Dialect::Native);
    let calls: Vec<i64> =
        (0..5000).map(|_| other.send("add-context", "(:content \"x\" :brief t)")).collect();
    for id in calls {
        other.reply(id).unwrap();
    }
    assert!(server.process.is_running());
    assert_eq!(other.ok("ping", "nil"), "pong");
}

#[test]
fn fifty_clients_at_once_do_not_disturb_each_other() {
    let home = Home::new();
    let server = home.listening(&[]);
    let server = &server;
    std::thread::scope(|scope| {
        for number in 0..50 {
            scope.spawn(move || {
                let dialect = [Dialect::Native, Dialect::Json][number % 2];
                let mut client =
                    if number % 3 == 0 { server.tcp(dialect) } else { server.unix(dialect) };
                let manager = format!("client {number}");
                let mut expected = Vec::new();
                for step in 0..20 {
                    let content = format!("{number}/{step}");
                    client.add(&manager, &content);
                    expected.push(content);
                    assert_eq!(client.contents(&manager), expected);
                }
                client.ok("undo", &format!("(:manager {})", quoted(&manager)));
                expected.pop();
                assert_eq!(client.contents(&manager), expected);
            });
        }
    });
    let managers = server.unix(Dialect::Native).ok("list-managers", "nil");
    assert_eq!(managers.as_array().unwrap().len(), 50);
}

#[test]
fn a_client_that_vanishes_during_a_tree_harms_nobody() {
    let home = Home::new();
    for number in 0..2000 {
        home.write(&format!("t/{}/{number}.txt", number / 100), "a line\n");
    }
    let root = home.file("t");
    let mut server = home.listening(&[]);
    let mut other = server.unix(Dialect::Native);
    other.add("sentinel", SENTINEL);
    for _ in 0..5 {
        let mut client = server.unix(Dialect::Native);
        let params = format!("(:path {} :mode :listing)", quoted(root.to_str().unwrap()));
        client.send("add-tree", &params);
        client.notification("progress");
        drop(client);
        assert_eq!(other.ok("ping", "nil"), "pong");
    }
    assert_eq!(other.contents("sentinel"), [SENTINEL]);
    assert!(server.process.is_running());
}

/// Names that nobody would write are compared, quoted and refused in pieces of bounded length.
#[test]
fn names_of_megabytes_get_short_errors() {
    const LONGEST_ERROR: usize = 20 << 10;
    let home = Home::new();
    let name = "x-".repeat(4 << 20);
    for dialect in [Dialect::Native, Dialect::Json] {
        let server = home.listening(&["--ephemeral"]);
        let mut client = server.unix(dialect);
        let (keyword, text) = (format!("(:{name} 1)"), quoted(&name));
        for (method, params) in [
            (&*name, "nil"),
            ("ping", &*keyword),
            ("get-context", &format!("(:manager {text})")),
            ("get-context", &format!("(:types ({text}))")),
            ("add-context", &format!("(:content \"x\" :type {text})")),
            ("open-session", &format!("(:name {text})")),
            ("build-window", &format!("(:session {text})")),
            ("call-tool", &format!("(:tool {text} :arguments \"{{}}\")")),
            ("load-set", &format!("(:name {text})")),
            ("read-file", &format!("(:path {text} :root \"/\")")),
        ] {
            let error = client.fails(method, params);
            assert!(error.message.len() <= LONGEST_ERROR, "{} bytes", error.message.len());
            let data = error.data.to_string().len();
            assert!(data <= LONGEST_ERROR, "{data} bytes of data");
        }
    }
}
