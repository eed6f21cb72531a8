//! Revisions of a session's view: each change makes one, and each can be restored.

use super::super::{Engine, EngineError};
use crate::session::state::State;
use crate::store::StoreError;
use crate::store::session::{StateRow, StateSummary};

impl Engine {
    /// Stores a state as the session's newest revision and applies it.
    pub(super) fn revise(
        &mut self,
        id: u64,
        method: &str,
        state: State,
    ) -> Result<(), EngineError> {
        let created = self.now();
        let session = self.session(id)?;
        let number = session.revision() + 1;
        let row = StateRow {
            number,
            kind: method.to_owned(),
            base: state.base,
            created,
            state: print(&state)?,
        };
        self.store.append_state(id, &row)?;
        self.touch_session(id);
        self.session_mut(id)?.set_state(state, number);
        Ok(())
    }

    /// Lists the newest revisions of a session, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn list_revisions(
        &mut self,
        id: u64,
        limit: u64,
    ) -> Result<Vec<StateSummary>, EngineError> {
        Ok(self.store.states(id, limit)?)
    }

    /// Restores the view of a revision as a new revision. Messages added since then stay in view.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRevision`].
    pub fn restore_revision(&mut self, id: u64, number: u64) -> Result<(), EngineError> {
        let then = self.revision(id, number)?;
        let until = self.store.state(id, number + 1)?.map(|next| next.base);
        let session = self.session(id)?;
        let mut state = session.state().rebased(session.length());
        state.active.extend(&then.rebased(until.unwrap_or(state.base)).active);
        state.pruned = then.pruned;
        state.summary = then.summary;
        state.pinned = then.pinned;
        self.revise(id, "restore-revision", state)?;
        self.session_changed(id, "restore-revision")
    }

    pub(super) fn revision(&mut self, id: u64, number: u64) -> Result<State, EngineError> {
        if number == 0 {
            return Ok(State::default());
        }
        match self.store.state(id, number)? {
            Some(row) => parse(&row.state),
            None => {
                let newest = self.session(id)?.revision();
                Err(EngineError::NoSuchRevision { number, newest })
            }
        }
    }
}

/// Serializes a state for the store.
pub(super) fn print(state: &State) -> Result<String, EngineError> {
    serde_json::to_string(state).map_err(damaged)
}

/// Parses a stored state.
pub(super) fn parse(text: &str) -> Result<State, EngineError> {
    serde_json::from_str(text).map_err(damaged)
}

fn damaged(error: serde_json::Error) -> EngineError {
    StoreError::Damaged(format!("a session's state: {error}")).into()
}
