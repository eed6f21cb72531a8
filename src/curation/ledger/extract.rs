//! Reads messages line by line into the ledger.
//!
//! Texts of the user and the model are read as sentences. From outputs of tools and quoted code,
//! only lines with a clear form are taken, and only a limited number of paths, errors and numbers.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde_json::Value;

use super::book::Book;
use super::phrases::phrases;
use super::sentence::sentences;
use super::statement::{self, Place};
use super::{Kind, Voice, command, number, path};
use crate::retrieval::words::ends;
use crate::session::message::{Message, Role, ToolCall};

/// Maximum number of paths taken from one tool output, or from each end of a long one: a listing of
/// a thousand files says little about each file. The same maximum holds for the numbers and for the
/// errors of an output, and for the commands or paths in an argument of a tool call.
const OF_AN_OUTPUT: usize = 20;
/// Maximum length of a line, in bytes. Longer lines are data, not text.
const LONGEST_LINE: usize = 2000;
/// Maximum number of bytes read from one output of a tool, half of them from each end.
const READ_OF_AN_OUTPUT: usize = 32 * 1024;
/// Maximum length of an argument that is no command, in bytes. Longer ones are contents of files.
const LONGEST_ARGUMENT: usize = 400;

/// Reads a message into the ledger.
pub(super) fn message(message: &Message, book: &mut Book) {
    let is_notice = message.is_notice();
    let voice = match message.role {
        _ if is_notice => Voice::Output,
        Role::System | Role::User => Voice::Person,
        Role::Assistant => Voice::Model,
        Role::Tool => Voice::Output,
    };
    let place =
        Place { origin: message.number, voice, asked: message.role == Role::User && !is_notice };
    if voice == Voice::Output {
        for part in ends(&message.content, READ_OF_AN_OUTPUT) {
            output(part.lines(), place, book);
        }
    } else {
        prose(&message.content, place, book);
    }
    message.tool_calls.iter().for_each(|call| arguments(call, place, book));
}

fn prose(text: &str, place: Place, book: &mut Book) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = fence(line) {
            let block: Vec<&str> =
                lines.by_ref().take_while(|line| fence(line).is_none()).collect();
            fenced(language, &block, place, book);
        } else if let Some(command) = command::after_prompt(line) {
            take_command(command, place, book);
        } else if line.len() <= LONGEST_LINE {
            sentences(line).for_each(|sentence| spoken(sentence, place, book));
        }
    }
}

/// Returns the language that a fence names, which may be empty; `None` if the line is no fence.
fn fence(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("```").map(str::trim)
}

fn fenced(language: &str, block: &[&str], place: Place, book: &mut Book) {
    let language = language.split([' ', ',', '{']).next().unwrap_or("");
    let shell = ["sh", "bash", "shell", "zsh", "console", "fish", "shell-session", "terminal"];
    let prompted = block.iter().any(|line| command::after_prompt(line).is_some());
    if shell.contains(&language) || prompted {
        command::in_shell(block).for_each(|command| take_command(command, place, book));
    }
    let seen = Place { voice: Voice::Output, asked: false, ..place };
    output(block.iter().copied(), seen, book);
}

/// Reads a sentence of a person or of the model.
fn spoken(sentence: &str, place: Place, book: &mut Book) {
    statement::read(sentence, place, book);
    for command in command::in_sentence(sentence) {
        book.add(place.entry(Kind::Command, &command, Vec::new()));
    }
    paths(sentence, place, usize::MAX, book);
    statement::renamed(sentence, book);
    if ["error:", "error[", "Error:", "panicked at"].iter().any(|mark| sentence.contains(mark)) {
        book.add(place.entry(Kind::Error, sentence, Vec::new()));
    }
}

fn take_command(command: &str, place: Place, book: &mut Book) {
    if command.trim().is_empty() {
        return;
    }
    book.add(place.entry(Kind::Command, command, Vec::new()));
    paths(command, place, usize::MAX, book);
    statement::renamed(command, book);
}

/// Takes the paths of a line, up to `most`. Returns their number.
fn paths(line: &str, place: Place, most: usize, book: &mut Book) -> usize {
    let mut taken = 0;
    for path in line.split_whitespace().filter_map(path::path).take(most) {
        book.add(place.entry(Kind::Path, path, Vec::new()));
        taken += 1;
    }
    taken
}

