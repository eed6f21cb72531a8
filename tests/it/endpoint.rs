//! A server of models that a test has to itself, on this machine: it hears HTTP requests and
//! answers as the test says.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::strict;
use crate::support::Json;

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// By their names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Json,
}

/// What is answered, after a while.
pub(crate) struct Answer {
    pub(crate) after: Duration,
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Response(String),
    /// Each is sent for itself, and then the end as it should be.
    Chunks(Vec<Vec<u8>>),
    /// The same, with this time before each but the first.
    Paced(Vec<Vec<u8>>, Duration),
    /// The connection is closed without a word.
    Closed,
    /// The connection is closed in the middle.
    Cut(Vec<u8>),
    /// More and more of the same comes, until nobody listens.
    Endless(Vec<u8>),
    /// More and more heads of provisional answers come in place of one, as fast as they are read.
    Provisional,
    /// Nothing more comes.
    Silent(Vec<u8>),
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        let (after, headers) = (Duration::ZERO, String::new());
        Self { after, status, headers, body: Body::Response(body.into()) }
    }

    pub(crate) fn streaming(body: Body) -> Self {
        Self { body, ..Self::new(200, "") }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }
}

pub(crate) struct Endpoint {
    /// Where it listens.
    pub(crate) root: String,
    /// The same with `/v1`.
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    left: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    refused: Arc<Mutex<Vec<String>>>,
}

/// No test sends what a strict server refuses, whatever it makes of the refusal.
impl Drop for Endpoint {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(*self.refused.lock().unwrap(), Vec::<String>::new());
        }
    }
}

impl Endpoint {
    /// Answers each request as `answer` says, which is told how many came before. What any strict
    /// server would refuse is refused instead. What is asked about models, such as how much they
    /// take, is not found and not counted.
    pub(crate) fn new(answer: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::answering(false, answer)
    }

    /// The same, and `answer` is asked about models, too.
    pub(crate) fn listing(
        answer: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::answering(true, answer)
    }

    fn answering(
        lists: bool,
        answer: impl Fn(&Asked, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let left: Arc<AtomicUsize> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let refused: Arc<Mutex<Vec<String>>> = Arc::default();
        let (answer, heard, gone) = (Arc::new(answer), Arc::clone(&asked), Arc::clone(&left));
        let (refusals, opened) = (Arc::clone(&refused), Arc::clone(&connections));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, heard, gone) = (answer.clone(), heard.clone(), gone.clone());
                let refused = refusals.clone();
                let stream = stream.unwrap();
                opened.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    stream.set_nodelay(true).unwrap();
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(asked) = hear(&mut reader) {
                        let about_models = asked.method == "GET" || asked.path == "/api/show";
                        if about_models && !lists {
                            let _ = say(&stream, &Answer::new(404, "{}"));
                            continue;
                        }
                        let before = {
                            let mut heard = heard.lock().unwrap();
                            heard.push(asked.clone());
                            heard.len() - 1
                        };
                        let answer = match strict::check(&asked.path, &asked.body) {
                            Ok(()) => answer(&asked, before),
                            Err(why) => {
                                let refusal = Answer::new(400, strict::refusal(&why));
                                refused.lock().unwrap().push(why);
                                refusal
                            }
                        };
                        if say(&stream, &answer).is_err() {
                            gone.fetch_add(1, Ordering::SeqCst);
                            let _ = stream.shutdown(std::net::Shutdown::Both);
                            return;
                        }
                    }
                });
            }
        });
        Self { url: format!("{root}/v1"), root, asked, left, connections, refused }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// How many left before they were told everything.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}

fn hear(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = HashMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn say(mut stream: &TcpStream, answer: &Answer) -> std::io::Result<()> {
    std::thread::sleep(answer.after);
    let Answer { status, headers, body, .. } = answer;
    if matches!(body, Body::Closed) {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    }
    if matches!(body, Body::Provisional) {
        let many = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(10_000);
        loop {
            stream.write_all(&many)?;
        }
    }
    let framing = match body {
        Body::Response(text) => format!("Content-Length: {}\r\n", text.len()),
        _ => "Transfer-Encoding: chunked\r\n".to_owned(),
    };
    let begin = match body {
        Body::Closed | Body::Provisional | Body::Paced(..) => Vec::new(),
        Body::Response(text) => text.clone().into_bytes(),
        Body::Chunks(chunks) => chunks.iter().flat_map(|bytes| chunk(bytes)).collect(),
        Body::Cut(bytes) | Body::Endless(bytes) | Body::Silent(bytes) => chunk(bytes),
    };
    // In one piece, since who waits for no pause may not find one between the head and the body.
    let head = format!("HTTP/1.1 {status} ChatMessage\r\n{framing}{headers}\r\n").into_bytes();
    stream.write_all(&[head, begin].concat())?;
    match body {
        Body::Closed | Body::Provisional | Body::Response(_) => Ok(()),
        Body::Chunks(_) => stream.write_all(b"0\r\n\r\n"),
        Body::Paced(chunks, pause) => {
            for (number, bytes) in chunks.iter().enumerate() {
                std::thread::sleep(if number == 0 { Duration::ZERO } else { *pause });
                stream.write_all(&chunk(bytes))?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Body::Cut(_) => stream.shutdown(std::net::Shutdown::Both),
        Body::Endless(bytes) => loop {
            std::thread::sleep(Duration::from_millis(1));
            stream.write_all(&chunk(bytes))?;
        },
        Body::Silent(_) => {
            // Ends when the other side leaves.
            match stream.read(&mut [0])? {
                0 => Err(std::io::ErrorKind::BrokenPipe.into()),
                _ => Ok(()),
            }
        }
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    framed
}
