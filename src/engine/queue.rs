//! What waits for the engine, and what of it runs next.
//!
//! Quick requests go first, together. Of the others one runs at a time, and the callers take
//! turns: nobody waits for more than one long request of somebody else. The requests of one caller
//! stay in their order.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Engine;
use super::run::Work;

/// The one who asks. The requests of one connection run in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A connection, by a number that no other has.
    Connection(u64),
    /// Somebody who waits for the outcome before asking again.
    Nobody,
}

/// The part of the state that a request reads and changes, which tells the loop whether it is quick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A few items of one manager.
    Manager(String),
    /// A few messages of one session, the current one when there is no name.
    Session(Option<String>),
    /// Anything. The request may take long.
    Anything,
}

/// A request that waits.
pub struct Task {
    pub(super) caller: Caller,
    pub(super) reach: Reach,
    pub(super) work: Work,
}

/// Requests that share a commit.
pub(super) struct Burst {
    pub(super) works: Vec<Work>,
    /// Set when all of them are sure to be quick.
    pub(super) is_quick: bool,
}

/// The requests that wait.
#[derive(Default)]
pub(super) struct Waiting {
    tasks: VecDeque<Task>,
    /// Last turn of each connection that waits.
    turns: HashMap<Caller, u64>,
    turn: u64,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(super) fn extend(&mut self, tasks: impl IntoIterator<Item = Task>) {
        self.tasks.extend(tasks);
    }

    /// Takes the next burst: all quick requests that no other of the same caller comes before, at
    /// most `most`; when there are none, one long request.
    pub(super) fn burst(&mut self, engine: &mut Engine, most: usize) -> Burst {
        let mut blocked = HashSet::new();
        let mut left = VecDeque::new();
        let mut works = Vec::with_capacity(self.tasks.len().min(most));
        while let Some(task) = self.tasks.pop_front() {
            let is_next = works.len() < most && !blocked.contains(&task.caller);
            if is_next && engine.is_at_hand(&task.reach) {
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
            false => Burst { works, is_quick: true },
            true => Burst { works: self.one().into_iter().collect(), is_quick: false },
        }
    }

    /// The first request of the caller whose last turn is the longest ago.
    fn one(&mut self) -> Option<Work> {
        let turn_of = |task: &Task| self.turns.get(&task.caller).copied().unwrap_or_default();
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
