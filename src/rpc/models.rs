//! Methods that manage the providers of models, list their models, and decide on the tool calls of
//! a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::error::{param_error, provider_error, refused};
use super::error_data::PlainKind;
use super::params::{Name, Nothing};
use crate::agent::{AvailableModel, Decision, WaitingQuestion};
use crate::ids::SessionId;
use crate::provider::AnswerOrigin;
use crate::provider::chat::ModelListing;
use crate::provider::secret::KeySource;
use crate::provider::settings::{BadSetting, ProviderSettings, kinds};
use crate::tokens::model::{LimitFrom, Model};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

pub(super) fn configure_provider(
    call: MethodCall,
    given: ProviderSettings,
) -> Result<Step, WireError> {
    if let Some(param) = given.of_this_machine().filter(|_| !call.access.is_local()) {
        let why = "is not allowed over TCP; give api-key, use the configuration file, or \
                   connect over stdio or the Unix socket";
        return Err(param_error(param, why));
    }
    call.check_access("change providers")?;
    if given.script.as_ref().is_some_and(|script| !script.is_absolute()) {
        return Err(param_error("script", "must be an absolute file name"));
    }
    let wrong = |wrong: BadSetting| param_error(wrong.setting, &wrong.what);
    let settings = given.checked().map_err(wrong)?;
    let configured = AvailableModel::open(&settings).map_err(wrong)?;
    let at = call.tools.providers.add(configured.clone(), settings.default)?;
    told("configure-provider", configured.name.clone(), row(at, &configured))
}

/// Returns the step that announces that `method` changed the provider, and answers with `answer`.
fn told(method: &'static str, provider: String, answer: Value) -> Result<Step, WireError> {
    Step::state(move |engine| {
        engine.note_provider(method, provider);
        Ok(answer)
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveParams {
    /// Name of the provider.
    name: Name,
}

/// A removed provider.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RemovedProvider")]
pub(super) struct RemovedProvider<'a> {
    /// Name of the provider.
    name: &'a str,
    /// Name of the provider that is the default now; `nil` if there is none.
    default: Option<String>,
}

pub(super) fn remove_provider(call: MethodCall, given: RemoveParams) -> Result<Step, WireError> {
    call.check_access("change providers")?;
    let Name(name) = given.name;
    call.tools.providers.remove(&name)?;
    let default = call.tools.providers.known().first().map(|first| first.name.clone());
    let answer = Value::of(&RemovedProvider { name: &name, default });
    told("remove-provider", name, answer)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ProvidersCall {
    /// Ask a provider for its models; waits for at most 20 seconds.
    models: Option<bool>,
    /// Name of that provider; defaults to the default provider.
    provider: Option<Name>,
}

pub(super) fn list_providers(call: MethodCall, given: ProvidersCall) -> Result<Step, WireError> {
    if given.models.unwrap_or(false) {
        return models_of(&call, given.provider);
    }
    let known = call.tools.providers.known();
    let list = known.iter().enumerate().map(|(at, configured)| row(at, configured)).collect();
    Ok(Step::Done(Value::List(list)))
}

/// A provider.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Provider")]
pub(super) struct ProviderResult<'a> {
    /// Your name for the provider.
    name: &'a str,
    /// Kind of the server, or `:scripted`.
    #[schemars(extend("enum" = kinds()))]
    kind: Keyword<&'a str>,
    /// Name of the model.
    model: &'a str,
    /// Address of the server; absent if the provider is not a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<&'a str>,
    /// Limit of the model in tokens, as configured; absent if its server tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    /// File that a scripted model plays; only for such a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<String>,
    /// State of the key.
    #[schemars(extend("enum" = ["set", "missing", NONE_NEEDED]))]
    key: Keyword<&'static str>,
    /// Source of the key; `nil` if none is needed.
    #[schemars(extend("enum" = ["environment", "command", "call", null]))]
    key_from: Option<Keyword<&'static str>>,
    /// The model's token limit, once it is known from its server.
    limit: Option<u64>,
    /// Source of the limit: the server's report, or its refusal of a longer request.
    limit_from: Option<LimitFrom>,
    /// True for the default provider.
    default: bool,
    /// Maximum number of tokens in an answer.
    answer_tokens: Option<u64>,
    /// Price of a million input tokens.
    price_input: Option<f64>,
    /// Price of a million output tokens.
    price_output: Option<f64>,
    /// Further settings of a server, as a phrase without the values of headers; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<String>,
}

fn row(at: usize, configured: &AvailableModel) -> Value {
    let (price_input, price_output) = configured.price.unzip();
    let (limit, limit_from) = configured.rooms.of(configured.provider.model()).limit.unzip();
    let (base_url, context, script, (key, key_from)) = match &configured.from {
        AnswerOrigin::Server { url, key, .. } => {
            (Some(&**url), configured.from.context(), None, key_state(key))
        }
        AnswerOrigin::Program => (None, None, None, (NONE_NEEDED, None)),
        AnswerOrigin::Script(path) => {
            (None, None, Some(path.to_string_lossy().into_owned()), (NONE_NEEDED, None))
        }
    };
    let settings = match &configured.from {
        AnswerOrigin::Server { serving, .. } => Some(serving.to_string()),
        AnswerOrigin::Program | AnswerOrigin::Script(_) => None,
    };
    Value::of(&ProviderResult {
        name: &configured.name,
        kind: Keyword(configured.from.kind()),
        model: configured.provider.model(),
        base_url,
        context,
        script,
        key: Keyword(key),
        key_from: key_from.map(Keyword),
        limit,
        limit_from,
        default: at == 0,
        answer_tokens: configured.max_tokens,
        price_input,
        price_output,
        settings: settings.filter(|phrase| !phrase.is_empty()),
    })
}

/// State of a key that is not needed.
const NONE_NEEDED: &str = "none-needed";

/// Returns the state and source of the key. Does not run a command, since that may ask for a
/// passphrase.
fn key_state(key: &KeySource) -> (&'static str, Option<&'static str>) {
    let state = if key.check().is_ok() { "set" } else { "missing" };
    match key {
        KeySource::None => (NONE_NEEDED, None),
        KeySource::Environment(_) => (state, Some("environment")),
        KeySource::Command(_) => (state, Some("command")),
        KeySource::Given(_) => (state, Some("call")),
    }
}

/// The models of a provider.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Models")]
pub(super) struct ModelsResult<'a> {
    /// Name of the provider.
    provider: &'a str,
    /// The models, in the provider's order.
    models: Vec<ListedModel>,
    /// Maximum number of tokens that the provider's own model takes.
    limit: u64,
    /// Source of the limit; `:default` if nobody tells it, so that it is assumed.
    limit_from: LimitFrom,
}

/// A model of a provider, with what its server tells of it, or else the table of models. What
/// nobody tells is absent.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListedModel {
    /// Name of the model.
    name: String,
    /// Maximum number of tokens that it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// True if it calls tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<bool>,
    /// True if it sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pictures: Option<bool>,
    /// True if it can reason more or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<bool>,
}

