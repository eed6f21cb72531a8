//! Tests of the line decoder; random streams are in `tests/it/wire_fuzz.rs`.

use super::*;

/// The frames of a stream that arrives in the given pieces, and what its end brings.
fn frames(limit: usize, pieces: &[&str]) -> Vec<String> {
    let mut decoder = LineDecoder::new(limit);
    let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece.as_bytes());
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            frames.push(show(&frame));
        }
    }
    while let Some(frame) = decoder.decode_eof(&mut buffer).unwrap() {
        frames.push(show(&frame));
    }
    frames
}

fn show(frame: &Frame) -> String {
    match frame {
        Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
        Frame::TooLong { bytes, limit } => format!("{bytes} > {limit}"),
    }
}

#[track_caller]
fn check(pieces: &[&str], expected: &[&str]) {
    assert_eq!(frames(5, pieces), expected, "{pieces:?}");
}

#[test]
fn lines_end_at_newlines() {
    check(&["ab\ncd\r\n\n"], &["ab", "cd", ""]);
    check(&["a", "b", "\n", "c\r", "\nd\n"], &["ab", "c", "d"]);
    check(&["a\rb\n"], &["a\rb"]);
    check(&[], &[]);
}

#[test]
fn the_last_line_needs_no_newline() {
    check(&["ab\ncd"], &["ab", "cd"]);
    check(&["ab\n", "cd\r"], &["ab", "cd\r"]);
}

#[test]
fn an_overlong_line_is_told_once_and_harms_no_other() {
    check(&["12345\n123456\n1\n"], &["12345", "6 > 5", "1"]);
    check(&["12345\r\n123456\r\n"], &["12345", "6 > 5"]);
    check(&["12345", "\r", "\n", "12345", "67\r", "\n1\n"], &["12345", "7 > 5", "1"]);
    check(&["1234567", "89", "\r\n\r\nab\n"], &["9 > 5", "", "ab"]);
    check(&["1234567", "8\r", "9\n"], &["10 > 5"]);
    check(&["123456"], &["6 > 5"]);
    check(&["1234567", "89"], &["9 > 5"]);
}

#[test]
fn no_limit_is_no_overflow() {
    assert_eq!(frames(usize::MAX, &["ab", "c\n"]), ["abc"]);
    assert_eq!(frames(0, &["\na\n\r\n"]), ["", "1 > 0", ""]);
}

#[test]
fn an_overlong_line_is_not_kept() {
    let mut decoder = LineDecoder::new(1000);
    let mut buffer = BytesMut::new();
    for _ in 0..10_000 {
        buffer.extend_from_slice(&[b'x'; 1000]);
        assert_eq!(decoder.decode(&mut buffer).unwrap(), None);
        assert!(buffer.len() <= 1001 && buffer.capacity() < 10_000);
    }
    buffer.extend_from_slice(b"\n");
    let expected = Frame::TooLong { bytes: 10_000_000, limit: 1000 };
    assert_eq!(decoder.decode(&mut buffer).unwrap(), Some(expected));
}
