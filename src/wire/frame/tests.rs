//! Tests of the decoders; random streams are in `tests/it/wire_fuzz.rs`.

use super::length::ENDS_BYTES;
use super::*;

/// Returns the frames of a stream that arrives in the given pieces, including those at its end.
fn frames(limit: usize, pieces: &[&str]) -> Vec<String> {
    decoded(LineDecoder::new(limit), pieces)
}

fn decoded(
    mut decoder: impl Decoder<Item = Frame, Error = io::Error>,
    pieces: &[&str],
) -> Vec<String> {
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
        Frame::Payload(payload) => format!("<{}>", String::from_utf8_lossy(payload)),
        Frame::TooLong { bytes, limit, .. } => format!("{bytes} > {limit}"),
        Frame::Lost { header } => format!("lost at {}", show_header(header)),
        Frame::Foreign | Frame::Relayed => unreachable!("only of guarded streams"),
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
fn an_overlong_line_is_reported_once_and_harms_no_other() {
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
    let expected = Frame::TooLong {
        bytes: 10_000_000,
        limit: 1000,
        ends: MessageEnds::of(&[b'x'; 1000]),
        is_payload: false,
    };
    assert_eq!(decoder.decode(&mut buffer).unwrap(), Some(expected));
}

/// Checks that a stream gives these frames, both as a whole and byte by byte.
#[track_caller]
fn check_stream(stream: &str, expected: &[&str]) {
    assert_eq!(decoded(StreamDecoder::new(9), &[stream]), expected);
    let bytes: Vec<&str> = stream.split("").collect();
    assert_eq!(decoded(StreamDecoder::new(9), &bytes), expected);
}

#[test]
fn six_hex_digits_make_a_stream_of_payloads() {
    check_stream("000003abc00000A(é\n(\"\0\0\")000000", &["<abc>", "10 > 9", "<>"]);
    check_stream("000003(a)000000000002\n\n", &["<(a)>", "<>", "<\n\n>"]);
    check_stream("00000(a)\n000003", &["00000(a)", "000003"]);
    check_stream("00000", &["00000"]);
    check_stream("", &[]);
}

#[test]
fn no_message_is_found_after_a_wrong_length() {
    check_stream("000003abcd(methods)", &["<abc>", "lost at d(meth"]);
    check_stream("000003abc\n", &["<abc>"]);
    check_stream("00000aabcdefghij000001x", &["10 > 9", "<x>"]);
    check_stream("ffffffabc", &[]);
    check_stream("000009abc", &[]);
}

#[test]
fn both_ends_of_an_overlong_payload_are_kept() {
    for length in [10, 63, 64, 65, 130, 255, 256, 257, 1000] {
        let payload: Vec<u8> = (0..length).map(|at| b'a' + (at % 26) as u8).collect();
        let mut stream = format!("{length:06x}").into_bytes();
        stream.extend_from_slice(&payload);
        for size in [1, 7, 64, 65, 256, 257, stream.len()] {
            let (mut decoder, mut buffer) = (StreamDecoder::new(9), BytesMut::new());
            let mut frames = Vec::new();
            for piece in stream.chunks(size) {
                buffer.extend_from_slice(piece);
                frames.extend(decoder.decode(&mut buffer).unwrap());
                assert!(buffer.len() < HEADER_BYTES);
            }
            let kept = payload.len().min(ENDS_BYTES);
            let (first, last) = (&payload[..kept], &payload[payload.len() - kept..]);
            let ends = MessageEnds { first: first.to_vec(), last: last.to_vec() };
            let expected = Frame::TooLong { bytes: length, limit: 9, ends, is_payload: true };
            assert_eq!(frames, [expected]);
        }
    }
}

#[test]
fn a_first_line_may_look_like_a_header() {
    let decoder = |limit| {
        StreamDecoder::new(limit).with_first_line(Box::new(|line| line == b"deadbeefdeadbeef"))
    };
    let check = |stream: &str, expected: &[&str]| {
        let bytes: Vec<&str> = stream.split("").collect();
        assert_eq!(decoded(decoder(99), &bytes), expected);
        assert_eq!(decoded(decoder(99), &[stream]), expected);
    };
    check("deadbeefdeadbeef\r\n(a)\n", &["deadbeefdeadbeef", "(a)"]);
    check("deadbeefdeadbeef", &["deadbeefdeadbeef"]);
    check("000010deadbeefdeadbeef000003(a)", &["<deadbeefdeadbeef>", "<(a)>"]);
    check("00000c(methods 4)\n000003(a)", &["<(methods 4)\n>", "<(a)>"]);
}
