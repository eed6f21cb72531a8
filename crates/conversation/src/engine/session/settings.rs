//! Settings of a session.

use serde::{Deserialize, Serialize};

use super::super::{Costs, Engine, EngineError};
use crate::curation::budget::usable;
use crate::curation::config::TurnConfig;
use crate::curation::notes::NotesOptions;
use crate::store::StoreError;
use crate::store::session::SessionRow;

/// Name of the template for notes in sessions that name none.
pub const DEFAULT_TEMPLATE: &str = "freeform-chat";

/// Settings of a session, stored as JSON. An older program ignores the settings that only a newer
/// one knows, but fails if they are in `turn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SessionSettings {
    /// Model that windows are built for; defaults to the model in the configuration.
    pub model: Option<String>,
    /// Strategy for building windows; defaults to the first of
    /// [`ALL`](crate::curation::strategy::ALL).
    pub strategy: Option<String>,
    /// True if pruned and summarized messages become memories of the session.
    pub archive_pruned: bool,
    /// True if checkpoints and rollbacks are possible.
    pub versioning: bool,
    /// Settings for processing turns.
    pub turn: TurnConfig,
    /// True if notes replace the history that models see.
    pub manage: bool,
    /// Name of the template for notes; defaults to [`DEFAULT_TEMPLATE`].
    pub template: Option<String>,
    /// Overrides of the template's own settings for notes.
    pub managing: NotesOptions,
    /// Names of the tools that the model may call.
    pub tools: Vec<String>,
    /// Names of the tools that the model may call without asking the user each time.
    pub allowed_tools: Vec<String>,
    /// Managers whose items the session shows besides those of its own manager, from the most
    /// general to the most specific.
    pub managers: Vec<String>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            model: None,
            strategy: None,
            archive_pruned: true,
            versioning: true,
            turn: TurnConfig::default(),
            manage: false,
            template: None,
            managing: NotesOptions::default(),
            tools: Vec::new(),
            allowed_tools: Vec::new(),
            managers: Vec::new(),
        }
    }
}

impl SessionSettings {
    /// Returns the name of the template for notes.
    pub fn template_name(&self) -> &str {
        self.template.as_deref().unwrap_or(DEFAULT_TEMPLATE)
    }

    /// Returns all managers whose items the session with this row shows. The session's own manager
    /// is the last.
    pub fn managers(&self, row: &SessionRow) -> Vec<String> {
        let own = row.manager_name();
        let others = self.managers.iter().filter(|manager| **manager != own).cloned();
        others.chain([own.clone()]).collect()
    }

    /// Parses stored settings. An empty text means the defaults.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text)
            .map_err(|error| StoreError::Damaged(format!("a session's settings: {error}")).into())
    }

    /// Serializes the settings for the store.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the settings cannot be serialized.
    pub fn print(&self) -> Result<String, EngineError> {
        serde_json::to_string(self)
            .map_err(|error| StoreError::Damaged(format!("a session's settings: {error}")).into())
    }
}

/// A session as a request finds it. It is loaded once and shared by all steps of the request.
#[derive(Clone)]
pub struct SessionContext {
    /// The session's row.
    pub row: SessionRow,
    /// The session's settings.
    pub settings: SessionSettings,
    /// Token costs for the model that the request is about.
    pub costs: Costs,
    /// Managers whose items the session's windows show.
    pub managers: Vec<String>,
}

impl SessionContext {
    /// Returns the maximum number of tokens of the conversation: the session's setting, else what
    /// the model takes.
    pub fn max_tokens(&self) -> u64 {
        let model = &self.costs.model;
        match self.settings.turn.max_tokens {
            // The model would refuse a window above its limit.
            Some(set) if model.known => set.min(model.limit),
            Some(set) => set,
            None => usable(model.limit),
        }
    }
}

impl Engine {
    /// Loads a session as [`find_session`](Self::find_session) finds it. The token costs are for
    /// `model`, by default the session's own model.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`]; [`StoreError::Damaged`] if the settings cannot be read.
    pub fn session_context(
        &mut self,
        name: Option<&str>,
        model: Option<&str>,
    ) -> Result<SessionContext, EngineError> {
        let row = self.find_session(name)?;
        self.context_of(row, model)
    }

    /// Loads the settings of the session with this row, and the token costs for `model`, by default
    /// the session's own model.
    ///
    /// # Errors
    /// [`EngineError::Store`]; [`StoreError::Damaged`] if the settings cannot be read.
    pub fn context_of(
        &mut self,
        row: SessionRow,
        model: Option<&str>,
    ) -> Result<SessionContext, EngineError> {
        let settings = SessionSettings::parse(&row.settings)?;
        let costs = self.costs(model.or(settings.model.as_deref()))?;
        let managers = settings.managers(&row);
        Ok(SessionContext { row, settings, costs, managers })
    }

    /// Finds a session like [`find_session`](Self::find_session), and returns its settings too.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`]; [`StoreError::Damaged`] if the settings cannot be read.
    pub fn find_with_settings(
        &mut self,
        name: Option<&str>,
    ) -> Result<(SessionRow, SessionSettings), EngineError> {
        let row = self.find_session(name)?;
        let settings = SessionSettings::parse(&row.settings)?;
        Ok((row, settings))
    }
}
