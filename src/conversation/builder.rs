//! Opens conversations.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio_util::task::TaskTracker;

use super::tool::{self, Tool};
use super::{Conversation, Error, Inner, Provider};
use crate::agent::tools::{OfferedTool, context};
use crate::agent::{AgentError, Limits, Providers, Services};
use crate::context::change::Settings;
use crate::context::manager::DEFAULT_CAPACITY;
use crate::curation::config::TurnConfig;
use crate::curation::section::{Counted, Sections};
use crate::curation::strategy;
use crate::curation::summary::{Extractive, Summarizer};
use crate::engine::{Clock, Engine, Handle, Models, SessionSettings, run};
use crate::files::DEFAULT_MAX_FILE_BYTES;
use crate::store::Store;
use crate::store::logged::LoggedStore;
use crate::store::ownership::Owned;
use crate::store::recovery;
use crate::store::session::{NewSession, SessionRow};
use crate::store::sqlite::SqliteStore;
use crate::tokens::TokenizerName;
use crate::tokens::model::Override;

/// Options for opening a [`Conversation`].
#[must_use = "a conversation is opened by `open`"]
pub struct Builder {
    name: String,
    folder: Option<PathBuf>,
    project: Option<PathBuf>,
    providers: Vec<Provider>,
    tools: Result<Vec<Arc<dyn OfferedTool>>, Error>,
    allowed: Vec<String>,
    system_prompt: Option<String>,
    model: Option<String>,
    overrides: Vec<Override>,
    tokenizer: TokenizerName,
    config: TurnConfig,
    versioning: bool,
    strategy: Option<String>,
    summarizer: Arc<dyn Summarizer + Send + Sync>,
    max_items: usize,
    clock: Clock,
}

impl Builder {
    pub(super) fn named(name: String) -> Self {
        Self {
            name,
            folder: None,
            project: None,
            providers: Vec::new(),
            tools: Ok(Vec::new()),
            allowed: Vec::new(),
            system_prompt: None,
            model: None,
            overrides: Vec::new(),
            tokenizer: TokenizerName::default(),
            config: TurnConfig::default(),
            versioning: true,
            strategy: None,
            summarizer: Arc::new(Extractive),
            max_items: DEFAULT_CAPACITY,
            clock: Box::new(|| jiff::Timestamp::now().as_millisecond()),
        }
    }

