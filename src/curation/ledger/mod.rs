//! The ledger: facts of a conversation that must survive when its messages are left out, found
//! without a model.
//!
//! File paths, commands, numbers, errors, decisions, constraints and open tasks are taken from the
//! messages, mostly word for word, each with the number of its message. Later statements supersede
//! earlier statements. The same messages always give the same ledger. This module depends only on
//! messages and token counts, not on windows or strategies.

mod amount;
mod book;
mod bound;
pub(crate) mod check;
mod choice;
mod command;
mod extract;
mod force;
mod lexicon;
mod number;
mod path;
mod phrases;
mod render;
mod same;
mod sentence;
mod statement;
mod subject;
mod used;

use serde::{Deserialize, Serialize};

use crate::names::names;
use crate::session::message::Message;

/// The facts of a conversation, in the order of their last mention.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ledger {
    /// Entries, without those that were superseded or withdrawn.
    pub entries: Vec<Entry>,
    /// Withdrawals of earlier entries, newest last. They also apply to the entries of an older
    /// ledger that is merged with this one.
    #[serde(default)]
    pub withdrawn: Vec<Withdrawal>,
    /// Total number of entries that were dropped for lack of room.
    #[serde(default)]
    pub left_out: u64,
}

/// A fact that was said or seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// Kind of the entry.
    pub kind: Kind,
    /// Words of the entry; for a number whose subject is known, `SUBJECT: AMOUNT`.
    pub text: String,
    /// Number of the message with its last mention.
    pub origin: u64,
    /// Number of times that the entry was found.
    pub times: u32,
    /// Source of the words.
    pub voice: Voice,
    /// Quantities in the text that a later message can supersede.
    #[serde(default)]
    pub values: Vec<Quantity>,
    /// True if a later statement may have replaced the entry.
    #[serde(default)]
    pub earlier: bool,
}

/// A number with the thing it measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Quantity {
    /// Thing that is measured, in the words of the message. Empty if only earlier messages name the
    /// thing.
    pub subject: String,
    /// Number with its unit, as it was written.
    pub amount: String,
    /// True if the number was observed, not stated. Observed numbers do not supersede stated ones,
    /// except that the output of a tool supersedes what the model stated.
    pub observed: bool,
    /// True if the subject is not the thing's name, but lists all names in the sentence that could
    /// mean the thing.
    #[serde(default)]
    pub loose: bool,
}

/// Words that take back an earlier entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Withdrawal {
    /// Kind of thing that is taken back.
    pub what: Withdrawn,
    /// Words that name the thing.
    pub words: String,
}

names! {
    /// The kind of an entry. The declaration order is the order in which the kinds are rendered.
    Kind {
        /// Something that must or must not be.
        Constraint => "constraint",
        /// Something that was chosen.
        Decision => "decision",
        /// Any other wish, request or remark of the user.
        Request => "request",
        /// Something that is still to be done.
        Task => "task",
        /// A quantity.
        Number => "number",
        /// A line that reports a failure.
        Error => "error",
        /// A file or folder.
        Path => "path",
        /// A command line for a shell.
        Command => "command",
    }
}

names! {
    /// The source of an entry.
    Voice {
        /// Words of the user or the system prompt.
        Person => "person",
        /// Words of the model or its tool calls.
        Model => "model",
        /// The output of a tool, a notice that the agent itself wrote, or quoted code.
        Output => "output",
    }
}

names! {
    /// The kind of thing that is taken back.
    Withdrawn {
        /// A task that is done.
        Task => "task",
        /// An earlier choice.
        Choice => "choice",
        /// An earlier rule of the user.
        Rule => "rule",
        /// A path that has a new name.
        Path => "path",
    }
}

impl Ledger {
    /// Creates the ledger of `messages`, which must be in the order of the log.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        Self::default().and(messages)
    }

    /// Adds the facts of newer `messages`, which must be in the order of the log. The existing
    /// entries show what the messages refer to, as in "make it 40 s" or "45 s now, 30 s did not
    /// work".
    #[must_use]
    pub fn and<'a>(self, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut book = book::Book::open(self);
        for message in messages {
            extract::message(message, &mut book);
        }
        book.close()
    }

    /// Merges this ledger with a newer one. Joins entries that both ledgers have, and drops this
    /// ledger's entries that the newer one supersedes or withdraws.
    #[must_use]
    pub fn merge(self, newer: Self) -> Self {
        let mut book = book::Book::open(self);
        newer.withdrawn.into_iter().for_each(|withdrawal| book.withdraw(withdrawal));
        newer.entries.into_iter().for_each(|entry| book.add(entry));
        book.left_out(newer.left_out);
        book.close()
    }

    /// Removes the entries of some kinds. The removed entries do not count as left out.
    #[must_use]
    pub fn without(mut self, kinds: &[Kind]) -> Self {
        self.entries.retain(|entry| !kinds.contains(&entry.kind));
        self
    }

    /// Returns whether the ledger has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;
