//! Messages with their lengths before them: right ones in pieces, wrong ones of every sort. Every
//! wrong one is answered or ends its connection, and nobody else notices.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use crate::support::*;

/// A connection on which bytes are sent as they are.
struct Raw<S = TcpStream>(S);

impl Raw {
    fn new(server: &Listening) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// What comes once the client has ended what it sends.
    fn ended(self) -> Vec<String> {
        self.0.shutdown(std::net::Shutdown::Write).unwrap();
        self.rest()
    }
}

impl Raw<UnixStream> {
    /// A connection on which a first message may be wrong.
    fn local(server: &Listening) -> Self {
        let stream = UnixStream::connect(&server.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }
}

impl<S: Read + Write> Raw<S> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    #[track_caller]
    fn payload(&mut self) -> String {
        read_payload(&mut self.0).expect("an answer")
    }

    /// So many answers, which need not come in the order of the calls.
    fn sorted(&mut self, count: usize) -> Vec<String> {
        let mut answers: Vec<_> = (0..count).map(|_| self.payload()).collect();
        answers.sort();
        answers
    }

    /// All that comes until the server ends the connection.
    fn rest(mut self) -> Vec<String> {
        std::iter::from_fn(|| read_payload(&mut self.0)).collect()
    }
}

const PINGS: [(&str, &str); 2] = [
    ("(call 1 ping nil)\n", "(return 1 :pong)"),
    ("(:emacs-rex (contexture:ping) nil t 1)\n", "(:return (:ok :pong) 1)"),
];

#[test]
fn payloads_may_be_split_at_every_byte_and_sent_together() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    for (ping, pong) in PINGS {
        let message = framed(ping);
        for at in 1..message.len() {
            let mut raw = Raw::new(&server);
            raw.write(&message.as_bytes()[..at]);
            raw.write(&message.as_bytes()[at..]);
            assert_eq!(raw.payload(), pong, "split at {at}");
        }
        let mut raw = Raw::new(&server);
        raw.write(message.to_uppercase().as_bytes()[..6].to_vec().as_slice());
        raw.write(&message.as_bytes()[6..]);
        assert_eq!(raw.payload(), pong);
        raw.write(message.repeat(100).as_bytes());
        for _ in 0..100 {
            assert_eq!(raw.payload(), pong);
        }
        for byte in message.as_bytes() {
            raw.write(&[*byte]);
        }
        assert_eq!(raw.payload(), pong);
        assert!(raw.ended().is_empty());
    }
}

#[test]
fn lengths_count_bytes() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let text = "λ😀é\r\nx\u{0}\"\\";
    for dialect in [Dialect::Epc, Dialect::Slynk] {
        let mut client = server.tcp(dialect);
        client.add("utf-8", text);
        assert_eq!(client.contents("utf-8").last().unwrap(), text);
        let large = "0123456λ\n".repeat(110_000);
        client.add("large", &large);
        assert_eq!(client.contents("large").last().unwrap(), &large);
    }
}

#[test]
fn wrong_lengths_end_the_connection_or_are_answered() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral", "--max-message-bytes", "5000"]);
    let mut other = server.tcp(Dialect::Slynk);
    other.add("sentinel", "stands");
    for (ping, pong) in PINGS {
        let with = |after: &[u8]| {
            let mut raw = Raw::new(&server);
            raw.write(framed(ping).as_bytes());
            assert_eq!(raw.payload(), pong);
            raw.write(after);
            raw
        };
        // Too short: what is left of the payload is no header.
        let lost = with(b"000005(call 2 ping nil)").rest().join("");
        assert!(lost.contains("six hex digits, got  2 pin;"), "{lost}");
        for wrong in ["(:id 1 :method ping)\n", "{\"id\":1}\n", "-00001a", "0x0004", "\n\n\n\n\n\n"]
        {
            let answers = with(wrong.as_bytes()).rest();
            assert!(answers.len() == 1 && answers[0].contains("six hex digits"), "{answers:?}");
        }
        // Too long: never whole, and nothing is said.
        assert!(with(b"ffffff(call 2 ping nil)").ended().is_empty());
        assert!(with(b"000fff(call 2 ping nil)").ended().is_empty());
        assert!(with(b"0000").ended().is_empty());
        assert!(with(b"000000000001\n000002; ").ended().is_empty());
        // Over the limit: skipped, and the next is read.
        let mut long = with(format!("001389{}", "x".repeat(5001)).as_bytes());
        assert!(long.payload().contains("has 5001 bytes, but at most 5000"));
        long.write(framed(ping).as_bytes());
        assert_eq!(long.payload(), pong);
    }
    assert_eq!(other.contents("sentinel"), ["stands"]);
}

