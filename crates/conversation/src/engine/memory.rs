//! Operations on memories: remember, search and forget.

use std::collections::{HashMap, HashSet};

use super::{Engine, EngineError, Event};
use crate::memory::answers::{AnswerText, answers};
use crate::memory::grounding::{Grounding, Remembered};
use crate::memory::ranking::{Candidate, RankedMemories, best, similar};
use crate::memory::strength::Life;
use crate::session::spans::Spans;
use crate::store::memory::{MemoryFilter, MemoryRow, MemoryScope, NewMemory};
use crate::store::session::SessionRow;

/// Number of matches that a search considers first.
const LOOKED_AT: u64 = 100;
/// Factor by which a search considers more matches if too few of the first ones say anything beyond
/// the query itself.
const MORE_LOOKED_AT: u64 = 4;
/// Maximum number of matches that a search considers.
const MOST_LOOKED_AT: u64 = 1600;
/// Number of best matches by words, and also by vectors, whose neighbours in their session are
/// considered too.
const NEIGHBOURS_OF: usize = 10;
/// The kind of memories that a user or model stored explicitly.
pub(super) const NOTE: &str = "note";
/// The kind of memories that summarize older turns of a session.
pub(super) const SUMMARY: &str = "context-summary";
/// The kind of memories made from messages that left a session's view.
pub(super) const ARCHIVED: &str = "archived";
/// The kind of memories that a project's repository has.
pub(super) const REPOSITORY: &str = "repository";
/// Value of `forgotten` for a memory that is no longer in its repository. No user forgets a memory
/// at this time.
const LEFT: i64 = 0;

/// A query for memories.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Text that memories should match.
    pub text: String,
    /// Name of the embedding model and its vector for the text; `None` to search by words only.
    pub vector: Option<(String, Vec<f32>)>,
    /// Memories that may be found.
    pub filter: MemoryFilter,
    /// Maximum number of memories to return.
    pub limit: usize,
    /// A session, and the numbers of its messages in view, which need not be found again.
    pub in_view: Option<(u64, Spans)>,
    /// True if the memories that are found count as used, which strengthens them for later queries.
    pub strengthen: bool,
}

