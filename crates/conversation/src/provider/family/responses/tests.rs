//! Tests of what the Responses API says.

use super::*;
use crate::provider::chat::{KEPT, Response};
use crate::provider::family::{AnswerReader, Family};

/// Reads these events, and returns whether the answer is complete, and what came.
fn read(events: &[Value]) -> (bool, Response) {
    let (mut reader, mut pieces) = (AnswerReader::new(Family::Responses, 1, false), Vec::new());
    events.iter().for_each(|said| reader.take(&said.to_string(), &mut pieces).unwrap());
    let is_whole = reader.closed(&mut pieces);
    let mut whole = Response::default();
    pieces.into_iter().for_each(|piece| whole.add(piece));
    (is_whole, whole)
}

/// Returns the error of these events.
#[track_caller]
fn failure(events: &[Value]) -> ServerRefusal {
    let (mut reader, mut pieces) = (AnswerReader::new(Family::Responses, 1, false), Vec::new());
    let read = events.iter().map(|said| reader.take(&said.to_string(), &mut pieces));
    *read.filter_map(Result::err).next().expect("an event must be an error").0
}

fn item(kind: &str, index: u64, item: Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

fn reasoning() -> Value {
    json!({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}],
           "encrypted_content": "ZW5j", "status": null})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": format!("fc_{id}"), "type": "function_call", "call_id": id, "name": "f",
           "arguments": arguments, "status": "completed"})
}

fn message(text: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn arguments(whole: &Response) -> Vec<&str> {
    whole.calls.iter().map(|call| &*call.arguments).collect()
}

#[test]
fn what_comes_twice_is_told_once() {
    let output = json!([reasoning(), message("Hi"), call("a", "{\"x\":1}"), call("b", "{}")]);
    let added = |index: u64| item("added", index, output[index as usize].clone());
    let done = |index: u64| item("done", index, output[index as usize].clone());
    let delta = json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Hi"});
    let none = |call: &Value| {
        let mut call = call.clone();
        call["arguments"] = "".into();
        call
    };
    let begun = item("added", 2, none(&output[2]));
    let (left, right) = ("{\"x\":", "1}");
    let more = |delta: &str| {
        json!({"type": "response.function_call_arguments.delta", "output_index": 2,
               "item_id": "fc_a", "delta": delta})
    };
    let last = json!({"type": "response.function_call_arguments.done", "output_index": 2,
                      "item_id": "fc_a", "arguments": "{\"x\":1}"});
    let events = [
        vec![done(0), added(1), delta, done(1), begun, more(left), more(right), last],
        vec![done(2), done(3), completed(output.clone())],
    ]
    .concat();
    for events in [&events[..], &[completed(output.clone())], &[done(0), completed(output.clone())]]
    {
        let (is_whole, whole) = read(events);
        assert!(is_whole, "{events:?}");
        assert_eq!((&*whole.text, &*whole.reasoning), ("Hi", "Hm."), "{events:?}");
        assert_eq!(arguments(&whole), ["{\"x\":1}", "{}"], "{events:?}");
        let kept = &whole.opaque.unwrap()[KEPT];
        // Without what was not said, as the interface wants it.
        let mut items = output.clone();
        items[0].as_object_mut().unwrap().remove("status");
        assert_eq!(*kept, items);
    }
    // The whole answer in place of a stream.
    let whole =
        json!({"object": "response", "status": "completed", "error": null, "output": output});
    assert_eq!(arguments(&read(&[whole]).1), ["{\"x\":1}", "{}"]);
}

#[test]
fn items_with_other_ids_at_their_end_are_the_same_items() {
    let mut begun = message("");
    begun["id"] = "other".into();
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "third",
                       "delta": "Hi"});
    let events =
        [item("added", 0, begun), delta, item("done", 0, message("Hi")), completed(json!([]))];
    assert_eq!(read(&events).1.text, "Hi");
}

