//! What happened: the only source of notifications and statistics.

use serde::Serialize;

use crate::context::change::Change;
use crate::context::manager::Manager;

/// Something that happened to the state and is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A manager's items or settings changed.
    ContextChanged {
        /// The manager's name.
        manager: String,
        /// The method that changed it.
        method: String,
        /// How many items it holds now.
        count: usize,
        /// Their tokens together.
        tokens: u64,
        /// How many items came in.
        entered: u64,
        /// How many items left.
        left: u64,
    },
}

/// Sums over all events since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Statistics {
    /// Changes made to managers.
    pub changes: u64,
    /// Items that came in.
    pub items_entered: u64,
    /// Items that left.
    pub items_left: u64,
}

impl Event {
    /// The manager that it is about.
    pub fn manager(&self) -> &str {
        let Self::ContextChanged { manager, .. } = self;
        manager
    }

    /// The event of a change that `manager` has just taken.
    pub fn changed(name: &str, manager: &Manager, change: &Change) -> Self {
        let count = |came: bool| {
            let moves = change.slots.iter().filter(|slot| {
                let there = (slot.before.is_some(), slot.after.is_some());
                there == (!came, came)
            });
            moves.count() as u64
        };
        Self::ContextChanged {
            manager: name.to_owned(),
            method: change.method.clone(),
            count: manager.len(),
            tokens: manager.tokens(),
            entered: count(true),
            left: count(false),
        }
    }
}

impl Statistics {
    /// Counts an event.
    pub fn note(&mut self, event: &Event) {
        let Event::ContextChanged { entered, left, .. } = event;
        self.changes += 1;
        self.items_entered += entered;
        self.items_left += left;
    }
}
