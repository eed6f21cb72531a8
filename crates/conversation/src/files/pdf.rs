//! Reads the text of a PDF with `pdftotext`, the only program that reads PDFs here. It gets the
//! content on its standard input, so no name of a file reaches it.

use std::process::Command;
use std::time::Duration;

use super::program::{ProgramFailure, ProgramLimits, printed};

/// What the program may take. A small file can have far more text than its size.
const LIMITS: ProgramLimits = ProgramLimits {
    time: Duration::from_secs(20),
    silence: Duration::from_secs(20),
    memory: 1 << 30,
    output: 4 << 20,
};
/// Maximum number of pages.
const MOST_PAGES: usize = 2_000;

/// Returns the text of each page.
///
/// # Errors
/// The reason why the text is not known: there is no such program, it cannot read the PDF, or it
/// would take more than the limits allow.
pub fn pages_of_pdf(content: &[u8]) -> Result<Vec<String>, String> {
    let mut command = Command::new("pdftotext");
    command.args(["-q", "-layout", "-enc", "UTF-8", "-", "-"]);
    let text = printed(command, content, &LIMITS).map_err(|failure| match failure {
        ProgramFailure::NotStarted => "pdftotext is not installed".to_owned(),
        ProgramFailure::TooLong | ProgramFailure::Waited => {
            format!("pdftotext took longer than {} s", LIMITS.time.as_secs())
        }
        ProgramFailure::TooMuch => format!("it is longer than {} bytes", LIMITS.output),
        ProgramFailure::Failed => {
            "pdftotext cannot read the file, or needs too much memory".to_owned()
        }
    })?;
    let text = String::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    // Each page ends with a form feed.
    let pages = text.strip_suffix('\x0c').unwrap_or(&text).split('\x0c');
    match pages.clone().nth(MOST_PAGES) {
        None => Ok(pages.map(str::to_owned).collect()),
        Some(_) => Err(format!("it has more than {MOST_PAGES} pages")),
    }
}
