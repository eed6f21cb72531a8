//! Reads the text of a PDF with `pdftotext`, the only program that reads PDFs here. It gets the
//! content on its standard input, so no name of a file reaches it.

use std::process::Command;
use std::time::Duration;

use super::git::printed;

/// Maximum time that the program may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the text of each page; `None` if there is no such program, or if it cannot read the PDF.
pub(crate) fn pages_of_pdf(content: &[u8]) -> Option<Vec<String>> {
    let mut command = Command::new("pdftotext");
    command.args(["-q", "-layout", "-enc", "UTF-8", "-", "-"]);
    let text = String::from_utf8(printed(command, content, PATIENCE)?).ok()?;
    // Each page ends with a form feed.
    let pages = text.strip_suffix('\x0c').unwrap_or(&text).split('\x0c');
    Some(pages.map(str::to_owned).collect())
}
