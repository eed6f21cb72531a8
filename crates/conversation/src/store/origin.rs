//! What lists show of a session besides its figures: what its agent recorded about it, and how it
//! ends.

use crate::session::message::{Message, Role};

/// Facts that an agent recorded about a session. All are absent for a session that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedOrigin {
    /// Name of the agent.
    pub agent: Option<String>,
    /// Id that the agent gave the session.
    pub session: Option<String>,
    /// Id that the agent gave the session whose agent began this one as a subagent's.
    pub parent: Option<String>,
    /// Folder in which the agent worked.
    pub folder: Option<String>,
    /// Git branch in that folder.
    pub branch: Option<String>,
    /// URL of the Git remote in that folder.
    pub remote: Option<String>,
    /// Time of the earliest call without a result, in Unix seconds; `None` if there is no such call.
    pub open_since: Option<i64>,
    /// True if the user stopped the agent after the last message, so that it waits for a prompt.
    pub is_stopped: bool,
}

/// Maximum length of [`SessionRow::last_words`], in characters.
const LAST_WORDS: usize = 200;

/// Returns the author of the last of some messages, and the beginning of the last text of the user
/// or the model, if there is one.
pub fn last_said(messages: &[Message]) -> (Option<Role>, Option<String>) {
    let says = |it: &&Message| {
        matches!(it.role, Role::User | Role::Assistant) && !it.content.trim().is_empty()
    };
    let words = messages.iter().rev().find(says).map(|message| {
        let words: Vec<&str> = message.content.split_whitespace().take(LAST_WORDS).collect();
        words.join(" ").chars().take(LAST_WORDS).collect()
    });
    (messages.last().map(|message| message.role), words)
}
