//! What became of a file that was to be imported.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::SessionId;
use crate::recorded::LeftOut;
use crate::value::Keyword;

/// What became of a file.
pub(super) enum FileOutcome {
    /// It is a recording.
    File(Box<ImportedFile>),
    /// It is no recording, although the call does not name it itself, or one of another project.
    Other,
    /// It is a fork of a session that is not known yet.
    Later,
}

/// A recording, and the outcome of importing it.
#[derive(Serialize, JsonSchema, Default)]
pub(super) struct ImportedFile {
    /// Path of the file.
    pub(super) path: String,
    /// `:new` if it becomes a session, `:empty` if it has no message, and `:failed` if it cannot be
    /// read. `:grown` if it has new messages, and `:unchanged` if it has none. `:deleted` if its
    /// session was deleted, which `delete-session` undoes.
    #[schemars(extend("enum" = ["new", "empty", "grown", "unchanged", "deleted", "failed"]))]
    pub(super) state: Keyword<&'static str>,
    /// Name of the format, such as `:claude-code`; `nil` if it is unknown.
    pub(super) format: Option<Keyword<&'static str>>,
    /// Name of the session.
    pub(super) session: Option<String>,
    /// Id of the session, `ses-N`; `nil` before it is imported.
    pub(super) id: Option<SessionId>,
    /// Beginning of the first question.
    pub(super) question: Option<String>,
    /// Folder of the project.
    pub(super) project: Option<String>,
    /// Model that answered last.
    pub(super) model: Option<String>,
    /// Time at which the session began, in Unix seconds.
    pub(super) started: Option<i64>,
    /// Number of new messages.
    pub(super) messages: u64,
    /// Number of tokens in the new messages.
    pub(super) tokens: u64,
    /// Records of the new part that were left out or changed, by kind and reason.
    pub(super) left_out: Vec<LeftOut>,
    /// Reason why the file cannot be read; `nil` if it can.
    pub(super) error: Option<String>,
}

impl ImportedFile {
    pub(super) fn of(path: &Path, state: &'static str) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { path, state: Keyword(state), ..Self::default() }
    }

    pub(super) fn failed(path: &Path, error: &impl ToString) -> Self {
        Self { error: Some(error.to_string()), ..Self::of(path, "failed") }
    }
}
