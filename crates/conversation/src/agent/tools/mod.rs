//! The tools that a model can call. The caller of a turn passes them as [`OfferedTool`]s.

pub mod context;

use serde::Serialize;

use super::{Job, Later};
use crate::names::names;
use crate::provider::chat;
use crate::session::message::ToolCall;
use crate::store::session::SessionRow;

/// Maximum length of a result that a model sees, in bytes.
pub const MAX_RESULT_BYTES: usize = 64 << 10;

/// A tool that a model can call.
pub trait OfferedTool: Send + Sync {
    /// Returns the name that models use to call the tool.
    fn name(&self) -> &str;

    /// Returns the description of the tool for a provider.
    fn offered(&self) -> chat::ToolDefinition;

    /// Returns whether the user must allow calls of the tool.
    fn needs_approval(&self) -> bool {
        true
    }

    /// Returns whether a turn that names no tools offers this tool, even if the session's settings
    /// do not name it.
    fn is_offered_unasked(&self) -> bool {
        false
    }

    /// Returns whether turns of a session may offer the tool.
    fn is_for(&self, _session: &SessionRow) -> bool {
        true
    }

    /// Returns whether the user allowed all calls of the tool in a session. `stored` has the names
    /// of the tools that the session's settings allow.
    fn is_allowed(&self, _session: &SessionRow, stored: &[String]) -> bool {
        stored.iter().any(|name| name == self.name())
    }

    /// Allows all calls of the tool in a session. Returns the name to store in the session's
    /// settings; `None` if the tool itself remembers the permission.
    fn allow(&self, _session: &SessionRow) -> Option<String> {
        Some(self.name().to_owned())
    }

    /// Parses a call, without side effects.
    ///
    /// # Errors
    /// The reason, as text for the model.
    fn understand<'a>(
        &'a self,
        called: &'a ToolCall,
        session: &'a SessionRow,
    ) -> Later<'a, Result<Box<dyn ToolRequest>, String>>;
}

/// The turn in which a model calls a tool.
#[derive(Clone, Copy)]
pub struct ToolTurn<'a> {
    /// The session of the turn.
    pub session: &'a SessionRow,
    /// The managers whose items the turn shows, and the session's own manager.
    pub managers: &'a [String],
}

/// A parsed tool call, which may still need permission.
pub trait ToolRequest: Send + Sync {
    /// Returns a one-line description of the call for the user.
    fn phrase(&self) -> String;

    /// Returns the place outside the session's project that the call reaches, if any. The user must
    /// allow each such call.
    fn outside(&self) -> Option<String> {
        None
    }

    /// Returns whether the call reaches a file that may hold secrets. The user must allow each such
    /// call.
    fn reaches_secrets(&self) -> bool {
        false
    }

    /// Carries out the call. Returns the result for the model.
    ///
    /// # Errors
    /// The reason, as text for the model.
    fn carry_out<'a>(
        &'a self,
        job: &'a Job,
        turn: ToolTurn<'a>,
    ) -> Later<'a, Result<String, String>>;
}

names! {
    /// The outcome of a tool call.
    #[non_exhaustive]
    #[cfg_attr(feature = "schema", schemars(rename = "ToolOutcome"))]
    Outcome {
        /// The call was carried out.
        Done => "done",
        /// The call was not allowed.
        Refused => "refused",
        /// The call could not be carried out.
        Failed => "failed",
    }
}

/// A tool call with its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CalledTool {
    /// Id of the call; its result has the same id. Not serialized.
    #[serde(skip)]
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments as JSON.
    pub arguments: String,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Result that the model sees.
    pub text: String,
}

/// Maximum length of a text in the description of a call, in characters.
const SHOWN: usize = 80;

/// Returns the first line of a text, cut to [`SHOWN`] characters; an ellipsis stands for the rest.
pub fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

/// Cuts a result that is longer than [`MAX_RESULT_BYTES`], and adds a note that says so.
pub fn cut(text: String) -> String {
    if text.len() <= MAX_RESULT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_RESULT_BYTES);
    format!("{}… ({} of {} bytes)", &text[..end], end, text.len())
}
