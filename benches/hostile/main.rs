//! What others notice of a hostile client: `make bench-hostile`.
//!
//! One client sends an input that is as large or as odd as the limits allow. Meanwhile another pings
//! without a pause to speak of, and a third adds small items, each durable before the next. A row of
//! Markdown for each input goes to stdout. An argument runs only the inputs whose names have it.

mod client;
mod inputs;
mod provider;
mod server;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use client::{Client, Ended};
use inputs::Input;
use server::Server;

/// How long the others rest between two calls.
const REST: Duration = Duration::from_millis(1);
/// How long the others go on at least: inputs that are refused at once are measured, too.
const SHORTEST: Duration = Duration::from_secs(2);
/// The largest message of the server, and the unit of its memory.
pub(crate) const LARGEST_MESSAGE: usize = 64 << 20;

fn main() -> ExitCode {
    // `cargo bench` says that it is one.
    let wanted = std::env::args().skip(1).find(|argument| argument != "--bench");
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted));
    let mut code = ExitCode::SUCCESS;
    let head = "| input | takes | ping p50 | p99.9 | max | add p99.9 | max | peak memory | ends with |\n\
                | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |";
    let _ = writeln!(io::stdout(), "{head}");
    for input in inputs::ALL.iter().filter(|input| is_wanted(input.name)) {
        match measure(input) {
            Ok(row) => drop(writeln!(io::stdout(), "{row}")),
            Err(error) => {
                let _ = writeln!(io::stderr(), "{} could not be measured: {error:#}", input.name);
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Sends one input to a server of its own and watches what others notice.
fn measure(input: &Input) -> anyhow::Result<String> {
    let server = Server::start(&(input.configuration)()?)?;
    let mut hostile = server.connect()?;
    let prepared = (input.prepare)(&mut hostile).context("preparing")?;
    for _ in 0..50 {
        hostile.call("ping", "nil")?;
    }
    server.forget_peak()?;
    let (mut pinging, mut adding) = (server.connect()?, server.connect()?);
    adding.call("add-context", ADD)?;
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let (ended, took, pings, adds) = thread::scope(|scope| {
        let pings = scope.spawn(|| repeat(&is_over, || pinging.call("ping", "nil").map(drop)));
        let adds = scope.spawn(|| repeat(&is_over, || adding.call("add-context", ADD).map(drop)));
        let ended = (input.attack)(&mut hostile, prepared);
        let took = begun.elapsed();
        drop(hostile);
        thread::sleep(SHORTEST.saturating_sub(took));
        is_over.store(true, Ordering::Relaxed);
        (ended, took, pings.join(), adds.join())
    });
    let broke = |_| anyhow::anyhow!("a watching client panicked");
    let (pings, adds) = (pings.map_err(broke)??, adds.map_err(broke)??);
    let memory = server.peak_bytes()? / LARGEST_MESSAGE as f64;
    let ended = match (ended?, input.is_refused) {
        (Ended::Well(ended), false) | (Ended::Refused(ended), true) => ended,
        (Ended::Well(_), true) => anyhow::bail!("it was not refused"),
        (Ended::Refused(why), false) => anyhow::bail!("it was refused: {why}"),
    };
    let mut ended: String = ended.replace('|', "/").chars().take(90).collect();
    ended = ended.trim().to_owned();
    Ok(format!(
        "| {} | {} | {} | {} | {} | {} | {} | {memory:.1} × | {ended} |",
        input.name,
        time(took),
        time(share(&pings, 0.5)),
        time(share(&pings, 0.999)),
        time(share(&pings, 1.0)),
        time(share(&adds, 0.999)),
        time(share(&adds, 1.0)),
    ))
}

/// A small durable change.
const ADD: &str = "(:manager \"watcher\" :content \"(defun f (x) x)\" :type :code :brief t)";

/// Calls until it is over, and gives how long each call took.
fn repeat(
    is_over: &AtomicBool,
    mut call: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        call()?;
        times.push(begun.elapsed());
        thread::sleep(REST);
    }
    times.sort_unstable();
    Ok(times)
}

/// The time that this share of all is not longer than.
fn share(sorted: &[Duration], share: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    let at = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1).min(last);
    sorted.get(at).copied().unwrap_or_default()
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        long if long >= 1.0 => format!("{long:.1} s"),
        short if short >= 0.01 => format!("{:.0} ms", short * 1e3),
        short => format!("{:.2} ms", short * 1e3),
    }
}

/// What an input needs that was made before it.
pub(crate) type Prepared = Option<Box<dyn std::any::Any>>;

/// What a client does.
pub(crate) type Attack = fn(&mut Client, Prepared) -> anyhow::Result<Ended>;
