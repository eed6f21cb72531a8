//! Computes vectors for incoming texts. A call waits briefly for the vector of its text, and
//! continues without a vector if necessary.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Notified when memories or messages may lack vectors.
    lacking: Arc<Notify>,
    wanted: Arc<Mutex<WantedVectors>>,
    /// Name of the model, followed by the length of its vectors; `None` before the first vector.
    name: Arc<watch::Sender<Option<String>>>,
}

/// The memories and messages that may lack vectors.
#[derive(Debug, Default)]
pub(super) struct WantedVectors {
    pub(super) memories: bool,
    /// Numbers of the sessions whose messages may lack vectors.
    pub(super) sessions: BTreeSet<u64>,
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
        let wanted = WantedVectors { memories: true, sessions: BTreeSet::new() };
        let (lacking, wanted) = (Arc::default(), Arc::new(Mutex::new(wanted)));
        Self { embedder, time, lacking, wanted, name }
    }

    /// Takes note of events that may have added memories or messages without vectors.
    pub fn note(&self, events: &[Event]) {
        for event in events {
            match event {
                Event::ContextPruned { .. } | Event::ContextSummarized { .. } => {
                    self.want_memories();
                }
                // Sessions of other agents get vectors once somebody uses them here.
                Event::SessionChanged { method: "import-sessions", .. } => {}
                Event::SessionChanged { session, .. } => self.want(session.id),
                _ => {}
            }
        }
    }

    /// Asks for the vectors of a session's messages, to be computed in the background.
    pub fn want(&self, session: u64) {
        self.wanted().sessions.insert(session);
        self.lacking.notify_one();
    }

    fn want_memories(&self) {
        self.wanted().memories = true;
        self.lacking.notify_one();
    }

    /// Returns the memories and messages that were noted or asked for since the last call.
    pub(super) fn take_wanted(&self) -> WantedVectors {
        std::mem::take(&mut self.wanted())
    }

    fn wanted(&self) -> MutexGuard<'_, WantedVectors> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the model's name with the length of its vectors; `None` before the first vector.
    pub(super) fn name(&self) -> Option<String> {
        self.name.borrow().clone()
    }

    /// Waits until memories or messages may lack vectors.
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
            self.want_memories();
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
                self.want_memories();
                Embedded { vector: None, failure: Some(format!("failed: {error}")) }
            }
        }
    }
}
