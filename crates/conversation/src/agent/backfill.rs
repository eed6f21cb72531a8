//! Computes missing vectors of memories and messages in the background.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::embedding::{Embedding, WantedVectors};
use crate::engine::{Engine, EngineError, Handle, Lacking};
use crate::provider::embed::BATCH;
use crate::provider::{ErrorKind, ProviderError};
use crate::store::memory::{MemoryFilter, MemoryRow};
use crate::store::session::Unembedded;

/// Maximum time to compute the vectors of a batch of texts.
const BATCH_TIME: Duration = Duration::from_secs(60);
/// Wait after the first failure. The wait doubles with each further failure, up to
/// [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Number of refused texts after which a batch is given up if the service has accepted none of its
/// texts. The service is then more likely at fault than the texts.
const REFUSED_AT_MOST: usize = 3;

/// Computes missing vectors of memories, and of messages of the sessions that are in use, until the
/// engine ends or the future is dropped. Sends texts only to the service of `embedding`.
pub async fn backfill(engine: Handle, embedding: Embedding) {
    let mut backfill = Backfill {
        engine,
        embedding,
        refused: HashSet::new(),
        wanted: WantedVectors::default(),
        looked_at: HashMap::new(),
        model: None,
    };
    let mut wait = FIRST_WAIT;
    loop {
        match backfill.fill().await {
            Ok(()) => {
                wait = FIRST_WAIT;
                backfill.embedding.lacking().await;
            }
            Err(BackfillFailure::Engine(EngineError::Ended)) => return,
            Err(failure) => {
                tracing::warn!(
                    "cannot compute vectors in the background: {failure}; trying again in {} s",
                    wait.as_secs()
                );
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}

struct Backfill {
    engine: Handle,
    embedding: Embedding,
    /// Memories and messages whose texts the service refuses.
    refused: HashSet<TextOwner>,
    /// Memories and messages that may lack vectors.
    wanted: WantedVectors,
    /// For each session, the number of its first message that may lack a vector.
    looked_at: HashMap<u64, u64>,
    /// Name of the model to whose vectors `looked_at` refers.
    model: Option<String>,
}

/// The memory or message that a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TextOwner {
    Memory(u64),
    /// A message: the number of its session, and its own number.
    Message(u64, u64),
}

/// A text whose vector is to be computed.
#[derive(Debug, Clone)]
struct TextToEmbed {
    of: TextOwner,
    content: String,
}

#[derive(Debug, thiserror::Error)]
enum BackfillFailure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl Backfill {
    async fn fill(&mut self) -> Result<(), BackfillFailure> {
        loop {
            let WantedVectors { memories, sessions } = self.embedding.take_wanted();
            self.wanted.memories |= memories;
            self.wanted.sessions.extend(sessions);
            let texts = match self.wanted.sessions.last() {
                _ if self.wanted.memories => self.memories().await?,
                Some(&session) => self.messages(session).await?,
                None => return Ok(()),
            };
            match self.embed(&texts).await {
                Err(BackfillFailure::Provider(error)) if is_refusal(&error) => {
                    self.one_by_one(&texts, error).await?;
                }
                outcome => outcome?,
            }
        }
    }

    /// Returns some memories that have no vector, newest first. Before the model's name is known,
    /// returns only the newest memory, since computing its vector reveals the name.
    async fn memories(&mut self) -> Result<Vec<TextToEmbed>, EngineError> {
        let limit = (BATCH + self.refused.len()) as u64;
        let name = self.embedding.name();
        let rows = self.engine.ask(move |engine| match name {
            Some(name) => engine.memories_without_vector(&name, limit),
            // While the model's name is unknown, the store cannot tell which memories lack its
            // vectors.
            None => engine.list_memories(&MemoryFilter::default(), 1),
        });
        let text = |row: MemoryRow| TextToEmbed {
            of: TextOwner::Memory(row.id),
            content: row.made.content,
        };
        let texts = rows.await?.into_iter().map(text);
        let texts: Vec<TextToEmbed> =
            texts.filter(|text| !self.refused.contains(&text.of)).take(BATCH).collect();
        self.wanted.memories = !texts.is_empty();
        Ok(texts)
    }

    /// Returns some of a session's messages that have no vector, oldest first. Before the model's
    /// name is known, returns at most one message.
    async fn messages(&mut self, id: u64) -> Result<Vec<TextToEmbed>, EngineError> {
        let name = self.embedding.name();
        if self.model != name {
            self.looked_at.clear();
            self.model.clone_from(&name);
        }
        let from = self.looked_at.get(&id).copied().unwrap_or(1);
        let most = if name.is_some() { BATCH as u64 } else { 1 };
        let model = name.unwrap_or_default();
        let lacking =
            move |engine: &mut Engine| engine.messages_without_vector(id, from, &model, most);
        let Lacking { messages, end, is_last } = self.engine.ask(lacking).await?;
        let text = |it: Unembedded| TextToEmbed {
            of: TextOwner::Message(it.session, it.number),
            content: it.content,
        };
        let texts = messages.into_iter().map(text);
        let texts: Vec<TextToEmbed> =
            texts.filter(|text| !self.refused.contains(&text.of)).collect();
        if texts.is_empty() {
            self.looked_at.insert(id, end + 1);
            if is_last {
                self.wanted.sessions.remove(&id);
            }
        }
        Ok(texts)
    }

    async fn embed(&self, texts: &[TextToEmbed]) -> Result<(), BackfillFailure> {
        if texts.is_empty() {
            return Ok(());
        }
        let contents: Vec<String> = texts.iter().map(|text| text.content.clone()).collect();
        let (name, vectors) = self.embedding.vectors(&contents, BATCH_TIME).await?;
        let of: Vec<TextOwner> = texts.iter().map(|text| text.of).collect();
        let keep = self.engine.ask(move |engine| {
            of.iter().zip(&vectors).try_for_each(|(of, vector)| match *of {
                TextOwner::Memory(id) => engine.set_memory_vector(id, &name, vector),
                TextOwner::Message(session, number) => {
                    engine.set_message_vector((session, number), &name, vector)
                }
            })
        });
        Ok(keep.await?)
    }

    /// Embeds texts one by one after the service refused them as a batch, so that one refused text
    /// does not hold up the others. Fails with `refusal`, the batch's error, if the service seems
    /// to refuse every text.
    async fn one_by_one(
        &mut self,
        texts: &[TextToEmbed],
        refusal: ProviderError,
    ) -> Result<(), BackfillFailure> {
        let mut refused = Vec::new();
        let mut taken = 0;
        for text in texts {
            match self.embed(std::slice::from_ref(text)).await {
                Err(BackfillFailure::Provider(error)) if is_refusal(&error) => {
                    refused.push(text.of)
                }
                outcome => outcome.map(|()| taken += 1)?,
            }
            if taken == 0 && refused.len() >= REFUSED_AT_MOST {
                return Err(refusal.into());
            }
        }
        if taken == 0 && self.embedding.name().is_none() {
            return Err(refusal.into());
        }
        self.refused.extend(refused);
        Ok(())
    }
}

fn is_refusal(error: &ProviderError) -> bool {
    matches!(error.kind, ErrorKind::BadRequest | ErrorKind::ContextTooLong)
}
