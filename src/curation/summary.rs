//! Summaries: what of a history is folded into a few words, and what those words are.
//!
//! A summary stands for the units that it folds; a later one folds it in with more units, so that
//! there is one at most. It knows no provider and no store: whoever has a provider gives its text,
//! and the ledger is added to it all the same.

use serde::{Deserialize, Serialize};

use super::ledger::Ledger;
use super::unit::{History, Unit};
use crate::session::message::{Message, Role};
use crate::tokens::Measure;

/// What stands for a part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// How much it stands for.
    pub counts: Counts,
    /// What was told of it; empty when the ledger stands alone.
    #[serde(default)]
    pub text: String,
    /// What must not be lost of it.
    pub ledger: Ledger,
}

/// How much a summary stands for, since the conversation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Messages of the user.
    pub user: u64,
    /// Messages of the model.
    pub responses: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Turns of which it folds anything; a turn begins with a message of the user.
    pub turns: u64,
}

/// What is to be summarized.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The summary of what came before, which the new one takes the place of.
    pub prior: Option<&'a Summary>,
    /// The messages, in the order of the log.
    pub messages: &'a [&'a Message],
    /// How many turns they are of, beside those of the prior summary; see [`Folding::turns`].
    pub turns: u64,
    /// What things cost.
    pub measure: &'a Measure,
    /// How many tokens the ledger may have; the rule of what goes first is
    /// [`Ledger::within`]'s.
    pub ledger_tokens: u64,
}

/// What of a history a summary would fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folding {
    /// Indices of the units, in their order.
    pub units: Vec<usize>,
    /// How many turns they are of.
    pub turns: u64,
}

/// Tells a part of a conversation in a few words.
pub trait Summarizer {
    /// The words; empty when the ledger shall stand alone.
    ///
    /// # Errors
    ///
    /// [`SummaryError::Failed`] when there are none, for instance because a provider is down.
    fn summarize(&self, source: &Source<'_>) -> Result<String, SummaryError>;
}

/// Needs no provider: the ledger says it all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extractive;

/// Why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// There are no messages to be folded.
    #[error("there is nothing to summarize, all that is in view is recent or never left out")]
    Nothing,
    /// It would make the window larger.
    #[error(
        "the summary has {summary} tokens, its source only {source_tokens}, so nothing is folded"
    )]
    NoSmaller {
        /// What the summary would cost.
        summary: u64,
        /// What it would stand for costs.
        source_tokens: u64,
    },
    /// The summarizer failed.
    #[error("the summarizer failed: {0}")]
    Failed(String),
}

/// What of a history is to be folded: all but the last `recent_turns` turns and what is never lost.
/// A unit is of the turn in which it begins.
pub fn folding(history: &History<'_>, recent_turns: usize) -> Folding {
    let turns = turns(history);
    let end = match recent_turns {
        0 => history.units.len(),
        _ => turns.len().checked_sub(recent_turns).map_or(0, |at| turns[at]),
    };
    let units: Vec<usize> = (0..end).filter(|at| history.units[*at].kept.is_none()).collect();
    Folding { turns: turns_of(history, &units), units }
}

/// The same by messages: all units but those that reach into the last `recent_messages`, and but
/// what is never lost.
pub fn folding_messages(history: &History<'_>, recent_messages: usize) -> Folding {
    let newest = history.messages.len().saturating_sub(recent_messages);
    let is_old = |unit: &&Unit| {
        unit.kept.is_none() && unit.members.last().is_some_and(|last| *last < newest)
    };
    let indexed = history.units.iter().enumerate();
    let units: Vec<usize> = indexed.filter(|(_, unit)| is_old(unit)).map(|(at, _)| at).collect();
    Folding { turns: turns_of(history, &units), units }
}

impl Folding {
    /// The messages of the units, in the order of the log.
    pub fn messages<'a>(&self, history: &History<'a>) -> Vec<&'a Message> {
        let members = self.units.iter().flat_map(|unit| &history.units[*unit].members);
        let mut indices: Vec<usize> = members.copied().collect();
        indices.sort_unstable();
        indices.into_iter().map(|index| history.messages[index]).collect()
    }
}

/// The units with which the turns begin.
fn turns(history: &History<'_>) -> Vec<usize> {
    let is_user = |unit: &usize| {
        let first = history.units[*unit].members[0];
        history.messages[first].role == Role::User
    };
    (0..history.units.len()).filter(is_user).collect()
}

/// Of how many turns the units are; a unit is of the turn in which it begins.
fn turns_of(history: &History<'_>, units: &[usize]) -> u64 {
    let turns = turns(history);
    let mut of_turns: Vec<usize> =
        units.iter().map(|unit| turns.partition_point(|turn| turn <= unit)).collect();
    of_turns.dedup();
    of_turns.len() as u64
}

/// Summarizes: the counts and ledgers of the prior summary and of the messages are joined, and the
/// summarizer's words are put before them.
///
/// # Errors
///
/// [`SummaryError`] when there is nothing to fold, when the summarizer fails, and when the summary
/// is not smaller than the messages and the prior summary together.
pub fn summarize(
    source: &Source<'_>,
    summarizer: &dyn Summarizer,
) -> Result<Summary, SummaryError> {
    if source.messages.is_empty() {
        return Err(SummaryError::Nothing);
    }
    let ledger = source.prior.map_or_else(Ledger::default, |prior| prior.ledger.clone());
    let summary = Summary {
        counts: source.counts(),
        text: summarizer.summarize(source)?.trim().to_owned(),
        ledger: ledger
            .and(source.messages.iter().copied())
            .within(source.ledger_tokens, source.measure),
    };
    let (source_tokens, tokens) = (source.tokens(), source.measure.note(&summary.render()));
    if tokens >= source_tokens {
        return Err(SummaryError::NoSmaller { summary: tokens, source_tokens });
    }
    Ok(summary)
}

impl Source<'_> {
    /// What the messages and the prior summary cost.
    pub fn tokens(&self) -> u64 {
        let messages: u64 =
            self.messages.iter().map(|message| self.measure.message(message.tokens)).sum();
        messages + self.prior.map_or(0, |prior| self.measure.note(&prior.render()))
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

impl Summary {
    /// The text of the message that stands for the folded ones: a line of counts, what was told,
    /// and the ledger.
    pub fn render(&self) -> String {
        let ledger = self.ledger.render();
        let parts = [self.counts.header(), self.text.clone(), ledger];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

impl Counts {
    /// The first line of a summary.
    pub fn header(&self) -> String {
        let Self { user, responses, tool_calls, turns } = self;
        format!(
            "[Previous conversation summary: {user} user messages, {responses} model responses, \
             {tool_calls} tool calls over {turns} turns]"
        )
    }
}

impl Summarizer for Extractive {
    fn summarize(&self, _: &Source<'_>) -> Result<String, SummaryError> {
        Ok(String::new())
    }
}

#[cfg(test)]
mod tests;
