//! `contexture schema`: prints the JSON Schema of the protocol for programs.

use super::say;
use crate::rpc::document;

/// Print the JSON Schema of the protocol, from which a client can be generated
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture schema >schema.json")]
pub(super) struct Schema {}

impl Schema {
    pub(super) fn run(self) -> anyhow::Result<()> {
        say(&format!("{:#}\n", document()))
    }
}
