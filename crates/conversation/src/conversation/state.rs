//! The state that conversations share: the task that owns it, and the lock of its folder.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Error;
use super::Message;
use crate::agent::AgentError;
use crate::curation::config::TurnConfig;
use crate::engine::{Engine, EngineError, Handle, run};
use crate::store::Store;
use crate::store::ownership::Owned;
use crate::store::recovery;
use crate::store::sqlite::SqliteStore;

/// An open state. Clones share the state.
#[derive(Clone)]
pub(super) struct OpenState {
    pub(super) engine: Handle,
    /// Turns in progress.
    pub(super) turns: TaskTracker,
    /// Cancelled when the state must be closed.
    pub(super) ending: CancellationToken,
    /// The task that owns the state.
    owner: TaskTracker,
    /// The open conversations, by their numbers.
    open: Arc<Mutex<HashMap<u64, Weak<SharedConversation>>>>,
}

/// The settings that all handles of a conversation have.
#[derive(Debug, PartialEq)]
pub(super) struct KeptSettings {
    pub(super) model: Option<String>,
    pub(super) strategy: Option<String>,
    pub(super) versioning: bool,
    pub(super) turn: TurnConfig,
    pub(super) system_prompt: Option<String>,
}

/// What all handles of a conversation share.
pub(super) struct SharedConversation {
    /// Locked during a turn.
    pub(super) turns: tokio::sync::Mutex<()>,
    /// Text of the memories that the last processed turn found; empty if it found none.
    grounding: Mutex<String>,
    /// The question of the last turn, if the turn failed.
    failed: Mutex<Option<Message>>,
    kept: KeptSettings,
}

impl SharedConversation {
    pub(super) fn grounding(&self) -> MutexGuard<'_, String> {
        self.grounding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failed(&self) -> MutexGuard<'_, Option<Message>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenState {
    /// Opens the state in a folder, or a state in memory, and starts the task that owns it.
    ///
    /// # Errors
    /// [`Error::Folder`], [`Error::Store`].
    pub(super) async fn open(
        folder: Option<PathBuf>,
        engine: impl FnOnce(Box<dyn Store>) -> Result<Engine, EngineError> + Send + 'static,
    ) -> Result<Self, Error> {
        let open = move || -> Result<_, Error> {
            let (store, folder) = open_store(folder)?;
            Ok((engine(store)?, folder))
        };
        let opened = tokio::task::spawn_blocking(open).await;
        let (engine, folder) = opened.map_err(|_| AgentError::Defect("opening the state"))??;
        let (handle, queue) = Handle::channel();
        let owner = TaskTracker::new();
        owner.spawn(async move {
            run(engine, queue, |_, _| {}).await;
            drop(folder);
        });
        owner.close();
        let (turns, ending) = (TaskTracker::new(), CancellationToken::new());
        Ok(Self { engine: handle, turns, ending, owner, open: Arc::default() })
    }

    /// Returns what the handles of a conversation share. Returns `None` if another handle is open
    /// with other settings.
    pub(super) fn shared(&self, id: u64, kept: KeptSettings) -> Option<Arc<SharedConversation>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = open.get(&id).and_then(Weak::upgrade) {
            return (shared.kept == kept).then_some(shared);
        }
        open.retain(|_, shared| shared.strong_count() > 0);
        let (turns, grounding, failed) = Default::default();
        let shared = Arc::new(SharedConversation { turns, grounding, failed, kept });
        open.insert(id, Arc::downgrade(&shared));
        Some(shared)
    }

    /// Cancels the turns in progress, and ends the task that owns the state.
    pub(super) async fn close(&self) {
        self.ending.cancel();
        self.turns.close();
        self.turns.wait().await;
        let end = |engine: &mut Engine| {
            engine.end();
            Ok(())
        };
        // The engine may have ended already.
        let _ = self.engine.ask(end).await;
        self.owner.wait().await;
    }
}

fn open_store(folder: Option<PathBuf>) -> Result<(Box<dyn Store>, Option<Owned>), Error> {
    let Some(folder) = folder else {
        return Ok((Box::new(SqliteStore::in_memory()?), None));
    };
    let owned = Owned::take(&folder)?;
    let store = recovery::open(&folder, owned.relock())?.store;
    Ok((Box::new(store), Some(owned)))
}
