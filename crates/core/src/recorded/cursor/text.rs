//! Cursor's transcripts as text: turns below `user:` and `assistant:`, and in them marked lines for
//! thoughts, calls and results.
//!
//! Nothing is escaped, and only the first line of an argument is indented. A part ends at the next
//! mark, or at a heading where the layout allows one.

use super::super::LinesAhead;
use super::super::gathered::{CalledAndAnswered, Gathered, MOST_WAITING};
use super::super::report::REASONING;
use super::user;

/// Lines that begin a turn. Some versions call the agent `A`.
const USER: &str = "user:";
const AGENT: [&str; 2] = ["assistant:", "A:"];
const CALL: &str = "[Tool call] ";
const RESULT: &str = "[Tool result]";
const THINKING: &str = "[Thinking]";
/// Marks of a thought in early versions.
const THOUGHT: (&str, &str) = ("<think>", "</think>");

/// Names of arguments that have only one line. The lines after it belong to no argument.
const ONE_LINE: &[&str] = &[
    "block_until_ms",
    "file_path",
    "glob_pattern",
    "head_limit",
    "is_background",
    "limit",
    "merge",
    "offset",
    "output_mode",
    "path",
    "paths",
    "pattern",
    "replace_all",
    "target_directory",
    "target_file",
    "todos",
    "working_directory",
];
/// Names of arguments of many lines, each with those that may follow it.
const MANY_LINES: &[(&str, &[&str])] = &[
    (
        "command",
        &[
            "block_until_ms",
            "description",
            "explanation",
            "is_background",
            "required_permissions",
            "timeout",
            "working_directory",
        ],
    ),
    ("content", &[]),
    ("contents", &[]),
    ("new_string", &["replace_all"]),
    ("old_string", &["new_string", "replace_all"]),
    ("overview", &["isProject", "plan", "todos"]),
    ("patch", &[]),
    ("plan", &["isProject", "todos"]),
    ("prompt", &["description", "model", "readonly", "run_in_background", "subagent_type"]),
];

/// Returns whether a line begins a transcript as text.
pub(in super::super) fn begins_text(line: &str) -> bool {
    line.trim_end() == USER
}

/// Returns whether lines are a transcript as text.
pub(in super::super) fn is_text(lines: &[String]) -> bool {
    let mut said = lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty());
    said.next() == Some(USER)
        && (said.next().is_some_and(|line| line.starts_with("<user_query>"))
            || said.any(|line| line == AGENT[0]))
}

/// The lines of a transcript.
struct Transcript<'a> {
    lines: &'a [String],
    /// Heading of the agent's turns.
    agent: &'static str,
    /// Number of lines that fences may still hide: what each opens may never be closed.
    hidden: LinesAhead,
}

/// Adds what a transcript as text says to `into`.
pub(in super::super) fn read_text(lines: &[String], into: &mut Gathered) {
    let has_long = lines.iter().any(|line| line.trim_end() == AGENT[0]);
    let hidden = LinesAhead::of(lines.len());
    let transcript = Transcript { lines, agent: AGENT[usize::from(!has_long)], hidden };
    let (mut at, mut time) = (0, None);
    while at < lines.len() {
        into.line = at as u64 + 1;
        at = match lines[at].trim_end() == USER {
            true => {
                let end = transcript.end_of_text(at + 1, false);
                user(lines[at + 1..end].join("\n").trim(), &mut time, into);
                end
            }
            false => transcript.answer(at + 1, time, into),
        };
    }
}

