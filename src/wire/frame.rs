//! Splits bytes into messages, by lines or by lengths, without looking into the messages.

mod length;
mod stream;

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::Decoder;

pub(crate) use self::length::MAX_PAYLOAD;
pub use self::length::{HEADER_BYTES, MessageEnds};
pub(crate) use self::length::{show_header, write_framed};
pub(crate) use self::stream::LONGEST_FIRST_LINE;
pub use self::stream::StreamDecoder;

/// Default maximum length of a message, in bytes: 64 MiB.
pub(crate) const DEFAULT_MAX_MESSAGE: usize = 64 << 20;

/// One message of a client, or an event in place of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A line without its `\n` or `\r\n`.
    Line(Bytes),
    /// A payload of the length that its header announced.
    Payload(Bytes),
    /// A message that was skipped because it is longer than is accepted. Reported once, at its end.
    TooLong {
        /// Length of the message in bytes, without a header or the end of the line.
        bytes: u64,
        /// Maximum length that is accepted, in bytes.
        limit: usize,
        /// First and last bytes.
        ends: MessageEnds,
        /// True for a payload, false for a line.
        is_payload: bool,
    },
    /// An invalid header. No later message can be found.
    Lost {
        /// The six bytes in place of the header.
        header: Bytes,
    },
    /// Bytes that no client sends, such as HTTP. Nothing more is read.
    Foreign,
    /// A note of a relay: its client reached the relay over TCP.
    Relayed,
}

/// A decoder that splits a stream at its newlines. The time is linear in the length of the stream,
/// however small the pieces are in which it arrives.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    max_bytes: usize,
    state: FrameState,
}

#[derive(Debug)]
enum FrameState {
    /// Collecting a line. The first `searched` bytes contain no newline.
    Collecting { searched: usize },
    /// Skipping a line. Of the `skipped` bytes so far, only the first and last are kept, as `ends`.
    Skipping { skipped: u64, ends: MessageEnds },
}

/// Number of bytes without a newline at which a line counts as long.
const LONG_LINE: usize = 4 << 10;
/// Minimum number of bytes by which the buffer of a long line grows. Once the line is longer than
/// this, its buffer is doubled.
const READ_AHEAD: usize = 64 << 10;

const AT_LINE_START: FrameState = FrameState::Collecting { searched: 0 };

impl LineDecoder {
    /// Creates a decoder of lines of at most `max_bytes` bytes, not counting the line's end.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, state: AT_LINE_START }
    }

    /// Limits the next line and all later lines to `max_bytes` bytes.
    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// Returns whether the next bytes are at the beginning of a line.
    fn is_at_line(&self) -> bool {
        matches!(self.state, FrameState::Collecting { .. })
    }

    fn collect(&mut self, source: &mut BytesMut, searched: usize) -> Option<Frame> {
        if let Some(found) = memchr::memchr(b'\n', &source[searched..]) {
            self.state = AT_LINE_START;
            let mut line = source.split_to(searched + found);
            source.advance(1);
            let length = line.strip_suffix(b"\r").unwrap_or(&line).len();
            return Some(match length <= self.max_bytes {
                true => {
                    line.truncate(length);
                    Frame::Line(line.freeze())
                }
                false => self.too_long(length as u64, MessageEnds::of(&line)),
            });
        }
        // The next byte may turn out to be half of the line's end.
        if source.len() > self.max_bytes.saturating_add(1) {
            return self.skip(source, 0, MessageEnds::default());
        }
        let searched = source.len();
        if searched >= LONG_LINE {
            source.reserve(searched.max(READ_AHEAD));
        }
        self.state = FrameState::Collecting { searched };
        None
    }

    fn skip(
        &mut self,
        source: &mut BytesMut,
        skipped: u64,
        mut ends: MessageEnds,
    ) -> Option<Frame> {
        let end = memchr::memchr(b'\n', source);
        let piece = &source[..end.unwrap_or(source.len())];
        ends.add(piece);
        let skipped = skipped + piece.len() as u64;
        let Some(end) = end else {
            source.clear();
            self.state = FrameState::Skipping { skipped, ends };
            return None;
        };
        source.advance(end + 1);
        self.state = AT_LINE_START;
        let bytes = skipped - u64::from(ends.last.ends_with(b"\r"));
        Some(self.too_long(bytes, ends))
    }

    fn too_long(&self, bytes: u64, ends: MessageEnds) -> Frame {
        Frame::TooLong { bytes, limit: self.max_bytes, ends, is_payload: false }
    }
}

impl Decoder for LineDecoder {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        Ok(match &mut self.state {
            FrameState::Collecting { searched } => {
                let searched = *searched;
                self.collect(source, searched)
            }
            FrameState::Skipping { skipped, ends } => {
                let (skipped, ends) = (*skipped, std::mem::take(ends));
                self.skip(source, skipped, ends)
            }
        })
    }

    /// Returns the last line, which may lack its newline.
    fn decode_eof(&mut self, source: &mut BytesMut) -> io::Result<Option<Frame>> {
        if let Some(frame) = self.decode(source)? {
            return Ok(Some(frame));
        }
        Ok(match std::mem::replace(&mut self.state, AT_LINE_START) {
            FrameState::Skipping { skipped, ends } => Some(self.too_long(skipped, ends)),
            FrameState::Collecting { .. } if source.is_empty() => None,
            FrameState::Collecting { .. } if source.len() <= self.max_bytes => {
                Some(Frame::Line(source.split().freeze()))
            }
            FrameState::Collecting { .. } => {
                let line = source.split();
                Some(self.too_long(line.len() as u64, MessageEnds::of(&line)))
            }
        })
    }
}

#[cfg(test)]
mod tests;
