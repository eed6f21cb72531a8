//! The steps of managing a turn, each of which can fail.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::call::Call;
use super::super::providers::Configured;
use super::super::templates;
use super::{View, Wish};
use crate::curation::budget::Budget;
use crate::curation::managed::{Managing, Plan, SaidSettings, Status, Step, plan, summary_message};
use crate::curation::unit::{History, Kept};
use crate::engine::{Engine, EngineError, ToManage};
use crate::provider::chat::{Request, Said, Stop, Whole, cancelled};
use crate::session::message::Role;
use crate::store::view::{NewView, ViewRow};
use crate::template::{Conversation, ManagerPrompt, TASK, Template};

/// The longest notes that are taken, in bytes; a model that says more is stopped.
const MAX_NOTES_BYTES: usize = 1 << 20;

/// Why managing came to an end without a view.
pub(super) enum End {
    /// None is to be made.
    Raw,
    /// A step failed.
    Failed(Step, String),
    /// Nobody wants it any more.
    Gone,
}

/// One managing on its way through its steps.
pub(super) struct Way<'a> {
    call: &'a Call,
    wish: &'a Wish,
    /// Who answers the user; makes the notes unless the template names another.
    configured: &'a Configured,
    pub(super) view: NewView,
    /// The number of the view that was made of the same turn before.
    pub(super) stored: Option<u64>,
    /// Whether the manager is not to be asked.
    pub(super) only_prompt: bool,
}

impl<'a> Way<'a> {
    pub(super) fn new(call: &'a Call, id: u64, wish: &'a Wish, configured: &'a Configured) -> Self {
        let template = wish.template.clone().unwrap_or_default();
        let view = NewView { session: id, template, ..NewView::default() };
        Self { call, wish, configured, view, stored: None, only_prompt: false }
    }

    pub(super) async fn walk(&mut self) -> Result<View, End> {
        let (id, model) = (self.view.session, self.configured.provider.model().to_owned());
        let given = self.ask(Step::History, move |engine| engine.to_manage(id, &model)).await?;
        self.view.message = given.message;
        self.view.turn = given.turn;
        let named = self.wish.template.as_deref().unwrap_or(given.settings.template_name());
        self.view.template = named.to_owned();
        let history = History::new(
            given.messages.iter().map(|message| &**message).collect(),
            &given.costs.measure,
        );
        let summary = given.summary.as_deref().map_or(0, |text| given.costs.measure.note(text));
        self.view.tokens_before = history.tokens() + summary;
        self.view.tokens_after = self.view.tokens_before;
        drop(history);
        let template = self.template(&given).await?;
        let prior = self.prior(&given).await?;
        let (managing, kept, kept_tokens) = self.plan(&given, &template, &prior)?;
        let manager = self.manager(&template)?;
        let prompt = self.prompt(&template, managing, &manager).await?;
        let notes = match self.made_before(&prompt).await? {
            Some(row) => {
                self.stored = Some(row.id);
                self.view = row.made;
                self.view.output.clone()
            }
            None => self.notes(&prompt.text, &manager).await?,
        };
        let text: Arc<str> = summary_message(&notes).into();
        let tokens = given.costs.measure.counter().count(&text);
        self.view.tokens_after = given.costs.measure.message(tokens) + kept_tokens;
        self.view.status = Status::Managed.name().to_owned();
        Ok(View { text, tokens, kept: Arc::new(kept) })
    }

    fn failed<T>(&self, step: Step, reason: impl ToString) -> Result<T, End> {
        Err(End::Failed(step, reason.to_string()))
    }

    async fn ask<T: Send + 'static>(
        &self,
        step: Step,
        question: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, End> {
        let answer = self.call.tools.engine.ask(question).await;
        answer.or_else(|error| self.failed(step, error))
    }

    async fn template(&mut self, given: &ToManage) -> Result<Template, End> {
        let folders = templates::folders(&self.call.tools, given.row.project.clone());
        let folders = folders.or_else(|error| self.failed(Step::Template, error.message))?;
        let name = self.view.template.clone();
        let found = tokio::task::spawn_blocking(move || folders.find(&name)).await;
        let template = match found {
            Ok(Ok(template)) => template,
            Ok(Err(error)) => return self.failed(Step::Template, error),
            Err(_) => return self.failed(Step::Template, "internal error in reading it"),
        };
        self.view.source = Some(template.source.kind().to_owned());
        self.view.path = template.source.path().map(str::to_owned);
        self.view.sha256 = Some(template.hash.clone());
        Ok(template)
    }

    /// What was noted for the turn before; without such notes, the summary that stands in the
    /// place of messages that are no longer in view.
    async fn prior(&self, given: &ToManage) -> Result<String, End> {
        let (id, message) = (given.row.id, given.message);
        let row =
            self.ask(Step::PriorSummary, move |engine| engine.prior_view(id, message)).await?;
        let noted = row.map(|row| row.made.output);
        Ok(noted.or_else(|| given.summary.as_deref().map(str::to_owned)).unwrap_or_default())
    }

