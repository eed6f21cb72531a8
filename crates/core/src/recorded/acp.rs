//! Sessions over the Agent Client Protocol, as `contexture acp` records them: JSON lines with the
//! prompts and the agent's updates, unchanged.

use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::acp_blocks::{AcpBlock, AcpToolContent, prompt_text, result_text};
use super::gathered::{Gathered, MOST_WAITING};
use super::report::NO_PART;
use super::{LARGEST_MESSAGE, RecordedUsage};

/// Currency of all costs; those in others are not comparable.
const DOLLARS: &str = "USD";
/// Number of parts into which a dollar is divided, so that costs can be compared as
/// integers.
const FRACTIONS: f64 = 1e9;

/// A line. Which members a line has depends on what it records.
#[derive(Deserialize)]
struct Record<'a> {
    time: Option<i64>,
    acp: Option<Head>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    update: Option<&'a RawValue>,
    stop: Option<String>,
    usage: Option<TurnUsage>,
    dropped: Option<u64>,
}

/// Id that the agent gave the session, and the folder in which the agent worked.
#[derive(Deserialize)]
struct Head {
    session: String,
    cwd: String,
}

/// The tokens of a turn by kind. No kind includes another.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct TurnUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    thought_tokens: Option<u64>,
    cached_read_tokens: Option<u64>,
    cached_write_tokens: Option<u64>,
}

/// An update of the agent. Which members an update has depends on its kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(default)]
    session_update: String,
    message_id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_call_id: Option<String>,
    title: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    #[serde(borrow)]
    raw_input: Option<&'a RawValue>,
    raw_output: Option<Json>,
    used: Option<u64>,
    size: Option<u64>,
    cost: Option<Cost>,
}

#[derive(Deserialize)]
struct Cost {
    amount: f64,
    #[serde(default)]
    currency: Option<String>,
}

/// A turn that is being read, with the agent's text and calls so far.
#[derive(Default)]
pub(super) struct AcpTurn {
    said: String,
    /// Id of the message that the agent is sending.
    message: Option<String>,
    /// Time of the first piece of `said`, or of the last update of a call, whichever is later, in
    /// Unix seconds.
    time: Option<i64>,
    /// Calls without a result.
    calls: Vec<Begun>,
    /// The agent's window as reported last in this turn: its tokens, its size in tokens, and the
    /// cost of the session so far.
    window: Option<(u64, u64, Option<f64>)>,
}

/// A call without a result.
#[derive(Default)]
struct Begun {
    id: String,
    title: String,
    kind: String,
    input: Option<String>,
    result: String,
    /// True if the call has been added to the messages.
    is_added: bool,
}

impl AcpTurn {
    /// Returns whether no text of the agent is still to be added, and no call waits for its result.
    pub(super) fn is_over(&self) -> bool {
        self.said.is_empty() && self.calls.is_empty()
    }

    /// Adds what the line `text` says to `into`. Fails if the line is malformed.
    pub(super) fn record(&mut self, text: &str, into: &mut Gathered) -> serde_json::Result<()> {
        let record: Record<'_> = serde_json::from_str(text)?;
        let time = record.time;
        into.mark.about.started = into.mark.about.started.or(time);
        if record.dropped.is_some() {
            into.leave_out("messages", "they came too quickly to be recorded");
        }
        match record {
            Record { acp: Some(head), .. } => {
                Gathered::note_once(&mut into.mark.about.id, Some(&head.session));
                Gathered::note_once(&mut into.mark.about.project, Some(&head.cwd));
            }
            Record { prompt: Some(prompt), .. } => {
                let blocks: Vec<AcpBlock> = serde_json::from_str(prompt.get())?;
                self.finish(into);
                into.end_calls(time);
                into.user(&prompt_text(&blocks), time);
            }
            Record { update: Some(update), .. } => {
                return self.update(serde_json::from_str(update.get())?, time, into);
            }
            Record { stop: Some(_), usage, .. } => {
                self.finish(into);
                into.end_calls(time);
                self.note_usage(usage, time, into);
            }
            Record { dropped: Some(_), .. } => {}
            _ => into.leave_out("record", "an unknown kind of record"),
        }
        Ok(())
    }

    /// Adds the agent's message so far, with its calls, which then wait for their results.
    pub(super) fn finish(&mut self, into: &mut Gathered) {
        self.flush(into);
        for call in &mut self.calls {
            call.give(self.time, into);
        }
    }

