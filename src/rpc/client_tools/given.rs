//! Descriptions of tools, as clients give them.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value as Json, json};

use crate::agent::tools::context;
use crate::ids::SessionId;
use crate::names::names;
use crate::rpc::error::param_error;
use crate::rpc::params::{Short, at_most};
use crate::store::session::SessionRow;
use crate::wire::message::WireError;

/// Maximum number of tools of one connection.
pub(in crate::rpc) const MAX_CLIENT_TOOLS: usize = 128;
/// Maximum length of a tool's name, in bytes; some providers refuse longer ones.
pub(in crate::rpc) const MAX_TOOL_NAME_BYTES: usize = 64;
/// Maximum length of a tool's description and schema together, in bytes.
pub(in crate::rpc) const MAX_DESCRIPTION_BYTES: usize = 16 << 10;
/// Maximum number of sessions, and of projects, in which a tool is offered.
pub(in crate::rpc) const MAX_TOOL_PLACES: usize = 64;
/// Maximum time that a call of a client's tool may take, in seconds.
pub(in crate::rpc) const MAX_TOOL_SECONDS: u64 = 3600;
/// Time that a call of a client's tool may take unless its client says otherwise, in seconds.
const DEFAULT_TOOL_SECONDS: u64 = 60;

names! {
    /// The effect of calls of a client's tool.
    #[schemars(rename = "ToolEffect")]
    Effect {
        /// Calls only read, and need no approval.
        Reads => "reads",
        /// Calls may change something, and need approval.
        Changes => "changes",
    }
}

/// A tool of a client.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ClientTool")]
pub(in crate::rpc) struct ClientTool {
    /// Name by which models call the tool: 1 to 64 ASCII letters, digits and underscores.
    name: String,
    /// Description of the tool, for models.
    description: String,
    /// JSON Schema of the arguments, as JSON text. Its type must be `object`; defaults to an object
    /// without properties.
    schema: Option<String>,
    /// Effect of calls; calls that change something need approval.
    effect: Effect,
    /// What calls can reach, as a phrase for the person who allows them.
    touches: Option<Short>,
    #[schemars(description = format!(
        "Maximum time of a call in seconds, at most {MAX_TOOL_SECONDS}; defaults to {DEFAULT_TOOL_SECONDS}."
    ))]
    seconds: Option<u64>,
    /// Names or ids of the sessions in which to offer the tool.
    sessions: Option<Vec<Short>>,
    /// Folders of the projects in whose sessions to offer the tool.
    projects: Option<Vec<Short>>,
    /// Offer the tool in all sessions.
    everywhere: Option<bool>,
    /// Folders of the projects in which other agents may call the tool, by `call-tool`. If the tool
    /// changes something, the client itself must ask its user before such a call.
    agent_projects: Option<Vec<Short>>,
    /// Offer the tool to other agents in all projects. A tool without `:sessions`, `:projects`,
    /// `:everywhere`, `:agent-projects` and `:agents` is offered nowhere.
    agents: Option<bool>,
}

/// A tool of a client, checked.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::rpc) struct ToolDescription {
    /// Name by which models call the tool.
    pub(in crate::rpc) name: String,
    /// Description of the tool, for models.
    #[serde(rename = "description")]
    pub(in crate::rpc) text: String,
    /// JSON Schema of the arguments, as JSON.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub(in crate::rpc) schema: Json,
    /// Effect of calls; calls that change something need approval.
    pub(in crate::rpc) effect: Effect,
    /// What calls can reach; empty if the client did not say.
    pub(in crate::rpc) touches: String,
    /// Maximum time of a call, in seconds.
    pub(in crate::rpc) seconds: u64,
    /// Names or ids of the sessions in which the tool is offered.
    pub(in crate::rpc) sessions: Vec<String>,
    /// Folders of the projects in whose sessions the tool is offered.
    pub(in crate::rpc) projects: Vec<String>,
    /// True if the tool is offered in all sessions.
    pub(in crate::rpc) everywhere: bool,
    /// Folders of the projects in which other agents may call the tool.
    pub(in crate::rpc) agent_projects: Vec<String>,
    /// True if other agents may call the tool in all projects.
    pub(in crate::rpc) agents: bool,
}

fn as_text<S: Serializer>(schema: &Json, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(schema)
}

