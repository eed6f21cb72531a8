//! Sessions, which are never logged: reads and writes go straight to the other store, writes after
//! all logged entries were moved there.

use super::super::session::{
    CheckpointRow, NewCheckpoint, NewSession, PhaseUsage, SearchHit, SessionRow, SessionStore,
    Spent, StateRow, StateSummary, UsageRow,
};
use super::super::view::{NewView, Notes, ViewQuery, ViewRow};
use super::super::{Store, StoreError};
use super::LoggedStore;
use crate::session::message::{Message, Phase};

impl<S: Store> SessionStore for LoggedStore<S> {
    fn create_session(&mut self, session: &NewSession) -> Result<u64, StoreError> {
        self.changing()?.create_session(session)
    }

    fn session(&mut self, id: u64) -> Result<Option<SessionRow>, StoreError> {
        self.inner.session(id)
    }

    fn session_named(&mut self, name: &str) -> Result<Option<SessionRow>, StoreError> {
        self.inner.session_named(name)
    }

    fn sessions(&mut self, with_deleted: bool) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.sessions(with_deleted)
    }

    fn rename_session(&mut self, id: u64, name: &str) -> Result<(), StoreError> {
        self.changing()?.rename_session(id, name)
    }

    fn set_session_settings(&mut self, id: u64, settings: &str) -> Result<(), StoreError> {
        self.changing()?.set_session_settings(id, settings)
    }

    fn set_session_deleted(&mut self, id: u64, at: Option<i64>) -> Result<(), StoreError> {
        self.changing()?.set_session_deleted(id, at)
    }

    fn append_messages(&mut self, session: u64, messages: &[Message]) -> Result<(), StoreError> {
        self.changing()?.append_messages(session, messages)
    }

    fn messages(&mut self, session: u64, from: u64, to: u64) -> Result<Vec<Message>, StoreError> {
        self.inner.messages(session, from, to)
    }

    fn message_count(&mut self, session: u64) -> Result<u64, StoreError> {
        self.inner.message_count(session)
    }

    fn append_state(&mut self, session: u64, state: &StateRow) -> Result<(), StoreError> {
        self.changing()?.append_state(session, state)
    }

    fn newest_state(&mut self, session: u64) -> Result<Option<StateRow>, StoreError> {
        self.inner.newest_state(session)
    }

    fn state(&mut self, session: u64, number: u64) -> Result<Option<StateRow>, StoreError> {
        self.inner.state(session, number)
    }

    fn states(&mut self, session: u64, limit: u64) -> Result<Vec<StateSummary>, StoreError> {
        self.inner.states(session, limit)
    }

    fn add_checkpoint(
        &mut self,
        session: u64,
        checkpoint: &NewCheckpoint,
    ) -> Result<u64, StoreError> {
        self.changing()?.add_checkpoint(session, checkpoint)
    }

    fn checkpoints(&mut self, session: u64) -> Result<Vec<CheckpointRow>, StoreError> {
        self.inner.checkpoints(session)
    }

    fn checkpoint(&mut self, session: u64, id: u64) -> Result<Option<CheckpointRow>, StoreError> {
        self.inner.checkpoint(session, id)
    }

    fn search_sessions(
        &mut self,
        text: &str,
        limit: u64,
        with_deleted: bool,
    ) -> Result<Vec<SearchHit>, StoreError> {
        self.inner.search_sessions(text, limit, with_deleted)
    }

    fn log_usage(&mut self, usage: &UsageRow) -> Result<u64, StoreError> {
        self.noting()?.map_or(Ok(0), |store| store.log_usage(usage))
    }

    fn add_spent(&mut self, number: u64, spent: &Spent) -> Result<(), StoreError> {
        self.noting()?.map_or(Ok(()), |store| store.add_spent(number, spent))
    }

    fn usage(
        &mut self,
        session: Option<u64>,
        phase: Option<Phase>,
        limit: u64,
    ) -> Result<Vec<UsageRow>, StoreError> {
        self.inner.usage(session, phase, limit)
    }

    fn usage_by_phase(&mut self, session: Option<u64>) -> Result<Vec<PhaseUsage>, StoreError> {
        self.inner.usage_by_phase(session)
    }

    fn add_view(&mut self, view: &NewView) -> Result<u64, StoreError> {
        self.changing()?.add_view(view)
    }

    fn views(&mut self, wanted: &ViewQuery<'_>) -> Result<Vec<ViewRow>, StoreError> {
        self.inner.views(wanted)
    }

    fn notes_before(
        &mut self,
        session: u64,
        message: u64,
        id: u64,
    ) -> Result<Option<Notes>, StoreError> {
        self.inner.notes_before(session, message, id)
    }

    fn view_like(&mut self, view: &NewView) -> Result<Option<ViewRow>, StoreError> {
        self.inner.view_like(view)
    }

    fn calibration(&mut self, model: &str) -> Result<Option<String>, StoreError> {
        self.inner.calibration(model)
    }

    fn set_calibration(&mut self, model: &str, text: &str) -> Result<(), StoreError> {
        self.noting()?.map_or(Ok(()), |store| store.set_calibration(model, text))
    }
}
