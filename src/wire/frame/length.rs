//! Splits bytes into messages by their lengths: six hex digits announce the length of the payload
//! after them, in bytes.

use bytes::{Buf, Bytes, BytesMut};

use super::Frame;

/// Number of hex digits before each payload.
pub const HEADER_BYTES: usize = 6;
/// Maximum length of a payload that six hex digits can announce, in bytes: 16 MiB less one.
pub(crate) const MAX_PAYLOAD: usize = 0xff_ffff;
/// Number of bytes kept from each end of a skipped message, where its id can be found.
pub(crate) const ENDS_BYTES: usize = 256;
/// Maximum number of bytes reserved at once for a payload that has only been announced. For a
/// longer payload, the buffer grows as bytes arrive.
const RESERVED_AT_ONCE: usize = 64 << 10;

/// The first and last [`ENDS_BYTES`] of a message. First and last bytes overlap if the message is
/// short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageEnds {
    /// First bytes.
    pub first: Vec<u8>,
    /// Last bytes.
    pub last: Vec<u8>,
}

/// A decoder of payloads that are preceded by their lengths. After an invalid header, it cannot
/// find the next payload.
#[derive(Debug)]
pub(super) struct LengthDecoder {
    max_bytes: usize,
    state: LengthState,
}

#[derive(Debug)]
enum LengthState {
    /// Expecting a header.
    Header,
    /// Waiting for the rest of a payload of this length.
    Payload(usize),
    /// Dropping a payload of this length, with `left` bytes still to come.
    Skipping { length: usize, left: usize, ends: MessageEnds },
    /// Dropping everything after an invalid header.
    Lost,
}

impl LengthDecoder {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, state: LengthState::Header }
    }

    pub(super) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    pub(super) fn is_skipping(&self) -> bool {
        matches!(self.state, LengthState::Skipping { .. })
    }

    pub(super) fn decode(&mut self, source: &mut BytesMut) -> Option<Frame> {
        if matches!(self.state, LengthState::Header) {
            if source.len() < HEADER_BYTES {
                return None;
            }
            let Some(length) = payload_length(source) else {
                let header = source.split_to(HEADER_BYTES).freeze();
                self.state = LengthState::Lost;
                return Some(Frame::Lost { header });
            };
            source.advance(HEADER_BYTES);
            self.state = match length > self.max_bytes {
                true => {
                    LengthState::Skipping { length, left: length, ends: MessageEnds::default() }
                }
                false => LengthState::Payload(length),
            };
        }
        match &mut self.state {
            LengthState::Payload(length) if source.len() >= *length => {
                let length = *length;
                self.state = LengthState::Header;
                Some(Frame::Payload(source.split_to(length).freeze()))
            }
            LengthState::Payload(length) => {
                source.reserve((*length - source.len()).min(RESERVED_AT_ONCE.max(source.len())));
                None
            }
            LengthState::Skipping { length, left, ends } => {
                let skipped = source.split_to(source.len().min(*left));
                *left -= skipped.len();
                ends.add(&skipped);
                if *left > 0 {
                    return None;
                }
                let (bytes, ends) = (*length as u64, std::mem::take(ends));
                self.state = LengthState::Header;
                Some(Frame::TooLong { bytes, limit: self.max_bytes, ends, is_payload: true })
            }
            LengthState::Header | LengthState::Lost => {
                source.clear();
                None
            }
        }
    }
}

impl MessageEnds {
    /// Returns the ends of a complete message.
    pub fn of(payload: &[u8]) -> Self {
        let mut ends = Self::default();
        ends.add(payload);
        ends
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        let room = ENDS_BYTES - self.first.len();
        self.first.extend_from_slice(&piece[..room.min(piece.len())]);
        self.last.extend_from_slice(&piece[piece.len().saturating_sub(ENDS_BYTES)..]);
        let surplus = self.last.len().saturating_sub(ENDS_BYTES);
        self.last.drain(..surplus);
    }
}

/// Returns the length that the header at the beginning of `source` announces; `None` if there is no
/// valid header.
pub(super) fn payload_length(source: &[u8]) -> Option<usize> {
    let header = source.get(..HEADER_BYTES)?;
    header.iter().try_fold(0, |length, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(length << 4 | digit as usize)
    })
}

/// Appends the payload that `write` produces, preceded by its length, and returns the length. The
/// header of a payload longer than [`MAX_PAYLOAD`] is wrong, so the caller must remove such a
/// payload.
pub(crate) fn write_framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    out.extend_from_slice(&[b'0'; HEADER_BYTES]);
    write(out);
    let length = out.len() - start - HEADER_BYTES;
    let header = format!("{:06x}", length.min(MAX_PAYLOAD));
    out[start..start + HEADER_BYTES].copy_from_slice(header.as_bytes());
    length
}

pub(crate) fn show_header(header: &Bytes) -> String {
    header.escape_ascii().to_string()
}
