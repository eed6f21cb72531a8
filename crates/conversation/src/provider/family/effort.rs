//! How a model of each family is asked to reason more or less. The user gives one word, and the
//! request gets what the family documents for it.

use serde_json::{Value, json};

use crate::provider::chat::Effort;

/// Tokens of reasoning that each effort allows, for models that want a number: Claude's models to
/// 4.5, and Gemini 2.5.
const BUDGETS: [u64; 3] = [2_048, 6_144, 15_360];
/// Beginnings of the names of Claude's models that want a number of tokens. Later ones decide
/// themselves.
const WITH_BUDGET: &[&str] = &[
    "claude-3",
    "claude-haiku-4",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2",
    "claude-opus-4-5",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
    "claude-sonnet-4-5",
];
/// Least number of tokens of reasoning that Anthropic takes.
const LEAST_BUDGET: u64 = 1_024;
/// Least number of tokens of reasoning of a Gemini model that cannot do without.
const LEAST_OF_GEMINI: u64 = 128;

fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::Off => 0,
        Effort::Low => BUDGETS[0],
        Effort::Medium => BUDGETS[1],
        Effort::High => BUDGETS[2],
    }
}

/// Returns the word of `OpenAI`'s interfaces.
fn word(effort: Effort) -> &'static str {
    if effort == Effort::Off { "none" } else { effort.name() }
}

pub(super) fn openai(_: &str, effort: Effort, body: &mut Value) {
    body["reasoning_effort"] = word(effort).into();
}

pub(super) fn responses(_: &str, effort: Effort, body: &mut Value) {
    body["reasoning"] = json!({"effort": word(effort)});
    if effort != Effort::Off {
        body["reasoning"]["summary"] = "auto".into();
    }
}

pub(super) fn gemini(model: &str, effort: Effort, body: &mut Value) {
    let thinking = match (model.contains("gemini-2"), effort) {
        (true, Effort::Off) => json!({"thinkingBudget": 0}),
        (true, _) => json!({"thinkingBudget": budget(effort), "includeThoughts": true}),
        (false, Effort::Off) => json!({"thinkingLevel": "minimal"}),
        (false, _) => json!({"thinkingLevel": effort.name(), "includeThoughts": true}),
    };
    body["generationConfig"]["thinkingConfig"] = thinking;
}

pub(super) fn ollama(model: &str, effort: Effort, body: &mut Value) {
    // Only these models have levels, and they cannot do without.
    let has_levels = model.contains("gpt-oss") && effort != Effort::Off;
    let other = (effort != Effort::Off).into();
    body["think"] = if has_levels { effort.name().into() } else { other };
}

pub(super) fn anthropic(model: &str, effort: Effort, body: &mut Value) {
    if effort == Effort::Off {
        body["thinking"] = json!({"type": "disabled"});
        return;
    }
    let name = model.to_lowercase().replace('.', "-");
    let has_budget = |begin: &&str| name.contains(*begin);
    // Other vendors imitate the form that all models had.
    match !name.contains("claude") || WITH_BUDGET.iter().any(has_budget) {
        true => set_budget(budget(effort), body),
        false => set_adaptive(effort.name(), body),
    }
    // With reasoning, the interface refuses other values than the usual ones.
    if let Some(body) = body.as_object_mut() {
        body.remove("temperature");
        body.remove("top_p");
    }
}

/// Sets the number of tokens of reasoning, which the length of the answer includes.
fn set_budget(tokens: u64, body: &mut Value) {
    body["thinking"] = json!({"type": "enabled", "budget_tokens": tokens});
    body["max_tokens"] = (body["max_tokens"].as_u64().unwrap_or_default() + tokens).into();
}

fn set_adaptive(word: &str, body: &mut Value) {
    body["thinking"] = json!({"type": "adaptive"});
    body["output_config"]["effort"] = word.into();
}

/// Lowers the length of an answer with its reasoning to what the model takes.
pub(in crate::provider) fn fit_budget(most: u64, body: &mut Value) {
    if body["max_tokens"].as_u64().is_some_and(|tokens| tokens > most) {
        body["max_tokens"] = most.into();
        if let Some(tokens) = body["thinking"]["budget_tokens"].as_u64() {
            body["thinking"]["budget_tokens"] = tokens.min((most / 2).max(LEAST_BUDGET)).into();
        }
    }
}

/// Returns whether a request asks for an effort.
pub(in crate::provider) fn sends_effort(body: &Value) -> bool {
    let members = ["reasoning_effort", "reasoning", "thinking", "think"];
    members.iter().any(|name| !body[*name].is_null())
        || !body["generationConfig"]["thinkingConfig"].is_null()
}

/// Puts the effort into the other form that models of the interface have, or the least that they
/// have. Returns false if there is none.
pub(in crate::provider) fn other_effort(body: &mut Value) -> bool {
    let config = &body["generationConfig"]["thinkingConfig"];
    if body["reasoning_effort"] == "none" {
        body["reasoning_effort"] = "minimal".into();
    } else if body["reasoning"]["effort"] == "none" {
        body["reasoning"]["effort"] = "minimal".into();
    } else if body["thinking"]["type"] == "adaptive" {
        let said = body["output_config"]["effort"].as_str().and_then(Effort::from_name);
        body.as_object_mut().map(|body| body.remove("output_config"));
        set_budget(budget(said.unwrap_or(Effort::Low)), body);
    } else if let Some(tokens) = body["thinking"]["budget_tokens"].as_u64() {
        let most = body["max_tokens"].as_u64().unwrap_or_default();
        body["max_tokens"] = most.saturating_sub(tokens).max(1).into();
        let name = ["low", "medium"][usize::from(tokens >= BUDGETS[1])];
        set_adaptive(if tokens >= BUDGETS[2] { "high" } else { name }, body);
    } else if config["thinkingBudget"] == 0 {
        body["generationConfig"]["thinkingConfig"]["thinkingBudget"] = LEAST_OF_GEMINI.into();
    } else if config["thinkingLevel"] == "minimal" {
        body["generationConfig"]["thinkingConfig"]["thinkingLevel"] = "low".into();
    } else {
        return false;
    }
    true
}
