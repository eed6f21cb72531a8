//! The agent on the other side, as it introduced itself.

use rmcp::model::Implementation;
use serde::Serialize;

/// Maximum number of characters of an agent's name or version.
const LONGEST: usize = 100;

/// The introduction of an agent, in the form that the server expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct McpAgent {
    pub(super) name: String,
    pub(super) version: String,
    /// Folder of the agent's project, if known.
    pub(super) project: Option<String>,
}

impl McpAgent {
    /// Creates an agent, without a project, from the information that a client gives about itself.
    /// An agent without a name gets the name `mcp`.
    pub(super) fn new(told: Option<Implementation>) -> Self {
        let short = |text: String| text.chars().take(LONGEST).collect::<String>();
        let (name, version) = told.map(|told| (told.name, told.version)).unwrap_or_default();
        let name = if name.is_empty() { "mcp".to_owned() } else { short(name) };
        Self { name, version: short(version), project: None }
    }
}
