//! Names of tools in parameters.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::call::MethodCall;
use super::error::param_error;
use crate::agent::tools::context;
use crate::value::Value;
use crate::wire::message::WireError;

/// Names of tools for models: `t` means all of them, `nil` none.
#[derive(Clone, Default)]
pub(super) enum ToolNames {
    #[default]
    NotGiven,
    All,
    Named(Vec<String>),
}

impl ToolNames {
    /// Returns the names of tools to offer in a turn; `None` if the parameter, `param`, is not
    /// given. "All tools" includes the tools of clients. Fails if a tool does not exist.
    pub(super) fn offered(
        self,
        call: &MethodCall,
        param: &str,
    ) -> Result<Option<Vec<String>>, WireError> {
        match self {
            Self::All => Ok(Some(existing(call))),
            other => other.stored(call, param),
        }
    }

    /// Returns the names of tools for a session's settings; `None` if the parameter, `param`, is
    /// not given. "All tools" means only the tools of the server. Fails if a tool does not exist.
    pub(super) fn stored(
        self,
        call: &MethodCall,
        param: &str,
    ) -> Result<Option<Vec<String>>, WireError> {
        let names = match self {
            Self::NotGiven => return Ok(None),
            Self::All => context::names().into_iter().map(str::to_owned).collect(),
            Self::Named(names) => names,
        };
        let existing = existing(call);
        match names.iter().find(|name| !existing.contains(name)) {
            None => Ok(Some(names)),
            Some(name) => {
                let existing = existing.join(", ");
                let what =
                    format!("must name existing tools, got {name:?}; the tools are {existing}");
                Err(param_error(param, &what))
            }
        }
    }
}

/// Returns the names of all tools: the server's, and those that clients bring.
fn existing(call: &MethodCall) -> Vec<String> {
    let own = context::names().into_iter().map(str::to_owned);
    own.chain(call.tools.client_tools.names()).collect()
}

impl<'de> Deserialize<'de> for ToolNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = match Value::deserialize(deserializer)? {
            Value::Nil | Value::Bool(false) => return Ok(Self::Named(Vec::new())),
            given if given.is_false() => return Ok(Self::Named(Vec::new())),
            Value::Bool(true) => return Ok(Self::All),
            Value::List(names) | Value::Vector(names) => names,
            other => {
                let got = other.describe();
                let wrong = format!("must be t or nil, or a list of tool names, got {got}");
                return Err(serde::de::Error::custom(wrong));
            }
        };
        // A value that is no name becomes an empty one. A keyword or symbol may have hyphens.
        let name = |given: &Value| given.as_text().unwrap_or_default().replace('-', "_");
        Ok(Self::Named(names.iter().map(name).collect()))
    }
}

impl JsonSchema for ToolNames {
    fn schema_name() -> Cow<'static, str> {
        "ToolNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let name = json_schema!({"type": "string"});
        json_schema!({"type": ["boolean", "array"], "items": name})
    }
}
