//! Opens conversations.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::error::check_range;
use super::state::{KeptSettings, OpenState};
use super::tool::{Offering, ProgramTool, Tool, ToolContext};
use super::{Conversation, ConversationInner, Error, Provider, tool};
use crate::agent::tools::context;
use crate::agent::{AvailableModel, Limits, Providers, Services};
use crate::context::change::ContextSettings;
use crate::context::manager::{DEFAULT_CAPACITY, MAX_CAPACITY};
use crate::curation::config::{Range, SettingValue, TurnConfig};
use crate::curation::section::{CountedText, Sections};
use crate::curation::strategy;
use crate::curation::summary::{Extractive, Summarizer};
use crate::engine::{Clock, Engine, EngineError, Models, SessionSettings};
use crate::files::DEFAULT_MAX_FILE_BYTES;
use crate::provider::chat::ToolDefinition;
use crate::store::session::NewSession;
use crate::tokens::model::Override;
use crate::tokens::{Counter, TokenizerName};

/// Options for opening a [`Conversation`].
#[must_use = "call `open` to open the conversation"]
pub struct Builder {
    name: String,
    folder: Option<PathBuf>,
    beside: Option<Conversation>,
    project: Option<PathBuf>,
    providers: Vec<Provider>,
    tools: Result<Vec<Offering>, Error>,
    allowed: Vec<String>,
    asked: Vec<String>,
    system_prompt: Option<String>,
    model: Option<String>,
    overrides: Vec<Override>,
    tokenizer: TokenizerName,
    max_tokens: Option<u64>,
    config: TurnConfig,
    versioning: bool,
    strategy: Option<String>,
    summarizer: Arc<dyn Summarizer + Send + Sync>,
    max_items: usize,
    clock: Clock,
}

