//! Chooses the framing of a stream by its first bytes.

use std::io;

use bytes::BytesMut;
use tokio_util::codec::Decoder;

use super::length::{HEADER_BYTES, LengthDecoder, payload_length};
use super::{Frame, LineDecoder};

/// Maximum length of a first line that may look like a header, in bytes.
pub(crate) const LONGEST_FIRST_LINE: usize = 4 << 10;

/// Function that returns whether text that begins with six hex digits is a line, not a header.
pub(crate) type FirstLine = Box<dyn Fn(&[u8]) -> bool + Send>;

/// A decoder that splits a stream into messages. If the stream begins with six hex digits, each
/// message is preceded by its length; otherwise each message is a line.
pub struct StreamDecoder {
    max_bytes: usize,
    first_line: Option<FirstLine>,
    framing: StreamFraming,
}

enum StreamFraming {
    Undecided,
    Lines(LineDecoder),
    Lengths(LengthDecoder),
}

impl StreamDecoder {
    /// Creates a decoder of messages of at most `max_bytes` bytes, not counting a line's end or a
    /// header.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, first_line: None, framing: StreamFraming::Undecided }
    }

    /// Accepts a first line for which `is_line` returns true, even if it looks like a header. A
    /// secret may consist of hex digits.
    #[must_use]
    pub fn with_first_line(mut self, is_line: FirstLine) -> Self {
        self.first_line = Some(is_line);
        self
    }

    /// Limits the next message and all later messages to `max_bytes` bytes.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        match &mut self.framing {
            StreamFraming::Undecided => {}
            StreamFraming::Lines(lines) => lines.set_max_bytes(max_bytes),
            StreamFraming::Lengths(lengths) => lengths.set_max_bytes(max_bytes),
        }
    }

    /// Returns whether messages are preceded by their lengths. Returns false until this is known.
    pub fn is_framed(&self) -> bool {
        matches!(self.framing, StreamFraming::Lengths(_))
    }

    /// Returns whether the beginning of a message that is too long was dropped, and the rest is
    /// still to come.
    pub(crate) fn is_skipping(&self) -> bool {
        match &self.framing {
            StreamFraming::Undecided => false,
            StreamFraming::Lines(lines) => !lines.is_at_line(),
            StreamFraming::Lengths(lengths) => lengths.is_skipping(),
        }
    }

    /// Returns whether the next bytes are the beginning of a line. Returns false while these bytes
    /// may be a header.
    pub(crate) fn is_at_line(&self, source: &[u8]) -> bool {
        match &self.framing {
            StreamFraming::Undecided => {
                !source.iter().take(HEADER_BYTES).all(u8::is_ascii_hexdigit)
            }
            StreamFraming::Lines(lines) => lines.is_at_line(),
            StreamFraming::Lengths(_) => false,
        }
    }

    /// Decides on the framing once enough bytes have come. `ended` is true if no more bytes will
    /// come.
    fn decide(&mut self, source: &[u8], ended: bool) {
        let hex = source.iter().take(HEADER_BYTES).take_while(|b| b.is_ascii_hexdigit()).count();
        let is_lines = match hex {
            HEADER_BYTES => match self.is_first_line(source, ended) {
                Some(is_line) => is_line,
                None => return,
            },
            _ if hex == source.len() && !ended => return,
            _ => true,
        };
        self.framing = match is_lines {
            true => StreamFraming::Lines(LineDecoder::new(self.max_bytes)),
            false => StreamFraming::Lengths(LengthDecoder::new(self.max_bytes)),
        };
    }

    /// Returns whether text that begins like a header is a first line; `None` while this cannot be
    /// decided.
    fn is_first_line(&self, source: &[u8], ended: bool) -> Option<bool> {
        let Some(is_line) = &self.first_line else { return Some(false) };
        let start = &source[..source.len().min(LONGEST_FIRST_LINE + 1)];
        if let Some(end) = memchr::memchr(b'\n', start) {
            let line = &source[..end];
            return Some(is_line(line.strip_suffix(b"\r").unwrap_or(line)));
        }
        let framed = payload_length(source).is_some_and(|n| source.len() >= HEADER_BYTES + n);
        let undecided = !framed && !ended && source.len() <= LONGEST_FIRST_LINE;
        (!undecided).then(|| !framed && is_line(source))
    }
}

impl Decoder for StreamDecoder {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        if matches!(self.framing, StreamFraming::Undecided) {
            self.decide(source, false);
        }
        match &mut self.framing {
            StreamFraming::Undecided => Ok(None),
            StreamFraming::Lines(lines) => lines.decode(source),
            StreamFraming::Lengths(lengths) => Ok(lengths.decode(source)),
        }
    }

    /// Returns the last message. A last line may lack its newline. Incomplete payloads are dropped.
    fn decode_eof(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        if matches!(self.framing, StreamFraming::Undecided) {
            self.decide(source, true);
        }
        match &mut self.framing {
            StreamFraming::Undecided => Ok(None),
            StreamFraming::Lines(lines) => lines.decode_eof(source),
            StreamFraming::Lengths(lengths) => {
                let frame = lengths.decode(source);
                if frame.is_none() {
                    source.clear();
                }
                Ok(frame)
            }
        }
    }
}
