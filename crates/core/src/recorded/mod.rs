//! Reads, as messages, the sessions that other agents recorded. The file of each format says where
//! its program keeps recordings, and what they look like.
//!
//! Nothing here opens a file. A [`Reader`] takes any source of bytes, holds one record at a time
//! however long the source is, and can continue from the [`Mark`] of an earlier reading. The reader
//! reports the records that it leaves out. Since other programs write the recordings, malformed
//! content is left out and is not an error.

mod acp;
mod acp_blocks;
mod aider;
mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod document;
mod gathered;
mod gemini;
mod hash;
mod json;
mod lines;
mod mark;
mod opencode;
mod parts;
mod pi;
mod programs;
mod qwen;
mod reader;
mod recognize;
mod records;
mod report;
mod rewound;
mod said;
mod seen;
mod specstory;
mod time;
mod tree;

use std::cell::Cell;
use std::io::{self, BufRead, Seek};

use serde::{Deserialize, Serialize};

pub use self::aider::chats;
pub use self::mark::Mark;
pub use self::reader::Reader;
pub use self::report::LeftOut;
pub use self::rewound::{Rewound, rewound};
pub use self::said::question;
use crate::names::names;
use crate::session::message::{Role, ToolCall};

/// Maximum length of a line in bytes. Longer lines are skipped, and the report says so.
pub const LONGEST_LINE: usize = 32 << 20;
/// Maximum size of a message's text in bytes. The rest of a longer text is cut off, and the report
/// says so.
pub const LARGEST_MESSAGE: usize = 4 << 20;
/// Number of lines of a text that may be looked at before they are read: besides, and for each line.
/// Without it, a text of parts that are never closed would be read as often as it has lines.
const MOST_AHEAD: usize = 1_000_000;
const AHEAD_PER_LINE: usize = 100;

/// Number of lines that may still be looked at before they are read.
struct LinesAhead(Cell<usize>);

impl LinesAhead {
    /// Returns the number for a text of so many lines.
    fn of(lines: usize) -> Self {
        Self(Cell::new(MOST_AHEAD + AHEAD_PER_LINE * lines))
    }

    /// Returns whether one more line may be looked at, and counts it.
    fn take(&self) -> bool {
        let left = self.0.get().checked_sub(1);
        left.inspect(|left| self.0.set(*left)).is_some()
    }

    /// Returns whether no further line may be looked at.
    fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// Number of lines after which reading fails if the format is still unknown.
pub const MOST_UNKNOWN_LINES: u64 = 1000;
/// Maximum length, in characters, of a title, of a first question, and of a kind in the report;
/// longer ones are cut.
pub const LONGEST_TITLE: usize = 100;

names! {
    /// The format of a recording.
    Format {
        /// JSON lines of Claude Code.
        ClaudeCode => "claude-code",
        /// A rollout of Codex.
        Codex => "codex",
        /// Markdown of SpecStory, version 1 or 2.
        Specstory => "specstory",
        /// JSON lines of `contexture acp`.
        Acp => "acp",
        /// A session of Gemini CLI, as JSON or JSON lines.
        Gemini => "gemini",
        /// JSON lines of Qwen Code.
        Qwen => "qwen",
        /// A session of OpenCode.
        Opencode => "opencode",
        /// The history of aider.
        Aider => "aider",
        /// A transcript of Cursor's agent, as JSON lines or text.
        Cursor => "cursor",
        /// JSON lines of pi or OpenClaw.
        Pi => "pi",
        /// A task of Cline, Roo Code or Kilo Code.
        Cline => "cline",
        /// JSON lines of GitHub Copilot CLI.
        Copilot => "copilot",
    }
}

impl Format {
    /// Returns the name of the agent, as on the command line.
    pub fn agent(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            other => other.name(),
        }
    }
}

/// Facts about a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct About {
    /// Title that the recording gives itself.
    pub title: Option<String>,
    /// Beginning of the first question of the user, on one line.
    pub question: Option<String>,
    /// Folder in which the agent worked.
    pub project: Option<String>,
    /// Id that the agent gave the session.
    pub id: Option<String>,
    /// Time of the first record with a time, in Unix seconds.
    pub started: Option<i64>,
    /// Model that answered last.
    #[serde(default)]
    pub model: Option<String>,
    /// Id of the session whose agent began this one as a subagent.
    #[serde(default)]
    pub parent: Option<String>,
    /// Id of the session of which this one is a fork.
    #[serde(default)]
    pub forked_from: Option<String>,
    /// Git branch in the folder, as last recorded.
    #[serde(default)]
    pub branch: Option<String>,
    /// URL of the Git remote of the folder, without user and password.
    #[serde(default)]
    pub remote: Option<String>,
}

/// A message of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedMessage {
    /// Author of the message. Never the system.
    pub role: Role,
    /// The text.
    pub content: String,
    /// Tool calls of the agent; their ids are unique within the recording.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool's message answers.
    pub tool_call_id: Option<String>,
    /// Time in Unix seconds, if recorded.
    pub timestamp: Option<i64>,
}

/// Tokens and cost of a turn, or of one request in it, as the agent reported them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedUsage {
    /// Time of the end in Unix seconds, if recorded.
    pub time: Option<i64>,
    /// Model that answered, if recorded.
    pub model: Option<String>,
    /// Tokens in the model's window afterwards; 0 if unknown.
    pub used: u64,
    /// Size of the window in tokens; 0 if unknown.
    pub room: u64,
    /// Input tokens, including cached ones.
    pub input: Option<u64>,
    /// Output tokens, including those of the model's reasoning.
    pub output: Option<u64>,
    /// Input tokens that came from a cache.
    pub cached: Option<u64>,
    /// Cost in US dollars, if reported in them.
    pub cost: Option<f64>,
}

/// A whole recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Format of the recording.
    pub format: Format,
    /// Facts about the recording.
    pub about: About,
    /// Messages in the order of the recording.
    pub messages: Vec<RecordedMessage>,
    /// Records that were left out, by kind and reason.
    pub left_out: Vec<LeftOut>,
}

/// Reads a whole recording, without what the user went back before.
///
/// # Errors
/// [`RecordingError::Unknown`] if the text is in no known format; [`RecordingError::Io`] if the source cannot
/// be read.
pub fn read(mut source: impl BufRead + Seek) -> Result<Recorded, RecordingError> {
    let rewound = rewound(&mut source)?;
    source.rewind()?;
    let mut reader = Reader::new(source, Mark::default());
    reader.set_rewound(rewound);
    let mut messages = Vec::new();
    while let Some(message) = reader.next()? {
        messages.push(message);
    }
    let format = reader.format().ok_or(RecordingError::Unknown)?;
    let about = reader.about().clone();
    Ok(Recorded { format, about, messages, left_out: reader.left_out() })
}

/// Reasons why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The text is in none of the known formats.
    #[error(
        "the file is not a recorded session of a known agent; `contexture import` lists the agents"
    )]
    Unknown,
    /// The text seems to be another program's.
    #[error("the file seems to be a session of {program}, whose recordings cannot be read")]
    Other {
        /// Name of the program.
        program: &'static str,
    },
    /// Reading the source failed.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests;
