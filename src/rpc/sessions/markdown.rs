//! A session as a Markdown file, which reads well and tells which session it is of.
//!
//! Each message has a heading, and each call of a tool a line above its arguments. Where a text has a
//! line like these, the file has it with a backslash before it.

use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::context::render::fence;
use crate::engine::NewMessage;
use crate::ids::{MessageId, SessionId};
use crate::rpc::params::{Name, is_session_id};
use crate::session::message::{Message, Phase, Role, ToolCall};
use crate::session::state::{Revision, SessionState};
use crate::store::session::SessionRow;
use crate::tokens::Counter;
use crate::value::Value;
use crate::visible::visible;

/// The fate of a message that is no part of the conversation.
const GONE: &str = "rolled back";

/// The roles in headings.
const ROLES: [(Role, &str); 4] = [
    (Role::System, "System"),
    (Role::User, "User"),
    (Role::Assistant, "Assistant"),
    (Role::Tool, "Tool"),
];
/// Form of a time.
const TIME: &str = "%Y-%m-%d %H:%M:%S UTC";

/// Writes a session.
pub(super) fn write(row: &SessionRow, log: &[Arc<Message>], state: &SessionState) -> String {
    let project =
        row.named_project().map_or(String::new(), |path| format!(" Project: {}.", one_line(path)));
    let mut text = format!(
        "# {}\n\nConversation {}, begun {}.{project} Messages: {}.\n",
        one_line(&row.name),
        SessionId(row.id),
        time(row.created),
        log.len()
    );
    if let Some(summary) = &state.summary {
        let summary = escaped(summary.text.trim_end());
        text += &format!("\n## Summary of messages no longer in view\n\n{summary}\n");
    }
    for message in log {
        let (heading, body) = (heading(message, state), body(message));
        text += &format!("\n{heading}\n{}{body}", if body.is_empty() { "" } else { "\n" });
    }
    text
}

fn heading(message: &Message, state: &SessionState) -> String {
    let role = ROLES.iter().find(|(role, _)| *role == message.role).map_or("", |(_, name)| name);
    let mut notes = vec![MessageId(message.number).to_string(), time(message.timestamp)];
    notes.extend(message.phase.map(|phase| phase.name().to_owned()));
    notes.extend(fate(message, state).map(str::to_owned));
    notes.extend(message.tool_call_id.as_ref().map(|id| format!("answers {}", one_line(id))));
    format!("## {role} ({})", notes.join(", "))
}

fn body(message: &Message) -> String {
    let content = escaped(message.content.trim_end_matches('\n'));
    let mut parts = match message.role {
        Role::Tool => vec![fenced("text", &content)],
        _ if content.is_empty() => Vec::new(),
        _ => vec![content + "\n"],
    };
    parts.extend(message.tool_calls.iter().map(|call| {
        let arguments = fenced("json", &escaped(&call.arguments));
        format!("Calls `{}` ({}):\n\n{arguments}", one_line(&call.name), one_line(&call.id))
    }));
    parts.join("\n")
}

fn fenced(language: &str, content: &str) -> String {
    let fence = fence(content);
    format!("{fence}{language}\n{content}\n{fence}\n")
}

/// Returns what happened to a message; `None` if it is in view and not pinned.
pub(super) fn fate(message: &Message, state: &SessionState) -> Option<&'static str> {
    let number = message.number;
    let covered = || state.summary.as_ref().is_some_and(|s| s.covers.contains(number));
    match () {
        () if !state.is_active(number) => Some(GONE),
        () if state.pinned.contains(number) => Some("pinned"),
        () if covered() => Some("summarized"),
        () if state.pruned.contains(number) => Some("pruned"),
        () => None,
    }
}

fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| seconds.to_string(), |time| time.strftime(TIME).to_string())
}

fn seconds(time: &str) -> Option<i64> {
    let parsed = || DateTime::strptime(TIME, time).ok()?.to_zoned(TimeZone::UTC).ok();
    time.parse().ok().or_else(|| Some(parsed()?.timestamp().as_second()))
}

/// Returns whether a line is a heading of a message or of a call, apart from backslashes before it.
fn is_mark(line: &str) -> bool {
    let line = line.trim_start_matches('\\').trim_end_matches('\r');
    FileMessage::of(line).is_some() || call(line).is_some()
}

