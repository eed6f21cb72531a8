//! Vectors of messages, with which windows find messages by meaning.

use std::sync::Arc;

use super::super::vectors::SessionVectors;
use super::super::{Engine, EngineError};
use super::Material;
use crate::store::session::Unembedded;

/// Maximum number of a session's newest messages that have vectors. Comparing a query with more
/// would take long.
const MOST_VECTORS: u64 = 20_000;
/// Maximum number of messages that one request checks for missing vectors.
const LOOKED_AT: u64 = 2_000;

/// Messages without a vector, as far as one request has found them.
pub struct Lacking {
    /// The messages found, in order.
    pub messages: Vec<Unembedded>,
    /// Number of the last message that was checked.
    pub end: u64,
    /// True if no messages are left to check.
    pub is_last: bool,
}

impl Engine {
    /// Adds to the material of a window the vectors that a model computed for the messages.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn add_vectors(&mut self, material: &mut Material, model: &str) -> Result<(), EngineError> {
        let id = material.context.row.id;
        let known = self.loaded(id)?.vectors.as_ref().filter(|known| known.model == model);
        if let Some(known) = known {
            material.vectors = Arc::clone(&known.vectors);
            return Ok(());
        }
        let oldest = self.session(id)?.length().saturating_sub(MOST_VECTORS) + 1;
        let read = self.store.read().message_vectors(id, oldest, model)?;
        let vectors = read.into_iter().map(|(number, vector)| (number, vector.into()));
        let known =
            SessionVectors { model: model.to_owned(), vectors: Arc::new(vectors.collect()) };
        material.vectors = Arc::clone(&known.vectors);
        self.loaded(id)?.vectors = Some(known);
        Ok(())
    }

    /// Finds at most `most` messages of a session that have a user's or a model's text but no
    /// vector from this model, beginning with message `from`. Checks no more than [`LOOKED_AT`]
    /// messages, and only the newest [`MOST_VECTORS`].
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn messages_without_vector(
        &mut self,
        id: u64,
        from: u64,
        model: &str,
        most: u64,
    ) -> Result<Lacking, EngineError> {
        let store = self.store.read();
        let last = store.message_count(id)?;
        let from = from.max(last.saturating_sub(MOST_VECTORS) + 1);
        let to = last.min(from.saturating_add(LOOKED_AT - 1));
        let messages = store.messages_without_vector(id, (from, to), model, most)?;
        let full = messages.len() as u64 >= most;
        let end = messages.last().filter(|_| full).map_or(to, |message| message.number);
        Ok(Lacking { messages, end, is_last: end >= last })
    }

    /// Stores the vector that the embedding model `model` computed for a session's own message.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn set_message_vector(
        &mut self,
        (session, number): (u64, u64),
        model: &str,
        vector: &[f32],
    ) -> Result<(), EngineError> {
        self.store.change()?.set_message_vector((session, number), model, vector)?;
        for loaded in &mut self.sessions.loaded {
            let known = loaded.vectors.as_mut().filter(|known| known.model == model);
            match known {
                Some(known) if loaded.row.id == session => {
                    Arc::make_mut(&mut known.vectors).insert(number, vector.into());
                }
                // A fork may share the message.
                Some(_) if loaded.row.parent.is_some() => loaded.vectors = None,
                _ => {}
            }
        }
        Ok(())
    }
}
