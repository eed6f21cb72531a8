//! What of a session a manager needs, and what is kept of its views.

use std::sync::Arc;

use super::super::{Engine, EngineError, Event};
use super::SessionSettings;
use crate::curation::managed::{Status, Step, without_directive};
use crate::engine::Costs;
use crate::session::message::{Message, Role};
use crate::store::session::SessionRow;
use crate::store::view::{NewView, ViewQuery, ViewRow};

/// What is to be managed.
pub struct ToManage {
    /// The session.
    pub row: SessionRow,
    /// Its settings.
    pub settings: SessionSettings,
    /// What things cost for the model that will see the view.
    pub costs: Costs,
    /// The messages in view, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The text that stands in the place of those before them.
    pub summary: Option<Arc<str>>,
    /// The user's message that began the present turn; 0 without any.
    pub message: u64,
    /// Which turn that is, from 1.
    pub turn: u64,
}

impl Engine {
    /// What is to be managed of a session for a model.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn to_manage(&mut self, id: u64, model: &str) -> Result<ToManage, EngineError> {
        let row = self.row(id)?;
        let settings = SessionSettings::parse(&row.settings)?;
        let costs = self.costs(Some(model))?;
        let session = self.session(id)?;
        let messages: Vec<_> = session.in_view().map(without_directive).collect();
        let last_said = messages.iter().rfind(|message| message.role == Role::User);
        let message = last_said.map_or(0, |message| message.number);
        let summary = session.state().summary.as_ref().map(|summary| Arc::from(&*summary.text));
        let turn = session.turns();
        Ok(ToManage { row, settings, costs, messages, summary, message, turn })
    }

    /// The notes that were made last for a turn before message `before`, be it in the session that
    /// this one was forked from. Those of turns that were rolled back are passed over.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn prior_notes(&mut self, id: u64, before: u64) -> Result<Option<String>, EngineError> {
        let (mut of, mut before, mut newest) = (id, before, u64::MAX);
        loop {
            if let Some(notes) = self.store.notes_before(of, before, newest)? {
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

    /// The view that was made before of the same turn, by the same model of the same provider, from
    /// the same prompt.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn view_like(&mut self, view: &NewView) -> Result<Option<ViewRow>, EngineError> {
        Ok(self.store.view_like(view)?)
    }

    /// Keeps what became of the managing of a turn, and gives the view's number. Nobody is told.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn keep_view(&mut self, view: &NewView) -> Result<u64, EngineError> {
        let created = self.now();
        Ok(self.store.add_view(&NewView { created, ..view.clone() })?)
    }

    /// Tells of what became of the managing of a turn.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn tell_of_view(&mut self, view: NewView) -> Result<(), EngineError> {
        let step = view.step.as_deref().and_then(Step::from_name);
        let event = Event::TurnManaged {
            session: self.session_name(view.session)?,
            turn: view.turn,
            template: view.template,
            status: Status::from_name(&view.status).unwrap_or(Status::Failed),
            failure: step.map(|step| (step, view.reason.unwrap_or_default())),
        };
        self.events.push(event);
        Ok(())
    }

    /// What became of the managing of turns, newest first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn views(&mut self, wanted: &ViewQuery<'_>) -> Result<Vec<ViewRow>, EngineError> {
        Ok(self.store.views(wanted)?)
    }
}
