//! SpecStory's Markdown: headings that name speakers, and below each heading, texts, thoughts and
//! uses of tools.

mod tool;

use super::LARGEST_MESSAGE;
use super::gathered::Gathered;
use super::json::join;
use super::report::clipped;
use super::time::seconds;
use crate::session::message::ToolCall;

/// The part of a recording below one heading, up to the line that was read last.
#[derive(Default)]
pub(super) struct Markdown {
    speaker: Option<Speaker>,
    text: String,
    /// Number of the line with the heading.
    heading: u64,
    is_cut: bool,
    /// True inside the block of a tool, where a line in a fence is not a heading.
    in_tool: bool,
    in_fence: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Speaker {
    is_user: bool,
    is_subagent: bool,
    time: Option<i64>,
}

impl Markdown {
    /// Reads the next line. A heading ends the part before it.
    pub(super) fn line(&mut self, line: &str, into: &mut Gathered) {
        self.follow_fence(line);
        if !self.in_fence
            && let Some(speaker) = speaker(line)
        {
            self.end(into);
            *self = Self { speaker: Some(speaker), heading: into.line, ..Self::default() };
            if let Some(time) = speaker.time {
                into.mark.about.started.get_or_insert(time);
            }
            return;
        }
        if self.speaker.is_none() {
            return before_the_first(line, into);
        }
        self.is_cut |= self.text.len() > 2 * LARGEST_MESSAGE;
        if !self.is_cut {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Ends the part, and adds its messages.
    pub(super) fn end(&mut self, into: &mut Gathered) {
        let Some(speaker) = self.speaker.take() else { return };
        let line = std::mem::replace(&mut into.line, self.heading);
        let text = without_rule(&self.text);
        if self.is_cut {
            into.leave_out("text", "longer than the limit; cut off");
        }
        match speaker {
            Speaker { is_subagent: true, .. } => {
                into.leave_out("sidechain", "the conversation of a subagent");
            }
            Speaker { is_user: true, time, .. } => into.user(text.trim().to_owned(), time),
            Speaker { time, .. } => agent(text, self.heading, time, into),
        }
        self.text.clear();
        into.line = line;
    }

    /// Notes where blocks of tools, and the fences in these blocks, begin and end. Other fences are
    /// not followed, since one that is never closed would hide all later headings.
    fn follow_fence(&mut self, line: &str) {
        if !self.in_fence && tool::begins(line) {
            self.in_tool = true;
        } else if self.in_tool && line.starts_with("```") {
            self.in_fence = !self.in_fence;
        } else if self.in_tool && !self.in_fence && line.contains("</tool-use>") {
            self.in_tool = false;
        }
    }
}

/// Reads a line before the first speaker's heading: the recording's title, time or id.
fn before_the_first(line: &str, into: &mut Gathered) {
    let about = &mut into.mark.about;
    if let Some(title) = line.strip_prefix("# ") {
        match seconds(title) {
            Some(time) => about.started = about.started.or(Some(time)),
            None => about.title = Some(clipped(title)),
        }
    } else if let Some((_, rest)) = line.split_once(" Session ") {
        let id = rest.split(' ').next().filter(|id| line.starts_with("<!--") && id.len() >= 8);
        Gathered::note_once(&mut about.id, id);
    }
}

/// Returns the speaker whom a heading such as `_**User (TIME)**_` or `_**Agent (MODEL TIME)**_`
/// names; `None` for other lines.
fn speaker(line: &str) -> Option<Speaker> {
    let inner = line.trim_end().strip_prefix("_**")?.strip_suffix("**_")?;
    let is_user = inner.starts_with("User");
    if !is_user && !inner.starts_with("Agent") && !inner.starts_with("Assistant") {
        return None;
    }
    let words: Vec<&str> = inner.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
    let two = || words.windows(2).find_map(|pair| seconds(&pair.join(" ")));
    let time = words.iter().find_map(|word| seconds(word)).or_else(two);
    Some(Speaker { is_user, is_subagent: inner.contains("sidechain"), time })
}

/// Returns a text without the horizontal rule at its end.
fn without_rule(text: &str) -> &str {
    let text = text.trim_end();
    text.strip_suffix("\n---").or_else(|| (text == "---").then_some("")).unwrap_or(text)
}

/// Reads what an agent said, thought and did below one heading.
fn agent(text: &str, heading: u64, time: Option<i64>, into: &mut Gathered) {
    let mut said = String::new();
    let mut done: Vec<(ToolCall, String, String)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some((thought, after)) = thought(rest) {
            if !thought.trim().is_empty() {
                into.leave_out("thinking", "a model's reasoning is not sent to models again");
            }
            rest = after;
        } else if tool::begins(line) {
            let (used, after) = tool::read(rest);
            let id = format!("line-{heading}-{}", done.len() + 1);
            let call = into.call(&id, &used.name, used.arguments());
            done.push((call, id, used.result));
            rest = after;
        } else {
            said.push_str(line);
            said.push('\n');
            rest = below;
        }
    }
    let mut content = String::new();
    join(&mut content, said.trim());
    let (calls, results): (Vec<_>, Vec<_>) =
        done.into_iter().map(|(call, id, result)| (call, (id, result))).unzip();
    into.agent(&content, calls, time, false);
    for (id, result) in results {
        into.result(&id, result, time);
    }
}

/// Splits a text that begins with a thought into the thought and the rest; `None` for other texts.
fn thought(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("<think>")?;
    let (thought, after) = inner.split_once("</think>").unwrap_or((inner, ""));
    Some((thought, after.strip_prefix('\n').unwrap_or(after)))
}
