//! Stored notes of turns, as plain data. The store gives no meaning to the names in them, except to
//! the status of successful notes.

/// Minimum number of notes that are kept, over all sessions. The last successful notes of each
/// session are always kept.
pub const NOTES_KEPT: u64 = 10_000;

/// The outcome of writing notes for a turn. When the writing failed, the fields of steps that were
/// not reached are `None` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewNotes {
    /// Number of the session.
    pub session: u64,
    /// Number of the user message that began the turn.
    pub message: u64,
    /// Number of the turn in the session, counted from 1.
    pub turn: u64,
    /// Creation time in Unix seconds.
    pub created: i64,
    /// Name of the outcome; `managed` for successful notes.
    pub status: String,
    /// Name of the step that failed, if one did.
    pub step: Option<String>,
    /// Reason for the failure, if the writing failed.
    pub reason: Option<String>,
    /// Name of the requested template.
    pub template: String,
    /// Kind of place where the template was found, such as `project`.
    pub source: Option<String>,
    /// Path of the template; `None` when the template is not a file.
    pub path: Option<String>,
    /// SHA-256 of the template's text, in hexadecimal.
    pub sha256: Option<String>,
    /// Name of the provider.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Setting: number of recent runs to show. A run is the messages of one turn.
    pub recent_runs: Option<u64>,
    /// Setting: number of runs to pass on unchanged.
    pub passthrough_runs: Option<u64>,
    /// Setting: minimum size of the history for notes to be written, in tokens.
    pub token_threshold: Option<u64>,
    /// Number of runs that fitted into the prompt.
    pub runs_shown: Option<u64>,
    /// Names of the prompt's sections, separated by spaces.
    pub sections: String,
    /// Token budget of the prompt.
    pub budget: Option<u64>,
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Input tokens as counted by the provider.
    pub input_tokens: Option<u64>,
    /// Output tokens as counted by the provider.
    pub output_tokens: Option<u64>,
    /// Tokens of the history.
    pub tokens_before: u64,
    /// Tokens of the notes and the messages passed on with them; without notes, those of the
    /// history.
    pub tokens_after: u64,
    /// The prompt.
    pub prompt: String,
    /// Request body sent for the prompt.
    pub payload: String,
    /// Answer of the model.
    pub output: String,
}

/// A stored [`NewNotes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesRow {
    /// Number of the notes, unique over all sessions.
    pub id: u64,
    /// The notes as they were added.
    pub made: NewNotes,
}

/// Status of successful notes.
pub const MADE: &str = "managed";

/// Query for stored notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NotesQuery<'a> {
    /// Only the notes with this number.
    pub id: Option<u64>,
    /// Only notes of this session.
    pub session: Option<u64>,
    /// Only notes with this status.
    pub status: Option<&'a str>,
    /// Maximum number of rows to return.
    pub limit: u64,
    /// True to leave prompt, payload and output empty.
    pub brief: bool,
}

/// The text of stored notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesText {
    /// Number of the notes.
    pub id: u64,
    /// Number of the user message that began the turn.
    pub message: u64,
    /// Answer of the model.
    pub output: String,
}
