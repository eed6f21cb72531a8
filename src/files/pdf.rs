//! Reads the text of a PDF with `pdftotext`, the only program that reads PDFs here. It gets the
//! content on its standard input, so no name of a file reaches it.

use std::process::Command;
use std::time::Duration;

use super::git::printed;

/// Maximum time that the program may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum size of a PDF's text in bytes, and of its pages. A small file can have far more.
const MOST_TEXT: u64 = 4 << 20;
const MOST_PAGES: usize = 2_000;

/// Returns the text of each page; `None` if there is no such program, if it cannot read the PDF, or if
/// there is more text than the limits allow.
pub(crate) fn pages_of_pdf(content: &[u8]) -> Option<Vec<String>> {
    let mut command = Command::new("pdftotext");
    command.args(["-q", "-layout", "-enc", "UTF-8", "-", "-"]);
    let text = String::from_utf8(printed(command, content, PATIENCE, MOST_TEXT)?).ok()?;
    // Each page ends with a form feed.
    let pages = text.strip_suffix('\x0c').unwrap_or(&text).split('\x0c');
    (pages.clone().nth(MOST_PAGES).is_none()).then(|| pages.map(str::to_owned).collect())
}
