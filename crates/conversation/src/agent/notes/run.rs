//! The steps of note-taking, each of which can fail.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::{AvailableModel, Job};
use super::fit::{FittedPrompt, Unfit, fit};
use super::{NotesView, WantedNotes};
use crate::curation::budget::usable;
use crate::curation::notes::{
    NotesInput, NotesOptions, NotesSettings, NotesStatus, NotesStep, plan, summary_message,
};
use crate::curation::unit::{History, KeptReason};
use crate::engine::{Engine, EngineError, NotesMaterial};
use crate::store::notes::NewNotes;
use crate::template::{Template, TemplatePlace};

/// The reason why there are no notes.
pub(super) enum NotesStopped {
    /// No notes are to be taken: none are needed, or only the prompt is wanted.
    Raw,
    /// The current step failed.
    Failed(String),
    Cancelled,
}

impl NotesStopped {
    pub(super) fn failed<T>(reason: impl ToString) -> Result<T, Self> {
        Err(Self::Failed(reason.to_string()))
    }
}

/// The input of the note-taker, and the messages that stay in addition to its notes.
struct Planned {
    managing: NotesInput,
    kept: BTreeSet<u64>,
    kept_tokens: u64,
}

/// Note-taking in progress.
pub(super) struct NotesRun<'a> {
    pub(super) job: &'a Job,
    wish: &'a WantedNotes,
    /// Model that answers the user. It also takes the notes unless the template names another
    /// model.
    configured: &'a AvailableModel,
    pub(super) view: NewNotes,
    pub(super) step: NotesStep,
    /// Number of the stored record if earlier notes for the same prompt are used.
    pub(super) stored: Option<u64>,
    /// True if the note-taker must not be asked.
    pub(super) only_prompt: bool,
}

impl<'a> NotesRun<'a> {
    pub(super) fn new(
        job: &'a Job,
        id: u64,
        wish: &'a WantedNotes,
        configured: &'a AvailableModel,
    ) -> Self {
        let template = wish.template.clone();
        let view = NewNotes { session: id, template, ..NewNotes::default() };
        let step = NotesStep::History;
        Self { job, wish, configured, view, step, stored: None, only_prompt: false }
    }

    pub(super) async fn run(&mut self) -> Result<NotesView, NotesStopped> {
        let given = Arc::new(self.history().await?);
        let template = Arc::new(self.template(&given).await?);
        let prior = self.prior(&given).await?;
        let Planned { managing, kept, kept_tokens } = self.plan(&given, &template, prior).await?;
        let manager = self.manager(&template)?;
        self.prompt(&template, managing, &manager).await?;
        let notes = match self.made_before().await? {
            Some(notes) => notes,
            None => self.notes(&manager).await?,
        };
        let text: Arc<str> = summary_message(&notes).into();
        let (counted, measuring) = (Arc::clone(&text), Arc::clone(&given));
        let tokens =
            self.aside(move |_| measuring.context.costs.measure.counter().count(&counted)).await?;
        self.view.tokens_after = given.context.costs.measure.message(tokens) + kept_tokens;
        self.view.status = NotesStatus::Managed.name().to_owned();
        Ok(NotesView { text, tokens, kept: Arc::new(kept) })
    }

