//! Methods about turns: processing one, and what decides how they are processed.

use serde::Deserialize;

use super::Step;
use super::call::Call;
use super::curate::{prepared, session_costs};
use super::embedding::{Embedded, embedded};
use super::error::{agent_error, param_error};
use super::messages::MessageParam;
use super::params::{Name, RequestKey, Short, Switch, ToolNames, decode, stored_count};
use super::present::{entry, figure, keyword, optional_figure};
use super::{checkpoints, messages, templates};
use crate::agent::window::named_strategy;
use crate::curation::config::{Range, Setting, TurnConfig, Value as Figure, WINDOW};
use crate::curation::strategy;
use crate::curation::summary::Prepared;
use crate::engine::{
    Engine, EngineError, NewMessage, SessionSettings, Turn, TurnDone, quality_parts,
};
use crate::ids::MemoryId;
use crate::session::message::Phase;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ProcessTurn {
    session: Option<Name>,
    content: String,
    phase: Option<Phase>,
    coherence: Option<f64>,
    model: Option<String>,
    request_key: Option<RequestKey>,
}

pub(super) fn process_turn(call: Call, params: Value) -> Result<Step, WireError> {
    let mut given: ProcessTurn = decode(params)?;
    if given.coherence.is_some_and(|coherence| !(0.0..=1.0).contains(&coherence)) {
        return Err(param_error("coherence", "must be from 0 to 1"));
    }
    let message = MessageParam::of_user(std::mem::take(&mut given.content), given.phase);
    let message = message.counted(&call.counter())?;
    let text = message.content.to_string();
    let after = call.clone();
    embedded(&call, text, move |embedded| {
        let (session, model) = (given.session.clone(), given.model.clone());
        let new = message.clone();
        let ahead = move |engine: &mut Engine| {
            let row = engine.find_session(session.as_deref())?;
            let costs = session_costs(engine, &row.settings, model.as_deref())?;
            engine.turn_ahead(row.id, &new, &costs)
        };
        prepared(&after, ahead, move |prepared| turn(given, message, embedded, prepared))
    })
}

fn turn(
    given: ProcessTurn,
    message: NewMessage,
    Embedded { vector, outcome }: Embedded,
    prepared: Prepared,
) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let (session, key) = (given.session.as_deref(), given.request_key.as_deref());
        let (row, done) = engine.once_in("process-turn", key, session, |engine, row| {
            let costs = session_costs(engine, &row.settings, given.model.as_deref())?;
            let turn = Turn { message, coherence: given.coherence, vector };
            engine.process_turn(row.id, turn, &costs, &prepared)
        })?;
        let mut map = vec![entry("session", row.name)];
        map.extend(turn_map(&done));
        map.extend(outcome.map(|outcome| entry("embedding", outcome)));
        Ok(Value::Map(map))
    })
}

/// What a turn brought about, as a client is told it.
pub(super) fn turn_map(done: &TurnDone) -> Vec<(Box<str>, Value)> {
    let memories = done.grounding_used.iter().map(|id| MemoryId(*id).into());
    let relevances = done.relevance_scores.iter().copied().map(Value::from);
    let mut map = vec![
        entry("id", messages::name(done.message)),
        entry("turn", figure(done.turn)),
        entry("grounding-used", Value::List(memories.collect())),
        entry("relevance-scores", Value::List(relevances.collect())),
        entry("grounding", &*done.grounding),
        entry("summarization-triggered", done.summarized.is_some()),
        entry("checkpoint-created", done.checkpoint.map_or(Value::Nil, checkpoints::name)),
        entry("rollback-triggered", done.rolled_back.is_some()),
        entry("quality-score", done.quality_score),
        entry("quality", parts(&done.quality_parts)),
        entry("token-count", figure(done.token_count)),
    ];
    if let Some(summarized) = &done.summarized {
        map.extend([
            entry("tokens-before", figure(summarized.tokens_before)),
            entry("tokens-after", figure(summarized.tokens_after)),
            entry("turns-summarized", figure(summarized.turns)),
            entry("summary", &*summarized.text),
        ]);
    }
    map.extend(done.not_summarized.as_ref().map(|why| entry("not-summarized", &**why)));
    if let Some(rolled_back) = &done.rolled_back {
        map.push(entry("commit-restored", checkpoints::name(rolled_back.checkpoint)));
        map.push(entry("turns-lost", figure(rolled_back.turns_lost)));
    }
    map
}