    /// Keeps the conversation in a folder, which may be the folder of a server that is not running.
    /// Without a folder, the conversation ends with the process.
    pub fn state_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Sets the folder of the project that the conversation is about. Files are named relative to
    /// it, and conversations share the memories of their project.
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
        self.offering(tool::offered(tool).map(|tool| vec![tool]))
    }

    /// Adds the tools with which a model can list, change and search its context. Their calls must
    /// be allowed; see [`Self::allow`].
    pub fn context_tools(self) -> Self {
        self.offering(Ok(context::toolbox()))
    }

    fn offering(mut self, more: Result<Vec<Arc<dyn OfferedTool>>, Error>) -> Self {
        self.tools = self.tools.and_then(|mut tools| {
            tools.extend(more?);
            Ok(tools)
        });
        self
    }

    /// Allows calls of these tools without asking, unless they reach outside the project.
    pub fn allow<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.allowed.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the instructions that every window begins with.
    pub fn system_prompt(self, prompt: impl Into<String>) -> Self {
        Self { system_prompt: Some(prompt.into()), ..self }
    }

    /// Sets the model that windows are for, which decides the cost of messages; by default that of
    /// the first provider.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets values for models that differ from the built-in table.
    pub fn models(self, overrides: Vec<Override>) -> Self {
        Self { overrides, ..self }
    }

    /// Sets the tokenizer that counts tokens; o200k by default.
    pub fn tokenizer(self, tokenizer: TokenizerName) -> Self {
        Self { tokenizer, ..self }
    }

    /// Sets the maximum number of tokens in a window, without changing other settings of turns.
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.config.max_tokens = max_tokens;
        self
    }

    /// Sets how turns are processed.
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

    /// Sets the summarizer that describes older turns; [`Extractive`] by default. The ledger is
    /// always added to its text.
    pub fn summarizer(self, summarizer: impl Summarizer + Send + Sync + 'static) -> Self {
        Self { summarizer: Arc::new(summarizer), ..self }
    }

    /// Sets the maximum number of items in the context; the oldest ones leave when it is full.
    pub fn max_items(self, max_items: usize) -> Self {
        Self { max_items, ..self }
    }

    /// Sets the clock, which returns Unix milliseconds; the system's clock by default.
    pub fn clock(self, clock: impl Fn() -> i64 + Send + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Opens the conversation with this name, or creates it. These settings also apply to a
    /// conversation that already exists. Its state is owned by a task on the current runtime.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::Tool`], [`Error::Folder`], [`Error::Store`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with time enabled.
    pub async fn open(self) -> Result<Conversation, Error> {
        self.config.check()?;
        if let Some(name) = self.strategy.as_deref().filter(|name| strategy::find(name).is_none()) {
            let known = strategy::names().join(", ");
            return Err(Error::Setting(format!("no strategy {name:?}; existing: {known}")));
        }
        let tools = self.tools?;
        check_names(&tools)?;
        let mut opened = Vec::with_capacity(self.providers.len());
        for provider in self.providers {
            opened.push(provider.open()?);
        }
        let project = self.project.as_deref().map(absolute).transpose()?;
        let counter = self.tokenizer.counter();
        let model = self.model.clone();
        let of_provider = || opened.first().map(|first| first.provider.model().to_owned());
        let default = model.clone().or_else(of_provider);
        let models = Models::new(Arc::clone(&counter), self.overrides, default);
        let settings = SessionSettings {
            model: model.clone(),
            strategy: self.strategy,
            max_tokens: Some(self.config.max_tokens),
            versioning: self.versioning,
            turn: self.config,
            ..SessionSettings::default()
        };
        let new = NewSession { name: self.name, project, ..NewSession::default() };
        let defaults = Settings { max_items: self.max_items };
        let (folder, clock) = (self.folder, self.clock);
        let open = move || -> Result<_, Error> {
            let (store, folder) = open_store(folder)?;
            let mut engine = Engine::new(store, clock, defaults)?.with_models(models);
            let row = engine.run_alone(|engine| open_session(engine, new, settings))?;
            Ok((engine, row, folder))
        };
        let (engine, row, folder) = blocking(open).await?;
        let (handle, queue) = Handle::channel();
        let state = TaskTracker::new();
        state.spawn(async move {
            run(engine, queue, |_, _| {}).await;
            drop(folder);
        });
        state.close();
        let limits = Limits {
            max_message_bytes: usize::MAX,
            max_file_bytes: DEFAULT_MAX_FILE_BYTES,
            max_items: self.max_items,
        };
        let providers = Providers::new(opened);
        let system_prompt = self.system_prompt.map(|prompt| Counted::new(prompt, &*counter));
        let services = Services { providers, ..Services::new(handle, counter, limits) };
        Ok(Conversation::new(Inner {
            services: Arc::new(services),
            state,
            runtime: tokio::runtime::Handle::current(),
            turns: tokio::sync::Mutex::default(),
            id: row.id,
            manager: row.manager_name(),
            name: row.name,
            project: row.project,
            model,
            tools,
            allowed: self.allowed,
            sections: Sections { system_prompt, ..Sections::default() },
            summarizer: self.summarizer,
            grounding: Mutex::default(),
        }))
    }
}

/// Refuses two tools with the same name.
fn check_names(tools: &[Arc<dyn OfferedTool>]) -> Result<(), Error> {
    for (at, tool) in tools.iter().enumerate() {
        if tools[..at].iter().any(|other| other.name() == tool.name()) {
            let what = "is defined twice; give each tool its own name".to_owned();
            return Err(Error::Tool { name: tool.name().to_owned(), what });
        }
    }
    Ok(())
}

fn absolute(project: &Path) -> Result<String, Error> {
    let wrong = |what: String| Error::Setting(format!("project {what}"));
    let absolute = std::path::absolute(project).map_err(|error| wrong(error.to_string()))?;
    let text = absolute.into_os_string().into_string();
    text.map_err(|_| wrong("must have a name that is UTF-8".to_owned()))
}

/// Opens the session and applies the settings, without changing the settings that only a server
/// has.
fn open_session(
    engine: &mut Engine,
    new: NewSession,
    settings: SessionSettings,
) -> Result<SessionRow, crate::engine::EngineError> {
    let opened = engine.open_session(new)?;
    let before = SessionSettings::parse(&engine.row(opened.id)?.settings)?;
    let SessionSettings { model, strategy, max_tokens, versioning, turn, .. } = settings;
    let settings = SessionSettings { model, strategy, max_tokens, versioning, turn, ..before };
    engine.set_session_settings(opened.id, &settings.print()?)?;
    engine.row(opened.id)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(AgentError::Defect("opening the conversation").into()))
}

type OpenedStore = (Box<dyn Store>, Option<Owned>);

fn open_store(folder: Option<PathBuf>) -> Result<OpenedStore, Error> {
    let Some(folder) = folder else {
        return Ok((Box::new(LoggedStore::in_memory(SqliteStore::in_memory()?)?), None));
    };
    let owned = Owned::take(&folder)?;
    let store = recovery::open(&folder, owned.relock())?.store;
    Ok((Box::new(store), Some(owned)))
}
