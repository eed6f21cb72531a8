//! Helpers for the tests of curation: histories written as words, and random ones.
#![cfg(test)]

use std::sync::Arc;

use super::unit::{Folded, History};
use crate::session::message::{Message, Role, Signals, ToolCall};
use crate::tokens::{Estimate, Measure};

/// Returns a measure that estimates costs, without overhead.
pub(crate) fn plain() -> Measure {
    Measure::plain(Arc::new(Estimate))
}

/// Makes messages from words: `s`, `u`, `a`, `t` for the role, then `>x` for each call and `<x` for
/// the call that the message answers, `=n` for its tokens if not 1, and `!` at the end if it is
/// pinned.
pub(crate) fn messages(words: &str) -> Vec<Message> {
    words.split_whitespace().enumerate().map(|(n, word)| message(n as u64 + 1, word)).collect()
}

fn message(number: u64, word: &str) -> Message {
    let tokens = word.split('=').nth(1).map(|size| size.trim_end_matches('!').parse().unwrap());
    let tokens: u64 = tokens.unwrap_or(1);
    worded(number, word, &"four".repeat(tokens as usize))
}

/// Makes a message from a text, with its signals and its estimated tokens.
pub(crate) fn said(number: u64, role: Role, content: &str) -> Message {
    Message {
        number,
        role,
        content: Arc::from(content),
        timestamp: 0,
        phase: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        opaque: None,
        pinned: false,
        tokens: crate::tokens::Counter::count(&Estimate, content),
        counted_by: "estimate",
        signals: Signals::of(role, content, &[]),
    }
}

impl Message {
    pub(crate) fn calling(self, tool_calls: Vec<ToolCall>) -> Self {
        Self { tool_calls, ..self }
    }

    pub(crate) fn answering(self, tool_call_id: Option<String>) -> Self {
        Self { tool_call_id, ..self }
    }

    fn pinned(self, pinned: bool) -> Self {
        Self { pinned, ..self }
    }
}

/// Makes a history of all of `messages`.
pub(crate) fn history<'a>(messages: &'a [Message], measure: &'a Measure) -> History<'a> {
    History::new(messages.iter().collect(), measure)
}

/// Lets a summary stand in for the units of a history that end before message `end` and can be left
/// out.
pub(crate) fn summarize_before(history: &mut History<'_>, end: usize, room: u64) {
    let mut is_folded = vec![false; history.messages.len()];
    for unit in history.units.iter().filter(|unit| unit.kept.is_none()) {
        let is_old = unit.members.iter().all(|index| *index < end);
        unit.members.iter().for_each(|index| is_folded[*index] = is_old);
    }
    let newest = history.messages.len().saturating_sub(1);
    history.folded = Some(Folded { is_folded, newest, room, has_others: false });
}

/// A random number generator for tests, which gives the same numbers for the same seed (Marsaglia's
/// xorshift64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }

    /// Makes a history of up to `most` messages, with parallel calls, calls in flight, results
    /// without calls, repeated ids, pins, prompts, and messages of no tokens.
    pub(crate) fn messages(&mut self, most: u64) -> Vec<Message> {
        let count = self.below(most + 1);
        (1..=count).map(|number| self.message(number)).collect()
    }

    fn message(&mut self, number: u64) -> Message {
        let role = match self.below(20) {
            0 => Role::System,
            1..=5 => Role::User,
            6..=12 => Role::Assistant,
            _ => Role::Tool,
        };
        let of_code = format!("parse_header_{}() is in src/part.rs\r\n\n", self.below(9));
        let text = ["an error ", "completed ", "update: it ", "nothing much ", &of_code];
        let text = text[self.below(5) as usize].repeat(self.below(12) as usize);
        let calls = if role == Role::Assistant { self.below(4) } else { 0 };
        let calls = (0..calls).map(|_| self.call()).collect();
        let answers = (role == Role::Tool && self.below(20) > 0).then(|| self.call().id);
        let pinned = self.below(25) == 0;
        said(number, role, &text).calling(calls).answering(answers).pinned(pinned)
    }

    fn call(&mut self) -> ToolCall {
        let id = self.below(6).to_string();
        ToolCall { id, name: "read_file".into(), arguments: "{}".into() }
    }
}

/// Makes a message from a word and its content: `s`, `u`, `a`, `t` for the role, then `>x` for each
/// call of `run` and `<x` for the call that the message answers, then `!` if it is pinned.
pub(crate) fn worded(number: u64, word: &str, content: &str) -> Message {
    let role = match word.as_bytes()[0] {
        b's' => Role::System,
        b'u' => Role::User,
        b'a' => Role::Assistant,
        _ => Role::Tool,
    };
    let call = |id: &str| ToolCall { id: id[..1].into(), name: "run".into(), arguments: "".into() };
    said(number, role, content)
        .calling(word.split('>').skip(1).map(call).collect())
        .answering(word.split('<').nth(1).map(|id| id[..1].into()))
        .pinned(word.ends_with('!'))
}

/// Makes messages numbered from 1.
pub(crate) fn conversation(said: &[(&str, &str)]) -> Vec<Message> {
    (1..).zip(said).map(|(number, (word, content))| worded(number, word, content)).collect()
}
