//! Managing a turn: a model makes notes of the conversation by a template, and they take the
//! history's place.
//!
//! Whatever fails, the outcome says at which step and why, and the caller goes on with the raw
//! history. What became of it is stored and told.

mod asking;
mod fit;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use self::run::{ManageRun, Stopped};
use super::call::{Call, Tools};
use super::error::engine_error;
use super::present::{entry, figure, keyword, optional_text};
use crate::agent::Configured;
use crate::curation::managed::{SaidSettings, Status, Step};
use crate::engine::{EngineError, Material};
use crate::ids::ViewId;
use crate::store::view::NewView;
use crate::value::Value;
use crate::wire::message::WireError;

/// How long managing may take: the user's answer waits for it. Long enough for a model that runs
/// without a graphics card.
const DEADLINE: Duration = Duration::from_mins(10);

/// How a turn is to be managed.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// The template's name.
    pub(super) template: String,
    /// The settings that come before the session's and the template's.
    pub(super) said: SaidSettings,
}

/// What became of the managing of a turn.
#[derive(Clone)]
pub(super) struct Managed {
    /// What is stored of it.
    pub(super) view: NewView,
    /// The number under which it is stored.
    pub(super) id: Option<u64>,
    /// Whether the notes had been made before, for the same turn.
    pub(super) cached: bool,
    /// Whether listeners know of it.
    is_told: bool,
    /// What takes the history's place.
    taken: Option<View>,
}

/// What takes the place of a history.
#[derive(Clone)]
struct View {
    text: Arc<str>,
    tokens: u64,
    /// The messages up to the user's that stay, by number.
    kept: Arc<BTreeSet<u64>>,
}

/// Manages the present turn of a session; `configured` is the model that will see the view. Whoever
/// uses the view says so with [`Managed::stand`].
///
/// # Errors
/// Only when the call was cancelled: what fails is in the outcome.
pub(super) async fn manage(
    call: &Call,
    id: u64,
    wish: &Wish,
    configured: &Configured,
) -> Result<Managed, WireError> {
    let mut managed = outcome_of(ManageRun::new(call, id, wish, configured), DEADLINE).await?;
    if !managed.cached {
        managed.keep(&call.tools).await;
    }
    Ok(managed)
}

/// The same without asking the manager or storing anything: the outcome has its prompt.
///
/// # Errors
/// Only when the call was cancelled.
pub(super) async fn rehearse(
    call: &Call,
    id: u64,
    wish: &Wish,
    configured: &Configured,
) -> Result<Managed, WireError> {
    let mut run = ManageRun::new(call, id, wish, configured);
    run.only_prompt = true;
    outcome_of(run, DEADLINE).await
}

async fn outcome_of(mut run: ManageRun<'_>, deadline: Duration) -> Result<Managed, WireError> {
    let outcome = timeout(deadline, run.run()).await.unwrap_or_else(|_| {
        Stopped::failed(format!("it took longer than {} seconds", deadline.as_secs()))
    });
    let ManageRun { mut view, step, stored, .. } = run;
    let taken = match outcome {
        Ok(taken) => Some(taken),
        Err(Stopped::Raw) => None,
        Err(Stopped::Cancelled) => return Err(engine_error(EngineError::Cancelled)),
        Err(Stopped::Failed(reason)) => {
            fail(&mut view, step, reason);
            None
        }
    };
    // Of a view that was made before, listeners were told then.
    let is_told = stored.is_some();
    Ok(Managed { view, id: stored, cached: stored.is_some(), is_told, taken })
}

fn fail(view: &mut NewView, step: Step, reason: String) {
    view.status = Status::Failed.name().to_owned();
    view.step = Some(step.name().to_owned());
    view.reason = Some(reason);
    view.tokens_after = view.tokens_before;
}

impl Managed {
    /// Puts the view in the place of the history, if there is one.
    pub(super) fn apply(&self, material: &mut Material) {
        let Some(taken) = &self.taken else { return };
        let last = self.view.message;
        material.messages.retain(|one| one.number > last || taken.kept.contains(&one.number));
        material.summary = Some((Arc::clone(&taken.text), taken.tokens));
    }

    /// Whether the history's place is taken.
    pub(super) fn has_view(&self) -> bool {
        self.taken.is_some()
    }

    /// The view is used: listeners are told, once.
    pub(super) async fn stand(&mut self, tools: &Tools) {
        if !self.is_told {
            self.tell(tools).await;
        }
    }

    /// The window could not be built with the view: from now on there is none.
    pub(super) async fn give_up(&mut self, tools: &Tools, reason: String) {
        self.taken = None;
        fail(&mut self.view, Step::Window, reason);
        self.cached = false;
        self.keep(tools).await;
    }

    /// Stores what became of it. A view that cannot be stored is given up, so that none is ever
    /// used of which nobody can see how it came about. Listeners are told of a view only when it
    /// is used, as it can still be given up.
    async fn keep(&mut self, tools: &Tools) {
        self.id = None;
        match kept(tools, &self.view).await {
            Ok(id) => self.id = Some(id),
            Err(error) if self.taken.take().is_some() => {
                fail(&mut self.view, Step::Store, error.to_string());
                match kept(tools, &self.view).await {
                    Ok(id) => self.id = Some(id),
                    Err(error) => tracing::warn!("a failed view could not be stored: {error}"),
                }
            }
            Err(error) => tracing::warn!("what became of a turn could not be stored: {error}"),
        }
        if self.taken.is_none() {
            self.tell(tools).await;
        }
    }

    async fn tell(&mut self, tools: &Tools) {
        self.is_told = true;
        let view = self.view.clone();
        if let Err(error) = tools.engine.ask(move |engine| engine.tell_of_view(view)).await {
            tracing::warn!("nobody could be told of a managed turn: {error}");
        }
    }
}

async fn kept(tools: &Tools, view: &NewView) -> Result<u64, EngineError> {
    let view = view.clone();
    tools.engine.ask(move |engine| engine.keep_view(&view)).await
}

impl Managed {
    /// What a client is told of it.
    pub(super) fn told(&self) -> Value {
        let view = &self.view;
        Value::Map(vec![
            entry("status", keyword(&view.status)),
            entry("step", view.step.as_deref().map_or(Value::Nil, keyword)),
            entry("reason", optional_text(view.reason.as_deref())),
            entry("template", &*view.template),
            entry("source", view.source.as_deref().map_or(Value::Nil, keyword)),
            entry("path", optional_text(view.path.as_deref())),
            entry("sha256", optional_text(view.sha256.as_deref())),
            entry("provider", optional_text(view.provider.as_deref())),
            entry("model", optional_text(view.model.as_deref())),
            entry("view", self.id.map_or(Value::Nil, name)),
            entry("cached", self.cached),
            entry("tokens-before", figure(view.tokens_before)),
            entry("tokens-after", figure(view.tokens_after)),
        ])
    }

    /// The text that takes the history's place, and which messages follow it, by number.
    pub(super) fn shown(&self) -> Option<(&str, &BTreeSet<u64>)> {
        self.taken.as_ref().map(|taken| (&*taken.text, &*taken.kept))
    }
}

/// The name of a view.
pub(super) fn name(id: u64) -> Value {
    ViewId(id).into()
}

#[cfg(test)]
mod tests;
