//! Tests of what Anthropic's interface says.

use super::*;
use crate::provider::chat::{KEPT, Stop, StreamEvent};
use crate::provider::error::ErrorKind;
use crate::provider::family::{AnswerReader, Family};
use crate::provider::refusal::ServerRefusal;

/// Reads these events, and returns the pieces.
fn read(events: &[Value]) -> Vec<StreamEvent> {
    let (mut reader, mut pieces) = (AnswerReader::new(Family::Anthropic, 1, false), Vec::new());
    events.iter().for_each(|said| reader.take(&said.to_string(), &mut pieces).unwrap());
    pieces
}

/// Checks the usage after these reports. The first report begins the answer.
#[track_caller]
fn check_usage(reports: &[Value], expected: [Option<u64>; 4]) {
    let said = |(at, report): (usize, &Value)| match at {
        0 => json!({"type": "message_start", "message": {"usage": report}}),
        _ => json!({"type": "message_delta", "delta": {}, "usage": report}),
    };
    let pieces = read(&reports.iter().enumerate().map(said).collect::<Vec<_>>());
    let mut whole = Usage::default();
    for piece in pieces {
        if let StreamEvent::Usage(usage) = piece {
            whole = whole.with(usage);
        }
    }
    let found = [whole.input, whole.output, whole.cache_read, whole.cache_written];
    assert_eq!(found, expected);
}

#[test]
fn an_account_without_money_is_told_by_its_kind() {
    let error = json!({"error": {"type": "billing_error", "message": "pay first"}});
    assert_eq!(ServerRefusal::in_answer(&error).unwrap().kind, ErrorKind::QuotaExhausted);
}

#[test]
fn a_block_that_is_none_is_an_error() {
    for said in [
        json!({"type": "content_block_start", "index": 0, "content_block": "x"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"new": 1}}),
    ] {
        let (mut reader, mut pieces) = (AnswerReader::new(Family::Anthropic, 1, false), Vec::new());
        let broken = reader.take(&said.to_string(), &mut pieces).unwrap_err();
        assert_eq!(broken.0.kind, ErrorKind::Malformed);
    }
    let delta = json!({"type": "text_delta", "text": "a"});
    let pieces = read(&[
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(pieces, [StreamEvent::Text("a".into()), StreamEvent::Stopped(Stop::Finished)]);
}

#[test]
fn reports_of_usage_are_put_together() {
    let first = json!({"input_tokens": 12, "cache_read_input_tokens": 10,
                       "cache_creation_input_tokens": 3, "output_tokens": 1});
    let whole = [Some(25), Some(15), Some(10), Some(3)];
    check_usage(&[first.clone(), json!({"output_tokens": 15})], whole);
    check_usage(&[first, json!({"input_tokens": 12, "output_tokens": 15})], whole);
    // Servers that imitate this interface report everything at the end.
    let none = json!({"input_tokens": 0, "output_tokens": 0});
    let last = json!({"input_tokens": 25, "output_tokens": 15, "cache_read_input_tokens": null});
    check_usage(&[none, last], [Some(25), Some(15), None, None]);
    let most = Some(crate::provider::chat::MOST_TOKENS);
    let absurd = json!({"input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX,
                        "cache_creation_input_tokens": 3});
    check_usage(&[absurd], [most, None, most, Some(3)]);
}

#[test]
fn no_thought_and_no_empty_text_is_marked() {
    let thought = json!({"type": "thinking", "thinking": "t", "signature": "s"});
    let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": {}});
    let blank = json!({"type": "text", "text": " \n"});
    let kept = |blocks: Vec<&Value>| ChatMessage {
        opaque: Some(json!({ KEPT: blocks })),
        ..ChatMessage::new(Role::Assistant, "unused")
    };
    let answer = |blocks: Vec<&Value>| {
        let messages = vec![ChatMessage::new(Role::User, "q"), kept(blocks)];
        let request = Request { messages, stable: 2, ..Request::default() };
        body("m", &request)["messages"][1]["content"].clone()
    };
    let mut marked = call.clone();
    marked["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(answer(vec![&thought, &blank, &call]), json!([thought, marked]));
    assert_eq!(answer(vec![&call, &thought]), json!([marked, thought]));
    assert_eq!(answer(vec![&thought]), json!([thought]));
}
