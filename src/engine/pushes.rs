//! Records of what sessions of agents were given, so that nothing is given twice.

use super::{Engine, EngineError};
use crate::store::session::{PushRow, PushState};

impl Engine {
    /// Returns what a session of an agent has: the state after the push with this `number`, which
    /// is the last that the agent received; by default, after the latest push.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub(crate) fn pushed(
        &mut self,
        agent: &str,
        session: &str,
        number: Option<u64>,
    ) -> Result<PushState, EngineError> {
        let Some(row) = self.store.read().push(agent, session)? else {
            return Ok(PushState::default());
        };
        Ok(number.map_or_else(|| row.latest.clone(), |number| row.at(number)))
    }

    /// Records a push that follows the push with the number `after`. Returns its number, which is
    /// above those of all earlier pushes to this session.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub(crate) fn record_push(
        &mut self,
        agent: &str,
        session: &str,
        after: u64,
        items: String,
    ) -> Result<u64, EngineError> {
        let known = self.store.read().push(agent, session)?;
        let earlier = known.as_ref().map_or_else(PushState::default, |row| row.at(after));
        let number = known.map_or(0, |row| row.latest.number).max(after).saturating_add(1);
        let row = PushRow { latest: PushState { number, items }, earlier };
        self.store.change()?.note_push(agent, session, &row)?;
        Ok(number)
    }
}
