//! Calls of a client's tool: a call goes out as a notification, and its result comes back through a
//! method.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use super::given::Effect;
use super::{CALLED, CANCELLED, ClientTools, RegisteredTool};
use crate::agent::tools::{OfferedTool, ToolRequest, ToolTurn, one_line};
use crate::agent::{Job, Later};
use crate::ids::SessionId;
use crate::provider::chat;
use crate::session::message::ToolCall;
use crate::store::session::SessionRow;
use crate::value::Value;
use crate::visible::visible;
use crate::wording::counted;

/// A model calls a tool of this connection. Answer with `give-result`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ToolCalled<'a> {
    /// Number of the call, for `give-result`.
    call: u64,
    /// Name of the tool.
    tool: &'a str,
    /// Arguments: the JSON text of an object.
    arguments: &'a str,
    /// Name of the session; `nil` if another agent calls.
    session: Option<&'a str>,
    /// Id of the session; `nil` if another agent calls.
    session_id: Option<SessionId>,
    /// Folder of the session's or the agent's project; `nil` if it has none.
    project: Option<&'a str>,
    /// Name of the other agent that calls. The client must ask its user before the call changes
    /// anything, since nobody else asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
}

/// The caller of a client's tool.
#[derive(Clone, Copy)]
pub(super) enum CalledBy<'a> {
    Session(&'a SessionRow),
    Agent { name: &'a str, project: &'a str },
}

/// A call of a tool was cancelled or took too long. Its result is no longer wanted.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolCancelled<'a> {
    /// Number of the call.
    call: u64,
    /// Name of the tool.
    tool: &'a str,
}

/// A client's tool, for a turn.
pub(super) struct Remote {
    pub(super) brought: Arc<RegisteredTool>,
    pub(super) tools: ClientTools,
}

impl OfferedTool for Remote {
    fn name(&self) -> &str {
        &self.brought.tool.name
    }

    fn offered(&self) -> chat::ToolDefinition {
        let tool = &self.brought.tool;
        chat::ToolDefinition {
            name: tool.name.clone(),
            description: tool.text.clone(),
            schema: tool.schema.clone(),
        }
    }

    fn needs_approval(&self) -> bool {
        self.brought.tool.effect != Effect::Reads
    }

    fn is_offered_unasked(&self) -> bool {
        true
    }

    fn is_for(&self, session: &SessionRow) -> bool {
        self.brought.tool.is_for(session)
    }

    fn is_allowed(&self, session: &SessionRow, _: &[String]) -> bool {
        self.tools.is_allowed(session.id, &self.brought)
    }

    fn allow(&self, session: &SessionRow) -> Option<String> {
        self.tools.allow(session.id, &self.brought);
        None
    }

    fn understand<'a>(
        &'a self,
        called: &'a ToolCall,
        _: &'a SessionRow,
    ) -> Later<'a, Result<Box<dyn ToolRequest>, String>> {
        Box::pin(
            async move { Ok(Box::new(self.request(&called.arguments)?) as Box<dyn ToolRequest>) },
        )
    }
}

impl Remote {
    /// Creates a call. An error is the reason why the arguments are refused, as text for the model.
    pub(super) fn request(&self, arguments: &str) -> Result<ClientToolRequest, String> {
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        match serde_json::from_str(arguments) {
            Ok(Json::Object(_)) => {}
            Ok(_) => return Err("the arguments must be a JSON object".to_owned()),
            Err(error) => return Err(format!("the arguments are not JSON: {error}")),
        }
        let (brought, tools) = (Arc::clone(&self.brought), self.tools.clone());
        Ok(ClientToolRequest { brought, tools, arguments: arguments.to_owned() })
    }
}

/// A call of a client's tool, with its arguments.
pub(super) struct ClientToolRequest {
    brought: Arc<RegisteredTool>,
    tools: ClientTools,
    arguments: String,
}

impl ToolRequest for ClientToolRequest {
    fn phrase(&self) -> String {
        let tool = &self.brought.tool;
        // The arguments may be long, and come last.
        let reach = match &*tool.touches {
            "" => String::new(),
            touches => format!("(reaches {}) with ", visible(&one_line(touches))),
        };
        format!("call {} {reach}{}", tool.name, visible(&one_line(&self.arguments)))
    }

    fn carry_out<'a>(
        &'a self,
        job: &'a Job,
        turn: ToolTurn<'a>,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = job.cancelled.cancelled() => Err("the turn was cancelled".to_owned()),
                () = job.services.ending.cancelled() => {
                    Err("the server is shutting down".to_owned())
                }
                result = self.result(CalledBy::Session(turn.session), self.brought.tool.seconds) => result,
            }
        })
    }
}

impl ClientToolRequest {
    /// Calls the tool, and waits at most `seconds` for its result. An error is the reason why there
    /// is no result, as text for the model.
    pub(super) async fn result(&self, by: CalledBy<'_>, seconds: u64) -> Result<String, String> {
        let RegisteredTool { owner, tool } = &*self.brought;
        let gone = || format!("the client that brought the tool {} has disconnected", tool.name);
        if owner.is_here() && !self.tools.has(&self.brought) {
            return Err(format!(
                "{} is another tool now than the one that the user was asked about; call it again",
                tool.name
            ));
        }
        let (number, result) = self.tools.open(owner);
        let _open = OpenCall { request: self, number };
        tokio::select! {
            biased;
            () = owner.gone.cancelled() => return Err(gone()),
            () = self.ask(number, by) => {}
        }
        tokio::select! {
            biased;
            result = result => result.unwrap_or_else(|_| Err(gone())),
            () = owner.gone.cancelled() => Err(gone()),
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {
                let seconds = counted(seconds, "second");
                Err(format!("{} gave no result within {seconds}", tool.name))
            }
        }
    }

    /// Notifies the client of the call, once the client has read most of its earlier messages.
    /// Withdraws the call if the client cannot be notified.
    async fn ask(&self, number: u64, by: CalledBy<'_>) {
        let RegisteredTool { owner, tool } = &*self.brought;
        let peer = owner.peer.upgrade();
        if let Some(peer) = &peer {
            peer.room().await;
        }
        let (session, project, agent) = match by {
            CalledBy::Session(session) => (Some(session), session.project.as_deref(), None),
            CalledBy::Agent { name, project } => (None, Some(project), Some(name)),
        };
        let called = Value::of(&ToolCalled {
            call: number,
            tool: &tool.name,
            arguments: &self.arguments,
            session: session.map(|session| &*session.name),
            session_id: session.map(|session| SessionId(session.id)),
            project,
            agent,
        });
        if !peer.is_some_and(|peer| peer.notify(CALLED, called)) {
            self.tools.withdraw(number);
        }
    }
}

/// An open call. Dropping it withdraws the call, and tells the client so unless the client has
/// answered.
struct OpenCall<'a> {
    request: &'a ClientToolRequest,
    number: u64,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let ClientToolRequest { brought, tools, .. } = self.request;
        if tools.withdraw(self.number)
            && let Some(peer) = brought.owner.peer.upgrade()
        {
            let cancelled = ToolCancelled { call: self.number, tool: &brought.tool.name };
            peer.notify(CANCELLED, Value::of(&cancelled));
        }
    }
}
