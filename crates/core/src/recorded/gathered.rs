//! The messages gathered from records. Knows of the records' format only whether records have ids.

use std::collections::{HashMap, HashSet, VecDeque};

use super::hash::hash;
use super::json::{compact, join};
use super::mark::MessageCounts;
use super::report::{ReadingReport, clipped};
use super::rewound::Rewound;
use super::said::{UserParts, is_command, says_stopped, separated, title};
use super::{LARGEST_MESSAGE, Mark, RecordedMessage, RecordedUsage};
use crate::session::message::{Role, ToolCall};

/// Maximum length in bytes of the id of a call, and of the name of a tool.
const LONGEST_ID: usize = 1024;
/// Maximum number of calls that wait for their results, and of results that wait for their calls. Each
/// record may look at all of them.
pub(super) const MOST_WAITING: usize = 256;
/// Text in place of a result that the recording does not have.
const NO_RESULT: &str = "[no result was recorded]";

/// A call, its id in the recording, and its result, if there is one.
pub(super) type CalledAndAnswered = (ToolCall, String, Option<String>);

/// The messages and the report of a reading, and the state from which another reading can continue.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) mark: Mark,
    pub(super) report: ReadingReport,
    /// Number of the line that is being read.
    pub(super) line: u64,
    /// Complete messages that have not been returned yet.
    pub(super) ready: VecDeque<RecordedMessage>,
    /// Usage of what was read, until it is taken.
    pub(super) usages: Vec<RecordedUsage>,
    /// The last message, to which later records may add.
    pub(super) last: Option<RecordedMessage>,
    /// Messages that the user sent while calls waited for their results. The results come first.
    pub(super) held: Vec<RecordedMessage>,
    /// Results whose calls have not come yet, each with the call's id and the number of its line.
    early: Vec<(String, u64, RecordedMessage)>,
    /// Number of messages with each hash so far, in a reading from the beginning; `None` in a
    /// reading that continues.
    pub(super) equal: Option<HashMap<u64, u64>>,
    /// True if the recording was read before and is read from its beginning again.
    pub(super) is_anew: bool,
    /// Messages that the recording had when it was last read.
    pub(super) before: MessageCounts,
    /// Number of messages that earlier readings returned.
    pub(super) returned: u64,
    /// Number of messages of the recording up to here.
    pub(super) position: u64,
    /// True if a message differs before the last turn of the earlier reading.
    pub(super) is_edited: bool,
    /// First and last number of the messages that earlier readings returned and that are no longer
    /// part of the session.
    pub(super) gone: Option<(u64, u64)>,
    /// True once such messages were told.
    pub(super) is_telling_anew: bool,
    /// Records before which the user went back.
    pub(super) rewound: Rewound,
}

impl Gathered {
    pub(super) fn new(mark: Mark) -> Self {
        let is_anew = mark.offset == 0 && !mark.seen.is_empty();
        let equal = (mark.offset == 0).then(HashMap::new);
        let (before, returned) = (mark.counts, mark.messages);
        let position = if mark.offset == 0 { 0 } else { mark.counts.live };
        Self { mark, equal, is_anew, before, returned, position, ..Self::default() }
    }

    /// Counts the current line, or something in it, as left out. `kind` says what it is.
    pub(super) fn leave_out(&mut self, kind: &str, reason: &'static str) {
        self.report.note(kind, reason, self.line);
    }

    /// Returns the time of a record in Unix seconds; `None` if there is none or it cannot be
    /// parsed. The first time becomes the start of the recording.
    pub(super) fn time(&mut self, written: Option<&str>) -> Option<i64> {
        let time = super::time::seconds(written?);
        self.mark.about.started = self.mark.about.started.or(time);
        time
    }

    /// Returns in Unix seconds the time of a record that counts milliseconds, as [`Self::time`].
    pub(super) fn milliseconds(&mut self, written: Option<f64>) -> Option<i64> {
        let time = written.map(|it| (it / 1000.0) as i64)?;
        self.mark.about.started = self.mark.about.started.or(Some(time));
        Some(time)
    }

    /// Notes the model that answers from now on.
    pub(super) fn note_model(&mut self, named: Option<&str>) {
        if let Some(name) = named.filter(|name| !name.trim().is_empty()) {
            self.mark.about.model = Some(clipped(name));
        }
    }

    /// Notes the usage of a turn, or of a request. Several records may tell of the same request,
    /// `goes_on` then; each tells more than the one before.
    pub(super) fn spend(&mut self, usage: RecordedUsage, goes_on: bool) {
        match self.usages.last_mut() {
            Some(last) if goes_on => *last = usage,
            None if goes_on => {}
            _ => self.usages.push(usage),
        }
    }

    /// Sets a fact about the recording, such as its folder, unless the fact is already known.
    pub(super) fn note_once(known: &mut Option<String>, found: Option<&str>) {
        if known.is_none() {
            *known = found.filter(|text| !text.trim().is_empty()).map(str::to_owned);
        }
    }

    /// Sets a fact that may change within the recording, such as its branch.
    pub(super) fn note_last(known: &mut Option<String>, found: Option<&str>) {
        if let Some(text) = found.filter(|text| !text.trim().is_empty() && *text != "HEAD") {
            *known = Some(clipped(text));
        }
    }

