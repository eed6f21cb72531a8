//! Splits a byte stream into the texts of an answer: the data of server-sent events, or values of
//! JSON. Which of the two a server sends is seen from its first character, since some servers send
//! one answer where a stream was asked for.
//!
//! Bytes are decoded once a text is complete, so the stream may be split at any byte.

/// Maximum length of a line, an event or a value in bytes. An answer of 10 MB in one piece fits; an
/// endless line is refused.
const LONGEST_TEXT: usize = 16 << 20;
/// Maximum length in bytes of what is kept of a text that is no answer.
const LONGEST_STRAY: usize = 4 << 10;
/// Mark with which some servers begin a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A function that takes complete texts.
type Take<'a, E> = dyn FnMut(&str) -> Result<(), E> + 'a;

/// Collects bytes and passes on complete texts.
#[derive(Default)]
pub(super) struct Unframer {
    framing: AnswerFraming,
    /// The line or the value in progress.
    line: Vec<u8>,
    /// Data of the event in progress.
    data: Option<String>,
    /// True if the last line ended with a carriage return; a line feed after it belongs to the same
    /// line end.
    returned: bool,
    /// Lines that belong to no event, such as those of a page in HTML.
    stray: String,
    nesting: Nesting,
}

/// The framing of an answer: how its texts are separated.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum AnswerFraming {
    #[default]
    Unknown,
    /// Server-sent events, of which only the data matter.
    Events,
    /// Values of JSON, one after the other.
    Values,
}

/// The place within a value of JSON.
#[derive(Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

/// A text that is too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a piece of the answer has more than {LONGEST_TEXT} bytes")
    }
}

