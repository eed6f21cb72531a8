//! SpecStory's Markdown: headings that name speakers, and below each heading, texts, thoughts and
//! uses of tools.
//!
//! The Markdown of several programs and ages differs, and parts of it are never closed. What ends a
//! part is therefore the layout: a heading, a rule, or the tag that closes the use of a tool. A
//! fence hides a heading only if the fence is closed before the next turn.

mod block;

use std::mem::take;
use std::ops::Range;

use super::LinesAhead;
use super::gathered::{CalledAndAnswered, Gathered};
use super::json::join;
use super::report::{REASONING, clipped};
use super::time::{seconds, seconds_in_title};

/// Adds the messages of a whole recording. `file_time` is the time in the name of its file.
pub(super) fn read(lines: &[String], file_time: Option<i64>, into: &mut Gathered) {
    let lines = lines.iter().map(String::as_str).collect();
    SpecstoryDocument::new(lines).read(file_time, into);
}

/// Returns whether a line shows that a recording is Markdown of SpecStory.
pub(super) fn is_markdown(line: &str) -> bool {
    let is_comment = line.starts_with("<!--");
    (is_comment && (line.contains("SpecStory") || line.contains(" Session ")))
        || line.trim_end() == "## SpecStory"
        || speaker(line).is_some()
}

/// Who spoke, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Speaker {
    who: Who,
    time: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    User,
    Agent,
    Subagent,
    /// A heading without a name, below which the oldest version shows the use of a tool.
    Tool,
}

/// A recording, and what its headings told so far.
struct SpecstoryDocument<'a> {
    lines: Vec<&'a str>,
    /// Speaker of the last turn.
    last: Option<Speaker>,
    /// True if a heading so far had a time.
    is_dated: bool,
    /// True if uses of tools are marked as such. Early versions show a command only as a fence of its
    /// own between rules.
    has_marks: bool,
    ahead: LinesAhead,
}

/// A part of a turn.
enum SpecstoryPart {
    Text(String),
    Thought,
    Use(block::ToolUse),
}

impl<'a> SpecstoryDocument<'a> {
    fn new(lines: Vec<&'a str>) -> Self {
        let has_marks = lines.iter().any(|line| block::is_marked(line));
        let ahead = LinesAhead::of(lines.len());
        Self { lines, last: None, is_dated: false, has_marks, ahead }
    }

    fn read(mut self, file_time: Option<i64>, into: &mut Gathered) {
        let mut at = self.header(into);
        let first = self.turn_at(at, false).and_then(|speaker| speaker.time);
        let started = &mut into.mark.about.started;
        *started = started.or(first).or(file_time);
        while let Some(speaker) = self.turn_at(at, false) {
            into.line = at as u64 + 1;
            self.is_dated |= speaker.time.is_some();
            let known = self.last.and_then(|last| last.time).or(into.mark.about.started);
            let speaker = Speaker { time: speaker.time.or(known), ..speaker };
            self.last = Some(speaker);
            let (pieces, next) = self.pieces(at + 1, speaker.who);
            tell(&pieces, speaker, at + 1, into);
            at = next;
        }
    }

    /// Reads the lines before the first turn: the recording's title, time and id. Returns the
    /// number of the line with the first turn.
    fn header(&self, into: &mut Gathered) -> usize {
        let first = (0..self.lines.len()).find(|at| self.turn_at(*at, false).is_some());
        let first = first.unwrap_or(self.lines.len());
        let about = &mut into.mark.about;
        for line in &self.lines[..first] {
            let heading = line.strip_prefix("# ").or_else(|| line.strip_prefix("## "));
            if let Some(title) = heading.filter(|title| *title != "SpecStory") {
                let (title, time) = seconds_in_title(title);
                about.started = time.or(about.started);
                if !title.is_empty() {
                    about.title = Some(clipped(&decoded(title)));
                }
            } else if let Some((_, rest)) = line.split_once(" Session ") {
                let id = rest.split(' ').next();
                let id = id.filter(|id| line.starts_with("<!--") && id.len() >= 8);
                Gathered::note_once(&mut about.id, id);
            }
        }
        first
    }

    /// Returns the speaker of the turn that begins with a line; `None` if none begins there.
    /// `in_fence` tells whether a fence before the line may still be open. Such a line begins a turn
    /// only if the layout or its time says so.
    fn turn_at(&self, at: usize, in_fence: bool) -> Option<Speaker> {
        let speaker = speaker(self.lines.get(at)?)?;
        if at > 0 && !is_blank(self.lines[at - 1]) {
            return None;
        }
        if !in_fence {
            return Some(speaker);
        }
        let last = self.last.as_ref();
        match (speaker.time, self.is_dated) {
            (Some(time), _) => last.and_then(|last| last.time).is_none_or(|before| time >= before),
            // In some recordings only the user's headings have a time.
            (None, true) => {
                speaker.who == Who::Agent
                    && last.is_some_and(|last| last.who == Who::User)
                    && self.follows_end(at)
            }
            (None, false) => self.follows_end(at),
        }
        .then_some(speaker)
    }

