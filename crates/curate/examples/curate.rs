//! A program that keeps its own history, and asks which of the messages a model sees:
//! `cargo run --example curate`.

use std::borrow::Cow;
use std::io::Write;

use contexture_curate::{BudgetTooSmall, Call, Message, Part, Role, curate};

/// A message as this program keeps it.
enum Said {
    User(String),
    Model { text: String, test_run: Option<String> },
    Tests { run: String, output: String },
}

impl Message for Said {
    fn role(&self) -> Role {
        match self {
            Self::User(_) => Role::User,
            Self::Model { .. } => Role::Assistant,
            Self::Tests { .. } => Role::Tool,
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::User(text) | Self::Model { text, .. } | Self::Tests { output: text, .. } => {
                text.into()
            }
        }
    }

    fn calls(&self) -> Vec<Call<'_>> {
        match self {
            Self::Model { test_run: Some(run), .. } => vec![Call::new(run, "run_tests", "{}")],
            _ => Vec::new(),
        }
    }

    fn answers(&self) -> Vec<Cow<'_, str>> {
        match self {
            Self::Tests { run, .. } => vec![run.into()],
            _ => Vec::new(),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut history = Vec::new();
    for part in 0..60 {
        let (run, output) = (format!("run-{part}"), "test result: ok\n".repeat(20));
        history.push(Said::User(format!("Make the limit of part {part} smaller.")));
        history.push(Said::Model { text: String::new(), test_run: Some(run.clone()) });
        history.push(Said::Tests { run, output });
        history.push(Said::Model { text: format!("It is {part} MB now."), test_run: None });
    }
    let window = match curate(&history, 2_000).query("the limit of part 7").normalized().window() {
        // The messages that cannot be left out are too long: tell the user, or allow more.
        Err(BudgetTooSmall { needed, .. }) => curate(&history, needed).normalized().window()?,
        window => window?,
    };
    let mut out = std::io::stdout();
    for part in &window.parts {
        match part {
            Part::Message(index) => writeln!(out, "{index}: {}", history[*index].text())?,
            other => writeln!(out, "{:?}: {}", other.index(), other.text().unwrap_or_default())?,
        }
    }
    writeln!(out, "{} tokens; message 9: {}", window.tokens, window.reasons[9])?;
    Ok(())
}
