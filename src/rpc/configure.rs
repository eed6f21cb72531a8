//! The method that changes the settings of a session.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::error::param_error;
use super::params::{
    InSession, ManagerName, Name, Short, Switch, manager_names, new_name, stored_count,
};
use super::templates;
use super::tool_names::ToolNames;
use crate::agent::tools::context;
use crate::agent::window::named_strategy;
use crate::curation::config::{
    CurationConfigError, Range, Setting, SettingValue as Figure, TurnConfig, need_not_be_set,
};
use crate::curation::strategy;
use crate::engine::{DEFAULT_TEMPLATE, Engine, SessionSettings};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Configure {
    session: Option<InSession>,
    /// New name of the session.
    name: Option<Name>,
    /// Model that windows are built for; `""` for the server's model.
    model: Option<Short>,
    /// Strategy for choosing messages.
    #[schemars(extend("enum" = strategy::names()))]
    strategy: Option<String>,
    #[schemars(description = with_default("Turn pruned and summarized messages into memories", "archive-pruned"))]
    #[serde(default)]
    archive_pruned: Switch,
    #[schemars(description = with_default("Allow checkpoints and rollbacks", "versioning"))]
    #[serde(default)]
    versioning: Switch,
    /// Maximum number of tokens that are sent; 0 for the default. Defaults to what the model takes
    /// beside its answer, at most 96,000; without a provider, `process-turn` takes 8192.
    #[schemars(with = "Option<u64>")]
    max_tokens: Option<Value>,
    /// Share of `:max-tokens` at which to summarize; 0 for the default. By default, older turns are
    /// summarized when the window does not hold them; without a provider, at 0.8.
    #[schemars(with = "Option<f64>")]
    summarize_at_ratio: Option<Value>,
    #[schemars(description = with_default("Quality of the context, from 0 to 1, below which to roll back", "quality-threshold"))]
    #[schemars(with = "Option<f64>")]
    quality_threshold: Option<Value>,
    #[schemars(description = with_default("Number of turns between checkpoints", "checkpoint-interval"))]
    #[schemars(with = "Option<u64>")]
    checkpoint_interval: Option<Value>,
    #[schemars(description = with_default("Maximum number of memories for a turn", "grounding-memories"))]
    #[schemars(with = "Option<u64>")]
    grounding_memories: Option<Value>,
    #[schemars(description = with_default("Minimum number of recent turns that automatic summaries leave unchanged", "recent-turns-to-keep"))]
    #[schemars(with = "Option<u64>")]
    recent_turns_to_keep: Option<Value>,
    #[schemars(description = with_default("Summarize in `process-turn`", "auto-summarize"))]
    #[serde(default)]
    auto_summarize: Switch,
    #[schemars(description = with_default("Take checkpoints in `process-turn`", "auto-checkpoint"))]
    #[serde(default)]
    auto_checkpoint: Switch,
    #[schemars(description = with_default("Roll back in `process-turn`", "auto-rollback"))]
    #[serde(default)]
    auto_rollback: Switch,
    #[schemars(description = with_default("Replace the history with notes in `chat`", "manage"))]
    #[serde(default)]
    manage: Switch,
    #[schemars(description = format!("Template to use; `\"\"` for `{DEFAULT_TEMPLATE}`."))]
    template: Option<String>,
    /// Same as in `take-notes`; -1 stands for the template's value.
    recent_runs: Option<i64>,
    /// Same as in `take-notes`; -1 stands for the template's value.
    passthrough_runs: Option<i64>,
    /// Same as in `take-notes`; -1 stands for the template's value.
    token_threshold: Option<i64>,
    /// Tools that the model may call in `chat`: `t` means all of the server's tools, `nil` none;
    /// defaults to `nil`. Tools that clients bring are offered in addition.
    #[serde(default)]
    tools: ToolNames,
    /// Tools that the model may call without asking; defaults to `nil`. `t` means the server's
    /// tools. A client's tool must be named, and stays allowed until its client disconnects; this
    /// does not allow another client's tool with the same name.
    #[serde(default)]
    allowed_tools: ToolNames,
    /// Managers whose items the session shows before those of its own manager, from general to
    /// specific.
    managers: Option<Vec<ManagerName>>,
    /// Folder of the session's project, in which its model may then work. Ask the user before you
    /// give a session what only a recording told.
    project: Option<Short>,
}

