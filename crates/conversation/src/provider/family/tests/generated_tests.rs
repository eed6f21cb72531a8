//! Generated answers, as any server may frame them, and what may happen to them: values of another
//! type, a cut at any byte, another order, other ids. What the model gave is known, so that a call
//! with other arguments, or a success that lacks something, is found.

use super::*;
use crate::provider::chat::Stop;
use crate::provider::lines::Unframer;
use contexture_core::testing::rounds;

/// A tool that needs a place.
const LOOK: &str = "look_up";
/// A tool that needs nothing.
const LIST: &str = "list_all";
/// Stands for the beginning of an escape, until an event is written.
const ESCAPE: char = '\u{e000}';

struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit.max(1)
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// What the model gave.
#[derive(Debug, Clone, PartialEq, Default)]
struct Given {
    text: String,
    reasoning: String,
    calls: Vec<(String, Value)>,
}

const WORDS: &[&str] = &[
    "Hi ",
    "né 漢字 ",
    "😀",
    "{\"a\":",
    "}",
    "\"",
    "\\",
    "data: x\n\n",
    "[DONE]",
    "\u{0}",
    "\\ud83d",
    "\r\n",
    "<b>",
    "\u{10ffff}",
    "\u{10f800}",
    "\u{feff}",
    "null",
    " ",
    "'",
    "👨‍👩‍👧",
];

fn any_text(random: &mut Xorshift, most: usize) -> String {
    (0..random.below(most + 1)).map(|_| random.pick(WORDS)).collect()
}

fn any_given(random: &mut Xorshift) -> Given {
    let call = |at: usize, random: &mut Xorshift| match random.one_in(5) {
        true => (LIST.to_owned(), json!({})),
        false => {
            let mut arguments = json!({"city": format!("{}{at}", any_text(random, 3))});
            if random.one_in(3) {
                arguments["more"] = json!({"n": at, "deep": [any_text(random, 2), {"a": null}]});
            }
            (LOOK.to_owned(), arguments)
        }
    };
    let calls = random.pick(&[0, 0, 1, 1, 2, 2, 3]);
    let calls: Vec<_> = (0..calls).map(|at| call(at, random)).collect();
    let mut text = any_text(random, 4);
    if calls.is_empty() || random.one_in(2) {
        text.insert_str(0, "Well: ");
    } else {
        text.clear();
    }
    let reasoning = if random.one_in(3) { any_text(random, 3) + "hm" } else { String::new() };
    Given { text, reasoning, calls }
}

/// Cuts a text into pieces, some of them between the halves of a surrogate pair.
fn cut(text: &str, random: &mut Xorshift) -> Vec<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let (mut pieces, mut at) = (Vec::new(), 0);
    let longest = random.pick(&[1, 3, 9, 1000]);
    while at < units.len() {
        let end = (at + 1 + random.below(longest)).min(units.len());
        let mut piece = String::new();
        for read in char::decode_utf16(units[at..end].iter().copied()) {
            match read {
                Ok(c) => piece.push(c),
                Err(lone) => piece += &format!("{ESCAPE}{:04x}", lone.unpaired_surrogate()),
            }
        }
        pieces.push(piece);
        at = end;
    }
    pieces
}

/// An answer, as a server of a family sends it.
#[derive(Debug, Clone)]
struct Sent {
    family: Family,
    events: Vec<Value>,
    /// True if `[DONE]` follows.
    is_marked: bool,
}

fn with(mut value: Value, more: &Value) -> Value {
    for (name, member) in more.as_object().unwrap() {
        value[name] = member.clone();
    }
    value
}

