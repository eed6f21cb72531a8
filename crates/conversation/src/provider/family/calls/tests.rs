//! Tests of how calls are told apart.

use serde_json::json;

use super::*;

/// Checks the ids, names and arguments of the calls that come in these lists.
#[track_caller]
fn check(pieces: &[Value], expected: &[(&str, &str, &str)]) {
    let mut calls = AnswerCalls::new(1);
    for piece in pieces {
        calls.add_all(piece).unwrap();
    }
    let calls = calls.finished().calls;
    let found: Vec<_> = calls.iter().map(|c| (&*c.id, &*c.name, &*c.arguments)).collect();
    assert_eq!(found, expected, "{pieces:?}");
}

/// A piece with these members of the call and these of its function.
fn piece(call: Value, function: Value) -> Value {
    let mut call = call;
    call["function"] = function;
    json!([call])
}

#[test]
fn what_came_whole_is_one_call_however_it_was_cut() {
    let f = |text: &str| json!({"arguments": text});
    let begun = piece(json!({"index": 0, "id": "a"}), json!({"name": "f", "arguments": "{\"x\""}));
    let one = [("a", "f", "{\"x\":1}")];
    check(&[begun.clone(), piece(json!({"index": 0}), f(":1}"))], &one);
    check(&[begun.clone(), piece(json!({"index": "0", "id": "a"}), f(":1}"))], &one);
    check(&[begun.clone(), piece(json!({}), f(":1}"))], &one);
    // Another id in each piece, with or without the name.
    check(&[begun.clone(), piece(json!({"index": 0, "id": "b"}), f(":1}"))], &one);
    let named = json!({"name": "f", "arguments": ":1}"});
    check(&[begun.clone(), piece(json!({"index": 0, "id": "b"}), named.clone())], &one);
    check(&[begun.clone(), piece(json!({"id": "a"}), named)], &one);
    // The whole again, and each piece with all before it.
    let whole =
        piece(json!({"index": 0, "id": "a"}), json!({"name": "f", "arguments": "{\"x\":1}"}));
    check(&[begun.clone(), piece(json!({"index": 0}), f(":1}")), whole.clone()], &one);
    check(&[begun.clone(), whole.clone()], &one);
    check(&[whole.clone(), whole], &one);
    check(&[json!({"id": "a", "name": "f", "arguments": {"x": 1}})], &one);
    check(
        &[piece(json!({"id": "a"}), json!({"name": "f", "arguments": "\"{\\\"x\\\":1}\""}))],
        &one,
    );
    for fence in ["json", ""] {
        let fenced = format!("```{fence}\n{{\"x\":1}}\n```\n");
        let call = json!({"name": "f", "arguments": fenced});
        check(&[piece(json!({"id": "a"}), call)], &[("a", "f", "\n{\"x\":1}\n".trim())]);
    }
    check(
        &[json!([{"id": "a"}]), piece(json!({}), json!({"name": "f", "arguments": {"x": 1}}))],
        &one,
    );
}

#[test]
fn new_calls_are_told_apart() {
    let call =
        |call: Value, arguments: Value| piece(call, json!({"name": "f", "arguments": arguments}));
    let two = [("a", "f", "{\"x\":1}"), ("b", "f", "{\"x\":2}")];
    for (one, other) in [
        (json!({"id": "a"}), json!({"id": "b"})),
        (json!({"id": "a", "index": 0}), json!({"id": "b", "index": 0})),
    ] {
        check(
            &[call(one.clone(), json!("{\"x\":1}")), call(other.clone(), json!("{\"x\":2}"))],
            &two,
        );
        check(&[call(one, json!({"x": 1})), call(other, json!({"x": 2}))], &two);
    }
    let made = [("call-1-1", "f", "{\"x\":1}"), ("call-1-2", "f", "{\"x\":2}")];
    for index in [json!({}), json!({"index": 0})] {
        check(&[call(index.clone(), json!("{\"x\":1}")), call(index, json!("{\"x\":2}"))], &made);
    }
    let same = [("a", "f", "{\"x\":1}"), ("call-1-2", "f", "{\"x\":2}")];
    check(
        &[call(json!({"id": "a"}), json!({"x": 1})), call(json!({"id": "a"}), json!({"x": 2}))],
        &same,
    );
    // A list in one piece.
    let both = json!([{"function": {"name": "f"}}, {"function": {"name": "g"}}, {}, null]);
    check(&[both], &[("call-1-1", "f", "{}"), ("call-1-2", "g", "{}")]);
}

