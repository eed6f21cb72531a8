//! The part of `make bench` that needs no Emacs: rows of tab-separated fields on stdout.
//!
//! `in_process` times the library itself; `server` times and weighs the binary from outside;
//! `sessions` does both with long conversations. Each
//! measure is one function that returns its [`Row`]s, so that a part that fails is named and the
//! others still run.

mod in_process;
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
    ("appends to sessions", sessions::appends),
    ("opening a long session", sessions::opening),
    ("windows of long sessions", sessions::windows),
];

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (name, measure) in MEASURES {
        if let Err(error) = print(measure) {
            // The table is not complete: whoever runs this must see that it failed.
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