/// Merges sequences at random: the order within each stays.
fn merged<T>(sequences: Vec<Vec<T>>, random: &mut Xorshift) -> Vec<T> {
    let mut left: Vec<_> = sequences.into_iter().map(|it| it.into_iter().peekable()).collect();
    let mut made = Vec::new();
    loop {
        left.retain_mut(|it| it.peek().is_some());
        if left.is_empty() {
            return made;
        }
        let at = random.below(left.len());
        made.extend(left[at].next());
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ids {
    First,
    Each,
    Other,
    None,
    Same,
    Number,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum IndexForm {
    Zero,
    One,
    Text,
    None,
    AllZero,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum MessageForm {
    Pieces,
    Whole,
    Object,
    Twice,
    Again,
    Growing,
    Placeholder,
}

/// The pieces of a call, as `OpenAI`'s interface has them.
fn openai_call(
    at: usize,
    (name, arguments): &(String, Value),
    (ids, index, form): (Ids, IndexForm, MessageForm),
    names: usize,
    random: &mut Xorshift,
) -> Vec<Value> {
    let text = arguments.to_string();
    let is_empty = *arguments == json!({});
    let mut parts: Vec<Value> = match form {
        MessageForm::Whole if is_empty => vec![random.pick(&[json!(""), json!("{}"), Value::Null])],
        MessageForm::Whole => vec![text.clone().into()],
        MessageForm::Object => vec![arguments.clone()],
        MessageForm::Twice => vec![Value::from(text.clone()).to_string().into()],
        MessageForm::Growing => {
            let step = random.pick(&[1, 5, 1000]);
            let ends = text.char_indices().step_by(step).skip(1).map(|(end, _)| end);
            ends.chain([text.len()]).map(|end| text[..end].into()).collect()
        }
        MessageForm::Pieces | MessageForm::Again | MessageForm::Placeholder => {
            cut(&text, random).into_iter().map(Value::from).collect()
        }
    };
    if names == 2 {
        // Names come before the arguments.
        parts.splice(0..0, ["".into(), "".into()]);
    }
    match form {
        MessageForm::Again => parts.push(text.into()),
        MessageForm::Placeholder if !is_empty => parts.insert(0, "{}".into()),
        MessageForm::Pieces | MessageForm::Growing if random.one_in(2) => {
            parts.insert(0, "".into())
        }
        _ => {}
    }
    let piece = |(step, part): (usize, Value)| {
        let id = match ids {
            Ids::First | Ids::Each => json!(format!("call_{at}")),
            Ids::Other => json!(format!("call_{at}_{step}")),
            Ids::None => Value::Null,
            Ids::Same => json!("call_x"),
            Ids::Number => json!(700 + at),
        };
        let index = match index {
            IndexForm::Zero => json!(at),
            IndexForm::One => json!(at + 1),
            IndexForm::Text => json!(at.to_string()),
            IndexForm::AllZero => json!(0),
            IndexForm::None => Value::Null,
        };
        let has_id = step == 0 || matches!(ids, Ids::Each | Ids::Other);
        let mut call = json!({"function": {"arguments": part}});
        if step == 0 || names == 1 {
            call["function"]["name"] = name.as_str().into();
        }
        if names == 2 && step < 2 {
            let (begins, ends) = name.split_at(4);
            call["function"]["name"] = if step == 0 { begins } else { ends }.into();
        }
        match (has_id, names) {
            (true, _) => call["id"] = id,
            // Some servers send the members all the same.
            (false, 3) => call["id"] = "".into(),
            (false, 4) => call["id"] = Value::Null,
            _ => {}
        }
        if !index.is_null() {
            call["index"] = index;
        }
        if step == 0 || names == 1 {
            call["type"] = "function".into();
        }
        call
    };
    parts.into_iter().enumerate().map(piece).collect()
}

/// Returns whether the model asks for the same call twice.
fn asks_twice(given: &Given) -> bool {
    let calls = &given.calls;
    calls.iter().enumerate().any(|(at, call)| calls[..at].contains(call))
}

fn openai(given: &Given, random: &mut Xorshift) -> Sent {
    let reasoning_name = random.pick(&["reasoning_content", "reasoning", "thinking"]);
    let is_listed = random.one_in(4);
    let text = |piece: &String| match is_listed {
        true => json!({"content": [{"type": "text", "text": piece}]}),
        false => json!({"content": piece}),
    };
    let mut deltas: Vec<Value> =
        cut(&given.reasoning, random).iter().map(|it| json!({reasoning_name: it})).collect();
    let texts = cut(&given.text, random);
    deltas.extend(texts.iter().map(text));
    let forms = [
        MessageForm::Pieces,
        MessageForm::Pieces,
        MessageForm::Whole,
        MessageForm::Object,
        MessageForm::Twice,
        MessageForm::Again,
        MessageForm::Growing,
        MessageForm::Placeholder,
    ];
    let form = random.pick(&forms);
    let is_whole = matches!(form, MessageForm::Whole | MessageForm::Object | MessageForm::Twice);
    let indices = [
        IndexForm::Zero,
        IndexForm::Zero,
        IndexForm::One,
        IndexForm::Text,
        IndexForm::None,
        IndexForm::AllZero,
    ];
    let index = random.pick(&indices);
    let is_told = matches!(index, IndexForm::Zero | IndexForm::One | IndexForm::Text);
    let mut ids = random.pick(&[
        Ids::First,
        Ids::First,
        Ids::Each,
        Ids::Other,
        Ids::None,
        Ids::Same,
        Ids::Number,
    ]);
    // Without an index, ids or whole calls tell calls apart; what nothing tells is no shape.
    if !is_told && matches!(ids, Ids::None | Ids::Same | Ids::Other) {
        ids = if is_whole && ids == Ids::None { ids } else { Ids::First };
    }
    // An id that comes again with the same name and arguments is the same call again.
    if ids == Ids::Same && asks_twice(given) {
        ids = Ids::First;
    }
    if ids == Ids::Other && !matches!(form, MessageForm::Pieces) {
        ids = Ids::Each;
    }
    let mut names = random.below(5);
    if names == 1 && (ids == Ids::Other || form == MessageForm::Placeholder) {
        names = 0;
    }
    if names == 2
        && (is_whole
            || ids == Ids::Other
            || form == MessageForm::Placeholder
            || form == MessageForm::Growing
            || form == MessageForm::Again)
    {
        names = 0;
    }
    let known = &given.calls;
    // One after the other, calls without arguments and ids say nothing but their names.
    let listless = |call: &(String, Value)| call.0 == LIST;
    if !is_told && ids == Ids::None && known.iter().any(listless) {
        ids = Ids::First;
    }
    if names == 2 && known.iter().any(listless) {
        names = 0;
    }
    let calls: Vec<Vec<Value>> = known
        .iter()
        .enumerate()
        .map(|(at, call)| openai_call(at, call, (ids, index, form), names, random))
        .collect();
    let list = |calls: Vec<Value>| json!({ "tool_calls": calls });
    let is_together = calls.iter().all(|pieces| pieces.len() == 1) && random.one_in(3);
    if is_together && !calls.is_empty() {
        deltas.push(list(calls.concat()));
    } else if is_told && random.one_in(2) {
        deltas.extend(merged(calls, random).into_iter().map(|it| list(vec![it])));
    } else {
        deltas.extend(calls.into_iter().flatten().map(|it| list(vec![it])));
    }
    let reason =
        random.pick(if known.is_empty() { &["stop", "eos"] } else { &["tool_calls", "stop"] });
    let base = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1});
    let event = |choice: Value| with(base.clone(), &json!({"choices": [choice]}));
    let mut events: Vec<Value> = deltas
        .into_iter()
        .map(|delta| event(json!({"index": 0, "delta": delta, "finish_reason": null})))
        .collect();
    let is_marked = !random.one_in(3);
    if random.one_in(3) {
        events.insert(0, event(json!({"index": 0, "delta": {"role": "assistant", "content": ""}})));
    }
    if !is_marked || !random.one_in(4) {
        let last = json!({"index": 0, "delta": {}, "finish_reason": reason});
        events.push(event(last));
    }
    let usage = json!({"usage": {"prompt_tokens": 5, "completion_tokens": 6}});
    match random.below(4) {
        0 => events.push(with(with(base, &json!({"choices": []})), &usage)),
        1 => events.iter_mut().for_each(|event| *event = with(event.clone(), &usage)),
        _ => {}
    }
    Sent { family: Family::Openai, events, is_marked }
}

/// A whole answer, where a stream was asked for.
fn openai_whole(given: &Given, random: &mut Xorshift) -> Sent {
    let calls: Vec<Value> = given
        .calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            let arguments = match random.one_in(2) {
                true => arguments.clone(),
                false => arguments.to_string().into(),
            };
            json!({"id": format!("call_{at}"), "type": "function",
                   "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": given.text});
    if !given.reasoning.is_empty() {
        message["reasoning_content"] = given.reasoning.clone().into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let events = vec![json!({"object": "chat.completion", "choices": [
        {"index": 0, "message": message, "finish_reason": "stop"}]})];
    Sent { family: Family::Openai, events, is_marked: false }
}

fn anthropic(given: &Given, random: &mut Xorshift) -> Sent {
    let block = |at: usize, start: Value, deltas: Vec<Value>| -> Vec<Value> {
        let start = json!({"type": "content_block_start", "index": at, "content_block": start});
        let delta = |delta| json!({"type": "content_block_delta", "index": at, "delta": delta});
        let stop = json!({"type": "content_block_stop", "index": at});
        std::iter::once(start).chain(deltas.into_iter().map(delta)).chain([stop]).collect()
    };
    let mut blocks: Vec<Vec<Value>> = Vec::new();
    if !given.reasoning.is_empty() {
        let mut deltas: Vec<Value> = cut(&given.reasoning, random)
            .iter()
            .map(|it| json!({"type": "thinking_delta", "thinking": it}))
            .collect();
        deltas.push(json!({"type": "signature_delta", "signature": "c2ln"}));
        blocks.push(block(0, json!({"type": "thinking", "thinking": ""}), deltas));
    }
    if !given.text.is_empty() {
        let deltas = cut(&given.text, random);
        let deltas = deltas.iter().map(|it| json!({"type": "text_delta", "text": it})).collect();
        blocks.push(block(blocks.len(), json!({"type": "text", "text": ""}), deltas));
    }
    let form = random.below(5);
    let first_call = blocks.len();
    for (at, (name, arguments)) in given.calls.iter().enumerate() {
        let mut start =
            json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": {}});
        let delta = |it: String| json!({"type": "input_json_delta", "partial_json": it});
        let mut deltas: Vec<Value> =
            cut(&arguments.to_string(), random).into_iter().map(delta).collect();
        match form {
            0 => start["input"] = arguments.clone(),
            1 => drop(start.as_object_mut().unwrap().remove("input")),
            2 => start["input"] = Value::Null,
            3 => deltas.insert(0, json!({"type": "input_json_delta", "partial_json": ""})),
            _ => start["input"] = arguments.clone(),
        }
        if form == 4 || (*arguments == json!({}) && random.one_in(2)) {
            deltas.clear();
        }
        blocks.push(block(blocks.len(), start, deltas));
    }
    let usage = json!({"input_tokens": 5, "output_tokens": 1});
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg", "type": "message", "role": "assistant", "content": [], "usage": usage}})];
    if random.one_in(3) {
        let calls = blocks.split_off(first_call);
        events.extend(blocks.concat());
        let (starts, rest): (Vec<_>, Vec<_>) =
            calls.iter().map(|call| (call[0].clone(), call[1..].to_vec())).unzip();
        events.extend(starts);
        events.extend(merged(rest, random));
    } else {
        events.extend(blocks.concat());
    }
    let reason = if given.calls.is_empty() { "end_turn" } else { "tool_use" };
    let ends = random.below(4);
    if ends != 0 {
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason},
                           "usage": {"output_tokens": 9}}));
    }
    if ends != 1 {
        events.push(json!({"type": "message_stop"}));
    }
    Sent { family: Family::Anthropic, events, is_marked: false }
}

