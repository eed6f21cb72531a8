//! The sliding window: the first message, the newest messages, and a note that replaces the rest.

use std::cmp::Reverse;

use super::selection::UnitSelection;
use super::{Aim, Projection, Strategy};
use crate::curation::unit::History;

/// The strategy that keeps the first message and the newest messages.
pub struct Sliding;

const FIRST: &str = "the first message";
const RECENT: &str = "among the newest that fit";
const OLDER: &str = "older than the newest that fit";

impl Strategy for Sliding {
    fn name(&self) -> &'static str {
        "sliding"
    }

    fn keeps(&self) -> &'static str {
        "the first message, and the newest messages that fit"
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        let mut selection = UnitSelection::new(history, history.room(aim.budget));
        if selection.everything_fits() {
            return selection.all();
        }
        if !history.units.is_empty() {
            selection.keep(0, FIRST);
        }
        let mut newest: Vec<usize> = (0..history.units.len()).collect();
        newest.sort_by_key(|unit| Reverse(history.units[*unit].members.last()));
        if let Some(last) = newest.first() {
            selection.keep(*last, RECENT);
        }
        // The note for all messages costs at least as much as a note for fewer.
        let reserved = history.measure.note(&omitted(history.messages.len()));
        let reserved = selection.reserve(reserved);
        for unit in newest {
            if !selection.keep(unit, RECENT) {
                break;
            }
        }
        selection.give_back(reserved);
        let note = omitted(selection.left_out());
        let tokens = history.measure.note(&note);
        selection.finish_with_note(OLDER, note, tokens)
    }
}

/// Returns the text of the note. Clients may recognize it, so its wording is fixed.
fn omitted(messages: usize) -> String {
    format!("[{messages} earlier messages omitted for brevity]")
}

#[cfg(test)]
mod tests;
