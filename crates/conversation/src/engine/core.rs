//! The state and its store. Each request and each commit is kept or undone as a whole.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::archiving::Archiving;
use super::error::EngineError;
use super::event::{Event, Statistics};
use super::held::UnsavedBuffers;
use super::models::Models;
use super::reach::{Caller, Reach};
use super::sessions::Sessions;
use super::vectors::Vectors;
use super::versioned::Moments;
use super::windows::Windows;
use crate::context::change::{Change, ContextSettings};
use crate::context::manager::Manager;
use crate::context::place;
use crate::ids::ItemId;
use crate::store::{Counters, Store, StoreError, TableReading, Way};

/// Number of managers in memory above which the empty ones are removed from memory.
const MANAGERS_KEPT: usize = 1024;

/// A clock that returns the time in Unix milliseconds.
pub type Clock = Box<dyn Fn() -> i64 + Send>;

/// Maximum number of hashes of requests in memory. Above it, the hashes are read from the store
/// again, which drops those of requests that were undone or forgotten.
const MAX_KNOWN_REQUESTS: usize = 100_000;

fn hash_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// The server's state (managers, sessions and memories), and the store that keeps it.
pub struct Engine {
    pub(super) store: Box<dyn Store>,
    pub(super) clock: Clock,
    pub(super) defaults: ContextSettings,
    pub(super) counters: Counters,
    pub(super) managers: HashMap<String, Manager>,
    /// Names of the managers changed since the last commit. Those that a failed request changed are
    /// read again from the store.
    pub(super) touched: Vec<String>,
    /// Step of the running request's changes; 0 until the first of them. See [`Change::step`].
    pub(super) step: u64,
    /// Events of the running request.
    pub(super) events: Vec<Event>,
    pub(super) statistics: Statistics,
    pub(super) sessions: Sessions,
    pub(super) models: Models,
    pub(super) windows: Windows,
    pub(super) vectors: Vectors,
    pub(super) archiving: Archiving,
    pub(super) moments: Moments,
    pub(super) held: UnsavedBuffers,
    /// Told whenever the store has done its postponed work after changes.
    pub(super) quiet: Arc<Notify>,
    /// What was found and done about a damaged state since the start.
    pub(super) notices: Vec<String>,
    /// True if the loop must end although [`Handle`](super::Handle)s remain.
    pub(super) has_ended: bool,
    /// Hashes of the names under which answers are recorded. May include names whose answers were
    /// undone or forgotten. `None` until the hashes are first needed.
    pub(super) requests: Option<HashSet<u64>>,
}

impl Engine {
    /// Creates an engine on `store`. `defaults` apply to managers without a configuration.
    ///
    /// # Errors
    /// [`EngineError::Store`] if the store cannot be read.
    pub fn new(
        mut store: Box<dyn Store>,
        clock: Clock,
        defaults: ContextSettings,
    ) -> Result<Self, EngineError> {
        let mut counters = store.counters()?;
        let moments = Moments::since(counters.give_version());
        // A damaged state is repaired once the server runs.
        let is_due = match store.read().next_to_archive() {
            Err(StoreError::Damaged(_)) => true,
            found => found?.is_some(),
        };
        Ok(Self {
            store,
            clock,
            defaults,
            counters,
            managers: HashMap::new(),
            touched: Vec::new(),
            step: 0,
            events: Vec::new(),
            statistics: Statistics::default(),
            sessions: Sessions::default(),
            models: Models::default(),
            windows: Windows::default(),
            vectors: Vectors::default(),
            archiving: Archiving { is_due, ..Archiving::default() },
            moments,
            held: UnsavedBuffers::default(),
            quiet: Arc::default(),
            notices: Vec::new(),
            has_ended: false,
            requests: None,
        })
    }

    /// Ends the loop after the running requests; later requests fail with [`EngineError::Ended`].
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Announces with an event that a provider was added, replaced or removed.
    pub fn note_provider(&mut self, method: &'static str, provider: String) {
        self.events.push(Event::ProvidersChanged { method, provider });
    }

    /// Announces with an event that a client has started or stopped offering tools. `is_for_agents`
    /// is true if agents other than the server's own can, or until now could, call one of the
    /// tools.
    pub fn note_tools(&mut self, is_for_agents: bool) {
        self.events.push(Event::ToolsChanged { is_for_agents });
    }

