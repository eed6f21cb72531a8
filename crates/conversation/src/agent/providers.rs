//! The registry of available models.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::AgentError;
use super::rooms::{LIMIT_TIME, Rooms};
use crate::engine::{Costs, Engine, EngineError, SessionContext, SessionSettings};
use crate::provider::AnswerOrigin;
use crate::provider::chat::{ChatProvider, Usage};
#[cfg(feature = "providers")]
use crate::provider::settings::{self, BadSetting};
use crate::store::session::SessionRow;
use crate::tokens::model::LimitFrom;

pub const MOST_PROVIDERS: usize = 100;

/// An available model.
#[derive(Clone)]
pub struct AvailableModel {
    /// Name of the provider.
    pub name: String,
    /// The model itself.
    pub provider: Arc<dyn ChatProvider>,
    /// Maximum length of an answer, in tokens.
    pub max_tokens: Option<u64>,
    /// Price of a million tokens of input and of output, if known.
    pub price: Option<(f64, f64)>,
    /// Source of the answers: a server, with its address and API key, or a script or program.
    pub from: AnswerOrigin,
    /// Token limits of the provider's models, as the server reported or revealed them.
    pub rooms: Rooms,
}

/// All available models; the first is the default. Clones share the registry, which can change
/// while the server runs.
#[derive(Clone, Default)]
pub struct Providers(Arc<RwLock<Vec<AvailableModel>>>);

impl Providers {
    /// Creates a registry; the first model is the default.
    pub fn new(configured: Vec<AvailableModel>) -> Self {
        Self(Arc::new(RwLock::new(configured)))
    }

    /// Returns whether no model is available.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    /// Finds the model for a call. Without names, this is the default model. A provider's name
    /// selects that provider, with the named model or else the model configured for it. A model's
    /// name alone selects, in this order: the provider with this name, the provider configured with
    /// this model, or the default provider with this model.
    ///
    /// # Errors
    /// [`AgentError::Unconfigured`] if there are no providers; [`AgentError::NoSuchProvider`] if no
    /// provider has the given name.
    pub fn find(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<AvailableModel, AgentError> {
        let known = self.known();
        let first = known.first().ok_or(AgentError::Unconfigured)?;
        let named = |name: &str| known.iter().find(|configured| configured.name == name);
        match (provider, model) {
            (None, None) => Ok(first.clone()),
            (Some(name), model) => {
                let found = named(name).ok_or_else(|| no_such(name, &known))?;
                Ok(model.map_or_else(|| found.clone(), |model| found.with_model(model)))
            }
            (None, Some(model)) => {
                let of_model = || known.iter().find(|one| one.provider.model() == model);
                let found = named(model).or_else(of_model).cloned();
                Ok(found.unwrap_or_else(|| first.with_model(model)))
            }
        }
    }

    /// Finds the model for a call about a session: the model that the call names, else the first
    /// provider whose name or configured model is in the session's settings, else the default.
    ///
    /// # Errors
    /// The errors of [`find`](Self::find).
    pub fn chosen(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
        settings: &SessionSettings,
    ) -> Result<AvailableModel, AgentError> {
        if provider.is_some() || model.is_some() {
            return self.find(provider, model);
        }
        let known = self.known();
        let is_meant = |one: &&AvailableModel| settings.model.as_ref().is_some_and(|it| one.is(it));
        known.iter().find(is_meant).or(known.first()).cloned().ok_or(AgentError::Unconfigured)
    }

    /// Loads a session like [`Engine::context_of`], with the token costs and the limit of the model
    /// that a turn would ask; see [`chosen`](Self::chosen).
    ///
    /// # Errors
    /// The errors of [`Engine::context_of`].
    pub fn context_of(
        &self,
        engine: &mut Engine,
        row: SessionRow,
        model: Option<&str>,
    ) -> Result<SessionContext, EngineError> {
        let context = engine.context_of(row, model)?;
        match self.chosen(None, model, &context.settings) {
            Ok(configured) => configured.in_context(engine, context),
            Err(_) => Ok(context),
        }
    }

    /// Loads a session like [`context_of`](Self::context_of) for a method that processes turns. If
    /// no model is available, the settings are those for a conversation that no model answers.
    ///
    /// # Errors
    /// The errors of [`Engine::context_of`].
    pub fn turn_context(
        &self,
        engine: &mut Engine,
        row: SessionRow,
        model: Option<&str>,
    ) -> Result<SessionContext, EngineError> {
        let mut context = self.context_of(engine, row, model)?;
        if self.is_empty() {
            context.settings.turn = context.settings.turn.alone();
        }
        Ok(context)
    }

    /// Returns what a request to this model costs, at the first price that is configured for it.
    pub fn list_cost(&self, model: &str, input: Option<u64>, output: Option<u64>) -> Option<f64> {
        let known = self.known();
        let of_model = known.iter().filter(|one| one.provider.model() == model);
        of_model.filter_map(|one| one.price).next().and_then(|price| cost(price, input, output))
    }

    /// Returns whether `model` is the name or the configured model of a provider other than `than`,
    /// and not of `than` itself.
    pub(super) fn is_of_another(&self, model: &str, than: &AvailableModel) -> bool {
        let known = self.known();
        let has = |is_own: bool| {
            known.iter().any(|one| one.is(model) && (one.name == than.name) == is_own)
        };
        than.name != model && !has(true) && has(false)
    }

    /// Adds a provider, or replaces the one with the same name. Puts the provider first if
    /// `default` is true. Returns its index.
    ///
    /// # Errors
    /// [`AgentError::TooManyProviders`].
    pub fn add(&self, configured: AvailableModel, default: bool) -> Result<usize, AgentError> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let old = known.iter().position(|one| one.name == configured.name);
        if old.is_none() && known.len() >= MOST_PROVIDERS {
            return Err(AgentError::TooManyProviders { most: MOST_PROVIDERS });
        }
        let at = match (default, old) {
            (true, _) => 0,
            (false, Some(at)) => at,
            (false, None) => known.len(),
        };
        known.retain(|one| one.name != configured.name);
        known.insert(at, configured);
        Ok(at)
    }

