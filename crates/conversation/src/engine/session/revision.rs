//! Revisions of a session's view: each change makes one, and each can be restored.

use serde::Serialize;

use super::super::{Engine, EngineError};
use super::checkpoint::TurnsMoved;
use crate::session::state::{Learned, Revision, SessionState};
use crate::store::StoreError;
use crate::store::session::StateRow;
use crate::tokens::Measure;

/// What an operation changed in a session's view.
pub struct Moved {
    /// Number of messages that left the view or came back into it.
    pub messages: usize,
    /// Tokens in view before.
    pub before: u64,
    /// Tokens in view after.
    pub after: u64,
}

/// Methods whose revisions leave an undone change redoable. A revision by any other method is a new
/// change, after which nothing can be redone.
const KEEPS_REDO: [&str; 4] = ["undo", "redo", "checkpoint", "open-session"];

impl Engine {
    /// Stores a state as the session's newest revision and applies it.
    pub(super) fn revise(
        &mut self,
        id: u64,
        method: &str,
        state: SessionState,
    ) -> Result<(), EngineError> {
        let created = self.now();
        let redo = state.redo.filter(|_| KEEPS_REDO.contains(&method));
        let state = SessionState { redo, ..state };
        let session = self.session(id)?;
        let number = session.revision() + 1;
        let revision = Revision { state, learned: session.learned() };
        let row = StateRow {
            number,
            kind: method.to_owned(),
            base: revision.state.base,
            created,
            state: print(&revision)?,
        };
        self.store.change()?.append_state(id, &row)?;
        self.sessions.touch(id);
        self.loaded(id)?.session.set_state(revision.state, number);
        Ok(())
    }

    /// Stores and applies a revision made by `change` from the current state. `change` gets the
    /// state with its `base` raised to the end of the log; see [`SessionState::rebased`].
    pub(super) fn change_view(
        &mut self,
        id: u64,
        method: &str,
        change: impl FnOnce(&mut SessionState),
    ) -> Result<(), EngineError> {
        let session = self.session(id)?;
        let mut state = session.state().rebased(session.length());
        change(&mut state);
        self.revise(id, method, state)
    }

    /// Stores the figures that were learned from the session's turns, without a new revision.
    pub(super) fn learn(&mut self, id: u64, learned: Learned) -> Result<(), EngineError> {
        if self.session(id)?.learned() == learned {
            return Ok(());
        }
        let text = print(&learned)?;
        self.store.change()?.set_learned(id, &text)?;
        self.sessions.change_row(id, |row| row.learned = text);
        self.loaded(id)?.session.set_learned(learned);
        Ok(())
    }

    /// Makes sure that the newest revision includes the figures that were learned from turns: if
    /// not, adds a revision made by `method`.
    pub(super) fn settle_learned(&mut self, id: u64, method: &str) -> Result<(), EngineError> {
        let session = self.session(id)?;
        let (number, learned) = (session.revision(), session.learned());
        if self.revision(id, number)?.learned == learned {
            return Ok(());
        }
        self.change_view(id, method, |_| {})
    }

    /// Restores the view of a revision as a new revision. Messages added since then stay in view.
    ///
    /// # Errors
    /// [`EngineError::NoSuchOperation`].
    pub fn restore_view(&mut self, id: u64, number: u64) -> Result<TurnsMoved, EngineError> {
        self.counting_turns(id, |engine| engine.restore_revision(id, number))
    }

    fn restore_revision(&mut self, id: u64, number: u64) -> Result<(), EngineError> {
        let then = self.revision(id, number)?.state;
        let until = self.store.read().state(id, number + 1)?.map(|next| next.base);
        self.operate(id, "restore", |state| {
            state.active.extend(&then.rebased(until.unwrap_or(state.base)).active);
            (state.pruned, state.pinned) = (then.pruned, then.pinned);
            state.summary = then.summary;
        })?;
        self.session_changed(id, "restore")
    }

    /// Returns what the operation that made revision `number` changed in the view of the messages
    /// that there were then.
    ///
    /// # Errors
    /// [`EngineError::NoSuchOperation`].
    pub fn moved_in_view(
        &mut self,
        id: u64,
        number: u64,
        measure: &Measure,
    ) -> Result<Moved, EngineError> {
        let now = self.revision(id, number)?.state;
        let then = self.revision(id, number.saturating_sub(1))?.state;
        let of_summary = |state: &SessionState| {
            state.summary.as_ref().map_or(0, |summary| measure.message(summary.tokens))
        };
        let (before, after) = (of_summary(&then), of_summary(&now));
        let mut moved = Moved { messages: 0, before, after };
        for message in self.session(id)?.log().iter().take_while(|it| it.number <= now.base) {
            let [was, is] = [&then, &now].map(|state| state.is_in_view(message.number));
            let tokens = measure.message(message.tokens);
            moved.messages += usize::from(was != is);
            moved.before += if was { tokens } else { 0 };
            moved.after += if is { tokens } else { 0 };
        }
        Ok(moved)
    }

    pub(super) fn revision(&mut self, id: u64, number: u64) -> Result<Revision, EngineError> {
        if number == 0 {
            return Ok(Revision::default());
        }
        match self.store.read().state(id, number)? {
            Some(row) => parse(&row.state),
            None => {
                let newest = self.session(id)?.revision();
                Err(EngineError::NoSuchOperation { number, newest })
            }
        }
    }
}

fn print(state: &impl Serialize) -> Result<String, EngineError> {
    serde_json::to_string(state).map_err(damaged)
}

pub(super) fn parse(text: &str) -> Result<Revision, EngineError> {
    Revision::parse(text).map_err(damaged)
}

pub(super) fn parse_learned(text: &str) -> Result<Learned, EngineError> {
    serde_json::from_str(text).map_err(damaged)
}

fn damaged(error: serde_json::Error) -> EngineError {
    StoreError::Damaged(format!("a session's state: {error}")).into()
}
