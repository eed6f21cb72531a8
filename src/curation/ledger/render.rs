//! The ledger as text: Markdown, a heading for each kind, oldest first, with the message of each.

use super::{Entry, Kind, Ledger};

impl Ledger {
    /// The ledger as Markdown, without a line break at its end; empty when nothing is known.
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
            blocks.push(format!("{} more {entries} left out for room.", self.left_out));
        }
        blocks.join("\n\n")
    }
}

/// The heading of a kind's lines.
pub(super) fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Constraint => "## Constraints",
        Kind::Decision => "## Decisions",
        Kind::Request => "## Asked and told",
        Kind::Task => "## Open tasks",
        Kind::Number => "## Numbers",
        Kind::Error => "## Errors seen",
        Kind::Path => "## Files",
        Kind::Command => "## Commands",
    }
}

/// One entry's line.
pub(super) fn line(entry: &Entry) -> String {
    let earlier = if entry.earlier { " (earlier)" } else { "" };
    let text = format!("{}{earlier}", entry.text.replace('\n', " "));
    match entry.kind {
        Kind::Command if !text.contains('`') => format!("- `{text}` (msg-{})", entry.origin),
        _ => format!("- {text} (msg-{})", entry.origin),
    }
}
