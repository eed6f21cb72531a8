//! The reader of a recording.

use std::borrow::Cow;
use std::io::{self, BufRead};

use serde::de::IgnoredAny;

use super::document::Document;
use super::gathered::Gathered;
use super::json::without_lone_surrogates;
use super::lines::{LineRead, SourceLines};
use super::recognize::{self, FormatSign};
use super::report::UNEXPECTED;
use super::{
    About, Format, LeftOut, MOST_UNKNOWN_LINES, Mark, RecordedMessage, RecordedUsage,
    RecordingError, Rewound,
};
use super::{acp, claude, codex};

/// A reader that returns a recording message by message.
pub struct Reader<R> {
    lines: SourceLines<R>,
    gathered: Gathered,
    document: Document,
    turn: acp::AcpTurn,
    has_ended: bool,
    /// Program that seems to have written the recording, if its recordings cannot be read.
    other: Option<&'static str>,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader that continues from a mark. The source must begin at the mark's offset.
    pub fn new(source: R, mark: Mark) -> Self {
        Self {
            lines: SourceLines::new(source, mark.offset, mark.lines),
            gathered: Gathered::new(mark),
            document: Document::default(),
            turn: acp::AcpTurn::default(),
            has_ended: false,
            other: None,
        }
    }

    /// Tells the reader the path of the recording's file, whose time and id count if the recording
    /// tells none.
    pub fn set_file(&mut self, path: &str) {
        self.document.set_file(path);
    }

    /// Tells the reader the records before which the user went back.
    pub fn set_rewound(&mut self, rewound: Rewound) {
        self.gathered.set_rewound(rewound);
    }

    /// Returns the first and last number of messages that earlier readings returned and that are no
    /// longer part of the session: the user went back before them, or an answer of which they were
    /// a part has grown. Returns them once.
    pub fn take_gone(&mut self) -> Option<(u64, u64)> {
        self.gathered.gone.take().inspect(|_| self.gathered.note_gone())
    }

    /// Returns the format, once it is known.
    pub fn format(&self) -> Option<Format> {
        self.gathered.mark.format
    }

    /// Returns the facts that are known so far about the recording.
    pub fn about(&self) -> &About {
        &self.gathered.mark.about
    }

