//! The lines of a recording, with their places. The part of a line beyond the maximum length is not
//! kept in memory.

use std::io::{self, BufRead};

use super::LONGEST_LINE;

/// The lines of a source.
pub(super) struct SourceLines<R> {
    source: R,
    /// The line that was read last.
    pub(super) text: Vec<u8>,
    /// Number of bytes before the next line.
    pub(super) offset: u64,
    /// Number of lines before the next line.
    pub(super) count: u64,
}

/// The result of reading a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRead {
    /// A line with a newline at its end.
    Whole,
    /// The last line, without a newline. The line counts as read only once [`SourceLines::take`] is
    /// called.
    Half,
    /// A line that is too long.
    TooLong,
    /// No line is left.
    End,
}

impl<R: BufRead> SourceLines<R> {
    pub(super) fn new(source: R, offset: u64, count: u64) -> Self {
        Self { source, text: Vec::new(), offset, count }
    }

    /// Marks a half line as read, so that a later reading continues after it. The line is counted
    /// once its newline is read.
    pub(super) fn take(&mut self) {
        self.offset += self.text.len() as u64;
    }

    pub(super) fn next(&mut self) -> io::Result<LineRead> {
        self.text.clear();
        let mut length = 0;
        let mut has_ended = false;
        while !has_ended {
            let chunk = match self.source.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', chunk);
            has_ended = end.is_some();
            let used = end.map_or(chunk.len(), |end| end + 1);
            if self.text.len() <= LONGEST_LINE {
                self.text.extend_from_slice(&chunk[..used]);
            }
            length += used as u64;
            self.source.consume(used);
        }
        let is_too_long = length > LONGEST_LINE as u64;
        if has_ended || is_too_long {
            self.offset += length;
            self.count += 1;
        }
        Ok(match () {
            () if length == 0 => LineRead::End,
            () if is_too_long => LineRead::TooLong,
            () if has_ended => LineRead::Whole,
            () => LineRead::Half,
        })
    }
}