/// Describes the parameter for a setting, with the setting's default.
fn with_default(what: &str, name: &str) -> String {
    let SessionSettings { turn, archive_pruned, versioning, manage, .. } = Default::default();
    let default = match name {
        "archive-pruned" => Some(Figure::Switch(archive_pruned)),
        "versioning" => Some(Figure::Switch(versioning)),
        "manage" => Some(Figure::Switch(manage)),
        _ => turn.settings().into_iter().find(|it| it.name == name).and_then(|it| it.default),
    };
    match default {
        Some(Figure::Count(count)) => format!("{what}; defaults to {count}."),
        Some(Figure::Ratio(ratio)) => format!("{what}; defaults to {ratio}."),
        Some(Figure::Switch(true)) => format!("{what}; defaults to `t`."),
        Some(Figure::Switch(false)) => format!("{what}; defaults to `nil`."),
        None => format!("{what}."),
    }
}

pub(super) fn configure_session(call: MethodCall, given: Configure) -> Result<Step, WireError> {
    if let Some(name) = &given.strategy {
        named_strategy(name)?;
    }
    let recent_runs = stored_count("recent-runs", given.recent_runs)?;
    let passthrough_runs = stored_count("passthrough-runs", given.passthrough_runs)?;
    let token_threshold = stored_count("token-threshold", given.token_threshold)?;
    let managers = given.managers.clone().map(manager_names).transpose()?;
    let tools = given.tools.clone().stored(&call, "tools")?;
    let allowed = given.allowed_tools.clone().stored(&call, "allowed-tools")?.map(by_owner);
    let (tools_of_clients, client) = (call.tools.client_tools.clone(), Arc::clone(&call.client));
    let changes = given.changes()?;
    let name = given.name.clone().map(new_name).transpose()?;
    // Checked here so that the error names the parameter.
    changes.iter().try_fold(TurnConfig::default(), |config, (name, figure)| {
        config.with(name, *figure).map_err(|error| setting_error(name, &error))
    })?;
    let (template, session) = (given.template.clone(), given.session.clone().map(|name| name.0));
    let project = move |engine: &mut Engine| engine.find_session(session.as_deref()).ok()?.project;
    templates::usable(&call, template, project, move || {
        Step::state(move |engine| {
            let session = given.session.as_deref();
            let (row, ()) = engine.in_session(session, |engine, row| {
                let mut settings = SessionSettings::parse(&row.settings)?;
                let before = settings.clone();
                for (name, figure) in changes {
                    settings.turn = settings.turn.with(name, figure)?;
                }
                // An empty text or 0 restores the default.
                let model = given.model.map(|Short(model)| model);
                settings.model = model.or(settings.model).filter(|name| !name.is_empty());
                settings.strategy = given.strategy.or(settings.strategy);
                settings.archive_pruned = given.archive_pruned.0.unwrap_or(settings.archive_pruned);
                settings.versioning = given.versioning.0.unwrap_or(settings.versioning);
                settings.manage = given.manage.0.unwrap_or(settings.manage);
                settings.template =
                    given.template.or(settings.template).filter(|name| !name.is_empty());
                let managing = &mut settings.managing;
                managing.recent_runs = recent_runs.unwrap_or(managing.recent_runs);
                managing.passthrough_runs = passthrough_runs.unwrap_or(managing.passthrough_runs);
                managing.token_threshold = token_threshold.unwrap_or(managing.token_threshold);
                settings.tools = tools.unwrap_or(settings.tools);
                if let Some((own, of_clients)) = allowed {
                    settings.allowed_tools = own;
                    tools_of_clients.allow_only(&client, row, &of_clients);
                }
                settings.managers = managers.unwrap_or(settings.managers);
                if settings != before {
                    engine.set_session_settings(row.id, &settings.print()?)?;
                }
                if let Some(Short(project)) = &given.project {
                    engine.set_session_project(row.id, project)?;
                }
                if let Some(name) = &name {
                    engine.rename_session(&row.name, name)?;
                }
                Ok(())
            })?;
            let mut settings = SessionSettings::parse(&row.settings)?;
            settings.allowed_tools = by_owner(settings.allowed_tools).0;
            settings.allowed_tools.extend(tools_of_clients.allowed(row.id));
            Ok(effective(&row.name, &settings))
        })
    })
}

/// Separates the names of the server's tools from those of clients' tools.
fn by_owner(names: Vec<String>) -> (Vec<String>, Vec<String>) {
    names.into_iter().partition(|name| context::find(name).is_some())
}

