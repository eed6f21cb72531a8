//! Computes missing vectors of memories in the background.

use std::collections::HashSet;
use std::time::Duration;

use super::embedding::Embedding;
use crate::engine::{EngineError, Handle};
use crate::provider::embed::BATCH;
use crate::provider::{ErrorKind, ProviderError};
use crate::store::memory::{MemoryFilter, MemoryRow};

/// Maximum time for a batch.
const BATCH_TIME: Duration = Duration::from_secs(60);
/// Wait after a failure. It doubles with each further failure, up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Number of refused texts after which a batch is given up if the service has accepted none of the
/// batch's texts. The service is then more likely at fault than the texts.
const REFUSED_AT_MOST: usize = 3;

/// Computes missing vectors of memories until the engine ends or the future is dropped. Sends
/// memories only to the configured service.
pub(crate) async fn backfill(engine: Handle, embedding: Embedding) {
    let mut backfill = Backfill { engine, embedding, refused: HashSet::new() };
    let mut wait = FIRST_WAIT;
    loop {
        match backfill.fill().await {
            Ok(()) => {
                wait = FIRST_WAIT;
                backfill.embedding.lacking().await;
            }
            Err(Failure::Engine(EngineError::Ended)) => return,
            Err(failure) => {
                tracing::warn!(
                    "cannot compute vectors of memories; next attempt in {} s: {failure}",
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
    /// Memories whose texts the service refuses.
    refused: HashSet<u64>,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl Backfill {
    async fn fill(&mut self) -> Result<(), Failure> {
        loop {
            let rows = self.lacking().await?;
            if rows.is_empty() {
                return Ok(());
            }
            match self.embed(&rows).await {
                Err(Failure::Provider(error)) if is_refusal(&error) => {
                    self.one_by_one(&rows, error).await?;
                }
                outcome => outcome?,
            }
        }
    }

    /// Returns some memories without a vector, newest first. Before the first vector, returns the
    /// newest memory, to learn the model's name from its vector.
    async fn lacking(&self) -> Result<Vec<MemoryRow>, EngineError> {
        let limit = (BATCH + self.refused.len()) as u64;
        let name = self.embedding.name();
        let rows = self.engine.ask(move |engine| match name {
            Some(name) => engine.memories_without_vector(&name, limit),
            // Without the model's name, it is unknown which memories have its vectors.
            None => engine.list_memories(&MemoryFilter::default(), 1),
        });
        let rows = rows.await?.into_iter().filter(|row| !self.refused.contains(&row.id));
        Ok(rows.take(BATCH).collect())
    }

    async fn embed(&self, rows: &[MemoryRow]) -> Result<(), Failure> {
        let texts: Vec<String> = rows.iter().map(|row| row.made.content.clone()).collect();
        let (name, vectors) = self.embedding.vectors(&texts, BATCH_TIME).await?;
        let ids: Vec<u64> = rows.iter().map(|row| row.id).collect();
        let keep = self.engine.ask(move |engine| {
            let mut both = ids.iter().zip(&vectors);
            both.try_for_each(|(id, vector)| engine.set_memory_vector(*id, &name, vector))
        });
        Ok(keep.await?)
    }

    /// Embeds memories one by one after the service refused them as a batch, so that one refused
    /// text does not hold up the others.
    async fn one_by_one(
        &mut self,
        rows: &[MemoryRow],
        refusal: ProviderError,
    ) -> Result<(), Failure> {
        let mut refused = Vec::new();
        let mut taken = 0;
        for row in rows {
            match self.embed(std::slice::from_ref(row)).await {
                Err(Failure::Provider(error)) if is_refusal(&error) => refused.push(row.id),
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