    /// Returns whether the last line before this one that is not blank ends a part.
    fn follows_end(&self, at: usize) -> bool {
        let before = self.lines[..at].iter().rev().find(|line| !is_blank(line));
        before.is_none_or(|line| *line == RULE || block::is_end(line))
    }

    /// Returns whether a line is a rule with blank lines around it.
    fn is_rule(&self, at: usize) -> bool {
        let blank = |at: Option<usize>| {
            at.and_then(|at| self.lines.get(at)).is_none_or(|line| is_blank(line))
        };
        self.lines[at] == RULE && blank(at.checked_sub(1)) && blank(Some(at + 1))
    }

    /// Reads the parts of a turn from a line on. Returns them, and the line after the turn.
    fn pieces(&self, mut at: usize, who: Who) -> (Vec<SpecstoryPart>, usize) {
        let mut pieces: Vec<SpecstoryPart> = Vec::new();
        let mut text = SpecstoryText::default();
        if who == Who::Tool {
            let (used, next) = block::nameless(self, at);
            pieces.push(SpecstoryPart::Use(used));
            at = next;
        }
        while at < self.lines.len() && self.turn_at(at, false).is_none() {
            let line = self.lines[at];
            if who != Who::User && line.starts_with("<think>") {
                text.end(&mut pieces);
                let (thought, next) = self.thought(at, &mut text);
                pieces.extend(thought);
                at = next;
            } else if who != Who::User && block::begins(self, at) {
                text.end(&mut pieces);
                let (used, next) = block::read(self, at);
                pieces.push(SpecstoryPart::Use(used));
                at = next;
            } else if who != Who::User
                && let Some(next) = self.command(at)
            {
                text.end(&mut pieces);
                pieces.push(SpecstoryPart::Use(block::command(&self.lines[at..next])));
                at = next;
            } else if self.is_rule(at) {
                text.rule();
                at += 1;
            } else {
                let next = fence(line).and_then(|fence| self.closed(at, fence)).unwrap_or(at) + 1;
                self.lines[at..next].iter().for_each(|line| text.line(line));
                at = next;
            }
        }
        text.end(&mut pieces);
        (pieces, at)
    }

    /// Returns the line after a command that begins with a line: a fence for a shell, and perhaps one
    /// with its output, alone between rules. Returns `None` if none begins there, or if the recording
    /// marks uses of tools otherwise.
    fn command(&self, at: usize) -> Option<usize> {
        let is_marked = self.has_marks || !block::is_command(self.lines[at]);
        let before = self.lines[..at].iter().rev().find(|line| !is_blank(line));
        if is_marked || before.is_none_or(|line| *line != RULE) {
            return None;
        }
        let mut end = self.closed(at, fence(self.lines[at])?)? + 1;
        let shown = |at: usize| (at..self.lines.len()).find(|at| !is_blank(self.lines[*at]));
        if let Some(output) = shown(end).filter(|at| self.lines[*at].trim_end() == "```") {
            end = self.closed(output, 3)? + 1;
        }
        let is_over = |at: usize| self.is_rule(at) || self.turn_at(at, false).is_some();
        shown(end).is_none_or(is_over).then_some(end)
    }

    /// Returns the numbers of lines to look at before they are read, as long as not too many were.
    fn ahead(&self, lines: Range<usize>) -> impl Iterator<Item = usize> {
        lines.take_while(|_| self.ahead.take())
    }

    /// Returns the line that closes the fence which a line opens; `None` if a turn begins before.
    fn closed(&self, at: usize, fence: usize) -> Option<usize> {
        let lines = self.ahead(at + 1..self.lines.len());
        let mut inside = lines.take_while(|at| self.turn_at(*at, true).is_none());
        inside.find(|at| closes(self.lines[*at], fence))
    }

    /// Reads a thought. Returns it, unless it is blank, and the line after it. What stands behind it
    /// on its last line becomes text.
    fn thought(&self, at: usize, text: &mut SpecstoryText) -> (Option<SpecstoryPart>, usize) {
        let mut lines = self.ahead(at + 1..self.lines.len());
        let end = lines.find(|next| self.turn_at(*next, true).is_some());
        let end = end.unwrap_or(if self.ahead.is_spent() { at + 1 } else { self.lines.len() });
        let last = (at..end).find(|at| self.lines[*at].contains("</think>"));
        let next = last.map_or(end, |last| last + 1);
        let is_blank = match last {
            Some(last) if last == at => {
                let (thought, rest) = self.lines[at].split_once("</think>").unwrap_or_default();
                if !rest.trim().is_empty() {
                    text.line(rest);
                }
                thought.trim_start_matches("<think>").trim().is_empty()
            }
            _ => false,
        };
        ((!is_blank).then_some(SpecstoryPart::Thought), next)
    }
}

