//! A simulated model on this machine: an HTTP server that records the time at which each request
//! arrives, and answers in numbered pieces.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// A model's server, which runs as long as the process.
pub(crate) struct Model {
    port: u16,
    /// Arrival times of the first byte of each question. The server also asks for the model's limit,
    /// which is no question.
    pub(crate) first_bytes: mpsc::Receiver<Instant>,
}

impl Model {
    /// Starts a model whose answers have the given number of pieces.
    pub(crate) fn answering(pieces: usize) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (noted, first_bytes) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = noted.clone();
                // A broken connection ends only its own thread. Its measure then fails.
                thread::spawn(move || serve(stream, pieces, &noted));
            }
        });
        Ok(Self { port, first_bytes })
    }

    /// Returns the configuration of a server that talks to this model.
    pub(crate) fn configuration(&self) -> String {
        let port = self.port;
        format!(
            "[[providers]]\nname = \"bench\"\nkind = \"openai\"\nmodel = \"bench\"\n\
             base-url = \"http://127.0.0.1:{port}/v1\"\n"
        )
    }
}

/// Returns the text of piece `number` of an answer.
pub(crate) fn piece(number: usize) -> String {
    format!("{number} ")
}

/// Answers the requests of one connection until it is closed.
fn serve(mut stream: TcpStream, pieces: usize, noted: &mpsc::Sender<Instant>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let mut request = Vec::new();
        let mut begun = None;
        while !is_whole(&request) {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            begun.get_or_insert_with(Instant::now);
            request.extend_from_slice(&buffer[..count]);
        }
        if let Some(begun) = begun.filter(|_| request.starts_with(b"POST ")) {
            // The measure may not use the time.
            let _ = noted.send(begun);
        }
        answer(&mut stream, pieces)?;
    }
}

/// Returns whether the request has its head and as much of a body as the head announces.
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    request.len() >= end + 4 + length
}

fn answer(stream: &mut TcpStream, pieces: usize) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )?;
    for number in 0..pieces {
        let said = piece(number);
        let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{said:?}}}}}]}}\n\n");
        chunk(stream, &event)?;
    }
    chunk(stream, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")?;
    chunk(stream, "data: [DONE]\n\n")?;
    stream.write_all(b"0\r\n\r\n")
}

/// Sends each chunk by itself.
fn chunk(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}
