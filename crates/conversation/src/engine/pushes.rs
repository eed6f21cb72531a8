//! Records which items were given to agents' sessions, so that nothing is given twice, and the
//! user's wishes: each is to send an item with an agent's next prompt.

use super::{Engine, EngineError, Event};
use crate::ids::ItemId;
use crate::store::session::{NextPush, PushRow, PushState, TakenPush};

/// Name of the method that stores a wish to send an item with the next prompt. `undo` reports this
/// name.
pub(super) const PUSH_NEXT: &str = "push-next";

/// A push to record. A push gives items to a session of an agent.
pub struct NewPush {
    /// Name of the agent.
    pub agent: String,
    /// Id that the agent gives the session.
    pub session: String,
    /// Number of the last push that the agent received.
    pub after: u64,
    /// The items that the agent has after this push, as JSON.
    pub items: String,
    /// Folder of the project; empty if unknown.
    pub project: String,
    /// Tokens of the items that the push shows.
    pub tokens: u64,
    /// Numbers of the user's wishes (see [`QueuedItem`]) that this push fulfils.
    pub next: Vec<u64>,
}

/// A wish to send an item with the next prompt.
#[derive(PartialEq, Eq)]
pub struct QueuedItem {
    pub manager: String,
    pub item: ItemId,
    /// Name of the agent; empty for any agent.
    pub agent: String,
    /// Id of the agent's session; empty for any session.
    pub session: String,
    /// Folder of the project; empty for any project.
    pub project: String,
}

impl Engine {
    /// Returns the items that an agent's session has after push `number`, the last push that the
    /// agent received; without a number, after the latest push. Also returns the wishes for the
    /// session's next prompt in this project.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn pushed(
        &mut self,
        agent: &str,
        session: &str,
        project: &str,
        number: Option<u64>,
    ) -> Result<(PushState, Vec<NextPush>, String), EngineError> {
        let row = self.store.read().push(agent, session)?;
        let of = row.as_ref().map_or_else(String::new, |row| row.project.clone());
        let state = match (row, number) {
            (None, _) => PushState::default(),
            (Some(row), None) => row.latest,
            (Some(row), Some(number)) => row.at(number),
        };
        let received = number.unwrap_or(state.number);
        let due = self.store.read().due_pushes(agent, session, project, received)?;
        Ok((state, self.existing(due)?, of))
    }

    /// Records a push that follows the push `after`. Returns its number, which is above those of
    /// all earlier pushes to this session. Records nothing and returns `None` if one of the wishes
    /// that it fulfils was fulfilled by another push or cancelled meanwhile.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn record_push(&mut self, new: NewPush) -> Result<Option<u64>, EngineError> {
        let NewPush { agent, session, after, items, project, tokens, next } = new;
        let due = self.store.read().due_pushes(&agent, &session, &project, after)?;
        if !next.iter().all(|number| due.iter().any(|due| due.number == *number)) {
            return Ok(None);
        }
        let known = self.store.read().push(&agent, &session)?;
        let earlier = known.as_ref().map_or_else(PushState::default, |row| row.at(after));
        let number = known.map_or(0, |row| row.latest.number).max(after).saturating_add(1);
        let (latest, at) = (PushState { number, items }, self.now());
        let row = PushRow { agent, session, latest, earlier, at, project, tokens };
        let store = self.store.change()?;
        store.note_push(&row)?;
        next.iter().try_for_each(|number| store.take_next_push(*number, &row))?;
        self.tell_agents("record-push", row.agent, row.session);
        Ok(Some(number))
    }

    /// Returns the latest push to each of at most `limit` sessions of agents, the latest first.
    /// Also returns all fulfilled wishes that are still kept, in the order in which they were
    /// fulfilled.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn pushes(&mut self, limit: u64) -> Result<(Vec<PushRow>, Vec<TakenPush>), EngineError> {
        let store = self.store.read();
        Ok((store.pushes(limit)?, store.taken_pushes()?))
    }

    /// Returns the wishes that wait for the next prompts of agents, the oldest first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn next_pushes(&mut self) -> Result<Vec<NextPush>, EngineError> {
        let waiting = self.store.read().next_pushes()?;
        self.existing(waiting)
    }

    /// Stores wishes, and returns the number of each. A wish that is already waiting is not stored
    /// again, and keeps its number. Returns `None`, and stores nothing, if more than `most` wishes
    /// would wait.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`]; [`EngineError::Store`].
    pub fn push_next(
        &mut self,
        wishes: Vec<QueuedItem>,
        most: usize,
    ) -> Result<Option<Vec<u64>>, EngineError> {
        let mut waiting = self.next_pushes()?;
        let is_new = |(at, wish): &(usize, &QueuedItem)| {
            !waiting.iter().any(|waiting| waiting.is_for(wish)) && !wishes[..*at].contains(wish)
        };
        if waiting.len() + wishes.iter().enumerate().filter(is_new).count() > most {
            return Ok(None);
        }
        let mut numbers = Vec::with_capacity(wishes.len());
        for wish in wishes {
            self.check_items(&wish.manager, &[wish.item])?;
            if let Some(same) = waiting.iter().find(|waiting| waiting.is_for(&wish)) {
                numbers.push(same.number);
                continue;
            }
            let change = self.store.step_mark(&wish.manager)?;
            let (number, at) = (self.counters.give_version(), self.now());
            let QueuedItem { manager, item: ItemId(item), agent, session, project } = wish;
            let next = NextPush { number, manager, item, agent, session, project, at, change };
            self.store.change()?.add_next_push(&next)?;
            self.tell_agents(PUSH_NEXT, next.agent.clone(), next.session.clone());
            numbers.push(number);
            waiting.push(next);
        }
        Ok(Some(numbers))
    }

    /// Cancels a wish. Returns whether the wish was still waiting.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn cancel_push(&mut self, number: u64) -> Result<bool, EngineError> {
        let waited = self.store.change()?.drop_next_push(number)?;
        if waited {
            self.tell_agents(PUSH_NEXT, String::new(), String::new());
        }
        Ok(waited)
    }

    /// Returns the newest waiting wish for an item of a manager, which `undo` cancels. Returns
    /// `None` if no wish waits, or if the manager has changed since the wish.
    pub(super) fn newest_wish(&mut self, manager: &str) -> Result<Option<NextPush>, EngineError> {
        let mut waiting = self.next_pushes()?;
        waiting.retain(|next| next.manager == manager);
        let Some(newest) = waiting.pop() else { return Ok(None) };
        let change = self.store.step_mark(manager)?;
        Ok((newest.change == change).then_some(newest))
    }

    /// Announces with an event that something about agents changed.
    pub fn tell_agents(&mut self, method: &'static str, agent: String, session: String) {
        self.events.push(Event::AgentsChanged { method, agent, session });
    }

    /// Leaves out wishes whose items are no longer in any manager, and updates the managers of the
    /// other wishes.
    fn existing(&mut self, due: Vec<NextPush>) -> Result<Vec<NextPush>, EngineError> {
        let mut existing = Vec::with_capacity(due.len());
        for mut next in due {
            if self.manager(&next.manager)?.slot(ItemId(next.item)).is_none() {
                let holder = self.store.read().holder(next.item)?;
                let Some(holder) = holder else { continue };
                next.manager = holder;
            }
            existing.push(next);
        }
        Ok(existing)
    }
}

impl NextPush {
    fn is_for(&self, wish: &QueuedItem) -> bool {
        let Self { manager, item, agent, session, project, .. } = self;
        (manager, *item, agent, session, project)
            == (&wish.manager, wish.item.0, &wish.agent, &wish.session, &wish.project)
    }
}