#[test]
fn whoever_waits_for_an_answer_to_an_overlong_message_gets_one() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral", "--max-message-bytes", "5000"]);
    let mut other = server.tcp(Dialect::Slynk);
    let long = "λ)\\\" 7) ".repeat(1000);
    let why = |bytes: usize| format!("has {bytes} bytes, but at most 5000 are accepted");
    let check = |message: &str, begin: &str, end: &str, ping: &str, pong: &str| {
        // As the first message, which decides the dialect, and later.
        let mut raw = Raw::local(&server);
        for _ in 0..2 {
            raw.write(framed(message).as_bytes());
            let answer = raw.payload();
            let said = answer.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
            assert!(said.is_some_and(|said| said.contains(&why(message.len()))), "{answer}");
            raw.write(framed(ping).as_bytes());
            assert_eq!(raw.payload(), pong);
        }
    };
    let [(epc, epc_pong), (slynk, slynk_pong)] = PINGS;
    for form in ["contexture:add-context :content", "swank-repl:listener-eval", "slynk:autodoc"] {
        let call = format!("(:emacs-rex ({form} \"{long}\") \"X\" :repl-thread 4711)\n");
        check(&call, "(:return (:abort \"", "\") 4711)", slynk, slynk_pong);
    }
    // Nobody waits for the answer to this one.
    let typed = format!("(:emacs-channel-send 1 (:process \"{long}\"))");
    check(&typed, "(:background-message \"", "\")", slynk, slynk_pong);
    let call = format!("(call 4711 add-context ((:content \"{long}\")))");
    check(&call, "(epc-error 4711 \"", "\")", epc, epc_pong);
    assert_eq!(other.ok("ping", "nil"), "pong");
}

#[test]
fn the_longest_length_is_taken_or_refused_without_being_held() {
    let home = Home::new();
    let mut server = home.listening(&["--ephemeral", "--max-message-bytes", "1000000"]);
    let before = server.process.peak_memory();
    let mut raw = Raw::local(&server);
    raw.write(b"ffffff");
    raw.write(&vec![b' '; 0xff_ffff]);
    assert!(raw.payload().contains("has 16777215 bytes, but at most 1000000"));
    raw.write(framed("(call 1 ping nil)").as_bytes());
    assert_eq!(raw.payload(), "(return 1 :pong)");
    assert!(server.process.peak_memory() - before < 8 << 20);
    assert!(server.process.is_running());

    let server = Home::new();
    let server = server.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Epc);
    assert_eq!(client.ok("ping", "nil"), "pong");
    let half = "x".repeat(9_000_000);
    client.ok("add-context", &format!("(:manager \"m\" :content \"{half}\" :brief t)"));
    client.ok("add-context", &format!("(:manager \"m\" :content \"{half}\" :brief t)"));
    let refused = client.fails("get-context", "(:manager \"m\")");
    assert!(refused.message.contains("at most 16777215 can be sent"), "{refused:?}");
}

#[test]
fn a_connection_keeps_the_dialect_of_its_first_message() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let [(epc, epc_pong), (slynk, slynk_pong)] = PINGS;
    let mut raw = Raw::new(&server);
    raw.write(framed(epc).as_bytes());
    raw.write(framed(slynk).as_bytes());
    raw.write(framed(epc).as_bytes());
    let answers = raw.sorted(3);
    assert!(answers[0].starts_with("(epc-error nil \""), "{answers:?}");
    assert_eq!(answers[1..], [epc_pong, epc_pong]);
    let mut raw = Raw::new(&server);
    raw.write(framed(slynk).as_bytes());
    raw.write(framed(epc).as_bytes());
    raw.write(framed(slynk).as_bytes());
    let answers = raw.sorted(3);
    assert!(answers[0].starts_with("(:background-message \""), "{answers:?}");
    assert_eq!(answers[1..], [slynk_pong, slynk_pong]);
    // Lines stay lines.
    let mut client = server.tcp(Dialect::Native);
    client.ok("ping", "nil");
    client.write(framed(epc).as_bytes());
    assert!(client.line().unwrap().contains("-32700"));
    client.ok("ping", "nil");
    // Neither, in a payload.
    let mut raw = Raw::local(&server);
    raw.write(framed("(:id 1 :method ping)").as_bytes());
    assert!(raw.payload().contains("must be EPC"));
    raw.write(framed(epc).as_bytes());
    assert_eq!(raw.payload(), epc_pong);
}

