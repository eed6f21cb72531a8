//! Methods about managed views: making one without a turn, and listing what became of them.

use serde::{Deserialize, Serialize};

use super::Step;
use super::call::Call;
use super::error::{agent_error, engine_error};
use super::params::{Name, decode, not_negative};
use crate::agent::notes::{self, Managed, Wish};
use crate::curation::managed::{SaidSettings, Status};
use crate::engine::Engine;
use crate::ids::{MessageId, ViewId};
use crate::store::view::{ViewQuery, ViewRow};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

/// How many views are listed unless more are asked for.
const DEFAULT_LISTED: u64 = 20;
/// How many are listed at most, with all their texts.
const MAX_LISTED: u64 = 250;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ManageContext {
    session: Option<Name>,
    template: Option<Name>,
    recent_runs: Option<i64>,
    passthrough_runs: Option<i64>,
    token_threshold: Option<i64>,
    provider: Option<Name>,
    model: Option<Name>,
    dry_run: Option<bool>,
}

pub(super) fn manage_context(call: Call, params: Value) -> Result<Step, WireError> {
    let given: ManageContext = decode(params)?;
    let said = SaidSettings {
        recent_runs: not_negative("recent-runs", given.recent_runs)?,
        passthrough_runs: not_negative("passthrough-runs", given.passthrough_runs)?,
        token_threshold: not_negative("token-threshold", given.token_threshold)?,
    };
    let template = given.template.map(|Name(name)| name);
    let (provider, model) = (given.provider, given.model);
    let dry_run = given.dry_run.unwrap_or(false);
    Ok(Step::Await(Box::pin(async move {
        let session = given.session;
        let read = move |engine: &mut Engine| engine.find_with_settings(session.as_deref());
        let (row, settings) = call.tools.engine.ask(read).await.map_err(engine_error)?;
        let template = template.unwrap_or_else(|| settings.template_name().to_owned());
        let wish = Wish { template, said };
        let (provider, model) = (provider.as_deref(), model.as_deref());
        let configured = call.tools.providers.chosen(provider, model, &settings);
        let configured = configured.map_err(agent_error)?;
        let job = call.job();
        let managed = match dry_run {
            true => notes::rehearse(&job, row.id, &wish, &configured).await,
            false => notes::manage(&job, row.id, &wish, &configured).await,
        };
        let mut managed = managed.map_err(agent_error)?;
        if !dry_run {
            managed.mark_used(&job.services).await;
        }
        Ok(Step::Done(managed_result(&row.name, &managed)))
    })))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ListViews {
    view: Option<ViewId>,
    session: Option<Name>,
    status: Option<Status>,
    limit: Option<i64>,
    brief: Option<bool>,
}

pub(super) fn list_views(_: Call, params: Value) -> Result<Step, WireError> {
    let given: ListViews = decode(params)?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_LISTED).min(MAX_LISTED);
    let brief = given.brief.unwrap_or(false);
    Step::state(move |engine| {
        let session = match &given.session {
            Some(name) => Some(engine.find_session(Some(name))?.id),
            None => None,
        };
        let id = given.view.map(|ViewId(number)| number);
        let status = given.status.map(Status::name);
        let rows = engine.views(&ViewQuery { id, session, status, limit, brief })?;
        let mut listed = Vec::with_capacity(rows.len());
        for row in rows {
            let session = engine.row(row.made.session)?.name;
            listed.push(view(&session, &row, brief));
        }
        Ok(Value::List(listed))
    })
}

/// The outcome of taking notes, as clients are told it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct NotesResult<'a> {
    status: Keyword<&'a str>,
    step: Option<Keyword<&'a str>>,
    reason: Option<&'a str>,
    template: &'a str,
    source: Option<Keyword<&'a str>>,
    path: Option<&'a str>,
    sha256: Option<&'a str>,
    provider: Option<&'a str>,
    model: Option<&'a str>,
    view: Option<ViewId>,
    cached: bool,
    tokens_before: u64,
    tokens_after: u64,
}

