//! An agent's loop that uses everything that keeps a long conversation good. Each turn is given the
//! memories that fit it, older turns are summarized without a model, and checkpoints are taken.
//! When the quality falls, the conversation goes back to the last checkpoint.
//!
//! The model is simulated by [`answer`], so the example runs anywhere:
//! `cargo run --example agent_loop`.

use std::io::Write;

use contexture::conversation::{Conversation, ConversationError};
use contexture::curation::config::TurnConfig;
use contexture::curation::summary::Extractive;
use contexture::curation::window::Window;
use contexture::tokens::TokenizerName;

/// Number of turns in the example.
const TURNS: usize = 40;
/// Quality below which the conversation goes back.
const POOR: f64 = 0.7;

/// Counts of the events in the loop.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Turns in which older ones were summarized.
    pub summaries: usize,
    /// Turns before which a checkpoint was taken.
    pub checkpoints: usize,
    /// Turns for which memories were found.
    pub grounded: usize,
    /// Rollbacks.
    pub rollbacks: usize,
    /// Largest window, in tokens.
    pub largest_window: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tally = run(&mut std::io::stdout())?;
    writeln!(std::io::stdout(), "{tally:#?}")?;
    Ok(())
}

/// Runs the conversation and writes its events to `out`.
///
/// # Errors
/// Those of the conversation and of the output.
pub fn run(out: &mut dyn Write) -> Result<Tally, Box<dyn std::error::Error>> {
    let mut conversation = open()?;
    conversation.remember("The user wants every change to have a test.")?;
    let mut tally = Tally::default();
    for number in 1..=TURNS {
        let turn = conversation.process_judged_turn(&input(number), judgement(number))?;
        tally.summaries += usize::from(turn.summarized.is_some());
        tally.checkpoints += usize::from(turn.checkpoint.is_some());
        tally.grounded += usize::from(!turn.grounding_used.is_empty());
        if let Some(summary) = &turn.summarized {
            let (before, after) = (summary.tokens_before, summary.tokens_after);
            writeln!(out, "turn {number}: summarized, {before} tokens became {after}")?;
        }
        if let Some(checkpoint) = turn.checkpoint {
            writeln!(out, "turn {number}: checkpoint chk-{checkpoint}")?;
        }
        if turn.quality_score < POOR {
            let done = conversation.rollback(None)?;
            tally.rollbacks += 1;
            let (score, lost) = (turn.quality_score, done.turns_lost);
            writeln!(out, "turn {number}: quality {score:.2}, went back {lost} turns")?;
            continue;
        }
        let window = conversation.window()?;
        tally.largest_window = tally.largest_window.max(window.tokens);
        conversation.add_response(&answer(&window, number))?;
    }
    Ok(tally)
}

fn open() -> Result<Conversation, ConversationError> {
    Conversation::builder("tla")
        .tokenizer(TokenizerName::Estimate)
        .summarizer(Extractive)
        .config(TurnConfig {
            max_tokens: 1_000,
            summarize_at_ratio: 0.7,
            checkpoint_interval: 5,
            ..TurnConfig::default()
        })
        .open()
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

/// Rates the coherence of the answer before a turn. The one before turn 23 is incoherent.
fn judgement(turn: usize) -> Option<f64> {
    (turn > 1).then_some(if turn == 23 { 0.0 } else { 0.9 })
}

/// Returns the simulated model's answer to the window.
fn answer(window: &Window, turn: usize) -> String {
    format!(
        "I changed src/part_{}.rs, ran `cargo test` and saw {} tests pass. ({} messages shown.)",
        turn % 7,
        100 + turn,
        window.parts.len(),
    )
}
