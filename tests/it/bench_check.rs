//! The check of a benchmark's figures.

use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `scripts/bench-check` with a row that has this figure, and returns whether it is accepted.
fn accepted(ours: &str, peer: &str) -> bool {
    is_accepted("a measure", ours, peer)
}

fn is_accepted(measure: &str, ours: &str, peer: &str) -> bool {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/bench-check");
    let mut check =
        Command::new(script).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let row = format!("{measure}\t{ours}\t{peer}\t0.5\t<= 1\tyes\n");
    check.stdin.take().unwrap().write_all(row.as_bytes()).unwrap();
    check.wait().unwrap().success()
}

#[test]
fn figures_that_can_be_are_accepted() {
    for ours in ["1.5 ms", "0.03 ms", "121 / 221 us", "0 MB", "62921 /s", "1,024 MB/s", "7 µs"] {
        assert!(accepted(ours, "30 ms"), "{ours}");
    }
}

#[test]
fn figures_that_cannot_be_are_refused() {
    let figures = [
        "-41.0 ms",
        "-1 MB",
        "0.00 ms",
        "0 us",
        "0 / 221 us",
        "0 /s",
        "NaN ms",
        "nan",
        "inf ms",
        "",
    ];
    for ours in figures {
        assert!(!accepted(ours, "30 ms"), "{ours}");
    }
    assert!(!accepted("1.5 ms", "-30 ms") && !accepted("1.5 ms", "NaN ms"));
}

#[test]
fn a_difference_of_times_may_be_anything_but_no_number() {
    let accepted = |ours: &str| is_accepted("200 marks, what they add to a key", ours, "1000 us");
    assert!(accepted("-2 us") && accepted("0 us") && !accepted("NaN us") && !accepted(""));
}