impl fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Builder");
        shown.field("name", &self.name).field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn named(name: String) -> Self {
        Self {
            name,
            folder: None,
            beside: None,
            project: None,
            providers: Vec::new(),
            tools: Ok(Vec::new()),
            allowed: Vec::new(),
            asked: Vec::new(),
            system_prompt: None,
            model: None,
            overrides: Vec::new(),
            tokenizer: TokenizerName::default(),
            max_tokens: None,
            config: TurnConfig::default(),
            versioning: true,
            strategy: None,
            summarizer: Arc::new(Extractive),
            max_items: DEFAULT_CAPACITY,
            clock: Box::new(|| jiff::Timestamp::now().as_millisecond()),
        }
    }

    /// Keeps the conversation in a folder, which may be the folder of a server that is not running.
    /// Without a folder, the conversation is only in memory.
    pub fn state_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Shares the state of another open conversation, since a state folder has only one owner. The
    /// folder, the tokenizer, the clock, the maximum number of items and the properties of models
    /// are those of the other conversation.
    ///
    /// Several handles of one conversation can be open in a state. Their turns run one after
    /// another. All of them have the same settings, and each has its own tools and providers.
    pub fn beside(self, other: &Conversation) -> Self {
        Self { beside: Some(other.clone()), ..self }
    }

    /// Sets the folder of the project that the conversation is about. File names are relative to
    /// this folder, and conversations about the same project share its memories.
    pub fn project(self, folder: impl Into<PathBuf>) -> Self {
        Self { project: Some(folder.into()), ..self }
    }

    /// Adds a model to talk to; the first one is the default. With no model, your program calls a
    /// model itself; see [`Conversation::window`].
    pub fn provider(mut self, provider: impl Into<Provider>) -> Self {
        self.providers.push(provider.into());
        self
    }

    /// Adds a tool that models can call.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.offering(ProgramTool::tool(tool).checked().map(|tool| vec![tool]))
    }

    /// Adds a function that models can call as a tool, for tools that are only known when the
    /// program runs. `parameters` is the JSON schema of the function's arguments.
    ///
    /// ```
    /// use contexture::Conversation;
    /// use serde_json::{Value, json};
    ///
    /// let number = json!({ "type": "object", "properties": { "number": { "type": "integer" } } });
    /// let builder = Conversation::builder("tla").function(
    ///     "double",
    ///     "Doubles a number.",
    ///     number,
    ///     |args: Value, _| async move {
    ///         let number = args["number"].as_i64().ok_or("number must be an integer")?;
    ///         Ok::<_, &str>((2 * number).to_string())
    ///     },
    /// );
    /// # drop(builder);
    /// ```
    pub fn function<A, E, F>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: serde_json::Value,
        call: impl Fn(A, ToolContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        E: Display,
        F: Future<Output = Result<String, E>> + Send + 'static,
    {
        let (name, description) = (name.into(), description.into());
        let definition = ToolDefinition { name, description, schema: parameters };
        self.offering(ProgramTool::function(definition, call).checked().map(|tool| vec![tool]))
    }

    /// Adds the tools with which a model can list, change and search its context; with the feature
    /// `map`, also one that maps the project. Calls of these tools need the user's permission,
    /// unless [`Self::allow`] names the tool.
    pub fn context_tools(self) -> Self {
        self.offering(Ok(context::toolbox().into_iter().map(Offering::Context).collect()))
    }

    fn offering(mut self, more: Result<Vec<Offering>, Error>) -> Self {
        self.tools = self.tools.and_then(|mut tools| {
            tools.extend(more?);
            Ok(tools)
        });
        self
    }

    /// Allows calls of the tools with these names without asking the user, except calls that reach
    /// outside the project.
    pub fn allow<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.allowed.extend(names.into_iter().map(Into::into));
        self
    }

    /// Asks the user before each call of the tools with these names, whatever
    /// [`Tool::needs_approval`] says.
    pub fn ask_before<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.asked.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the instructions that every window begins with.
    pub fn system_prompt(self, prompt: impl Into<String>) -> Self {
        Self { system_prompt: Some(prompt.into()), ..self }
    }

    /// Sets the model for which windows are built and costs are computed; by default, the model of
    /// the first provider. Turns use the provider with this name or this model, if there is one.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the limits and other properties of models, in place of those in the built-in table.
    pub fn models(self, overrides: Vec<Override>) -> Self {
        Self { overrides, ..self }
    }

    /// Sets the tokenizer that counts tokens; o200k by default.
    pub fn tokenizer(self, tokenizer: TokenizerName) -> Self {
        Self { tokenizer, ..self }
    }

    /// Sets the maximum number of tokens in a window. This takes precedence over the maximum in
    /// [`config`](Self::config).
    pub fn max_tokens(self, max_tokens: u64) -> Self {
        Self { max_tokens: Some(max_tokens), ..self }
    }

    /// Sets the settings for processing turns.
    pub fn config(self, config: TurnConfig) -> Self {
        Self { config, ..self }
    }

    /// Turns checkpoints on or off; they are on by default.
    pub fn versioning(self, versioning: bool) -> Self {
        Self { versioning, ..self }
    }

    /// Sets the strategy that chooses from the messages, by name; the first of
    /// [`strategies`](super::strategies) by default.
    pub fn strategy(self, name: impl Into<String>) -> Self {
        Self { strategy: Some(name.into()), ..self }
    }

    /// Sets the summarizer that describes older turns; [`Extractive`] by default. The user's
    /// words are always added to the summarizer's text.
    pub fn summarizer(self, summarizer: impl Summarizer + Send + Sync + 'static) -> Self {
        Self { summarizer: Arc::new(summarizer), ..self }
    }

    /// Sets the maximum number of items in the context, from 1 to 1,000; 50 by default. When the
    /// context is full, each new item evicts the oldest item that is not pinned.
    pub fn max_items(self, max_items: usize) -> Self {
        Self { max_items, ..self }
    }

    /// Sets the clock, a function that returns the time in Unix milliseconds; by default, the
    /// system's clock.
    pub fn clock(self, clock: impl Fn() -> i64 + Send + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Opens the conversation with this name, or creates it. The builder's settings also apply to a
    /// conversation that already exists. The state is owned by a task on the current runtime. If
    /// the future is dropped before it is ready, the state folder becomes free a moment later.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::Tool`], [`Error::FolderTaken`], [`Error::Folder`],
    /// [`Error::Store`]; [`Error::AlreadyOpen`] if a handle of the conversation is open with other
    /// settings.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime with time enabled.
    pub async fn open(self) -> Result<Conversation, Error> {
        let turn =
            TurnConfig { max_tokens: self.max_tokens.or(self.config.max_tokens), ..self.config };
        turn.check()?;
        check_range("max-items", Some(SettingValue::Count(self.max_items as u64)), ITEMS)?;
        if let Some(name) = self.strategy.as_deref().filter(|name| strategy::find(name).is_none()) {
            let known = strategy::names().join(", ");
            return Err(Error::Setting(format!(
                "there is no strategy {name:?}; the strategies are {known}"
            )));
        }
        let tools = self.tools?;
        tool::check_names(&tools)?;
        tool::check_exist(&self.allowed, &tools)?;
        tool::check_exist(&self.asked, &tools)?;
        if let Some(name) = self.asked.iter().find(|name| self.allowed.contains(name)) {
            let what = "is both allowed and asked for; choose one of them".to_owned();
            return Err(Error::Tool { name: name.clone(), what });
        }
        if self.beside.is_some() && self.folder.is_some() {
            let what = "a conversation beside another one is kept where the other one is";
            return Err(Error::Setting(format!("{what}; leave state_folder out")));
        }
        let mut providers = Vec::with_capacity(self.providers.len());
        for provider in self.providers {
            providers.push(provider.open()?);
        }
        let project = self.project.as_deref().map(absolute_project).transpose()?;
        let (counter, state, max_items) = match self.beside {
            Some(beside) => {
                let ConversationInner { services, state, .. } = &*beside.inner;
                (Arc::clone(&services.counter), state.clone(), services.limits.max_items)
            }
            None => {
                let counter = self.tokenizer.counter();
                let of_provider = || providers.first().map(|one| one.provider.model().to_owned());
                let default = self.model.clone().or_else(of_provider);
                let models = Models::new(Arc::clone(&counter), self.overrides, default);
                let (clock, defaults) = (self.clock, ContextSettings { max_items: self.max_items });
                let engine =
                    move |store| Ok(Engine::new(store, clock, defaults)?.with_models(models));
                let folder = self.folder.as_deref().map(|folder| absolute("state folder", folder));
                (counter, OpenState::open(folder.transpose()?, engine).await?, self.max_items)
            }
        };
        let new = NewSession { name: self.name, project, ..NewSession::default() };
        let open = move |engine: &mut Engine| {
            let opened = engine.open_session(new)?;
            engine.row(opened.id)
        };
        let row = state.engine.ask(open).await?;
        let (model, versioning) = (self.model.clone(), self.versioning);
        let kept = KeptSettings {
            model: model.clone(),
            strategy: self.strategy.clone(),
            versioning,
            turn,
            system_prompt: self.system_prompt.clone(),
        };
        let shared =
            state.shared(row.id, kept).ok_or_else(|| Error::AlreadyOpen(row.name.clone()))?;
        let settings = SessionSettings {
            model,
            strategy: self.strategy,
            versioning,
            turn,
            ..SessionSettings::default()
        };
        let id = row.id;
        state.engine.ask(move |engine| set_settings(engine, id, settings)).await?;
        let system_prompt = self.system_prompt.map(|prompt| CountedText::new(prompt, &*counter));
        let inner = ConversationInner {
            services: Arc::new(services(&state, counter, providers, max_items)),
            state,
            runtime: tokio::runtime::Handle::current(),
            shared,
            id: row.id,
            manager: row.manager_name(),
            name: row.name,
            project: row.project,
            model: self.model,
            tools,
            allowed: self.allowed,
            asked: self.asked,
            sections: Sections { system_prompt, ..Sections::default() },
            summarizer: self.summarizer,
        };
        Ok(Conversation { inner: Arc::new(inner) })
    }
}