#[test]
fn a_call_that_comes_again_is_no_other_call_whatever_its_index() {
    let call = |call: Value, x: u8| {
        piece(call, json!({"name": "f", "arguments": format!("{{\"x\": {x}}}")}))
    };
    let as_json = piece(json!({"index": 7}), json!({"name": "f", "arguments": {"x": 1}}));
    let (one, two) = (("a", "f", "{\"x\": 1}"), ("b", "f", "{\"x\": 2}"));
    let both = [call(json!({"index": 0, "id": "a"}), 1), call(json!({"index": 1, "id": "b"}), 2)];
    let agains = [json!({"index": 7}), json!({}), json!({"index": 7, "id": "a"})];
    for again in agains.map(|it| call(it, 1)).into_iter().chain([as_json]) {
        check(&[both[0].clone(), again.clone()], &[one]);
        check(&[both[0].clone(), both[1].clone(), again], &[one, two]);
    }
    // Where indices alone tell calls apart, what has none is none of its own.
    let made = [("call-1-1", "f", "{\"x\": 1}"), ("call-1-2", "f", "{\"x\": 2}")];
    let indexed = |index: u8, x| call(json!({"index": index}), x);
    check(&[indexed(0, 1), indexed(1, 2), call(json!({}), 1)], &made);
    // Another index or id, or a place of its own in a list, makes another call.
    let made = [made[0], ("call-1-2", "f", "{\"x\": 1}")];
    check(&[indexed(0, 1), indexed(1, 1)], &made);
    let other = call(json!({"index": 1, "id": "b"}), 1);
    check(&[both[0].clone(), other], &[one, ("b", "f", "{\"x\": 1}")]);
    let listed = json!([both[0][0], call(json!({"index": 1, "id": "a"}), 1)[0]]);
    check(&[listed], &[one, ("call-1-2", "f", "{\"x\": 1}")]);
}

#[test]
fn an_empty_object_before_the_arguments_is_replaced() {
    let begun = piece(json!({"index": 0, "id": "a"}), json!({"name": "f", "arguments": "{}"}));
    let more = |text: &str| piece(json!({"index": 0}), json!({"arguments": text}));
    check(&[begun, more("{\"x\""), more(":1}")], &[("a", "f", "{\"x\":1}")]);
}

#[test]
fn a_piece_that_may_belong_to_two_calls_is_an_error() {
    let begun = |id: &str| {
        piece(json!({"index": 0, "id": id}), json!({"name": "f", "arguments": "{\"x\""}))
    };
    let mut calls = AnswerCalls::new(1);
    calls.add_all(&begun("a")).unwrap();
    calls.add_all(&with_index(begun("b"), 1)).unwrap();
    assert!(calls.add_all(&piece(json!({}), json!({"arguments": ":1}"}))).is_err());
}

#[test]
fn a_part_that_another_call_may_lack_is_lost() {
    let part = |index: u8, id: &str, text: &str| {
        piece(json!({"index": index, "id": id}), json!({"name": "f", "arguments": text}))
    };
    let has_lost = |id: &str, text: &str| {
        let mut calls = AnswerCalls::new(1);
        let pieces = [part(0, "a", "{\"x\": \"nu"), part(7, id, text), part(0, "", "l\"}")];
        pieces.iter().for_each(|piece| calls.add_all(piece).unwrap());
        calls.finished().has_lost
    };
    assert!(has_lost("", "l"));
    assert!(!has_lost("", "{}") && !has_lost("b", "l"));
}

fn with_index(mut pieces: Value, index: u64) -> Value {
    pieces[0]["index"] = index.into();
    pieces
}

#[test]
fn what_is_not_whole_is_no_object() {
    for arguments in [json!("{\"x\": "), json!("{}{\"x\":1}"), json!("[1]"), json!("7")] {
        let mut calls = AnswerCalls::new(1);
        calls.add_all(&piece(json!({}), json!({"name": "f", "arguments": arguments}))).unwrap();
        let [call] = &calls.finished().calls[..] else { panic!() };
        assert_eq!(object(&call.arguments), None, "{arguments}");
    }
    for arguments in [json!(7), json!([1]), json!(true)] {
        let piece = piece(json!({}), json!({"name": "f", "arguments": arguments}));
        assert!(AnswerCalls::new(1).add_all(&piece).is_err());
    }
    let mut calls = AnswerCalls::new(1);
    for x in [1, 2] {
        calls.add_all(&piece(json!({"id": "a"}), json!({"arguments": {"x": x}}))).unwrap();
    }
    assert_eq!(object(&calls.finished().calls[0].arguments), None);
}