fn gemini(given: &Given, random: &mut Xorshift) -> Sent {
    let mut parts: Vec<Value> = cut(&given.reasoning, random)
        .iter()
        .map(|it| json!({"text": it, "thought": true}))
        .collect();
    parts.extend(cut(&given.text, random).iter().map(|it| json!({"text": it})));
    for (at, (name, arguments)) in given.calls.iter().enumerate() {
        let mut call = json!({"name": name, "args": arguments});
        if *arguments == json!({}) && random.one_in(2) {
            call.as_object_mut().unwrap().remove("args");
        }
        if random.one_in(3) {
            call["id"] = format!("id-{at}").into();
        }
        let mut part = json!({ "functionCall": call });
        if at == 0 {
            part["thoughtSignature"] = "c2ln".into();
        }
        parts.push(part);
    }
    let longest = random.pick(&[1, 4, 1000]);
    let event = |parts: &[Value]| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]});
    let mut events: Vec<Value> = parts.chunks(longest).map(event).collect();
    if events.is_empty() || random.one_in(2) {
        events.push(event(&[json!({"text": ""})]));
    }
    let last = events.last_mut().unwrap();
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 5, "candidatesTokenCount": 6});
    Sent { family: Family::Gemini, events, is_marked: false }
}

fn ollama(given: &Given, random: &mut Xorshift) -> Sent {
    let event = |message: Value| json!({"model": "m", "message": message, "done": false});
    let said = |name: &str, it: &String| event(json!({"role": "assistant", name: it}));
    let mut events: Vec<Value> =
        cut(&given.reasoning, random).iter().map(|it| said("thinking", it)).collect();
    events.extend(cut(&given.text, random).iter().map(|it| said("content", it)));
    let call = |(name, arguments): &(String, Value)| json!({"function": {"name": name, "arguments": arguments}});
    let calls: Vec<Value> = given.calls.iter().map(call).collect();
    let together = random.pick(&[1, 1000]);
    events.extend(
        calls.chunks(together).map(|calls| event(json!({"content": "", "tool_calls": calls}))),
    );
    let last = json!({"done": true, "done_reason": "stop", "eval_count": 3});
    if random.one_in(2) || events.is_empty() {
        events.push(with(event(json!({"role": "assistant", "content": ""})), &last));
    } else {
        let at = events.len() - 1;
        events[at] = with(events[at].clone(), &last);
    }
    Sent { family: Family::Ollama, events, is_marked: false }
}

