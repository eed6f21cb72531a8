//! Whatever a server says is read without a defect.

mod generated_tests;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::provider::chat::{ChatMessage, Response};
use crate::session::message::Role;

/// Keys and values that the decoders look for, so that random data reach deep code paths.
const NAMES: &[&str] = &[
    "args",
    "arguments",
    "blockReason",
    "calls",
    "candidates",
    "choices",
    "content",
    "content_block",
    "data",
    "delta",
    "done",
    "done_reason",
    "error",
    "extra_content",
    "finishReason",
    "finish_reason",
    "function",
    "functionCall",
    "id",
    "index",
    "input",
    "message",
    "name",
    "partial_json",
    "parts",
    "promptFeedback",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "signature",
    "stop_reason",
    "text",
    "thinking",
    "thought",
    "thoughtSignature",
    "tool_calls",
    "type",
    "usage",
    "usageMetadata",
];
const TYPES: &[&str] = &[
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "input_json_delta",
    "message_delta",
    "message_start",
    "message_stop",
    "signature_delta",
    "STOP",
    "stop",
    "text",
    "text_delta",
    "thinking",
    "thinking_delta",
    "tool_use",
    "x",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1..3_i64).prop_map(Value::from),
        proptest::sample::select(TYPES).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let entry = (proptest::sample::select(NAMES), inner.clone());
        prop_oneof![
            1 => proptest::collection::vec(inner, 0..3).prop_map(Value::from),
            4 => proptest::collection::vec(entry, 0..8).prop_map(|entries| {
                entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

/// Says these texts as an answer, and returns whether it is a success, and what came.
fn heard(family: Family, texts: &[String]) -> (bool, Response) {
    let (mut reader, mut pieces) = (AnswerReader::new(family, 1, false), Vec::new());
    let mut is_read = true;
    for text in texts {
        is_read = is_read && reader.take(text, &mut pieces).is_ok();
    }
    let is_whole = is_read && reader.closed(&mut pieces);
    let mut whole = Response::default();
    pieces.into_iter().for_each(|piece| whole.add(piece));
    (is_whole, whole)
}

proptest! {
    #[test]
    fn nothing_that_a_server_says_is_a_defect(
        said in proptest::collection::vec(any_json(), 1..12),
    ) {
        for family in Family::ALL {
            let mut texts: Vec<String> = said.iter().map(Value::to_string).collect();
            texts.push("[DONE]".to_owned());
            let (_, whole) = heard(*family, &texts);
            let kept = whole.opaque.as_ref().and_then(Value::as_object);
            let mut names = kept.into_iter().flat_map(serde_json::Map::keys);
            prop_assert!(names.all(|name| [KEPT, IDS].contains(&&**name)), "{whole:?}");
            let answer = ChatMessage {
                tool_calls: whole.calls,
                opaque: whole.opaque,
                ..ChatMessage::new(Role::Assistant, &whole.text)
            };
            let messages = vec![ChatMessage::new(Role::User, "q"), answer];
            let request = Request { messages, stable: 2, ..Request::default() };
            for opaque in std::iter::once(None).chain(said.iter().cloned().map(Some)) {
                let mut request = request.clone();
                if let Some(opaque) = opaque {
                    // A wrong type under a known name is not a defect either.
                    request.messages[1].opaque = Some(json!({ KEPT: opaque }));
                }
                family.body("http://h", "m", &request, None);
            }
        }
    }
}

#[test]
fn reasoning_in_a_text_goes_back_as_it_came_wherever_it_is_cut() {
    let said = "<think>plan</think>\n\nParis";
    let event = |text: &str| json!({"choices": [{"delta": {"content": text}}]}).to_string();
    for at in 0..=said.len() {
        let (first, second) = said.split_at(at);
        let texts = [event(first), event(second), "[DONE]".to_owned()];
        let (is_whole, whole) = heard(Family::Openai, &texts);
        assert!(is_whole);
        assert_eq!((&*whole.reasoning, &*whole.text), ("plan", "Paris"), "{at}");
        assert_eq!(whole.opaque.unwrap()[KEPT]["message"]["content"], said, "{at}");
    }
    let (_, whole) = heard(Family::Openai, &[event("<b>Paris</b>"), "[DONE]".to_owned()]);
    assert_eq!((&*whole.text, whole.opaque), ("<b>Paris</b>", None));
}

#[test]
fn a_model_that_was_only_loaded_is_asked_again() {
    for reason in ["load", "unload"] {
        let event = |more: Value| {
            let mut event = json!({"message": {"content": ""}, "done": true});
            event["done_reason"] = more;
            event.to_string()
        };
        let mut reader = AnswerReader::new(Family::Ollama, 1, false);
        let Broken(refusal) = reader.take(&event(reason.into()), &mut Vec::new()).unwrap_err();
        assert_eq!(refusal.again, crate::provider::refusal::RetryPolicy::Soon);
        let text = json!({"message": {"content": "a"}, "done": false}).to_string();
        assert!(heard(Family::Ollama, &[text, event(reason.into())]).0, "an answer had come");
    }
}