impl Configure {
    /// Returns the turn settings that the call changes, with their new values.
    fn changes(&self) -> Result<Vec<(&'static str, Figure)>, WireError> {
        let switch = |on: Switch| on.0.map(Value::Bool);
        let all = [
            ("max-tokens", self.max_tokens.clone()),
            ("summarize-at-ratio", self.summarize_at_ratio.clone()),
            ("quality-threshold", self.quality_threshold.clone()),
            ("checkpoint-interval", self.checkpoint_interval.clone()),
            ("grounding-memories", self.grounding_memories.clone()),
            ("recent-turns-to-keep", self.recent_turns_to_keep.clone()),
            ("auto-summarize", switch(self.auto_summarize)),
            ("auto-checkpoint", switch(self.auto_checkpoint)),
            ("auto-rollback", switch(self.auto_rollback)),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| Ok((name, number(name, &value)?))).collect()
    }
}

fn number(name: &str, value: &Value) -> Result<Figure, WireError> {
    match value {
        Value::Int(count @ 0..) => Ok(Figure::Count(count.unsigned_abs())),
        Value::Int(negative) => Ok(Figure::Ratio(*negative as f64)),
        Value::Float(ratio) => Ok(Figure::Ratio(*ratio)),
        Value::Bool(on) => Ok(Figure::Switch(*on)),
        Value::Nil => Ok(Figure::Switch(false)),
        _ => Err(param_error(name, &format!("must be a number, got {}", value.describe()))),
    }
}

fn setting_error(name: &str, error: &CurationConfigError) -> WireError {
    let message = match error {
        CurationConfigError::OutOfRange { value, range, .. } if need_not_be_set(name) => {
            format!("must be {range}, or 0 for the default, got {value}")
        }
        CurationConfigError::OutOfRange { value, range, .. } => {
            format!("must be {range}, got {value}")
        }
        CurationConfigError::Unknown { .. } => error.to_string(),
    };
    param_error(name, &message)
}

/// All settings in effect.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionSettings")]
pub(super) struct SettingsResult<'a> {
    /// Name of the session.
    session: &'a str,
    /// Model that windows are built for; `nil` for the server's model.
    model: Option<&'a str>,
    /// Strategy for choosing messages.
    strategy: Keyword<&'a str>,
    /// True if pruned and summarized messages become memories.
    archive_pruned: bool,
    /// True if checkpoints and rollbacks are possible.
    versioning: bool,
    /// True if `chat` replaces the history with notes.
    manage: bool,
    /// Template for the notes.
    template: &'a str,
    /// Number of recent runs to show; `nil` stands for the template's value.
    recent_runs: Option<u64>,
    /// Number of recent runs that follow the notes unchanged; `nil` stands for the template's
    /// value.
    passthrough_runs: Option<u64>,
    /// Tokens of history below which no notes are taken; `nil` stands for the template's value.
    token_threshold: Option<u64>,
    /// Tools that the model may call.
    tools: &'a [String],
    /// Tools that the model may call without asking.
    allowed_tools: &'a [String],
    /// Managers whose items the session shows before those of its own manager; absent if there are
    /// none.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    managers: &'a [String],
    /// Settings for processing turns.
    settings: Vec<SettingResult>,
}

/// A turn setting with its default and its range.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Setting")]
struct SettingResult {
    /// Name of the setting.
    name: Keyword<&'static str>,
    /// Value in effect; `nil` if the setting is not set.
    value: Option<Figure>,
    /// Default; `nil` for a setting that need not be set.
    default: Option<Figure>,
    /// Lowest allowed value; absent for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<Figure>,
    /// Highest allowed value; absent for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<Figure>,
}

fn effective(session: &str, settings: &SessionSettings) -> Value {
    Value::of(&SettingsResult {
        session,
        model: settings.model.as_deref(),
        strategy: Keyword(settings.strategy.as_deref().unwrap_or(strategy::ALL[0].name())),
        archive_pruned: settings.archive_pruned,
        versioning: settings.versioning,
        manage: settings.manage,
        template: settings.template_name(),
        recent_runs: settings.managing.recent_runs,
        passthrough_runs: settings.managing.passthrough_runs,
        token_threshold: settings.managing.token_threshold,
        tools: &settings.tools,
        allowed_tools: &settings.allowed_tools,
        managers: &settings.managers,
        settings: settings.turn.settings().iter().map(setting).collect(),
    })
}

fn setting(setting: &Setting) -> SettingResult {
    let (least, most) = match setting.range {
        Range::Count(least, most) => (Some(Figure::Count(least)), Some(Figure::Count(most))),
        Range::Ratio(least, most) => (Some(Figure::Ratio(least)), Some(Figure::Ratio(most))),
        Range::Switch => (None, None),
    };
    let Setting { name, value, default, .. } = *setting;
    SettingResult { name: Keyword(name), value, default, least, most }
}