    /// Runs an operation in the engine, and returns its result.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, NotesStopped> {
        tokio::select! {
            answer = self.job.services.engine.ask(question) => answer.or_else(NotesStopped::failed),
            () = self.job.cancelled.cancelled() => Err(NotesStopped::Cancelled),
        }
    }

    /// Does slow work, which can check if it was cancelled, on a thread that may block.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
    ) -> Result<T, NotesStopped> {
        let cancelled = self.job.cancelled.child_token();
        let seen = cancelled.clone();
        let _when_dropped = cancelled.clone().drop_guard();
        let working = tokio::task::spawn_blocking(move || work(&seen));
        tokio::select! {
            worked = working => worked.or_else(|_| NotesStopped::failed("internal error in note-taking")),
            () = cancelled.cancelled() => Err(NotesStopped::Cancelled),
        }
    }

    /// Reads the history and counts its tokens.
    async fn history(&mut self) -> Result<NotesMaterial, NotesStopped> {
        let (id, model) = (self.view.session, self.configured.provider.model().to_owned());
        let given = self.ask(move |engine| engine.notes_material(id, &model)).await?;
        self.view.message = given.message;
        self.view.turn = given.turn;
        let measured = self.aside(move |_| {
            let measure = &given.context.costs.measure;
            let messages = given.messages.iter().map(|message| &**message).collect();
            let summary = given.summary.as_deref().map_or(0, |text| measure.note(text));
            let tokens = History::new(messages, measure).tokens() + summary;
            (given, tokens)
        });
        let (given, tokens) = measured.await?;
        self.view.tokens_before = tokens;
        self.view.tokens_after = tokens;
        Ok(given)
    }

    async fn template(&mut self, given: &NotesMaterial) -> Result<Template, NotesStopped> {
        self.step = NotesStep::Template;
        let folders = self.job.services.template_folders(given.context.row.project.clone());
        let folders = folders.or_else(NotesStopped::failed)?;
        let name = self.view.template.clone();
        let template =
            self.aside(move |_| folders.find(&name)).await?.or_else(NotesStopped::failed)?;
        self.view.source = Some(template.source.kind().to_owned());
        self.view.path = template.source.path().map(str::to_owned);
        self.view.sha256 = Some(template.hash.clone());
        Ok(template)
    }

    /// Returns the newest notes of an earlier turn, or else the summary of the messages that are no
    /// longer in view; empty if there is neither.
    async fn prior(&mut self, given: &NotesMaterial) -> Result<String, NotesStopped> {
        self.step = NotesStep::PriorSummary;
        let (id, message) = (given.context.row.id, given.message);
        let noted = self.ask(move |engine| engine.prior_notes(id, message)).await?;
        Ok(noted.or_else(|| given.summary.as_deref().map(str::to_owned)).unwrap_or_default())
    }

    /// Decides what the note-taker sees and which messages stay in addition to its notes, and
    /// counts the tokens of the messages that stay.
    async fn plan(
        &mut self,
        given: &Arc<NotesMaterial>,
        template: &Template,
        prior: String,
    ) -> Result<Planned, NotesStopped> {
        self.step = NotesStep::Prompt;
        let front = &template.front_matter;
        let of_template = NotesOptions {
            recent_runs: front.recent_runs,
            passthrough_runs: front.passthrough_runs,
            token_threshold: front.token_threshold,
        };
        let settings =
            self.wish.said.or(given.context.settings.managing).or(of_template).in_effect();
        self.view.recent_runs = Some(settings.recent_runs);
        self.view.passthrough_runs = Some(settings.passthrough_runs);
        self.view.token_threshold = Some(settings.token_threshold);
        let (given, tokens) = (Arc::clone(given), self.view.tokens_before);
        let planned = self.aside(move |_| planned(&given, &settings, prior, tokens)).await?;
        planned.map_err(|status| {
            self.view.status = status.name().to_owned();
            NotesStopped::Raw
        })
    }

    /// Finds the model that takes the notes.
    fn manager(&mut self, template: &Template) -> Result<AvailableModel, NotesStopped> {
        self.step = NotesStep::Answer;
        let providers = &self.job.services.providers;
        let (answering, named) = (self.configured, template.front_matter.model.as_deref());
        let found = match (named, &template.source) {
            (None, _) => Ok(answering.clone()),
            // A template from somebody else must not choose who reads the conversation.
            (Some(model), TemplatePlace::Project(_)) => {
                match providers.is_of_another(model, answering) {
                    true => Ok(answering.clone()),
                    false if model == answering.name => providers.find(Some(model), None),
                    false => providers.find(Some(&answering.name), Some(model)),
                }
            }
            (Some(model), _) => providers.find(None, Some(model)),
        };
        let manager = found.or_else(NotesStopped::failed)?;
        self.view.provider = Some(manager.name.clone());
        self.view.model = Some(manager.provider.model().to_owned());
        Ok(manager)
    }

    /// Builds the prompt with as many of the last turns as the note-taker's model accepts.
    async fn prompt(
        &mut self,
        template: &Arc<Template>,
        managing: NotesInput,
        manager: &AvailableModel,
    ) -> Result<(), NotesStopped> {
        self.step = NotesStep::Prompt;
        manager.find_limit().await;
        let model = manager.provider.model().to_owned();
        let costs = manager.with_room(self.ask(move |engine| engine.costs(Some(&model))).await?);
        let budget = usable(costs.model.limit);
        self.view.budget = Some(budget);
        let template = Arc::clone(template);
        let fitting = self.aside(move |cancelled| {
            fit(&template, &managing, &costs.measure, budget, || cancelled.is_cancelled())
        });
        match fitting.await? {
            Ok(FittedPrompt { prompt, tokens, runs }) => {
                self.view.prompt_tokens = Some(tokens);
                self.view.runs_shown = Some(runs);
                self.view.sections = prompt.sections.join(" ");
                self.view.prompt = prompt.text;
                Ok(())
            }
            Err(Unfit::Broken(reason)) => NotesStopped::failed(reason),
            Err(Unfit::Cancelled) => Err(NotesStopped::Cancelled),
            Err(Unfit::TooLong(tokens)) => {
                self.view.prompt_tokens = Some(tokens);
                NotesStopped::failed(format!(
                    "the prompt has {tokens} tokens even without earlier turns, but {} accepts \
                     only {budget}",
                    manager.provider.model()
                ))
            }
        }
    }

    /// Finds earlier notes from the same prompt, if there are any.
    async fn made_before(&mut self) -> Result<Option<String>, NotesStopped> {
        // Reads stored notes, as `prior` does, so it is the same step.
        self.step = NotesStep::PriorSummary;
        let view = self.view.clone();
        let Some(row) = self.ask(move |engine| Ok(engine.read().notes_like(&view)?)).await? else {
            return Ok(None);
        };
        self.stored = Some(row.id);
        self.view = row.made;
        Ok(Some(self.view.output.clone()))
    }
}

/// Returns the input of the note-taker and the messages that stay in addition to its notes, or the
/// reason why no notes are taken.
fn planned(
    given: &NotesMaterial,
    settings: &NotesSettings,
    prior: String,
    tokens: u64,
) -> Result<Planned, NotesStatus> {
    let messages = given.messages.iter().map(|message| &**message).collect();
    let history = History::new(messages, &given.context.costs.measure);
    let managing = plan(&history, settings, prior, tokens)?;
    let passthrough: BTreeSet<u64> = managing.passthrough.iter().copied().collect();
    let (mut kept, mut kept_tokens) = (BTreeSet::new(), 0);
    for unit in &history.units {
        let asked_for = matches!(
            unit.kept,
            Some(KeptReason::System | KeptReason::Pinned | KeptReason::InFlight)
        );
        let numbers = history.numbers(unit);
        if asked_for || numbers.iter().any(|number| passthrough.contains(number)) {
            kept.extend(numbers);
            kept_tokens += unit.tokens;
        }
    }
    Ok(Planned { managing, kept, kept_tokens })
}
