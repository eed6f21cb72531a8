//! Input for building a session's window, and records of built windows.

use std::sync::Arc;

use serde::Deserialize;

use super::super::vectors::MessageVectors;
use super::super::windows::Noted;
use super::super::{Engine, EngineError, Event, Selection, View};
use super::settings::SessionContext;
use crate::context::render::report::ItemVerdict;
use crate::curation::notes::without_directive;
use crate::curation::report::{Fingerprint, Report};
use crate::curation::summary;
use crate::curation::unit::HistoryCache;
use crate::curation::window::{Window, WindowUsage};
use crate::session::message::Message;
use crate::session::spans::Spans;
use crate::session::state::Summary;
use crate::store::session::UsageRow;

/// The parts of a session from which its window is built.
pub struct Material {
    /// The session, with its settings and the token costs for the model.
    pub context: SessionContext,
    /// Messages in view and those that the summary stands in for, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Number of messages in the conversation, including those that no window shows.
    pub said: u64,
    /// Summary of earlier messages.
    pub summary: Option<Summarizing>,
    /// Items of the session's managers.
    pub items: Vec<View>,
    /// Fingerprint of the window that was built last, if any.
    pub previous: Option<Fingerprint>,
    /// Vectors of the messages, by the same model as the query's vector; empty if the query has no
    /// vector.
    pub vectors: Arc<MessageVectors>,
    /// Data about the messages, computed while earlier windows were built; `None` if some of the
    /// messages are not in the log.
    pub words: Option<Arc<HistoryCache>>,
}

/// A text in place of earlier messages.
pub struct Summarizing {
    /// The text.
    pub text: Arc<str>,
    /// Number of tokens of the text.
    pub tokens: u64,
    /// Messages that the text stands in for. A window shows them again as far as they fit.
    pub covers: Spans,
    /// Number of messages in the log when the summary was made.
    pub position: u64,
    /// The structured summary from which the text was rendered; `None` if it is not known. The text
    /// is then never shortened.
    pub source: Option<summary::SummaryText>,
}

impl From<&Summary> for Summarizing {
    fn from(summary: &Summary) -> Self {
        Self {
            text: Arc::from(&*summary.text),
            tokens: summary.tokens,
            covers: summary.covers.clone(),
            position: summary.position.max(summary.covers.last().unwrap_or_default()),
            source: summary::SummaryText::deserialize(&summary.source).ok(),
        }
    }
}

impl Engine {
    /// Returns the parts of a session for a window, without vectors.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn material(&mut self, context: SessionContext) -> Result<Material, EngineError> {
        let row = &context.row;
        let managers = context.managers.clone();
        let items = self.select(&Selection { managers, ..Selection::default() })?;
        let loaded = self.loaded(row.id)?;
        let (session, words) = (&loaded.session, Some(Arc::clone(&loaded.words)));
        let summary = session.state().summary.as_ref().map(Summarizing::from);
        let messages = session.offered().map(without_directive).collect();
        let said = session.active().count() as u64;
        let previous = self.windows.of(row.id).next().map(|noted| noted.fingerprint.clone());
        let vectors = Arc::default();
        Ok(Material { context, messages, said, summary, items, previous, vectors, words })
    }

    /// Records a built window, and announces it with an event if it differs from the previous one.
    /// Returns the number of the window's line in the usage log; 0 if the store accepts no changes.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn note_window(
        &mut self,
        id: u64,
        window: &Window,
        items: Vec<ItemVerdict>,
    ) -> Result<u64, EngineError> {
        let at = self.now();
        let usage = usage_row(id, at, &window.usage, &window.report);
        self.moments.windows.insert(id, self.counters.give_version());
        let line = match self.store.note()? {
            Some(store) => store.log_usage(&usage)?,
            None => 0,
        };
        let fingerprint = window.fingerprint();
        let max_tokens = window.report.max_tokens;
        let is_same =
            |last: &Noted| last.fingerprint == fingerprint && last.report.max_tokens == max_tokens;
        // Otherwise, a client that builds a window after each such event would never stop.
        if !self.windows.of(id).next().is_some_and(is_same) {
            let (session, tokens) = (self.session_name(id)?, window.tokens);
            self.events.push(Event::WindowBuilt { session, tokens, max_tokens });
        }
        let report = Arc::new(window.report.clone());
        self.windows.note(Noted { session: id, at, report, items, fingerprint });
        Ok(line)
    }

    /// Returns the records of a session's windows that are still kept, newest first.
    pub fn windows(&self, id: u64) -> Vec<Noted> {
        self.windows.of(id).cloned().collect()
    }
}

fn usage_row(session: u64, at: i64, usage: &WindowUsage, report: &Report) -> UsageRow {
    UsageRow {
        session: Some(session),
        at,
        phase: usage.phase,
        strategy: report.strategy.to_owned(),
        system: usage.system,
        design: usage.design,
        types: usage.types,
        current: usage.current_context,
        messages: usage.messages,
        total: usage.total,
        budget: report.max_tokens,
        spent: None,
    }
}
