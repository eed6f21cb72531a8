//! Caches of the vectors of memories and of a session's messages. A query is compared with all
//! vectors, and reading them from disk takes longer than comparing them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::store::memory::MemoryFilter;
use crate::store::{Store, StoreError};

/// Maximum number of floats to cache, of 4 bytes each: room for about 20,000 vectors of length
/// 1,536. If there are more, vectors are read for each query.
const MOST_NUMBERS: usize = 32 << 20;

/// Vectors by memory id.
pub(super) type KnownVectors = HashMap<u64, Box<[f32]>>;

/// Vectors by the number of the message.
pub(super) type MessageVectors = HashMap<u64, Arc<[f32]>>;

/// The vectors that one model computed for a session's messages.
pub(super) struct SessionVectors {
    pub(super) model: String,
    pub(super) vectors: Arc<MessageVectors>,
}

/// The cached vectors of memories: those made by the model that was last asked for.
#[derive(Default)]
pub(super) struct Vectors {
    model: Option<String>,
    /// Vectors of that model; `None` if there are too many, or none were asked for yet.
    known: Option<KnownVectors>,
    numbers: usize,
    /// True if some vectors may not be committed yet.
    unsure: bool,
}

impl Vectors {
    /// Returns all vectors that the model made for memories; `None` if there are too many to cache.
    pub(super) fn of(
        &mut self,
        model: &str,
        store: &mut dyn Store,
    ) -> Result<Option<&KnownVectors>, StoreError> {
        if self.model.as_deref() != Some(model) {
            let all = MemoryFilter { with_forgotten: true, ..MemoryFilter::default() };
            let read = store.read().memory_vectors(&all, model)?;
            self.numbers = read.iter().map(|(_, vector)| vector.len()).sum();
            let few = self.numbers <= MOST_NUMBERS;
            self.known =
                few.then(|| read.into_iter().map(|(id, vector)| (id, vector.into())).collect());
            self.model = Some(model.to_owned());
            // These may include uncommitted vectors of the running request.
            self.unsure = true;
        }
        Ok(self.known.as_ref())
    }

    /// Adds to the cache a vector that was stored for a memory. Does nothing if the cache is for
    /// another model.
    pub(super) fn set(&mut self, id: u64, model: &str, vector: &[f32]) {
        if self.model.as_deref() != Some(model) {
            return;
        }
        self.unsure = true;
        self.numbers += vector.len();
        match &mut self.known {
            Some(known) if self.numbers <= MOST_NUMBERS => {
                let before = known.insert(id, vector.into());
                self.numbers -= before.map_or(0, |before| before.len());
            }
            known => *known = None,
        }
    }

    /// Drops the cache if it may have uncommitted vectors.
    pub(super) fn forget_unsure(&mut self) {
        if self.unsure {
            *self = Self::default();
        }
    }

    /// Marks all vectors as committed.
    pub(super) fn settle(&mut self) {
        self.unsure = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::SqliteStore;

    #[test]
    fn what_is_not_kept_is_forgotten_and_what_is_too_much_is_not_kept() {
        let mut store = SqliteStore::in_memory().unwrap();
        let mut vectors = Vectors::default();
        assert!(vectors.of("m", &mut store).unwrap().unwrap().is_empty());
        vectors.settle();
        vectors.set(1, "other", &[1.0]);
        vectors.forget_unsure();
        vectors.set(1, "m", &[1.0, 2.0]);
        vectors.set(1, "m", &[3.0]);
        assert_eq!(vectors.numbers, 1);
        assert_eq!(&*vectors.of("m", &mut store).unwrap().unwrap()[&1], &[3.0]);
        vectors.forget_unsure();
        assert!(vectors.of("m", &mut store).unwrap().unwrap().is_empty(), "the store has none");
        vectors.numbers = MOST_NUMBERS;
        vectors.set(1, "m", &[1.0]);
        assert!(vectors.of("m", &mut store).unwrap().is_none());
    }
}
