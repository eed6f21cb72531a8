//! `contexture compact`: compacts a recorded session of any agent, with a receipt of what was left
//! out. Needs no server, and stores nothing.

use std::fmt::Write;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use serde_json::json;

use super::say;
use crate::config::number;
use crate::curation::budget::WindowBudgetTooSmall;
use crate::curation::report::{Report, Run};
use crate::curation::section::Sections;
use crate::curation::strategy::{ALL, Fate};
use crate::curation::unit::History;
use crate::curation::window::{MessagePart, Window, WindowInput, build};
use crate::files::LARGEST_WHOLE;
use crate::ids::MessageId;
use crate::recorded::{self, RecordedMessage};
use crate::session::message::{Message, Signals, ToolCall};
use crate::tokens::{Counter, Measure, TokenizerName};
use crate::visible::{visible_lines, visible_path};
use crate::whole_file::open;
use crate::wording::{self, counted, in_full};

/// Default size of the compacted session, in tokens.
const DEFAULT_TOKENS: u64 = 12_000;

/// Compact a recorded session, and say what was left out
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  contexture compact session.jsonl\n  contexture compact \
    session.jsonl --max-tokens 8000 --json\n  contexture compact session.jsonl --read \
    msg-12:40-60\n\nReads the recordings that contexture import reads. The receipt names all that \
    was left out,\nand --read shows it as it was.")]
pub(super) struct Compact {
    /// File with the recorded session
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Maximum number of tokens of the result
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOKENS, value_parser = number::<u64>)]
    max_tokens: u64,
    /// Keep first what is about this question
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// Print text, receipt and figures as JSON
    #[arg(long)]
    json: bool,
    /// Print this message as it was recorded, or a range of its lines, such as msg-12:40-60
    #[arg(long, value_name = "ID", conflicts_with_all = ["query", "json"])]
    read: Option<String>,
}

impl Compact {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let name = visible_path(&self.file);
        let file = open(&self.file, LARGEST_WHOLE);
        let file = file.with_context(|| format!("cannot open {name}"))?;
        let read = recorded::read(BufReader::new(file.take(LARGEST_WHOLE)))
            .with_context(|| format!("cannot read {name}"))?;
        let counter = TokenizerName::default().counter();
        let messages: Vec<Message> =
            (1..).zip(&read.messages).map(|(at, said)| message(at, said, &*counter)).collect();
        if let Some(wanted) = &self.read {
            return say(&restored(&messages, wanted)?);
        }
        let measure = Measure::plain(counter);
        let mut history = History::new(messages.iter().collect(), &measure);
        let window = match self.window(&history) {
            Err(_) if history.let_go_of_first() => self.window(&history),
            window => window,
        }?;
        match self.json {
            true => say(&format!("{:#}\n", as_json(&window, &history))),
            false => say(&visible_lines(&as_text(&window, &history))),
        }
    }

    fn window(&self, history: &History<'_>) -> Result<Window, WindowBudgetTooSmall> {
        build(&WindowInput {
            sections: &Sections::default(),
            history,
            phase: None,
            strategy: ALL[0],
            query: self.query.as_deref(),
            similarity: None,
            summary: None,
            max_tokens: self.max_tokens,
            previous: None,
            restored: &[],
            once: true,
        })
    }
}

fn message(number: u64, said: &RecordedMessage, counter: &dyn Counter) -> Message {
    let RecordedMessage { role, content, tool_calls, tool_call_id, timestamp } = said;
    let of_calls =
        tool_calls.iter().map(|call| counter.count(&call.name) + counter.count(&call.arguments));
    Message {
        number,
        role: *role,
        content: content.as_str().into(),
        timestamp: timestamp.unwrap_or_default(),
        phase: None,
        tool_calls: tool_calls.clone(),
        tool_call_id: tool_call_id.clone(),
        pinned: false,
        tokens: counter.count(content) + of_calls.sum::<u64>(),
        counted_by: counter.name(),
        signals: Signals::of(*role, content, tool_calls),
        opaque: None,
    }
}

