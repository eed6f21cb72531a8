//! Undo and redo of changes to a session's view.
//!
//! Both make new revisions. A revision made by an undo records the undone change, and a redo
//! returns to the moment before the undo.

use serde::Serialize;

use super::super::{Engine, EngineError};
use super::checkpoint::Undone;
use super::revision::parse;
use crate::session::state::{Moment, Redo, State};
use crate::store::Way;

/// Methods whose changes to the view are steps that can be undone one by one.
const STEPS: [&str; 5] =
    ["prune-session", "summarize-session", "process-turn", "rollback", "restore-revision"];

/// Methods that undo or redo. Their revisions record what is undone.
const TURNS_BACK: [&str; 3] = ["undo-session", "redo-session", "undo-rollback"];

/// A change to a session's view that would be undone or redone next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "server", schemars(rename = "NextSessionChange"))]
pub(crate) struct SessionStep {
    /// Method that made the change.
    pub(crate) method: String,
    /// Number of the revision that the change made; for a redo, of the revision to return to.
    pub(crate) revision: u64,
}

impl Engine {
    /// Undoes the last pruning, summary, rollback or restoration in the view of a session. Further
    /// calls go further back. Messages added since stay in view. Undoing a rollback, however,
    /// brings back the view and the items from before the rollback.
    ///
    /// # Errors
    /// [`EngineError::NoSessionUndo`].
    pub(crate) fn undo_session(&mut self, id: u64) -> Result<(SessionStep, Undone), EngineError> {
        let Some(step) = self.next_undo(id)? else {
            return Err(EngineError::NoSessionUndo(self.row(id)?.name));
        };
        let state = self.revision(id, step.revision)?.state;
        let before_rollback = state.before_rollback.filter(|_| step.method == "rollback");
        let turns = self.counting_turns(id, |engine| match before_rollback {
            Some(moment) => engine.unroll(id, "undo-session", moment),
            None => engine.undo_view(id, &step, &state),
        })?;
        Ok((step, turns))
    }

    /// Redoes the change that was undone last.
    ///
    /// # Errors
    /// [`EngineError::NoSessionRedo`] if nothing was undone, or the session has continued since.
    pub(crate) fn redo_session(&mut self, id: u64) -> Result<(SessionStep, Undone), EngineError> {
        let Some(redo) = self.redo_of(id)? else {
            return Err(EngineError::NoSessionRedo(self.row(id)?.name));
        };
        let step = SessionStep { method: redo.method.clone(), revision: redo.moment.revision };
        let turns = self.counting_turns(id, |engine| engine.redo_view(id, &redo))?;
        Ok((step, turns))
    }

    /// Redoes a change: returns to the moment before the change was undone.
    fn redo_view(&mut self, id: u64, redone: &Redo) -> Result<(), EngineError> {
        let moment = redone.moment;
        let then = self.revision(id, moment.revision)?.state;
        let redo = then.redo.clone().filter(|_| then.base == moment.position);
        let checkpoint_turn = self.session(id)?.state().checkpoint_turn;
        let state = State { redo, checkpoint_turn, ..then.rebased(moment.position) };
        self.revise(id, "redo-session", state)?;
        if redone.with_items {
            self.restore_items(id, "redo-session", moment.items)?;
        }
        self.session_changed(id, "redo-session")
    }

    /// Returns the change to a session's view that would be undone or redone next, if there is one.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub(crate) fn next_session_step(
        &mut self,
        id: u64,
        way: Way,
    ) -> Result<Option<SessionStep>, EngineError> {
        let step = |Redo { method, moment, .. }| SessionStep { method, revision: moment.revision };
        match way {
            Way::Undo => self.next_undo(id),
            Way::Redo => Ok(self.redo_of(id)?.map(step)),
        }
    }

    /// Restores what was in view before a step that made the revision `made`.
    fn undo_view(&mut self, id: u64, step: &SessionStep, made: &State) -> Result<(), EngineError> {
        let then = self.revision(id, step.revision - 1)?.state;
        let session = self.session(id)?;
        let (revision, position) = (session.revision(), session.length());
        let moment = Moment { revision, position, items: None };
        let redo = Redo { method: step.method.clone(), moment, with_items: false };
        self.change_view(id, "undo-session", |state| {
            state.active.extend(&then.rebased(made.base).active);
            (state.pruned, state.summary) = (then.pruned, then.summary);
            // The other steps do not change pins, and pins set since then stay.
            if step.method == "restore-revision" {
                state.pinned = then.pinned;
            }
            state.redo = Some(redo);
        })?;
        self.session_changed(id, "undo-session")
    }

    /// Returns the change that was undone last, if the session has not continued since.
    fn redo_of(&mut self, id: u64) -> Result<Option<Redo>, EngineError> {
        let session = self.session(id)?;
        let is_last = session.length() == session.state().base;
        Ok(session.state().redo.clone().filter(|_| is_last))
    }

    /// Returns the newest change to the view that has not been undone, if there is one.
    fn next_undo(&mut self, id: u64) -> Result<Option<SessionStep>, EngineError> {
        let kinds = [&STEPS[..], &TURNS_BACK[..]].concat();
        let mut below = self.session(id)?.revision() + 1;
        let (mut undone, mut redone) = (0_u64, 0_u64);
        while let Some(row) = self.store.read().last_state_of(id, below, &kinds)? {
            let revision = row.number;
            below = revision;
            match &*row.kind {
                "redo-session" => redone += 1,
                "undo-session" | "undo-rollback" if redone > 0 => redone -= 1,
                "undo-session" => undone += 1,
                // This step undid the rollback and everything after it.
                "undo-rollback" => {
                    let before = self.revision(id, revision - 1)?.state.before_rollback;
                    below = before.map_or(revision, |moment| moment.revision + 1);
                }
                _ => {
                    let state = parse(&row.state)?.state;
                    if !state.shows_same(&self.revision(id, revision - 1)?.state) {
                        if undone == 0 {
                            return Ok(Some(SessionStep { method: row.kind, revision }));
                        }
                        undone -= 1;
                    }
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
