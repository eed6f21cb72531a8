//! Splits a stream of bytes into lines without losing a byte. If a line is too long to be read as a
//! message, returns its parts as they arrive.

use std::io::{self, Read};

/// Maximum length in bytes of a line that is read as a message.
pub(super) const LONGEST_LINE: usize = 16 << 20;
/// Number of bytes that are read at a time.
pub(super) const CHUNK: usize = 64 << 10;

/// A stream to read in pieces. The pieces together contain every byte of the stream.
pub(super) struct StreamLines<R> {
    source: R,
    /// Bytes that have been read from `source`; the first `done` of them have also been returned.
    text: Vec<u8>,
    done: usize,
    /// True if the beginning of the current line has been returned, because the line is too long.
    is_long: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamPiece<'a> {
    /// A line, including its line feed.
    Line(&'a [u8]),
    /// A line that is too long, or a part of such a line; or a last line without a line feed.
    Part(&'a [u8]),
}

impl<R: Read> StreamLines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, text: Vec::new(), done: 0, is_long: false }
    }

    /// Returns the next piece; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> io::Result<Option<StreamPiece<'_>>> {
        let mut seen = self.done;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.text[seen..]) {
                let line = self.done..seen + end + 1;
                self.done = line.end;
                let is_part = std::mem::take(&mut self.is_long) || line.len() > LONGEST_LINE;
                let text = &self.text[line];
                return Ok(Some(if is_part {
                    StreamPiece::Part(text)
                } else {
                    StreamPiece::Line(text)
                }));
            }
            let is_part = self.is_long || self.text.len() - self.done > LONGEST_LINE;
            if is_part && self.text.len() > self.done {
                self.is_long = true;
                return Ok(Some(StreamPiece::Part(self.rest())));
            }
            self.text.drain(..self.done);
            self.done = 0;
            seen = self.text.len();
            if self.fill()? == 0 {
                let rest = self.rest();
                return Ok((!rest.is_empty()).then_some(StreamPiece::Part(rest)));
            }
        }
    }

    fn rest(&mut self) -> &[u8] {
        let rest = &self.text[self.done..];
        self.done = self.text.len();
        rest
    }

    fn fill(&mut self) -> io::Result<usize> {
        let length = self.text.len();
        if length == 0 {
            // Gives back the memory of a long line.
            self.text.shrink_to(CHUNK);
        }
        self.text.resize(length + CHUNK, 0);
        loop {
            let read = self.source.read(&mut self.text[length..]);
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    self.text.truncate(length + read.as_ref().map_or(0, |read| *read));
                    return read;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_stream() {
        let long = "x".repeat(LONGEST_LINE + 5);
        for text in ["", "\n", "a\r\n\nb", "a\n", &format!("a\n{long}\nb\n"), &long] {
            let mut lines = StreamLines::new(text.as_bytes());
            let (mut all, mut whole) = (Vec::new(), 0);
            while let Some(piece) = lines.next().unwrap() {
                let (StreamPiece::Line(bytes) | StreamPiece::Part(bytes)) = &piece;
                all.extend_from_slice(bytes);
                whole += usize::from(matches!(piece, StreamPiece::Line(_)));
            }
            assert_eq!(all, text.as_bytes());
            let short = |line: &&str| line.ends_with('\n') && line.len() <= LONGEST_LINE;
            assert_eq!(whole, text.split_inclusive('\n').filter(short).count());
        }
    }
}
