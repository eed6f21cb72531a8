//! `contexture schema`: prints the JSON Schema of the protocol, or parts of the reference.

use super::emacs::generated;
use super::reference::{ReferencePart, markdown};
use super::say;
use crate::rpc::document;

/// Print the JSON Schema of the protocol. Programs can generate clients from it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture schema >schema.json")]
pub(super) struct Schema {
    /// Print a part of the reference as Markdown, not the schema
    #[arg(long, value_name = "PART")]
    markdown: Option<ReferencePart>,
    /// Print the Emacs Lisp that the package shares with the server, not the schema
    #[arg(long, conflicts_with = "markdown")]
    emacs: bool,
}

impl Schema {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.markdown {
            _ if self.emacs => say(&generated()),
            Some(part) => say(&markdown(part)),
            None => say(&format!("{:#}\n", document())),
        }
    }
}