    fn update(
        &mut self,
        update: Update<'_>,
        time: Option<i64>,
        into: &mut Gathered,
    ) -> serde_json::Result<()> {
        match &*update.session_update {
            "agent_message_chunk" => {
                if update.message_id != self.message {
                    self.flush(into);
                    self.message.clone_from(&update.message_id);
                }
                let block: Option<AcpBlock> =
                    update.content.map(|raw| serde_json::from_str(raw.get())).transpose()?;
                self.time = if self.said.is_empty() { time } else { self.time };
                if let Some(block) = block.filter(|_| self.said.len() <= LARGEST_MESSAGE) {
                    self.said.push_str(&block.shown());
                }
            }
            "tool_call" | "tool_call_update" => {
                self.flush(into);
                self.time = time;
                self.call(update, time, into)?;
            }
            "usage_update" => {
                let in_dollars =
                    |cost: &Cost| cost.currency.as_deref().is_none_or(|it| it == DOLLARS);
                let cost = update.cost.filter(in_dollars).map(|cost| cost.amount);
                self.window = Some((update.used.unwrap_or(0), update.size.unwrap_or(0), cost));
            }
            kind => into.leave_out(kind, NO_PART),
        }
        Ok(())
    }

    /// Adds the text in `said` as a message of the agent, unless it is blank, and empties `said`.
    fn flush(&mut self, into: &mut Gathered) {
        into.agent(&std::mem::take(&mut self.said), Vec::new(), self.time, false);
    }

    fn call(
        &mut self,
        update: Update<'_>,
        time: Option<i64>,
        into: &mut Gathered,
    ) -> serde_json::Result<()> {
        let id = update.tool_call_id.unwrap_or_default();
        let known = self.calls.iter().position(|call| call.id == id);
        if known.is_none() && self.calls.len() >= MOST_WAITING {
            into.leave_out("tool call", "too many calls wait for their results");
            return Ok(());
        }
        let at = known.unwrap_or_else(|| {
            let is_added = into.mark.open.iter().any(|(open, _)| *open == id);
            self.calls.push(Begun { id, is_added, ..Begun::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        call.title = update.title.unwrap_or(std::mem::take(&mut call.title));
        call.kind = update.kind.unwrap_or(std::mem::take(&mut call.kind));
        call.input = update.raw_input.map(|raw| raw.get().to_owned()).or(call.input.take());
        let content: Option<Vec<AcpToolContent>> =
            update.content.map(|raw| serde_json::from_str(raw.get())).transpose()?;
        let result = result_text(content.as_deref(), update.raw_output.as_ref());
        call.result = result.unwrap_or(std::mem::take(&mut call.result));
        let is_failed = update.status.as_deref() == Some("failed");
        if is_failed || update.status.as_deref() == Some("completed") {
            let mut call = self.calls.remove(at);
            call.give(time, into);
            let failure = if is_failed { "[failed]\n" } else { "" };
            into.result(&call.id, format!("{failure}{}", call.result), time);
        }
        Ok(())
    }

    /// Records the usage of a turn. Since agents report the cost of the whole session, the cost
    /// of the turn is the difference from the last report.
    fn note_usage(&mut self, usage: Option<TurnUsage>, time: Option<i64>, into: &mut Gathered) {
        let window = self.window.take();
        if usage.is_none() && window.is_none() {
            return;
        }
        let usage = usage.unwrap_or_default();
        let (used, room, so_far) = window.unwrap_or_default();
        let cost = so_far.map(|so_far| {
            let so_far = (so_far.clamp(0.0, FRACTIONS) * FRACTIONS) as u64;
            // An agent that was started again may count from the beginning.
            let before = std::mem::replace(&mut into.mark.spent, so_far);
            so_far.checked_sub(before).unwrap_or(so_far) as f64 / FRACTIONS
        });
        let usage = RecordedUsage {
            time,
            model: None,
            used,
            room,
            input: sum([usage.input_tokens, usage.cached_read_tokens, usage.cached_write_tokens]),
            output: sum([usage.output_tokens, usage.thought_tokens, None]),
            cached: usage.cached_read_tokens,
            cost,
        };
        into.spend(usage, false);
    }
}

impl Begun {
    /// Adds the call to the agent's message, unless it was added before.
    fn give(&mut self, time: Option<i64>, into: &mut Gathered) {
        if std::mem::replace(&mut self.is_added, true) {
            return;
        }
        let input = self.input.as_deref().filter(|input| input.starts_with('{') && *input != "{}");
        let title = || serde_json::json!({ "title": self.title }).to_string();
        let arguments = input.map_or_else(title, str::to_owned);
        let name = match &*self.kind {
            "" | "other" if !self.title.is_empty() => &self.title,
            "" => "tool",
            kind => kind,
        };
        let call = into.call(&self.id, name, arguments);
        into.agent("", vec![call], time, true);
    }
}

/// Returns the sum of the numbers that were reported; `None` if none was.
pub(super) fn sum(numbers: [Option<u64>; 3]) -> Option<u64> {
    numbers.into_iter().flatten().reduce(u64::saturating_add)
}
