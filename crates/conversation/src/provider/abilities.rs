//! Reads lists of models: their limits and abilities, as far as servers tell them.

use serde_json::Value;

use super::limits::limit_of;
use super::listed::ModelListing;
use super::{Family, MAX_LISTED_MODELS};

/// JSON paths at which servers say whether a model has an ability. In order of the paths: Anthropic,
/// Mistral, GitHub, litellm.
const TOOLS: &[&str] = &[
    "/capabilities/function_calling",
    "/capabilities/supports/tool_calls",
    "/supports_function_calling",
];
const PICTURES: &[&str] = &[
    "/capabilities/image_input/supported",
    "/capabilities/vision",
    "/capabilities/supports/vision",
    "/supports_vision",
];
const PDF: &[&str] = &["/capabilities/pdf_input/supported", "/supports_pdf_input"];
const EFFORT: &[&str] = &[
    "/capabilities/effort/supported",
    "/capabilities/reasoning",
    "/supports_reasoning",
    // Gemini
    "/thinking",
];
/// JSON paths of lists of words, and the words for each ability. In order: OpenRouter, LM Studio and
/// Ollama, and what OpenRouter and others take.
const WORDS: &[&str] =
    &["/supported_parameters", "/capabilities", "/architecture/input_modalities"];

fn ability(entry: &Value, paths: &[&str], words: &[&str], list: &[&str]) -> Option<bool> {
    let said = |path: &&str| entry.pointer(path)?.as_bool();
    let listed = |path: &&str| {
        let listed = entry.pointer(path)?.as_array()?;
        Some(listed.iter().any(|word| words.iter().any(|known| word == known)))
    };
    paths.iter().find_map(said).or_else(|| list.iter().find_map(listed))
}

/// Reads a list of models; `None` if `said` is not such a list.
///
/// # Errors
/// What to tell of a list of more than [`MAX_LISTED_MODELS`] models.
pub(super) fn listed(family: Family, said: &Value) -> Result<Option<Vec<ModelListing>>, String> {
    let [list, name] = family.facts().listed;
    // Some servers, such as Together's, send the list itself.
    let bare = said.as_array().filter(|entries| !entries.is_empty());
    let Some(entries) = said[list].as_array().or(bare) else { return Ok(None) };
    if entries.len() > MAX_LISTED_MODELS {
        return Err(format!("the list has more than {MAX_LISTED_MODELS} models"));
    }
    let model = |entry: &Value| {
        let named = entry[name].as_str()?;
        let is_vision = (entry["type"] == "vlm").then_some(true);
        let pictures = ability(entry, PICTURES, &["vision", "image"], &[WORDS[1], WORDS[2]]);
        Some(ModelListing {
            name: named.strip_prefix("models/").unwrap_or(named).to_owned(),
            limit: limit_of(entry),
            tools: ability(entry, TOOLS, &["tools", "tool_use"], &WORDS[..2]),
            pictures: is_vision.or(pictures),
            pdf: ability(entry, PDF, &["file"], &[WORDS[2]]),
            effort: ability(entry, EFFORT, &["reasoning", "thinking"], &WORDS[..2]),
        })
    };
    Ok(entries.iter().map(model).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(family: Family, entry: Value, expected: (Option<u64>, [Option<bool>; 4])) {
        let [_, name] = family.facts().listed;
        let mut entry = entry;
        entry[name] = "m".into();
        let found = listed(family, &json!({"data": [entry], "models": [entry]})).unwrap().unwrap();
        let ModelListing { name, limit, tools, pictures, pdf, effort } = &found[0];
        let found = (*limit, [*tools, *pictures, *effort, *pdf]);
        assert_eq!((&**name, found), ("m", expected), "{entry}");
    }

    #[test]
    fn servers_say_what_models_can_each_in_its_own_way() {
        let (yes, no) = (Some(true), Some(false));
        check(
            Family::Openai,
            json!({"context_length": 9000, "supported_parameters": ["tools", "temperature"],
                   "architecture": {"input_modalities": ["text", "image", "file"]}}),
            (Some(9000), [yes, yes, no, yes]),
        );
        check(
            Family::Openai,
            json!({"max_context_length": 8000, "capabilities":
                   {"function_calling": true, "vision": false, "completion_chat": true}}),
            (Some(8000), [yes, no, None, None]),
        );
        check(
            Family::Openai,
            json!({"type": "vlm", "capabilities": ["tool_use"]}),
            (None, [yes, yes, no, None]),
        );
        check(
            Family::Anthropic,
            json!({"max_input_tokens": 200_000, "capabilities":
                   {"image_input": {"supported": true}, "pdf_input": {"supported": false},
                    "effort": {"supported": false}}}),
            (Some(200_000), [None, yes, no, no]),
        );
        check(
            Family::Gemini,
            json!({"inputTokenLimit": 1_048_576, "thinking": true}),
            (Some(1_048_576), [None, None, yes, None]),
        );
        check(Family::Responses, json!({"object": "model"}), (None, [None; 4]));
        for odd in [json!(7), json!({"data": 7}), json!({"data": [{}]}), json!([])] {
            assert_eq!(listed(Family::Openai, &odd), Ok(None), "{odd}");
        }
        let odd = json!({"capabilities": 7, "supported_parameters": "tools", "thinking": "x"});
        check(Family::Ollama, odd, (None, [None; 4]));
    }
}
