//! A program with a provider of its own: a model that repeats what it is told. Its tool has a database
//! of its own, which sqlx opens.

use std::sync::Arc;

use contexture::provider::Answer;
use contexture::provider::chat::{AnswerStream, ChatProvider, Request, Stop, StreamEvent};
use contexture::{Conversation, Provider, Role, ToolCall};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqlitePoolOptions;

/// Arguments that `serde_json` cannot read once any crate of the program turns on its feature
/// `arbitrary_precision`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Said {
    Loudly { volume: f64 },
}

#[derive(Clone)]
struct Echo {
    model: String,
}

impl ChatProvider for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn with_model(&self, model: &str) -> Arc<dyn ChatProvider> {
        Arc::new(Self { model: model.to_owned() })
    }

    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn AnswerStream>> {
        Box::pin(async move {
            // What any server takes: one system message, then user and assistant in turn.
            let messages = request.normalized().messages;
            let last = messages.last().map(|said| (said.role, said.content.to_string()));
            let (role, text) = last.unwrap_or((Role::User, String::new()));
            let pieces = match role {
                Role::Tool => vec![StreamEvent::Text(text), StreamEvent::Stopped(Stop::Finished)],
                _ => {
                    let arguments = serde_json::to_string(&Said::Loudly { volume: 0.5 });
                    let arguments = arguments.unwrap_or_default();
                    let call = ToolCall { id: "1".into(), name: "say".into(), arguments };
                    vec![StreamEvent::Call(call), StreamEvent::Stopped(Stop::Calls)]
                }
            };
            Ok(Box::new(Pieces(pieces.into_iter())) as Box<dyn AnswerStream>)
        })
    }
}

struct Pieces(std::vec::IntoIter<StreamEvent>);

impl AnswerStream for Pieces {
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>> {
        Box::pin(std::future::ready(Ok(self.0.next())))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    assert!(rustls::crypto::ring::default_provider().install_default().is_ok());
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::query("CREATE TABLE said (volume REAL)").execute(&pool).await?;
    let said = pool.clone();
    let say = move |Said::Loudly { volume }: Said, _| {
        let said = said.clone();
        async move {
            sqlx::query("INSERT INTO said VALUES (?1)").bind(volume).execute(&said).await?;
            Ok::<_, sqlx::Error>(format!("said with {volume}"))
        }
    };
    let provider = Provider::custom(Echo { model: "parrot".into() }).max_tokens(100);
    let schema = serde_json::json!({ "type": "object" });
    let builder = Conversation::builder("a").provider(provider);
    let conversation = builder.function("say", "Says it.", schema, say).open().await?;
    let reply = conversation.chat("Hello").await?;
    assert_eq!((&*reply.text, &*reply.provider), ("said with 0.5", "echo"));
    let sum: f64 = sqlx::query_scalar("SELECT sum(volume) FROM said").fetch_one(&pool).await?;
    assert_eq!(sum.to_string(), "0.5");
    many().await
}

/// Opens many conversations in memory, each with a turn, and says what they take.
async fn many() -> Result<(), Box<dyn std::error::Error>> {
    let before = memory();
    let mut all = Vec::new();
    for number in 0..CONVERSATIONS {
        let provider = Provider::scripted("[[answer]]\ntext = 'ok'\n");
        let builder = Conversation::builder(format!("{number}")).provider(provider);
        let conversation = builder.open().await?;
        assert_eq!(conversation.chat("Hello").await?.text, "ok");
        all.push(conversation);
    }
    let (threads, kilobytes) = (threads(), memory() - before);
    println!("{CONVERSATIONS} conversations: {threads} threads, {} MB", kilobytes >> 10);
    assert!(threads < 40 && kilobytes < 300 << 10);
    Ok(())
}

const CONVERSATIONS: usize = 600;

/// Returns the memory of this process in KiB; 0 where `/proc` does not tell it.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}
