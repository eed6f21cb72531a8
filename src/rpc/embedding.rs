//! Vectors for texts that come in: a call waits a little for one, and goes on without it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::Step;
use super::call::Call;
use crate::engine::Event;
use crate::provider::ProviderError;
use crate::provider::embed::Embedder;
use crate::value::Value;
use crate::wire::message::WireError;

/// What makes vectors of texts. Clones are the same.
#[derive(Clone)]
pub struct Embedding {
    embedder: Arc<dyn Embedder>,
    /// How long a call waits.
    time: Duration,
    /// Set when memories may lack vectors.
    lacking: Arc<Notify>,
    /// Under which name vectors are kept, once one was made.
    name: Arc<watch::Sender<Option<String>>>,
}

/// What became of a text.
#[derive(Default)]
pub(super) struct Embedded {
    /// Its vector, with the name under which such vectors are kept.
    pub(super) vector: Option<(String, Vec<f32>)>,
    /// What the client is told: `:used`, or why there is none; nothing when nothing is configured.
    pub(super) outcome: Option<Value>,
}

impl Embedded {
    /// Why there is no vector though one was to be made.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.outcome {
            Some(Value::Str(failed)) => Some(failed),
            _ => None,
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

    async fn embed(&self, text: String) -> Embedded {
        let outcome = self.vectors(&[text], self.time).await;
        match outcome.map(|(name, mut vectors)| (name, vectors.pop())) {
            Ok((name, Some(vector))) => {
                let outcome = Some(Value::Keyword("used".into()));
                Embedded { vector: Some((name, vector)), outcome }
            }
            Ok((_, None)) => Embedded::default(),
            Err(error) => {
                tracing::warn!("no embedding: {error}");
                self.lacking.notify_one();
                Embedded { vector: None, outcome: Some(format!("failed: {error}").into()) }
            }
        }
    }
}

/// Goes on with the vector of a text; at once when nothing makes vectors, or when the text says
/// nothing.
pub(super) fn embedded(
    call: &Call,
    text: String,
    then: impl FnOnce(Embedded) -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let embedding = call.tools.embedding.clone().filter(|_| !text.trim().is_empty());
    let Some(embedding) = embedding else { return then(Embedded::default()) };
    Ok(Step::Await(Box::pin(async move { then(embedding.embed(text).await) })))
}
