//! What a server refuses, learned from its refusals: for each model, so that nothing is refused
//! twice. Kept in memory, since a server may change.

mod change;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use self::change::{RequestChange, as_text};
use super::chat::Request;
use super::error::ErrorKind;
use super::family::{Family, INCLUDED, fit_budget, other_effort, sends_effort};
use super::normal::IDS;
use super::plain::plain;
use super::refusal::ServerRefusal;
use super::shown;
use crate::session::message::Role;

/// Maximum number of changes to one request.
pub(super) const MOST_CHANGES: usize = 6;
/// The two names for the maximum length of an answer.
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];
/// The name of that length in the Responses API.
const LENGTH: &str = "max_output_tokens";
/// Words of which a refusal has one if it is about the effort.
const EFFORT: &[&str] = &[
    "effort",
    "budget_tokens",
    "output_config",
    "adaptive",
    "thinking.type",
    "thinking_config",
    "thinkingconfig",
    "thinking_level",
    "thinkinglevel",
    "thinking level",
    "thinking_budget",
    "thinkingbudget",
    "thinking budget",
    "budget 0",
    "thinking mode",
    "support thinking",
    "support reasoning",
    "\"think\"",
    ".think ",
];
/// Words of which a refusal has one if it is about a PDF.
const PDF: [&str; 8] =
    ["pdf", "file", "document", "content type", "content[", "part type", "mime", "image_url"];
/// The member with which Anthropic's interface marks what a cache may keep.
const MARK: &str = "cache_control";
/// Maximum depth of a body and of a schema.
const DEEPEST: usize = 32;

/// The changes that one model's server needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LearnedChanges {
    changes: BTreeSet<RequestChange>,
    /// Maximum length of an answer in tokens.
    most_tokens: Option<u64>,
    /// Whether the server's list of models says that this one takes PDFs.
    pub(super) pdf: Option<bool>,
}

/// Words with which servers refuse what they do not know.
static REFUSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "not support|unsupported|unrecognized|unknown|unexpected|extra_forbidden|extra inputs|\
                 not permitted|not allowed|not enabled|not available|not implemented|disabled|\
                 invalid|illegal|cannot|can't|no endpoints found|requires|must be|should be|only|deprecated|\
                 additional properties|must not|not valid|forbidden|no longer|does not exist|missing|\
                 without its required|could not be verified|must be verified|cannot unmarshal|doesn't support|\
                 must alternate|expects the|must define";
    Regex::new(words).ok()
});

fn pattern(form: &'static str) -> Option<Regex> {
    Regex::new(form).ok()
}

static SYSTEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"system.{0,20}(role|message|prompt|instruction)|(role|message|prompt|instruction).{0,40}\bsystem\b|developer instruction|system_?instruction|roles must alternate",
    )
});
static ONE_TOOL: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"(tools|functions|function_?declarations)(\[|\.)\d"));
/// Words about the thinking of Anthropic's interface as a member of the request.
static THINKING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(r"^(body\W+)?thinking\W|(argument|parameter|field|name)s?\W+(supplied\W+)?thinking\b")
});
static NULL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"content.*(\bnull\b|\bnone\b|nonetype|valid string|string type|be a string|expected string)",
    )
});
static MOST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"(?:at most|<=|less than or equal to|no more than|cannot exceed|up to|> ?|maximum (?:allowed )?(?:value )?(?:is|of)|\[1, ?|between [01] and)[\s`']*(\d{2,})|to (\d{2,}) \(exclusive\)",
    )
});

fn is_like(form: &LazyLock<Option<Regex>>, words: &str) -> bool {
    form.as_ref().is_some_and(|form| form.is_match(words))
}

