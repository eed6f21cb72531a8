//! Note-taking: a model writes notes about the conversation, as a template directs, and the notes
//! replace the history in the window.
//!
//! If a step fails, the outcome names the step and the reason, and the caller continues with the
//! plain history. Every outcome of a turn is stored and announced to listeners.

mod asking;
mod fit;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use self::run::{NotesRun, NotesStopped};
use super::{AgentError, AvailableModel, Job, Services};
use crate::curation::notes::{NotesOptions, NotesStatus, NotesStep};
use crate::engine::{EngineError, Material, Summarizing};
use crate::session::spans::Spans;
use crate::store::notes::NewNotes;

/// Maximum time for taking notes, while the user waits for an answer. It is long enough for a model
/// without a graphics card.
const DEADLINE: Duration = Duration::from_mins(10);

/// The notes that a turn asks for.
#[derive(Debug, Clone)]
pub struct WantedNotes {
    /// The template's name.
    pub template: String,
    /// Settings that override the session's and the template's.
    pub said: NotesOptions,
}

/// The outcome of note-taking for a turn.
#[derive(Debug, Clone)]
pub struct TurnNotes {
    /// The record of the notes.
    pub view: NewNotes,
    /// Number of the stored record; `None` if it was not stored.
    pub id: Option<u64>,
    /// True if the notes are from an earlier attempt at the same turn.
    pub cached: bool,
    /// True once the outcome has been announced to listeners.
    is_told: bool,
    /// Notes that replace the history, if any.
    taken: Option<NotesView>,
}

/// Notes that replace a history.
#[derive(Debug, Clone)]
struct NotesView {
    text: Arc<str>,
    tokens: u64,
    /// Numbers of earlier messages that stay in addition to the notes.
    kept: Arc<BTreeSet<u64>>,
}

/// Takes notes for the current turn of session `id`. `configured` is the model that will see the
/// notes. If the window contains the notes, the caller must call [`TurnNotes::mark_used`].
///
/// # Errors
/// [`EngineError::Cancelled`]. Every other failure is part of the outcome.
pub async fn manage(
    job: &Job,
    id: u64,
    wish: &WantedNotes,
    configured: &AvailableModel,
) -> Result<TurnNotes, AgentError> {
    let mut managed = outcome_of(NotesRun::new(job, id, wish, configured), DEADLINE).await?;
    if !managed.cached {
        managed.keep(&job.services).await;
    }
    Ok(managed)
}

/// Like [`manage`], but asks no model and stores nothing. The outcome contains the prompt.
///
/// # Errors
/// [`EngineError::Cancelled`].
pub async fn rehearse(
    job: &Job,
    id: u64,
    wish: &WantedNotes,
    configured: &AvailableModel,
) -> Result<TurnNotes, AgentError> {
    let mut run = NotesRun::new(job, id, wish, configured);
    run.only_prompt = true;
    outcome_of(run, DEADLINE).await
}

async fn outcome_of(mut run: NotesRun<'_>, deadline: Duration) -> Result<TurnNotes, AgentError> {
    let outcome = timeout(deadline, run.run()).await.unwrap_or_else(|_| {
        NotesStopped::failed(format!("note-taking took longer than {} seconds", deadline.as_secs()))
    });
    let NotesRun { mut view, step, stored, .. } = run;
    let taken = match outcome {
        Ok(taken) => Some(taken),
        Err(NotesStopped::Raw) => None,
        Err(NotesStopped::Cancelled) => return Err(EngineError::Cancelled.into()),
        Err(NotesStopped::Failed(reason)) => {
            fail(&mut view, step, reason);
            None
        }
    };
    // Stored notes were announced when they were first made.
    let is_told = stored.is_some();
    Ok(TurnNotes { view, id: stored, cached: stored.is_some(), is_told, taken })
}

fn fail(view: &mut NewNotes, step: NotesStep, reason: String) {
    view.status = NotesStatus::Failed.name().to_owned();
    view.step = Some(step.name().to_owned());
    view.reason = Some(reason);
    view.tokens_after = view.tokens_before;
}

impl TurnNotes {
    /// Replaces the history with the notes, if there are any.
    pub(super) fn apply(&self, material: &mut Material) {
        let Some(taken) = &self.taken else { return };
        let last = self.view.message;
        material.messages.retain(|one| one.number > last || taken.kept.contains(&one.number));
        material.summary = Some(Summarizing {
            text: Arc::clone(&taken.text),
            tokens: taken.tokens,
            covers: Spans::default(),
            position: 0,
            source: None,
        });
    }

    /// Returns whether the notes replace the history.
    pub(super) fn has_view(&self) -> bool {
        self.taken.is_some()
    }

    /// Announces the notes to listeners as used, unless that has been done.
    pub async fn mark_used(&mut self, services: &Services) {
        if !self.is_told {
            self.tell(services).await;
        }
    }

    /// Gives up the notes because the window could not be built with them.
    pub(super) async fn give_up(&mut self, services: &Services, reason: String) {
        self.taken = None;
        fail(&mut self.view, NotesStep::Window, reason);
        self.cached = false;
        self.keep(services).await;
    }

    /// Stores the outcome. Notes that cannot be stored are given up, so that the origin of used
    /// notes can always be seen. Notes are announced to listeners only when they are used, because
    /// until then they can still be given up.
    async fn keep(&mut self, services: &Services) {
        self.id = None;
        match kept(services, &self.view).await {
            Ok(id) => self.id = Some(id),
            Err(error) if self.taken.take().is_some() => {
                fail(&mut self.view, NotesStep::Store, error.to_string());
                match kept(services, &self.view).await {
                    Ok(id) => self.id = Some(id),
                    Err(error) => tracing::warn!("cannot store that note-taking failed: {error}"),
                }
            }
            Err(error) => tracing::warn!("cannot store the outcome of note-taking: {error}"),
        }
        if self.taken.is_none() {
            self.tell(services).await;
        }
    }

    async fn tell(&mut self, services: &Services) {
        self.is_told = true;
        let view = self.view.clone();
        if let Err(error) = services.engine.ask(move |engine| engine.tell_of_notes(view)).await {
            tracing::warn!("cannot announce the notes of a turn: {error}");
        }
    }
}

async fn kept(services: &Services, view: &NewNotes) -> Result<u64, EngineError> {
    let view = view.clone();
    services.engine.ask(move |engine| engine.keep_notes(&view)).await
}

impl TurnNotes {
    /// Returns the text that replaces the history, and the numbers of the earlier messages that
    /// stay in addition to it; `None` if the history stays.
    pub fn shown(&self) -> Option<(&str, &BTreeSet<u64>)> {
        self.taken.as_ref().map(|taken| (&*taken.text, &*taken.kept))
    }
}

#[cfg(test)]
mod tests;