/// The events of an item of the Responses API.
fn item_events(
    at: usize,
    item: &Value,
    (kind, name): (&str, &str),
    (has_deltas, has_done): (bool, bool),
    random: &mut Xorshift,
) -> Vec<Value> {
    let has_ids = random.one_in(2);
    let event = |kind: &str, more: Value| {
        let mut event =
            with(json!({"type": format!("response.{kind}"), "output_index": at}), &more);
        if has_ids && !item["id"].is_null() && kind.ends_with("delta") {
            event["item_id"] = item["id"].clone();
        }
        event
    };
    let is_call = item["type"] == "function_call";
    let whole = match is_call {
        true => item["arguments"].as_str().unwrap(),
        false => item[name][0]["text"].as_str().unwrap(),
    };
    let mut begun = item.clone();
    begun[name] = if is_call { json!("") } else { json!([]) };
    let mut events = vec![event("output_item.added", json!({"item": begun}))];
    if has_deltas {
        events.extend(cut(whole, random).into_iter().map(|it| event(kind, json!({"delta": it}))));
    }
    if is_call && has_deltas && random.one_in(2) {
        events.push(event("function_call_arguments.done", json!({"arguments": whole})));
    }
    if has_done {
        events.push(event("output_item.done", json!({"item": item})));
    }
    events
}

