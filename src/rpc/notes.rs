//! Methods about notes: taking them without a turn, and listing the outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::params::{InSession, Name, not_negative};
use super::shapes::TemplateSource;
use crate::agent::notes::{self, TurnNotes, WantedNotes};
use crate::curation::notes::{NotesOptions, NotesStatus, NotesStep};
use crate::engine::Engine;
use crate::ids::{MessageId, ViewId};
use crate::store::notes::{NewNotes, NotesQuery, NotesRow};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

/// Default number of notes in a list.
pub(super) const DEFAULT_LISTED: u64 = 20;
/// Maximum number of notes in a list. Each may come with long texts.
pub(super) const MAX_LISTED: u64 = 250;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ManageContext {
    session: Option<InSession>,
    /// Template; defaults to the session's.
    template: Option<Name>,
    /// Number of recent runs to show to the model; 0 turns note-taking off. A run is a message from
    /// the user, with all messages up to the user's next one.
    recent_runs: Option<i64>,
    /// Number of recent runs that follow the notes unchanged; 0 for none.
    passthrough_runs: Option<i64>,
    /// Tokens of history below which no notes are taken; with 0, notes are always taken.
    token_threshold: Option<i64>,
    /// Provider that writes the notes, unless the template names a model.
    provider: Option<Name>,
    /// Model that writes the notes, unless the template names one.
    model: Option<Name>,
    /// Show the prompt. Nothing is sent or stored.
    dry_run: Option<bool>,
}

pub(super) fn take_notes(call: MethodCall, given: ManageContext) -> Result<Step, WireError> {
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
        let expected = call.in_steps.if_version;
        let read = move |engine: &mut Engine| {
            let found = engine.find_with_settings(session.as_deref())?;
            engine.expect_session(found.0.id, expected)?;
            Ok(found)
        };
        let (row, settings) = call.tools.engine.ask(read).await?;
        let template = template.unwrap_or_else(|| settings.template_name().to_owned());
        let wish = WantedNotes { template, said };
        let (provider, model) = (provider.as_deref(), model.as_deref());
        let configured = call.tools.providers.chosen(provider, model, &settings)?;
        let job = call.job();
        let managed = if dry_run {
            notes::rehearse(&job, row.id, &wish, &configured).await?
        } else {
            let mut managed = notes::manage(&job, row.id, &wish, &configured).await?;
            managed.mark_used(&job.services).await;
            managed
        };
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
    #[schemars(description = format!("Maximum number of notes, up to {MAX_LISTED}; defaults to {DEFAULT_LISTED}."))]
    limit: Option<i64>,
    /// Leave `:prompt`, `:payload` and `:output` out of the result.
    brief: Option<bool>,
}

pub(super) fn list_notes(_: MethodCall, given: ListViews) -> Result<Step, WireError> {
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_LISTED).min(MAX_LISTED);
    let brief = given.brief.unwrap_or(false);
    Step::state(move |engine| {
        let named = given.session.as_deref();
        let session = named.map(|name| engine.find_session(Some(name))).transpose()?;
        let session = session.map(|row| row.id);
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

/// The outcome of note-taking. If it failed, members about steps that it did not reach are `nil`.
#[derive(Serialize, JsonSchema)]
struct OutcomeResult<'a> {
    /// Status of the notes.
    #[schemars(with = "NotesStatus")]
    status: Keyword<&'a str>,
    /// Step that failed; `nil` if none did.
    #[schemars(with = "Option<NotesStep>")]
    step: Option<Keyword<&'a str>>,
    /// Reason for the failure; `nil` if there was none.
    reason: Option<&'a str>,
    /// Name of the template.
    template: &'a str,
    /// Place in which the template was found.
    #[schemars(with = "Option<TemplateSource>")]
    source: Option<Keyword<&'a str>>,
    /// File of the template; `nil` for a built-in one.
    path: Option<&'a str>,
    /// SHA-256 of the template's text, in hexadecimal.
    sha256: Option<&'a str>,
    /// Name of the provider.
    provider: Option<&'a str>,
    /// Name of the model.
    model: Option<&'a str>,
}

impl<'a> OutcomeResult<'a> {
    fn of(notes: &'a NewNotes) -> Self {
        Self {
            status: Keyword(&notes.status),
            step: notes.step.as_deref().map(Keyword),
            reason: notes.reason.as_deref(),
            template: &notes.template,
            source: notes.source.as_deref().map(Keyword),
            path: notes.path.as_deref(),
            sha256: notes.sha256.as_deref(),
            provider: notes.provider.as_deref(),
            model: notes.model.as_deref(),
        }
    }
}

/// The outcome of note-taking for a turn.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "NotesOutcome")]
pub(super) struct NotesResult<'a> {
    #[serde(flatten)]
    outcome: OutcomeResult<'a>,
    /// Id of the stored notes, `view-N`; `nil` if none were stored.
    view: Option<ViewId>,
    /// True if the notes were read from the store.
    cached: bool,
    /// Tokens of the history.
    tokens_before: u64,
    /// Tokens of the notes and of the messages that follow them; without notes, tokens of the
    /// history.
    tokens_after: u64,
}

