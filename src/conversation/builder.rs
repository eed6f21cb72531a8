//! Opens conversations.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Conversation, ConversationError};
use crate::context::change::Settings;
use crate::context::manager::DEFAULT_CAPACITY;
use crate::curation::config::TurnConfig;
use crate::curation::strategy;
use crate::curation::summary::{Extractive, Summarizer};
use crate::engine::{Clock, Engine, Models, SessionSettings};
use crate::store::Store;
use crate::store::logged::LoggedStore;
use crate::store::ownership::Owned;
use crate::store::recovery;
use crate::store::session::NewSession;
use crate::store::sqlite::SqliteStore;
use crate::tokens::TokenizerName;
use crate::tokens::model::Override;

/// Options for opening a [`Conversation`].
pub struct Builder {
    name: String,
    folder: Option<PathBuf>,
    project: Option<String>,
    model: Option<String>,
    overrides: Vec<Override>,
    tokenizer: TokenizerName,
    config: TurnConfig,
    versioning: bool,
    strategy: Option<String>,
    summarizer: Box<dyn Summarizer>,
    clock: Clock,
}

impl Builder {
    pub(super) fn named(name: String) -> Self {
        Self {
            name,
            folder: None,
            project: None,
            model: None,
            overrides: Vec::new(),
            tokenizer: TokenizerName::default(),
            config: TurnConfig::default(),
            versioning: true,
            strategy: None,
            summarizer: Box::new(Extractive),
            clock: Box::new(|| jiff::Timestamp::now().as_millisecond()),
        }
    }

    /// Keeps the conversation in a folder. This can be the folder of a server that is not running.
    /// Without a folder, nothing survives the process.
    #[must_use]
    pub fn state_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Sets the folder of the project that the conversation is about. Conversations share the
    /// memories of their project.
    #[must_use]
    pub fn project(self, project: impl Into<String>) -> Self {
        Self { project: Some(project.into()), ..self }
    }

    /// Sets the model that windows are for. It decides the cost of messages.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets values for models that differ from the built-in table.
    #[must_use]
    pub fn models(self, overrides: Vec<Override>) -> Self {
        Self { overrides, ..self }
    }

    /// Sets the tokenizer that counts tokens; o200k by default.
    #[must_use]
    pub fn tokenizer(self, tokenizer: TokenizerName) -> Self {
        Self { tokenizer, ..self }
    }

    /// Sets how turns are processed.
    #[must_use]
    pub fn config(self, config: TurnConfig) -> Self {
        Self { config, ..self }
    }

    /// Turns checkpoints on or off; they are on by default.
    #[must_use]
    pub fn versioning(self, versioning: bool) -> Self {
        Self { versioning, ..self }
    }

    /// Sets the strategy that chooses from the messages, by name; the first of [`strategy::ALL`] by
    /// default.
    #[must_use]
    pub fn strategy(self, name: impl Into<String>) -> Self {
        Self { strategy: Some(name.into()), ..self }
    }

    /// Sets the summarizer that describes older turns; [`Extractive`] by default. The ledger is
    /// always added to its text.
    #[must_use]
    pub fn summarizer(self, summarizer: impl Summarizer + Send + 'static) -> Self {
        Self { summarizer: Box::new(summarizer), ..self }
    }

    /// Sets the clock, which returns Unix milliseconds; the system's clock by default.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> i64 + Send + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Opens the conversation with this name, or creates it. The settings given here also apply to
    /// a conversation that already exists.
    ///
    /// # Errors
    /// Every [`ConversationError`].
    pub fn open(self) -> Result<Conversation, ConversationError> {
        self.config.check()?;
        let strategy = match &self.strategy {
            None => strategy::ALL[0],
            Some(name) => strategy::find(name)
                .ok_or_else(|| ConversationError::NoSuchStrategy { name: name.clone() })?,
        };
        let (store, folder) = open_store(self.folder)?;
        let counter = self.tokenizer.counter();
        let models = Models::new(Arc::clone(&counter), self.overrides, self.model.clone());
        let defaults = Settings { max_items: DEFAULT_CAPACITY };
        let mut engine = Engine::new(store, self.clock, defaults)?.with_models(models);
        let settings = SessionSettings {
            model: self.model.clone(),
            strategy: self.strategy,
            versioning: self.versioning,
            turn: self.config,
            ..SessionSettings::default()
        };
        let settings = settings.print()?;
        let new = NewSession {
            name: self.name,
            project: self.project,
            settings: settings.clone(),
            ..NewSession::default()
        };
        let id = engine.run_alone(|engine| {
            let opened = engine.open_session(new)?;
            engine.set_session_settings(opened.id, &settings)?;
            Ok(opened.id)
        })?;
        Ok(Conversation {
            engine,
            id,
            model: self.model,
            counter,
            strategy,
            summarizer: self.summarizer,
            grounding: String::new(),
            _folder: folder,
        })
    }
}

type OpenedStore = (Box<dyn Store>, Option<Owned>);

fn open_store(folder: Option<PathBuf>) -> Result<OpenedStore, ConversationError> {
    let Some(folder) = folder else {
        return Ok((Box::new(LoggedStore::in_memory(SqliteStore::in_memory()?)?), None));
    };
    let owned = Owned::take(&folder)?;
    let store = recovery::open(&folder, owned.relock())?.store;
    Ok((Box::new(store), Some(owned)))
}
