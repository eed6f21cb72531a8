//! The models that can be talked to.

use std::sync::Arc;

use super::Step;
use super::call::Call;
use super::error::application;
use super::params::decode;
use super::present::{entry, figure};
use super::query::Nothing;
use crate::provider::chat::{Provider, Usage};
use crate::value::Value;
use crate::wire::message::WireError;

/// What to write where, for somebody who has configured no provider.
pub(super) const HOW_TO: &str = "no model is configured: put a [[providers]] table with name, \
                                 kind and model into the configuration file, for instance \
                                 name = \"local\", kind = \"ollama\", model = \"llama3.2\", and \
                                 start the server again";

/// A model that can be talked to.
#[derive(Clone)]
pub struct Configured {
    /// What it is called.
    pub name: String,
    /// The model itself.
    pub provider: Arc<dyn Provider>,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// What a million tokens of input and of output cost, when that is known.
    pub price: Option<(f64, f64)>,
}

/// Every model that can be talked to; the first is used when none is named.
#[derive(Clone, Default)]
pub struct Providers(pub Vec<Configured>);

impl Providers {
    /// The model of this name, or the first.
    ///
    /// # Errors
    /// `unconfigured` when there is none, `no-such-provider` when there is none of this name.
    pub(super) fn find(&self, name: Option<&str>) -> Result<&Configured, WireError> {
        let Some(first) = self.0.first() else {
            return Err(application("unconfigured", HOW_TO.to_owned(), vec![]));
        };
        let Some(name) = name else { return Ok(first) };
        self.0.iter().find(|provider| provider.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.0.iter().map(|provider| &*provider.name).collect();
            let message = format!("no provider {name:?}; there are {}", known.join(", "));
            let known = known.into_iter().map(Value::from).collect();
            application("no-such-provider", message, vec![("known", Value::List(known))])
        })
    }
}

impl Configured {
    /// What a request and its answer cost; `None` when a price or a count is not known.
    pub(super) fn cost(&self, usage: &Usage) -> Option<f64> {
        let (input, output) = self.price?;
        Some((usage.input? as f64 * input + usage.output? as f64 * output) / 1_000_000.0)
    }
}

pub(super) fn list_providers(call: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    let line = |(at, configured): (usize, &Configured)| {
        let (input, output) = configured.price.unzip();
        let price = |price: Option<f64>| price.map_or(Value::Nil, Value::from);
        Value::Map(vec![
            entry("name", &*configured.name),
            entry("model", configured.provider.model()),
            entry("address", configured.provider.name()),
            entry("default", at == 0),
            entry("max-tokens", configured.max_tokens.map_or(Value::Nil, figure)),
            entry("price-input", price(input)),
            entry("price-output", price(output)),
        ])
    };
    let list = call.tools.providers.0.iter().enumerate().map(line).collect();
    Ok(Step::Done(Value::List(list)))
}
