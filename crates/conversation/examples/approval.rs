//! Tools whose calls the user allows one by one, and a turn that is cancelled:
//! `cargo run --example approval`.

use std::io::Write;

use contexture::{Conversation, Decision, Provider, ToolContext, TurnEvent};
use serde::Deserialize;
use serde_json::json;

/// Answers of the model, which is a script here.
const SCRIPT: &str = r#"
[[answer]]
calls = [{ name = "delete_file", arguments = '{"path": "old.txt"}' }]

[[answer]]
text = "It is deleted."

[[answer]]
text = "Once upon a time"
hang = true
"#;

#[derive(Deserialize)]
struct File {
    path: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&mut std::io::stdout()).await
}

/// Runs the conversation, and writes what happens to `out`.
///
/// # Errors
/// Those of the conversation and of the output.
pub async fn run(out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let delete = |File { path }: File, context: ToolContext| async move {
        // A tool can use the conversation in which it is called.
        context.conversation().add(format!("The user allowed that {path} is deleted.")).await?;
        Ok::<_, contexture::Error>(format!("{path} is gone"))
    };
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
    });
    let conversation = Conversation::builder("cleaning")
        .provider(Provider::scripted(SCRIPT))
        .function("delete_file", "Deletes a file.", schema, delete)
        .ask_before(["delete_file"])
        .open()
        .await?;
    let mut turn = conversation.chat("Delete what is old.").stream();
    while let Some(event) = turn.next().await {
        match event {
            // A program would ask its user here.
            TurnEvent::Approval(question) => {
                writeln!(out, "May it {}? Yes.", question.phrase)?;
                conversation.approve(question.number, Decision::Once);
            }
            TurnEvent::ToolResult { text, .. } => writeln!(out, "{text}")?,
            TurnEvent::Text(text) => writeln!(out, "{text}")?,
            _ => {}
        }
    }
    turn.reply().await?;
    let mut turn = conversation.chat("Tell me a story.").stream();
    while let Some(event) = turn.next().await {
        if matches!(event, TurnEvent::Text(_)) {
            break;
        }
    }
    writeln!(out, "{}…", turn.cancel().await?.text)?;
    Ok(())
}
