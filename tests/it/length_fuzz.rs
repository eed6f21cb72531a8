//! Streams of length-framed messages that are wrong in every way: each is answered with an error or
//! ends its connection cleanly, and other connections, in every dialect, notice nothing.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

use contexture_program::internals::value::sexp;

use crate::support::*;

const FRAMED: [Dialect; 2] = [Dialect::Epc, Dialect::Slynk];
/// Small, so that lengths on both sides of it are tried.
const LIMIT: usize = 5000;

/// A server, and others than whoever sends the wrong streams: one for each dialect.
struct Bystanders {
    server: Listening,
    clients: Vec<Client>,
}

impl Bystanders {
    fn new(home: &Home) -> Self {
        let server = home.listening(&["--ephemeral", "--max-message-bytes", &LIMIT.to_string()]);
        let mut clients: Vec<_> = Dialect::ALL.iter().map(|dialect| server.tcp(*dialect)).collect();
        clients[0].add("sentinel", "stands λ");
        Self { server, clients }
    }

    /// Sends a stream in pieces of this size, and gives all that is answered until the end. It goes
    /// over the Unix socket, where finding out who connects costs nothing.
    fn answers(&self, stream: &[u8], piece: usize) -> Vec<String> {
        let raw = UnixStream::connect(&self.server.socket).unwrap();
        raw.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(&raw, stream, piece, |raw| raw.shutdown(Shutdown::Write))
    }

    fn answers_over_tcp(&self, stream: &[u8], piece: usize) -> Vec<String> {
        let raw = TcpStream::connect(("127.0.0.1", self.server.port)).unwrap();
        raw.set_nodelay(true).unwrap();
        raw.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(&raw, stream, piece, |raw| raw.shutdown(Shutdown::Write))
    }

    #[track_caller]
    fn notice_nothing(&mut self) {
        assert!(self.server.process.is_running());
        for client in &mut self.clients {
            assert_eq!(client.contents("sentinel"), ["stands λ"]);
            let managers = client.ok("list-managers", "nil");
            assert_eq!(managers.as_array().unwrap().len(), 1, "{managers}");
        }
    }
}

/// Sends, ends what is sent, and reads until the server has ended too.
fn exchange<S>(raw: &S, stream: &[u8], piece: usize, end: fn(&S) -> io::Result<()>) -> Vec<String>
where
    for<'a> &'a S: Read + Write,
{
    let mut both = raw;
    for piece in stream.chunks(piece) {
        // The server may have closed it already.
        if both.write_all(piece).is_err() {
            break;
        }
    }
    let _ = end(raw);
    let mut answered = Vec::new();
    if let Err(error) = both.read_to_end(&mut answered) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "it hangs");
    }
    messages(&answered)
}

/// What the server said: whole messages and nothing else, each of which can be read.
#[track_caller]
fn messages(mut answered: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(first) = answered.first() {
        if first.is_ascii_hexdigit() {
            messages.push(read_payload(&mut answered).expect("a whole payload"));
            sexp::read(messages.last().unwrap()).unwrap();
        } else {
            let end = answered.iter().position(|byte| *byte == b'\n').expect("a whole line");
            messages.push(String::from_utf8(answered[..end].to_vec()).unwrap());
            answered = &answered[end + 1..];
        }
    }
    messages
}

fn is_error(message: &str) -> bool {
    let errors = ["(epc-error ", "(return-error ", "(:background-message ", "(:return (:abort "];
    errors.iter().any(|begin| message.starts_with(begin)) || message.contains("error")
}

/// A call that would add something, and one that changes nothing.
fn call(dialect: Dialect, id: u32, method: &str) -> String {
    let params = if method == "ping" { "nil" } else { "(:content \"é(\\\"\" :manager \"none\")" };
    request(dialect, &id.to_string(), method, params)
}

#[test]
fn a_message_that_is_cut_off_is_dropped() {
    let home = Home::new();
    let mut others = Bystanders::new(&home);
    for dialect in FRAMED {
        let whole = call(dialect, 1, "ping");
        let stream = format!("{whole}{}", call(dialect, 2, "add-context"));
        for at in 0..stream.len() {
            let answers = others.answers(&stream.as_bytes()[..at], usize::MAX);
            match at {
                // Not yet to be told from a line.
                1..6 => assert!(is_error(&answers[0]) && answers.len() == 1, "{answers:?}"),
                _ => assert_eq!(answers.len(), usize::from(at >= whole.len()), "cut at {at}"),
            }
        }
        others.notice_nothing();
    }
}