fn responses(given: &Given, random: &mut Xorshift) -> Sent {
    let has_ids = !random.one_in(4);
    let mut items: Vec<(Value, (&str, &str))> = Vec::new();
    let mut add = |item: Value, names: (&'static str, &'static str)| {
        let id = format!("item_{}", items.len());
        let item = if has_ids { with(item, &json!({ "id": id })) } else { item };
        items.push((item, names));
    };
    if !given.reasoning.is_empty() {
        let (part, kind, name) = random.pick(&[
            ("summary_text", "reasoning_summary_text.delta", "summary"),
            ("reasoning_text", "reasoning_text.delta", "content"),
        ]);
        let parts = json!([{"type": part, "text": given.reasoning}]);
        let item = json!({"type": "reasoning", "encrypted_content": "ZW5j", name: parts});
        add(item, (kind, name));
    }
    if !given.text.is_empty() {
        let content = json!([{"type": "output_text", "text": given.text}]);
        let item = json!({"type": "message", "role": "assistant", "content": content});
        add(item, ("output_text.delta", "content"));
    }
    for (at, (name, arguments)) in given.calls.iter().enumerate() {
        let call = json!({"type": "function_call", "call_id": format!("call_{at}"), "name": name,
                          "arguments": arguments.to_string()});
        add(call, ("function_call_arguments.delta", "arguments"));
    }
    let (has_deltas, has_done, has_output) = random.pick(&[
        (true, true, true),
        (true, false, false),
        (false, true, false),
        (false, false, true),
        (true, true, false),
        (false, true, true),
    ]);
    let output: Vec<Value> = items.iter().map(|(item, _)| item.clone()).collect();
    let mut sequences = Vec::new();
    for (at, (item, names)) in items.iter().enumerate() {
        sequences.push(item_events(at, item, *names, (has_deltas, has_done), random));
    }
    let calls = sequences.split_off(items.len() - given.calls.len());
    let mut events =
        vec![json!({"type": "response.created", "response": {"status": "in_progress"}})];
    events.extend(sequences.concat());
    if random.one_in(2) {
        events.extend(calls.concat());
    } else {
        let (starts, rest): (Vec<_>, Vec<_>) =
            calls.iter().map(|call| (call[0].clone(), call[1..].to_vec())).unzip();
        events.extend(starts);
        events.extend(merged(rest, random));
    }
    if !has_deltas && !has_done {
        events.truncate(1);
    }
    let output = if has_output { output } else { Vec::new() };
    events.push(json!({"type": "response.completed", "response": {"status": "completed",
        "error": null, "incomplete_details": null, "output": output,
        "usage": {"input_tokens": 5, "output_tokens": 6}}}));
    Sent { family: Family::Responses, events, is_marked: random.one_in(4) }
}

