//! Tests that have nothing to run with on this machine, and how `scripts/test` hears of them.

use std::io::Write;
use std::panic::Location;

/// Names the file to which each test that is skipped adds a line; `scripts/test` counts the lines.
const SKIPPED: &str = "CONTEXTURE_SKIPPED";

/// Says which tier of the tests runs (`scripts/test`): `check`, `most` or `all`. Without it, a test that
/// needs a client that others wrote runs if the client is installed.
const TIER: &str = "CONTEXTURE_TESTS";

/// Reports whether the calling test, which needs a client that others wrote, is to run. `make test-all`
/// installs all of them, so there the test fails if its client is missing. The quicker tiers leave such
/// tests to it.
#[track_caller]
pub(crate) fn may_use(client: &str, installed: bool) -> bool {
    match std::env::var(TIER).as_deref() {
        Ok("all") => assert!(installed, "there is no {client}, which `make setup-all` installs"),
        Ok(_) => {
            skipped(&format!("`make test-all` runs it, with {client}"));
            return false;
        }
        Err(_) if !installed => skipped(&format!("there is no {client}")),
        Err(_) => {}
    }
    installed
}

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