/// A horizontal rule, which ends a part.
const RULE: &str = "---";

/// Text that is being read. A rule in it is kept only between two texts.
#[derive(Default)]
struct SpecstoryText {
    text: String,
    /// True if a rule follows the text.
    has_rule: bool,
}

impl SpecstoryText {
    fn line(&mut self, line: &str) {
        if !is_blank(line) && take(&mut self.has_rule) {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str("\n\n---\n\n");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A rule directly after the beginning of a part ends the part before it.
    fn rule(&mut self) {
        self.has_rule |= !is_blank(&self.text);
    }

    fn end(&mut self, pieces: &mut Vec<SpecstoryPart>) {
        let Self { text, .. } = take(self);
        if !is_blank(&text) {
            pieces.push(SpecstoryPart::Text(text));
        }
    }
}

/// Adds what the parts of a turn say. The text stays before the calls that follow it.
fn tell(pieces: &[SpecstoryPart], speaker: Speaker, heading: usize, into: &mut Gathered) {
    let time = speaker.time;
    if speaker.who == Who::Subagent {
        into.leave_out("sidechain", "the conversation of a subagent");
        return;
    }
    let (mut said, mut calls) = (String::new(), Vec::<CalledAndAnswered>::new());
    let (mut count, mut before) = (0, None::<&block::ToolUse>);
    for piece in pieces {
        let last = before.take();
        match piece {
            SpecstoryPart::Thought => {
                into.leave_out("thinking", REASONING);
            }
            SpecstoryPart::Text(text) if speaker.who == Who::User => join(&mut said, text.trim()),
            SpecstoryPart::Text(text) => {
                if !calls.is_empty() {
                    into.answer(&take(&mut said), take(&mut calls), time);
                }
                join(&mut said, text.trim());
            }
            SpecstoryPart::Use(used) if last.is_some_and(|last| used.repeats(last)) => {
                into.leave_out("tool call", "repeats the one before it, without its content");
            }
            SpecstoryPart::Use(used) => {
                before = Some(used);
                count += 1;
                let id = format!("line-{heading}-{count}");
                let call = into.call(&id, &used.name, used.arguments());
                calls.push((call, id, used.result.clone()));
            }
        }
    }
    match speaker.who {
        Who::User => into.user(&said, time),
        _ => into.answer(&said, calls, time),
    }
}

/// Returns the speaker whom a heading such as `_**User (TIME)**_` or `_**Agent (MODEL TIME)**_`
/// names; `None` for other lines.
fn speaker(line: &str) -> Option<Speaker> {
    let inner = line.trim_end().strip_prefix("_**")?.strip_suffix("**_")?;
    let word: &str = inner.split([' ', '(']).next().unwrap_or_default();
    let is_subagent = inner.contains("sidechain");
    let who = match word {
        "" if inner.is_empty() => Who::Tool,
        "User" | "Agent" | "Assistant" if is_subagent => Who::Subagent,
        "User" => Who::User,
        "Agent" | "Assistant" => Who::Agent,
        _ => return None,
    };
    let words: Vec<&str> = inner.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
    let two = || words.windows(2).find_map(|pair| seconds(&pair.join(" ")));
    let time = words.iter().find_map(|word| seconds(word)).or_else(two);
    Some(Speaker { who, time })
}

/// Returns the number of characters of the fence that a line opens; `None` for other lines.
fn fence(line: &str) -> Option<usize> {
    let line = line.trim_start();
    let count = line.bytes().take_while(|byte| *byte == b'`').count();
    (count >= 3 && !line[count..].contains('`')).then_some(count)
}

/// Returns whether a line closes a fence of so many characters.
fn closes(line: &str, fence: usize) -> bool {
    let line = line.trim();
    line.len() >= fence && line.bytes().all(|byte| byte == b'`')
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Returns a text with its entities of HTML decoded, if all of it is escaped. What was not escaped
/// may have entities of its own.
fn unescaped(text: &str) -> String {
    let is_entity = |rest: &str| ENTITIES.iter().any(|(entity, _)| rest.starts_with(entity));
    let is_escaped =
        !text.contains(['<', '>']) && text.match_indices('&').all(|(at, _)| is_entity(&text[at..]));
    if is_escaped { decoded(text) } else { text.to_owned() }
}

/// The entities of HTML that SpecStory writes, with the letters that they stand for.
const ENTITIES: [(&str, &str); 8] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#96;", "`"),
    ("&#124;", "|"),
    ("&amp;", "&"),
];

/// Returns a text with the entities of HTML that SpecStory writes decoded.
fn decoded(text: &str) -> String {
    let decode = |text: String, (entity, letter): &(&str, &str)| text.replace(entity, letter);
    ENTITIES.iter().fold(text.to_owned(), decode)
}
