//! Queue of requests, and the choice of those to run next.
//!
//! A burst is the requests of one commit: the quick requests, which go first, or a single long one.
//! Callers take turns with long requests: a caller waits for at most one long request of each other
//! caller. Requests of one caller keep their order.

use std::collections::{HashMap, HashSet, VecDeque};

use super::reach::{Caller, Reach};
use super::{Engine, EngineError};

/// Sends the answer, given whether the commit succeeded.
pub(super) type Deliver = Box<dyn FnOnce(Result<(), EngineError>) + Send>;
pub(super) type QueuedWork = Box<dyn FnOnce(&mut Engine) -> Deliver + Send>;

/// A queued request.
pub struct QueuedTask {
    pub(super) caller: Caller,
    pub(super) reach: Reach,
    pub(super) work: QueuedWork,
}

/// A burst: the requests of one commit.
pub(super) struct RequestBurst {
    pub(super) works: Vec<QueuedWork>,
    /// True if all requests are sure to be quick.
    pub(super) is_quick: bool,
}

/// The queued requests.
#[derive(Default)]
pub(super) struct QueuedRequests {
    tasks: VecDeque<QueuedTask>,
    /// Number of the turn in which each caller last ran a long request.
    turns: HashMap<Caller, u64>,
    turn: u64,
}

impl QueuedRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn extend(&mut self, tasks: impl IntoIterator<Item = QueuedTask>) {
        self.tasks.extend(tasks);
    }

    /// Takes the next burst: up to `most` quick requests, or, if there are none, one long request.
    /// Leaves a quick request behind if an earlier request of the same caller must still wait.
    pub(super) fn burst(&mut self, engine: &Engine, most: usize) -> RequestBurst {
        let mut blocked = HashSet::new();
        let mut left = VecDeque::new();
        let mut works = Vec::with_capacity(self.tasks.len().min(most));
        while let Some(task) = self.tasks.pop_front() {
            let is_next = works.len() < most && !blocked.contains(&task.caller);
            if is_next && engine.is_at_hand(task.caller, &task.reach) {
                works.push(task.work);
                continue;
            }
            if task.caller != Caller::Nobody {
                blocked.insert(task.caller);
            }
            left.push_back(task);
        }
        self.tasks = left;
        match works.is_empty() {
            false => RequestBurst { works, is_quick: true },
            true => RequestBurst { works: self.one().into_iter().collect(), is_quick: false },
        }
    }

    /// Takes the first request of the caller that has waited longest for its turn.
    fn one(&mut self) -> Option<QueuedWork> {
        let turn_of = |task: &QueuedTask| self.turns.get(&task.caller).copied().unwrap_or_default();
        let (at, _) = self.tasks.iter().enumerate().min_by_key(|(_, task)| turn_of(task))?;
        let task = self.tasks.remove(at)?;
        self.turn += 1;
        match self.tasks.is_empty() {
            true => self.turns.clear(),
            false => drop(self.turns.insert(task.caller, self.turn)),
        }
        Some(task.work)
    }
}

#[cfg(test)]
mod tests;
