//! Numbers, texts and lists as bytes.

use super::CHECKSUM;

/// Writes one record.
pub(super) struct RecordWriter {
    bytes: Vec<u8>,
}

impl RecordWriter {
    pub(super) fn new(kind: u8) -> Self {
        Self { bytes: vec![kind] }
    }

    /// Writes seven bits in each byte; the highest bit says that more follow.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(list.len() as u64);
        list.iter().for_each(|entry| each(self, entry));
    }

    /// Appends the record with its length and checksum.
    pub(super) fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&blake3::hash(&self.bytes).as_bytes()[..CHECKSUM]);
        out.extend_from_slice(&self.bytes);
    }
}

/// Reads one record. Every method returns `None` if the record ends too soon.
pub(super) struct RecordReader<'a> {
    rest: &'a [u8],
}

impl<'a> RecordReader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Box<[T]>> {
        let length = usize::try_from(self.number()?).ok()?;
        // Each entry has a byte at least, so that a wrong length reserves nothing.
        let mut list = Vec::with_capacity(length.min(self.rest.len()));
        for _ in 0..length {
            list.push(each(self)?);
        }
        Some(list.into())
    }
}
