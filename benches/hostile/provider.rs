//! A model's server that never stops talking.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// What it never stops saying.
#[derive(Clone, Copy)]
pub(crate) enum Endless {
    /// One line of a stream of events.
    Line,
    /// Pieces of text of a few letters.
    Pieces,
    /// Pieces of thoughts.
    Thoughts,
    /// The arguments of one call of a tool.
    Arguments,
    /// Headers.
    Headers,
    /// The JSON of a refusal.
    Refusal,
    /// A list of models.
    Models,
    /// Twenty megabytes of text without a space, and then the end.
    OneWord,
}

/// Starts it and gives the configuration of a server that talks to it.
pub(crate) fn endless(kind: Endless) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Who talks for ever is ended by the other side.
            thread::spawn(move || serve(stream, kind));
        }
    });
    Ok(format!(
        "[[providers]]\nname = \"endless\"\nkind = \"openai\"\nmodel = \"endless\"\n\
         base-url = \"http://127.0.0.1:{port}/v1\"\n"
    ))
}

fn serve(mut stream: TcpStream, kind: Endless) -> io::Result<()> {
    let mut request = [0; 64 << 10];
    if stream.read(&mut request)? == 0 {
        return Ok(());
    }
    let head = |kind: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
    let begin = match kind {
        Endless::Headers => "HTTP/1.1 200 OK\r\n".to_owned(),
        Endless::Refusal => "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n\
                             {\"error\": {\"message\": \""
            .to_owned(),
        Endless::Models => head("application/json") + "{\"data\": [",
        Endless::Line => head("text/event-stream") + "data: ",
        _ => head("text/event-stream"),
    };
    stream.write_all(begin.as_bytes())?;
    let more = match kind {
        Endless::Headers => "X-More: more of the same\r\n".repeat(100),
        Endless::Refusal | Endless::Line => "x".repeat(16 << 10),
        Endless::Models => "{\"id\": \"m\"},".repeat(1000),
        Endless::Pieces => delta("{\"content\": \"abc \"}").repeat(100),
        Endless::Thoughts => delta("{\"reasoning_content\": \"abc \"}").repeat(100),
        Endless::Arguments => delta(
            "{\"tool_calls\": [{\"index\": 0, \"id\": \"c\", \"function\": \
             {\"name\": \"add_file\", \"arguments\": \"xxxxxxxxxxxxxxxx\"}}]}",
        )
        .repeat(100),
        Endless::OneWord => delta(&format!("{{\"content\": \"{}\"}}", "x".repeat(100_000))),
    };
    if matches!(kind, Endless::OneWord) {
        for _ in 0..200 {
            stream.write_all(more.as_bytes())?;
        }
        return stream.write_all(b"data: [DONE]\n\n");
    }
    loop {
        stream.write_all(more.as_bytes())?;
    }
}

fn delta(delta: &str) -> String {
    format!("data: {{\"choices\": [{{\"delta\": {delta}}}]}}\n\n")
}
