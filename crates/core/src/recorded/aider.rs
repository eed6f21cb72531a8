//! aider's history, `.aider.chat.history.md` in the root of a repository: Markdown with all chats of
//! that repository, each after a heading with its time.
//!
//! What the user typed stands after `#### `, what aider said after `> `, and what the model said as
//! it is. aider ends the lines of the first two kinds with two spaces. Headings and quotations of
//! the model have no such spaces. An editor may have removed the spaces, perhaps only at the ends
//! of paragraphs. Some editors also write a blank line after each line that the user typed.

use std::collections::HashMap;

use super::gathered::Gathered;
use super::report::{NOTICE, REASONING};
use super::time::zoneless;

/// Beginning of the heading of a chat.
pub(super) const HEADING: &str = "# aider chat started at ";
const TYPED: &str = "####";
const TOLD: &str = ">";
/// Beginning of the line with the size of an answer.
const SIZE: &str = "> Tokens: ";
/// End of the lines that aider itself writes.
const END: &str = "  ";
/// Beginnings and ends of a model's reasoning.
const THINKING: [(&str, &str); 2] =
    [("<thinking-content-", "</thinking-content-"), ("► **THINKING**", "► **ANSWER**")];
/// Beginning of the question that aider asks of its own documentation for the user.
const HELP: &str = "# Question: ";
/// Commands with a question for the model.
const ASKING: &[&str] = &["/ask", "/code", "/architect", "/help", "/context", "/ok"];

/// Splits a history into its chats, each with the time in its heading. The second of two with the
/// same time is called `TIME (2)`.
#[must_use]
pub fn chats(text: &str) -> Vec<(String, String)> {
    let mut chats: Vec<(String, String)> = Vec::new();
    let mut begun: HashMap<&str, usize> = HashMap::new();
    for line in text.split_inclusive('\n') {
        if let Some(time) = line.strip_prefix(HEADING) {
            let same = begun.entry(time.trim()).or_default();
            *same += 1;
            let again = if *same > 1 { format!(" ({same})") } else { String::new() };
            chats.push((format!("{}{again}", time.trim()), String::new()));
        }
        if let Some((_, chat)) = chats.last_mut() {
            chat.push_str(line);
        }
    }
    chats
}

/// The lines of a chat.
struct AiderChat<'a> {
    lines: &'a [String],
    /// True if the ends of lines that the user typed are as aider wrote them.
    typed_is_kept: bool,
    /// True if the ends of lines that aider told are as aider wrote them.
    told_is_kept: bool,
    /// True if there is a blank line after each line that the user typed.
    is_spaced: bool,
    /// True if aider told the size of each answer, so that nothing is typed directly after one.
    has_sizes: bool,
    /// For each line, whether the last line with text before it is not the model's.
    follows_own: Vec<bool>,
}

impl<'a> AiderChat<'a> {
    fn new(lines: &'a [String]) -> Self {
        let next = || lines.iter().skip(1).map(String::as_str).chain([""]);
        // An editor that removes spaces at the ends of paragraphs removes all of them.
        let is_kept = |mark: &str| {
            let mut ends = lines
                .iter()
                .zip(next())
                .filter(|(line, next)| line.starts_with(mark) && !next.starts_with(mark));
            ends.any(|(line, _)| line.ends_with(END))
        };
        let is_typed = |line: &str| line.starts_with(TYPED);
        let typed_is_kept = is_kept(TYPED);
        let mut pairs = lines.iter().zip(next());
        let is_spaced =
            !typed_is_kept && !pairs.any(|(line, next)| is_typed(line) && is_typed(next));
        let has_sizes = lines.iter().any(|line| line.starts_with(SIZE));
        let follows_own = follows_own(lines);
        Self {
            lines,
            typed_is_kept,
            told_is_kept: is_kept(TOLD),
            is_spaced,
            has_sizes,
            follows_own,
        }
    }

    /// Returns the text of a line that aider told or wrote for the user; `None` for other lines.
    fn own(&self, at: usize, mark: &str) -> Option<String> {
        let line = &self.lines[at];
        let rest = line.strip_prefix(mark)?;
        let rest = rest.strip_prefix(' ').or(rest.is_empty().then_some(rest))?;
        let is_kept = if mark == TYPED { self.typed_is_kept } else { self.told_is_kept };
        let is_own = match is_kept {
            true => line.ends_with(END),
            false => mark != TYPED || !self.has_sizes || self.follows_own[at],
        };
        is_own.then(|| rest.trim_end().to_owned())
    }

    /// Returns the lines that the user typed together, beginning with line `at`, and the line after
    /// them.
    fn typed(&self, mut at: usize) -> (Vec<String>, usize) {
        let (mut typed, mut end) = (Vec::new(), at);
        while at < self.lines.len() {
            match self.own(at, TYPED) {
                Some(line) => {
                    typed.push(line);
                    end = at + 1;
                }
                None if self.is_spaced && self.lines[at].trim().is_empty() => {}
                None => break,
            }
            at += 1;
        }
        (typed, end)
    }

