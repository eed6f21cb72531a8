//! A program that keeps its own history, in the form of chat completions, and asks which of the
//! messages to show to a model. Nothing is stored: `cargo run --example curate`.

use std::io::Write;

use contexture::{Error, Message, curate};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shown = shown(&history(), 2_000)?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&shown)?)?;
    Ok(())
}

/// Returns the messages of a history to send to a model that can take `max_tokens`.
///
/// # Errors
/// [`Error::BudgetTooSmall`].
pub fn shown(history: &[Message], max_tokens: u64) -> Result<Vec<Message>, Error> {
    match curate(history).max_tokens(max_tokens).query("the limit of the parser").window() {
        // The messages that cannot be left out are too long: tell the user, or allow more tokens.
        Err(Error::BudgetTooSmall { needed, .. }) => {
            curate(history).max_tokens(needed).window().map(|window| window.messages)
        }
        window => window.map(|window| window.messages),
    }
}

/// Returns a long history, such as a program may read from its own files.
pub fn history() -> Vec<Message> {
    let mut said = vec![json!({ "role": "system", "content": "You change programs." })];
    for turn in 0..60 {
        said.extend(exchange(turn));
    }
    said.into_iter().filter_map(|message| serde_json::from_value(message).ok()).collect()
}

fn exchange(turn: usize) -> [Value; 4] {
    let id = format!("call-{turn}");
    let function = json!({ "name": "run_tests", "arguments": "{}" });
    [
        json!({ "role": "user", "content": format!("Make the limit of part {turn} smaller.") }),
        json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [{ "id": id, "type": "function", "function": function }],
        }),
        json!({ "role": "tool", "tool_call_id": id, "content": "test result: ok. ".repeat(20) }),
        json!({ "role": "assistant", "content": format!("The limit of part {turn} is {turn} MB.") }),
    ]
}
