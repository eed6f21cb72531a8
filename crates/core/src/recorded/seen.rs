//! Which records and messages are new, where a recording was read before, and which are no longer
//! part of the session.

use super::RecordedMessage;
use super::gathered::Gathered;
use super::hash::{hash, nth, record_hash};
use super::mark::MessageCounts;
use super::rewound::Rewound;
use crate::session::message::Role;

impl Gathered {
    /// Leaves out the records before which the user went back. The messages that an earlier reading
    /// returned for such records are gone.
    pub(super) fn set_rewound(&mut self, rewound: Rewound) {
        let first = self.mark.prompts.iter().position(|(id, _)| rewound.has_hash(*id));
        if let Some((_, before)) = first.map(|at| self.mark.prompts[at]) {
            self.mark.prompts.retain(|(id, _)| !rewound.has_hash(*id));
            if before < self.mark.messages {
                self.gone = Some((before + 1, self.mark.messages));
            }
        }
        self.rewound = rewound;
    }

    /// Keeps what was found gone from being found again, once it was told.
    pub(super) fn note_gone(&mut self) {
        self.is_telling_anew = true;
    }

    /// Remembers the number of messages before the user's message that was just added, and the id
    /// of its record.
    pub(super) fn note_prompt(&mut self, id: &str) {
        if self.last.as_ref().is_some_and(|last| last.role == Role::User) && self.held.is_empty() {
            self.mark.prompts.push((record_hash(id), self.mark.messages));
        }
    }

    /// Returns whether a record with this id is new. Another record with the same id is counted as
    /// left out, unless the recording is read again from its beginning.
    pub(super) fn is_new_record(&mut self, id: &str) -> bool {
        let is_new = self.mark.seen.insert(record_hash(id));
        if !is_new && !self.is_anew {
            self.leave_out("repeated record", "it has the id of an earlier record");
        }
        is_new
    }

    /// Returns whether a message is new, for formats whose records have no ids. In a reading from
    /// the beginning, the n-th of several equal messages is not new if n of them were returned
    /// before. In a reading that continues, all messages are new.
    pub(super) fn is_new_message(&mut self, message: &RecordedMessage) -> bool {
        let time = message.timestamp.map_or(String::new(), |time| time.to_string());
        let mut parts = vec![message.role.name(), &message.content, &time];
        parts.extend(message.tool_calls.iter().flat_map(|it| [&*it.name, &*it.arguments]));
        let own = hash(&parts);
        match &mut self.equal {
            Some(equal) => {
                let before = equal.entry(own).or_default();
                *before += 1;
                self.mark.seen.insert(nth(own, *before))
            }
            None => {
                // Most messages are unlike any other, so this loop is short.
                (1..u64::MAX).any(|before| self.mark.seen.insert(nth(own, before)))
            }
        }
    }

    /// Returns whether a message is to be returned. In a reading from the beginning, a message may
    /// differ within the last turn of the earlier reading. Then the turn has grown: its messages
    /// from there on are gone, and are returned anew.
    pub(super) fn is_wanted(&mut self, message: &RecordedMessage) -> bool {
        self.position += 1;
        if message.role == Role::User {
            self.mark.counts.turn = self.position;
        }
        self.mark.counts.live = self.position;
        let is_new = self.is_new_message(message);
        let MessageCounts { live, turn } = self.before;
        let is_told = self.gone.is_some() || self.is_telling_anew;
        if is_new && self.is_anew && !is_told && self.position <= live {
            self.is_edited |= self.position <= turn;
            let gone = live + 1 - self.position;
            if !self.is_edited && gone <= self.returned {
                self.gone = Some((self.returned + 1 - gone, self.returned));
            }
        }
        is_new || self.gone.is_some() || self.is_telling_anew
    }
}
