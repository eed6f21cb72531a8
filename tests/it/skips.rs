//! Tests that have nothing to run with on this machine, and how `scripts/test` hears of them.

use std::io::Write;
use std::panic::Location;

/// Names the file to which each test that is skipped adds a line; `scripts/test` counts the lines.
const SKIPPED: &str = "CONTEXTURE_SKIPPED";

/// Reports that the calling test is skipped, and why. The harness knows only passed and failed tests,
/// so the test should return at once.
#[track_caller]
pub(crate) fn skipped(reason: &str) {
    let line = format!("{}: {reason}\n", Location::caller());
    // Not `eprintln!`, which is shown only if the test fails.
    let _ = write!(std::io::stderr(), "skipped {line}");
    if let Some(file) = std::env::var_os(SKIPPED) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
