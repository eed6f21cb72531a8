//! The methods that say which models can be talked to, that add one while the server runs, and that
//! decide what a model may do.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::Step;
use super::call::Call;
use super::error::{agent_error, application, param_error, provider_error};
use super::params::{Name, decode};
use super::present::{entry, figure, keyword};
use super::query::Nothing;
use crate::agent::{Configured, Decision};
use crate::provider::secret::{KeySource, Secret};
use crate::provider::settings::{BadSetting, Origin, ProviderSettings};
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ConfigureParams {
    name: Name,
    kind: String,
    model: String,
    base_url: Option<String>,
    api_key: Option<Key>,
    api_key_env: Option<String>,
    api_key_command: Option<String>,
    script: Option<PathBuf>,
    context: Option<u64>,
    max_tokens: Option<u64>,
    price_input: Option<f64>,
    price_output: Option<f64>,
    default: Option<bool>,
}

/// A key that a call brings.
struct Key(Secret);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not in the words of the error, which would repeat it.
        let text = String::deserialize(deserializer).map_err(|_| D::Error::custom(NO_KEY))?;
        Secret::new(&text).map(Self).ok_or_else(|| D::Error::custom(NO_KEY))
    }
}

const NO_KEY: &str = "must be a string that is not empty";

pub(super) fn configure_provider(call: Call, params: Value) -> Result<Step, WireError> {
    let given: ConfigureParams = decode(params)?;
    let own = [
        ("api-key-env", given.api_key_env.is_some()),
        ("api-key-command", given.api_key_command.is_some()),
        ("script", given.script.is_some()),
    ];
    let own = own.into_iter().find(|(_, is_given)| *is_given);
    if let Some((param, _)) = own.filter(|_| !call.access.is_local()) {
        let why = "is not for clients over TCP; give api-key, use the configuration file, or \
                   connect over stdio or the Unix socket";
        return Err(param_error(param, why));
    }
    if !call.access.may_change_providers() {
        let why = "who connects over TCP without the secret cannot change providers; show the \
                   secret first, or connect over stdio or the Unix socket";
        return Err(application("not-allowed", why.to_owned(), vec![]));
    }
    if given.script.as_ref().is_some_and(|script| !script.is_absolute()) {
        return Err(param_error("script", "must be an absolute file name"));
    }
    let settings = ProviderSettings {
        name: given.name.0,
        kind: given.kind,
        model: given.model,
        url: given.base_url,
        api_key: given.api_key.map(|Key(key)| key),
        api_key_env: given.api_key_env,
        api_key_command: given.api_key_command,
        script: given.script,
        context: given.context,
        max_tokens: given.max_tokens,
        price_input: given.price_input,
        price_output: given.price_output,
    };
    let wrong = |wrong: BadSetting| {
        let param = if wrong.setting == "url" { "base-url" } else { wrong.setting };
        param_error(param, &wrong.what)
    };
    let configured = Configured::open(&settings.checked().map_err(wrong)?).map_err(wrong)?;
    let default = given.default.unwrap_or(false);
    let at = call.tools.providers.add(configured.clone(), default).map_err(agent_error)?;
    Ok(Step::Done(row(at, &configured)))
}

pub(super) fn list_providers(call: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    let known = call.tools.providers.known();
    let list = known.iter().enumerate().map(|(at, configured)| row(at, configured)).collect();
    Ok(Step::Done(Value::List(list)))
}

fn row(at: usize, configured: &Configured) -> Value {
    let (input, output) = configured.price.unzip();
    let price = |price: Option<f64>| price.map_or(Value::Nil, Value::from);
    let mut map = vec![
        entry("name", &*configured.name),
        entry("kind", configured.from.kind()),
        entry("model", configured.provider.model()),
    ];
    match &configured.from {
        Origin::Server { url, key, context, .. } => {
            let (state, from) = key_state(key);
            map.push(entry("base-url", &**url));
            map.extend(context.map(|tokens| entry("context", figure(tokens))));
            map.extend([entry("key", keyword(state)), entry("key-from", from)]);
        }
        Origin::Script(path) => {
            map.push(entry("script", path.to_string_lossy().into_owned()));
            map.extend([entry("key", keyword(NONE_NEEDED)), entry("key-from", Value::Nil)]);
        }
    }
    let limit = configured.rooms.of(configured.provider.model()).limit;
    let (tokens, from) = limit.unzip();
    map.extend([
        entry("limit", tokens.map_or(Value::Nil, figure)),
        entry("limit-from", from.map_or(Value::Nil, |from| keyword(from.name()))),
        entry("default", at == 0),
        entry("max-tokens", configured.max_tokens.map_or(Value::Nil, figure)),
        entry("price-input", price(input)),
        entry("price-output", price(output)),
    ]);
    Value::Map(map)
}

/// The state of a key that is not wanted.
const NONE_NEEDED: &str = "none-needed";

/// Whether there is a key, and from where. A command is taken at its word, since running it may
/// ask for a passphrase.
fn key_state(key: &KeySource) -> (&'static str, Value) {
    let state = if key.check().is_ok() { "set" } else { "missing" };
    match key {
        KeySource::None => (NONE_NEEDED, Value::Nil),
        KeySource::Environment(_) => (state, keyword("environment")),
        KeySource::Command(_) => (state, keyword("command")),
        KeySource::Given(_) => (state, keyword("call")),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ModelsParams {
    provider: Option<Name>,
}

pub(super) fn list_models(call: Call, params: Value) -> Result<Step, WireError> {
    let given: ModelsParams = decode(params)?;
    let found = call.tools.providers.find(given.provider.as_deref(), None);
    let configured = found.map_err(agent_error)?;
    Ok(Step::Await(Box::pin(async move {
        let models = configured.provider.models().await;
        let models = models.map_err(|error| provider_error(&configured.name, &error))?;
        Ok(Step::Done(Value::Map(vec![
            entry("provider", &*configured.name),
            entry("models", Value::List(models.into_iter().map(Value::from).collect())),
        ])))
    })))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Approve {
    approval: u64,
    decision: Decision,
}

pub(super) fn approve(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Approve = decode(params)?;
    match call.tools.approvals.answer(given.approval, given.decision) {
        true => Ok(Step::Done(Value::Map(vec![entry("approval", figure(given.approval))]))),
        false => {
            let message = format!(
                "nothing waits for approval {}; it was answered, or its turn has ended",
                given.approval
            );
            Err(application("no-such-approval", message, vec![]))
        }
    }
}
