//! Watches, over a connection of its own, which tools clients offer to agents.

use serde_json::json;
use tokio::sync::watch::{Receiver, Sender};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::task::AbortOnDropHandle;

use super::open::{ANSWERS_WITHIN, OpenConnection};

/// The watch over the tools that clients offer to agents. It begins once somebody wants to know of
/// changes.
#[derive(Default)]
pub(super) struct Watch {
    changed: Sender<()>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// A watch that must begin, or begin again because its connection ended or the server is new.
pub(super) struct DueWatch<'a>(&'a Watch, MutexGuard<'a, Option<AbortOnDropHandle<()>>>);

impl Watch {
    /// Returns a receiver of changes to the tools.
    pub(super) fn changes(&self) -> Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the watch if it must begin: somebody wants to know of changes, and either the tools
    /// are not being watched or the server `is_new`.
    pub(super) async fn due(&self, is_new: bool) -> Option<DueWatch<'_>> {
        if self.changed.receiver_count() == 0 {
            return None;
        }
        let task = self.task.lock().await;
        let is_due = is_new || task.as_ref().is_none_or(AbortOnDropHandle::is_finished);
        is_due.then_some(DueWatch(self, task))
    }
}

impl DueWatch<'_> {
    /// Begins to watch over `open`, a new connection; does nothing if the connection is lost
    /// or the server does not answer. If
    /// there was a watch before, announces a change, since the old watch may have missed one.
    pub(super) async fn begin(mut self, mut open: OpenConnection) {
        let topics = json!({ "topics": ["tools-changed"] });
        let begun = tokio::time::timeout(ANSWERS_WITHIN, open.ask("subscribe", &topics)).await;
        let Ok(Some(_)) = begun else { return };
        let changed = self.0.changed.clone();
        let task = tokio::spawn(async move {
            while let Some(told) = open.notification().await {
                if told["agents"] == true {
                    changed.send_replace(());
                }
            }
        });
        if self.1.replace(AbortOnDropHandle::new(task)).is_some() {
            self.0.changed.send_replace(());
        }
    }
}