fn parts(parts: &[(String, f64, f64, String)]) -> Value {
    let part = |(name, value, weight, reason): &(String, f64, f64, String)| {
        Value::Map(vec![
            entry("part", keyword(name)),
            entry("value", *value),
            entry("weight", *weight),
            entry("reason", &**reason),
        ])
    };
    Value::List(parts.iter().map(part).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct QualityScore {
    session: Option<Name>,
    model: Option<String>,
}

pub(super) fn quality_score(_: Call, params: Value) -> Result<Step, WireError> {
    let given: QualityScore = decode(params)?;
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let costs = session_costs(engine, &row.settings, given.model.as_deref())?;
        let quality = engine.quality_score(row.id, &costs)?;
        Ok(Value::Map(vec![
            entry("session", row.name),
            entry("quality-score", quality.score),
            entry("quality", parts(&quality_parts(&quality))),
        ]))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Configure {
    session: Option<Name>,
    model: Option<Short>,
    strategy: Option<String>,
    window_tokens: Option<i64>,
    #[serde(default)]
    archive_pruned: Switch,
    #[serde(default)]
    versioning: Switch,
    max_tokens: Option<Value>,
    summarize_at_ratio: Option<Value>,
    quality_threshold: Option<Value>,
    checkpoint_interval: Option<Value>,
    grounding_memories: Option<Value>,
    recent_turns_to_keep: Option<Value>,
    #[serde(default)]
    auto_summarize: Switch,
    #[serde(default)]
    auto_checkpoint: Switch,
    #[serde(default)]
    auto_rollback: Switch,
    #[serde(default)]
    manage: Switch,
    template: Option<String>,
    recent_runs: Option<i64>,
    passthrough_runs: Option<i64>,
    token_threshold: Option<i64>,
    #[serde(default)]
    tools: ToolNames,
    #[serde(default)]
    allowed_tools: ToolNames,
    request_key: Option<RequestKey>,
}

pub(super) fn configure_session(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Configure = decode(params)?;
    if let Some(name) = &given.strategy {
        named_strategy(name).map_err(agent_error)?;
    }
    let window_tokens = given.window_tokens.map(window_size).transpose()?;
    let recent_runs = stored_count("recent-runs", given.recent_runs)?;
    let passthrough_runs = stored_count("passthrough-runs", given.passthrough_runs)?;
    let token_threshold = stored_count("token-threshold", given.token_threshold)?;
    // Checked here, so that the error names the parameter.
    let changes = given.changes();
    changes.iter().try_fold(TurnConfig::default(), |config, (name, value)| {
        let number = number(name, value)?;
        config.with(name, number).map_err(|error| setting_error(name, &error.to_string()))
    })?;
    let (template, session) = (given.template.clone(), given.session.clone().map(|name| name.0));
    templates::usable(&call, template, session, None, move || {
        Step::state(move |engine| {
            let (session, key) = (given.session.as_deref(), given.request_key.as_deref());
            let (row, ()) = engine.once_in("configure-session", key, session, |engine, row| {
                let mut settings = SessionSettings::parse(&row.settings)?;
                let before = settings.clone();
                for (name, value) in changes {
                    if let Ok(number) = number(name, &value) {
                        settings.turn = settings.turn.with(name, number)?;
                    }
                }
                // What is empty or 0 is the default again.
                let model = given.model.map(|Short(model)| model);
                settings.model = model.or(settings.model).filter(|name| !name.is_empty());
                settings.strategy = given.strategy.or(settings.strategy);
                settings.max_tokens =
                    window_tokens.or(settings.max_tokens).filter(|most| *most > 0);
                settings.archive_pruned = given.archive_pruned.0.unwrap_or(settings.archive_pruned);
                settings.versioning = given.versioning.0.unwrap_or(settings.versioning);
                settings.manage = given.manage.0.unwrap_or(settings.manage);
                settings.template =
                    given.template.or(settings.template).filter(|name| !name.is_empty());
                let managing = &mut settings.managing;
                managing.recent_runs = recent_runs.unwrap_or(managing.recent_runs);
                managing.passthrough_runs = passthrough_runs.unwrap_or(managing.passthrough_runs);
                managing.token_threshold = token_threshold.unwrap_or(managing.token_threshold);
                settings.tools = given.tools.names().unwrap_or(settings.tools);
                settings.allowed_tools =
                    given.allowed_tools.names().unwrap_or(settings.allowed_tools);
                match settings == before {
                    true => Ok(()),
                    false => engine.set_session_settings(row.id, &settings.print()?),
                }
            })?;
            effective(row.name, &SessionSettings::parse(&row.settings)?)
        })
    })
}

impl Configure {
    /// The settings of turns that are to change.
    fn changes(&self) -> Vec<(&'static str, Value)> {
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
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// How many tokens a window may have, as a client says it; 0 is the default.
fn window_size(tokens: i64) -> Result<u64, WireError> {
    match u64::try_from(tokens) {
        Ok(size) if size == 0 || WINDOW.has(Figure::Count(size)) => Ok(size),
        _ => {
            let message = format!("is {tokens}, but must be {WINDOW}, or 0 for the default");
            Err(param_error("window-tokens", &message))
        }
    }
}

fn number(name: &str, value: &Value) -> Result<Figure, WireError> {
    match value {
        Value::Int(count @ 0..) => Ok(Figure::Count(count.unsigned_abs())),
        Value::Int(negative) => Ok(Figure::Ratio(*negative as f64)),
        Value::Float(ratio) => Ok(Figure::Ratio(*ratio)),
        Value::Bool(on) => Ok(Figure::Switch(*on)),
        Value::Nil => Ok(Figure::Switch(false)),
        _ => Err(param_error(name, "must be a number")),
    }
}

fn setting_error(name: &str, message: &str) -> WireError {
    // The message names the setting itself; the parameter's name is not to be said twice.
    param_error(name, message.strip_prefix(name).map_or(message, str::trim_start))
}

/// Every setting in effect, with its default and its range.
fn effective(session: String, settings: &SessionSettings) -> Result<Value, EngineError> {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Nil, Value::from);
    let strategy = settings.strategy.as_deref().unwrap_or(strategy::ALL[0].name());
    let turns: Vec<Value> = settings.turn.settings().iter().map(setting).collect();
    Ok(Value::Map(vec![
        entry("session", session),
        entry("model", text(&settings.model)),
        entry("strategy", keyword(strategy)),
        entry("window-tokens", settings.max_tokens.map_or(Value::Nil, figure)),
        entry("archive-pruned", settings.archive_pruned),
        entry("versioning", settings.versioning),
        entry("manage", settings.manage),
        entry("template", settings.template_name()),
        entry("recent-runs", optional_figure(settings.managing.recent_runs)),
        entry("passthrough-runs", optional_figure(settings.managing.passthrough_runs)),
        entry("token-threshold", optional_figure(settings.managing.token_threshold)),
        entry("tools", texts(&settings.tools)),
        entry("allowed-tools", texts(&settings.allowed_tools)),
        entry("settings", Value::List(turns)),
    ]))
}

fn texts(names: &[String]) -> Value {
    Value::List(names.iter().map(|name| Value::from(&**name)).collect())
}

fn setting(setting: &Setting) -> Value {
    let value = |value: Figure| match value {
        Figure::Count(count) => figure(count),
        Figure::Ratio(ratio) => Value::Float(ratio),
        Figure::Switch(on) => Value::Bool(on),
    };
    let mut map = vec![
        entry("name", keyword(setting.name)),
        entry("value", value(setting.value)),
        entry("default", value(setting.default)),
    ];
    match setting.range {
        Range::Count(least, most) => {
            map.extend([entry("least", figure(least)), entry("most", figure(most))]);
        }
        Range::Ratio(least, most) => map.extend([entry("least", least), entry("most", most)]),
        Range::Switch => {}
    }
    Value::Map(map)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ReportUsage {
    model: Short,
    counted: i64,
    reported: i64,
    request_key: Option<RequestKey>,
}

pub(super) fn report_usage(_: Call, params: Value) -> Result<Step, WireError> {
    let given: ReportUsage = decode(params)?;
    let counted = super::params::not_negative("counted", Some(given.counted))?.unwrap_or(0);
    let reported = super::params::not_negative("reported", Some(given.reported))?.unwrap_or(0);
    Step::state(move |engine| {
        let key = given.request_key.as_deref();
        let model = &given.model.0;
        let learned = engine
            .once("report-usage", key, |engine| engine.report_usage(model, counted, reported))?;
        let costs = engine.costs(Some(model))?;
        Ok(Value::Map(vec![
            entry("model", &**model),
            entry("ratio", learned.ratio()),
            entry("reports", figure(learned.reports())),
            entry("factor", costs.measure.factor()),
        ]))
    })
}