impl Unframer {
    /// Adds bytes and passes complete texts to `take`.
    pub(super) fn push<E: From<TooLong>>(
        &mut self,
        bytes: &[u8],
        take: &mut Take<'_, E>,
    ) -> Result<(), E> {
        match self.framing {
            AnswerFraming::Events => self.push_lines(bytes, take)?,
            AnswerFraming::Values => self.push_values(bytes, take)?,
            AnswerFraming::Unknown => {
                self.line.extend_from_slice(bytes);
                let begun = self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line);
                let is_mark_open = BYTE_ORDER_MARK.starts_with(begun);
                let begun = begun.trim_ascii_start();
                self.framing = match begun.first() {
                    // Blanks are dropped at once: they may go on for ever.
                    None => {
                        self.line.clear();
                        return Ok(());
                    }
                    Some(_) if is_mark_open => return Ok(()),
                    Some(b'{' | b'[') => AnswerFraming::Values,
                    Some(_) => AnswerFraming::Events,
                };
                let begun = begun.to_vec();
                self.line.clear();
                return self.push(&begun, take);
            }
        }
        match self.line.len() + self.data.as_ref().map_or(0, String::len) > LONGEST_TEXT {
            true => Err(TooLong.into()),
            false => Ok(()),
        }
    }

    fn push_lines<E>(&mut self, mut bytes: &[u8], take: &mut Take<'_, E>) -> Result<(), E> {
        if std::mem::take(&mut self.returned) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or_else(|| {
                // After an empty chunk, it is still unknown whether a line feed follows.
                self.returned = bytes.is_empty();
                bytes
            });
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.line.extend_from_slice(&bytes[..end]);
            let returned = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if returned {
                self.returned = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            self.end_line(take)?;
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn push_values<E>(&mut self, bytes: &[u8], take: &mut Take<'_, E>) -> Result<(), E> {
        let Self { line, nesting, .. } = self;
        for byte in bytes {
            let is_between = nesting.depth == 0 && !nesting.in_string;
            if is_between && (byte.is_ascii_whitespace() || *byte == b',') {
                // A word that is no value ends here; whoever takes it says so.
                if !line.is_empty() {
                    take(&String::from_utf8_lossy(&std::mem::take(line)))?;
                }
                continue;
            }
            line.push(*byte);
            if nesting.ends_value(*byte) {
                take(&String::from_utf8_lossy(&std::mem::take(line)))?;
            }
        }
        Ok(())
    }

    /// Ends the stream. A last line without a line end counts too, and so does a last event; half a
    /// value does not.
    pub(super) fn end<E>(&mut self, take: &mut Take<'_, E>) -> Result<(), E> {
        match self.framing {
            AnswerFraming::Events => {
                self.end_line(take)?;
                self.end_line(take)
            }
            AnswerFraming::Values | AnswerFraming::Unknown => Ok(()),
        }
    }

    /// Returns the lines that belong to no event.
    pub(super) fn stray(&self) -> &str {
        &self.stray
    }

    fn end_line<E>(&mut self, take: &mut Take<'_, E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            return self.data.take().map_or(Ok(()), |data| take(&data));
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        match field.trim_start_matches('\u{feff}') {
            "data" => {
                let data = value.strip_prefix(' ').unwrap_or(value);
                match &mut self.data {
                    Some(known) => known.extend(["\n", data]),
                    none => *none = Some(data.to_owned()),
                }
                Ok(())
            }
            // A comment, and fields that do not matter here.
            "" | "event" | "id" | "retry" => Ok(()),
            // Some servers send an error as it is.
            _ if line.trim_start().starts_with('{') && self.data.is_none() => take(&line),
            _ => {
                let room = LONGEST_STRAY.saturating_sub(self.stray.len());
                self.stray.extend([&line[..line.floor_char_boundary(room)], "\n"]);
                Ok(())
            }
        }
    }
}

impl Nesting {
    /// Moves past a byte, and returns whether a value ends with it.
    fn ends_value(&mut self, byte: u8) -> bool {
        match (self.in_string, byte) {
            (true, _) if self.escaped => self.escaped = false,
            (true, b'\\') => self.escaped = true,
            (_, b'"') => self.in_string = !self.in_string,
            (false, b'{' | b'[') => self.depth += 1,
            (false, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unframed(chunks: &[&[u8]]) -> (Vec<String>, String) {
        let mut unframer = Unframer::default();
        let mut found = Vec::new();
        let mut take = |text: &str| {
            found.push(text.to_owned());
            Ok::<(), TooLong>(())
        };
        for chunk in chunks {
            unframer.push(chunk, &mut take).unwrap();
        }
        unframer.end(&mut take).unwrap();
        (found, unframer.stray().trim().to_owned())
    }

    /// Checks the texts of a stream that arrives in one piece, byte by byte, and split in two at
    /// every place.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let bytes = text.as_bytes();
        assert_eq!(unframed(&[bytes]).0, expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(unframed(&single).0, expected);
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(unframed(&[left, b"", right]).0, expected, "cut at {cut}");
        }
    }

    #[test]
    fn events_are_read_wherever_they_are_cut() {
        check("data: {\"é\": 1}\n\ndata: [DONE]\n\n", &["{\"é\": 1}", "[DONE]"]);
        check("event: x\r\ndata: a\r\ndata:b\r\n\r\n", &["a\nb"]);
        check("data: a\r\rdata: ü\r\r", &["a", "ü"]);
        check(": hello\n\nid: 1\nretry: 3\ndata\n\ndata: a", &["", "a"]);
        check("data: \n\n\n\n", &[""]);
        check("\u{feff}data: a\n\n", &["a"]);
        check("data: a\n\n{\"error\": 1}\n", &["a", "{\"error\": 1}"]);
        check("", &[]);
    }

    #[test]
    fn values_are_read_wherever_they_are_cut() {
        check("{\"a\": \"😀\"}\n\n{}\r\n{\"b\": 1}", &["{\"a\": \"😀\"}", "{}", "{\"b\": 1}"]);
        check("\u{feff} {\n \"a\": \"}\\\"{\"\n}{}", &["{\n \"a\": \"}\\\"{\"\n}", "{}"]);
        check("[{},\n{}]", &["[{},\n{}]"]);
        check("{} x {\"a\":", &["{}", "x"]);
    }

    /// A server that sends nothing but blanks costs no more than one that sends a text.
    #[test]
    fn nothing_is_kept_of_the_blanks_before_an_answer() {
        let mut unframer = Unframer::default();
        let mut found = Vec::new();
        let mut take = |text: &str| {
            found.push(text.to_owned());
            Ok::<(), TooLong>(())
        };
        for blanks in [&b"\xef\xbb\xbf"[..], b" ", b"\r\n \t", b"  ", b"\n"].repeat(100) {
            unframer.push(blanks, &mut take).unwrap();
            assert_eq!(unframer.line, b"");
        }
        unframer.push(b" {}", &mut take).unwrap();
        assert_eq!(found, ["{}"]);
    }

    #[test]
    fn what_is_no_stream_is_told() {
        let (found, stray) = unframed(&[b"<html>\n<p>no:\xff</p>\n"]);
        assert_eq!((found, &*stray), (vec![], "<html>\n<p>no:\u{fffd}</p>"));
        let endless = vec![b'x'; LONGEST_TEXT + 1];
        let refused = Unframer::default().push(&endless, &mut |_| Ok::<(), TooLong>(()));
        assert_eq!(refused, Err(TooLong));
    }
}
