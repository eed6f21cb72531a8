//! Computes vectors for incoming texts. A call waits briefly for its vector, and continues without
//! one if necessary.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::engine::Event;
use crate::provider::ProviderError;
use crate::provider::embed::Embedder;
use crate::value::{Keyword, Value};

/// The service that computes vectors of texts. Clones share its connection.
#[derive(Clone)]
pub struct Embedding {
    embedder: Arc<dyn Embedder>,
    /// Maximum time that a call waits for a vector.
    time: Duration,
    /// Notified when memories may lack vectors.
    lacking: Arc<Notify>,
    /// Name of the model with the length of its vectors; `None` before the first vector.
    name: Arc<watch::Sender<Option<String>>>,
}

/// The outcome of embedding a text. Empty if no embedding model is configured or the text is blank.
#[derive(Debug, Clone, Default)]
pub struct Embedded {
    /// The text's vector, with the name of its model.
    pub vector: Option<(String, Vec<f32>)>,
    /// The reason why there is no vector, as a phrase that begins with `failed`.
    pub failure: Option<String>,
}

impl Embedded {
    /// Returns the outcome in the form for clients: `:used` or the failure; `None` if the outcome
    /// is empty.
    pub fn outcome(&self) -> Option<Value> {
        match (&self.vector, &self.failure) {
            (_, Some(failure)) => Some(Value::from(&**failure)),
            (Some(_), None) => Some(Value::of(&Keyword("used"))),
            (None, None) => None,
        }
    }
}

impl Embedding {
    /// Creates the service. Each call waits at most `time` for a vector.
    pub fn new(embedder: Arc<dyn Embedder>, time: Duration) -> Self {
        let name = Arc::new(watch::Sender::new(None));
        Self { embedder, time, lacking: Arc::default(), name }
    }

    /// Takes note of events that may have added memories without vectors.
    pub fn note(&self, events: &[Event]) {
        let made = |event: &Event| {
            matches!(event, Event::ContextPruned { .. } | Event::ContextSummarized { .. })
        };
        if events.iter().any(made) {
            self.lacking.notify_one();
        }
    }

    /// Returns the name of the model with the length of its vectors; `None` before the first
    /// vector.
    pub(super) fn name(&self) -> Option<String> {
        self.name.borrow().clone()
    }

    /// Waits until memories may lack vectors.
    pub(super) async fn lacking(&self) {
        self.lacking.notified().await;
    }

    /// Computes the vectors of texts, and returns the vectors with the name of their model. The
    /// name includes the length of the vectors, since vectors of different lengths cannot be
    /// compared.
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

    /// Computes the vector of a text. Waits at most the configured time.
    pub async fn embed(&self, text: String) -> Embedded {
        match self.vectors(&[text], self.time).await {
            Ok((name, mut vectors)) => {
                let vector = vectors.pop().map(|vector| (name, vector));
                Embedded { vector, failure: None }
            }
            Err(error) => {
                tracing::warn!("cannot get the embedding of a text: {error}");
                self.lacking.notify_one();
                Embedded { vector: None, failure: Some(format!("failed: {error}")) }
            }
        }
    }
}
