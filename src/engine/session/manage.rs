//! What of a session a manager needs, and what is kept of its views.

use std::sync::Arc;

use super::super::{Engine, EngineError, Event};
use super::SessionSettings;
use crate::curation::managed::{Status, Step, without_directive};
use crate::engine::Costs;
use crate::session::message::{Message, Role};
use crate::store::session::SessionRow;
use crate::store::view::{NewView, ViewRow};

/// How many managed views are looked through for the one before; those between were of turns that
/// were rolled back.
const PRIOR_LOOKED_AT: u64 = 16;

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

    /// The managed view that was made last for a turn before message `before`, be it in the session
    /// that this one was forked from. Views of turns that were rolled back are passed over.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn prior_view(&mut self, id: u64, before: u64) -> Result<Option<ViewRow>, EngineError> {
        let (mut of, mut before) = (id, before);
        loop {
            let rows = self.store.views(Some(of), Some(Status::Managed.name()), PRIOR_LOOKED_AT)?;
            let session = self.session(id)?;
            let stands = |row: &ViewRow| {
                row.made.message < before && session.state().is_active(row.made.message)
            };
            if let Some(row) = rows.into_iter().find(stands) {
                return Ok(Some(row));
            }
            match self.row(of)?.parent {
                Some((parent, shared)) => (of, before) = (parent, before.min(shared + 1)),
                None => return Ok(None),
            }
        }
    }

    /// The view that was made of a turn from the same prompt by the same model.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn view_made(
        &mut self,
        id: u64,
        message: u64,
        model: &str,
        prompt: &str,
    ) -> Result<Option<ViewRow>, EngineError> {
        let rows = self.store.views(Some(id), Some(Status::Managed.name()), PRIOR_LOOKED_AT)?;
        Ok(rows.into_iter().find(|row| {
            let made = &row.made;
            made.message == message && made.model.as_deref() == Some(model) && made.prompt == prompt
        }))
    }

    /// Keeps what became of the managing of a turn, and tells of it. Gives the view's number.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn note_view(&mut self, view: NewView) -> Result<u64, EngineError> {
        let view = NewView { created: self.now(), ..view };
        let number = self.store.add_view(&view)?;
        self.tell_of_view(view)?;
        Ok(number)
    }

    /// Tells of what became of the managing of a turn without keeping it.
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

    /// What became of the managing of turns, newest first: of one session or all, with one status
    /// or any, at most `limit`.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn views(
        &mut self,
        session: Option<u64>,
        status: Option<Status>,
        limit: u64,
    ) -> Result<Vec<ViewRow>, EngineError> {
        Ok(self.store.views(session, status.map(Status::name), limit)?)
    }
}
