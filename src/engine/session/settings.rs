//! What can be configured for a session.

use serde::{Deserialize, Serialize};

use super::super::{Engine, EngineError};
use crate::curation::config::TurnConfig;
use crate::curation::managed::SaidSettings;
use crate::store::StoreError;
use crate::store::session::SessionRow;

/// The template that manages a session for which none is named.
pub const DEFAULT_TEMPLATE: &str = "freeform-chat";

/// A session's settings, stored with it as JSON. What a newer program adds is left out by an
/// older one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SessionSettings {
    /// The model that windows are for; the server's by default.
    pub model: Option<String>,
    /// The strategy that windows are built by; the first of
    /// [`ALL`](crate::curation::strategy::ALL) by default.
    pub strategy: Option<String>,
    /// How many tokens a window may have; by default what the model and the design allow.
    pub max_tokens: Option<u64>,
    /// Whether what is pruned becomes memories of the session.
    pub archive_pruned: bool,
    /// Whether checkpoints are taken.
    pub versioning: bool,
    /// How turns are processed.
    pub turn: TurnConfig,
    /// Whether a template manages the history that a model is shown.
    pub manage: bool,
    /// Which one; [`DEFAULT_TEMPLATE`] by default.
    pub template: Option<String>,
    /// When and how, where that is not left to the template.
    pub managing: SaidSettings,
    /// The tools that the model may call, by name.
    pub tools: Vec<String>,
    /// Those of them that it may call without being allowed to each time.
    pub allowed_tools: Vec<String>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            model: None,
            strategy: None,
            max_tokens: None,
            archive_pruned: true,
            versioning: true,
            turn: TurnConfig::default(),
            manage: false,
            template: None,
            managing: SaidSettings::default(),
            tools: Vec::new(),
            allowed_tools: Vec::new(),
        }
    }
}

impl SessionSettings {
    /// The name of the template that manages the history, if one is to.
    pub fn template_name(&self) -> &str {
        self.template.as_deref().unwrap_or(DEFAULT_TEMPLATE)
    }

    /// The settings as they were stored; an empty text is the default ones.
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

    /// The settings as they are stored.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], which numbers that JSON has no word for bring about.
    pub fn print(&self) -> Result<String, EngineError> {
        serde_json::to_string(self)
            .map_err(|error| StoreError::Damaged(format!("a session's settings: {error}")).into())
    }
}

impl Engine {
    /// A session as [`find_session`](Self::find_session) finds it, with its settings.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], and [`StoreError::Damaged`] settings.
    pub fn find_with_settings(
        &mut self,
        name: Option<&str>,
    ) -> Result<(SessionRow, SessionSettings), EngineError> {
        let row = self.find_session(name)?;
        let settings = SessionSettings::parse(&row.settings)?;
        Ok((row, settings))
    }
}