/// Possible maximum numbers of items.
const ITEMS: Range = Range::Count(1, MAX_CAPACITY as u64);

fn services(
    state: &OpenState,
    counter: Arc<dyn Counter>,
    providers: Vec<AvailableModel>,
    max_items: usize,
) -> Services {
    let limits =
        Limits { max_message_bytes: usize::MAX, max_file_bytes: DEFAULT_MAX_FILE_BYTES, max_items };
    Services {
        providers: Providers::new(providers),
        turns: state.turns.clone(),
        ending: state.ending.clone(),
        ..Services::new(state.engine.clone(), counter, limits)
    }
}

/// Returns a folder's absolute path, which stays valid if the working directory changes.
fn absolute(what: &str, folder: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(folder).map_err(|error| Error::Setting(format!("{what}: {error}")))
}

fn absolute_project(project: &Path) -> Result<String, Error> {
    let text = absolute("project", project)?.into_os_string().into_string();
    text.map_err(|_| {
        Error::Setting("project must be a folder whose name is valid UTF-8".to_owned())
    })
}

/// Applies the builder's settings to a session. The session's other settings, which only a server
/// sets, stay the same.
fn set_settings(
    engine: &mut Engine,
    id: u64,
    settings: SessionSettings,
) -> Result<(), EngineError> {
    let before = SessionSettings::parse(&engine.row(id)?.settings)?;
    let SessionSettings { model, strategy, versioning, turn, .. } = settings;
    let settings = SessionSettings { model, strategy, versioning, turn, ..before };
    engine.set_session_settings(id, &settings.print()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn conversations_that_share_a_state_have_one_maximum_of_items() {
        let one = Conversation::builder("one").max_items(3).open().await.unwrap();
        let two = Conversation::builder("two").max_items(9).beside(&one).open().await.unwrap();
        assert_eq!(two.inner.services.limits.max_items, 3);
    }
}
