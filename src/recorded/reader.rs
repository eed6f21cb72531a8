//! The reader of a recording.

use std::borrow::Cow;
use std::io::{self, BufRead};

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::gathered::Gathered;
use super::json::without_lone_surrogates;
use super::lines::{Line, Lines};
use super::specstory::{Markdown, is_markdown};
use super::time::seconds_in_name;
use super::{About, Format, LeftOut, MOST_UNKNOWN_LINES, Mark, ReadError, RecordedMessage, Usage};
use super::{acp, claude, codex};

/// A reader that returns a recording message by message.
pub struct Reader<R> {
    lines: Lines<R>,
    gathered: Gathered,
    markdown: Markdown,
    turn: acp::Turn,
    has_ended: bool,
    /// Program that seems to have written the recording, if its recordings cannot be read.
    other: Option<&'static str>,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader that continues from a mark. The source must begin at the mark's offset.
    pub fn new(source: R, mark: Mark) -> Self {
        Self {
            lines: Lines::new(source, mark.offset, mark.lines),
            gathered: Gathered::new(mark),
            markdown: Markdown::default(),
            turn: acp::Turn::default(),
            has_ended: false,
            other: None,
        }
    }

    /// Tells the reader the name of the recording's file, whose time counts if Markdown
    /// tells none.
    pub fn set_file_name(&mut self, name: &str) {
        self.markdown.file_time = seconds_in_name(name);
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
    pub fn take_usages(&mut self) -> Vec<Usage> {
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
    /// [`ReadError::Unknown`] if the beginning is in no known format; [`ReadError::Io`] if the
    /// source cannot be read.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot fail midway")]
    pub fn next(&mut self) -> Result<Option<RecordedMessage>, ReadError> {
        loop {
            if let Some(message) = self.gathered.ready.pop_front() {
                return Ok(Some(message));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.step()?;
            if self.format().is_none() && (self.has_ended || self.lines.count > MOST_UNKNOWN_LINES)
            {
                return Err(match self.other {
                    Some(program) => ReadError::Other { program },
                    None => ReadError::Unknown,
                });
            }
        }
    }

    fn step(&mut self) -> io::Result<()> {
        let line = self.lines.next()?;
        self.gathered.line = self.lines.count + u64::from(line == Line::Half);
        match line {
            Line::Whole => self.read_line(),
            Line::TooLong => self.gathered.leave_out("line", "longer than the limit"),
            Line::Half => {
                if self.is_complete() {
                    self.lines.take();
                    self.read_line();
                } else {
                    self.gathered.leave_out("last line", "incomplete; left for the next reading");
                }
            }
            Line::End => {
                self.markdown.end(&mut self.gathered);
                self.turn.finish(&mut self.gathered);
                self.gathered.pause();
                self.has_ended = true;
            }
        }
        Ok(())
    }

    /// Returns whether the last line, which has no newline, is complete. JSON that is cut off is
    /// not.
    fn is_complete(&self) -> bool {
        self.format() == Some(Format::Specstory)
            || self.format().is_none()
            || serde_json::from_slice::<IgnoredAny>(&self.lines.text).is_ok()
    }

    fn read_line(&mut self) {
        let text = String::from_utf8_lossy(&self.lines.text);
        if matches!(text, Cow::Owned(_)) {
            self.gathered.leave_out("bytes", "not UTF-8; replaced by U+FFFD");
        }
        let text = text.trim_matches(['\u{feff}', '\n', '\r', '\0']);
        if self.gathered.mark.format.is_none() {
            match recognize(text) {
                Some(Sign::Format(format)) => {
                    self.gathered.mark.format = Some(format);
                    if format != Format::Specstory {
                        self.markdown.leave_out(&mut self.gathered);
                    }
                }
                Some(Sign::Other(program)) => self.other = self.other.or(Some(program)),
                None => {}
            }
        }
        match self.gathered.mark.format {
            // Markdown may begin with its title.
            None | Some(Format::Specstory) => self.markdown.line(text),
            _ if text.trim().is_empty() => {}
            Some(Format::ClaudeCode) => json_line(text, claude::record, &mut self.gathered),
            Some(Format::Codex) => json_line(text, codex::record, &mut self.gathered),
            Some(Format::Acp) => {
                json_line(text, |it, into| self.turn.record(it, into), &mut self.gathered);
            }
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
            serde_json::error::Category::Data => "a record in an unexpected form",
            _ => "not JSON",
        };
        into.leave_out("line", reason);
    }
}

/// Kinds of records that only Claude Code writes and that have no session id.
const CLAUDE: &[&str] =
    &["summary", "file-history-snapshot", "queue-operation", "custom-title", "ai-title"];
/// Kinds of items that Codex writes without an envelope.
const CODEX: &[&str] = &["message", "reasoning", "function_call", "function_call_output"];

/// What a line tells about the program that wrote the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Format(Format),
    /// A program whose recordings cannot be read.
    Other(&'static str),
}

/// A record as far as it shows its format.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Any<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "record_type")]
    record_type: Option<IgnoredAny>,
    payload: Option<IgnoredAny>,
    session_id: Option<IgnoredAny>,
    uuid: Option<IgnoredAny>,
    is_sidechain: Option<IgnoredAny>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    role: Option<IgnoredAny>,
    content: Option<IgnoredAny>,
    #[serde(rename = "call_id")]
    call_id: Option<IgnoredAny>,
    summary: Option<IgnoredAny>,
    version: Option<IgnoredAny>,
    cwd: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
    acp: Option<IgnoredAny>,
    timestamp: Option<IgnoredAny>,
}

/// The members by which agents' messages differ.
#[derive(serde::Deserialize)]
struct AnyMessage {
    content: Option<IgnoredAny>,
    parts: Option<IgnoredAny>,
}

/// Returns what this line tells about the recording's format. Several members decide together,
/// since many agents write records with a `type` and a `message`.
fn recognize(line: &str) -> Option<Sign> {
    if is_markdown(line) {
        return Some(Sign::Format(Format::Specstory));
    }
    let any: Any<'_> = serde_json::from_str(line).ok()?;
    let message = any.message.and_then(|raw| serde_json::from_str::<AnyMessage>(raw.get()).ok());
    let has_parts = message.as_ref().is_some_and(|message| message.parts.is_some());
    let has_content = message.is_some_and(|message| message.content.is_some());
    let of_claude = any.session_id.is_some() || any.uuid.is_some();
    let is_item = any.role.is_some() && any.content.is_some() || any.call_id.is_some();
    let format = match any.kind.as_deref() {
        Some("session_start") if any.id.is_some() => return Some(Sign::Other("Droid")),
        Some("session") if any.version.is_some() && any.cwd.is_some() => {
            return Some(Sign::Other("pi or OpenClaw"));
        }
        Some(_) if has_parts && of_claude => return Some(Sign::Other("Qwen Code")),
        Some(_) if any.payload.is_some() => Format::Codex,
        Some("user" | "assistant") if has_content => Format::ClaudeCode,
        Some("reasoning") if any.summary.is_some() || any.content.is_some() => Format::Codex,
        Some(kind) if CODEX.contains(&kind) && is_item => Format::Codex,
        Some(kind) if CLAUDE.contains(&kind) => Format::ClaudeCode,
        Some(_) if of_claude && any.is_sidechain.is_some() => Format::ClaudeCode,
        None if any.acp.is_some() => Format::Acp,
        None if any.record_type.is_some() => Format::Codex,
        None if any.id.is_some() && any.timestamp.is_some() => Format::Codex,
        _ => return None,
    };
    Some(Sign::Format(format))
}