#[test]
fn a_secret_may_be_the_first_payload() {
    let home = Home::new();
    for secret in ["s3cret pässword", "deadbeefdeadbeef"] {
        let file = home.write("secret", format!("{secret}\n"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let server = home.listening(&["--ephemeral", "--secret-file", &file]);
        for (ping, pong) in PINGS {
            let mut raw = Raw::new(&server);
            raw.write(framed(secret).as_bytes());
            raw.write(framed(ping).as_bytes());
            assert_eq!(raw.payload(), pong);
        }
        let mut line = server.tcp(Dialect::Native);
        line.write(format!("{secret}\n(:id 1 :method ping)\n").as_bytes());
        assert_eq!(line.line().unwrap(), "(:id 1 :result :pong)");
    }
    // One that nobody asked for is passed over.
    let server = home.listening(&["--ephemeral"]);
    for (ping, pong) in PINGS {
        let mut raw = Raw::new(&server);
        raw.write(framed("whatever").as_bytes());
        raw.write(framed(ping).as_bytes());
        assert_eq!(raw.payload(), pong);
    }
}

#[test]
fn nobody_is_called_who_has_not_subscribed() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    for number in 0..2000 {
        home.write(&format!("t/{number}.txt"), "a line\n");
    }
    let root = home.file("t");
    let params = format!("(:path {} :mode :listing)", quoted(root.to_str().unwrap()));
    for dialect in [Dialect::Epc, Dialect::Slynk] {
        let mut client = server.tcp(dialect);
        let id = client.send("add-tree", &params);
        let first = client.message();
        assert_eq!(first["id"], id, "no progress: {first}");
    }
    let mut client = server.tcp(Dialect::Epc);
    client.ok("subscribe", "(:topics (:context-changed))");
    client.add("watched", "x");
    assert_eq!(client.notification("context-changed")["manager"], "watched");
    client.add("watched", "y");
    // What the client answers is of no interest.
    client.write(framed("(return 1 nil)").as_bytes());
    client.write(framed("(epc-error 2 \"EPC-ERROR: No such method : stats\")").as_bytes());
    assert_eq!(client.notification("context-changed")["count"], 2);
    assert_eq!(client.ok("ping", "nil"), "pong");
}

#[test]
fn epc_lists_the_methods_in_its_own_form() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut raw = Raw::new(&server);
    raw.write(framed("(methods 4)\n").as_bytes());
    let methods = raw.payload();
    assert!(methods.starts_with("(return 4 ((add-context \":content string, :manager string, "));
}

/// Calls that are mutated.
const CALLS: [(&str, &str); 5] = [
    ("add-context", r#"(:manager "m" :content "(λ \"x\")" :type :code :metadata (:start-line 3))"#),
    ("get-context", r#"(:manager "m" :limit 2 :types (:code :error))"#),
    ("context-to-string", "(:format :xml :max-tokens 200 :limit 3)"),
    ("undo", r#"(:manager "m")"#),
    ("initialize", "nil"),
];

fn mutated(message: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(message.len());
        match random.below(5) {
            0 => message[at] ^= 1 << random.below(8),
            1 => message[at] = random.next() as u8,
            2 => message.insert(at, b"()\"'\\:#;\n\xff"[random.below(10)]),
            3 if message.len() > 1 => drop(message.remove(at)),
            _ => message.truncate(at.max(1)),
        }
    }
}

#[test]
fn mutated_payloads_are_answered_and_harm_nobody() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut other = server.tcp(Dialect::Native);
    other.add("sentinel", "stands");
    for dialect in [Dialect::Epc, Dialect::Slynk] {
        let mut random = Random(7);
        for _ in 0..20 {
            let mut client = server.tcp(dialect);
            client.ok("ping", "nil");
            for number in 0..200 {
                let (method, params) = CALLS[random.below(CALLS.len())];
                let call = request(dialect, &(1000 + number).to_string(), method, params);
                let mut payload = call.as_bytes()[6..].to_vec();
                mutated(&mut payload, &mut random);
                client.write(format!("{:06x}", payload.len()).as_bytes());
                client.write(&payload);
            }
            let ping = request(dialect, "4711", "ping", "nil");
            client.write(ping.as_bytes());
            while !["(return 4711 :pong)", "(:return (:ok :pong) 4711)"]
                .contains(&&*client.line().expect("the connection stays usable"))
            {}
        }
        assert_eq!(other.contents("sentinel"), ["stands"]);
    }
}

#[test]
fn mutated_frames_are_answered_or_end_the_connection_and_harm_nobody() {
    let home = Home::new();
    let mut server = home.listening(&["--ephemeral"]);
    let mut other = server.tcp(Dialect::Native);
    other.add("sentinel", "stands");
    let mut random = Random(8);
    for number in 0..400 {
        let dialect = [Dialect::Epc, Dialect::Slynk][number % 2];
        let mut raw = Raw::new(&server);
        let mut bytes = Vec::new();
        for id in 0..5 {
            let (method, params) = CALLS[random.below(CALLS.len())];
            bytes.extend(request(dialect, &id.to_string(), method, params).into_bytes());
        }
        mutated(&mut bytes, &mut random);
        // The server may have closed the connection before it has read all.
        let _ = raw.0.write_all(&bytes);
        let _ = raw.0.shutdown(std::net::Shutdown::Write);
        let mut answers = Vec::new();
        let _ = raw.0.read_to_end(&mut answers);
    }
    assert!(server.process.is_running());
    assert_eq!(other.contents("sentinel"), ["stands"]);
}