impl LearnedChanges {
    /// Learns from a refusal of `body`. Returns what changes, as a phrase for the user; `None` if
    /// the refusal teaches nothing new.
    pub(super) fn learn(
        &mut self,
        family: Family,
        refusal: &ServerRefusal,
        body: &Value,
    ) -> Option<&'static str> {
        if !matches!(refusal.kind, ErrorKind::BadRequest | ErrorKind::Unavailable) {
            return None;
        }
        let words = &*refusal.words;
        if let Some(most) = self.fewer_tokens(words, body) {
            self.most_tokens = Some(most);
            return Some("it does not give such long answers; asking for a shorter one");
        }
        let found = self.found(family, words, body)?;
        // In the other form it was refused, too.
        if found == RequestChange::WithReasoning || found == RequestChange::WithoutReasoning {
            self.changes.remove(&RequestChange::WithReasoning);
        }
        self.changes.insert(found).then(|| found.phrase())
    }

    fn fewer_tokens(&self, words: &str, body: &Value) -> Option<u64> {
        let is_named = LIMITS
            .iter()
            .chain(&[LENGTH, "maxoutputtokens", "output tokens"])
            .any(|it| words.contains(it));
        let config = &body["generationConfig"]["maxOutputTokens"];
        let sent = LIMITS
            .iter()
            .chain(&[LENGTH])
            .map(|name| &body[*name])
            .chain([config])
            .find_map(Value::as_u64)?;
        let found = MOST.as_ref().filter(|_| is_named)?.captures(words)?;
        let figure = |at: usize| found.get(at)?.as_str().parse::<u64>().ok();
        let most = figure(1).or_else(|| figure(2)?.checked_sub(1))?;
        (most < sent && self.most_tokens.is_none_or(|known| most < known)).then_some(most)
    }

    fn found(&self, family: Family, words: &str, body: &Value) -> Option<RequestChange> {
        use RequestChange as C;
        if !is_like(&REFUSES, words) {
            return None;
        }
        let says = |name: &str| words.contains(name);
        let sends = |name: &str| !body[name].is_null();
        let samples = |name: &str| {
            let places = [body, &body["generationConfig"], &body["options"]];
            places.iter().any(|place| !place[name].is_null())
        };
        let sends_text = |text: &str| body.to_string().contains(text);
        let is_openais = family.facts().is_openais();
        let has = |change: C| self.changes.contains(&change);
        let is_new = |change: C, so: bool| (so && !has(change)).then_some(change);
        let tools = sends("tools");
        let reasoning =
            ["reasoning", "thinking", "thought", "signature", "extra_content", "encrypted"];
        let about_reasoning = reasoning.iter().any(|it| says(it));
        let is_wanted =
            ["passed back", "missing", "must be provided", "required", "must include", "must have"]
                .iter()
                .any(|it| says(it));
        let about_effort =
            sends_effort(body) && (EFFORT.iter().any(|it| says(it)) || is_like(&THINKING, words));
        let has_other_effort = other_effort(&mut body.clone());
        let has_summary = !body["reasoning"]["summary"].is_null();
        let includes = body["include"][0] == INCLUDED;
        let limit = LIMITS.iter().chain(&[LENGTH]).any(|name| sends(name) && says(name));
        // Where the parameters of the request are named, none of a tool are meant.
        let names_parameters = says("support parameters:") || says("supported parameters:");
        let about_schema = (["schema", "properties", "$ref", "$defs"].iter().any(|it| says(it))
            || (says("parameters") && !names_parameters))
            && (says("tool") || says("function") || says("schema"));
        let about_system = is_like(&SYSTEM, words) && has_system(body);
        let about_tools = says("tool") || says("function call") || says("functions");
        let has_null = || {
            each_message(body).any(|said| said["content"].is_null() && said["role"] == "assistant")
        };
        is_new(C::WithoutTemperature, samples("temperature") && says("temperature"))
            .or(is_new(
                C::WithoutTopP,
                (samples("top_p") || samples("topP")) && (says("top_p") || says("topp")),
            ))
            .or(is_new(
                C::WithSignatures,
                about_reasoning && says("thought_signature") && is_wanted,
            ))
            .or(is_new(
                C::WithReasoning,
                about_reasoning
                    && is_wanted
                    && says("reasoning_content")
                    && is_openais
                    && sends("messages"),
            ))
            .or(is_new(C::PdfAsText, PDF.iter().any(|it| says(it)) && sends_text(shown::PDF)))
            .or(is_new(C::WithoutSummary, has_summary && says("summar")))
            .or(is_new(C::OtherEffort, about_effort && has_other_effort))
            .or(is_new(C::WithoutEffort, about_effort))
            .or(is_new(C::WithoutReasoning, about_reasoning && sends_reasoning(body)))
            .or(is_new(C::WithoutInclude, includes && (says("encrypted") || says("include"))))
            .or(is_new(
                C::WithoutStreamOptions,
                sends("stream_options") && (says("stream_options") || says("include_usage")),
            ))
            .or(is_new(C::OtherLimit, limit && is_openais && !sends(LENGTH)))
            .or(is_new(C::WithoutLimit, limit && is_openais))
            .or(is_new(C::WithoutMarks, says(MARK) && sends_text(&format!("\"{MARK}\":"))))
            .or(is_new(C::PlainSchemas, tools && about_schema))
            .or(is_new(C::WithoutToolChoice, sends("tool_choice") && says("tool_choice")))
            .or(is_new(C::WithoutSystem, about_system))
            .or(is_new(C::TextForNull, is_like(&NULL, words) && has_null()))
            .or(is_new(C::CallsAsText, !tools && about_tools && sends_calls(body)))
            .or(is_new(
                C::WithoutTools,
                tools && about_tools && !is_like(&ONE_TOOL, words) && !about_schema,
            ))
            .or(is_new(C::WithoutStream, body["stream"] == true && says("stream")))
    }

    /// Returns whether the model takes messages with calls and results in a request.
    pub(super) fn takes_calls(&self, request: &Request) -> bool {
        let has = |change| self.changes.contains(&change);
        !(has(RequestChange::WithoutTools)
            || request.tools.is_empty() && has(RequestChange::CallsAsText))
    }

    /// Returns whether the model takes PDFs, as far as its server told.
    pub(super) fn takes_pdf(&self) -> Option<bool> {
        if self.changes.contains(&RequestChange::PdfAsText) { Some(false) } else { self.pdf }
    }

    /// Changes a request before it is brought into normal form.
    pub(super) fn change(&self, request: &mut Request) {
        for change in &self.changes {
            match change {
                RequestChange::WithoutTools => request.tools.clear(),
                RequestChange::PlainSchemas => {
                    request
                        .tools
                        .iter_mut()
                        .for_each(|tool| tool.schema = plain(&tool.schema, DEEPEST));
                }
                RequestChange::PdfAsText => request.messages.iter_mut().for_each(as_text),
                RequestChange::WithoutTemperature => request.temperature = None,
                RequestChange::WithoutTopP => request.top_p = None,
                RequestChange::WithoutEffort => request.effort = None,
                RequestChange::WithoutReasoning => {
                    for opaque in
                        request.messages.iter_mut().filter_map(|said| said.opaque.as_mut())
                    {
                        *opaque = json!({ IDS: opaque[IDS] });
                    }
                }
                _ => {}
            }
        }
        if let Some(most) = self.most_tokens {
            request.max_tokens = Some(request.max_tokens.map_or(most, |tokens| tokens.min(most)));
        }
    }

    /// Changes a request in normal form.
    pub(super) fn change_normal(&self, request: &mut Request) {
        let is_system = request.messages.first().is_some_and(|first| first.role == Role::System);
        if !self.changes.contains(&RequestChange::WithoutSystem)
            || !is_system
            || request.messages.len() < 2
        {
            return;
        }
        let system = request.messages.remove(0);
        let user = &mut request.messages[0];
        user.content = format!("{}\n\n{}", system.content, user.content).into();
        request.stable = request.stable.saturating_sub(1);
    }

    /// Changes the body of a request.
    pub(super) fn change_body(&self, body: &mut Value) {
        let remove =
            |body: &mut Value, name: &str| body.as_object_mut().and_then(|body| body.remove(name));
        for change in &self.changes {
            match change {
                RequestChange::WithoutToolChoice => drop(remove(body, "tool_choice")),
                RequestChange::WithoutStreamOptions => drop(remove(body, "stream_options")),
                RequestChange::WithoutStream => {
                    remove(body, "stream_options");
                    body["stream"] = false.into();
                }
                RequestChange::OtherLimit => {
                    let found = LIMITS.iter().find_map(|name| Some((*name, remove(body, name)?)));
                    if let Some((name, limit)) = found {
                        let other = LIMITS.iter().find(|other| **other != name);
                        body[*other.unwrap_or(&name)] = limit;
                    }
                }
                RequestChange::WithoutLimit => {
                    LIMITS.iter().chain(&[LENGTH]).for_each(|name| drop(remove(body, name)));
                }
                RequestChange::WithoutInclude => drop(remove(body, "include")),
                RequestChange::OtherEffort => drop(other_effort(body)),
                RequestChange::WithoutSummary => drop(remove(&mut body["reasoning"], "summary")),
                RequestChange::PlainSchemas => {
                    let tools = body.pointer_mut("/tools/0/functionDeclarations");
                    for tool in tools.and_then(Value::as_array_mut).into_iter().flatten() {
                        let schema = remove(tool, "parametersJsonSchema").unwrap_or_default();
                        // The interface refuses a schema without properties here.
                        if schema["properties"].as_object().is_some_and(|all| !all.is_empty()) {
                            tool["parameters"] = schema;
                        }
                    }
                }
                RequestChange::WithoutMarks => unmark(body, DEEPEST),
                RequestChange::TextForNull
                | RequestChange::WithReasoning
                | RequestChange::WithSignatures => {
                    let messages = ["messages", "contents"].iter().find(|it| !body[**it].is_null());
                    let messages = messages.and_then(|name| body[*name].as_array_mut());
                    messages.into_iter().flatten().for_each(|said| change.change_message(said));
                }
                _ => {}
            }
        }
        if let Some(most) = self.most_tokens {
            fit_budget(most, body);
        }
    }
}

