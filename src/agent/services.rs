//! The services that turns share, and the job that a turn is for them.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{AgentError, Approvals, Embedded, Embedding, Providers};
use crate::engine::{Engine, EngineError, Handle};
use crate::files::templates::TemplateFolders;
use crate::files::{ReadOptions, Trust};
use crate::tokens::Counter;

/// Everything that turns with models share.
pub struct Services {
    /// The way to the state.
    pub engine: Handle,
    /// Counts the tokens of items and renderings.
    pub counter: Arc<dyn Counter>,
    /// The limits that the configuration sets.
    pub limits: Limits,
    /// Makes vectors of texts, if something is configured to.
    pub embedding: Option<Embedding>,
    /// The models that can be talked to.
    pub providers: Providers,
    /// Calls of tools that wait for a person's decision.
    pub approvals: Approvals,
    /// The turns under way. A server that ends waits for them to store what came.
    pub turns: TaskTracker,
    /// Set when the server is to end.
    pub ending: CancellationToken,
    /// Folder of the user's own templates.
    pub template_folder: Option<PathBuf>,
    /// The projects whose own templates may be used.
    pub trust: Arc<Trust>,
}

/// Limits that the configuration sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a message, in bytes.
    pub max_message_bytes: usize,
    /// Maximum size of a file that is read, in bytes.
    pub max_file_bytes: u64,
    /// Capacity of a manager that nobody configured, in items.
    pub max_items: usize,
}

impl Limits {
    /// Returns the limits for reading a file, by default those of the configuration. More than fits
    /// a message could never be told to anybody.
    pub fn read_options(&self, max_file_bytes: Option<u64>) -> ReadOptions {
        let wanted = max_file_bytes.unwrap_or(self.max_file_bytes);
        ReadOptions { max_bytes: wanted.min(self.max_message_bytes as u64) }
    }
}

impl Services {
    /// Creates services for which nothing else is configured.
    pub fn new(engine: Handle, counter: Arc<dyn Counter>, limits: Limits) -> Self {
        Self {
            engine,
            counter,
            limits,
            embedding: None,
            providers: Providers::default(),
            approvals: Approvals::default(),
            turns: TaskTracker::new(),
            ending: CancellationToken::new(),
            template_folder: None,
            trust: Arc::default(),
        }
    }

    /// Returns the limits for reading files again.
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

/// A piece of work that somebody waits for, and can cancel.
#[derive(Clone)]
pub struct Job {
    /// The services to do it with.
    pub services: Arc<Services>,
    /// Set when nobody waits for the outcome any more.
    pub cancelled: Arc<CancellationToken>,
}

impl Job {
    /// Returns the counter of [`Services`], which counts only while somebody waits for this job.
    pub fn counter(&self) -> WantedCounter {
        let counter = Arc::clone(&self.services.counter);
        WantedCounter { counter, cancelled: Arc::clone(&self.cancelled) }
    }

    /// Asks the engine.
    ///
    /// # Errors
    /// Those of the operation.
    pub async fn ask<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, AgentError> {
        Ok(self.services.engine.ask(operation).await?)
    }

    /// Does work that may block, on a thread for that.
    ///
    /// # Errors
    /// [`AgentError::Defect`] in `what` if it panics.
    pub async fn aside<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Job) -> T + Send + 'static,
    ) -> Result<T, AgentError> {
        let job = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&job));
        done.await.map_err(|_| AgentError::Defect(what))
    }

    /// Makes the vector of a text, if something is configured to and the text says something.
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

/// Counts until its job is cancelled, and then returns 0, as nothing of such a job is kept.
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
        let is_wanted = || !self.cancelled.is_cancelled() && is_wanted();
        self.counter.count_while(text, &is_wanted)
    }
}
