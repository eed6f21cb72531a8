//! Token limits of models as their servers report them: where to ask, and how to read the answer.

use reqwest::Url;
use serde_json::{Value, json};

use super::address::ServerAddress;
use super::chat::Limit;
use super::family::{Family, LimitsIn};

/// An address at which a server may report a limit.
pub(super) struct LimitAddress {
    pub(super) url: String,
    pub(super) body: Option<Value>,
    /// Reads the limit of the named model from the answer.
    pub(super) read: fn(&Value, &str) -> Option<Limit>,
}

/// JSON paths at which servers put the limit of a model in their list of models. Limits in effect
/// come before theoretical limits. In order: llama.cpp, vLLM, OpenRouter and Together, Groq,
/// Mistral, Anthropic, Gemini, litellm.
const FIELDS: &[&str] = &[
    "/meta/n_ctx",
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/model_info/max_input_tokens",
];

/// Returns the addresses to try, in order. Interfaces that only local servers have are tried only
/// if the base address begins with `http:`.
pub(super) fn places(family: Family, address: &ServerAddress, model: &str) -> Vec<LimitAddress> {
    let base = address.versioned();
    let root = base.trim_end_matches("/v1");
    let get = |url: String, read| LimitAddress { url, body: None, read };
    match family.facts().limits {
        LimitsIn::Loaded => vec![
            get(address.endpoint("/api/ps"), of_loaded),
            LimitAddress {
                url: address.endpoint("/api/show"),
                body: Some(json!({ "model": model })),
                read: of_shown,
            },
        ],
        LimitsIn::Entry => {
            let model = model.strip_prefix("models/").unwrap_or(model);
            vec![get(address.endpoint(&format!("/models/{model}")), of_entry)]
        }
        LimitsIn::List => {
            let mut places = vec![get(address.models(), of_list)];
            if is_near(&base) {
                places.push(get(format!("{root}/props"), of_props));
                places.push(get(format!("{root}/api/v0/models"), of_studio));
                places.push(get(format!("{root}/model/info"), of_list));
            }
            places
        }
    }
}

fn is_near(base: &str) -> bool {
    Url::parse(base).is_ok_and(|url| url.scheme() == "http")
}

fn settled(tokens: u64) -> Limit {
    Limit { tokens, may_change: false }
}

fn figure(said: &Value, pointer: &str) -> Option<u64> {
    said.pointer(pointer)?.as_u64().filter(|tokens| *tokens > 0)
}

/// Returns the model's entry in a list. The only entry of a list is returned for any name, since a
/// server with one model ignores the name.
fn entry<'a>(said: &'a Value, model: &str) -> Option<&'a Value> {
    let list = said["data"].as_array().or_else(|| said["models"].as_array())?;
    let is_named = |entry: &&Value| {
        let names = ["id", "name", "model", "model_name"].map(|field| entry[field].as_str());
        names.into_iter().flatten().any(|name| is_same(name, model))
    };
    list.iter().find(is_named).or_else(|| list.first().filter(|_| list.len() == 1))
}

/// Returns whether two names mean the same model: for Ollama, `m` is also `m:latest`.
fn is_same(name: &str, model: &str) -> bool {
    name == model || name.strip_suffix(":latest").is_some_and(|bare| bare == model)
}

fn of_entry(said: &Value, _: &str) -> Option<Limit> {
    limit_of(said).map(settled)
}

/// Returns the limit that a model's entry in a list has, in tokens.
pub(super) fn limit_of(entry: &Value) -> Option<u64> {
    FIELDS.iter().find_map(|field| figure(entry, field))
}

fn of_list(said: &Value, model: &str) -> Option<Limit> {
    of_entry(entry(said, model)?, model)
}

/// Reads the limit from llama.cpp's properties.
fn of_props(said: &Value, _: &str) -> Option<Limit> {
    figure(said, "/default_generation_settings/n_ctx").map(settled)
}

/// Reads LM Studio's list of models, which has limits only for loaded models. LM Studio loads a
/// model at the first request for it.
fn of_studio(said: &Value, model: &str) -> Option<Limit> {
    figure(entry(said, model)?, "/loaded_context_length").map(settled)
}

