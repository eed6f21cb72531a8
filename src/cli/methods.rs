//! `contexture methods`: prints the methods, as a short list or with the whole reference.

use std::fmt::Write;

use super::reference::{ReferencePart, markdown};
use super::say;
use crate::rpc::{Method, methods};

/// List the methods.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  contexture methods\n  contexture methods --markdown")]
pub(super) struct Methods {
    /// Print the reference, with parameters and results, as Markdown
    #[arg(long)]
    markdown: bool,
}

impl Methods {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.markdown {
            true => say(&markdown(ReferencePart::Methods)),
            false => say(&list()),
        }
    }
}

fn list() -> String {
    let width = methods().map(|method| method.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Method { name, doc, .. } in methods() {
        let sentence = doc.split_inclusive(". ").next().unwrap_or(doc).trim_end();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:width$}  {sentence}");
    }
    text
}
