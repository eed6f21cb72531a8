//! `make bench-curation`: measures how much strategies and hand-overs keep, the effect of a prompt
//! cache on their windows, and their speed. Prints each figure beside its target, as tables
//! in Markdown.
//!
//! Everything but the speed is the same in every run, since the conversations come from seeds.
//! `SESSIONS` and `DIALOGUES` name folders with recorded ones, which are then measured too, and
//! `EMBEDDINGS` a server of embeddings for the dialogues.

mod baseline;
mod cache;
mod coding;
mod dialogue;
mod evidence;
mod fresh;
mod given_back;
mod log;
mod meaning;
mod phrases;
mod public;
mod random;
mod recorded;
mod specifics;
mod speed;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

type Measure = fn() -> anyhow::Result<()>;

const MEASURES: &[(&str, Measure)] = &[
    ("evidence", evidence::measure),
    ("specifics", specifics::measure),
    ("cache", cache::measure),
    ("speed", speed::measure),
    ("sessions", recorded::measure),
    ("given-back", given_back::measure),
    ("dialogues", public::measure),
];

/// Runs the measures that are named, or all of them.
fn main() -> ExitCode {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut code = ExitCode::SUCCESS;
    for (name, measure) in MEASURES {
        if !named.is_empty() && !named.iter().any(|wanted| wanted == name) {
            continue;
        }
        if let Err(error) = measure() {
            let _ = writeln!(io::stderr(), "{name} could not be measured: {error:#}");
            code = ExitCode::FAILURE;
        }
    }
    code
}