/// Returns a message with its calls, or a range of its lines, to the byte.
fn restored(messages: &[Message], wanted: &str) -> anyhow::Result<String> {
    let (id, lines) = wanted.split_once(':').map_or((wanted, None), |(id, it)| (id, Some(it)));
    let found = messages.iter().find(|message| MessageId(message.number).to_string() == id);
    let message = found.ok_or_else(|| {
        anyhow!("there is no message {id}; the session has msg-1 to msg-{}", messages.len())
    })?;
    let text =
        in_full(&message.content, message.tool_calls.iter().map(ToolCall::name_and_arguments));
    let Some(lines) = lines else { return Ok(text) };
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let range = first.parse().ok().zip(last.parse().ok());
    let (first, last) =
        range.ok_or_else(|| anyhow!("{lines:?} is no range of lines, such as 40-60"))?;
    let found = wording::lines(&text, first, Some(last)).ok_or_else(|| {
        let count = text.lines().count();
        anyhow!("there are no lines {lines} in {id}; ask for lines from 1 to {count}")
    })?;
    Ok(found.to_owned())
}

/// Returns the runs of messages that are left out or shortened: what the receipt lists.
fn left_out(report: &Report) -> impl Iterator<Item = Run> {
    report.condensed().into_iter().filter(|run| run.fate != Fate::Kept)
}

fn as_text(window: &Window, history: &History<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for part in &window.parts {
        let id = part.message.map(|number| format!(" {}", MessageId(number))).unwrap_or_default();
        let _ = writeln!(text, "── {}{id}\n{}", part.role.name(), part.content);
        for call in &part.tool_calls {
            let _ = writeln!(text, "→ {} {}", call.name, call.arguments);
        }
        text.push('\n');
    }
    let _ = writeln!(text, "── Left out, whole or in part (--read ID shows it as it was)");
    for run in left_out(&window.report) {
        let Run { label, before, after, reason, .. } = run;
        let left = counted(before - after.min(before), "token");
        let _ = writeln!(text, "{label}: {left}; {reason}");
    }
    let messages = counted(history.messages.len() as u64, "message");
    let all = counted(history.tokens(), "token");
    let kept = counted(window.tokens, "token");
    let _ = writeln!(text, "\n{messages}, {all}; this has {kept}.");
    text
}

fn as_json(window: &Window, history: &History<'_>) -> serde_json::Value {
    let part = |part: &MessagePart| {
        json!({
            "role": part.role.name(),
            "id": part.message.map(|number| MessageId(number).to_string()),
            "content": &*part.content,
            "tool-calls": part.tool_calls,
            "tokens": part.tokens,
        })
    };
    let run = |run: Run| {
        json!({
            "ids": run.label, "fate": run.fate, "reason": run.reason,
            "tokens": run.before - run.after.min(run.before),
        })
    };
    json!({
        "window": window.parts.iter().map(part).collect::<Vec<_>>(),
        "left-out": left_out(&window.report).map(run).collect::<Vec<_>>(),
        "messages": history.messages.len(),
        "tokens-before": history.tokens(),
        "tokens-after": window.tokens,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::message::Role;
    use crate::tokens::Estimate;

    fn said(content: &str) -> RecordedMessage {
        let (tool_calls, tool_call_id, timestamp) = (Vec::new(), None, None);
        RecordedMessage {
            role: Role::User,
            content: content.to_owned(),
            tool_calls,
            tool_call_id,
            timestamp,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn what_was_left_out_comes_back_to_the_byte(
            contents in prop::collection::vec("(\\PC|\n|\r\n){0,40}", 1..6),
            wanted in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let messages: Vec<Message> =
                (1..).zip(&contents).map(|(at, it)| message(at, &said(it), &Estimate)).collect();
            let at = wanted.index(contents.len());
            let id = format!("msg-{}", at + 1);
            prop_assert_eq!(&restored(&messages, &id).unwrap(), &contents[at]);
            let count = contents[at].lines().count();
            if count > 1 {
                let cut = 1 + cut.index(count - 1);
                let range = |from: usize, to: usize| {
                    restored(&messages, &format!("{id}:{from}-{to}")).unwrap()
                };
                prop_assert_eq!(range(1, cut) + &range(cut + 1, count), &contents[at][..]);
            }
            let beyond = format!("{id}:{}", count + 1);
            prop_assert!(restored(&messages, &beyond).is_err());
            prop_assert!(restored(&messages, "msg-99").is_err());
        }
    }
}