    /// Returns totals over all events since the engine was created.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Runs `operation`, unless a request with this method and key has succeeded before; in that
    /// case, returns the earlier outcome. Clients can therefore safely repeat a call if its answer
    /// was lost. Without a key, always runs the operation.
    ///
    /// # Errors
    /// Those of the operation and [`EngineError::Store`].
    pub fn once<T: Serialize + DeserializeOwned>(
        &mut self,
        method: &str,
        key: Option<&str>,
        operation: impl FnOnce(&mut Self) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let Some(key) = key else { return operation(self) };
        if let Some(outcome) = self.recall(method, key)? {
            return Ok(outcome);
        }
        let outcome = operation(self)?;
        let text = serde_json::to_string(&outcome).map_err(StoreError::from)?;
        self.record(&format!("{method} {key}"), &text)?;
        Ok(outcome)
    }

    /// Returns the stored outcome of an earlier request with this method and key, if there is one.
    pub(super) fn recall<T: DeserializeOwned>(
        &mut self,
        method: &str,
        key: &str,
    ) -> Result<Option<T>, EngineError> {
        let outcome = self.recorded(&format!("{method} {key}"))?;
        let outcome = outcome.map(|outcome| serde_json::from_str(&outcome)).transpose();
        Ok(outcome.map_err(StoreError::from)?)
    }