/// Reads Ollama's list of loaded models.
fn of_loaded(said: &Value, model: &str) -> Option<Limit> {
    let named = |entry: &&Value| entry["name"].as_str().is_some_and(|name| is_same(name, model));
    let entry = said["models"].as_array()?.iter().find(named)?;
    figure(entry, "/context_length").map(settled)
}

/// Reads Ollama's description of a model: the limit that the model's file sets, else the highest
/// possible limit.
fn of_shown(said: &Value, _: &str) -> Option<Limit> {
    let set = said["parameters"].as_str().unwrap_or_default().lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("num_ctx")).then(|| words.next()?.parse().ok()).flatten()
    });
    let could = || {
        let info = said["model_info"].as_object()?;
        let (_, tokens) = info.iter().find(|(name, _)| name.ends_with(".context_length"))?;
        tokens.as_u64()
    };
    set.map(settled).or_else(|| could().map(|tokens| Limit { tokens, may_change: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(family: Family, path: &str, said: Value, expected: Option<(u64, bool)>) {
        let places = places(family, &ServerAddress::new(family, "http://h/v1", None), "m");
        let place = places.iter().find(|place| place.url == format!("http://h{path}")).unwrap();
        let found = (place.read)(&said, "m").map(|limit| (limit.tokens, limit.may_change));
        assert_eq!(found, expected, "{said}");
    }

    #[test]
    fn servers_say_it_each_in_their_own_way() {
        let list = |entry: Value| json!({"data": [{"id": "other"}, entry]});
        let openai = |said, tokens| {
            check(Family::Openai, "/v1/models", said, Some((tokens, false)));
        };
        openai(list(json!({"id": "m", "max_model_len": 4096})), 4096);
        openai(list(json!({"id": "m", "context_length": 8192})), 8192);
        openai(list(json!({"id": "m", "context_window": 131_072})), 131_072);
        // The limit in effect takes precedence over what the model was made for.
        let llama = json!({"id": "m.gguf", "meta": {"n_ctx": 1024, "n_ctx_train": 32768}});
        openai(json!({"data": [llama]}), 1024);
        let props = json!({"default_generation_settings": {"n_ctx": 2048}});
        check(Family::Openai, "/props", props, Some((2048, false)));
        let studio = list(json!({"id": "m", "loaded_context_length": 4096,
                                 "max_context_length": 131_072}));
        check(Family::Openai, "/api/v0/models", studio, Some((4096, false)));
        let info = json!({"model_name": "m", "model_info": {"max_input_tokens": 16_000}});
        check(Family::Openai, "/model/info", list(info), Some((16_000, false)));
        let gemini = json!({"name": "models/m", "inputTokenLimit": 1_048_576});
        check(Family::Gemini, "/v1beta/models/m", gemini, Some((1_048_576, false)));
        let anthropic = json!({"id": "m", "max_input_tokens": 200_000});
        check(Family::Anthropic, "/v1/models/m", anthropic, Some((200_000, false)));
    }

    #[test]
    fn ollama_says_what_is_loaded_what_is_set_or_what_could_be() {
        let loaded = json!({"models": [{"name": "m:latest", "context_length": 4096}]});
        check(Family::Ollama, "/api/ps", loaded, Some((4096, false)));
        check(Family::Ollama, "/api/ps", json!({"models": [{"name": "n"}]}), None);
        let could = json!({"llama.context_length": 131_072});
        let set = json!({"parameters": "stop \"x\"\nnum_ctx    8192", "model_info": could.clone()});
        check(Family::Ollama, "/api/show", set, Some((8192, false)));
        check(Family::Ollama, "/api/show", json!({"model_info": could}), Some((131_072, true)));
    }

    #[test]
    fn what_says_nothing_is_nothing() {
        for said in [json!(null), json!([]), json!({"data": 7}), json!({"data": [{"id": "m"}]})] {
            check(Family::Openai, "/v1/models", said, None);
        }
        check(Family::Ollama, "/api/show", json!({"parameters": 7}), None);
        let far = ServerAddress::new(Family::Openai, "https://api.example.com/v1", None);
        let far = places(Family::Openai, &far, "m");
        assert_eq!(far.len(), 1, "only the list is asked of others");
    }
}
