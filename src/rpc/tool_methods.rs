//! The methods with which clients bring tools and answer calls of these tools.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::client_tools::{self, ToolDescription, ToolOwner, announce, checked};
use super::editors::EditorText;
use super::error::{param_error, refused};
use super::error_data::PlainKind;
use super::params::Short;
use crate::engine::EngineError;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct RegisterTools {
    /// The tools of this connection, at most 128, in place of earlier ones; `nil` for none.
    tools: Vec<client_tools::ClientTool>,
}

/// The tools of a connection.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RegisteredTools")]
pub(super) struct Registered {
    /// Number of tools that the connection has now.
    tools: usize,
}

pub(super) fn register_tools(call: MethodCall, given: RegisterTools) -> Result<Step, WireError> {
    if !call.dialect.has_progress() {
        let why = "tool calls cannot reach a client of EPC, SLY or SLIME; use s-expressions or \
                   JSON, one message on each line";
        return Err(refused(PlainKind::NotAllowed, why.to_owned()));
    }
    call.check_access("bring tools")?;
    let tools = checked(given.tools)?;
    let (client, peer) = (Arc::downgrade(&call.client), Arc::downgrade(&call.peer));
    let owner = ToolOwner { client, peer, gone: call.hung_up };
    // At once, and not with the step: later calls look for tools before their steps.
    let registered = Registered { tools: tools.len() };
    let changed = call.tools.client_tools.set(&owner, tools);
    Step::state(move |engine| {
        if !changed.is_empty() {
            announce(engine, changed.iter().map(|brought| &brought.tool));
        }
        Ok::<_, EngineError>(registered)
    })
}

/// A tool that a client brought.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListedTool")]
pub(super) struct ListedTool<'a> {
    #[serde(flatten)]
    tool: &'a ToolDescription,
    /// True if this connection brought the tool.
    own: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListTools {
    /// List only the tools that other agents may call in the project with this folder.
    agent_project: Option<Short>,
}

pub(super) fn list_tools(call: MethodCall, given: ListTools) -> Result<Step, WireError> {
    let client = Arc::downgrade(&call.client);
    let tools = &call.tools.client_tools;
    let wanted = match given.agent_project {
        None => tools.here(),
        Some(Short(project)) => tools.for_agents(&project),
    };
    let listed = wanted.iter().map(|brought| ListedTool {
        tool: &brought.tool,
        own: brought.owner.client.ptr_eq(&client),
    });
    Step::done(&listed.collect::<Vec<_>>())
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GiveResult {
    /// Number of the call of a tool.
    call: Option<u64>,
    /// Number of the question for unsaved text; either this or `:call`.
    question: Option<u64>,
    /// Result for the model, or text of the file that the question names, if the file is in a buffer
    /// with unsaved changes.
    content: Option<String>,
    /// Reason why the call failed, as a phrase for the model, or why a buffer with unsaved changes
    /// gives no text; either this or `:content`.
    error: Option<String>,
}

/// The outcome of giving a result.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TakenResult")]
pub(super) struct ResultTaken {
    /// True if the call or the question was still waiting for this connection.
    taken: bool,
}

pub(super) fn give_result(call: MethodCall, given: GiveResult) -> Result<Step, WireError> {
    let GiveResult { call: number, question, content, error } = given;
    let result = match (number, question, content, error) {
        (None, Some(question), text, error) if text.is_none() || error.is_none() => {
            let is_edited = text.is_some() || error.is_some();
            ClientAnswer::Text(question, EditorText { text, is_edited })
        }
        (Some(number), None, Some(content), None) => ClientAnswer::Result(number, Ok(content)),
        (Some(number), None, None, Some(error)) => ClientAnswer::Result(number, Err(error)),
        (Some(_), None, ..) => {
            return Err(param_error("content", "or error must be given, but not both"));
        }
        (None, Some(_), ..) => {
            return Err(param_error("error", "cannot be combined with the parameter content"));
        }
        _ => return Err(param_error("call", "or question must be given, but not both")),
    };
    // This runs in the engine, so that it comes after the changes that the client made there.
    Step::state(move |_| {
        let taken = match result {
            ClientAnswer::Text(question, text) => {
                call.tools.editors.answer(&call.client, question, text)
            }
            ClientAnswer::Result(number, result) => {
                call.tools.client_tools.answer(&call.client, number, result)
            }
        };
        Ok(ResultTaken { taken })
    })
}

/// What a client answers: the text of a file, or the result of a tool.
enum ClientAnswer {
    Text(u64, EditorText),
    Result(u64, Result<String, String>),
}