impl<'a> NotesResult<'a> {
    pub(super) fn of(managed: &'a Managed) -> Self {
        let view = &managed.view;
        Self {
            status: Keyword(&view.status),
            step: view.step.as_deref().map(Keyword),
            reason: view.reason.as_deref(),
            template: &view.template,
            source: view.source.as_deref().map(Keyword),
            path: view.path.as_deref(),
            sha256: view.sha256.as_deref(),
            provider: view.provider.as_deref(),
            model: view.model.as_deref(),
            view: managed.id.map(ViewId),
            cached: managed.cached,
            tokens_before: view.tokens_before,
            tokens_after: view.tokens_after,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ManagedResult<'a> {
    session: &'a str,
    #[serde(flatten)]
    notes: NotesResult<'a>,
    text: Option<&'a str>,
    messages: Vec<MessageId>,
    sections: Vec<Keyword<&'a str>>,
    prompt: &'a str,
    payload: &'a str,
    prompt_tokens: Option<u64>,
    budget: Option<u64>,
    runs_shown: Option<u64>,
}

fn managed_result(session: &str, managed: &Managed) -> Value {
    let (view, shown) = (&managed.view, managed.shown());
    Value::of(&ManagedResult {
        session,
        notes: NotesResult::of(managed),
        text: shown.map(|(text, _)| text),
        messages: shown.map_or_else(Vec::new, |(_, kept)| MessageId::all(kept)),
        sections: sections(&view.sections),
        prompt: &view.prompt,
        payload: &view.payload,
        prompt_tokens: view.prompt_tokens,
        budget: view.budget,
        runs_shown: view.runs_shown,
    })
}

/// A stored view, as clients are told it.
#[derive(Serialize)]
struct ViewResult<'a> {
    view: ViewId,
    session: &'a str,
    turn: u64,
    message: MessageId,
    created: i64,
    status: Keyword<&'a str>,
    step: Option<Keyword<&'a str>>,
    reason: Option<&'a str>,
    template: &'a str,
    source: Option<Keyword<&'a str>>,
    path: Option<&'a str>,
    sha256: Option<&'a str>,
    provider: Option<&'a str>,
    model: Option<&'a str>,
    recent_runs: Option<u64>,
    passthrough_runs: Option<u64>,
    token_threshold: Option<u64>,
    runs_shown: Option<u64>,
    sections: Vec<Keyword<&'a str>>,
    budget: Option<u64>,
    prompt_tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    tokens_before: u64,
    tokens_after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
}

fn view(session: &str, row: &ViewRow, brief: bool) -> Value {
    let made = &row.made;
    let text = |text| Some(text).filter(|_| !brief);
    Value::of(&ViewResult {
        view: ViewId(row.id),
        session,
        turn: made.turn,
        message: MessageId(made.message),
        created: made.created,
        status: Keyword(&made.status),
        step: made.step.as_deref().map(Keyword),
        reason: made.reason.as_deref(),
        template: &made.template,
        source: made.source.as_deref().map(Keyword),
        path: made.path.as_deref(),
        sha256: made.sha256.as_deref(),
        provider: made.provider.as_deref(),
        model: made.model.as_deref(),
        recent_runs: made.recent_runs,
        passthrough_runs: made.passthrough_runs,
        token_threshold: made.token_threshold,
        runs_shown: made.runs_shown,
        sections: sections(&made.sections),
        budget: made.budget,
        prompt_tokens: made.prompt_tokens,
        input_tokens: made.input_tokens,
        output_tokens: made.output_tokens,
        tokens_before: made.tokens_before,
        tokens_after: made.tokens_after,
        prompt: text(&*made.prompt),
        payload: text(&*made.payload),
        output: text(&*made.output),
    })
}

fn sections(names: &str) -> Vec<Keyword<&str>> {
    names.split_whitespace().map(Keyword).collect()
}

/// The names of what can become of a managing.
pub(super) fn status_names() -> Vec<&'static str> {
    Status::ALL.iter().map(|status| status.name()).collect()
}
