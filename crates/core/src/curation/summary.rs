//! Summaries: choose the part of a history to fold, and describe it in a few words.
//!
//! To fold units is to replace them with a summary. A later summary folds the earlier one together
//! with more units, so that a conversation has at most one summary. This module uses no provider
//! and no store: a caller with a provider supplies the text. The user's words are there in any case.

use serde::{Deserialize, Serialize};

use self::check::KnownWords;
use super::said::UserWords;
use super::unit::{History, Unit};
use crate::session::message::{Message, Role};
use crate::tokens::Measure;

/// Maximum cost of the gap between the parts of a summary, in tokens.
const GAP: u64 = 4;

/// A text that stands in for a part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SummaryText {
    /// Counts of the folded messages and turns.
    pub counts: Counts,
    /// Description of the folded part. Empty if no model wrote one.
    #[serde(default)]
    pub text: String,
    /// What the user said in the folded part.
    #[serde(default)]
    pub said: UserWords,
}

/// Counts of everything that a summary stands in for, since the conversation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Messages of the user.
    pub user: u64,
    /// Messages of the model.
    pub responses: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Turns of which at least a part is folded. A turn begins with a message of the user.
    pub turns: u64,
}

/// The material for a summary.
#[derive(Clone, Copy)]
pub struct SummarySource<'a> {
    /// The earlier summary, which the new one replaces.
    pub prior: Option<&'a SummaryText>,
    /// Messages to fold, in the order of the log.
    pub messages: &'a [&'a Message],
    /// Number of turns that the messages belong to, not counting the turns of the earlier summary;
    /// see [`Folding::turns`].
    pub turns: u64,
    /// Measure of costs.
    pub measure: &'a Measure,
    /// Maximum size of the user's words, in tokens. The oldest are left out first.
    pub said_tokens: u64,
}

/// The part of a history that a summary would fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folding {
    /// Indices of the units, in order.
    pub units: Vec<usize>,
    /// Number of turns that the units belong to.
    pub turns: u64,
}

/// A summarizer, which describes a part of a conversation in a few words.
pub trait Summarizer {
    /// Returns a description of the messages, or an empty text for a summary without one.
    ///
    /// The description may come from a model, so its sentences are checked. A sentence is left out
    /// if it contains a path, a quoted command, an identifier or a number that occurs neither in the
    /// messages nor in the earlier summary. A sentence is also left out if it addresses its reader,
    /// or contains mostly words that nobody used. The user's words are always added, so that the
    /// summary has them even if the description leaves them out.
    ///
    /// # Errors
    ///
    /// [`SummaryError::Failed`] when there is no description, for instance because a provider
    /// cannot be reached.
    fn summarize(&self, source: &SummarySource<'_>) -> Result<String, SummaryError>;
}

/// A summarizer that needs no provider: its summaries have no description.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extractive;

/// The reason why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// There are no messages to fold.
    #[error("there is nothing to summarize: everything in view is recent or cannot be left out")]
    Nothing,
    /// The summary would not be smaller than the messages that it would replace.
    #[error(
        "nothing was summarized: the summary would have {summary} tokens, but what it would \
         replace has only {source_tokens}"
    )]
    NoSmaller {
        /// Cost of the summary, in tokens.
        summary: u64,
        /// Cost of the messages and the earlier summary that it would replace, in tokens.
        source_tokens: u64,
    },
    /// The summarizer failed.
    #[error("the summarizer failed: {0}")]
    Failed(String),
}

/// Returns the part of a history to fold: everything except the last `recent_turns` turns and the
/// units that cannot be left out. A unit belongs to the turn in which it begins.
pub fn folding(history: &History<'_>, recent_turns: usize) -> Folding {
    let turns = turns(history);
    let end = match recent_turns {
        0 => history.units.len(),
        _ => turns.len().checked_sub(recent_turns).map_or(0, |at| turns[at]),
    };
    Folding::of(history, |at, _| at < end)
}

/// Returns the part of a history to fold like [`folding`], but keeps the last `recent_messages`
/// messages, and every unit that contains one of these messages.
pub fn folding_messages(history: &History<'_>, recent_messages: usize) -> Folding {
    let newest = history.messages.len().saturating_sub(recent_messages);
    Folding::of(history, |_, unit| unit.members.last().is_some_and(|last| *last < newest))
}

impl Folding {
    /// Folds the old units that can be left out. A unit belongs to the turn in which it begins.
    fn of(history: &History<'_>, is_old: impl Fn(usize, &Unit) -> bool) -> Self {
        let indexed = history.units.iter().enumerate();
        let old = indexed.filter(|(at, unit)| unit.kept.is_none() && is_old(*at, unit));
        let units: Vec<usize> = old.map(|(at, _)| at).collect();
        let turns = turns(history);
        let turn_of = |unit: &usize| turns.partition_point(|turn| turn <= unit);
        let mut of_turns: Vec<usize> = units.iter().map(turn_of).collect();
        of_turns.dedup();
        Self { turns: of_turns.len() as u64, units }
    }