    /// Removes a provider and returns it. Turns that use the provider continue.
    ///
    /// # Errors
    /// [`AgentError::NoSuchProvider`].
    pub fn remove(&self, name: &str) -> Result<AvailableModel, AgentError> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match known.iter().position(|one| one.name == name) {
            Some(at) => Ok(known.remove(at)),
            None => Err(no_such(name, &known)),
        }
    }

    /// Returns the providers, the default one first.
    pub fn known(&self) -> RwLockReadGuard<'_, Vec<AvailableModel>> {
        // A panic cannot leave the registry inconsistent: no change can panic halfway.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_such(name: &str, known: &[AvailableModel]) -> AgentError {
    let known = known.iter().map(|provider| provider.name.clone()).collect();
    AgentError::NoSuchProvider { name: name.to_owned(), known }
}

#[cfg(test)]
impl AvailableModel {
    /// Creates a model that plays an answer with the text `x`.
    pub fn playing() -> Self {
        let script = "[[answer]]\ntext = \"x\"\n";
        Self {
            name: "play".to_owned(),
            provider: Arc::new(crate::provider::scripted::Scripted::new(script, "m-1").unwrap()),
            max_tokens: None,
            price: None,
            from: AnswerOrigin::Script("none".into()),
            rooms: Rooms::default(),
        }
    }
}

impl AvailableModel {
    /// Opens the provider that the settings describe.
    ///
    /// # Errors
    /// [`BadSetting`] if the provider's script cannot be used.
    #[cfg(feature = "providers")]
    pub fn open(said: &settings::CheckedProvider) -> Result<Self, BadSetting> {
        Ok(Self {
            name: said.name.clone(),
            provider: said.open()?,
            max_tokens: said.max_tokens,
            price: said.price,
            from: said.from.clone(),
            rooms: Rooms::default(),
        })
    }

    /// Returns whether this is the provider's name or its configured model.
    fn is(&self, name: &str) -> bool {
        self.name == name || self.provider.model() == name
    }

    /// Returns the provider with this model. If that is another model, its price is unknown.
    fn with_model(&self, model: &str) -> Self {
        if self.provider.model() == model {
            return self.clone();
        }
        Self { provider: self.provider.with_model(model), price: None, ..self.clone() }
    }

