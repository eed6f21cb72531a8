//! The method with which client and server introduce themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Statistics;
use crate::rpc::call::MethodCall;
use crate::rpc::connected::ConnectedAgent;
use crate::rpc::params::Short;
use crate::rpc::server::backup::BackupShown;
use crate::rpc::server::limits::LimitsShown;
use crate::rpc::{Finish, Step};
use crate::store::recovery::Files;
use crate::store::recovery::backup::list;
use crate::value::{Keyword, Value};
use crate::wire::dialect::Dialect;
use crate::wire::message::WireError;

/// Version of the protocol that this server speaks.
const PROTOCOL_VERSION: u32 = 1;

/// Names of what this server can do beyond the first version of the protocol.
const CAPABILITIES: [&str; 6] =
    ["batch", "cursors", "fields", "request-keys", "subscriptions", "versions"];

#[derive(Deserialize, JsonSchema)]
pub(super) struct Initialize {
    /// Name of the client.
    name: Option<Short>,
    /// Version of the client.
    version: Option<Short>,
    /// Versions of the protocol that the client speaks. The server answers with its own version,
    /// and continues even if the client does not name it.
    #[serde(default, rename = "protocol-versions")]
    _protocol_versions: Option<Vec<u32>>,
    /// The agent that the connection serves. `list-agents` lists it until the connection ends.
    agent: Option<AgentNamed>,
    /// Abilities of the client. No name has a meaning yet, so any value is accepted.
    #[serde(default, rename = "capabilities")]
    #[schemars(with = "serde_json::Value", extend("type" = ["object", "array"]))]
    _capabilities: Option<Value>,
}

/// An agent that a client serves.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct AgentNamed {
    /// Name of the agent.
    name: Short,
    /// Version of the agent.
    version: Option<Short>,
    /// Folder of the agent's project.
    project: Option<Short>,
}

/// The introduction of the server.
#[derive(Serialize, JsonSchema)]
pub(super) struct Initialized {
    /// Always `contexture`.
    name: &'static str,
    /// Version of the program.
    version: &'static str,
    /// Version of the protocol that the server speaks.
    protocol_version: u32,
    /// The client, as it named itself.
    client: ClientNamed,
    /// Dialect of this connection.
    dialect: Keyword<&'static str>,
    /// Dialects that the server understands.
    dialects: Vec<Keyword<&'static str>>,
    /// Abilities of the server.
    capabilities: Vec<Keyword<&'static str>>,
    /// Id of the server's process.
    pid: u32,
    /// State folder; `nil` if the server keeps no state.
    state: Option<String>,
    /// Name of the counter that counts the tokens of new items.
    token_counter: Keyword<&'static str>,
    /// Limits in effect.
    limits: LimitsShown,
    /// Totals since the start of the server.
    statistics: Statistics,
    /// Problems found at the start or since, such as a damaged database.
    notices: Vec<String>,
    /// Reason why changes cannot be stored now; `nil` if they can.
    read_only: Option<String>,
    /// Newest automatic backup; `nil` if there is none.
    backup: Option<BackupShown>,
}

/// The client of a connection.
#[derive(Serialize, JsonSchema)]
struct ClientNamed {
    /// Name of the program.
    name: Option<String>,
    /// Version of the program.
    version: Option<String>,
}

pub(super) fn initialize(call: MethodCall, given: Initialize) -> Result<Step, WireError> {
    let text = |short: Short| short.0;
    let client = ClientNamed { name: given.name.map(text), version: given.version.map(text) };
    let (tools, dialect) = (call.tools, call.dialect);
    let agent = given.agent.map(|agent| ConnectedAgent {
        name: text(agent.name),
        version: agent.version.map(text).unwrap_or_default(),
        project: agent.project.map(text).unwrap_or_default(),
    });
    Step::then(move |engine| {
        if let Some(agent) = agent {
            tools.agents.note(engine, &call.client, agent);
        }
        let (statistics, read_only) = (engine.statistics(), engine.refusal());
        let notices = [&tools.notices, engine.notices()].concat();
        Ok(Finish::Later(Box::new(move || {
            let folder = tools.state_folder.as_ref();
            let newest = folder.and_then(|folder| list(&Files::new(folder)).pop());
            Ok(Value::of(&Initialized {
                name: "contexture",
                version: env!("CARGO_PKG_VERSION"),
                protocol_version: PROTOCOL_VERSION,
                client,
                dialect: Keyword(dialect.name()),
                dialects: Dialect::ALL.iter().map(|dialect| Keyword(dialect.name())).collect(),
                capabilities: CAPABILITIES.map(Keyword).to_vec(),
                pid: std::process::id(),
                state: folder.map(|path| path.to_string_lossy().into_owned()),
                token_counter: Keyword(tools.counter.name()),
                limits: tools.limits.into(),
                statistics,
                notices,
                read_only,
                backup: newest.map(BackupShown::from),
            }))
        })))
    })
}