fn any_sent(given: &Given, random: &mut Xorshift) -> Sent {
    match random.below(10) {
        8 | 9 => responses(given, random),
        0..=3 => openai(given, random),
        4 if random.one_in(3) => openai_whole(given, random),
        4 | 5 => anthropic(given, random),
        6 => gemini(given, random),
        _ => ollama(given, random),
    }
}

/// Writes an event, perhaps in ASCII only.
fn written(event: &Value, is_ascii: bool) -> String {
    let text = event.to_string();
    let mut made = String::new();
    for c in text.chars() {
        match c {
            ESCAPE => made += "\\u",
            c if c.is_ascii() || !is_ascii => made.push(c),
            c => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    made += &format!("\\u{unit:04x}");
                }
            }
        }
    }
    made
}

/// Writes an answer as bytes.
fn framed(sent: &Sent, random: &mut Xorshift) -> Vec<u8> {
    let is_ascii = random.one_in(3);
    let texts: Vec<String> = sent.events.iter().map(|it| written(it, is_ascii)).collect();
    let is_stream = sent.family != Family::Ollama && (sent.is_marked || !random.one_in(4));
    if !is_stream {
        return match sent.family == Family::Gemini && random.one_in(2) {
            true => format!("[{}]", texts.join(",\r\n")),
            false => texts.join("\n") + "\n",
        }
        .into_bytes();
    }
    let end = random.pick(&["\n", "\r\n", "\r"]);
    // Some proxies leave the empty lines out, or write the name of the line twice.
    let begin = random.pick(&["data: ", "data: ", "data:", "data: data: "]);
    let between = if random.one_in(5) { "" } else { end };
    let mark = random.pick(&["[DONE]", "[DONE]", "[done]"]);
    let mut made = random.pick(&["", "\u{feff}", ": comment\n\n"]).to_owned();
    for text in texts.iter().map(String::as_str).chain(sent.is_marked.then_some(mark)) {
        if random.one_in(4) {
            made += &random.pick(&[
                format!(": ping{end}"),
                format!("event: x{end}"),
                format!(": a{end}{end}"),
            ]);
        }
        made += &format!("{begin}{text}{end}{between}");
    }
    made.into_bytes()
}

/// What was heard.
#[derive(Debug, Default)]
struct HeardAnswer {
    /// True if the answer is complete, and there was no error.
    is_whole: bool,
    whole: Response,
}

impl HeardAnswer {
    fn calls(&self) -> Vec<(String, Value)> {
        let read = |call: &ToolCall| {
            (call.name.clone(), serde_json::from_str(&call.arguments).unwrap_or_default())
        };
        self.whole.calls.iter().map(read).collect()
    }

    /// Returns the calls that would run: see `agent::chat::calls`.
    fn runnable(&self) -> Vec<(String, Value)> {
        let stop = self.whole.stop.as_ref();
        if !self.is_whole || !stop.is_some_and(Stop::has_whole_calls) {
            return Vec::new();
        }
        let mut calls = self.calls();
        calls.retain(|(name, arguments)| match &**name {
            LOOK => {
                let lost = arguments.to_string().contains(char::REPLACEMENT_CHARACTER);
                arguments["city"].is_string() && !lost
            }
            LIST => arguments.is_object(),
            _ => false,
        });
        calls
    }

    fn is_success(&self) -> bool {
        self.is_whole && self.whole.stop.as_ref().is_some_and(|stop| stop.ending().is_none())
    }
}

