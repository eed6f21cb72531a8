//! Tests of the delivery to clients that read slowly or not at all.

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::*;
use crate::server::backpressure::ROOM_LIMIT;

const PIECE: usize = 10_000;

fn piece(number: usize) -> Value {
    let text = format!("{number} {}", "x".repeat(PIECE));
    Value::Map(vec![("text".into(), Value::Str(text))])
}

/// Sends progress until there is no more room, to a client that does not read. Returns the number
/// of messages sent.
fn fill(outbox: &Outbox) -> usize {
    let mut told = 0;
    while outbox.room().now_or_never().is_some() {
        outbox.progress(piece(told));
        told += 1;
    }
    told
}

#[tokio::test]
async fn who_waits_for_room_loses_nothing() {
    let (near, far) = tokio::io::duplex(1000);
    let (writer, outbox) = OutboxWriter::new(near, 64 << 20, &Unread::default());
    let told = fill(&outbox);
    assert!((ROOM_LIMIT / 2..=ROOM_LIMIT + 2 * PIECE).contains(&(told * PIECE)), "{told}");
    // The same is true after the writer has taken everything while the client still does not read.
    let writing = tokio::spawn(writer.run());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(outbox.room().now_or_never().is_none());
    let mut lines = BufReader::new(far).lines();
    let reading = tokio::spawn(async move {
        let mut read = 0;
        while let Some(line) = lines.next_line().await.unwrap() {
            assert!(line.contains(&format!("\"{read} x")), "{}", &line[..60]);
            read += 1;
        }
        read
    });
    outbox.room().await;
    drop(outbox);
    writing.await.unwrap().unwrap();
    assert_eq!(reading.await.unwrap(), told);
}

#[tokio::test]
async fn who_never_reads_is_not_waited_for_again() {
    let (near, _far) = tokio::io::duplex(1000);
    let (_writer, outbox) = OutboxWriter::new(near, 64 << 20, &Unread::default());
    fill(&outbox);
    outbox.backpressure.give_up();
    // Even so, the amount of unread data stays bounded.
    for number in 0..1000 {
        assert!(outbox.room().now_or_never().is_some());
        outbox.progress(piece(number));
    }
    assert!(!outbox.progress(piece(0)));
    assert!(outbox.backpressure.bytes() < CHATTER_LIMIT + 2 * PIECE);
}

#[test]
fn progress_is_told_to_those_who_can_hear_it() {
    let (writer, outbox) = OutboxWriter::new(Vec::new(), 64 << 20, &Unread::default());
    assert!(outbox.progress(piece(0)));
    outbox.send(Out::Speak(Dialect::Json));
    assert!(outbox.progress(piece(1)));
    for framed in [Dialect::Epc, Dialect::Slynk] {
        outbox.send(Out::Speak(framed));
        assert!(!outbox.progress(piece(2)));
    }
    outbox.send(Out::Speak(Dialect::Native));
    drop(writer);
    assert!(!outbox.progress(piece(3)));
}