    /// Returns the messages of the units, in the order of the log.
    pub fn messages<'a>(&self, history: &History<'a>) -> Vec<&'a Message> {
        let members = self.units.iter().flat_map(|unit| &history.units[*unit].members);
        let mut indices: Vec<usize> = members.copied().collect();
        indices.sort_unstable();
        indices.into_iter().map(|index| history.messages[index]).collect()
    }
}

/// Returns the indices of the units with which turns begin.
fn turns(history: &History<'_>) -> Vec<usize> {
    let is_user = |unit: &usize| {
        let first = history.units[*unit].members[0];
        history.messages[first].role == Role::User
    };
    (0..history.units.len()).filter(is_user).collect()
}

/// Makes a summary. Joins the counts and words of the earlier summary and of the messages, and
/// adds the summarizer's sentences that pass the check; see [`Summarizer::summarize`]. Leaves these
/// sentences out if the summary would be too large with them.
///
/// # Errors
///
/// [`SummaryError`] when there is nothing to fold, when the summarizer fails, and when the summary
/// is not smaller than the messages and the earlier summary together.
pub fn summarize(
    source: &SummarySource<'_>,
    summarizer: &dyn Summarizer,
) -> Result<SummaryText, SummaryError> {
    if source.messages.is_empty() {
        return Err(SummaryError::Nothing);
    }
    let written = summarizer.summarize(source)?;
    let text = match written.trim() {
        "" => String::new(),
        written => source.confirmed(written),
    };
    let mut summary = SummaryText { counts: source.counts(), text, said: source.said() };
    let source_tokens = source.tokens();
    let mut tokens = source.measure.note(&summary.render());
    if tokens >= source_tokens {
        summary.text.clear();
        tokens = source.measure.note(&summary.render());
    }
    if tokens >= source_tokens {
        return Err(SummaryError::NoSmaller { summary: tokens, source_tokens });
    }
    Ok(summary)
}

impl SummarySource<'_> {
    /// Returns the cost of the messages and the earlier summary, in tokens.
    pub fn tokens(&self) -> u64 {
        let messages: u64 =
            self.messages.iter().map(|message| self.measure.message(message.tokens)).sum();
        messages + self.prior.map_or(0, |prior| self.measure.note(&prior.render()))
    }

    /// Returns what the user said in the messages and the earlier summary, cut to its maximum size.
    fn said(&self) -> UserWords {
        let prior = self.prior.map_or_else(UserWords::default, |prior| prior.said.clone());
        prior.and(self.messages.iter().copied()).within(self.said_tokens, self.measure)
    }

    /// Returns the sentences of a description that the messages and the earlier summary confirm.
    fn confirmed(&self, text: &str) -> String {
        let prior = self.prior.map(SummaryText::render).unwrap_or_default();
        let said = self.messages.iter().flat_map(|message| {
            let calls = message.tool_calls.iter().map(|call| &*call.arguments);
            std::iter::once(&*message.content).chain(calls)
        });
        KnownWords::of(said.chain([&*prior])).confirmed(text)
    }

    fn counts(&self) -> Counts {
        let of = |role: Role| self.messages.iter().filter(|m| m.role == role).count() as u64;
        let calls: usize = self.messages.iter().map(|message| message.tool_calls.len()).sum();
        let prior = self.prior.map(|prior| prior.counts).unwrap_or_default();
        Counts {
            user: prior.user + of(Role::User),
            responses: prior.responses + of(Role::Assistant),
            tool_calls: prior.tool_calls + calls as u64,
            turns: prior.turns + self.turns,
        }
    }
}

impl SummaryText {
    /// Returns the text of the message that replaces the folded messages: a line of counts, the
    /// description, and the user's words.
    pub fn render(&self) -> String {
        let parts = [self.counts.header(), self.text.clone(), self.said.render()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    /// Returns the summary with as many of the user's words as fit into a message of `tokens`
    /// tokens. The description is left out if it would take most of the room. The line of counts
    /// always stays.
    #[must_use]
    pub fn within(&self, tokens: u64, measure: &Measure) -> Self {
        let (text, said) = (self.text.clone(), UserWords::default());
        let mut head = Self { counts: self.counts, text, said };
        if measure.note(&head.render()) > tokens / 2 {
            head.text.clear();
        }
        let left = tokens.saturating_sub(measure.note(&head.render()) + GAP);
        Self { said: self.said.clone().within(left, measure), ..head }
    }
}

impl Counts {
    /// Returns the first line of a summary, which says how much it stands in for.
    pub fn header(&self) -> String {
        let Self { user, responses, tool_calls, turns } = self;
        format!(
            "[Previous conversation summary: {user} user messages, {responses} model responses, \
             {tool_calls} tool calls over {turns} turns]"
        )
    }
}

impl Summarizer for Extractive {
    fn summarize(&self, _: &SummarySource<'_>) -> Result<String, SummaryError> {
        Ok(String::new())
    }
}

mod ahead;
mod check;
mod prompt;

pub use self::ahead::{Ahead, Prepared};
pub use self::prompt::{Asked, TASK};

#[cfg(test)]
mod tests;
