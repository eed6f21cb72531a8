//! The place where a reading ended, from which another reading can continue.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{About, Format};

/// The place where a reading ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// Format of the recording; `None` before it is known.
    pub format: Option<Format>,
    /// Number of bytes that were read.
    pub offset: u64,
    /// Number of lines that were read.
    pub lines: u64,
    /// Number of messages that were read.
    pub messages: u64,
    /// Facts about the recording.
    pub about: About,
    /// True if the title is the user's own.
    pub title_is_given: bool,
    /// True if the recording is a subagent's.
    pub is_subagent: bool,
    /// Calls without a result so far: for each, the id in the recording and the id in the returned
    /// message.
    pub open: Vec<(String, String)>,
    /// Time of the last answer with calls.
    #[serde(default)]
    pub called: Option<i64>,
    /// True if the user stopped the agent after what was said last.
    #[serde(default)]
    pub is_stopped: bool,
    /// Id of the model's last answer in the recording; empty if unknown.
    pub last_answer: String,
    /// Hashes of the records or messages that were read, so that no message is returned twice.
    pub seen: HashSet<u64>,
    /// Hashes of the ids of the returned calls, so that no two calls get the same id.
    pub calls: HashSet<u64>,
    /// The user's messages that an agent can go back to: for each, the hash of its record's id, and
    /// the number of messages before it.
    #[serde(default)]
    pub prompts: Vec<(u64, u64)>,
    /// Numbers of messages in the recording when it was last read from its beginning.
    #[serde(default)]
    pub counts: MessageCounts,
    /// Cost that an agent has reported so far, in billionths of a US dollar, or tokens.
    #[serde(default)]
    pub spent: u64,
}

/// Numbers of messages in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MessageCounts {
    /// Messages in the recording.
    pub live: u64,
    /// Messages up to the user's last one.
    pub turn: u64,
}

impl Mark {
    /// Returns whether the agent only appends to the recording, and no line changes what earlier
    /// ones say. Other recordings are read as a whole.
    pub fn only_grows(&self) -> bool {
        matches!(self.format, None | Some(Format::ClaudeCode | Format::Codex | Format::Acp))
    }

    /// Returns the mark for reading the recording from its beginning again. That reading leaves out
    /// the messages that were read before.
    #[must_use]
    pub fn anew(self) -> Self {
        let Self { seen, messages, prompts, counts, spent, .. } = self;
        Self { seen, messages, prompts, counts, spent, ..Self::default() }
    }
}