    /// Returns the line after the notice with which a chat begins. The notice quotes the command that
    /// started aider, which may have lines of its own.
    fn after_command(&self, at: usize) -> usize {
        let is_begun = self.told_is_kept
            && self
                .lines
                .get(at)
                .is_some_and(|line| line.starts_with(TOLD) && !line.ends_with(END));
        let end = self.lines[at..].iter().position(|line| line.ends_with(END));
        match end.filter(|_| is_begun) {
            Some(end) => at + end + 1,
            None => at,
        }
    }
}

/// Returns for each line whether the last line with text before it is not the model's.
fn follows_own(lines: &[String]) -> Vec<bool> {
    let mut is_own = true;
    let follows = |line: &String| {
        let before = is_own;
        if !line.trim().is_empty() {
            let is_told = line.starts_with(HEADING) || line.starts_with(TOLD);
            is_own = is_told || line.starts_with(TYPED) && is_own;
        }
        before
    };
    lines.iter().map(follows).collect()
}

/// Adds what the lines say to `into`.
pub(super) fn read(lines: &[String], into: &mut Gathered) {
    let chat = AiderChat::new(lines);
    let (mut time, mut at) = (None, 0);
    let (mut asked, mut answered) = (String::new(), String::new());
    while at < lines.len() {
        let line = &lines[at];
        into.line = at as u64 + 1;
        if let Some(told) = line.strip_prefix(HEADING) {
            time = zoneless(told);
            let started = &mut into.mark.about.started;
            *started = started.or(time);
            at += 1;
            at += lines[at..].iter().take_while(|line| line.trim().is_empty()).count();
            at = chat.after_command(at);
        } else if let Some(told) = chat.own(at, TOLD) {
            note(&told, into);
            into.leave_out("notice", NOTICE);
            at += 1;
        } else if chat.own(at, TYPED).is_some() {
            let (mut typed, end) = chat.typed(at);
            at = end;
            // Of what stands on lines of their own, the first may be a command.
            while chat.is_spaced && typed.len() > 1 && question_of(&typed[0]).is_none() {
                say(&typed.remove(0), None, time, into);
            }
            if chat.is_spaced
                && let Some(help) = typed.iter().position(|line| line.starts_with(HELP))
            {
                typed.truncate(help.max(1));
            }
            let half = typed.len() / 2;
            if chat.is_spaced
                && question_of(&typed[..half].join("\n")) == Some(&typed[half..].join("\n"))
            {
                typed.truncate(half);
            }
            let typed = typed.join("\n");
            let question = question_of(&typed);
            // aider writes what follows a command once more.
            if is_same(&typed, &answered) {
                into.leave_out("prompt for the editor's model", "the answer before, once more");
            } else if typed.starts_with(HELP) {
                into.leave_out("prompt with the documentation", "text that a program added");
            } else if asked.is_empty() || question.map(str::trim) != Some(asked.trim()) {
                say(&typed, question, time, into);
            }
            asked = question.filter(|it| *it != typed).unwrap_or_default().to_owned();
        } else {
            let is_mine = |at: &usize| {
                !lines[*at].starts_with(HEADING)
                    && chat.own(*at, TOLD).is_none()
                    && chat.own(*at, TYPED).is_none()
            };
            let count = (at..lines.len()).take_while(is_mine).count();
            let said = without_thinking(&lines[at..at + count], into);
            into.agent(said.trim(), Vec::new(), time, false);
            if !said.trim().is_empty() {
                asked.clear();
                answered = said;
            }
            at += count;
        }
    }
}

/// Notes the model that aider names in `Model: NAME with whole edit format`.
fn note(told: &str, into: &mut Gathered) {
    let named = told.strip_prefix("Model: ").or_else(|| told.strip_prefix("Main model: "));
    into.note_model(named.and_then(|rest| rest.split(' ').next()));
}

/// Returns whether two texts have the same words. The architect of aider hands its answer on so.
fn is_same(typed: &str, answered: &str) -> bool {
    !answered.is_empty() && typed.split_whitespace().eq(answered.split_whitespace())
}

/// Adds what the user typed, of which `question` is for the model.
fn say(typed: &str, question: Option<&str>, time: Option<i64>, into: &mut Gathered) {
    match question {
        Some(question) => into.user(question.trim(), time),
        None if typed.trim() == "<blank>" => {}
        None => into.leave_out("command", "a command to the agent itself"),
    }
}

/// Returns the part of what the user typed that asks the model; `None` for a command to aider itself.
fn question_of(typed: &str) -> Option<&str> {
    let (word, rest) = typed.trim().split_once(char::is_whitespace).unwrap_or((typed.trim(), ""));
    match word.starts_with('/') && super::said::is_command(word) {
        true => Some(rest.trim()).filter(|rest| ASKING.contains(&word) && !rest.is_empty()),
        false => Some(typed).filter(|_| word != "<blank>"),
    }
}

fn without_thinking(lines: &[String], into: &mut Gathered) -> String {
    let (mut said, mut until): (String, Option<&str>) = (String::new(), None);
    for line in lines {
        let begun = THINKING.iter().find(|(start, _)| line.starts_with(start));
        match (until, begun) {
            (Some(end), _) if line.starts_with(end) => until = None,
            (Some(_), _) => {}
            (None, Some((_, end))) => {
                into.leave_out("thinking", REASONING);
                until = Some(end);
            }
            (None, None) => {
                said.push_str(line);
                said.push('\n');
            }
        }
    }
    said
}
