//! Turns messages that leave a session's view into memories: a few immediately, many in steps
//! between other requests.
//!
//! The remaining work is stored with the request that caused it, and so survives a restart. A
//! search for memories first finishes that work, so that the search misses nothing.

use std::sync::Arc;

use super::archiving::Archiving;
use super::memory::ARCHIVED;
use super::{Engine, EngineError};
use crate::session::message::Message;
use crate::session::spans::Spans;
use crate::store::StoreError;
use crate::store::memory::{MemoryOrigin, MemoryScope, NewMemory, ToArchive};

/// Maximum number of bytes of a message to store in a memory.
const ARCHIVED_BYTES: usize = 8 << 10;
/// Maximum number of messages to archive in one step.
const STEP: usize = 128;

impl Engine {
    /// Turns each message with text into a memory, now or later. Returns the number of these
    /// messages.
    pub(super) fn archive(
        &mut self,
        session: u64,
        messages: &[&Arc<Message>],
    ) -> Result<u64, EngineError> {
        let created = self.now();
        let has_text = |message: &&Arc<Message>| !message.content.trim().is_empty();
        let telling: Vec<&Arc<Message>> = messages.iter().copied().filter(has_text).collect();
        if telling.len() > STEP || (self.archiving.is_due && !telling.is_empty()) {
            let numbers: Spans = telling.iter().map(|message| message.number).collect();
            self.store.change()?.put_off_archive(session, &numbers, created)?;
            self.archiving.is_due = true;
            self.archiving.is_stalled = false;
        } else {
            for message in &telling {
                self.store.change()?.add_memory(&memory_of(session, message, created))?;
            }
        }
        Ok(telling.len() as u64)
    }

    /// Returns whether the engine's loop should call [`do_put_off`](Self::do_put_off): messages may
    /// be waiting to become memories, the last call did not fail, and the store accepts changes.
    pub(super) fn has_put_off(&self) -> bool {
        self.archiving.is_due && !self.archiving.is_stalled && self.refusal().is_none()
    }

    /// Turns the next waiting messages into memories and commits them. Logs a failure.
    pub(super) fn do_put_off(&mut self) {
        let done = self.request(Self::archive_step);
        let kept = self.commit();
        if let Err(error) = done.map(drop).and(kept) {
            self.archiving.is_stalled = true;
            tracing::error!("cannot turn messages that left the view into memories yet: {error}");
        }
    }

    /// Turns all waiting messages into memories within the running request. Does nothing while the
    /// store accepts no changes.
    pub(super) fn finish_put_off(&mut self) -> Result<(), EngineError> {
        while self.do_one_put_off()? {}
        Ok(())
    }

    /// Turns the next waiting messages into memories within the running request. Returns false if
    /// none are waiting or the store accepts no changes.
    pub(super) fn do_one_put_off(&mut self) -> Result<bool, EngineError> {
        if !self.archiving.is_due || self.refusal().is_some() {
            return Ok(false);
        }
        self.archive_step()?;
        Ok(true)
    }

    fn archive_step(&mut self) -> Result<(), EngineError> {
        let read = match self.archiving.oldest.take() {
            Some(read) => Some(read),
            None => self.store.read().next_to_archive()?,
        };
        let Some(work) = read else {
            self.archiving = Archiving::default();
            return Ok(());
        };
        let left = work.messages.iter().skip_while(|number| *number <= work.done);
        let now: Spans = left.take(STEP).collect();
        for message in self.messages_to_archive(work.session, &now)? {
            self.store.change()?.add_memory(&memory_of(work.session, &message, work.created))?;
        }
        let done = now.last().filter(|last| Some(*last) < work.messages.last());
        self.store.change()?.note_archived(work.id, done)?;
        self.archiving.oldest = done.map(|done| ToArchive { done, ..work });
        self.archiving.is_stalled = false;
        Ok(())
    }

    /// Reads the messages with these numbers. If a message is damaged, leaves out its whole range
    /// in `numbers`, so that the other ranges still become memories.
    fn messages_to_archive(
        &mut self,
        session: u64,
        numbers: &Spans,
    ) -> Result<Vec<Message>, EngineError> {
        let mut messages = Vec::new();
        for &(first, last) in numbers.ranges() {
            match self.store.read().messages(session, first, last) {
                Ok(read) => messages.extend(read),
                Err(StoreError::Damaged(why)) => {
                    tracing::error!(
                        "cannot turn messages {first} to {last} of ses-{session} into memories: {why}"
                    );
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(messages)
    }
}

fn memory_of(session: u64, message: &Message, created: i64) -> NewMemory {
    let end = message.content.floor_char_boundary(ARCHIVED_BYTES);
    NewMemory {
        scope: MemoryScope::Session(session),
        kind: ARCHIVED.to_owned(),
        origin: Some(MemoryOrigin { session, first: message.number, last: message.number }),
        content: format!("{}: {}", message.role.name(), &message.content[..end]),
        created,
    }
}

#[cfg(test)]
mod tests;
