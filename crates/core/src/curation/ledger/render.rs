//! Renders the ledger as Markdown: a heading for each kind, and below it the entries, each with the
//! number of its message.

use super::{Entry, Kind, Ledger};

impl Ledger {
    /// Renders the ledger as Markdown, without a line break at its end. Empty for an empty ledger.
    pub fn render(&self) -> String {
        let mut blocks: Vec<String> = Vec::new();
        for kind in Kind::ALL {
            let mut lines: Vec<String> =
                self.entries.iter().filter(|entry| entry.kind == *kind).map(line).collect();
            if *kind == Kind::Said {
                lines.reverse();
            }
            if !lines.is_empty() {
                blocks.push(format!("{}\n{}", heading(*kind), lines.join("\n")));
            }
        }
        if self.left_out > 0 && !blocks.is_empty() {
            let entries = if self.left_out == 1 { "entry" } else { "entries" };
            blocks.push(format!("{} more {entries} left out for lack of room.", self.left_out));
        }
        blocks.join("\n\n")
    }
}

pub(super) fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Said => "## What the user said, newest first",
        Kind::Path => "## Files",
        Kind::Command => "## Commands",
    }
}

pub(super) fn line(entry: &Entry) -> String {
    let Entry { kind, text, origin, turn, .. } = entry;
    match kind {
        Kind::Said => format!("- Turn {turn} (msg-{origin}): {}", text.replace('\n', "\n  ")),
        Kind::Path => format!("- {text} (msg-{origin})"),
        Kind::Command => format!("- `{}` (msg-{origin})", text.replace('\n', " ")),
    }
}
