//! The vectors of memories, in memory: a query is compared with all of them, and reading them
//! from the disk takes longer than comparing.

use std::collections::HashMap;

use crate::store::memory::MemoryFilter;
use crate::store::{Store, StoreError};

/// How many numbers are kept at most; each takes 4 bytes. This is room for 20,000 vectors of
/// 1,536 numbers; beyond it, vectors are read for each query.
const MOST_NUMBERS: usize = 32 << 20;

/// By number of the memory.
pub(super) type Known = HashMap<u64, Box<[f32]>>;

/// The vectors by one model: the one that was last asked for.
#[derive(Default)]
pub(super) struct Vectors {
    model: Option<String>,
    /// `None` when there are too many.
    known: Option<Known>,
    numbers: usize,
    /// Whether some were set that are not committed yet.
    unsure: bool,
}

impl Vectors {
    /// All vectors by the model; `None` when they are too many to be kept.
    pub(super) fn of(
        &mut self,
        model: &str,
        store: &mut dyn Store,
    ) -> Result<Option<&Known>, StoreError> {
        if self.model.as_deref() != Some(model) {
            let all = MemoryFilter { with_forgotten: true, ..MemoryFilter::default() };
            let read = store.memory_vectors(&all, model)?;
            self.numbers = read.iter().map(|(_, vector)| vector.len()).sum();
            let few = self.numbers <= MOST_NUMBERS;
            self.known =
                few.then(|| read.into_iter().map(|(id, vector)| (id, vector.into())).collect());
            self.model = Some(model.to_owned());
            // What the request that is running has set is among them.
            self.unsure = true;
        }
        Ok(self.known.as_ref())
    }

    /// A vector was set in the store.
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

    /// What was set since the last commit may not be kept.
    pub(super) fn forget_unsure(&mut self) {
        if self.unsure {
            *self = Self::default();
        }
    }

    /// What was set is kept.
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
