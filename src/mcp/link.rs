//! The connection to the server: one call at a time. If the server has ended, the next call connects
//! again.

use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::sync::Mutex;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout};

use super::agent::McpAgent;
use super::answer::Trouble;
use super::open::{ANSWERS_WITHIN, CallRefusal, OpenConnection, ServerReply, Stream};
use super::watch::Watch;

/// Maximum time to wait for the reply to a call.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A future that returns a connection, or the reason why there is none.
pub(crate) type Dialing<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, String>> + Send + 'a>>;

/// A way to reach the server, which may have to be started first.
pub(crate) trait Dial: Send + Sync + 'static {
    /// Connects to the server. Fails if the server does not answer.
    fn dial(&self) -> Dialing<'_>;
}

/// The connection to the server, made when it is first needed.
pub(crate) struct ServerLink {
    dial: Box<dyn Dial>,
    open: Mutex<Option<OpenConnection>>,
    /// The agent that the connection serves, if known.
    agent: OnceLock<McpAgent>,
    watch: Watch,
}

impl ServerLink {
    /// Creates a link to the server that `dial` reaches, without connecting yet.
    pub(crate) fn new(dial: impl Dial) -> Self {
        Self {
            dial: Box::new(dial),
            open: Mutex::new(None),
            agent: OnceLock::new(),
            watch: Watch::default(),
        }
    }

    /// Sets the agent that the connection serves, unless it is already known. Over each connection
    /// for ordinary calls, the server is told about the agent before the first call.
    pub(super) fn introduce(&self, agent: impl FnOnce() -> McpAgent) {
        self.agent.get_or_init(agent);
    }

    /// Begins to watch the tools that clients offer to agents, and returns a receiver of changes to
    /// these tools. If there is no server, the watch begins with the next connection.
    pub(super) async fn tool_changes(&self) -> Receiver<()> {
        let changes = self.watch.changes();
        // Without a server, the next connection begins the watch.
        let _ = self.connect().await;
        self.watch_tools(false).await;
        changes
    }

    /// Begins to watch the tools that clients offer, if somebody wants to know of changes. Does
    /// nothing if the tools are already watched, unless the server `is_new`.
    pub(super) async fn watch_tools(&self, is_new: bool) {
        if let Some(due) = self.watch.due(is_new).await
            && let Ok(stream) = self.dial.dial().await
        {
            due.begin(OpenConnection::over(stream)).await;
        }
    }

    /// Connects to the server if there is no connection yet.
    pub(crate) async fn connect(&self) -> Result<(), String> {
        let mut slot = self.open.lock().await;
        if slot.is_none() {
            *slot = Some(OpenConnection::over(self.dial.dial().await?));
        }
        Ok(())
    }

    /// Calls a method of the server and decodes its result. If the server is shutting down, calls
    /// the method of the server that takes its place. Waits at most [`LONGEST_WAIT`] for each of
    /// the two replies.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Json,
    ) -> Result<T, Trouble> {
        let mut slot = self.open.lock().await;
        let mut reply = self.ask(&mut slot, method, &params).await?;
        if reply.error.as_ref().is_some_and(CallRefusal::is_of_the_ending) {
            // The server did not run the call. Another server takes its place, perhaps in this
            // process.
            *slot = None;
            reply = self.ask(&mut slot, method, &params).await?;
        }
        reply.result()
    }

    /// Calls a method over a connection of its own, so that other calls continue meanwhile. Has no
    /// time limit. If the agent gives up before the reply, cancels the call on the server.
    pub(super) async fn call_apart<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Json,
        given_up: impl Future<Output = ()>,
    ) -> Result<T, Trouble> {
        let mut open = OpenConnection::over(self.dial.dial().await.map_err(Trouble::Unreachable)?);
        let reply = tokio::select! {
            reply = open.ask(method, &params) => reply,
            () = given_up => {
                let call = open.last;
                open.ask("cancel", &json!({ "id": call })).await
            }
        };
        reply.ok_or(Trouble::Lost)?.result()
    }

    async fn ask(
        &self,
        slot: &mut Option<OpenConnection>,
        method: &str,
        params: &Json,
    ) -> Result<ServerReply, Trouble> {
        // The connection is taken out of its slot, so that an abandoned call leaves no half-read
        // connection behind.
        let mut open = match slot.take().and_then(OpenConnection::if_alive) {
            Some(mut open) => {
                // A server that answers at all answers this at once.
                let nothing = Json::Null;
                let answers = timeout(ANSWERS_WITHIN, open.ask("ping", &nothing));
                answers.await.map_err(|_| Trouble::Mute)?.ok_or(Trouble::Lost)?;
                open
            }
            None => {
                let open =
                    OpenConnection::over(self.dial.dial().await.map_err(Trouble::Unreachable)?);
                self.watch_tools(true).await;
                open
            }
        };
        let agent = self.agent.get().filter(|_| !open.is_introduced);
        let reply = {
            let mut asking = pin!(async {
                if let Some(agent) = agent {
                    open.is_introduced = true;
                    open.ask("initialize", &json!({ "agent": agent })).await?;
                }
                open.ask(method, params).await
            });
            let end = Instant::now() + LONGEST_WAIT;
            loop {
                match timeout(ANSWERS_WITHIN, &mut asking).await {
                    Ok(reply) => break reply.ok_or(Trouble::Lost)?,
                    Err(_) if Instant::now() >= end => return Err(Trouble::Slow),
                    // A server that works on the call still answers others.
                    Err(_) => drop(self.dial.dial().await.map_err(|_| Trouble::Mute)?),
                }
            }
        };
        *slot = Some(open);
        Ok(reply)
    }
}
