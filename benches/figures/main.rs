//! The part of `make bench` that needs no Emacs. Prints rows of tab-separated fields.
//!
//! `in_process` times the library itself; `server` times and weighs the binary from outside, and
//! `live` has it follow files that change; `sessions` does both with long conversations, and
//! `chats` with a `model` on this machine. Each measure is one function that returns its [`Row`]s,
//! so that a part that fails is named and the others still run. An argument runs only the measures
//! whose names contain it.

mod chats;
mod in_process;
mod live;
mod model;
mod row;
mod server;
mod sessions;

use std::io::{self, Write};
use std::process::ExitCode;

use row::Row;

type Measure = fn() -> anyhow::Result<Vec<Row>>;

const MEASURES: &[(&str, Measure)] = &[
    ("adds in process", in_process::adds),
    ("rendering", in_process::rendering),
    ("s-expressions", in_process::s_expressions),
    ("adds through the server", server::pipelined_adds),
    ("start of the server", server::start),
    ("memory of an idle server", server::idle_memory),
    ("memory of a full server", server::full_memory),
    ("live items", live::following),
    ("appends to sessions", sessions::appends),
    ("opening a long session", sessions::opening),
    ("windows of long sessions", sessions::windows),
    ("turns until the model hears", chats::first_byte),
    ("many streams", chats::streams),
];

fn main() -> ExitCode {
    // `cargo bench` passes this argument.
    let wanted = std::env::args().skip(1).find(|argument| argument != "--bench");
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| name.contains(wanted));
    let mut code = ExitCode::SUCCESS;
    for (name, measure) in MEASURES.iter().filter(|(name, _)| is_wanted(name)) {
        if let Err(error) = print(measure) {
            // The table is incomplete, so whoever runs this must see the failure.
            let _ = writeln!(io::stderr(), "{name} could not be measured: {error:#}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn print(measure: &Measure) -> anyhow::Result<()> {
    for row in measure()? {
        writeln!(io::stdout(), "{row}")?;
    }
    Ok(())
}
