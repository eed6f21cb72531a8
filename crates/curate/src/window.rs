//! Chooses a window, and tells it by the indices of the program's own messages.

use std::sync::Arc;

use contexture_core::curation::report::ReportPart;
use contexture_core::curation::section::Sections;
use contexture_core::curation::unit::History;
use contexture_core::curation::window::{self as core, WindowInput};
use contexture_core::session::message::{Message as Logged, Role};
use contexture_core::session::normal::NO_RESULT;
use contexture_core::tokens::Measure;

use crate::normal::{Laid, LaidOrigin, laid};
use crate::{BudgetTooSmall, Curate, Message};

/// The messages that a model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// Messages and notes, in the order in which the model sees them.
    pub parts: Vec<Part>,
    /// Cost of all parts, in tokens. Never more than the budget.
    pub tokens: u64,
    /// For each message of the history, the reason why it is shown or left out.
    pub reasons: Vec<&'static str>,
}

/// A message or a note of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The message with this index in the history, as it is.
    Message(usize),
    /// A message with a shorter text. Its calls and answers stay as they are.
    Shortened {
        /// Index of the message in the history.
        index: usize,
        /// Text to send in place of the message's own.
        text: String,
    },
    /// A note that stands for messages that are left out.
    Note {
        /// Author to give to the note: the system, or in normal form the user.
        role: Role,
        /// Text of the note.
        text: String,
    },
    /// Only in normal form: a message that is sent as one of the user.
    AsUser {
        /// Index of the message in the history.
        index: usize,
        /// Text to send in place of the message's own.
        text: String,
    },
    /// Only in normal form: a result for a call that has none.
    NoResult {
        /// Id of the call.
        call: String,
        /// Text of the result.
        text: String,
    },
}

impl Part {
    /// Returns the index of the message that the part shows, if it shows one.
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Message(index) | Self::Shortened { index, .. } | Self::AsUser { index, .. } => {
                Some(*index)
            }
            Self::Note { .. } | Self::NoResult { .. } => None,
        }
    }

    /// Returns the text to send in place of a message's own, or as a message of its own; `None` for a
    /// message that is sent as it is.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Message(_) => None,
            Self::Shortened { text, .. }
            | Self::Note { text, .. }
            | Self::AsUser { text, .. }
            | Self::NoResult { text, .. } => Some(text),
        }
    }
}

/// Chooses the window for the options.
pub(crate) fn window<M: Message>(asked: &Curate<'_, M>) -> Result<Window, BudgetTooSmall> {
    let laid = laid(asked.history, &|text| asked.counter.count(text), asked.is_normal);
    let measure = Measure::plain(Arc::clone(&asked.counter)).with_roles();
    let messages = laid.messages.iter().collect();
    let mut history = History::with_answers(messages, &laid.further, &measure);
    history.can_read = false;
    let sections = Sections::default();
    let build = |history: &History<'_>| {
        core::build(&WindowInput {
            sections: &sections,
            history,
            phase: None,
            strategy: asked.strategy.0,
            query: asked.query.as_deref(),
            similarity: None,
            summary: None,
            max_tokens: asked.budget,
            previous: None,
            restored: &[],
            once: asked.is_last,
        })
    };
    let mut built = build(&history);
    if built.is_err() && history.let_go_of_first() {
        built = build(&history);
    }
    match built {
        Ok(built) => Ok(laid.told(&built, asked)),
        Err(error) => {
            let parts = error.parts.iter().map(|part| (&part.what, part.reason));
            let messages = laid.indices(parts).collect();
            Err(BudgetTooSmall { needed: error.needed, budget: asked.budget, messages })
        }
    }
}

impl Laid {
    /// Tells a window by the indices of the program's messages.
    fn told<M>(&self, built: &core::Window, asked: &Curate<'_, M>) -> Window {
        let told = |part: &core::MessagePart| match part.message {
            Some(number) => self.part(number as usize - 1, &part.content),
            None => Part::Note {
                role: if asked.is_normal { Role::User } else { Role::System },
                text: part.content.to_string(),
            },
        };
        let parts = built.parts.iter().map(told).collect();
        let mut reasons = vec![""; asked.history.len()];
        let entries = built.report.entries.iter().map(|entry| (&entry.what, entry.reason));
        self.indices(entries).for_each(|(index, reason)| reasons[index] = reason);
        Window { parts, tokens: built.tokens, reasons }
    }

    fn part(&self, at: usize, shown: &Arc<str>) -> Part {
        let message: &Logged = &self.messages[at];
        match &self.origins[at] {
            LaidOrigin::AsUser(index) => Part::AsUser { index: *index, text: shown.to_string() },
            LaidOrigin::NoResult(call) => {
                Part::NoResult { call: call.clone(), text: NO_RESULT.into() }
            }
            LaidOrigin::Message(index) if Arc::ptr_eq(shown, &message.content) => {
                Part::Message(*index)
            }
            LaidOrigin::Message(index) => {
                Part::Shortened { index: *index, text: shown.to_string() }
            }
        }
    }

    /// Returns the program's messages among parts, each with its reason.
    fn indices<'a>(
        &'a self,
        parts: impl Iterator<Item = (&'a ReportPart, &'static str)> + 'a,
    ) -> impl Iterator<Item = (usize, &'static str)> + 'a {
        parts.flat_map(|(what, reason)| {
            let numbers: &[u64] = match what {
                ReportPart::Messages(numbers) => numbers,
                ReportPart::Text | ReportPart::CodeUnit(_) | ReportPart::Note => &[],
            };
            let index = |number: &u64| match &self.origins[*number as usize - 1] {
                LaidOrigin::Message(index) | LaidOrigin::AsUser(index) => Some((*index, reason)),
                LaidOrigin::NoResult(_) => None,
            };
            numbers.iter().filter_map(index).collect::<Vec<_>>()
        })
    }
}
