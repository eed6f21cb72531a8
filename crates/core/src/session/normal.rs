//! Texts of messages in normal form, which even the strictest chat templates of servers accept.

/// Text of a missing result.
pub const NO_RESULT: &str = "(no result)";

/// Returns the text of a message of the user that stands for a result without a call.
pub fn result_without_call(text: &str) -> String {
    format!("Result of a tool:\n{text}")
}

/// Returns the text of a message of the user that stands for a system message after the first
/// messages.
pub fn system_note(text: &str) -> String {
    format!("<system-note>\n{text}\n</system-note>")
}