#[test]
fn a_wrong_length_is_an_error_or_the_end() {
    let home = Home::new();
    let mut others = Bystanders::new(&home);
    for dialect in FRAMED {
        let good = call(dialect, 1, "ping");
        let right = good.len() - 6;
        let near = right.saturating_sub(40)..right + 40;
        for length in (0..20).chain(near).chain([LIMIT - 1, LIMIT, LIMIT + 1, 0xff_fffe, 0xff_ffff])
        {
            if length == right {
                continue;
            }
            for header in [format!("{length:06x}"), format!("{length:06X}")] {
                for rest in [String::new(), good.repeat(3), "x".repeat(2 * LIMIT)] {
                    let stream = format!("{good}{header}{}{rest}", &good[6..]);
                    let answers = others.answers(stream.as_bytes(), usize::MAX);
                    let wrong = answers.iter().skip(1).filter(|said| !is_error(said)).count();
                    // A length that is too long may swallow whole messages, and the last of them end
                    // where one ended: then what follows is read again.
                    assert!(wrong <= 3, "{header}: {answers:?}");
                    let enough = stream.len() >= good.len() + 6 + length + 6;
                    assert!(!enough || answers.len() > 1, "{header} is not answered");
                }
            }
        }
        others.notice_nothing();
    }
}

#[test]
fn what_is_lost_is_told_however_much_comes_after_it() {
    let home = Home::new();
    let mut others = Bystanders::new(&home);
    for (number, more) in [0, 1000, 100_000, 3_000_000].into_iter().enumerate() {
        let dialect = FRAMED[number % 2];
        let mut stream = call(dialect, 1, "ping").into_bytes();
        stream.extend_from_slice(b"nohexx");
        stream.resize(stream.len() + more, b'y');
        let answers = others.answers_over_tcp(&stream, 64 << 10);
        assert_eq!(answers.len(), 2, "{more} bytes after it: {answers:?}");
        let told = |said: &String| said.contains("six hex digits, got nohexx");
        assert!(answers.iter().any(told), "{answers:?}");
        others.notice_nothing();
    }
}

#[test]
fn messages_of_all_dialects_on_one_connection_harm_nobody() {
    let home = Home::new();
    let mut others = Bystanders::new(&home);
    let mut random = Random(11);
    for round in 0..300 {
        let first = Dialect::ALL[random.below(Dialect::ALL.len())];
        let mut stream = call(first, 0, "ping");
        for id in 1..2 + random.below(6) as u32 {
            let message = call(Dialect::ALL[random.below(Dialect::ALL.len())], id, "ping");
            match random.below(6) {
                // Lines with a length, payloads without one.
                0 => stream += &framed(&message),
                1 => stream += message.trim_start_matches(|c: char| c.is_ascii_hexdigit()),
                _ => stream += &message,
            }
        }
        let piece = 1 + random.below(30);
        let answers = others.answers(stream.as_bytes(), piece);
        assert!(!answers.is_empty(), "round {round}: {stream:?}");
        let framed = answers.iter().all(|said| said.starts_with('('));
        assert!(framed || first == Dialect::Json, "round {round}: {answers:?}");
    }
    others.notice_nothing();
}

#[test]
fn random_streams_are_answered_or_ended() {
    let home = Home::new();
    let mut others = Bystanders::new(&home);
    let mut random = Random(12);
    for round in 0..600 {
        let dialect = FRAMED[round % 2];
        let mut stream = call(dialect, 0, "ping").into_bytes();
        for id in 1..6 {
            let mut message = call(dialect, id, "ping").into_bytes();
            let at = random.below(message.len());
            match random.below(7) {
                0 => message[at] ^= 1 << random.below(8),
                1 => message[random.below(6)] = random.next() as u8,
                2 => message.truncate(at),
                3 => drop(message.splice(at..at, framed("(call 9 ping nil)").into_bytes())),
                4 => message[..6].copy_from_slice(format!("{:06x}", random.below(300)).as_bytes()),
                5 => message.insert(at, b"()\"\\;\n\0\xff\xe2"[random.below(9)]),
                _ => {}
            }
            stream.extend(message);
        }
        let answers = others.answers(&stream, 1 + random.below(stream.len()));
        assert!(!answers.is_empty(), "round {round}");
        if round % 100 == 0 {
            others.notice_nothing();
        }
    }
    others.notice_nothing();
}
