//! The use cases over memories: remembering, finding what fits, forgetting.

use std::collections::HashMap;

use super::{Engine, EngineError};
use crate::memory::grounding::{Grounding, Remembered};
use crate::memory::ranking::{Candidate, Found, best, similar};
use crate::memory::strength::Life;
use crate::session::spans::Spans;
use crate::store::memory::{MemoryFilter, MemoryRow, MemoryScope, NewMemory};
use crate::store::session::SessionRow;

/// How many memories a search by words looks at.
const LOOKED_AT: u64 = 100;
/// Of how many of the best the neighbours are looked at.
const NEIGHBOURS_OF: usize = 10;
/// The kind of a memory that was told as such.
pub const NOTE: &str = "note";
/// The kind of a memory that is the summary of a session's older turns.
pub const SUMMARY: &str = "context-summary";
/// The kind of a memory that is what was pruned from a session.
pub const ARCHIVED: &str = "archived";

/// What is asked of the memories.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The text that they should fit.
    pub text: String,
    /// What a model of embeddings makes of the text, with the model's name.
    pub vector: Option<(String, Vec<f32>)>,
    /// Which may be found.
    pub filter: MemoryFilter,
    /// How many at most.
    pub limit: usize,
    /// A session and what of it is in view: what comes from there need not be brought in.
    pub in_view: Option<(u64, Spans)>,
}

/// What was found for a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grounded {
    /// The memories, best first.
    pub memories: Vec<MemoryRow>,
    /// The text for a window, with ids and relevances in the same order.
    pub grounding: Grounding,
}

impl Query {
    fn is_in_view(&self, row: &MemoryRow) -> bool {
        let (Some((session, in_view)), Some(origin)) = (&self.in_view, row.made.origin) else {
            return false;
        };
        let numbers = || origin.first..=origin.last;
        row.made.kind == ARCHIVED
            && origin.session == *session
            && numbers().all(|number| in_view.contains(number))
    }
}

