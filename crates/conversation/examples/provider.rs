//! A provider of one's own, in place of a server: `cargo run --example provider`. This one answers
//! with the number of words that it was asked.

use std::io::Write;
use std::sync::Arc;

use contexture::provider::Answer;
use contexture::provider::chat::{AnswerStream, ChatProvider, Request, Stop, StreamEvent, Usage};
use contexture::{Conversation, Provider};

struct Counting {
    model: String,
}

impl ChatProvider for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn with_model(&self, model: &str) -> Arc<dyn ChatProvider> {
        Arc::new(Self { model: model.to_owned() })
    }

    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn AnswerStream>> {
        Box::pin(async move {
            // The form that every server takes: one system message, then user and assistant in turn.
            let request = request.normalized();
            let asked = request.messages.last().map_or("", |said| &*said.content);
            let words = asked.split_whitespace().count();
            // A model on a server would be asked here, and its answer read piece by piece.
            let pieces = vec![
                StreamEvent::Text(format!("{words} ")),
                StreamEvent::Text("words".to_owned()),
                StreamEvent::Usage(Usage { output: Some(2), ..Usage::default() }),
                StreamEvent::Stopped(Stop::Finished),
            ];
            Ok(Box::new(PieceStream(pieces.into_iter())) as Box<dyn AnswerStream>)
        })
    }
}

/// An answer in progress.
struct PieceStream(std::vec::IntoIter<StreamEvent>);

impl AnswerStream for PieceStream {
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>> {
        Box::pin(std::future::ready(Ok(self.0.next())))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&mut std::io::stdout()).await
}

/// Asks the provider, and writes its answer to `out`.
///
/// # Errors
/// Those of the conversation and of the output.
pub async fn run(out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let provider = Provider::custom(Counting { model: "abacus".to_owned() });
    let conversation = Conversation::builder("words").provider(provider).open().await?;
    let reply = conversation.chat("How many words are these?").await?;
    writeln!(out, "{}: {}", reply.model, reply.text)?;
    Ok(())
}
