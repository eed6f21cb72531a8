//! Methods about managed views: making one without a turn, and listing what became of them.

use serde::Deserialize;

use super::call::Call;
use super::chat::managed as told;
use super::error::{agent_error, engine_error};
use super::params::{Name, decode, not_negative};
use super::present::{entry, figure, keyword, optional_figure, optional_keyword, optional_text};
use super::{Step, messages};
use crate::agent::notes::{self, Wish};
use crate::curation::managed::{SaidSettings, Status};
use crate::engine::Engine;
use crate::ids::ViewId;
use crate::store::view::{ViewQuery, ViewRow};
use crate::value::Value;
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
        let mut map = vec![entry("session", row.name)];
        if let Value::Map(told) = told(&managed) {
            map.extend(told);
        }
        let view = &managed.view;
        let shown = managed.shown();
        let kept = shown.iter().flat_map(|(_, kept)| kept.iter().copied().map(messages::name));
        let kept = Value::List(kept.collect());
        map.extend([
            entry("text", optional_text(shown.map(|(text, _)| text))),
            entry("messages", kept),
            entry("sections", sections(&view.sections)),
            entry("prompt", &*view.prompt),
            entry("payload", &*view.payload),
            entry("prompt-tokens", optional_figure(view.prompt_tokens)),
            entry("budget", optional_figure(view.budget)),
            entry("runs-shown", optional_figure(view.runs_shown)),
        ]);
        Ok(Step::Done(Value::Map(map)))
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

/// A stored view as a client is told it.
fn view(session: &str, row: &ViewRow, brief: bool) -> Value {
    let made = &row.made;
    let mut map = vec![
        entry("view", name(row.id)),
        entry("session", session),
        entry("turn", figure(made.turn)),
        entry("message", messages::name(made.message)),
        entry("created", Value::Int(made.created)),
        entry("status", keyword(&made.status)),
        entry("step", optional_keyword(made.step.as_deref())),
        entry("reason", optional_text(made.reason.as_deref())),
        entry("template", &*made.template),
        entry("source", optional_keyword(made.source.as_deref())),
        entry("path", optional_text(made.path.as_deref())),
        entry("sha256", optional_text(made.sha256.as_deref())),
        entry("provider", optional_text(made.provider.as_deref())),
        entry("model", optional_text(made.model.as_deref())),
        entry("recent-runs", optional_figure(made.recent_runs)),
        entry("passthrough-runs", optional_figure(made.passthrough_runs)),
        entry("token-threshold", optional_figure(made.token_threshold)),
        entry("runs-shown", optional_figure(made.runs_shown)),
        entry("sections", sections(&made.sections)),
        entry("budget", optional_figure(made.budget)),
        entry("prompt-tokens", optional_figure(made.prompt_tokens)),
        entry("input-tokens", optional_figure(made.input_tokens)),
        entry("output-tokens", optional_figure(made.output_tokens)),
        entry("tokens-before", figure(made.tokens_before)),
        entry("tokens-after", figure(made.tokens_after)),
    ];
    if !brief {
        map.extend([
            entry("prompt", &*made.prompt),
            entry("payload", &*made.payload),
            entry("output", &*made.output),
        ]);
    }
    Value::Map(map)
}

/// The name of a view.
pub(super) fn name(id: u64) -> Value {
    ViewId(id).into()
}

fn sections(names: &str) -> Value {
    Value::List(names.split_whitespace().map(keyword).collect())
}

/// The names of what can become of a managing.
pub(super) fn status_names() -> Vec<&'static str> {
    Status::ALL.iter().map(|status| status.name()).collect()
}
