//! Memories, which are never logged: reads and writes go straight to the other store, writes after
//! all logged entries were moved there.

use super::super::memory::{MemoryFilter, MemoryRow, MemoryStore, NewMemory, ToArchive};
use super::super::{Store, StoreError};
use super::LoggedStore;
use crate::session::spans::Spans;

impl<S: Store> MemoryStore for LoggedStore<S> {
    fn add_memory(&mut self, memory: &NewMemory) -> Result<u64, StoreError> {
        self.changing()?.add_memory(memory)
    }

    fn memory(&mut self, id: u64) -> Result<Option<MemoryRow>, StoreError> {
        self.inner.memory(id)
    }

    fn memories(
        &mut self,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        self.inner.memories(filter, limit)
    }

    fn search_memories(
        &mut self,
        text: &str,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<(MemoryRow, f64)>, StoreError> {
        self.inner.search_memories(text, filter, limit)
    }

    fn memories_beside(
        &mut self,
        ids: &[u64],
        filter: &MemoryFilter,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        self.inner.memories_beside(ids, filter)
    }

    fn set_memory_vector(
        &mut self,
        id: u64,
        model: &str,
        vector: &[f32],
    ) -> Result<(), StoreError> {
        self.changing()?.set_memory_vector(id, model, vector)
    }

    fn memory_ids(&mut self, filter: &MemoryFilter) -> Result<Vec<u64>, StoreError> {
        self.inner.memory_ids(filter)
    }

    fn memory_vectors(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
    ) -> Result<Vec<(u64, Vec<f32>)>, StoreError> {
        self.inner.memory_vectors(filter, model)
    }

    fn memories_without_vector(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        self.inner.memories_without_vector(filter, model, limit)
    }

    fn touch_memories(&mut self, ids: &[u64], at: i64) -> Result<(), StoreError> {
        self.noting()?.map_or(Ok(()), |store| store.touch_memories(ids, at))
    }

    fn set_memory_forgotten(&mut self, id: u64, at: Option<i64>) -> Result<bool, StoreError> {
        self.changing()?.set_memory_forgotten(id, at)
    }

    fn put_off_archive(
        &mut self,
        session: u64,
        messages: &Spans,
        created: i64,
    ) -> Result<(), StoreError> {
        self.changing()?.put_off_archive(session, messages, created)
    }

    fn next_to_archive(&mut self) -> Result<Option<ToArchive>, StoreError> {
        self.inner.next_to_archive()
    }

    fn note_archived(&mut self, id: u64, done: Option<u64>) -> Result<(), StoreError> {
        self.changing()?.note_archived(id, done)
    }
}
