//! The services that all turns share, and jobs: pieces of work that can be cancelled, such as
//! turns.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[cfg(feature = "map")]
use super::maps::Maps;
use super::{AgentError, Approvals, Embedded, Embedding, Providers};
use crate::engine::{Caller, Engine, EngineError, Handle};
use crate::files::templates::TemplateFolders;
use crate::files::{Looks, ReadOptions, Trust};
use crate::tokens::Counter;

/// Asks editors about a file.
pub(super) type AskEditors = dyn Fn(&Path) -> bool + Send + Sync;

/// The services that all turns with models share.
pub struct Services {
    /// Handle to the engine.
    pub engine: Handle,
    /// Remembers which live items have been compared with their files.
    pub looks: Arc<Looks>,
    /// Connections of editors, which have buffers of their own.
    pub editors: Mutex<HashSet<Caller>>,
    /// Asks the connected editors whether one has unsaved text of a file. For threads that may
    /// block.
    pub unsaved: OnceLock<Box<AskEditors>>,
    /// Counts the tokens of items and renderings.
    pub counter: Arc<dyn Counter>,
    /// Limits from the configuration.
    pub limits: Limits,
    /// Computes vectors of texts, if an embedding model is configured.
    pub embedding: Option<Embedding>,
    /// The available models.
    pub providers: Providers,
    /// Name of the provider whose model describes what a summary replaces; `None` if summaries are
    /// made without a model.
    pub summarizer: Option<String>,
    /// Tool calls that wait for the user's decision.
    pub approvals: Approvals,
    /// Running turns. Before the server ends, it waits until the turns have stored their results.
    pub turns: TaskTracker,
    /// Cancelled when the server must end.
    pub ending: CancellationToken,
    /// Folder with the user's own templates.
    pub template_folder: Option<PathBuf>,
    /// Projects whose templates may be used.
    pub trust: Arc<Trust>,
    /// Maps of projects.
    #[cfg(feature = "map")]
    pub maps: Arc<Maps>,
}

/// Limits from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a protocol message, in bytes.
    pub max_message_bytes: usize,
    /// Maximum size of a file that is read, in bytes.
    pub max_file_bytes: u64,
    /// Default capacity of a manager, in items.
    pub max_items: usize,
}

impl Limits {
    /// Returns the options for reading a file of at most `max_file_bytes` bytes; by default, the
    /// configured limit applies. The limit never exceeds the maximum size of a protocol message,
    /// since a larger file could not be sent to a client.
    pub fn read_options(&self, max_file_bytes: Option<u64>) -> ReadOptions {
        let wanted = max_file_bytes.unwrap_or(self.max_file_bytes);
        ReadOptions { max_bytes: wanted.min(self.max_message_bytes as u64) }
    }
}

impl Services {
    /// Creates services with these parts and defaults for all others.
    pub fn new(engine: Handle, counter: Arc<dyn Counter>, limits: Limits) -> Self {
        Self {
            engine,
            counter,
            looks: Arc::default(),
            editors: Mutex::default(),
            unsaved: OnceLock::new(),
            limits,
            embedding: None,
            providers: Providers::default(),
            summarizer: None,
            approvals: Approvals::default(),
            turns: TaskTracker::new(),
            ending: CancellationToken::new(),
            template_folder: None,
            trust: Arc::default(),
            #[cfg(feature = "map")]
            maps: Arc::default(),
        }
    }

    /// Records whether a connection is that of an editor, which has buffers of its own.
    pub fn note_editor(&self, caller: Caller, is_editor: bool) {
        let mut editors = self.editors.lock().unwrap_or_else(PoisonError::into_inner);
        match is_editor {
            true => editors.insert(caller),
            false => editors.remove(&caller),
        };
    }

    /// Returns whether a connection is that of an editor.
    pub fn is_editor(&self, caller: Caller) -> bool {
        self.editors.lock().unwrap_or_else(PoisonError::into_inner).contains(&caller)
    }

    /// Returns the options for rereading files: the configured maximum size applies.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions { max_bytes: self.limits.max_file_bytes }
    }

    /// Returns the folders with the templates for a project.
    ///
    /// # Errors
    /// [`AgentError::RelativeProject`].
    pub fn template_folders(&self, project: Option<String>) -> Result<TemplateFolders, AgentError> {
        let project = project.filter(|project| !project.is_empty()).map(PathBuf::from);
        if project.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err(AgentError::RelativeProject);
        }
        let (user, trust) = (self.template_folder.clone(), Arc::clone(&self.trust));
        Ok(TemplateFolders { project, user, trust })
    }
}

/// A piece of work that somebody waits for and can cancel.
#[derive(Clone)]
pub struct Job {
    /// The services that the job uses.
    pub services: Arc<Services>,
    /// Whoever gave the job.
    pub caller: Caller,
    /// Cancelled when nobody waits for the outcome any more.
    pub cancelled: Arc<CancellationToken>,
}

impl Job {
    /// Returns the services' counter in a form that stops counting when this job is cancelled.
    pub fn counter(&self) -> WantedCounter {
        let counter = Arc::clone(&self.services.counter);
        WantedCounter { counter, cancelled: Arc::clone(&self.cancelled) }
    }

    /// Runs an operation in the engine, and returns its result.
    ///
    /// # Errors
    /// The errors of the operation.
    pub async fn ask<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, AgentError> {
        Ok(self.services.engine.ask(operation).await?)
    }

    /// Does work that may block, on a thread for such work.
    ///
    /// # Errors
    /// [`AgentError::Defect`] with `what` if the work panics.
    pub async fn aside<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Job) -> T + Send + 'static,
    ) -> Result<T, AgentError> {
        let job = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&job));
        done.await.map_err(|_| AgentError::Defect(what))
    }

    /// Computes the vector of a text, if an embedding model is configured and the text is not
    /// blank.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`].
    pub async fn embed(&self, text: &str) -> Result<Embedded, AgentError> {
        let embedding = self.services.embedding.as_ref().filter(|_| !text.trim().is_empty());
        let Some(embedding) = embedding else { return Ok(Embedded::default()) };
        let embedded = self.cancelled.run_until_cancelled(embedding.embed(text.to_owned())).await;
        embedded.ok_or_else(|| EngineError::Cancelled.into())
    }
}

/// A counter that stops counting when its job is cancelled, and then returns 0, since no result of
/// a cancelled job is kept.
pub struct WantedCounter {
    counter: Arc<dyn Counter>,
    cancelled: Arc<CancellationToken>,
}

impl Counter for WantedCounter {
    fn name(&self) -> &'static str {
        self.counter.name()
    }

    fn count(&self, text: &str) -> u64 {
        self.count_while(text, &|| true).unwrap_or_default()
    }

    fn count_while(&self, text: &str, is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<u64> {
        self.counter.count_while(text, &|| !self.cancelled.is_cancelled() && is_wanted())
    }

    fn count_again(&self, text: &str, is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<u64> {
        self.counter.count_again(text, &|| !self.cancelled.is_cancelled() && is_wanted())
    }
}
