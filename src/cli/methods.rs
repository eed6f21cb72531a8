//! `contexture methods`: prints the method table for people.

use std::fmt::Write;

use super::say;
use crate::rpc::{Method, Param, methods};

/// List the methods.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture methods\n  contexture methods --markdown")]
pub(super) struct Methods {
    /// Print the reference, with parameters and results, as Markdown
    #[arg(long)]
    markdown: bool,
}

impl Methods {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.markdown {
            true => say(&markdown()),
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

/// Returns the reference of all methods, as it appears in `docs/protocol.md`.
pub(crate) fn markdown() -> String {
    methods().map(section).collect::<Vec<_>>().join("\n")
}

fn section(method: &Method) -> String {
    let mut text = format!("#### `{}`\n\n{}\n\n", method.name, method.doc);
    let earlier: Vec<_> = method.earlier_names().map(|name| format!("`{name}`")).collect();
    if !earlier.is_empty() {
        let _ = writeln!(text, "Earlier: {}.\n", earlier.join(", "));
    }
    for param in method.params() {
        let need = if param.required { ", required" } else { "" };
        let values = &param.values;
        let list = match values.is_empty() {
            true => String::new(),
            false => {
                let names: Vec<_> = values.iter().map(|name| format!("`:{name}`")).collect();
                format!(" One of {}.", names.join(", "))
            }
        };
        let earlier = param.earlier.map(|name| format!(", earlier `:{name}`")).unwrap_or_default();
        let Param { name, kind, doc, .. } = param;
        let _ = writeln!(text, "- `:{name}` ({kind}{need}{earlier}): {doc}{list}");
    }
    if !method.params().is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "Result: {}", method.result);
    if let Some(lists) = method.lists_in_pages() {
        let lists: Vec<_> = lists.iter().map(|path| format!("`:{path}`")).collect();
        let _ = writeln!(text, "\nIn [pages](#pages): {}.", lists.join(", "));
    }
    text
}