/// Result of a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grounded {
    /// Memories found, best first.
    pub memories: Vec<MemoryRow>,
    /// Text for a window, with the ids and relevances of `memories` in the same order.
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
    /// Stores a text as a memory, with its vector and the name of the model that computed the
    /// vector, if given. Returns the memory's id.
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
        let id = self.store.change()?.add_memory(&new)?;
        if let Some((model, vector)) = vector {
            self.set_memory_vector(id, model, vector)?;
        }
        self.events.push(Event::MemoriesChanged { method: "remember", id });
        Ok(id)
    }

    /// Finds the memories that answer the query best, and strengthens them if the query says so.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn ground(&mut self, query: &Query) -> Result<Grounded, EngineError> {
        self.finish_put_off()?;
        let now = self.now();
        let mut looked_at = LOOKED_AT;
        let memories = loop {
            let (answers, all) = self.answers(query, looked_at, now)?;
            if all || answers.len() > query.limit || looked_at >= MOST_LOOKED_AT {
                break answers;
            }
            looked_at *= MORE_LOOKED_AT;
        };
        let remembered: Vec<Remembered<'_>> = memories
            .iter()
            .take(query.limit)
            .map(|row| Remembered {
                id: row.id,
                content: &row.made.content,
                strength: candidate(row).life.strength(now),
            })
            .collect();
        let grounding = Grounding::of(&remembered);
        if query.strengthen
            && let Some(store) = self.store.note()?
        {
            store.touch_memories(&grounding.ids, now)?;
        }
        let memories = memories.into_iter().take(query.limit).collect();
        Ok(Grounded { memories, grounding })
    }

    /// Finds the memories that answer the query, among the `looked_at` best matches and the
    /// neighbours of the very best. Returns at most one more than the query's limit, since the last
    /// one may only repeat the query. Also returns whether there are no further matches.
    fn answers(
        &mut self,
        query: &Query,
        looked_at: u64,
        now: i64,
    ) -> Result<(Vec<MemoryRow>, bool), EngineError> {
        let (hits, all) = self.found_by_words(query, looked_at)?;
        let by_words: Vec<u64> = hits.iter().map(|row| row.id).collect();
        let mut rows: HashMap<u64, MemoryRow> = hits.into_iter().map(|row| (row.id, row)).collect();
        let by_vectors = self.found_by_vector(query, looked_at, &mut rows)?;
        let best_found = by_words.iter().take(NEIGHBOURS_OF);
        let best_found: Vec<u64> =
            best_found.chain(by_vectors.iter().take(NEIGHBOURS_OF)).copied().collect();
        let beside = self.store.read().memories_beside(&best_found, &query.filter)?;
        rows.extend(beside.into_iter().map(|row| (row.id, row)));
        rows.retain(|_, row| !query.is_in_view(row));
        let candidates: Vec<Candidate> = rows.values().map(candidate).collect();
        let found = RankedMemories { by_words: &by_words, by_vectors: &by_vectors };
        let ranked = best(&candidates, found, now);
        let texts: Vec<AnswerText<'_>> =
            ranked.iter().filter_map(|id| rows.get(id)).map(text).collect();
        let ids = answers(&query.text, &texts, query.limit.saturating_add(1));
        let all = all && (by_vectors.len() as u64) < looked_at;
        Ok((ids.iter().filter_map(|id| rows.remove(id)).collect(), all))
    }

    /// Returns the best matches by words, best first, and whether there are no further matches.
    /// Notes are also searched separately, so that many matching messages cannot hide them.
    fn found_by_words(
        &mut self,
        query: &Query,
        looked_at: u64,
    ) -> Result<(Vec<MemoryRow>, bool), EngineError> {
        let store = self.store.read();
        let mut hits = store.search_memories(&query.text, &query.filter, looked_at)?;
        let all = (hits.len() as u64) < looked_at;
        if !all && query.filter.kind.is_none() {
            let notes = MemoryFilter { kind: Some(NOTE.to_owned()), ..query.filter.clone() };
            let known: HashSet<u64> = hits.iter().map(|(row, _)| row.id).collect();
            let notes = store.search_memories(&query.text, &notes, LOOKED_AT)?;
            hits.extend(notes.into_iter().filter(|(row, _)| !known.contains(&row.id)));
            hits.sort_by(|(a, left), (b, right)| right.total_cmp(left).then(b.id.cmp(&a.id)));
        }
        Ok((hits.into_iter().map(|(row, _)| row).collect(), all))
    }

    /// Lists memories that pass the filter, newest first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn list_memories(
        &mut self,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, EngineError> {
        self.finish_put_off()?;
        Ok(self.store.read().memories(filter, limit)?)
    }

    /// Makes the memories of a project's repository those that its files have now. What left the
    /// files is forgotten; what the user forgot stays forgotten.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn keep_repository(
        &mut self,
        project: &str,
        contents: &[String],
    ) -> Result<(), EngineError> {
        let scope = MemoryScope::Project(project.to_owned());
        let filter = MemoryFilter {
            scopes: Some(vec![scope.clone()]),
            kind: Some(REPOSITORY.to_owned()),
            except: None,
            with_forgotten: true,
        };
        let known = self.store.read().memories(&filter, u64::MAX)?;
        let is_there = |row: &MemoryRow| contents.contains(&row.made.content);
        let mut changed: Vec<(u64, Option<i64>)> = Vec::new();
        for row in &known {
            match (is_there(row), row.forgotten) {
                (false, None) => changed.push((row.id, Some(LEFT))),
                (true, Some(LEFT)) => changed.push((row.id, None)),
                _ => {}
            }
        }
        let is_new = |content: &&String| known.iter().all(|row| row.made.content != **content);
        let new: Vec<&String> = contents.iter().filter(is_new).collect();
        if changed.is_empty() && new.is_empty() {
            return Ok(());
        }
        let created = self.now();
        // Reading works on a full disk, without what is new.
        let Some(store) = self.store.note()? else { return Ok(()) };
        for (id, at) in changed {
            store.set_memory_forgotten(id, at)?;
        }
        for content in new {
            let (scope, kind) = (scope.clone(), REPOSITORY.to_owned());
            store.add_memory(&NewMemory {
                scope,
                kind,
                origin: None,
                content: content.clone(),
                created,
            })?;
        }
        Ok(())
    }

    /// Forgets a memory, or restores it if `forgotten` is false.
    ///
    /// # Errors
    /// [`EngineError::NoSuchMemory`].
    pub fn forget(&mut self, id: u64, forgotten: bool) -> Result<MemoryRow, EngineError> {
        if i64::try_from(id).is_err() {
            return Err(EngineError::NoSuchMemory(id));
        }
        let at = forgotten.then(|| self.now());
        match self.store.change()?.set_memory_forgotten(id, at)? {
            true => {
                self.events.push(Event::MemoriesChanged { method: "update-memory", id });
                self.memory(id)
            }
            false => Err(EngineError::NoSuchMemory(id)),
        }
    }

    /// Returns a memory, forgotten or not.
    ///
    /// # Errors
    /// [`EngineError::NoSuchMemory`].
    pub fn memory(&mut self, id: u64) -> Result<MemoryRow, EngineError> {
        if i64::try_from(id).is_err() {
            return Err(EngineError::NoSuchMemory(id));
        }
        self.store.read().memory(id)?.ok_or(EngineError::NoSuchMemory(id))
    }

    /// Lists memories that are not forgotten and have no vector from this model, newest first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn memories_without_vector(
        &mut self,
        model: &str,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, EngineError> {
        loop {
            let rows = self.store.read().memories_without_vector(model, limit)?;
            if rows.len() as u64 >= limit || !self.do_one_put_off()? {
                return Ok(rows);
            }
        }
    }

    /// Stores the vector that the embedding model `model` computed for a memory.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn set_memory_vector(
        &mut self,
        id: u64,
        model: &str,
        vector: &[f32],
    ) -> Result<(), EngineError> {
        self.store.change()?.set_memory_vector(id, model, vector)?;
        self.vectors.set(id, model, vector);
        Ok(())
    }

    fn found_by_vector(
        &mut self,
        query: &Query,
        looked_at: u64,
        rows: &mut HashMap<u64, MemoryRow>,
    ) -> Result<Vec<u64>, EngineError> {
        let Some((model, vector)) = &query.vector else { return Ok(Vec::new()) };
        let mut found = match self.vectors.of(model, &mut *self.store)? {
            Some(known) => {
                let ids = self.store.read().memory_ids(&query.filter)?;
                similar(vector, ids.iter().filter_map(|id| Some((*id, &**known.get(id)?))))
            }
            None => {
                let read = self.store.read().memory_vectors(&query.filter, model)?;
                similar(vector, read.iter().map(|(id, vector)| (*id, &**vector)))
            }
        };
        found.truncate(usize::try_from(looked_at).unwrap_or(usize::MAX));
        for &id in &found {
            if let Some(row) = self.store.read().memory(id)? {
                rows.insert(id, row);
            }
        }
        Ok(found)
    }
}

