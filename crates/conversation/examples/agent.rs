//! An agent with a tool. The model is a script, so the example runs anywhere:
//! `cargo run --example agent`.
//!
//! The conversation is long and its window is small. Each turn is given the memories that match its
//! message, older turns are summarized without a model, and checkpoints are taken. When the quality
//! falls, the program goes back to the last checkpoint.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture::{Conversation, Error, Provider, Tool, ToolContext, TurnConfig, TurnEvent};
use serde::Deserialize;
use serde_json::{Value, json};

/// Number of turns in the example.
const TURNS: usize = 40;
/// Quality below which the conversation goes back.
const POOR: f64 = 0.6;
/// Answers of the model: it runs the tests before it answers.
const SCRIPT: &str = r#"
[[answer]]
calls = [{ name = "run_tests", arguments = '{"part": 3}' }]

[[answer]]
text = "I changed the limit, and saw all tests pass."
"#;

/// Counts of events in the conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of turns in which older turns were summarized.
    pub summaries: usize,
    /// Number of turns before which a checkpoint was taken.
    pub checkpoints: usize,
    /// Number of turns for which memories were found.
    pub grounded: usize,
    /// Number of rollbacks.
    pub rollbacks: usize,
    /// Size of the largest window, in tokens.
    pub largest_window: u64,
    /// Number of runs of the tests.
    pub runs: usize,
}

/// A tool that runs the tests of a part, and counts its calls.
struct TestRunner(Arc<AtomicUsize>);

#[derive(Deserialize)]
struct Part {
    part: usize,
}

impl Tool for TestRunner {
    type Args = Part;
    type Error = std::io::Error;

    fn name(&self) -> Cow<'_, str> {
        "run_tests".into()
    }

    fn description(&self) -> String {
        "Runs the tests of a part of the program.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "part": { "type": "integer" } },
            "required": ["part"],
        })
    }

    async fn call(&self, Part { part }: Part, _: ToolContext) -> std::io::Result<String> {
        let run = self.0.fetch_add(1, Ordering::Relaxed);
        Ok(format!("src/part_{part}.rs: {} tests passed", 100 + run))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tally = run(&mut std::io::stdout()).await?;
    writeln!(std::io::stdout(), "{tally:#?}")?;
    Ok(())
}

/// Runs the conversation and writes its events to `out`.
///
/// # Errors
/// Those of the conversation and of the output.
pub async fn run(out: &mut dyn Write) -> Result<Tally, Box<dyn std::error::Error>> {
    let runs = Arc::new(AtomicUsize::new(0));
    let conversation = open(TestRunner(Arc::clone(&runs))).await?;
    conversation.remember("The user wants every change to have a test.").await?;
    let mut tally = Tally::default();
    for number in 1..=TURNS {
        let turn = conversation.chat(input(number)).coherence(judgement(number));
        let mut turn = turn.stream();
        while let Some(event) = turn.next().await {
            if let TurnEvent::ToolResult { text, .. } = event {
                writeln!(out, "turn {number}: {text}")?;
            }
        }
        let reply = turn.reply().await?;
        tally.largest_window = tally.largest_window.max(reply.window_tokens);
        tally.summaries += usize::from(reply.turn.summarized.is_some());
        tally.checkpoints += usize::from(reply.turn.checkpoint.is_some());
        tally.grounded += usize::from(!reply.turn.grounding_used.is_empty());
        if let Some(summary) = &reply.turn.summarized {
            let (before, after) = (summary.tokens_before, summary.tokens_after);
            writeln!(out, "turn {number}: summarized, {before} tokens became {after}")?;
        }
        if let Some(checkpoint) = reply.turn.checkpoint {
            writeln!(out, "turn {number}: checkpoint chk-{checkpoint}")?;
        }
        let quality = reply.turn.quality_score;
        if quality < POOR {
            let done = conversation.rollback(None).await?;
            tally.rollbacks += 1;
            let lost = done.turns_lost;
            writeln!(out, "turn {number}: quality {quality:.2}, went back {lost} turns")?;
        }
    }
    conversation.close().await;
    Ok(Tally { runs: runs.load(Ordering::Relaxed), ..tally })
}

async fn open(tool: TestRunner) -> Result<Conversation, Error> {
    Conversation::builder("tla")
        .provider(Provider::scripted(SCRIPT))
        .tool(tool)
        .system_prompt("You change programs. Run the tests after each change.")
        .config(TurnConfig {
            max_tokens: Some(1_000),
            summarize_at_ratio: Some(0.7),
            checkpoint_interval: 5,
            ..TurnConfig::default()
        })
        .open()
        .await
}

/// Returns the user's message.
fn input(turn: usize) -> String {
    format!(
        "Turn {turn}: please change src/part_{}.rs so that its limit is {} MB, and add a test. {}",
        turn % 7,
        turn * 10,
        "The build must stay green. ".repeat(3),
    )
}

/// Rates the coherence of the answer before a turn. The answer before turn 23 is incoherent.
fn judgement(turn: usize) -> f64 {
    if turn == 23 { 0.0 } else { 0.9 }
}
