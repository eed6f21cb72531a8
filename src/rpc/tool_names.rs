//! Names of tools in parameters.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::agent::tools::context::{ALL, ContextTool, find, names};
use crate::value::Value;

/// Names of tools for models: `t` means all of them, `nil` none; `None` when not given.
#[derive(Clone, Default)]
pub(super) struct ToolNames(pub(super) Option<Vec<&'static ContextTool>>);

impl ToolNames {
    /// Returns the names in the form in which they are stored.
    pub(super) fn names(self) -> Option<Vec<String>> {
        Some(self.0?.into_iter().map(|tool| tool.name.to_owned()).collect())
    }
}

impl<'de> Deserialize<'de> for ToolNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = match Value::deserialize(deserializer)? {
            Value::Nil | Value::Bool(false) => return Ok(Self(Some(Vec::new()))),
            given if given.is_false() => return Ok(Self(Some(Vec::new()))),
            Value::Bool(true) => return Ok(Self(Some(ALL.iter().collect()))),
            Value::List(names) | Value::Vector(names) => names,
            other => {
                let got = other.describe();
                let wrong = format!("must be t or nil, or a list of names of tools, got {got}");
                return Err(serde::de::Error::custom(wrong));
            }
        };
        names.iter().map(tool).collect::<Result<_, _>>().map(|tools| Self(Some(tools)))
    }
}

impl JsonSchema for ToolNames {
    fn schema_name() -> Cow<'static, str> {
        "ToolNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let name = json_schema!({"type": "string", "enum": names()});
        json_schema!({"type": ["boolean", "array"], "items": name})
    }
}

fn tool<E: serde::de::Error>(name: &Value) -> Result<&'static ContextTool, E> {
    let text = match name {
        Value::Str(name) => &**name,
        Value::Symbol(name) | Value::Keyword(name) => name,
        _ => "",
    };
    // A keyword or symbol may have hyphens.
    find(&text.replace('-', "_")).ok_or_else(|| {
        E::custom(format!(
            "must name existing tools, got {text:?}; existing: {}",
            names().join(", ")
        ))
    })
}
