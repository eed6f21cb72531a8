//! aider's history, `.aider.chat.history.md` in the root of a repository: Markdown with all chats of
//! that repository, each after a heading with its time.
//!
//! What the user typed stands after `#### `, what aider said after `> `, and what the model said as
//! it is. aider ends the lines of the first two with two spaces, by which they differ from headings
//! and quotations of the model, unless an editor removed those spaces, be it only at the ends of
//! paragraphs.

use super::gathered::Gathered;
use super::report::{NOTICE, REASONING};
use super::time::zoneless;

/// Beginning of the heading of a chat.
pub(super) const HEADING: &str = "# aider chat started at ";
const TYPED: &str = "####";
const TOLD: &str = ">";
/// End of the lines that aider itself writes.
const END: &str = "  ";
/// Beginnings and ends of a model's reasoning.
const THINKING: [(&str, &str); 2] =
    [("<thinking-content-", "</thinking-content-"), ("► **THINKING**", "► **ANSWER**")];
/// Commands with a question for the model.
const ASKING: &[&str] = &["/ask", "/code", "/architect", "/help", "/context", "/ok"];

/// Splits a history into its chats, each with the time in its heading. The second of two with the
/// same time is called `TIME (2)`.
#[must_use]
pub fn chats(text: &str) -> Vec<(String, String)> {
    let mut chats: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(time) = line.strip_prefix(HEADING) {
            let same = chats.iter().filter(|(name, _)| name.starts_with(time.trim())).count();
            let again = if same > 0 { format!(" ({})", same + 1) } else { String::new() };
            chats.push((format!("{}{again}", time.trim()), String::new()));
        }
        if let Some((_, chat)) = chats.last_mut() {
            chat.push_str(line);
        }
    }
    chats
}

/// Adds what the lines say to `into`.
pub(super) fn read(lines: &[String], into: &mut Gathered) {
    // An editor that removes spaces at the ends of paragraphs removes all of them.
    let is_kept = |mark: &str| {
        let next = lines.iter().skip(1).map(String::as_str).chain([""]);
        let mut ends = lines
            .iter()
            .zip(next)
            .filter(|(line, next)| line.starts_with(mark) && !next.starts_with(mark));
        ends.any(|(line, _)| line.ends_with(END))
    };
    let (typed_is_kept, told_is_kept) = (is_kept(TYPED), is_kept(TOLD));
    let own = |line: &str, mark: &str| {
        let rest = line.strip_prefix(mark)?;
        let rest = rest.strip_prefix(' ').or(rest.is_empty().then_some(rest))?;
        let is_kept = if mark == TYPED { typed_is_kept } else { told_is_kept };
        (!is_kept || line.ends_with(END)).then(|| rest.trim_end().to_owned())
    };
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
        } else if let Some(told) = own(line, TOLD) {
            note(&told, into);
            into.leave_out("notice", NOTICE);
            at += 1;
        } else if own(line, TYPED).is_some() {
            let typed: Vec<String> =
                lines[at..].iter().map_while(|line| own(line, TYPED)).collect();
            at += typed.len();
            let typed = typed.join("\n");
            let question = question_of(&typed);
            // aider writes what follows a command once more.
            if is_same(&typed, &answered) {
                into.leave_out("prompt for the editor's model", "the answer before, once more");
            } else if asked.is_empty() || question != Some(&asked) {
                say(&typed, question, time, into);
            }
            asked = question.filter(|it| *it != typed).unwrap_or_default().to_owned();
        } else {
            let mine = |line: &&String| {
                !line.starts_with(HEADING)
                    && own(line, TOLD).is_none()
                    && own(line, TYPED).is_none()
            };
            let count = lines[at..].iter().take_while(mine).count();
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
        Some(question) => into.user(question, time),
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
