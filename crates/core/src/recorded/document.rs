//! The lines of a recording that is read as a whole: Markdown, text, one JSON value on many lines,
//! and JSON lines of which later ones tell what to make of earlier ones.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::gathered::Gathered;
use super::json::{closed, without_lone_surrogates};
use super::recognize::{self, FormatSign};
use super::records::JsonRecord;
use super::time::seconds_in_name;
use super::{Format, aider, cline, codex, copilot, cursor, gemini, opencode, pi, qwen, specstory};

/// Maximum size in bytes of a recording that is read as a whole. The rest of a larger one is cut
/// off, and the report says so.
const LARGEST_DOCUMENT: usize = 256 << 20;

/// Name of the folder in which Cursor keeps the sessions of subagents.
const SUBAGENTS: &str = "subagents";

/// The lines that were read so far.
#[derive(Default)]
pub(super) struct Document {
    lines: Vec<String>,
    bytes: usize,
    is_cut: bool,
    /// True if the end of the one JSON value is missing.
    is_incomplete: bool,
    /// Name of the file, of the folder in which it is, and of the folder above.
    file: [String; 3],
    /// True if the first line begins a value or text that only its end tells.
    is_open: bool,
    /// True if the lines are one JSON value.
    is_one_value: bool,
}

impl Document {
    pub(super) fn set_file(&mut self, path: &str) {
        let mut names = path.rsplit('/').map(str::to_owned);
        self.file = std::array::from_fn(|_| names.next().unwrap_or_default());
    }

    /// Notes the id and the time in the name of the file if the recording tells none. Cline names the
    /// folder of a task after its time in milliseconds. Cursor keeps the sessions of subagents in a
    /// folder beside that of their parent.
    fn note_name(&self, format: Option<Format>, into: &mut Gathered) {
        let [file, folder, above] = &self.file;
        if format == Some(Format::Cursor) && folder == SUBAGENTS {
            Gathered::note_once(&mut into.mark.about.parent, Some(above));
            into.mark.is_subagent = true;
        }
        let stem = file.split('.').next();
        let is_task = file == "api_conversation_history.json";
        let id = match format {
            Some(Format::Cline) if is_task => Some(&**folder),
            Some(Format::Cursor) => stem,
            _ => None,
        };
        let about = &mut into.mark.about;
        Gathered::note_once(&mut about.id, id);
        let task = folder.parse::<i64>().ok().filter(|_| is_task).map(|it| it / 1000);
        let named = seconds_in_name(file).filter(|_| format != Some(Format::Specstory));
        about.started = about.started.or(task).or(named);
    }

    /// Reads the next line.
    pub(super) fn line(&mut self, line: &str) {
        self.is_cut |= self.bytes + line.len() > LARGEST_DOCUMENT;
        if !self.is_cut {
            let is_first = self.lines.iter().all(|line| line.trim().is_empty());
            if is_first && !line.trim().is_empty() {
                let is_value = || serde_json::from_str::<IgnoredAny>(line).is_ok();
                let begins_value = line.starts_with(['{', '[']) && !is_value();
                self.is_open = begins_value || cursor::begins_text(line);
            }
            self.bytes += line.len() + 1;
            self.lines.push(line.to_owned());
        }
    }

    /// Counts the lines so far as left out, since the recording is in another format.
    pub(super) fn leave_out(&mut self, into: &mut Gathered) {
        let line = into.line;
        let lines = self.lines.drain(..).enumerate();
        for (at, _) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            into.line = at as u64 + 1;
            into.leave_out("line", "before the first record");
        }
        into.line = line;
    }

    /// Returns whether the lines may be a value or text that only its end tells.
    pub(super) fn may_be_whole(&self) -> bool {
        self.is_open
    }

    /// Returns whether a line so far is a JSON value of which no sign was found.
    pub(super) fn has_unknown(&self) -> bool {
        self.lines.iter().any(|line| line.trim_start().starts_with('{'))
    }

    /// Returns what the whole recording tells about its format.
    pub(super) fn recognize(&mut self) -> Option<FormatSign> {
        if cursor::is_text(&self.lines) {
            return Some(FormatSign::Format(Format::Cursor));
        }
        self.is_one_value = true;
        let text = self.lines.join("\n");
        let sign = recognize::line(&text);
        if sign.is_some() || !self.is_open {
            return sign;
        }
        let closed = closed(&text)?;
        let sign = recognize::line(&closed)?;
        self.lines = vec![closed];
        self.is_incomplete = true;
        Some(sign)
    }

    /// Adds the messages of the whole recording, which is in the format `format`.
    pub(super) fn end(&mut self, format: Option<Format>, into: &mut Gathered) {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return;
        }
        if self.is_cut {
            into.leave_out("text", "longer than the limit; cut off");
        }
        if self.is_incomplete {
            into.leave_out("end of the file", "incomplete; left for the next reading");
        }
        self.note_name(format, into);
        let read: fn(&[JsonRecord<'_>], &mut Gathered) = match format {
            Some(Format::Specstory) => {
                return specstory::read(&lines, seconds_in_name(&self.file[0]), into);
            }
            Some(Format::Aider) => return aider::read(&lines, into),
            Some(Format::Cursor) if cursor::is_text(&lines) => {
                return cursor::read_text(&lines, into);
            }
            Some(Format::Codex) => codex::read_value,
            Some(Format::Gemini) => gemini::read,
            Some(Format::Qwen) => qwen::read,
            Some(Format::Pi) => pi::read,
            Some(Format::Copilot) => copilot::read,
            Some(Format::Cursor) => cursor::read,
            Some(Format::Cline) => cline::read,
            Some(Format::Opencode) => opencode::read,
            _ => return,
        };
        let lines = if self.is_one_value { vec![lines.join("\n")] } else { lines };
        let mended: Vec<Cow<'_, str>> = lines.iter().map(|line| mended(line)).collect();
        let records = (1..).zip(&mended).filter(|(_, text)| !text.trim().is_empty());
        let records: Vec<JsonRecord<'_>> = records.map(|(line, text)| (line, &**text)).collect();
        read(&records, into);
    }
}

fn mended(line: &str) -> Cow<'_, str> {
    without_lone_surrogates(line).map_or(Cow::Borrowed(line), Cow::Owned)
}
