//! Splits a byte stream into lines, and groups lines into server-sent events.
//!
//! Text is decoded line by line, so the stream may be split at any byte.

/// Maximum length of a line or an event in bytes. An answer of 10 MB in one piece fits; an endless
/// line is refused.
const LONGEST_LINE: usize = 16 << 20;

/// The framing of an answer: how its texts are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events, of which only the data matter.
    Events,
    /// Lines of JSON.
    Lines,
}

/// Collects bytes and passes on complete texts.
pub(super) struct Unframer {
    framing: Framing,
    line: Vec<u8>,
    /// Data of the event in progress.
    data: Option<String>,
    /// True if the last line ended with a carriage return; a line feed after it belongs to the same
    /// line end.
    returned: bool,
}

impl Unframer {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), data: None, returned: false }
    }

    /// Adds bytes and passes complete texts to `take`.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
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
        match self.line.len() + self.data.as_ref().map_or(0, String::len) > LONGEST_LINE {
            true => Err(format!("a piece of the answer has more than {LONGEST_LINE} bytes")),
            false => Ok(()),
        }
    }

    /// Ends the stream. A last line without a line end counts too.
    pub(super) fn end(
        &mut self,
        take: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        self.end_line(take)?;
        self.end_line(take)
    }

    fn end_line(&mut self, take: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(|_| "the answer is not UTF-8".to_owned())?;
        match (self.framing, line) {
            (Framing::Lines, line) if line.trim().is_empty() => Ok(()),
            (Framing::Lines, line) => take(line),
            (Framing::Events, "") => self.data.take().map_or(Ok(()), |data| take(&data)),
            (Framing::Events, line) => {
                let Some(data) = line.strip_prefix("data:") else { return check_field(line) };
                let data = data.strip_prefix(' ').unwrap_or(data);
                match &mut self.data {
                    Some(known) => known.extend(["\n", data]),
                    none => *none = Some(data.to_owned()),
                }
                Ok(())
            }
        }
    }
}

/// Accepts comments and the fields of an event stream that do not matter here, and refuses any
/// other line.
fn check_field(line: &str) -> Result<(), String> {
    match line.split(':').next() {
        Some("" | "event" | "id" | "retry" | "data") => Ok(()),
        _ => Err("the answer is not an event stream".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unframed(framing: Framing, chunks: &[&[u8]]) -> Result<Vec<String>, String> {
        let mut unframer = Unframer::new(framing);
        let mut found = Vec::new();
        let mut take = |text: &str| {
            found.push(text.to_owned());
            Ok(())
        };
        for chunk in chunks {
            unframer.push(chunk, &mut take)?;
        }
        unframer.end(&mut take)?;
        Ok(found)
    }

    /// Checks the texts of a stream that arrives in one piece, byte by byte, and split in two at
    /// every place.
    #[track_caller]
    fn check(framing: Framing, text: &str, expected: &[&str]) {
        let bytes = text.as_bytes();
        assert_eq!(unframed(framing, &[bytes]).unwrap(), expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(unframed(framing, &single).unwrap(), expected);
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(unframed(framing, &[left, b"", right]).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn events_are_read_wherever_they_are_cut() {
        check(Framing::Events, "data: {\"é\": 1}\n\ndata: [DONE]\n\n", &["{\"é\": 1}", "[DONE]"]);
        check(Framing::Events, "event: x\r\ndata: a\r\ndata:b\r\n\r\n", &["a\nb"]);
        check(Framing::Events, "data: a\r\rdata: ü\r\r", &["a", "ü"]);
        check(Framing::Events, ": hello\n\nid: 1\nretry: 3\ndata\n\ndata: a", &["a"]);
        check(Framing::Events, "data: \n\n\n\n", &[""]);
        check(Framing::Events, "", &[]);
    }

    #[test]
    fn lines_are_read_wherever_they_are_cut() {
        check(
            Framing::Lines,
            "{\"a\": \"😀\"}\n\n{}\r\n{\"b\": 1}",
            &["{\"a\": \"😀\"}", "{}", "{\"b\": 1}"],
        );
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let refused = |framing, bytes: &[u8]| unframed(framing, &[bytes]).unwrap_err();
        assert_eq!(refused(Framing::Events, b"<html>\n"), "the answer is not an event stream");
        assert_eq!(refused(Framing::Events, b"data: \xff\n\n"), "the answer is not UTF-8");
        let endless = vec![b'x'; LONGEST_LINE + 1];
        assert!(refused(Framing::Lines, &endless).contains("more than"));
    }
}