#[test]
fn reasoning_goes_back_only_if_the_server_can_read_it() {
    let kept = |first: Value| {
        let (_, whole) = read(&[completed(json!([first, call("a", "{}")]))]);
        whole.opaque.is_some_and(|opaque| opaque[KEPT].is_array())
    };
    assert!(kept(reasoning()));
    let open = json!({"id": "rs_1", "type": "reasoning", "summary": [],
                      "content": [{"type": "reasoning_text", "text": "Hm."}]});
    assert!(kept(open));
    // The server stored nothing under this id.
    assert!(!kept(json!({"id": "rs_1", "type": "reasoning", "summary": []})));
    let (_, whole) = read(&[completed(json!([message("Hi"), reasoning()]))]);
    assert!(whole.opaque.is_none(), "nothing follows from it");
}

#[test]
fn endings_have_names() {
    let incomplete = |details: Value| {
        let output = json!([call("a", "{\"x\":")]);
        json!({"type": "response.incomplete", "response": {
            "status": "incomplete", "incomplete_details": details, "output": output}})
    };
    let stop = |said: Value| read(&[said]).1.stop.unwrap();
    assert_eq!(stop(incomplete(json!({"reason": "max_output_tokens"}))), Stop::Length);
    assert_eq!(stop(incomplete(json!({"reason": "content_filter"}))), Stop::Filtered);
    assert_eq!(stop(incomplete(Value::Null)), Stop::Length);
    assert_eq!(stop(completed(json!([call("a", "{}")]))), Stop::Calls);
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]);
    let (_, whole) = read(&[completed(refusal)]);
    assert_eq!((&*whole.text, whole.stop), ("No.", Some(Stop::Refused)));
    assert!(!read(&[item("done", 0, message("Hi"))]).0, "without an end it is not whole");
}

#[test]
fn failures_are_told() {
    let failed = |error: Value| {
        let response = json!({"status": "failed", "error": error, "output": []});
        failure(&[json!({"type": "response.failed", "response": response})])
    };
    let told = failed(json!({"code": "rate_limit_exceeded", "message": "slow down"}));
    assert_eq!(told.kind, ErrorKind::RateLimited);
    assert!(told.said.contains("slow down"), "{}", told.said);
    assert_eq!(failed(Value::Null).said, "the answer broke off: failed");
    let long = json!({"type": "error", "code": "context_length_exceeded", "message": "too long"});
    assert_eq!(failure(&[long]).kind, ErrorKind::ContextTooLong);
    for odd in [
        json!({"output_index": 0}),
        json!({"type": "response.completed"}),
        item("done", 0, json!({"id": "x"})),
        item("done", 0, json!({"type": "function_call", "call_id": "a", "arguments": true})),
        json!({"type": "response.output_text.delta", "delta": 7}),
        json!({"type": "response.function_call_arguments.delta", "delta": "{}"}),
    ] {
        assert_eq!(failure(std::slice::from_ref(&odd)).kind, ErrorKind::Malformed, "{odd}");
    }
}

#[test]
fn a_piece_that_may_belong_to_two_calls_is_an_error() {
    let two = [item("added", 0, call("a", "")), item("added", 1, call("b", ""))];
    let more = json!({"type": "response.function_call_arguments.delta", "delta": "{}"});
    assert_eq!(failure(&[&two[..], &[more]].concat()).kind, ErrorKind::Malformed);
}

#[test]
fn calls_go_back_with_the_ids_of_their_results() {
    let (_, whole) = read(&[completed(json!([reasoning(), call("a", "{}")]))]);
    let mut calls = whole.calls;
    calls[0].id = "renamed00".into();
    let answer = ChatMessage {
        tool_calls: calls,
        opaque: whole.opaque,
        ..ChatMessage::new(Role::Assistant, "")
    };
    let sent = items(&answer);
    assert_eq!(
        (&sent[0]["encrypted_content"], &sent[1]["call_id"]),
        (&json!("ZW5j"), &json!("renamed00"))
    );
}
