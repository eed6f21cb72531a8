//! Guards a stream that may come from a web browser: decodes its messages, and stops at anything
//! that no client sends.

use std::io;

use bytes::{Buf, BytesMut};
use tokio_util::codec::Decoder;

use super::dialect::Dialect;
use super::foreign::{is_foreign, is_tls};
use super::frame::{Frame, LONGEST_FIRST_LINE, StreamDecoder};

/// First line that a relay sends for a client that reached the relay over TCP.
pub(crate) const RELAYED: &[u8] = b"; relayed from TCP\n";

/// A decoder that splits a stream into messages like a [`StreamDecoder`]. A guarded stream ends at
/// HTTP or TLS and, before the first message, at anything that cannot begin a message, and at a
/// message that is too long: it is not read to its end.
pub(crate) struct GuardedDecoder {
    messages: StreamDecoder,
    stage: Stage,
    is_guarded: bool,
    /// True if the first line may be a secret, which can begin with any character.
    may_be_secret: bool,
}

/// The progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has arrived.
    New,
    /// A line or payload has arrived, but no valid message yet.
    Wary,
    /// A valid message has arrived.
    Begun,
    /// The stream has ended, and everything else is dropped.
    Ended,
}

impl GuardedDecoder {
    /// Creates a decoder for a trusted stream. The stream becomes guarded if its first line is
    /// [`RELAYED`].
    pub(crate) fn new(messages: StreamDecoder) -> Self {
        Self { messages, stage: Stage::New, is_guarded: false, may_be_secret: false }
    }

    /// Guards the stream, as for TCP. `may_be_secret` tells whether the first line may be a secret.
    #[must_use]
    pub(crate) fn guarded(self, may_be_secret: bool) -> Self {
        Self { is_guarded: true, may_be_secret, ..self }
    }

    /// Records that a complete valid message has arrived.
    pub(crate) fn set_begun(&mut self) {
        self.stage = Stage::Begun;
    }

    pub(crate) fn messages(&mut self) -> &mut StreamDecoder {
        &mut self.messages
    }

    /// Returns whether the stream must end because of these bytes, which come next.
    fn is_refused(&self, source: &[u8]) -> bool {
        if !self.is_guarded || !self.messages.is_at_line(source) {
            return false;
        }
        let start = &source[..source.len().min(LONGEST_FIRST_LINE)];
        match self.stage {
            Stage::Ended => true,
            Stage::Begun => is_foreign(start),
            // The secret is compared with a whole line. A longer line cannot be the secret.
            Stage::New if self.may_be_secret => {
                let is_too_long = source.len() > LONGEST_FIRST_LINE && !start.contains(&b'\n');
                is_tls(start) || (is_too_long && !Dialect::may_begin_line(start))
            }
            Stage::New | Stage::Wary => {
                let is_blank = start.iter().all(u8::is_ascii_whitespace);
                !Dialect::may_begin_line(start) || (start.len() == LONGEST_FIRST_LINE && is_blank)
            }
        }
    }

    fn next(
        &mut self,
        source: &mut BytesMut,
        decode: impl FnOnce(&mut StreamDecoder, &mut BytesMut) -> io::Result<Option<Frame>>,
    ) -> io::Result<Option<Frame>> {
        if self.stage == Stage::Ended {
            source.clear();
            return Ok(None);
        }
        if self.is_refused(source) {
            source.clear();
            self.stage = Stage::Ended;
            return Ok(Some(Frame::Foreign));
        }
        let frame = decode(&mut self.messages, source)?;
        let is_new = matches!(self.stage, Stage::New | Stage::Wary);
        let is_too_long =
            self.messages.is_skipping() || matches!(frame, Some(Frame::TooLong { .. }));
        if self.is_guarded && is_new && is_too_long {
            source.clear();
            self.stage = Stage::Ended;
            return Ok(Some(Frame::Foreign));
        }
        if frame.is_some() && self.stage == Stage::New {
            self.stage = Stage::Wary;
        }
        Ok(frame)
    }
}

