//! `contexture schema`: prints the JSON Schema of the protocol for programs.

use super::reference::{Part, markdown};
use super::say;
use crate::rpc::document;

/// Print the JSON Schema of the protocol, from which a client can be generated
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture schema >schema.json")]
pub(super) struct Schema {
    /// Print a part of the reference for people instead, as Markdown
    #[arg(long, value_name = "PART")]
    markdown: Option<Part>,
}

impl Schema {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.markdown {
            Some(part) => say(&markdown(part)),
            None => say(&format!("{:#}\n", document())),
        }
    }
}