fn hear(family: Family, bytes: &[u8], longest: usize) -> HeardAnswer {
    let (mut reader, mut pieces) = (AnswerReader::new(family, 1, false), Vec::new());
    let mut unframer = Unframer::default();
    let mut read: Result<(), Broken> = Ok(());
    {
        let mut take = |text: &str| reader.take(text, &mut pieces);
        for chunk in bytes.chunks(longest) {
            read = read.and_then(|()| unframer.push(chunk, &mut take));
        }
    }
    let mut take_last = |text: &str| reader.take_last(text, &mut pieces);
    read = read.and_then(|()| unframer.end(&mut take_last));
    let is_whole = reader.closed(&mut pieces) && read.is_ok();
    let mut whole = Response::default();
    pieces.into_iter().for_each(|piece| whole.add(piece));
    HeardAnswer { is_whole, whole }
}

/// Checks that the answer is what the model gave.
#[track_caller]
fn check_equal(given: &Given, sent: &Sent, heard: &HeardAnswer) {
    let found = Given {
        text: heard.whole.text.clone(),
        reasoning: heard.whole.reasoning.clone(),
        calls: heard.calls(),
    };
    assert!(heard.is_success() && found == *given, "{heard:#?}\n{given:#?}\n{sent:#?}");
    assert_eq!(heard.runnable(), given.calls, "{sent:#?}");
}

/// Checks that nothing runs that the model did not ask for.
#[track_caller]
fn check_runnable(given: &Given, sent: &Sent, heard: &HeardAnswer, is_once: bool) {
    let mut left = given.calls.clone();
    for call in heard.runnable() {
        let place = left.iter().position(|known| *known == call);
        let place = place.unwrap_or_else(|| panic!("{call:?} would run\n{heard:#?}\n{sent:#?}"));
        if is_once {
            left.remove(place);
        }
    }
}

/// Something that happens to a value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Harm {
    /// Nothing says so.
    Absent,
    /// Another text or number, which the server may have meant.
    Other,
    /// No server means this.
    Impossible,
}

/// Returns the places of all members of an event.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut deeper = |name: &str, value: &Value| {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        found.push(place.clone());
        places(value, &place, found);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| deeper(name, value)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(at, value)| deeper(&at.to_string(), value));
        }
        _ => {}
    }
}

/// Swaps a value for one of another type. Returns `None` if nothing can be said of what follows.
fn swapped(sent: &mut Sent, random: &mut Xorshift) -> Option<(String, Harm)> {
    let at = random.below(sent.events.len());
    let event = sent.events.get_mut(at)?;
    let texts = event.to_string();
    let has_part = ["partial_json", "\"arguments\":\"", "function_call_arguments"]
        .iter()
        .any(|part| texts.contains(part));
    let mut all = Vec::new();
    places(event, "", &mut all);
    let place = random.pick(&all);
    let within = |name: &str| place.contains(&format!("/{name}/"));
    // Within arguments, everything is the model's.
    let is_of_model = within("arguments") || within("args") || within("input");
    let name = place.rsplit('/').next()?.to_owned();
    let target = event.pointer_mut(&place)?;
    let was = target.clone();
    let is_arguments = ["arguments", "args", "input", "partial_json"].contains(&&*name);
    let is_part = is_arguments && was.is_string();
    let values = [
        (Harm::Absent, Value::Null),
        (Harm::Absent, json!("")),
        (Harm::Absent, json!([])),
        (Harm::Absent, json!({})),
        (Harm::Other, json!("x")),
        (Harm::Other, json!(7)),
        (Harm::Impossible, json!(true)),
        (Harm::Impossible, json!(2.5)),
        (Harm::Impossible, json!([7])),
        (Harm::Impossible, json!([[true]])),
        (Harm::Impossible, json!({"a": 1})),
    ];
    let (mut harm, value) = random.pick(&values);
    // Of what a server leaves out in the middle, nobody knows.
    let is_part = is_part || (has_part && !["id", "index"].contains(&&*name));
    // Other arguments are another call, which no reader can tell.
    let is_call = is_arguments && value == json!({"a": 1});
    // A piece with new members only says nothing that is known, as a piece that was left out.
    let is_new = within("choices") && name == "delta" && value.is_object();
    if is_of_model || is_call || (is_part && (is_new || harm != Harm::Impossible)) {
        return None;
    }
    let is_same_type = std::mem::discriminant(&was) == std::mem::discriminant(&value);
    // Numbers in place of texts are none of a model's words, but ids may be numbers.
    let takes_numbers = ["id", "index", "finish_reason"].contains(&&*name) || was.is_number();
    if harm == Harm::Other && value.is_number() && !takes_numbers {
        harm = Harm::Impossible;
    }
    if harm == Harm::Impossible && is_same_type {
        harm = Harm::Other;
    }
    // A part of a text may be a text.
    let is_list = was.is_array() || (was.is_object() && !within("content"));
    if harm == Harm::Other
        && value == json!("x")
        && is_list
        && !["content", "summary"].contains(&&*name)
    {
        harm = Harm::Impossible;
    }
    *target = value;
    Some((place, harm))
}