impl ToolDescription {
    /// Returns whether the tool is offered in a session.
    pub(in crate::rpc) fn is_for(&self, session: &SessionRow) -> bool {
        let id = SessionId(session.id).to_string();
        self.everywhere
            || self.sessions.iter().any(|name| *name == session.name || *name == id)
            || session.project.as_deref().is_some_and(|project| has(&self.projects, project))
    }

    /// Returns whether agents other than the server's own may call the tool in some project.
    pub(super) fn is_for_some_agents(&self) -> bool {
        self.agents || !self.agent_projects.is_empty()
    }

    /// Returns whether agents other than the server's own may call the tool in a project.
    pub(in crate::rpc) fn is_for_agents(&self, project: &str) -> bool {
        self.agents || has(&self.agent_projects, project)
    }
}

/// Checks the tools of a connection. The error names the first wrong member.
pub(in crate::rpc) fn checked(given: Vec<ClientTool>) -> Result<Vec<ToolDescription>, WireError> {
    at_most("tools", MAX_CLIENT_TOOLS, given.len())?;
    let mut names = HashSet::new();
    let checked = given.into_iter().enumerate().map(|(at, tool)| {
        let wrong = |member: &str, what: &str| param_error(&format!("tools[{at}].{member}"), what);
        check_name(&tool.name).map_err(|what| wrong("name", &what))?;
        if !names.insert(tool.name.clone()) {
            return Err(wrong("name", &format!("must be unique; {:?} is used twice", tool.name)));
        }
        let schema = schema(tool.schema.as_deref()).map_err(|what| wrong("schema", &what))?;
        let bytes = tool.description.len() + tool.schema.as_ref().map_or(0, String::len);
        if tool.description.trim().is_empty() || bytes > MAX_DESCRIPTION_BYTES {
            let what = format!(
                "must say what the tool does, and have at most {MAX_DESCRIPTION_BYTES} bytes \
                 together with the schema"
            );
            return Err(wrong("description", &what));
        }
        let seconds = tool.seconds.unwrap_or(DEFAULT_TOOL_SECONDS);
        if !(1..=MAX_TOOL_SECONDS).contains(&seconds) {
            let what = format!("must be from 1 to {MAX_TOOL_SECONDS}, got {seconds}");
            return Err(wrong("seconds", &what));
        }
        let places = |given: Option<Vec<Short>>, member| {
            let given = given.unwrap_or_default();
            match given.len() > MAX_TOOL_PLACES {
                true => Err(wrong(member, &format!("must have at most {MAX_TOOL_PLACES} entries"))),
                false => Ok(given.into_iter().map(|Short(place)| place).collect()),
            }
        };
        Ok(ToolDescription {
            schema,
            effect: tool.effect,
            touches: tool.touches.map_or_else(String::new, |Short(text)| text),
            seconds,
            sessions: places(tool.sessions, "sessions")?,
            projects: places(tool.projects, "projects")?,
            everywhere: tool.everywhere.unwrap_or(false),
            agent_projects: places(tool.agent_projects, "agent-projects")?,
            agents: tool.agents.unwrap_or(false),
            name: tool.name,
            text: tool.description,
        })
    });
    checked.collect()
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !(1..=MAX_TOOL_NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_allowed) {
        return Err(format!(
            "must have 1 to {MAX_TOOL_NAME_BYTES} ASCII letters, digits and underscores"
        ));
    }
    match context::find(name) {
        Some(_) => Err(format!("must not be the name of one of the server's tools, got {name:?}")),
        None => Ok(()),
    }
}

/// Reads the schema of a tool's arguments; without a text, returns that of an object without
/// properties. An error continues from the name of the parameter.
fn schema(text: Option<&str>) -> Result<Json, String> {
    let Some(text) = text else { return Ok(json!({ "type": "object", "properties": {} })) };
    let schema: Json =
        serde_json::from_str(text).map_err(|error| format!("must be JSON: {error}"))?;
    match schema["type"] == "object" && !schema["properties"].is_array() {
        true => Ok(schema),
        false => Err("must be a JSON Schema whose type is object".to_owned()),
    }
}

/// Returns whether `folders` contains `folder`, with or without a slash at its end.
fn has(folders: &[String], folder: &str) -> bool {
    folders.iter().any(|known| folder_of(known) == folder_of(folder))
}

/// Returns the name of a folder without a slash at its end.
fn folder_of(name: &str) -> &str {
    name.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests;
