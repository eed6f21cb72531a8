//! Checkpoints: snapshots of a session to roll back to or fork from.

use serde::{Deserialize, Serialize};

use super::super::{Engine, EngineError, Event};
use super::{OpenedSession, SessionSettings};
use crate::context::change::Slot;
use crate::session::state::{Moment, Revision, SessionState, ViewOperation};
use crate::store::session::{CheckpointRow, NewCheckpoint, NewSession};

/// Result of a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledBack {
    /// Checkpoint that was restored.
    pub checkpoint: u64,
    /// Number of turns that left the conversation; their messages stay in the log.
    pub turns_lost: u64,
    /// Number of messages that left the conversation.
    pub messages_lost: u64,
}

/// Number of turns that an undo or redo in a session moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnsMoved {
    /// Number of turns restored.
    pub turns_restored: u64,
    /// Number of turns that left the conversation, such as those made since the rollback.
    pub turns_lost: u64,
}

impl Engine {
    /// Takes a checkpoint of a session and returns its number. Returns `None` if the session keeps
    /// no versions because its setting `versioning` is off.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn checkpoint(&mut self, id: u64, message: &str) -> Result<Option<u64>, EngineError> {
        if !self.keeps_versions(id)? {
            return Ok(None);
        }
        let position = self.session(id)?.length();
        self.checkpoint_at(id, position, message, false).map(Some)
    }

    /// Restores the view, pins and items of a checkpoint, by default the last one. The checkpoint
    /// is kept, all later messages stay in the log, and the rollback can be undone.
    ///
    /// # Errors
    /// [`EngineError::NoVersioning`] if the session keeps no versions,
    /// [`EngineError::NoCheckpoint`] if the checkpoint does not exist.
    pub fn rollback(
        &mut self,
        id: u64,
        checkpoint: Option<u64>,
    ) -> Result<RolledBack, EngineError> {
        if !self.keeps_versions(id)? {
            return Err(EngineError::NoVersioning(self.row(id)?.name));
        }
        let target = self.find_checkpoint(id, checkpoint)?;
        self.roll_back_to(id, &target, None)
    }

    /// Rolls back to a checkpoint of the session. The message `kept` stays in view.
    pub(super) fn roll_back_to(
        &mut self,
        id: u64,
        target: &CheckpointRow,
        kept: Option<u64>,
    ) -> Result<RolledBack, EngineError> {
        self.settle_learned(id, "rollback")?;
        let moment = self.moment(id)?;
        let (turns, messages) = self.size_of(id)?;
        let (method, revision) = ("rollback".to_owned(), moment.revision + 1);
        self.go_back(id, "rollback", moment_of(target), |state| {
            state.undo = Some(ViewOperation { method, revision, moment, with_items: true });
            if let Some(kept) = kept {
                state.active.insert(kept, kept);
            }
        })?;
        let (turns_left, messages_left) = self.size_of(id)?;
        Ok(RolledBack {
            checkpoint: target.id,
            turns_lost: turns.saturating_sub(turns_left),
            messages_lost: messages.saturating_sub(messages_left),
        })
    }

    /// Runs an operation, and returns how many turns it restored to the conversation and how many
    /// it removed.
    pub(super) fn counting_turns(
        &mut self,
        id: u64,
        operation: impl FnOnce(&mut Self) -> Result<(), EngineError>,
    ) -> Result<TurnsMoved, EngineError> {
        let before: Vec<u64> = self.session(id)?.turn_numbers().collect();
        operation(self)?;
        let after: Vec<u64> = self.session(id)?.turn_numbers().collect();
        let missing = |from: &[u64], of: &[u64]| {
            of.iter().filter(|number| from.binary_search(number).is_err()).count() as u64
        };
        Ok(TurnsMoved {
            turns_restored: missing(&before, &after),
            turns_lost: missing(&after, &before),
        })
    }

    /// Goes back to the moment before a rollback. The rollback can be redone afterwards.
    pub(super) fn unroll(&mut self, id: u64, undone: &ViewOperation) -> Result<(), EngineError> {
        let redo = ViewOperation { moment: self.moment(id)?, ..undone.clone() };
        self.go_back(id, "undo", undone.moment, |state| state.redo = Some(redo))
    }

    /// Creates a session that continues session `id`, from a checkpoint or from its current state,
    /// and makes the new session current.
    ///
    /// # Errors
    /// [`EngineError::SessionExists`], [`EngineError::NoCheckpoint`].
    pub fn fork_session(
        &mut self,
        id: u64,
        checkpoint: Option<u64>,
        new: NewSession,
    ) -> Result<OpenedSession, EngineError> {
        self.check_name_is_free(&new.name, 0)?;
        let from = match checkpoint {
            None => {
                self.settle_learned(id, "open-session")?;
                self.moment(id)?
            }
            Some(_) => moment_of(&self.find_checkpoint(id, checkpoint)?),
        };
        let Revision { state, learned } = self.revision(id, from.revision)?;
        let parent = Some((id, from.position));
        let fork = self.create_session(NewSession { parent, ..new }, "open-session")?;
        self.learn(fork, learned)?;
        let state = SessionState::back_at(&state, from.position, from.position);
        self.revise(fork, "open-session", SessionState { undo: None, redo: None, ..state })?;
        if let Some(set) = from.items {
            let manager = self.row(fork)?.manager_name();
            let items = self.copies(set)?;
            self.add("open-session", &manager, items)?;
        }
        self.sessions.make_current(fork);
        Ok(OpenedSession { id: fork, created: true })
    }

    /// Takes a checkpoint of the session's current view without the messages after `position`.
    pub(super) fn checkpoint_at(
        &mut self,
        id: u64,
        position: u64,
        message: &str,
        automatic: bool,
    ) -> Result<u64, EngineError> {
        let session = self.session(id)?;
        let turn = session.turn_numbers().filter(|number| *number <= position).count() as u64;
        self.change_view(id, "checkpoint", |state| state.checkpoint_turn = turn)?;
        let Moment { revision: state, items, .. } = self.moment(id)?;
        let (message, created) = (message.to_owned(), self.now());
        let made = NewCheckpoint { state, position, turn, message, automatic, created, items };
        let checkpoint = self.store.change()?.add_checkpoint(id, &made)?;
        let session = self.session_name(id)?;
        let message = made.message;
        self.events.push(Event::CheckpointCreated {
            session,
            checkpoint,
            turn,
            message,
            automatic,
        });
        Ok(checkpoint)
    }

    fn keeps_versions(&mut self, id: u64) -> Result<bool, EngineError> {
        Ok(SessionSettings::parse(&self.row(id)?.settings)?.versioning)
    }

    /// Finds a checkpoint of a session, by default the last one.
    ///
    /// # Errors
    /// [`EngineError::NoCheckpoint`].
    pub fn find_checkpoint(
        &mut self,
        id: u64,
        checkpoint: Option<u64>,
    ) -> Result<CheckpointRow, EngineError> {
        let found = match checkpoint {
            // The store cannot hold numbers this large.
            Some(number) if i64::try_from(number).is_err() => None,
            Some(number) => self.store.read().checkpoint(id, number)?,
            None => self.store.read().checkpoints(id)?.pop(),
        };
        if let Some(row) = found {
            return Ok(row);
        }
        let known = self.store.read().checkpoints(id)?.into_iter().map(|row| row.id).collect();
        Err(EngineError::NoCheckpoint { session: self.row(id)?.name, known })
    }

    /// Captures the session's current state and stores its items in an unnamed set.
    fn moment(&mut self, id: u64) -> Result<Moment, EngineError> {
        let manager = self.row(id)?.manager_name();
        let slots: Vec<Slot> = self.manager(&manager)?.slots().cloned().collect();
        let now = self.now();
        let items = match slots.is_empty() {
            true => None,
            false => Some(self.store.change()?.write_set(now, &slots)?),
        };
        let session = self.session(id)?;
        Ok(Moment { revision: session.revision(), position: session.length(), items })
    }

    fn go_back(
        &mut self,
        id: u64,
        method: &'static str,
        to: Moment,
        change: impl FnOnce(&mut SessionState),
    ) -> Result<(), EngineError> {
        let Revision { state: then, learned } = self.revision(id, to.revision)?;
        self.learn(id, learned)?;
        let length = self.session(id)?.length();
        let state = SessionState::back_at(&then, to.position, length);
        let mut state = SessionState { redo: None, ..state };
        change(&mut state);
        self.revise(id, method, state)?;
        self.restore_items(id, method, to.items)?;
        self.session_changed(id, method)
    }

    /// Restores the items of a session's manager, with their old ids, from the stored set with the
    /// number `items`. `None` stands for an empty set.
    pub(super) fn restore_items(
        &mut self,
        id: u64,
        method: &str,
        items: Option<u64>,
    ) -> Result<(), EngineError> {
        let manager = self.row(id)?.manager_name();
        let then = items.map_or(Ok(Vec::new()), |set| self.store.read().read_set(set))?;
        let same = |(now, then): (&Slot, &Slot)| now.item == then.item && now.pinned == then.pinned;
        let now = self.manager(&manager)?;
        if now.len() == then.len() && now.slots().zip(&then).all(same) {
            return Ok(());
        }
        let arrivals = then.iter().map(|slot| self.arrival(slot)).collect();
        let change = self.plan(&manager, |manager| manager.plan_replace(method, arrivals))?;
        self.carry_out(&manager, change)
    }

    fn size_of(&mut self, id: u64) -> Result<(u64, u64), EngineError> {
        let session = self.session(id)?;
        Ok((session.turns(), session.active().count() as u64))
    }
}

fn moment_of(CheckpointRow { made, .. }: &CheckpointRow) -> Moment {
    Moment { revision: made.state, position: made.position, items: made.items }
}