    /// Returns the records left out so far.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.gathered.report.entries.clone()
    }

    /// Returns the number of bytes of the recording that were read, in this and earlier readings.
    pub fn offset(&self) -> u64 {
        self.lines.offset
    }

    /// Returns whether nothing in the part read so far is unfinished: all complete messages have
    /// been returned, no call waits for its result, and the last message is not an answer to which
    /// later records may add.
    pub fn is_between_units(&self) -> bool {
        self.turn.is_over() && self.gathered.is_between_units()
    }

    /// Ends the last message, even if later records could add to it. Returns the messages that have
    /// been read but not returned yet.
    pub fn pause(&mut self) -> Vec<RecordedMessage> {
        self.turn.finish(&mut self.gathered);
        self.gathered.pause();
        self.gathered.ready.drain(..).collect()
    }

    /// Returns the usage of the turns that were read since this method was last called.
    pub fn take_usages(&mut self) -> Vec<RecordedUsage> {
        std::mem::take(&mut self.gathered.usages)
    }

    /// Returns the place from which another reading can continue; call it after
    /// [`pause`](Self::pause) or at the end. In the middle of Markdown, that place is the
    /// beginning, since the headings of Markdown do not tell enough to continue.
    pub fn mark(&self) -> Mark {
        let (offset, lines) = (self.lines.offset, self.lines.count);
        let mark = self.gathered.mark.clone();
        match self.has_ended || mark.only_grows() {
            true => Mark { offset, lines, ..mark },
            false => mark.anew(),
        }
    }

    /// Returns the next message; `None` at the end.
    ///
    /// # Errors
    /// [`RecordingError::Unknown`] if the beginning is in no known format; [`RecordingError::Io`] if the
    /// source cannot be read.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot fail midway")]
    pub fn next(&mut self) -> Result<Option<RecordedMessage>, RecordingError> {
        loop {
            if let Some(message) = self.gathered.ready.pop_front() {
                return Ok(Some(message));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.step()?;
            let is_long = self.lines.count > MOST_UNKNOWN_LINES && !self.document.may_be_whole();
            if self.format().is_none() && (self.has_ended || is_long) {
                return Err(match self.other {
                    Some(program) => RecordingError::Other { program },
                    None => RecordingError::Unknown,
                });
            }
        }
    }

    fn step(&mut self) -> io::Result<()> {
        let line = self.lines.next()?;
        self.gathered.line = self.lines.count + u64::from(line == LineRead::Half);
        match line {
            LineRead::Whole => self.read_line(),
            LineRead::TooLong => self.gathered.leave_out("line", "longer than the limit"),
            LineRead::Half => {
                if self.is_complete() {
                    self.lines.take();
                    self.read_line();
                } else {
                    self.gathered.leave_out("last line", "incomplete; left for the next reading");
                }
            }
            LineRead::End => {
                self.has_ended = true;
                if self.format().is_none() {
                    let sign = self.document.recognize();
                    self.recognized(sign);
                }
                self.document.end(self.format(), &mut self.gathered);
                self.turn.finish(&mut self.gathered);
                self.gathered.pause();
            }
        }
        Ok(())
    }

    /// Returns whether the last line, which has no newline, is complete. JSON that is cut off is
    /// not.
    fn is_complete(&self) -> bool {
        !self.gathered.mark.only_grows()
            || self.format().is_none()
            || serde_json::from_slice::<IgnoredAny>(&self.lines.text).is_ok()
    }

    fn read_line(&mut self) {
        let bytes = std::mem::take(&mut self.lines.text);
        let text = String::from_utf8_lossy(&bytes);
        if matches!(text, Cow::Owned(_)) {
            self.gathered.leave_out("bytes", "not UTF-8; replaced by U+FFFD");
        }
        let text = text.trim_matches(['\u{feff}', '\n', '\r', '\0']);
        if self.format().is_none() && !self.document.may_be_whole() {
            self.recognized(recognize::line(text));
        }
        let into = &mut self.gathered;
        match into.mark.format {
            // Markdown may begin with its title.
            None => self.document.line(text),
            Some(_) if !into.mark.only_grows() => self.document.line(text),
            _ if text.trim().is_empty() => {}
            Some(Format::ClaudeCode) => json_line(text, claude::record, into),
            Some(Format::Codex) => json_line(text, codex::record, into),
            Some(_) => json_line(text, |it, into| self.turn.record(it, into), into),
        }
        self.lines.text = bytes;
    }

    /// Takes a sign of the format into account.
    fn recognized(&mut self, sign: Option<FormatSign>) {
        match sign {
            // A session of another program may have records like those of a known one.
            _ if self.other.is_some() => {}
            Some(FormatSign::Weak(_)) if self.document.has_unknown() && !self.has_ended => {}
            Some(FormatSign::Format(format) | FormatSign::Weak(format)) => {
                self.gathered.mark.format = Some(format);
                if self.gathered.mark.only_grows() && !self.has_ended {
                    self.document.leave_out(&mut self.gathered);
                }
            }
            Some(FormatSign::Other(program)) => self.other = Some(program),
            None => {}
        }
    }
}

/// Reads a line of JSON. A line that cannot be read is counted as left out.
fn json_line(
    text: &str,
    record: impl FnOnce(&str, &mut Gathered) -> serde_json::Result<()>,
    into: &mut Gathered,
) {
    let mended = without_lone_surrogates(text);
    if let Err(error) = record(mended.as_deref().unwrap_or(text), into) {
        let reason = match error.classify() {
            serde_json::error::Category::Data => UNEXPECTED,
            _ => "not JSON",
        };
        into.leave_out("line", reason);
    }
}
