//! The method with which client and server introduce themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::params::Short;
use crate::rpc::server::limits::LimitsShown;
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
    /// Abilities of the client. No name has a meaning yet, so any value is accepted.
    #[serde(default, rename = "capabilities")]
    #[schemars(with = "serde_json::Value", extend("type" = ["object", "array"]))]
    _capabilities: Option<Value>,
}

/// The introduction of the server.
#[derive(Serialize, JsonSchema)]
pub(super) struct Initialized {
    /// Version of the protocol that the server speaks.
    protocol_version: u32,
    /// The server.
    server: Side,
    /// The client, as it named itself.
    client: Side,
    /// Dialect of this connection.
    dialect: Keyword<&'static str>,
    /// Dialects that the server understands.
    dialects: Vec<Keyword<&'static str>>,
    /// Abilities of the server.
    capabilities: Vec<Keyword<&'static str>>,
    /// Limits in effect.
    limits: LimitsShown,
}

/// One side of the connection.
#[derive(Serialize, JsonSchema)]
struct Side {
    /// Name of the program.
    name: Option<String>,
    /// Version of the program.
    version: Option<String>,
}

pub(super) fn initialize(call: Call, given: Initialize) -> Result<Step, WireError> {
    call.client.introduce();
    let text = |short: Short| short.0;
    Step::done(&Initialized {
        protocol_version: PROTOCOL_VERSION,
        server: Side {
            name: Some("contexture".to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        },
        client: Side { name: given.name.map(text), version: given.version.map(text) },
        dialect: Keyword(call.dialect.name()),
        dialects: Dialect::ALL.iter().map(|dialect| Keyword(dialect.name())).collect(),
        capabilities: CAPABILITIES.map(Keyword).to_vec(),
        limits: call.tools.limits.into(),
    })
}