    /// Replaces the token costs of a session with those of this model.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn in_context(
        &self,
        engine: &mut Engine,
        context: SessionContext,
    ) -> Result<SessionContext, EngineError> {
        let costs = self.with_room(engine.costs(Some(self.provider.model()))?);
        Ok(SessionContext { costs, ..context })
    }

    /// Sets the model's token limit in `costs` to that of the provider, if any, unless the model has
    /// a lower one in the configuration. Then applies the limit
    /// that the server reported or revealed, if any.
    pub fn with_room(&self, mut costs: Costs) -> Costs {
        if let Some(context) = self.from.context() {
            let is_set = costs.model.limit_from == LimitFrom::Configuration;
            costs.model.limit = if is_set { costs.model.limit.min(context) } else { context };
            costs.model.limit_from = LimitFrom::Configuration;
            costs.model.known = true;
        }
        let room = self.rooms.of(self.provider.model());
        costs.model = room.within(costs.model, self.max_tokens);
        costs
    }

    /// Returns the configured maximum number of tokens in an answer, but at most half of the
    /// server's limit if that is known; `None` if no maximum is configured.
    pub(super) fn answer_tokens(&self) -> Option<u64> {
        let limit = self.rooms.of(self.provider.model()).limit;
        let half = limit.map_or(u64::MAX, |(tokens, _)| (tokens / 2).max(1));
        self.max_tokens.map(|tokens| tokens.min(half))
    }

    /// Asks the server for the model's token limit if needed, and waits at most [`LIMIT_TIME`].
    pub async fn find_limit(&self) {
        let model = self.provider.model();
        if !self.from.has_to_tell_limit(model) || !self.rooms.is_to_be_asked(model) {
            return;
        }
        let told = tokio::time::timeout(LIMIT_TIME, self.provider.limit()).await;
        self.rooms.told(model, told.ok());
    }

    /// Returns the cost of a request and its answer; `None` if a price or a count is not known.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        cost(self.price?, usage.input, usage.output)
    }
}

/// Returns a cost by the prices of a million tokens of input and of output.
fn cost(
    (each_input, each_output): (f64, f64),
    input: Option<u64>,
    output: Option<u64>,
) -> Option<f64> {
    Some((input? as f64 * each_input + output? as f64 * each_output) / 1_000_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::scripted::Scripted;

    fn registry() -> Providers {
        let configured = |(name, model): (&str, &str)| AvailableModel {
            name: name.to_owned(),
            provider: Arc::new(Scripted::new("[[answer]]\ntext = \"x\"\n", model).unwrap()),
            max_tokens: Some(100),
            price: Some((1.0, 2.0)),
            from: AnswerOrigin::Script("none".into()),
            rooms: Rooms::default(),
        };
        Providers::new([("one", "m-1"), ("two", "m-2")].map(configured).into())
    }

    #[track_caller]
    fn check(provider: Option<&str>, model: Option<&str>, expected: (&str, &str, bool)) {
        let found = registry().find(provider, model).unwrap();
        assert_eq!((&*found.name, found.provider.model(), found.price.is_some()), expected);
        assert_eq!(found.max_tokens, Some(100));
    }

    #[test]
    fn a_provider_a_model_or_both_say_which_model_is_meant() {
        check(None, None, ("one", "m-1", true));
        check(Some("two"), None, ("two", "m-2", true));
        check(None, Some("two"), ("two", "m-2", true));
        check(None, Some("m-2"), ("two", "m-2", true));
        check(None, Some("m-9"), ("one", "m-9", false));
        check(Some("two"), Some("m-1"), ("two", "m-1", false));
        check(Some("two"), Some("m-2"), ("two", "m-2", true));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let error = registry().find(Some("m-1"), None).err().unwrap();
        assert_eq!(error.to_string(), "there is no provider \"m-1\"; the providers are one, two");
        let error = Providers::default().find(None, Some("m-1")).err().unwrap().to_string();
        assert!(error.starts_with("no model is configured"), "{error}");
        let error = Providers::default().remove("m-1").err().unwrap().to_string();
        assert_eq!(error, "there is no provider \"m-1\"; no provider is configured");
    }
}