impl ListedModel {
    fn of(listed: ModelListing, known: &Model) -> Self {
        let ModelListing { name, limit, tools, pictures, effort, .. } = listed;
        Self {
            name,
            limit: limit.or(known.known.then_some(known.limit)),
            tools: tools.or(known.can.tools),
            pictures: pictures.or(known.can.pictures),
            effort: effort.or(known.can.effort),
        }
    }
}

fn models_of(call: &MethodCall, provider: Option<Name>) -> Result<Step, WireError> {
    let configured = call.tools.providers.find(provider.as_deref(), None)?;
    let engine = call.tools.engine.clone();
    Ok(Step::Await(Box::pin(async move {
        let listed = configured.provider.models().await;
        let listed = listed.map_err(|error| provider_error(&configured.name, &error))?;
        configured.find_limit().await;
        let model = configured.provider.model().to_owned();
        let (costs, models) = engine
            .ask(move |engine| {
                let of = |listed: ModelListing| {
                    let known = engine.model(&listed.name);
                    ListedModel::of(listed, &known)
                };
                let models = listed.into_iter().map(of).collect();
                engine.costs(Some(&model)).map(|costs| (costs, models))
            })
            .await?;
        let Model { limit, limit_from, .. } = configured.with_room(costs).model;
        Step::done(&ModelsResult { provider: &configured.name, models, limit, limit_from })
    })))
}

/// A question that waits for `approve`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "OpenApproval")]
pub(super) struct OpenApproval {
    /// Number of the question, for `approve`.
    approval: u64,
    /// Name of the session whose turn waits.
    session: String,
    /// Id of the session.
    session_id: SessionId,
    /// Description of the call in one line, to read.
    text: String,
    /// Name of the tool.
    tool: String,
    /// Arguments of the call, as JSON.
    arguments: String,
    /// Place outside the session's project that the call reaches; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<String>,
}

pub(super) fn list_approvals(call: MethodCall, _: Nothing) -> Result<Step, WireError> {
    let open = |WaitingQuestion { session, asked }: WaitingQuestion| OpenApproval {
        approval: asked.number,
        session: session.name,
        session_id: SessionId(session.id),
        text: asked.phrase,
        tool: asked.tool,
        arguments: asked.arguments,
        outside: asked.outside,
    };
    Step::done(&call.tools.approvals.waiting().into_iter().map(open).collect::<Vec<_>>())
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Approve {
    /// Number of the question, from the progress of the turn or from `list-approvals`.
    approval: u64,
    /// `:once` allows this call, `:refuse` refuses it; `:always` also allows later calls of the
    /// tool in this session, except those that reach outside the project.
    decision: Decision,
}

/// A question about a tool call, which is now decided.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approved")]
pub(super) struct Approved {
    /// Number of the question.
    approval: u64,
}

pub(super) fn approve(call: MethodCall, given: Approve) -> Result<Step, WireError> {
    let Approve { approval, decision } = given;
    if call.tools.approvals.answer(approval, decision) {
        return Step::done(&Approved { approval });
    }
    let message = format!(
        "nothing waits for approval {approval}; it was answered, its turn has ended, or it was \
         never asked"
    );
    Err(refused(PlainKind::NoSuchApproval, message))
}
