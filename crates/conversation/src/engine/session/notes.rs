//! The material for notes about a session's turn, and their storage.

use std::sync::Arc;

use super::super::{Engine, EngineError, Event};
use super::SessionContext;
use crate::curation::notes::{NotesStatus, NotesStep, without_directive};
use crate::session::message::{Message, Role};
use crate::store::notes::NewNotes;

/// The material for the notes of a turn.
pub struct NotesMaterial {
    /// The session, with its settings and the token costs for the model that will see the view.
    pub context: SessionContext,
    /// Messages in view, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Summary of earlier messages.
    pub summary: Option<Arc<str>>,
    /// Number of the user's message that began the current turn; 0 if there is none.
    pub message: u64,
    /// Number of the turn, counted from 1.
    pub turn: u64,
}

impl Engine {
    /// Returns the material for the notes of a session's current turn, with the token costs for a
    /// model.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn notes_material(&mut self, id: u64, model: &str) -> Result<NotesMaterial, EngineError> {
        let row = self.row(id)?;
        let context = self.context_of(row, Some(model))?;
        let session = self.session(id)?;
        let messages: Vec<_> = session.in_view().map(without_directive).collect();
        let last_said = messages.iter().rfind(|message| message.role == Role::User);
        let message = last_said.map_or(0, |message| message.number);
        let summary = session.state().summary.as_ref().map(|summary| Arc::from(&*summary.text));
        let turn = session.turns();
        Ok(NotesMaterial { context, messages, summary, message, turn })
    }

    /// Returns the newest notes from a turn that began before message `before`, in this session or
    /// in one that it was forked from. Skips notes of turns that were rolled back. Returns `None`
    /// if there are no notes.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn prior_notes(&mut self, id: u64, before: u64) -> Result<Option<String>, EngineError> {
        let (mut of, mut before, mut newest) = (id, before, u64::MAX);
        loop {
            if let Some(notes) = self.store.read().notes_before(of, before, newest)? {
                if self.session(id)?.state().is_active(notes.message) {
                    return Ok(Some(notes.output));
                }
                newest = notes.id;
                continue;
            }
            match self.row(of)?.parent {
                Some((parent, shared)) => {
                    (of, before, newest) = (parent, before.min(shared + 1), u64::MAX);
                }
                None => return Ok(None),
            }
        }
    }

    /// Stores the notes of a turn without an event. Returns the number of the notes.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn keep_notes(&mut self, notes: &NewNotes) -> Result<u64, EngineError> {
        let created = self.now();
        let number = self.store.change()?.add_notes(&NewNotes { created, ..notes.clone() })?;
        self.sessions.touch(notes.session);
        Ok(number)
    }

    /// Announces the notes of a turn with an event.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn tell_of_notes(&mut self, notes: NewNotes) -> Result<(), EngineError> {
        let step = notes.step.as_deref().and_then(NotesStep::from_name);
        let event = Event::TurnManaged {
            session: self.session_name(notes.session)?,
            turn: notes.turn,
            template: notes.template,
            status: NotesStatus::from_name(&notes.status).unwrap_or(NotesStatus::Failed),
            failure: step.map(|step| (step, notes.reason.unwrap_or_default())),
        };
        self.events.push(event);
        Ok(())
    }
}