    /// Returns whether no message has been read yet, now or in an earlier reading.
    pub(super) fn is_empty(&self) -> bool {
        self.mark.messages == 0 && self.last.is_none()
    }

    /// Adds what the user said in a turn. What a program put into the turn is left out. What a
    /// subagent was asked is the word of the agent that asked.
    pub(super) fn user(&mut self, content: &str, time: Option<i64>) {
        let UserParts { by_user, summary, by_program, name, has_other } = separated(content);
        if !summary.is_empty() && self.is_empty() {
            return self.agent(&summary, Vec::new(), time, false);
        }
        if has_other {
            self.leave_out("text in the user's turn", "text that a program added");
        }
        if !by_program.is_empty() {
            Self::note_once(&mut self.mark.about.title, name.as_deref());
            return self.hold(message(Role::Assistant, by_program, time));
        }
        if by_user.trim().is_empty() {
            self.mark.is_stopped |= says_stopped(content);
            return;
        }
        self.mark.is_stopped = false;
        let known = self.mark.about.question.as_deref();
        if known.is_none_or(is_command)
            && let Some(title) = title(&by_user)
        {
            self.mark.about.question = Some(clipped(title));
        }
        let role = if self.mark.is_subagent { Role::Assistant } else { Role::User };
        self.hold(message(role, by_user, time));
    }

    /// Adds a message once no call waits for its result.
    fn hold(&mut self, message: RecordedMessage) {
        if self.waits_for_nobody() {
            self.end_calls(message.timestamp);
            self.push(message);
        } else {
            self.held.push(message);
        }
    }

    /// Adds text and calls of the agent: to the last message if `goes_on` is true and that message
    /// is the agent's, else as a new message.
    pub(super) fn agent(
        &mut self,
        content: &str,
        calls: Vec<ToolCall>,
        time: Option<i64>,
        goes_on: bool,
    ) {
        if content.trim().is_empty() && calls.is_empty() {
            return;
        }
        self.mark.is_stopped = false;
        if !calls.is_empty() {
            self.mark.called = time;
        }
        if !goes_on && (self.waits_for_nobody() || !self.held.is_empty()) {
            let waiting = |told: &str| !calls.iter().any(|call| call.id == told);
            self.end_calls_that(waiting, time);
        }
        match &mut self.last {
            Some(last) if goes_on && last.role == Role::Assistant => {
                join(&mut last.content, content);
                last.tool_calls.extend(calls);
            }
            _ => {
                let mut new = message(Role::Assistant, String::new(), time);
                join(&mut new.content, content);
                self.push(RecordedMessage { tool_calls: calls, ..new });
            }
        }
        if self.mark.open.len() > MOST_WAITING {
            let oldest = self.mark.open.len() - MOST_WAITING;
            let oldest = self.mark.open.iter().take(oldest).map(|(_, told)| told.clone());
            let oldest: HashSet<String> = oldest.collect();
            self.end_calls_that(|told| oldest.contains(told), time);
        }
        // A result may come before its call.
        let line = self.line;
        for (id, own, result) in std::mem::take(&mut self.early) {
            self.line = own;
            self.result(&id, result.content, result.timestamp);
        }
        self.line = line;
    }

    /// Returns a call, and marks the call as waiting for its result. If another call has the same
    /// id, adds the number of the line to the id. Replaces an id that is empty or
    /// too long.
    pub(super) fn call(&mut self, id: &str, name: &str, arguments: String) -> ToolCall {
        let mut told = match (1..=LONGEST_ID).contains(&id.len()) {
            true => id.to_owned(),
            false => format!("line-{}", self.line),
        };
        let (own, mut number) = (format!("{told}-{}", self.line), 0);
        while !self.mark.calls.insert(hash(&[&told])) {
            let again = if number == 0 { String::new() } else { format!("-{number}") };
            told = format!("{own}{again}");
            // Many calls may have the same id, and names that were made for others.
            number = 2 * number.max(self.mark.calls.len());
        }
        self.mark.open.push((id.to_owned(), told.clone()));
        let name = name[..name.floor_char_boundary(LONGEST_ID)].to_owned();
        ToolCall { id: told, name, arguments: compact(arguments) }
    }

    /// Adds what the agent said, its calls, and their results.
    pub(super) fn answer(&mut self, said: &str, calls: Vec<CalledAndAnswered>, time: Option<i64>) {
        self.agent(said, calls.iter().map(|(call, ..)| call.clone()).collect(), time, false);
        for (call, id, result) in calls {
            match result {
                Some(result) => self.result(&id, result, time),
                None => self.end_call(&call.id, time),
            }
        }
    }

