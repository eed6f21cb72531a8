//! The state that conversations share: the task that owns it, and the lock of its folder.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Error;
use crate::agent::AgentError;
use crate::engine::{Engine, EngineError, Handle, run};
use crate::store::Store;
use crate::store::ownership::Owned;
use crate::store::recovery;
use crate::store::sqlite::SqliteStore;

/// An open state. Clones share the state.
#[derive(Clone)]
pub(super) struct State {
    pub(super) engine: Handle,
    /// Turns in progress.
    pub(super) turns: TaskTracker,
    /// Cancelled when the state must be closed.
    pub(super) ending: CancellationToken,
    /// The task that owns the state.
    owner: TaskTracker,
}

impl State {
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
        Ok(Self { engine: handle, turns, ending, owner })
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