    /// Returns the answer that [`record`](Self::record) stored under this name, if there is one. A
    /// name usually consists of a method and a request key.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn recorded(&mut self, name: &str) -> Result<Option<String>, EngineError> {
        // A request with an unknown hash is new, as nearly all are, so the store is not searched
        // for it.
        match self.known_requests()?.contains(&hash_of(name)) {
            true => Ok(self.store.recall(name)?),
            false => Ok(None),
        }
    }

    /// Records the answer of a request under a name, together with the changes of the request.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn record(&mut self, name: &str, answer: &str) -> Result<(), EngineError> {
        self.known_requests()?.insert(hash_of(name));
        Ok(self.store.remember(name, answer)?)
    }

    /// Returns the hashes of the names under which answers are recorded. May include names whose
    /// answers were undone or forgotten since the hashes were read.
    fn known_requests(&mut self) -> Result<&mut HashSet<u64>, EngineError> {
        let known = match self.requests.take() {
            Some(known) if known.len() <= MAX_KNOWN_REQUESTS => known,
            _ => self.store.requests()?.iter().map(|name| hash_of(name)).collect(),
        };
        Ok(self.requests.insert(known))
    }

    /// Runs one request and commits it, for tests that use the engine without the loop.
    #[cfg(test)]
    pub fn run_alone<T>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        self.step = 0;
        let outcome = self.request(|engine| {
            let outcome = operation(engine)?;
            engine.finish_put_off()?;
            Ok(outcome)
        });
        let events = std::mem::take(&mut self.events);
        self.commit()?;
        events.iter().for_each(|event| self.statistics.note(event));
        outcome
    }

    /// Runs a part of a request like a request of its own: the part's writes are undone if it
    /// fails, and stay if a later part fails. The request must write nothing outside its parts,
    /// because a failed part also undoes such writes.
    ///
    /// # Errors
    /// Those of the operation and [`EngineError::Store`].
    pub fn part<T, E: From<EngineError>>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let earlier = std::mem::take(&mut self.events);
        let outcome = self.request(operation);
        let new = std::mem::replace(&mut self.events, earlier);
        self.events.extend(new);
        outcome
    }

    /// Runs a request, or a [`part`](Self::part) of one, whose writes are kept together or not at
    /// all.
    pub(super) fn request<T, E: From<EngineError>>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let touched_before = self.touched.len();
        let sessions_before = self.sessions.touched();
        let outcome = catch_unwind(AssertUnwindSafe(|| operation(self)))
            .unwrap_or_else(|panic| Err(EngineError::Panicked(panic_text(&*panic)).into()))
            .and_then(|value| self.keep().map(|()| value).map_err(E::from));
        if outcome.is_err() {
            self.events.clear();
            for name in self.touched.drain(touched_before..) {
                self.managers.remove(&name);
            }
            self.sessions.forget_touched(sessions_before);
            self.models.calibrations.clear();
            self.vectors.forget_unsure();
            self.archiving.forget();
            if let Err(error) = self.store.abandon() {
                tracing::error!("cannot undo a failed request: {error}");
            }
        }
        outcome
    }

    /// Ends a request: gives new versions to the sessions that it changed, and keeps its writes.
    fn keep(&mut self) -> Result<(), EngineError> {
        self.raise_versions()?;
        self.stamp_events()?;
        Ok(self.store.keep()?)
    }

    /// Commits the requests so far. If that fails, restores the state before all of them.
    pub(super) fn commit(&mut self) -> Result<(), EngineError> {
        let committed = self.store.commit(self.counters);
        if committed.is_err() {
            self.store.roll_back();
            self.forget_all();
        }
        self.vectors.settle();
        self.sessions.tidy();
        if self.managers.len() > MANAGERS_KEPT {
            self.managers.retain(|_, manager| !manager.is_empty());
        }
        self.touched.clear();
        Ok(committed.map(drop)?)
    }

    /// Returns read access to the store, for everything but managers.
    pub fn read(&mut self) -> TableReading<'_> {
        self.store.read()
    }

    /// Returns the reason why changes are refused, or why the last change could not be stored;
    /// `None` if changes are accepted and stored.
    pub fn refusal(&self) -> Option<String> {
        self.store.refusal()
    }

    /// Forgets a connection that has ended, and tells of the items that it had in unsaved buffers.
    pub fn forget_caller(&mut self, caller: Caller) {
        self.sessions.forget(caller);
        let released = self.held.forget(caller);
        self.tell_released(&released, caller);
    }

    /// Tells that items, which the caller had in unsaved buffers, have other texts now for others.
    pub(super) fn tell_released(&mut self, released: &[ItemId], caller: Caller) {
        let changed = self
            .managers
            .iter()
            .filter(|(_, manager)| released.iter().any(|id| manager.slot(*id).is_some()));
        let change = Change::by("update-items");
        let events =
            changed.map(|(name, manager)| Event::changed(name, manager, &change, None, caller));
        self.events.extend(events);
    }

    /// Returns the time in Unix seconds.
    pub fn now(&self) -> i64 {
        (self.clock)().div_euclid(1000)
    }

    /// Returns whether the state that a request touches is small and in memory, so that the request
    /// is quick.
    pub(super) fn is_at_hand(&self, caller: Caller, reach: &Reach) -> bool {
        match reach {
            Reach::Anything => false,
            Reach::Manager(name) => self.managers.contains_key(name),
            Reach::Session(name) => self.sessions.is_short(caller, name.as_deref()),
        }
    }

    /// Returns a manager, reading it from the store on first use.
    pub(super) fn manager(&mut self, name: &str) -> Result<&Manager, EngineError> {
        if !self.managers.contains_key(name) {
            let manager = self.read_manager(name)?;
            self.managers.insert(name.to_owned(), manager);
        }
        Ok(&self.managers[name])
    }

    /// Returns the settings of a manager that nobody configured.
    pub(super) fn default_settings(&self, name: &str) -> ContextSettings {
        ContextSettings { max_items: place::capacity(name, self.defaults.max_items) }
    }

    pub(super) fn read_manager(&mut self, name: &str) -> Result<Manager, EngineError> {
        let stored = self.store.load(name)?;
        let settings = stored.as_ref().and_then(|stored| stored.settings);
        let mut manager = Manager::new(settings.unwrap_or_else(|| self.default_settings(name)));
        let version = stored.as_ref().map_or(0, |stored| stored.version);
        let mut change = Change { version, ..Change::default() };
        stored.into_iter().flat_map(|stored| stored.slots).for_each(|slot| change.enter(slot));
        manager.apply(&change);
        Ok(manager)
    }

    /// Stores a planned change, applies it, and records its event. Does nothing if the change is
    /// empty.
    pub(super) fn carry_out(&mut self, name: &str, change: Change) -> Result<(), EngineError> {
        if change.is_empty() {
            return Ok(());
        }
        let version = self.counters.give_version();
        if self.step == 0 {
            self.step = version;
        }
        let step = if change.is_following() { 0 } else { self.step };
        let change = Change { version, step, ..change };
        self.touched.push(name.to_owned());
        self.store.record(name, &change)?;
        self.apply(name, &change, None)
    }

    /// Applies a stored change and records its event. `way` tells whether the change is an undo or
    /// a redo; `None` if it is neither.
    pub(super) fn apply(
        &mut self,
        name: &str,
        change: &Change,
        way: Option<Way>,
    ) -> Result<(), EngineError> {
        self.manager(name)?;
        if let Some(manager) = self.managers.get_mut(name) {
            manager.apply(change);
            let by = self.sessions.caller;
            self.events.push(Event::changed(name, manager, change, way, by));
        }
        Ok(())
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