    /// What the manager is to be shown, which messages follow its notes, and what those cost.
    fn plan(
        &mut self,
        given: &ToManage,
        template: &Template,
        prior: &str,
    ) -> Result<(Managing, BTreeSet<u64>, u64), End> {
        let front = &template.front_matter;
        let of_template = SaidSettings {
            recent_runs: front.recent_runs,
            passthrough_runs: front.passthrough_runs,
            token_threshold: front.token_threshold,
        };
        let settings = self.wish.said.or(given.settings.managing).or(of_template).in_effect();
        self.view.recent_runs = Some(settings.recent_runs);
        self.view.passthrough_runs = Some(settings.passthrough_runs);
        self.view.token_threshold = Some(settings.token_threshold);
        let messages = given.messages.iter().map(|message| &**message).collect();
        let history = History::new(messages, &given.costs.measure);
        let prior = Some(prior).filter(|prior| !prior.is_empty());
        let managing = match plan(&history, &settings, prior, self.view.tokens_before) {
            Plan::Raw(status) => {
                self.view.status = status.name().to_owned();
                return Err(End::Raw);
            }
            Plan::Manage(managing) => managing,
        };
        let follows = |number: u64| managing.passthrough.contains(&number);
        let (mut kept, mut tokens) = (BTreeSet::new(), 0);
        for unit in &history.units {
            let asked_for = matches!(unit.kept, Some(Kept::System | Kept::Pinned | Kept::InFlight));
            let mut numbers = history.members(unit).map(|message| message.number);
            if asked_for || numbers.any(follows) {
                kept.extend(history.members(unit).map(|message| message.number));
                tokens += unit.tokens;
            }
        }
        Ok((managing, kept, tokens))
    }

    fn manager(&mut self, template: &Template) -> Result<Configured, End> {
        let manager = match template.front_matter.model.as_deref() {
            None => self.configured.clone(),
            Some(model) => match self.call.tools.providers.find(None, Some(model)) {
                Ok(manager) => manager,
                Err(error) => return self.failed(Step::Answer, error.message),
            },
        };
        self.view.provider = Some(manager.name.clone());
        self.view.model = Some(manager.provider.model().to_owned());
        Ok(manager)
    }

    /// The prompt, with as many of the last runs as the manager's model takes.
    async fn prompt(
        &mut self,
        template: &Template,
        managing: Managing,
        manager: &Configured,
    ) -> Result<ManagerPrompt, End> {
        let model = manager.provider.model().to_owned();
        let costs = self.ask(Step::Prompt, move |engine| engine.costs(Some(&model))).await?;
        let costs = manager.with_room(costs);
        let budget = Budget::default().within(costs.model.limit).usable();
        let task = costs.measure.note(TASK);
        let mut runs = &managing.recent_runs[..];
        loop {
            let conversation = Conversation {
                prior_summary: managing.prior_summary.as_deref().unwrap_or_default(),
                recent_conversation: &runs.join("\n"),
                latest_input: &managing.latest_input,
            };
            let prompt = match template.manager_prompt(&conversation) {
                Ok(prompt) => prompt,
                Err(error) => return self.failed(Step::Prompt, error),
            };
            let tokens = task + costs.measure.note(&prompt.text);
            self.view.budget = Some(budget);
            self.view.prompt_tokens = Some(tokens);
            if tokens <= budget {
                self.view.sections = prompt.sections.join(" ");
                self.view.prompt.clone_from(&prompt.text);
                return Ok(prompt);
            }
            let Some((_, newer)) = runs.split_first() else {
                return self.failed(
                    Step::Prompt,
                    format!(
                        "the prompt has {tokens} tokens even without earlier turns, and {} takes \
                     {budget}",
                        manager.provider.model()
                    ),
                );
            };
            runs = newer;
        }
    }

    async fn made_before(&self, prompt: &ManagerPrompt) -> Result<Option<ViewRow>, End> {
        let NewView { session, message, model, .. } = &self.view;
        let (id, message) = (*session, *message);
        let (model, text) = (model.clone().unwrap_or_default(), prompt.text.clone());
        self.ask(Step::PriorSummary, move |engine| engine.view_made(id, message, &model, &text))
            .await
    }

    /// Asks the manager for its notes.
    async fn notes(&mut self, prompt: &str, manager: &Configured) -> Result<String, End> {
        let request = Request {
            messages: vec![Said::new(Role::System, TASK), Said::new(Role::User, prompt)],
            max_tokens: manager.max_tokens,
            ..Request::default()
        };
        self.view.payload = manager.provider.payload(&request);
        if self.only_prompt {
            self.view.status = Status::Managed.name().to_owned();
            return Err(End::Raw);
        }
        let mut whole = Whole::default();
        let asked = self.listen(manager, &request, &mut whole).await;
        self.view.output = whole.text.trim().to_owned();
        self.view.input_tokens = whole.usage.input;
        self.view.output_tokens = whole.usage.output;
        asked?;
        let name = manager.provider.model();
        match whole.stop {
            _ if self.view.output.is_empty() => {
                self.failed(Step::Answer, format!("{name} gave no notes"))
            }
            Some(Stop::Length) => self.failed(Step::Answer, format!(
                "{name} was cut off before its notes were complete; raise the provider's max-tokens"
            )),
            Some(Stop::Refused) => {
                self.failed(Step::Answer, format!("{name} was not let finish its notes"))
            }
            _ => Ok(self.view.output.clone()),
        }
    }

    async fn listen(
        &self,
        manager: &Configured,
        request: &Request,
        whole: &mut Whole,
    ) -> Result<(), End> {
        let provider = &*manager.provider;
        let gone = self.call.cancelled.cancelled();
        tokio::pin!(gone);
        let reading = async {
            let mut reply = provider.chat(request).await?;
            while let Some(piece) = reply.next().await? {
                whole.add(piece);
                if whole.text.len() > MAX_NOTES_BYTES {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let read = tokio::select! {
            read = reading => read,
            () = &mut gone => Err(cancelled(provider)),
        };
        match read {
            Ok(false) => Ok(()),
            Ok(true) => self
                .failed(Step::Answer, format!("the notes have more than {MAX_NOTES_BYTES} bytes")),
            Err(_) if self.call.cancelled.is_cancelled() => Err(End::Gone),
            Err(error) => self.failed(Step::Answer, error),
        }
    }
}
