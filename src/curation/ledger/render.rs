//! Renders the ledger as Markdown: a heading for each kind, and below it the entries, oldest first,
//! each with the number of its message.

use super::{Entry, Kind, Ledger};

impl Ledger {
    /// Renders the ledger as Markdown, without a line break at its end. Empty for an empty ledger.
    pub fn render(&self) -> String {
        let mut blocks: Vec<String> = Vec::new();
        for kind in Kind::ALL {
            let lines: Vec<String> =
                self.entries.iter().filter(|entry| entry.kind == *kind).map(line).collect();
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
        Kind::Constraint => "## Constraints",
        Kind::Decision => "## Decisions",
        Kind::Request => "## Requests and remarks",
        Kind::Task => "## Open tasks",
        Kind::Number => "## Numbers",
        Kind::Error => "## Errors seen",
        Kind::Path => "## Files",
        Kind::Command => "## Commands",
    }
}

pub(super) fn line(entry: &Entry) -> String {
    let earlier = if entry.earlier { " (earlier)" } else { "" };
    let text = format!("{}{earlier}", entry.text.replace('\n', " "));
    match entry.kind {
        Kind::Command if !text.contains('`') => format!("- `{text}` (msg-{})", entry.origin),
        _ => format!("- {text} (msg-{})", entry.origin),
    }
}
