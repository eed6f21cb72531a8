//! Bytes to length-framed messages: six hex digits say how many bytes of payload follow.

use bytes::{Buf, Bytes, BytesMut};

use super::Frame;

/// How many hex digits come before each payload.
pub const HEADER_BYTES: usize = 6;
/// The longest payload that six hex digits can announce, in bytes: 16 MiB less one.
pub const MAX_PAYLOAD: usize = 0xff_ffff;
/// The most that is reserved at once for a payload that has only been announced.
const RESERVED_AT_ONCE: usize = 64 << 10;

/// Takes payloads off a stream. After a header that is none it cannot find the next message.
#[derive(Debug)]
pub(super) struct LengthDecoder {
    max_bytes: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// At a header.
    Header,
    /// Waiting for the rest of this many bytes.
    Payload(usize),
    /// Dropping the payload of this length, of which so many bytes are still to come.
    Skipping { length: usize, left: usize },
    /// Dropping everything.
    Lost,
}

impl LengthDecoder {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, state: State::Header }
    }

    pub(super) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    pub(super) fn decode(&mut self, source: &mut BytesMut) -> Option<Frame> {
        if matches!(self.state, State::Header) {
            if source.len() < HEADER_BYTES {
                return None;
            }
            let Some(length) = payload_length(source) else {
                let header = source.split_to(HEADER_BYTES).freeze();
                self.state = State::Lost;
                return Some(Frame::Lost { header });
            };
            source.advance(HEADER_BYTES);
            self.state = match length > self.max_bytes {
                true => State::Skipping { length, left: length },
                false => State::Payload(length),
            };
        }
        match self.state {
            State::Payload(length) if source.len() >= length => {
                self.state = State::Header;
                Some(Frame::Payload(source.split_to(length).freeze()))
            }
            State::Payload(length) => {
                source.reserve((length - source.len()).min(RESERVED_AT_ONCE.max(source.len())));
                None
            }
            State::Skipping { length, left } => self.skip(source, length, left),
            State::Header | State::Lost => {
                source.clear();
                None
            }
        }
    }

    fn skip(&mut self, source: &mut BytesMut, length: usize, left: usize) -> Option<Frame> {
        let skipped = left.min(source.len());
        source.advance(skipped);
        let left = left - skipped;
        if left > 0 {
            self.state = State::Skipping { length, left };
            return None;
        }
        self.state = State::Header;
        Some(Frame::TooLong { bytes: length as u64, limit: self.max_bytes })
    }
}

/// The length that the header at the beginning announces, if there is one.
pub(super) fn payload_length(source: &[u8]) -> Option<usize> {
    let header = source.get(..HEADER_BYTES)?;
    header.iter().try_fold(0, |length, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(length << 4 | digit as usize)
    })
}

/// Appends a payload that `write` makes, with its length before it, and gives that length. The
/// header of a payload above [`MAX_PAYLOAD`] would be wrong: whoever calls takes it back.
pub(crate) fn write_framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    out.extend_from_slice(&[b'0'; HEADER_BYTES]);
    write(out);
    let length = out.len() - start - HEADER_BYTES;
    let header = format!("{:06x}", length.min(MAX_PAYLOAD));
    out[start..start + HEADER_BYTES].copy_from_slice(header.as_bytes());
    length
}

/// A refused header, for people.
pub(crate) fn show_header(header: &Bytes) -> String {
    header.escape_ascii().to_string()
}
