//! Tables in Markdown, as in `docs/benchmarks.md`.

use std::io::{self, Write};

/// Prints a title, a heading of columns, and rows.
pub(crate) fn print(title: &str, columns: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "### {title}\n")?;
    writeln!(out, "| {} |", columns.join(" | "))?;
    let rule: Vec<&str> =
        columns.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" }).collect();
    writeln!(out, "| {} |", rule.join(" | "))?;
    for row in rows {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    writeln!(out)?;
    Ok(())
}

/// Formats a share in percent.
pub(crate) fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
