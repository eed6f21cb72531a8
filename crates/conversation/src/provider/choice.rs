//! What a request asks for besides a text: a call of a tool, or JSON of some form.

use serde_json::Value;

/// Whether a model has to call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model chooses.
    #[default]
    Auto,
    /// The model calls one of the tools.
    Any,
    /// The model calls the tool with this name.
    Tool(String),
    /// The model calls no tool.
    None,
}

#[cfg(feature = "providers")]
impl ToolChoice {
    /// Returns the choice in the words of `OpenAI`'s interfaces; `None` if the model chooses.
    pub(super) fn word(&self, of_tool: impl Fn(&str) -> Value) -> Option<Value> {
        match self {
            Self::Auto => None,
            Self::Any => Some("required".into()),
            Self::Tool(name) => Some(of_tool(name)),
            Self::None => Some("none".into()),
        }
    }
}

/// The form of an answer: JSON that a schema describes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OutputSchema {
    /// Name of the form, for the model: letters, digits, `_` and `-`.
    pub name: String,
    /// JSON schema of the answer.
    pub schema: Value,
}

impl OutputSchema {
    /// Creates the form with this name and JSON schema.
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self { name: name.into(), schema }
    }
}