impl Engine {
    /// Remembers a text.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn remember(
        &mut self,
        scope: MemoryScope,
        content: &str,
        vector: Option<(&str, &[f32])>,
    ) -> Result<u64, EngineError> {
        let new = NewMemory {
            scope,
            kind: NOTE.to_owned(),
            origin: None,
            content: content.to_owned(),
            created: self.now(),
        };
        let id = self.store.add_memory(&new)?;
        if let Some((model, vector)) = vector {
            self.set_memory_vector(id, model, vector)?;
        }
        Ok(id)
    }

    /// The memories that fit a text best; that they were found makes them stronger.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn ground(&mut self, query: &Query) -> Result<Grounded, EngineError> {
        self.finish_put_off()?;
        let now = self.now();
        let hits = self.store.search_memories(&query.text, &query.filter, LOOKED_AT)?;
        let by_words: Vec<u64> = hits.iter().map(|(row, _)| row.id).collect();
        let mut rows: HashMap<u64, MemoryRow> =
            hits.into_iter().map(|(row, _)| (row.id, row)).collect();
        let by_vectors = self.found_by_vector(query, &mut rows)?;
        let best_found = by_words.iter().take(NEIGHBOURS_OF);
        let best_found: Vec<u64> =
            best_found.chain(by_vectors.iter().take(NEIGHBOURS_OF)).copied().collect();
        let beside = self.store.memories_beside(&best_found, &query.filter)?;
        rows.extend(beside.into_iter().map(|row| (row.id, row)));
        rows.retain(|_, row| !query.is_in_view(row));
        let candidates: Vec<Candidate> = rows.values().map(candidate).collect();
        let found = Found { by_words: &by_words, by_vectors: &by_vectors };
        let mut ids = best(&candidates, found, now);
        ids.truncate(query.limit);
        let memories: Vec<MemoryRow> = ids.iter().filter_map(|id| rows.remove(id)).collect();
        let remembered: Vec<Remembered<'_>> = memories
            .iter()
            .map(|row| Remembered {
                id: row.id,
                content: &row.made.content,
                strength: candidate(row).life.strength(now),
            })
            .collect();
        let grounding = Grounding::of(&remembered);
        self.store.touch_memories(&grounding.ids, now)?;
        Ok(Grounded { memories, grounding })
    }

    /// The memories that pass, newest first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn list_memories(
        &mut self,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, EngineError> {
        self.finish_put_off()?;
        Ok(self.store.memories(filter, limit)?)
    }

    /// Forgets a memory, or brings it back.
    ///
    /// # Errors
    /// [`EngineError::NoSuchMemory`].
    pub fn forget(&mut self, id: u64, forgotten: bool) -> Result<MemoryRow, EngineError> {
        if i64::try_from(id).is_err() {
            return Err(EngineError::NoSuchMemory(id));
        }
        let at = forgotten.then(|| self.now());
        match self.store.set_memory_forgotten(id, at)? {
            true => self.memory(id),
            false => Err(EngineError::NoSuchMemory(id)),
        }
    }

    /// A memory, forgotten or not.
    ///
    /// # Errors
    /// [`EngineError::NoSuchMemory`].
    pub fn memory(&mut self, id: u64) -> Result<MemoryRow, EngineError> {
        self.store.memory(id)?.ok_or(EngineError::NoSuchMemory(id))
    }

    /// The memories that have no vector by a model yet, newest first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn memories_without_vector(
        &mut self,
        model: &str,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, EngineError> {
        loop {
            let filter = MemoryFilter::default();
            let rows = self.store.memories_without_vector(&filter, model, limit)?;
            if rows.len() as u64 >= limit || !self.do_one_put_off()? {
                return Ok(rows);
            }
        }
    }

    /// Keeps what a model of embeddings makes of a memory.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn set_memory_vector(
        &mut self,
        id: u64,
        model: &str,
        vector: &[f32],
    ) -> Result<(), EngineError> {
        self.store.set_memory_vector(id, model, vector)?;
        self.vectors.set(id, model, vector);
        Ok(())
    }

    fn found_by_vector(
        &mut self,
        query: &Query,
        rows: &mut HashMap<u64, MemoryRow>,
    ) -> Result<Vec<u64>, EngineError> {
        let Some((model, vector)) = &query.vector else { return Ok(Vec::new()) };
        let mut found = match self.vectors.of(model, &mut *self.store)? {
            Some(known) => {
                let ids = self.store.memory_ids(&query.filter)?;
                similar(vector, ids.iter().filter_map(|id| Some((*id, &**known.get(id)?))))
            }
            None => {
                let read = self.store.memory_vectors(&query.filter, model)?;
                similar(vector, read.iter().map(|(id, vector)| (*id, &**vector)))
            }
        };
        found.truncate(LOOKED_AT as usize);
        for &id in &found {
            if let Some(row) = self.store.memory(id)? {
                rows.insert(id, row);
            }
        }
        Ok(found)
    }
}

/// The memories that may ground a session: its own, its project's, and those for everywhere; but
/// not the summaries of what it still has in view itself.
pub fn memories_for(row: &SessionRow) -> MemoryFilter {
    let mut scopes = vec![MemoryScope::Everywhere, MemoryScope::Session(row.id)];
    // What a fork shares with its parent, that may know more of.
    scopes.extend(row.parent.map(|(parent, _)| MemoryScope::Session(parent)));
    scopes.extend(row.project.clone().map(MemoryScope::Project));
    MemoryFilter {
        scopes: Some(scopes),
        except: Some((row.id, SUMMARY.to_owned())),
        ..MemoryFilter::default()
    }
}

fn candidate(row: &MemoryRow) -> Candidate {
    let origin = row.made.origin.map(|origin| (origin.session, origin.first, origin.last));
    let life = Life { created: row.made.created, accessed: row.accessed, accesses: row.accesses };
    Candidate { id: row.id, life, origin }
}
