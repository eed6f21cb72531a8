//! Vectors for texts that come in: a call waits a little for one, and goes on without it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::engine::Event;
use crate::provider::ProviderError;
use crate::provider::embed::Embedder;
use crate::value::{Keyword, Value};

/// A maker of vectors for texts. Clones share it.
#[derive(Clone)]
pub struct Embedding {
    embedder: Arc<dyn Embedder>,
    /// Maximum wait of a call.
    time: Duration,
    /// Set when memories may lack vectors.
    lacking: Arc<Notify>,
    /// Name under which vectors are kept, once one was made.
    name: Arc<watch::Sender<Option<String>>>,
}

/// The outcome of embedding a text. It is empty when nothing is configured to make vectors.
#[derive(Debug, Clone, Default)]
pub struct Embedded {
    /// The text's vector, with the name under which such vectors are kept.
    pub vector: Option<(String, Vec<f32>)>,
    /// The reason why there is no vector, as a phrase that begins with `failed`.
    pub failure: Option<String>,
}

impl Embedded {
    /// Returns what clients are told of it: `used` or the failure; `None` when nothing makes vectors.
    pub fn outcome(&self) -> Option<Value> {
        match (&self.vector, &self.failure) {
            (_, Some(failure)) => Some(Value::from(&**failure)),
            (Some(_), None) => Some(Value::of(&Keyword("used"))),
            (None, None) => None,
        }
    }
}

impl Embedding {
    /// Calls wait for so long at most.
    pub fn new(embedder: Arc<dyn Embedder>, time: Duration) -> Self {
        let name = Arc::new(watch::Sender::new(None));
        Self { embedder, time, lacking: Arc::default(), name }
    }

    /// Takes notice of what happened: it may have made memories, that have no vectors yet.
    pub fn note(&self, events: &[Event]) {
        let made = |event: &Event| {
            matches!(event, Event::ContextPruned { .. } | Event::ContextSummarized { .. })
        };
        if events.iter().any(made) {
            self.lacking.notify_one();
        }
    }

    /// The name under which vectors are kept.
    pub(super) fn name(&self) -> Option<String> {
        self.name.borrow().clone()
    }

    /// Waits until memories may lack vectors.
    pub(super) async fn lacking(&self) {
        self.lacking.notified().await;
    }

    /// The vectors of texts, with the name under which they are kept. A model that begins to give
    /// vectors of another length is another one, as far as vectors can be compared.
    pub(super) async fn vectors(
        &self,
        texts: &[String],
        time: Duration,
    ) -> Result<(String, Vec<Vec<f32>>), ProviderError> {
        let vectors = self.embedder.embed(texts, time).await?;
        let length = vectors.first().map_or(0, Vec::len);
        let name = format!("{}/{length}", self.embedder.model());
        let changed = self.name.send_if_modified(|known| {
            let changed = known.as_ref() != Some(&name);
            known.clone_from(&Some(name.clone()));
            changed
        });
        if changed {
            self.lacking.notify_one();
        }
        Ok((name, vectors))
    }

    /// Makes the vector of a text.
    pub async fn embed(&self, text: String) -> Embedded {
        match self.vectors(&[text], self.time).await {
            Ok((name, mut vectors)) => {
                let vector = vectors.pop().map(|vector| (name, vector));
                Embedded { vector, failure: None }
            }
            Err(error) => {
                tracing::warn!("no embedding: {error}");
                self.lacking.notify_one();
                Embedded { vector: None, failure: Some(format!("failed: {error}")) }
            }
        }
    }
}
