//! Reads messages into the ledger. Of outputs, only a limited number of paths is taken.

use serde_json::Value;

use super::{Book, Entry, Kind, Voice, command, path};
use crate::retrieval::words::ends;
use crate::session::message::{Message, Role, ToolCall};

/// Maximum number of paths taken from one tool output, or from each end of a long one: a listing of
/// a thousand files says little about each file. The same maximum holds for the commands or paths in
/// an argument of a tool call.
const OF_AN_OUTPUT: usize = 20;
/// Maximum length of a line, in bytes. Longer lines are data, not text.
const LONGEST_LINE: usize = 2000;
/// Maximum number of bytes read from one output of a tool, half of them from each end.
const READ_OF_AN_OUTPUT: usize = 32 * 1024;
/// Maximum length of an argument that is no command, in bytes. Longer ones are contents of files.
const LONGEST_ARGUMENT: usize = 400;

/// Maximum number of bytes of the user's words in a message; of a longer one, half is kept from each
/// end. It is mostly a log or a file.
const LONGEST_SAID: usize = 2000;

/// Where an entry is from.
#[derive(Clone, Copy)]
struct Place {
    origin: u64,
    turn: u64,
    voice: Voice,
}

impl Place {
    fn entry(self, kind: Kind, text: &str) -> Entry {
        let Self { origin, turn, voice } = self;
        Entry { kind, text: text.trim().to_owned(), origin, turn, times: 1, voice }
    }
}

/// Reads a message into the ledger.
pub(super) fn message(message: &Message, book: &mut Book) {
    let is_notice = message.is_notice();
    let voice = match message.role {
        _ if is_notice => Voice::Output,
        Role::System | Role::User => Voice::Person,
        Role::Assistant => Voice::Model,
        Role::Tool => Voice::Output,
    };
    let is_said = message.role == Role::User && !is_notice;
    book.turns += u64::from(is_said);
    let place = Place { origin: message.number, turn: book.turns, voice };
    if is_said && !message.content.trim().is_empty() {
        let [beginning, end] = ends(message.content.trim(), LONGEST_SAID);
        let gap = if end.is_empty() { "" } else { "\n[…]\n" };
        book.add(place.entry(Kind::Said, &format!("{beginning}{gap}{end}")));
    }
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
            for command in command::in_backticks(line) {
                take_command(command, place, book);
            }
            paths(line, place, usize::MAX, book);
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
    let seen = Place { voice: Voice::Output, ..place };
    output(block.iter().copied(), seen, book);
}

fn take_command(command: &str, place: Place, book: &mut Book) {
    if command.trim().is_empty() {
        return;
    }
    book.add(place.entry(Kind::Command, command));
    paths(command, place, usize::MAX, book);
}

/// Takes the paths of a line, up to `most`. Returns their number.
fn paths(line: &str, place: Place, most: usize, book: &mut Book) -> usize {
    let mut taken = 0;
    for path in line.split_whitespace().filter_map(path::path).take(most) {
        book.add(place.entry(Kind::Path, path));
        taken += 1;
    }
    taken
}

fn output<'a>(lines: impl Iterator<Item = &'a str>, place: Place, book: &mut Book) {
    let mut left = OF_AN_OUTPUT;
    for line in lines.filter(|line| line.len() <= LONGEST_LINE && line.contains(['.', '/'])) {
        left -= paths(line, place, left, book);
    }
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
            true => book.add(place.entry(Kind::Path, &text)),
            false => drop(paths(&text, place, OF_AN_OUTPUT, book)),
        }
    }
}

fn is_shell(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["shell", "bash", "exec", "run", "command", "terminal"].iter().any(|name| tool.contains(name))
}