fn output<'a>(lines: impl Iterator<Item = &'a str>, place: Place, book: &mut Book) {
    let (mut paths_left, mut errors_left, mut numbers_left) =
        (OF_AN_OUTPUT, OF_AN_OUTPUT, OF_AN_OUTPUT);
    for line in lines.filter(|line| line.len() <= LONGEST_LINE) {
        if paths_left > 0 && line.contains(['.', '/']) {
            paths_left -= paths(line, place, paths_left, book);
        }
        if errors_left > 0 && reports_failure(line) {
            book.add(place.entry(Kind::Error, line, Vec::new()));
            errors_left -= 1;
        } else if numbers_left > 0
            && let Some(entry) = measured(line, place)
        {
            book.add(entry);
            numbers_left -= 1;
        }
        if ["TODO", "FIXME"].iter().any(|mark| line.contains(mark)) {
            statement::read(line.trim(), place, book);
        }
    }
}

static FAILURES: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(phrases::<Vec<_>>("failure")).ok());

/// Returns whether a line of an output reports a failure.
fn reports_failure(line: &str) -> bool {
    const DENIALS: &[&str] =
        &[" 0 failed", " 0 errors", "no errors", "errors: 0", "failures: 0", "error: 0"];
    let reports = FAILURES.as_ref().is_some_and(|marks| marks.is_match(line));
    reports && !DENIALS.iter().any(|denial| line.contains(denial))
}

/// Returns an entry for the first number in a short line such as `build time: 34 s`; `None` if the
/// number has no unit or the line does not say what it measures.
fn measured(line: &str, place: Place) -> Option<super::Entry> {
    const LONGEST: usize = 80;
    if line.len() > LONGEST || !line.contains([':', '=']) {
        return None;
    }
    let mut values = number::quantities(line);
    let united = |c: char| c.is_alphabetic() || c == '%' || c == '$';
    let value = values.drain(..).next().filter(|value| value.amount.contains(united))?;
    let value = super::Quantity { observed: true, ..value };
    (!value.subject.is_empty()).then(|| place.entry(Kind::Number, "", vec![value]))
}

/// Reads the command and the paths from a tool call.
fn arguments(call: &ToolCall, place: Place, book: &mut Book) {
    let Ok(value) = serde_json::from_str::<Value>(&call.arguments) else {
        if is_shell(&call.name) && call.arguments.len() <= LONGEST_ARGUMENT {
            take_command(&call.arguments, place, book);
        }
        return;
    };
    match &value {
        Value::Object(fields) => {
            for (name, value) in fields {
                argument(call, name, value, place, book);
            }
        }
        Value::String(text) if is_shell(&call.name) => take_command(text, place, book),
        _ => {}
    }
}

fn argument(call: &ToolCall, name: &str, value: &Value, place: Place, book: &mut Book) {
    const COMMANDS: &[&str] = &["command", "cmd", "script", "commands", "args", "argv", "input"];
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            parts.join(" ")
        }
        _ => return,
    };
    let command = COMMANDS[..2].contains(&name) || is_shell(&call.name) && COMMANDS.contains(&name);
    if command {
        for line in command::beginnings(text.lines()).take(OF_AN_OUTPUT) {
            take_command(line.trim(), place, book);
        }
    } else if text.len() <= LONGEST_ARGUMENT {
        if is_shell(&call.name) {
            // Some recordings show a command between backticks, after a description.
            text.split('`')
                .skip(1)
                .step_by(2)
                .for_each(|command| take_command(command, place, book));
        }
        let named = ["path", "file", "dir", "uri"].iter().any(|part| name.contains(part));
        let whole = named && !text.contains(char::is_whitespace) && text.contains(['/', '.']);
        match whole {
            true => book.add(place.entry(Kind::Path, &text, Vec::new())),
            false => drop(paths(&text, place, OF_AN_OUTPUT, book)),
        }
    }
}

fn is_shell(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["shell", "bash", "exec", "run", "command", "terminal"].iter().any(|name| tool.contains(name))
}
