//! The ledger: what must survive when messages are left out, found without a model.
//!
//! It has the user's words, and the paths and commands that the work used, each with the number of
//! its message. The words are verbatim and dated by turn: nothing is claimed to hold still, and
//! nothing that a program said counts as the user's. No part of it knows a language. This module
//! depends only on messages and token counts, not on windows or strategies.

mod bound;
pub mod check;
mod command;
mod extract;
mod path;
mod render;
mod used;

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::names::names;
use crate::session::message::Message;

/// The ledger of a conversation, in the order of last mention.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ledger {
    /// Entries. Those of kinds that this program does not know are not read.
    #[serde(deserialize_with = "known")]
    pub entries: Vec<Entry>,
    /// Number of turns that the ledger is made from.
    #[serde(default)]
    pub turns: u64,
    /// Total number of entries that were dropped for lack of room.
    #[serde(default)]
    pub left_out: u64,
}

/// Something that was said or used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// Kind of the entry.
    pub kind: Kind,
    /// Words of the entry, verbatim.
    pub text: String,
    /// Number of the message with its last mention.
    pub origin: u64,
    /// Turn of its last mention, counted from 1; 0 before the first.
    #[serde(default)]
    pub turn: u64,
    /// Number of times that the entry was found.
    pub times: u32,
    /// Source of the words.
    pub voice: Voice,
}

names! {
    /// The kind of an entry. The declaration order is the order in which the kinds are rendered.
    Kind {
        /// Words of the user.
        Said => "said",
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

fn known<'de, D: Deserializer<'de>>(entries: D) -> Result<Vec<Entry>, D::Error> {
    let entries = Vec::<serde_json::Value>::deserialize(entries)?;
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

impl Ledger {
    /// Creates the ledger of `messages`, which must be in the order of the log.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        Self::default().and(messages)
    }

    /// Adds what newer `messages` say, which must be in the order of the log.
    #[must_use]
    pub fn and<'a>(self, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut book = Book { turns: self.turns, ..Book::default() };
        self.entries.into_iter().for_each(|entry| book.add(entry));
        for message in messages {
            extract::message(message, &mut book);
        }
        let mut entries: Vec<Entry> = book.slots.into_iter().flatten().collect();
        entries.sort_by_key(|entry| entry.origin);
        Self { entries, turns: book.turns, left_out: self.left_out }
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

/// A ledger that is being written. Entries that are mentioned again leave empty slots.
#[derive(Default)]
struct Book {
    slots: Vec<Option<Entry>>,
    /// Index in `slots` of each entry.
    places: HashMap<(Kind, String), usize>,
    turns: u64,
}

impl Book {
    /// Adds an entry, or joins it with the older one of the same words.
    fn add(&mut self, mut entry: Entry) {
        let place = self.places.entry((entry.kind, entry.text.clone())).or_insert(usize::MAX);
        if let Some(old) = self.slots.get_mut(*place).and_then(Option::take) {
            entry.times += old.times;
            entry.voice = if old.voice == Voice::Output { entry.voice } else { old.voice };
        }
        *place = self.slots.len();
        self.slots.push(Some(entry));
    }
}

#[cfg(test)]
mod tests;