    /// Adds the result of the call with this id. If no such call waits, nor comes next, keeps the
    /// result on its own, and reports it.
    pub(super) fn result(&mut self, id: &str, content: String, time: Option<i64>) {
        let waiting = self.mark.open.iter().position(|(recorded, _)| recorded == id);
        let told = match waiting {
            Some(at) => self.mark.open.remove(at).1,
            None if self.has_called(id) => {
                return self.leave_out("tool result", "its call has a result already");
            }
            None => {
                if self.early.len() >= MOST_WAITING {
                    self.tell_early();
                }
                let result = message(Role::Tool, content, time);
                return self.early.push((id.to_owned(), self.line, result));
            }
        };
        let result = message(Role::Tool, content, time);
        self.push(RecordedMessage { tool_call_id: Some(told), ..result });
        if self.waits_for_nobody() {
            self.end_calls(time);
        }
    }

    /// Returns whether the call with this id waits for its result.
    pub(super) fn waits_for(&self, id: &str) -> bool {
        self.mark.open.iter().any(|(recorded, _)| recorded == id)
    }

    /// Returns whether there is a call with this id, with or without its result.
    pub(super) fn has_called(&self, id: &str) -> bool {
        self.mark.calls.contains(&hash(&[id]))
    }

    /// Returns whether a call waits for its result.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waits_for_nobody()
    }

    /// Returns whether the calls without a result are only those that the recording gives no id, so
    /// that no result can come.
    fn waits_for_nobody(&self) -> bool {
        self.mark.open.iter().all(|(recorded, _)| recorded.is_empty())
    }

    /// Adds what the user said while calls waited for their results.
    fn tell_held(&mut self) {
        for message in std::mem::take(&mut self.held) {
            self.push(message);
        }
    }

    /// Adds a placeholder result to every call that has none although the conversation has
    /// continued.
    pub(super) fn end_calls(&mut self, time: Option<i64>) {
        self.end_calls_that(|_| true, time);
    }

    /// Adds a placeholder result to the call that was told with this id.
    pub(super) fn end_call(&mut self, told: &str, time: Option<i64>) {
        self.end_calls_that(|other| other == told, time);
    }

    fn end_calls_that(&mut self, is_over: impl Fn(&str) -> bool, time: Option<i64>) {
        let open = std::mem::take(&mut self.mark.open);
        let (over, open) = open.into_iter().partition::<Vec<_>, _>(|(_, told)| is_over(told));
        self.mark.open = open;
        for (_, told) in over {
            self.report.note("tool call", "its result is not in the recording", self.line);
            let result = message(Role::Tool, NO_RESULT.to_owned(), time);
            self.push(RecordedMessage { tool_call_id: Some(told), ..result });
        }
        self.tell_held();
    }

    /// Ends a part of the recording. What the user said while calls waited comes after them.
    pub(super) fn pause(&mut self) {
        self.tell_early();
        if !self.held.is_empty() || self.waits_for_nobody() {
            self.end_calls(None);
        }
        self.finish();
    }

    /// Adds text to the last message if that message is a tool's result. Returns whether it is one.
    pub(super) fn add_to_result(&mut self, text: &str) -> bool {
        match &mut self.last {
            Some(last) if last.role == Role::Tool => {
                join(&mut last.content, text);
                true
            }
            _ => false,
        }
    }

    /// Adds a message, which completes the message before it.
    fn push(&mut self, message: RecordedMessage) {
        let has_called = |id: &String| {
            let told = |(recorded, told): &(String, String)| {
                recorded == id && message.tool_calls.iter().any(|call| call.id == *told)
            };
            self.mark.open.iter().any(told)
        };
        let is_next = || self.early.iter().any(|(id, ..)| has_called(id));
        if message.role != Role::Tool && !is_next() {
            self.tell_early();
        }
        self.finish();
        self.last = Some(message);
    }

    /// Adds the results whose calls did not come.
    fn tell_early(&mut self) {
        for (id, line, result) in std::mem::take(&mut self.early) {
            let reason = "its call is not in the recording; the result is kept on its own";
            self.report.note("tool result", reason, line);
            self.finish();
            self.last = Some(RecordedMessage { tool_call_id: Some(id), ..result });
        }
    }

    /// Returns whether no call waits for its result, no message waits to be returned, and the last
    /// message is not an answer of the agent.
    pub(super) fn is_between_units(&self) -> bool {
        let goes_on = self.last.as_ref().is_some_and(|last| last.role == Role::Assistant);
        self.ready.is_empty() && self.mark.open.is_empty() && self.early.is_empty() && !goes_on
    }

    /// Completes the last message, if there is one. Drops it if an earlier reading returned it.
    pub(super) fn finish(&mut self) {
        let Some(mut last) = self.last.take() else { return };
        if last.content.len() > LARGEST_MESSAGE {
            last.content.truncate(last.content.floor_char_boundary(LARGEST_MESSAGE));
            last.content.push_str("\n[cut off here]");
            self.report.note(last.role.name(), "longer than the limit; cut off", self.line);
        }
        let by_content = self.mark.format.is_some_and(|format| format != super::Format::ClaudeCode);
        if by_content && !self.is_wanted(&last) {
            return;
        }
        self.mark.messages += 1;
        self.ready.push_back(last);
    }
}

fn message(role: Role, content: String, timestamp: Option<i64>) -> RecordedMessage {
    RecordedMessage { role, content, tool_calls: Vec::new(), tool_call_id: None, timestamp }
}
