//! Methods about notes: taking them without a turn, and listing the outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::Call;
use super::error::{agent_error, engine_error};
use super::params::{InSession, Name, not_negative};
use crate::agent::notes::{self, TurnNotes, Wish};
use crate::curation::notes::{NotesOptions, NotesStatus};
use crate::engine::Engine;
use crate::ids::{MessageId, ViewId};
use crate::store::notes::{NewNotes, NotesQuery, NotesRow};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

/// Default number of notes in a list.
const DEFAULT_LISTED: u64 = 20;
/// Maximum number of notes in a list, with all their texts.
const MAX_LISTED: u64 = 250;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ManageContext {
    session: Option<InSession>,
    /// Template; defaults to the session's.
    template: Option<Name>,
    /// Number of recent runs to show to the model; 0 turns note-taking off.
    recent_runs: Option<i64>,
    /// Number of these runs that follow its notes unchanged; 0 for none.
    passthrough_runs: Option<i64>,
    /// Tokens of history below which no notes are taken; 0 for always.
    token_threshold: Option<i64>,
    /// Provider that writes the notes, unless the template names a model.
    provider: Option<Name>,
    /// Model that writes the notes.
    model: Option<Name>,
    /// Show the prompt. Nothing is sent or stored.
    dry_run: Option<bool>,
}

pub(super) fn manage_context(call: Call, given: ManageContext) -> Result<Step, WireError> {
    let said = NotesOptions {
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

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListViews {
    /// List only the notes of this session.
    session: Option<Name>,
    /// List only notes with this status.
    status: Option<NotesStatus>,
    /// List only the notes with this id, `view-N`.
    view: Option<ViewId>,
    #[schemars(description = format!("Maximum number, up to {MAX_LISTED}; defaults to {DEFAULT_LISTED}."))]
    limit: Option<i64>,
    /// Leave `:prompt`, `:payload` and `:output` out of the result.
    brief: Option<bool>,
}

pub(super) fn list_views(_: Call, given: ListViews) -> Result<Step, WireError> {
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_LISTED).min(MAX_LISTED);
    let brief = given.brief.unwrap_or(false);
    Step::state(move |engine| {
        let session = match &given.session {
            Some(name) => Some(engine.find_session(Some(name))?.id),
            None => None,
        };
        let id = given.view.map(|ViewId(number)| number);
        let status = given.status.map(NotesStatus::name);
        let rows = engine.read().notes(&NotesQuery { id, session, status, limit, brief })?;
        let mut listed = Vec::with_capacity(rows.len());
        for row in rows {
            let session = engine.row(row.made.session)?.name;
            listed.push(view(&session, &row, brief));
        }
        Ok(Value::List(listed))
    })
}

/// Fields of stored notes that describe their outcome.
const OUTCOME: [&str; 9] =
    ["status", "step", "reason", "template", "source", "path", "sha256", "provider", "model"];
/// Long fields of stored notes, which a brief list leaves out.
const LONG: [&str; 3] = ["prompt", "payload", "output"];

/// Returns the wanted fields of stored notes in the form for clients.
fn fields(view: &NewNotes, is_wanted: impl Fn(&str) -> bool) -> Value {
    let Value::Map(mut fields) = Value::of(view) else { return Value::Nil };
    fields.retain(|(name, _)| is_wanted(name));
    for (name, value) in &mut fields {
        *value = match (&**name, std::mem::take(value)) {
            ("status" | "step" | "source", Value::Str(text)) => Value::Keyword(text.into()),
            ("sections", Value::Str(names)) => Value::of(&sections(&names)),
            (_, value) => value,
        };
    }
    Value::Map(fields)
}

/// Returns the outcome of note-taking in the form for clients.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct NotesResult {
    #[serde(flatten)]
    made: Value,
    view: Option<ViewId>,
    cached: bool,
    tokens_before: u64,
    tokens_after: u64,
}

impl NotesResult {
    pub(super) fn of(managed: &TurnNotes) -> Self {
        Self {
            made: fields(&managed.view, |name| OUTCOME.contains(&name)),
            view: managed.id.map(ViewId),
            cached: managed.cached,
            tokens_before: managed.view.tokens_before,
            tokens_after: managed.view.tokens_after,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ManagedResult<'a> {
    session: &'a str,
    #[serde(flatten)]
    notes: NotesResult,
    text: Option<&'a str>,
    messages: Vec<MessageId>,
    sections: Vec<Keyword<&'a str>>,
    prompt: &'a str,
    payload: &'a str,
    prompt_tokens: Option<u64>,
    budget: Option<u64>,
    runs_shown: Option<u64>,
}

fn managed_result(session: &str, managed: &TurnNotes) -> Value {
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

/// Stored notes in the form for clients.
#[derive(Serialize)]
struct ViewResult<'a> {
    view: ViewId,
    session: &'a str,
    turn: u64,
    message: MessageId,
    #[serde(flatten)]
    made: Value,
}

fn view(session: &str, row: &NotesRow, brief: bool) -> Value {
    let NotesRow { id, made } = row;
    let is_wanted = |name: &str| !brief || !LONG.contains(&name);
    let (view, turn, message) = (ViewId(*id), made.turn, MessageId(made.message));
    Value::of(&ViewResult { view, session, turn, message, made: fields(made, is_wanted) })
}

fn sections(names: &str) -> Vec<Keyword<&str>> {
    names.split_whitespace().map(Keyword).collect()
}