fn escaped(text: &str) -> String {
    let escaped = |line| if is_mark(line) { format!("\\{line}") } else { line.to_owned() };
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

fn unescaped(lines: &[&str]) -> String {
    let plain = |line: &&str| line.strip_prefix('\\').filter(|_| is_mark(line)).map(str::to_owned);
    let plain: Vec<String> =
        lines.iter().map(|line| plain(line).unwrap_or_else(|| (*line).to_owned())).collect();
    plain.join("\n")
}

/// Reads the line above the arguments of a call: its name and its id.
fn call(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("Calls `")?.strip_suffix("):")?.rsplit_once("` (")
}

/// A session read from text.
pub(super) struct Read {
    pub(super) name: String,
    pub(super) project: Option<String>,
    pub(super) messages: Vec<NewMessage>,
    /// State of the view, if the text contains it.
    pub(super) view: Option<Revision>,
}

/// Returns the name for a session that was called `name`; no name has the form of an id.
pub(super) fn no_id(name: String) -> String {
    match is_session_id(&name) {
        true => format!("imported {name}"),
        false => name,
    }
}

/// A session in a file.
pub(super) struct SavedSession {
    /// Number of the session.
    pub(super) session: u64,
    /// Time at which it was created, in Unix seconds.
    pub(super) begun: i64,
    name: String,
    project: Option<String>,
    messages: Vec<FileMessage>,
}

/// A message in a file.
struct FileMessage {
    number: u64,
    role: Role,
    timestamp: i64,
    phase: Option<Phase>,
    is_gone: bool,
    answers: Option<String>,
    content: String,
    calls: Vec<ToolCall>,
}

/// Reads a file that [`write`] wrote, with edits that were made since; `None` for any other file.
pub(super) fn read(text: &str) -> Option<SavedSession> {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.split('\n').collect();
    let told = lines.iter().find_map(|line| line.strip_prefix("Conversation "))?;
    let (session, told) = told.split_once(", begun ")?;
    let (begun, more) = told.split_once('.')?;
    let project = more.strip_prefix(" Project: ");
    let project = project.and_then(|told| Some(told.rsplit_once(". Messages: ")?.0.to_owned()));
    let name = lines.iter().find_map(|line| line.strip_prefix("# "))?.to_owned();
    let begins = |at: &usize| FileMessage::of(lines[*at]).is_some();
    let mut starts: Vec<usize> = (0..lines.len()).filter(begins).collect();
    starts.push(lines.len());
    let message = |place: &[usize]| {
        let mut said = FileMessage::of(lines[place[0]])?;
        said.take(&lines[place[0] + 1..place[1]]);
        Some(said)
    };
    let session = session.parse::<SessionId>().ok()?.0;
    let messages = starts.windows(2).filter_map(message).collect();
    Some(SavedSession { session, begun: seconds(begun)?, name, project, messages })
}

impl SavedSession {
    /// Returns the ids of the messages that the file does not have as the log has them.
    pub(super) fn edited(&self, log: &[Arc<Message>]) -> Vec<MessageId> {
        let mut known = vec![0_u32; log.len()];
        let mut edited = Vec::new();
        for said in &self.messages {
            let at = usize::try_from(said.number).unwrap_or(0).wrapping_sub(1);
            if let Some(count) = known.get_mut(at) {
                *count += 1;
            }
            if log.get(at).is_none_or(|message| !said.is(message)) {
                edited.push(said.number);
            }
        }
        let last = self.messages.iter().map(|said| said.number).max().unwrap_or(0);
        let is_other = |(number, count): &(u64, u32)| *number <= last && *count != 1;
        edited.extend((1..).zip(known).filter(is_other).map(|(number, _)| number));
        edited.sort_unstable();
        edited.dedup();
        MessageId::all(&edited)
    }

    /// Returns the session for a server that does not have it.
    pub(super) fn read(&self, counter: &dyn Counter) -> Result<Read, String> {
        let name = Value::Str(self.name.clone()).decode::<Name>();
        let Name(name) = name.map_err(|error| format!("has a name that {}", error.message))?;
        let messages = self.messages.iter().map(|said| NewMessage {
            role: said.role,
            content: said.content.as_str().into(),
            phase: said.phase,
            tool_calls: said.calls.clone(),
            tool_call_id: said.answers.clone(),
            opaque: None,
            pinned: false,
            tokens: NewMessage::tokens_of(counter, &said.content, &said.calls),
            counted_by: counter.name(),
            timestamp: Some(said.timestamp),
        });
        let (messages, project) = (messages.collect(), self.project.clone());
        let mut state =
            SessionState { base: self.messages.len() as u64, ..SessionState::default() };
        for (number, said) in (1..).zip(&self.messages) {
            if !said.is_gone {
                state.active.insert(number, number);
            }
        }
        let view = Some(Revision { state, ..Revision::default() });
        Ok(Read { name: no_id(name), project, messages, view })
    }
}

impl FileMessage {
    /// Reads a heading.
    fn of(line: &str) -> Option<Self> {
        let (role, notes) = line.strip_prefix("## ")?.strip_suffix(')')?.split_once(" (")?;
        let (role, _) = ROLES.iter().find(|(_, name)| *name == role)?;
        let (notes, answers) = match notes.split_once(", answers ") {
            Some((notes, id)) => (notes, Some(id.to_owned())),
            None => (notes, None),
        };
        let mut notes = notes.split(", ");
        let number = notes.next()?.parse::<MessageId>().ok()?.0;
        let timestamp = seconds(notes.next()?)?;
        let rest: Vec<&str> = notes.collect();
        Some(Self {
            number,
            role: *role,
            timestamp,
            phase: rest.iter().find_map(|note| Phase::from_name(note)),
            is_gone: rest.contains(&GONE),
            answers: answers.filter(|_| *role == Role::Tool),
            content: String::new(),
            calls: Vec::new(),
        })
    }

    /// Reads the lines below the heading. What is not as it was written counts as text.
    fn take(&mut self, lines: &[&str]) {
        let lines = lines.strip_prefix(&[""]).unwrap_or(lines);
        let blank = lines.iter().rev().take_while(|line| line.trim().is_empty()).count();
        let lines = &lines[..lines.len() - blank];
        let is_call = |line: &&str| self.role == Role::Assistant && call(line).is_some();
        let first = lines.iter().position(is_call).unwrap_or(lines.len());
        let (text, mut rest) = lines.split_at(first);
        while let Some((first, below)) = rest.split_first() {
            let read = || {
                let (name, id) = call(first)?;
                let (arguments, rest) = in_fence(below.strip_prefix(&[""])?, "json")?;
                let rest = rest.strip_prefix(&[""]).unwrap_or(rest);
                Some((ToolCall { id: id.into(), name: name.into(), arguments }, rest))
            };
            let Some((made, left)) = read() else { break };
            self.calls.push(made);
            rest = left;
        }
        if !rest.is_empty() {
            self.calls.clear();
            self.content = unescaped(lines);
            return;
        }
        self.content = match in_fence(text, "text") {
            Some((content, [])) if self.role == Role::Tool => content,
            _ => unescaped(text).trim_end_matches('\n').to_owned(),
        };
    }

    /// Returns whether this is a message, apart from blanks at its end.
    fn is(&self, message: &Message) -> bool {
        let answers = message.tool_call_id.as_deref().map(one_line);
        let same = |(said, call): (&ToolCall, &ToolCall)| {
            (&said.id, &said.name) == (&one_line(&call.id), &one_line(&call.name))
                && is_same(&said.arguments, &call.arguments)
        };
        self.role == message.role
            && self.answers == answers
            && is_same(&self.content, &message.content)
            && self.calls.len() == message.tool_calls.len()
            && self.calls.iter().zip(&message.tool_calls).all(same)
    }
}

/// Returns whether a text in a file is that of a log, apart from line ends and blanks at its end.
fn is_same(said: &str, text: &str) -> bool {
    said.trim_end() == text.replace("\r\n", "\n").trim_end()
}

/// Reads a text between fences that the lines begin with. Returns it and the lines after it.
fn in_fence<'a>(lines: &'a [&'a str], language: &str) -> Option<(String, &'a [&'a str])> {
    let (first, rest) = lines.split_first()?;
    let fence = first.strip_suffix(language)?;
    if fence.len() < 3 || !fence.trim_start_matches('`').is_empty() {
        return None;
    }
    let end = rest.iter().position(|line| *line == fence)?;
    Some((unescaped(&rest[..end]), &rest[end + 1..]))
}

#[cfg(test)]
mod tests;
