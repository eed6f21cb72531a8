//! Tests of finding numbers in sentences, and what they measure.

use super::*;

#[track_caller]
fn check(sentence: &str, expected: &str) {
    let show = |q: &Quantity| format!("{} = {}", q.subject, q.amount);
    let found: Vec<String> = quantities(sentence).iter().map(show).collect();
    assert_eq!(found.join("; "), expected, "{sentence}");
}

#[test]
fn the_subject_stands_before_its_link() {
    check("The request timeout is 30 s.", "request timeout = 30 s");
    check("Set the batch size to 64 please", "batch size = 64");
    check("retries = 5, port: 8080", "retries = 5; port = 8080");
    check("The size of the cache must stay under 200 MB", "size of cache = 200 MB");
    check("max_connections=50", "max_connections = 50");
    check("Upload limit: 25 MB", "upload limit = 25 MB");
    check("The cache hit rate is 60 %", "cache hit rate = 60 %");
    check("The queue (5 MB) is fine", "queue = 5 MB");
    check("For the queue, 5 MB is what they asked for", "queue = 5 MB");
    check("The retry delay? 5 s from here on.", "retry delay = 5 s");
    check("I was wrong about the cache hit rate: 60 % is right.", "cache hit rate = 60 %");
    check("Currently the cache hit rate equals 60 %.", "cache hit rate = 60 %");
    check("After the test the queue delay went down to 5 s", "queue delay = 5 s");
}

#[test]
fn the_subject_may_follow_the_number() {
    check("Use a 45-second request timeout.", "request timeout = 45second");
    check("allow 30 s for the nightly job", "nightly job = 30 s");
    check("spawn 8 workers", "workers = 8 workers");
    check("Ops gave us 5 s as the queue delay.", "queue delay = 5 s");
    check("5 s – that's the queue delay we ship with.", "queue delay = 5 s");
    check("5 s is our queue delay.", "queue delay = 5 s");
    check("Keep 5 s as the queue delay for the time being.", "queue delay = 5 s");
}

#[test]
fn outdated_numbers_are_ignored() {
    check("Raise the request timeout from 30 s to 45 s", "request timeout = 45 s");
    check("The retry delay is 5 s, not 2 s", "retry delay = 5 s");
    check("The retry delay is now 5 s instead of 2 s", "retry delay = 5 s");
    check("The retry delay was 2 s, now 5 s", "retry delay = 2 s; retry delay = 5 s");
    check("The retry delay has to be 5 s, no longer 2 s", "retry delay = 5 s");
    check("Adjust the retry delay to 5 s, 2 s did not work.", "retry delay = 5 s");
}

#[test]
fn numbers_that_measure_nothing_are_ignored() {
    check("step 3 of issue 12 on 2026-11-21, see v1.2.3", "");
    check("line 45 has x", "");
    check("see src/a.rs:12, main.go: 231 and 12:08:06", "");
}

#[test]
fn it_refers_to_an_earlier_quantity() {
    check("Actually make it 45 s", " = 45 s");
}