impl Decoder for GuardedDecoder {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        if self.stage == Stage::New && !self.is_guarded && !source.is_empty() {
            if source.starts_with(RELAYED) {
                source.advance(RELAYED.len());
                self.is_guarded = true;
                return Ok(Some(Frame::Relayed));
            }
            if RELAYED.starts_with(source) {
                return Ok(None);
            }
        }
        self.next(source, StreamDecoder::decode)
    }

    fn decode_eof(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        self.next(source, StreamDecoder::decode_eof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the frames of a stream that arrives at once, and of one that arrives byte by byte.
    #[track_caller]
    fn check(decoder: impl Fn() -> GuardedDecoder, stream: &[u8], expected: &str) {
        for size in [stream.len().max(1), 1] {
            let (mut decoder, mut source) = (decoder(), BytesMut::new());
            let mut said = String::new();
            let mut take = |decoder: &mut GuardedDecoder, frame: Frame| match frame {
                Frame::Line(line) => {
                    if line.starts_with(b"(") {
                        decoder.set_begun();
                    }
                    said += &format!("[{}]", line.escape_ascii());
                }
                Frame::Payload(payload) => said += &format!("<{}>", payload.escape_ascii()),
                Frame::Foreign => said += "END",
                Frame::Relayed => said += "RELAYED",
                Frame::TooLong { .. } => said += "LONG",
                Frame::Lost { .. } => said += "LOST",
            };
            for piece in stream.chunks(size) {
                source.extend_from_slice(piece);
                while let Some(frame) = decoder.decode(&mut source).unwrap() {
                    take(&mut decoder, frame);
                }
            }
            while let Some(frame) = decoder.decode_eof(&mut source).unwrap() {
                take(&mut decoder, frame);
            }
            assert_eq!(said, expected, "{} in pieces of {size}", stream.escape_ascii());
        }
    }

    fn guarded() -> GuardedDecoder {
        GuardedDecoder::new(StreamDecoder::new(1 << 20)).guarded(false)
    }

    #[test]
    fn anything_that_cannot_begin_a_message_ends_a_guarded_stream_at_once() {
        for stream in [
            &b"GET / HTTP/1.1\r\n(a)\n"[..],
            b"POST",
            b"DELETE / HTTP/1.1\r\n",
            b"\x16\x03\x01",
            b"\n(a)\n",
            b"; a comment\n(a)\n",
            b"help\n",
            b"\0",
        ] {
            check(guarded, stream, "END");
        }
        check(guarded, &[b' '; LONGEST_FIRST_LINE + 1], "END");
    }

    #[test]
    fn after_a_message_only_http_and_tls_end_it() {
        check(guarded, b"(a)\nnonsense\n\n(b)\n", "[(a)][nonsense][][(b)]");
        for foreign in ["GET / HTTP/1.1\r\n", "Host: h\r\n", "\x16\x03", "PRI * HTTP/2.0\r\n"] {
            check(guarded, format!("(a)\n{foreign}(b)\n").as_bytes(), "[(a)]END");
        }
        let long = format!("(a)\nGET /{}", "x".repeat(2 << 20));
        check(guarded, long.as_bytes(), "[(a)]END");
        check(guarded, b"000003(a)000000", "<(a)><>");
        check(guarded, b"000003(a)GET / HTTP/1.1\r\n(b)\n", "<(a)>LOST");
    }

    #[test]
    fn only_the_first_line_may_be_a_secret() {
        let decoder = || GuardedDecoder::new(StreamDecoder::new(1 << 20)).guarded(true);
        check(decoder, b"Host: s3cret\n(a)\n", "[Host: s3cret][(a)]");
        check(decoder, b"s3cret\nwrong\n(a)\n", "[s3cret]END");
        check(decoder, b"\x16\x03\x01", "END");
        check(decoder, format!("GET /{}", "x".repeat(LONGEST_FIRST_LINE)).as_bytes(), "END");
        let long = format!("({})\n", "x".repeat(LONGEST_FIRST_LINE));
        check(decoder, long.as_bytes(), &format!("[{}]", long.trim_end()));
    }

    #[test]
    fn a_first_message_that_is_too_long_ends_a_guarded_stream_before_its_end() {
        let decoder = || GuardedDecoder::new(StreamDecoder::new(99)).guarded(true);
        let long = "x".repeat(200);
        for stream in [format!("({long}"), format!("s3cret\n({long}"), format!("0000c8({long}")] {
            let expected = if stream.starts_with('s') { "[s3cret]END" } else { "END" };
            check(decoder, stream.as_bytes(), expected);
        }
        check(decoder, format!("(a)\n({long})\n(b)\n").as_bytes(), "[(a)]LONG[(b)]");
    }

    #[test]
    fn a_stream_is_guarded_once_it_says_that_it_is_relayed() {
        let local = || GuardedDecoder::new(StreamDecoder::new(99));
        let relayed = |rest: &str| [RELAYED, rest.as_bytes()].concat();
        check(local, &relayed("(a)\n"), "RELAYED[(a)]");
        check(local, &relayed("000003(a)"), "RELAYED<(a)>");
        check(local, &relayed("GET / HTTP/1.1\n(a)\n"), "RELAYEDEND");
        check(local, b"GET / HTTP/1.1\n(a)\n", "[GET / HTTP/1.1][(a)]");
        check(local, b"; relayed", "[; relayed]");
        check(local, b"(a)\n; relayed from TCP\n", "[(a)][; relayed from TCP]");
    }
}