/// Returns whether a call of an answer of `OpenAI`'s interface has an id.
fn has_ids(sent: &Sent) -> bool {
    let deltas = sent.events.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"]);
    let ids = deltas.filter_map(Value::as_array).flatten().map(|call| &call["id"]);
    ids.into_iter().any(|id| !id.is_null() && id != "")
}

fn number_of_answers() -> u64 {
    rounds(3000, 100_000)
}

/// Calls this with many answers.
fn each(seed: u64, check: impl Fn(&Given, Sent, &mut Xorshift)) {
    for number in 0..number_of_answers() / 3 {
        let mut random = Xorshift((seed + number) * 2 + 1);
        for _ in 0..4 {
            random.below(2);
        }
        let given = any_given(&mut random);
        let sent = any_sent(&given, &mut random);
        check(&given, sent, &mut random);
    }
}

#[test]
fn what_a_model_gave_arrives_however_it_is_written() {
    each(0, |given, mut sent, random| {
        // What nobody knows does not matter, and the end may come again.
        if random.one_in(3) {
            let at = random.below(sent.events.len());
            sent.events[at]["x_new"] = random.pick(&[json!(1), json!({"a": []}), json!(null)]);
        }
        if random.one_in(4) && sent.family != Family::Ollama {
            let last = sent.events.last().filter(|event| {
                let texts = event.to_string();
                !["functionCall", "text", "content", "arguments", "reasoning", "thinking"]
                    .iter()
                    .any(|name| texts.contains(name))
            });
            let last = last.cloned();
            sent.events.extend(last);
        }
        let bytes = framed(&sent, random);
        let longest = random.pick(&[1, 2, 7, 100, usize::MAX]);
        check_equal(given, &sent, &hear(sent.family, &bytes, longest));
    });
}

#[test]
fn values_of_other_types_are_never_acted_on() {
    each(1 << 32, |given, mut sent, random| {
        let Some((place, harm)) = swapped(&mut sent, random) else { return };
        let bytes = framed(&sent, random);
        let heard = hear(sent.family, &bytes, usize::MAX);
        // A call again with another id, or another index where none has an id, is another call.
        let is_told_by = |name| place.ends_with(name) && place.contains("/tool_calls/");
        let is_other = harm == Harm::Other
            && (place.ends_with("/id") || (is_told_by("/index") && !has_ids(&sent)));
        check_runnable(given, &sent, &heard, !is_other);
        if harm == Harm::Impossible && heard.is_success() {
            let found = (&heard.whole.text, &heard.whole.reasoning);
            let is_same = found == (&given.text, &given.reasoning)
                && heard.whole.calls.len() >= given.calls.len();
            assert!(
                is_same,
                "{place} is not read, and not told\n{heard:#?}\n{given:#?}\n{sent:#?}"
            );
        }
    });
}

#[test]
fn a_cut_is_no_end() {
    each(2 << 32, |given, sent, random| {
        let bytes = framed(&sent, random);
        let end = random.below(bytes.len());
        let heard = hear(sent.family, &bytes[..end], usize::MAX);
        check_runnable(given, &sent, &heard, true);
        let is_begun = given.text.starts_with(heard.whole.text.trim_end_matches('\u{fffd}'));
        assert!(is_begun, "{heard:#?}\n{given:#?}");
        if heard.is_success() {
            check_equal(given, &sent, &heard);
        } else {
            assert!(heard.whole.calls.is_empty(), "{heard:#?}\n{sent:#?}");
        }
    });
}
