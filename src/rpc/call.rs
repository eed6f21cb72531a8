//! Everything that a method may use: the engine, the services, the settings, and the calling
//! client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::answerer::{Answerer, NoModel};
use super::client::Client;
use super::client_tools::ClientTools;
use super::connected::Agents;
use super::editors::Editors;
use super::error::refused;
use super::error_data::PlainKind;
use super::keyed::Keyed;
use super::notification::Topic;
use super::peer::Peer;
use crate::agent::{Job, Limits, Services, WantedCounter};
use crate::engine::{Caller, Handle};
use crate::hub::Hub;
use crate::tokens::Counter;
use crate::wire::dialect::Dialect;
use crate::wire::message::{RequestId, WireError};

/// Maximum number of imports that run at the same time after their calls have ended.
const IMPORTS_BESIDE: usize = 4;

/// Everything that calls share, including the [`Services`] for turns with models.
pub struct Tools {
    /// The services that methods share with turns.
    pub services: Arc<Services>,
    /// State folder; `None` if the server is ephemeral.
    pub state_folder: Option<PathBuf>,
    /// Messages for the user about the start of the server, for example that a damaged database
    /// was moved aside.
    pub notices: Vec<String>,
    /// Number of automatic backups to keep; 0 makes none.
    pub backups_kept: usize,
    /// Settings of REPLs.
    pub repl: ReplSettings,
    /// Editors that can be asked for unsaved text.
    pub editors: Editors,
    /// Agents that are connected now.
    pub agents: Agents,
    /// Permits for imports that continue after their calls have ended.
    pub imports: Arc<Semaphore>,
    /// Tools that clients bring.
    pub client_tools: ClientTools,
    /// The hub on which the user shares projects, if one is configured.
    pub hub: Option<Arc<Hub>>,
}

/// Lets methods use the services directly.
impl std::ops::Deref for Tools {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.services
    }
}

/// Settings of the REPLs that SLY and SLIME connect to.
#[derive(Clone)]
pub struct ReplSettings {
    /// Answers the text typed in REPLs.
    pub answerer: Arc<dyn Answerer>,
    /// Version of SLY to report; if it differs from the client's, SLY asks whether to continue.
    pub slynk_version: String,
    /// Version of SLIME to report; if it differs from the client's, SLIME asks whether to continue.
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
    /// Creates the tools of a server without state or configuration.
    pub fn new(engine: Handle, counter: Arc<dyn Counter>, limits: Limits) -> Self {
        Self::with(Services::new(engine, counter, limits))
    }

    /// Lets the services ask the editors. Panics outside of a tokio runtime.
    pub(crate) fn connect_editors(self: &Arc<Self>) {
        let (tools, runtime) = (Arc::downgrade(self), tokio::runtime::Handle::current());
        let ask = move |path: &Path| {
            let Some(tools) = tools.upgrade() else { return false };
            let heard = runtime.block_on(tools.editors.ask(&tools.engine, None, Some(path)));
            heard.is_ok_and(|heard| heard.is_edited)
        };
        // The services of a server are connected once.
        let _ = self.services.unsaved.set(Box::new(ask));
    }

    /// Creates the tools of a server without state, with these services.
    pub fn with(services: Services) -> Self {
        Self {
            services: Arc::new(services),
            state_folder: None,
            notices: Vec::new(),
            backups_kept: 0,
            repl: ReplSettings::default(),
            editors: Editors::default(),
            agents: Agents::default(),
            imports: Arc::new(Semaphore::new(IMPORTS_BESIDE)),
            client_tools: ClientTools::default(),
            hub: None,
        }
    }
}

/// One call of a method.
#[derive(Clone)]
pub struct MethodCall {
    /// Everything that calls share.
    pub tools: Arc<Tools>,
    /// The calling client.
    pub peer: Arc<dyn Peer>,
    /// The calling connection, as the engine identifies it.
    pub(crate) caller: Caller,
    /// Way in which the client reached the server.
    pub access: Access,
    /// Dialect of the client.
    pub dialect: Dialect,
    /// State that the calls of the connection share.
    pub(crate) client: Arc<Client>,
    /// Size of a page of a list, in bytes, unless the call gives another with `:max-bytes`.
    pub page_bytes: usize,
    /// True if the call names its session. If not, the server may have filled in the current one.
    pub is_session_named: bool,
    /// The request's id; `None` for a notification.
    pub id: Option<RequestId>,
    /// Set when the client no longer wants the answer. The list of running calls has only a weak
    /// reference to the token.
    pub cancelled: Arc<CancellationToken>,
    /// Set once the client has hung up.
    pub hung_up: CancellationToken,
    /// Parameters for a method that changes its session in several steps.
    pub(crate) in_steps: InSteps,
    /// Set by a method that finds out that it has long work. The connection's later calls then do not
    /// wait for the call, and it takes effect when the work is done.
    pub(crate) is_beside: Arc<AtomicBool>,
    /// Set once the call has taken effect, so that later calls may change the same manager or
    /// session. The server sets it at the end of the call, unless the call did so earlier.
    pub effective: CancellationToken,
}

/// Parameters that a method sees only if it works in several steps. For other methods, the code
/// around the method applies these parameters.
#[derive(Clone, Default)]
pub(crate) struct InSteps {
    /// Key of a call whose method stores the outcome itself.
    pub(super) key: Option<Keyed>,
    /// Version that the session must have.
    pub(super) if_version: Option<u64>,
}

impl MethodCall {
    /// Returns what the `agent` module needs from the call: the services and the cancellation.
    pub(super) fn job(&self) -> Job {
        let (services, cancelled) = (&self.tools.services, &self.cancelled);
        let (services, cancelled) = (Arc::clone(services), Arc::clone(cancelled));
        Job { services, caller: self.caller, cancelled }
    }

    /// Refuses to do `what` for a client over TCP without the secret.
    pub(super) fn check_access(&self, what: &str) -> Result<(), WireError> {
        match self.access.may_change_providers() {
            true => Ok(()),
            false => Err(refused(
                PlainKind::NotAllowed,
                format!(
                    "clients over TCP cannot {what} without the secret; send the secret first, or \
                     connect over stdio or the Unix socket"
                ),
            )),
        }
    }

    /// Returns a counter that counts as that of [`Services`] does, but stops when the client no
    /// longer wants the answer.
    pub(super) fn counter(&self) -> WantedCounter {
        self.job().counter()
    }
}

/// The notifications that a client wants.
#[derive(Debug, Clone, Default)]
pub struct Subscription {
    /// Topics to notify about.
    pub topics: Vec<Topic>,
    /// Managers to notify about; `None` for all.
    pub managers: Option<Vec<String>>,
    /// Names or ids of the sessions to notify about; `None` for all.
    pub sessions: Option<Vec<String>>,
    /// Connection that subscribed.
    pub caller: Caller,
}