fn each_message(body: &Value) -> impl Iterator<Item = &Value> {
    body["messages"].as_array().into_iter().flatten()
}

fn sends_calls(body: &Value) -> bool {
    each_message(body).any(|said| !said["tool_calls"].is_null())
}

fn has_system(body: &Value) -> bool {
    let is_first = each_message(body).next().is_some_and(|said| said["role"] == "system");
    let members = ["instructions", "system", "systemInstruction"];
    is_first || members.iter().any(|name| !body[*name].is_null())
}

/// Returns whether a request sends reasoning back, or what was made up in its place.
fn sends_reasoning(body: &Value) -> bool {
    let of_message =
        ["reasoning_content", "reasoning", "reasoning_details", "thinking", "reasoning_text"];
    let has = |said: &Value| {
        let block =
            |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
        of_message.iter().any(|name| !said[*name].is_null())
            || said["content"].as_array().is_some_and(|blocks| blocks.iter().any(block))
            || said["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|call| !call["extra_content"].is_null())
    };
    let signed = |said: &Value| {
        said["parts"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|part| !part["thoughtSignature"].is_null())
    };
    let is_item = |item: &Value| item["type"] == "reasoning";
    let items = body["input"].as_array();
    if items.is_some_and(|items| items.iter().any(is_item)) {
        return true;
    }
    each_message(body).any(has) || body["contents"].as_array().into_iter().flatten().any(signed)
}

fn unmark(value: &mut Value, depth: usize) {
    match value {
        Value::Object(map) if depth > 0 => {
            map.remove(MARK);
            map.values_mut().for_each(|value| unmark(value, depth - 1));
        }
        Value::Array(list) if depth > 0 => {
            list.iter_mut().for_each(|value| unmark(value, depth - 1))
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
