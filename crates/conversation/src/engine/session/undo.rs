//! Undo and redo of operations on a session's view.
//!
//! Both make new revisions. Each revision has the operation that the next undo takes back and the
//! one that the next redo makes again; each of these says to which moment to return.

use super::super::{Engine, EngineError};
use super::checkpoint::TurnsMoved;
use crate::session::state::{Moment, SessionState, ViewOperation};
use crate::store::Way;

impl Engine {
    /// Undoes the last pruning, summary, rollback or restoration in the view of a session. Further
    /// calls go further back. Messages added since stay in view. Undoing a rollback, however,
    /// brings back the view and the items from before the rollback.
    ///
    /// # Errors
    /// [`EngineError::NoSessionUndo`].
    pub fn undo_session(&mut self, id: u64) -> Result<(String, TurnsMoved), EngineError> {
        let Some(operation) = self.next_of_session(id, Way::Undo)? else {
            return Err(EngineError::NoSessionUndo(self.row(id)?.name));
        };
        let turns = self.counting_turns(id, |engine| match operation.with_items {
            true => engine.unroll(id, &operation),
            false => engine.undo_view(id, &operation),
        })?;
        Ok((operation.method, turns))
    }

    /// Redoes the operation that was undone last.
    ///
    /// # Errors
    /// [`EngineError::NoSessionRedo`] if nothing was undone, or the session has continued since.
    pub fn redo_session(&mut self, id: u64) -> Result<(String, TurnsMoved), EngineError> {
        let Some(operation) = self.next_of_session(id, Way::Redo)? else {
            return Err(EngineError::NoSessionRedo(self.row(id)?.name));
        };
        let turns = self.counting_turns(id, |engine| engine.redo_view(id, &operation))?;
        Ok((operation.method, turns))
    }

    /// Returns the operation on a session's view that would be undone or redone next, if there is
    /// one.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn next_of_session(
        &mut self,
        id: u64,
        way: Way,
    ) -> Result<Option<ViewOperation>, EngineError> {
        let session = self.session(id)?;
        let state = session.state();
        Ok(match way {
            Way::Undo => state.undo.clone(),
            // The session may have continued since.
            Way::Redo => state.redo.clone().filter(|_| session.length() == state.base),
        })
    }

    /// Makes a revision by `change` that can be undone, unless it shows the same as before.
    pub(super) fn operate(
        &mut self,
        id: u64,
        method: &str,
        change: impl FnOnce(&mut SessionState),
    ) -> Result<(), EngineError> {
        let moment = self.moment_of_view(id)?;
        let before = self.session(id)?.state().rebased(moment.position);
        let mut state = before.clone();
        change(&mut state);
        if !state.shows_same(&before) {
            state.undo = Some(ViewOperation {
                method: method.to_owned(),
                revision: moment.revision + 1,
                moment,
                with_items: false,
            });
        }
        self.revise(id, method, state)
    }

    /// Redoes an operation: returns to the moment before it was undone.
    fn redo_view(&mut self, id: u64, redone: &ViewOperation) -> Result<(), EngineError> {
        let moment = redone.moment;
        let then = self.revision(id, moment.revision)?.state;
        let redo = then.redo.clone().filter(|_| then.base == moment.position);
        let checkpoint_turn = self.session(id)?.state().checkpoint_turn;
        let state = SessionState { redo, checkpoint_turn, ..then.rebased(moment.position) };
        self.revise(id, "redo", state)?;
        if redone.with_items {
            self.restore_items(id, "redo", moment.items)?;
        }
        self.session_changed(id, "redo")
    }

    /// Restores what was in view before an operation. Messages and pins set since then stay.
    fn undo_view(&mut self, id: u64, undone: &ViewOperation) -> Result<(), EngineError> {
        let then = self.revision(id, undone.moment.revision)?.state;
        let redo = ViewOperation { moment: self.moment_of_view(id)?, ..undone.clone() };
        self.change_view(id, "undo", |state| {
            state.active.extend(&then.rebased(undone.moment.position).active);
            (state.pruned, state.summary) = (then.pruned, then.summary);
            // No other operation changes pins.
            if undone.method == "restore" {
                state.pinned = then.pinned;
            }
            (state.undo, state.redo) = (then.undo, Some(redo));
        })?;
        self.session_changed(id, "undo")
    }

    fn moment_of_view(&mut self, id: u64) -> Result<Moment, EngineError> {
        let session = self.session(id)?;
        Ok(Moment { revision: session.revision(), position: session.length(), items: None })
    }
}

#[cfg(test)]
mod tests;
