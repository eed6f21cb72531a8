//! Which framing a stream has, which its first bytes decide.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio_util::codec::Decoder;

use super::length::{HEADER_BYTES, LengthDecoder, payload_length};
use super::{Frame, LineDecoder};

/// The longest first line that may look like a header, in bytes.
pub const LONGEST_FIRST_LINE: usize = 4 << 10;

/// Whether a first line is one although it begins with six hex digits.
pub type FirstLine = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Splits a stream into messages: those of a stream that begins with six hex digits have their
/// lengths before them, those of any other are lines.
pub struct StreamDecoder {
    max_bytes: usize,
    first_line: Option<FirstLine>,
    framing: Framing,
}

enum Framing {
    Undecided,
    Lines(LineDecoder),
    Lengths(LengthDecoder),
}

impl StreamDecoder {
    /// Accepts messages of at most `max_bytes` bytes, not counting a line's end or a header.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, first_line: None, framing: Framing::Undecided }
    }

    /// Takes a first line for which `is_line` holds for a line whatever it looks like. A secret
    /// may well be hex digits.
    #[must_use]
    pub fn with_first_line(mut self, is_line: FirstLine) -> Self {
        self.first_line = Some(is_line);
        self
    }

    /// Accepts messages of at most `max_bytes` bytes from the next on.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        match &mut self.framing {
            Framing::Undecided => {}
            Framing::Lines(lines) => lines.set_max_bytes(max_bytes),
            Framing::Lengths(lengths) => lengths.set_max_bytes(max_bytes),
        }
    }

    /// Whether the messages have their lengths before them; false while nobody knows.
    pub fn is_framed(&self) -> bool {
        matches!(self.framing, Framing::Lengths(_))
    }

    /// Decides once enough has come; `ended` when nothing more will.
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
            true => Framing::Lines(LineDecoder::new(self.max_bytes)),
            false => Framing::Lengths(LengthDecoder::new(self.max_bytes)),
        };
    }

    /// Whether what begins like a header is the line that may come first; `None` while it still
    /// may turn out to be.
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
        if matches!(self.framing, Framing::Undecided) {
            self.decide(source, false);
        }
        match &mut self.framing {
            Framing::Undecided => Ok(None),
            Framing::Lines(lines) => lines.decode(source),
            Framing::Lengths(lengths) => Ok(lengths.decode(source)),
        }
    }

    /// A last line may lack its newline; of a message that is shorter than its length nothing is
    /// left.
    fn decode_eof(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        if matches!(self.framing, Framing::Undecided) {
            self.decide(source, true);
        }
        match &mut self.framing {
            Framing::Undecided => Ok(None),
            Framing::Lines(lines) => lines.decode_eof(source),
            Framing::Lengths(lengths) => {
                let frame = lengths.decode(source);
                if frame.is_none() {
                    drop::<Bytes>(source.split().freeze());
                }
                Ok(frame)
            }
        }
    }
}
