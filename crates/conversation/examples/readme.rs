//! An agent with a tool, and a script in place of a model: `cargo run --example readme`.

use std::borrow::Cow;
use std::io::Write;

use contexture::{Conversation, Item, Provider, Tool, ToolContext, TurnEvent};
use serde::Deserialize;
use serde_json::{Value, json};

/// A tool that runs the tests of a file.
struct RunTests;

#[derive(Deserialize)]
struct Args {
    file: String,
}

impl Tool for RunTests {
    type Args = Args;
    type Error = std::io::Error;

    fn name(&self) -> Cow<'_, str> {
        "run_tests".into()
    }

    fn description(&self) -> String {
        "Runs the tests of a file.".into()
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "file": { "type": "string" } } })
    }

    async fn call(&self, Args { file }: Args, _: ToolContext) -> std::io::Result<String> {
        Ok(format!("all tests of {file} pass"))
    }
}

/// Takes a turn, and writes the model's answer and the window's costs to `out`.
///
/// # Errors
/// Those of the conversation and of the output.
pub async fn talk(
    provider: Provider,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let builder = Conversation::builder("limits").project(env!("CARGO_MANIFEST_DIR"));
    let builder = builder.provider(provider).tool(RunTests).max_tokens(8_000);
    let conversation = builder.open().await?;
    conversation.add_file("src/lib.rs", 1..=20).await?;
    conversation.add(Item::new("const LIMIT: u64 = 8;").region("src/limit.rs", 3..=3)).await?;
    conversation.checkpoint("before the change").await?;
    let mut turn = conversation.chat("Halve the limit and run the tests.").stream();
    while let Some(event) = turn.next().await {
        if let TurnEvent::Text(text) = event {
            write!(out, "{text}")?;
        }
    }
    let reply = turn.reply().await?;
    writeln!(out, "\n{} tokens, {} calls", reply.window_tokens, reply.calls.len())?;
    for section in conversation.report().await?.iter().flat_map(|window| &window.report.sections) {
        writeln!(out, "{}: {} tokens", section.section.name(), section.after)?;
    }
    conversation.rollback(None).await?;
    Ok(())
}

/// Answers of the model.
pub const SCRIPT: &str = r#"
[[answer]]
calls = [{ name = "run_tests", arguments = '{"file": "src/limit.rs"}' }]

[[answer]]
text = ["The limit is 4", " now."]
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    talk(Provider::scripted(SCRIPT), &mut std::io::stdout()).await
}
