//! The interface of a strategy, and the choice that it makes.

use super::super::similarity::Similarity;
use super::super::unit::History;

/// A strategy, which chooses the part of a history to show.
pub trait Strategy: Sync {
    /// Returns the name of the strategy in the client protocol.
    fn name(&self) -> &'static str;

    /// Returns what the strategy keeps, as a phrase for users and for the documentation.
    fn keeps(&self) -> &'static str;

    /// Chooses the messages to show. The result costs at most [`Aim::budget`]. Every unit of the
    /// history has a verdict in [`Projection::verdicts`], and units that cannot be left out are
    /// shown unchanged. The caller makes sure that these units fit.
    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection;
}

/// The budget of a strategy, and the question that it chooses for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Aim<'a> {
    /// Maximum cost of the projection, in tokens.
    pub budget: u64,
    /// Current question, if there is one.
    pub query: Option<&'a str>,
    /// Similarity of the messages to the question by meaning, if their embedding vectors are known.
    pub similarity: Option<&'a Similarity>,
    /// True if no later window continues this one. Then the whole room is used now, and nothing is
    /// kept free for the messages to come.
    pub once: bool,
}

/// A choice of messages from a history.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Projection {
    /// Messages and notes to show, in order.
    pub shown: Vec<Shown>,
    /// Verdict on each unit of the history, in order.
    pub verdicts: Vec<Verdict>,
}

/// A message or a note to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A whole message, by its index in the history.
    Whole(usize),
    /// A message with shorter content that says where the original is.
    Shortened {
        /// Index of the message in the history.
        index: usize,
        /// Text that replaces the message's content.
        content: String,
        /// Cost of the shortened message, in tokens.
        tokens: u64,
    },
    /// A system message that replaces left-out messages.
    Note {
        /// Text of the note.
        content: String,
        /// Cost of the note, in tokens.
        tokens: u64,
        /// What of this cost is for lines of left-out messages: the index of each message, and the
        /// cost of its lines, in tokens.
        lines: Vec<(usize, u64)>,
    },
}

impl Shown {
    /// Returns the cost of a shown message or note, in tokens.
    pub(in crate::curation) fn tokens(&self, history: &History<'_>) -> u64 {
        match self {
            Self::Whole(index) => history.measure.message(history.messages[*index].tokens),
            Self::Shortened { tokens, .. } | Self::Note { tokens, .. } => *tokens,
        }
    }
}

/// The outcome for a unit, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Outcome for the unit.
    pub fate: Fate,
    /// Reason, in a few words.
    pub reason: &'static str,
    /// Score with its named parts, if the strategy gives scores. The parts add up to the score.
    pub score: Option<Score>,
}

/// The outcome for a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "PartFate"))]
pub enum Fate {
    /// Shown unchanged.
    Kept,
    /// Shown with shortened content.
    Shortened,
    /// Not shown.
    Dropped,
}

/// A score with its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Sum of the parts.
    pub total: f64,
    /// Parts by name.
    pub parts: Vec<(&'static str, f64)>,
}
