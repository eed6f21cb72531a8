//! Everything that a method may use: the engine, the counter, the limits, and the client that called.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::answerer::{Answerer, NoModel};
use super::peer::Peer;
use crate::agent::{Job, Limits, Services, WantedCounter};
use crate::engine::Handle;
use crate::names::names;
use crate::tokens::Counter;
use crate::wire::message::Id;

/// Everything that calls share, with the [`Services`] of turns with models.
pub struct Tools {
    /// The services that methods share with turns.
    pub services: Arc<Services>,
    /// Where the state is kept; `None` when the server is ephemeral.
    pub state_folder: Option<PathBuf>,
    /// Remarks from the start for the user, such as a damaged database moved aside.
    pub notices: Vec<String>,
    /// Number of automatic backups to keep; 0 makes none.
    pub backups_kept: usize,
    /// Settings of REPLs.
    pub repl: ReplSettings,
}

/// Methods use the services as their own.
impl std::ops::Deref for Tools {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.services
    }
}

/// Settings of the REPLs of SLY and SLIME.
#[derive(Clone)]
pub struct ReplSettings {
    /// Who answers what is typed there.
    pub answerer: Arc<dyn Answerer>,
    /// The release of SLY that users have; it asks before it speaks with another.
    pub slynk_version: String,
    /// The release of SLIME that users have; it asks before it speaks with another.
    pub swank_version: String,
}

impl Default for ReplSettings {
    fn default() -> Self {
        Self {
            answerer: Arc::new(NoModel),
            slynk_version: "1.0.43".to_owned(),
            swank_version: "2.27".to_owned(),
        }
    }
}

impl Tools {
    /// The tools of a server that keeps no state, and for which nothing is configured.
    pub fn new(engine: Handle, counter: Arc<dyn Counter>, limits: Limits) -> Self {
        Self::with(Services::new(engine, counter, limits))
    }

    /// The tools of a server that keeps no state, with these services.
    pub fn with(services: Services) -> Self {
        Self {
            services: Arc::new(services),
            state_folder: None,
            notices: Vec::new(),
            backups_kept: 0,
            repl: ReplSettings::default(),
        }
    }
}

/// One call of a method.
#[derive(Clone)]
pub struct Call {
    /// Everything that calls share.
    pub tools: Arc<Tools>,
    /// Who called.
    pub peer: Arc<dyn Peer>,
    /// Way in which the client reached the server.
    pub access: Access,
    /// The request's id; `None` for a notification.
    pub id: Option<Id>,
    /// Set when the client no longer wants the answer. The connection finds it only as long as
    /// the call lives.
    pub cancelled: Arc<CancellationToken>,
}

impl Call {
    /// The call as a job for the agent.
    pub(super) fn job(&self) -> Job {
        let (services, cancelled) = (&self.tools.services, &self.cancelled);
        Job { services: Arc::clone(services), cancelled: Arc::clone(cancelled) }
    }

    /// The counter of [`Services`], which counts for this call only while somebody wants its answer.
    pub(super) fn counter(&self) -> WantedCounter {
        self.job().counter()
    }
}

names! {
    /// A topic that a client can subscribe to.
    Topic {
        /// A manager's items or settings changed.
        ContextChanged => "context-changed",
        /// A session's window was pruned.
        ContextPruned => "context-pruned",
        /// A session's older messages were summarized.
        ContextSummarized => "context-summarized",
        /// A checkpoint was taken.
        CheckpointCreated => "checkpoint-created",
        /// A session was opened, renamed, deleted or got a message.
        SessionChanged => "session-changed",
        /// A managed view could not be made.
        ManagementFailed => "management-failed",
        /// The sums over all events.
        Stats => "stats",
    }
}