impl<'a> NotesResult<'a> {
    pub(super) fn of(managed: &'a TurnNotes) -> Self {
        Self {
            outcome: OutcomeResult::of(&managed.view),
            view: managed.id.map(ViewId),
            cached: managed.cached,
            tokens_before: managed.view.tokens_before,
            tokens_after: managed.view.tokens_after,
        }
    }
}

/// Notes on a session, with their prompt.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TakenNotes")]
pub(super) struct ManagedResult<'a> {
    /// Name of the session.
    session: &'a str,
    #[serde(flatten)]
    notes: NotesResult<'a>,
    /// Text of the notes; `nil` if there are none.
    text: Option<&'a str>,
    /// Ids of the messages that follow the notes.
    messages: Vec<MessageId>,
    /// Sections of the prompt.
    sections: Vec<Keyword<&'a str>>,
    /// The prompt.
    prompt: &'a str,
    /// Body of the request.
    payload: &'a str,
    /// Tokens of the prompt.
    prompt_tokens: Option<u64>,
    /// Maximum number of tokens in the prompt.
    budget: Option<u64>,
    /// Number of recent runs that the prompt had room for.
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

/// Stored notes.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "StoredNotes")]
pub(super) struct ViewResult<'a> {
    /// Id of the notes, `view-N`.
    id: ViewId,
    /// Name of the session.
    session: &'a str,
    /// Number of the turn in the session, counted from 1.
    turn: u64,
    /// Id of the user's message that began the turn.
    message: MessageId,
    /// Time at which the notes were made, in Unix seconds.
    created: i64,
    #[serde(flatten)]
    outcome: OutcomeResult<'a>,
    /// Number of recent runs to show.
    recent_runs: Option<u64>,
    /// Number of recent runs that follow the notes unchanged.
    passthrough_runs: Option<u64>,
    /// Tokens of history below which no notes are taken.
    token_threshold: Option<u64>,
    /// Number of recent runs that the prompt had room for.
    runs_shown: Option<u64>,
    /// Sections of the prompt.
    sections: Vec<Keyword<&'a str>>,
    /// Maximum number of tokens in the prompt.
    budget: Option<u64>,
    /// Tokens of the prompt.
    prompt_tokens: Option<u64>,
    /// Input tokens as counted by the provider.
    input_tokens: Option<u64>,
    /// Output tokens as counted by the provider.
    output_tokens: Option<u64>,
    /// Tokens of the history.
    tokens_before: u64,
    /// Tokens of the notes and of the messages that follow them; without notes, tokens of the
    /// history.
    tokens_after: u64,
    #[serde(flatten)]
    texts: Option<TextsResult<'a>>,
}

/// The long texts of stored notes, which a brief list leaves out.
#[derive(Serialize, JsonSchema)]
struct TextsResult<'a> {
    /// The prompt; absent if the call is `:brief`.
    prompt: &'a str,
    /// Body of the request; absent if the call is `:brief`.
    payload: &'a str,
    /// Answer of the model; absent if the call is `:brief`.
    output: &'a str,
}

fn view(session: &str, row: &NotesRow, brief: bool) -> Value {
    let NotesRow { id, made } = row;
    let texts = TextsResult { prompt: &made.prompt, payload: &made.payload, output: &made.output };
    Value::of(&ViewResult {
        id: ViewId(*id),
        session,
        turn: made.turn,
        message: MessageId(made.message),
        created: made.created,
        outcome: OutcomeResult::of(made),
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
        texts: (!brief).then_some(texts),
    })
}

fn sections(names: &str) -> Vec<Keyword<&str>> {
    names.split_whitespace().map(Keyword).collect()
}
