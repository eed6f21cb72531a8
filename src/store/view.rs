//! What a store keeps of the managing of turns. Plain data; what its names mean is not known here.

/// How many views are kept at least, of all sessions together; of each session also the last that
/// was made.
pub const VIEWS_KEPT: u64 = 10_000;

/// What became of the managing of a turn. Of a turn that was not managed, what was not come to is
/// `None` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewView {
    /// The session.
    pub session: u64,
    /// The number of the user's message that began the turn.
    pub message: u64,
    /// Which turn of the session it was, from 1.
    pub turn: u64,
    /// Unix seconds.
    pub created: i64,
    /// What became of it, by name.
    pub status: String,
    /// At which step it failed, by name.
    pub step: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
    /// The name that the template was asked for by.
    pub template: String,
    /// The kind of place where it was found.
    pub source: Option<String>,
    /// Its file, if it is one.
    pub path: Option<String>,
    /// The SHA-256 of its text, in hexadecimal.
    pub sha256: Option<String>,
    /// Who was asked.
    pub provider: Option<String>,
    /// Which model.
    pub model: Option<String>,
    /// How many runs were to be shown.
    pub recent_runs: Option<u64>,
    /// How many runs were to be passed on.
    pub passthrough_runs: Option<u64>,
    /// From how many tokens on it was to be managed.
    pub token_threshold: Option<u64>,
    /// How many runs the prompt had room for.
    pub runs_shown: Option<u64>,
    /// The names of the prompt's sections, with spaces between.
    pub sections: String,
    /// How many tokens the prompt might have.
    pub budget: Option<u64>,
    /// How many it has.
    pub prompt_tokens: Option<u64>,
    /// The prompt.
    pub prompt: String,
    /// What was sent for it.
    pub payload: String,
    /// What the model made of it.
    pub output: String,
    /// How many tokens the provider counted in the request.
    pub input_tokens: Option<u64>,
    /// And in the answer.
    pub output_tokens: Option<u64>,
    /// What the history cost.
    pub tokens_before: u64,
    /// What the view costs; the history when there is none.
    pub tokens_after: u64,
}

/// What became of the managing of a turn, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewRow {
    /// Its number, which no other view of any session has.
    pub id: u64,
    /// What it was made of.
    pub made: NewView,
}

/// The status of a view that was made, by name; of each session the last such view is kept.
pub const MADE: &str = "managed";

/// Which views are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewQuery<'a> {
    /// Only this one.
    pub id: Option<u64>,
    /// Only those of this session.
    pub session: Option<u64>,
    /// Only those with this status.
    pub status: Option<&'a str>,
    /// At most so many.
    pub limit: u64,
    /// Without the prompt, what was sent, and what the model made of it: those are empty.
    pub brief: bool,
}

/// The notes of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notes {
    /// The view's number.
    pub id: u64,
    /// The number of the user's message that began the turn.
    pub message: u64,
    /// What the model made.
    pub output: String,
}
