//! Cost of a turn before the model gets it, and of many answers at the same time.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::model::{Model, piece};
use crate::row::{Row, median, p95};
use crate::server::Server;
use crate::sessions::fill;

/// Size of the session whose turns are timed, and number of turns.
const MESSAGES: usize = 1_000;
const ITEMS: usize = 50;
const TURNS: usize = 41;
/// Maximum time for a request to reach the model.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of simultaneous answers, and number of pieces in each.
const STREAMS: usize = 100;
const PIECES: usize = 500;
/// Target rate: a hundred models that each send a hundred pieces per second, which few do.
const PIECES_A_SECOND: f64 = 10_000.0;

/// Measures the time from the call of `chat` to the first byte of the request at the model.
pub(crate) fn first_byte() -> anyhow::Result<Vec<Row>> {
    let model = Model::answering(3)?;
    let mut server = Server::configured(&model.configuration())?;
    fill(&mut server, "long", MESSAGES)?;
    for number in 0..ITEMS {
        let code = format!("(defun sum-{number} (a b)\n  (+ a b))\n").repeat(50);
        let params = format!("(:manager \"*session 1*\" :content {code:?} :type :code :brief t)");
        server.call("add-context", &params)?;
    }
    let mut times = Vec::new();
    for turn in 0..TURNS {
        let params = format!("(:content \"What of part {turn}?\")");
        let start = Instant::now();
        server.stream("chat", &params)?;
        let begun = model.first_bytes.recv_timeout(PATIENCE).context("no request came")?;
        let took =
            begun.checked_duration_since(start).context("the request came before its call")?;
        times.push(took.as_secs_f64() * 1e3);
    }
    let measure = "chat to first byte at the model, 1,000 messages, 50 items";
    Ok(vec![
        Row::at_most(&format!("{measure}, median"), median(times.clone()), 30.0, "ms"),
        Row::at_most(&format!("{measure}, p95"), p95(times), 30.0, "ms"),
    ])
}

/// Measures many clients that each get an answer streamed at the same time.
pub(crate) fn streams() -> anyhow::Result<Vec<Row>> {
    let model = Model::answering(PIECES)?;
    let mut server = Server::configured(&model.configuration())?;
    let socket = server.socket();
    server.call("ping", "nil")?;
    let before = server.resident_mb()?;
    let start = Instant::now();
    let clients: Vec<_> = (0..STREAMS)
        .map(|number| {
            let socket = socket.clone();
            thread::spawn(move || hear(&UnixStream::connect(socket)?, number))
        })
        .collect();
    for client in clients {
        client.join().map_err(|_| anyhow::anyhow!("a client's thread panicked"))??;
    }
    let rate = (STREAMS * PIECES) as f64 / start.elapsed().as_secs_f64();
    let grown = server.peak_mb()? - before;
    let measure = "pieces of 100 streams at a time, none lost or out of order";
    Ok(vec![
        Row::at_least(measure, rate, PIECES_A_SECOND, "/s"),
        Row::at_most("memory for these 100 streams", grown, 100.0, "MB"),
    ])
}

/// Gets an answer streamed in a session of its own, and checks each of its pieces.
fn hear(mut stream: &UnixStream, number: usize) -> anyhow::Result<()> {
    writeln!(stream, "(:id 1 :method open-session :params (:name \"s-{number}\" :current nil))")?;
    writeln!(stream, "(:id 2 :method chat :params (:session \"s-{number}\" :content \"Go.\"))")?;
    let mut heard = 0;
    let mut whole = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if line.starts_with("(:id 1 :result ") {
            continue;
        }
        if line.starts_with("(:id 2 ") {
            ensure!(line.contains(&format!(":content {whole:?}")), "the answer is {line}");
            ensure!(heard == PIECES, "{heard} pieces came of {PIECES}");
            return Ok(());
        }
        let said = piece(heard);
        ensure!(line.contains(&format!(":text {said:?}")), "{line} came in place of {said:?}");
        whole += &said;
        heard += 1;
    }
    anyhow::bail!("the server hung up on stream {number}")
}
