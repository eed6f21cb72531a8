//! The ledger: what of a conversation must not be lost when its words are, found without a model.
//!
//! File paths, commands, numbers, errors, decisions, constraints and open tasks are taken from the
//! messages word for word, each with the number of its message. What is said later supersedes what
//! was said before. The same messages always give the same ledger. It knows messages and counts,
//! and nothing of windows or strategies.

mod book;
mod bound;
mod command;
mod extract;
mod force;
mod lexicon;
mod number;
mod path;
mod render;
mod sentence;
mod statement;

use serde::{Deserialize, Serialize};

use crate::names::names;
use crate::session::message::Message;

/// What is known of a conversation, in the order in which it was said last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ledger {
    /// What holds now; nothing that was superseded.
    pub entries: Vec<Entry>,
    /// What later words took back, newest last, for an older ledger that may be merged.
    #[serde(default)]
    pub withdrawn: Vec<Withdrawal>,
    /// How many entries had to go for room, in all rounds together.
    #[serde(default)]
    pub left_out: u64,
}

/// Something that was said or seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its words; of a number `SUBJECT: VALUE`.
    pub text: String,
    /// The number of the message that said it last.
    pub origin: u64,
    /// In how many places it was found.
    pub times: u32,
    /// By whom.
    pub voice: Voice,
    /// The quantities in it that a later message can supersede.
    #[serde(default)]
    pub values: Vec<Quantity>,
    /// Whether something that was said later may well have taken its place.
    #[serde(default)]
    pub earlier: bool,
}

/// A number with what it measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Quantity {
    /// What it measures, in the words of the message; empty when only the words before can tell.
    pub subject: String,
    /// The number with its unit, as it was written.
    pub amount: String,
    /// Whether it was observed. What was observed does not supersede what was laid down.
    pub observed: bool,
    /// Whether the subject is not a name, but what words of the sentence could name it.
    #[serde(default)]
    pub loose: bool,
}

/// Words by which something said before no longer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Withdrawal {
    /// What is taken back.
    pub what: Withdrawn,
    /// The words that name it.
    pub words: String,
}

names! {
    /// What an entry is, in the order in which they are shown.
    Kind {
        /// What must or must not be.
        Constraint => "constraint",
        /// What was chosen.
        Decision => "decision",
        /// What the person wanted, asked for or told besides.
        Request => "request",
        /// What is still to be done.
        Task => "task",
        /// A quantity.
        Number => "number",
        /// A line that reports a failure.
        Error => "error",
        /// A file or folder.
        Path => "path",
        /// A line for a shell.
        Command => "command",
    }
}

names! {
    /// Where something was found.
    Voice {
        /// In the words of the person or the system prompt.
        Person => "person",
        /// In the words of the model or in its calls of tools.
        Model => "model",
        /// In the output of a tool, or in quoted code.
        Output => "output",
    }
}

names! {
    /// What kind of thing is taken back.
    Withdrawn {
        /// A task that is done.
        Task => "task",
        /// What had been chosen before.
        Choice => "choice",
        /// What the person had laid down before.
        Rule => "rule",
        /// A path that is another one now.
        Path => "path",
    }
}

impl Ledger {
    /// What is in `messages`, which are in the order of the log.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        Self::default().and(messages)
    }

    /// This ledger and what is in newer messages, in the order of the log. What they say is
    /// understood by what is known: "make it 40 s", "45 s now, 30 s did not work".
    #[must_use]
    pub fn and<'a>(self, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut book = book::Book::open(self);
        for message in messages {
            extract::message(message, &mut book);
        }
        book.close()
    }

    /// This ledger and a newer one as one: entries that both have are joined, and what the newer
    /// one supersedes or withdraws goes.
    #[must_use]
    pub fn merge(self, newer: Self) -> Self {
        let mut book = book::Book::open(self);
        newer.withdrawn.into_iter().for_each(|withdrawal| book.withdraw(withdrawal));
        newer.entries.into_iter().for_each(|entry| book.add(entry));
        book.left_out(newer.left_out);
        book.close()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;