impl Transcript<'_> {
    /// Returns whether a turn begins with a line. Where the line may be a part of a file or of code,
    /// the lines around it have to say so too.
    fn begins_turn(&self, at: usize, is_quoted: bool) -> bool {
        let line = self.lines[at].trim_end();
        let is_user = line == USER;
        if !is_user && line != self.agent {
            return false;
        }
        let next = self.lines.get(at + 1).map_or("", String::as_str);
        let follows = self.lines[at - 1].trim().is_empty();
        !is_quoted || follows && (!is_user || next.starts_with(['<', '[']))
    }

    /// Returns the line after a text that begins with a line. A text ends before the next turn; if it
    /// has marks, also before the next mark.
    fn end_of_text(&self, begin: usize, has_marks: bool) -> usize {
        let mut is_code = false;
        for at in begin..self.lines.len() {
            let line = &self.lines[at];
            if self.begins_turn(at, is_code) || has_marks && !is_code && is_mark(line) {
                return at;
            }
            is_code ^= line.trim_start().starts_with("```");
            is_code = is_code && self.hidden.take();
        }
        // A fence that nothing closes hides nothing.
        let hidden =
            (begin..self.lines.len()).find(|at| is_code && has_marks && is_mark(&self.lines[*at]));
        hidden.unwrap_or(self.lines.len())
    }

    /// Returns the line after a part of a call or result: before the next mark or turn.
    fn end_of_part(&self, begin: usize) -> usize {
        let ends = |at: &usize| is_mark(&self.lines[*at]) || self.begins_turn(*at, true);
        (begin..self.lines.len()).find(ends).unwrap_or(self.lines.len())
    }

    /// Adds a turn of the agent from a line on. Returns the line after it.
    fn answer(&self, mut at: usize, time: Option<i64>, into: &mut Gathered) -> usize {
        let (mut said, mut calls) = (String::new(), Vec::<CalledAndAnswered>::new());
        while at < self.lines.len() && !self.begins_turn(at, false) {
            let line = &self.lines[at];
            if line.starts_with(THINKING) || line.starts_with(THOUGHT.0) {
                into.leave_out("thinking", REASONING);
                at = self.end_of_thought(at);
            } else if let Some(name) = line.strip_prefix(CALL) {
                let (given, end) = self.arguments(at + 1);
                let id = format!("call-{}", into.mark.calls.len() + 1);
                calls.push((into.call(&id, name.trim(), given), id, None));
                at = end;
            } else if let Some(name) = line.strip_prefix(RESULT) {
                let end = self.end_of_result(at + 1);
                let result = unindented(&self.lines[at + 1..end]);
                let name = name.trim();
                let is_it = |(call, _, result): &&mut CalledAndAnswered| {
                    result.is_none() && (name.is_empty() || call.name == name)
                };
                let waiting = calls.len().saturating_sub(MOST_WAITING);
                match calls.iter_mut().skip(waiting).find(is_it) {
                    Some((_, _, slot)) => *slot = Some(result).filter(|it| !it.is_empty()),
                    None => into.leave_out("tool result", "its call is not in the recording"),
                }
                at = end;
            } else {
                let end = self.end_of_text(at, true).max(at + 1);
                let text = self.lines[at..end].join("\n");
                if !text.trim().is_empty() && !calls.is_empty() {
                    let (said, calls) = (std::mem::take(&mut said), std::mem::take(&mut calls));
                    into.answer(said.trim(), calls, time);
                }
                said.push_str(&text);
                said.push('\n');
                at = end;
            }
        }
        into.answer(said.trim(), calls, time);
        at
    }

    /// Returns the line after a thought. Nothing marks its end: the text begins with the first line
    /// that continues a paragraph but no list, since the thoughts have paragraphs of one line.
    fn end_of_thought(&self, begin: usize) -> usize {
        let end = (begin + 1..self.lines.len())
            .find(|at| is_mark(&self.lines[*at]) || self.begins_turn(*at, false))
            .unwrap_or(self.lines.len());
        if self.lines[begin].starts_with(THOUGHT.0) {
            let last = (begin..end).find(|at| self.lines[*at].contains(THOUGHT.1));
            return last.map_or(end, |last| last + 1);
        }
        let mut is_code = false;
        for at in begin + 1..end {
            let (before, line) = (&self.lines[at - 1], &self.lines[at]);
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            let goes_on = before.trim().is_empty() || line.trim().is_empty();
            if !is_code && !is_fence && !goes_on && !line.starts_with([' ', '\t']) && !is_list(line)
            {
                return at;
            }
        }
        end
    }

    /// Returns the line after a result: its indented lines, or if its first line is not indented, all
    /// up to the next mark or turn.
    fn end_of_result(&self, begin: usize) -> usize {
        let first = self.lines.get(begin).map_or("", String::as_str);
        if !first.trim().is_empty() && !first.starts_with([' ', '\t']) {
            return self.end_of_part(begin);
        }
        let is_inner = |line: &&String| line.trim().is_empty() || line.starts_with([' ', '\t']);
        begin + self.lines[begin..].iter().take_while(is_inner).count()
    }

    /// Returns as JSON the arguments below a call, and the line after them.
    fn arguments(&self, begin: usize) -> (String, usize) {
        let mut members = serde_json::Map::new();
        let mut last: Option<&str> = None;
        let mut value = String::new();
        let end = self.end_of_part(begin);
        let mut at = begin;
        while at < end {
            let line = &self.lines[at];
            let named = argument(line).filter(|(name, _)| {
                !members.contains_key(*name) && last.is_none_or(|last| may_follow(last, name))
            });
            match (named, last) {
                (Some((name, first)), before) => {
                    if let Some(before) = before {
                        members.insert(before.to_owned(), std::mem::take(&mut value).into());
                    }
                    (last, value) = (Some(name), first.to_owned());
                }
                // Nothing that belongs to the call follows.
                (None, None) => break,
                (None, Some(before)) if ONE_LINE.contains(&before) && !line.trim().is_empty() => {
                    break;
                }
                (None, Some(_)) => {
                    value.push('\n');
                    value.push_str(line);
                }
            }
            at += 1;
        }
        if let Some(last) = last {
            members.insert(last.to_owned(), value.into());
        }
        for value in members.values_mut() {
            if let serde_json::Value::String(text) = value {
                text.truncate(text.trim_end().len());
            }
        }
        (serde_json::Value::Object(members).to_string(), at)
    }
}

fn is_mark(line: &str) -> bool {
    line.starts_with(CALL) || line.starts_with(RESULT) || line.starts_with(THINKING)
}

/// Returns whether a line is an entry of a list or table.
fn is_list(line: &str) -> bool {
    let number = line.trim_start_matches(|it: char| it.is_ascii_digit());
    line.starts_with(['|', '•'])
        || line.starts_with("- ")
        || line.starts_with("* ")
        || number.len() < line.len() && number.starts_with(['.', ')'])
}

/// Returns the name of an argument that begins with a line, and the first line of its value.
fn argument(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("  ")?.split_once(':')?;
    let is_name = |it: char| it.is_alphanumeric() || it == '_' || it == '-';
    let is_named = !name.is_empty() && name.chars().all(is_name);
    is_named.then(|| (name, value.strip_prefix(' ').unwrap_or(value)))
}

/// Returns whether an argument may follow another, whose value may have lines like it.
fn may_follow(before: &str, name: &str) -> bool {
    let known = MANY_LINES.iter().find(|(many, _)| *many == before);
    known.is_none_or(|(_, next)| next.contains(&name))
}

fn unindented(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| line.strip_prefix("  ").unwrap_or(line).trim_end());
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}