/// Returns the filter for the memories that may be shown in a session: the session's own, those of
/// the session that it was forked from, those of its project, and those for all sessions. Summaries
/// of the session's own history are left out.
pub fn memories_for(row: &SessionRow) -> MemoryFilter {
    let mut scopes = vec![MemoryScope::Everywhere, MemoryScope::Session(row.id)];
    // Messages shared with the parent of a fork may be memories of the parent.
    scopes.extend(row.parent.map(|(parent, _)| MemoryScope::Session(parent)));
    scopes.extend(row.project.clone().map(MemoryScope::Project));
    MemoryFilter {
        scopes: Some(scopes),
        except: Some((row.id, SUMMARY.to_owned())),
        ..MemoryFilter::default()
    }
}

fn text(row: &MemoryRow) -> AnswerText<'_> {
    let content = &*row.made.content;
    // Archived messages begin with their role.
    let said = content.split_once(": ").filter(|_| row.made.kind == ARCHIVED);
    AnswerText {
        id: row.id,
        content: said.map_or(content, |(_, said)| said),
        noted: row.made.kind == NOTE,
    }
}

fn candidate(row: &MemoryRow) -> Candidate {
    let origin = row.made.origin.map(|origin| (origin.session, origin.first, origin.last));
    let life = Life { created: row.made.created, accessed: row.accessed, accesses: row.accesses };
    Candidate { id: row.id, life, origin }
}
