//! Reads values of answers in every shape that servers give them. A value of any other shape is an
//! error: read as empty, it would be acted on.

use serde_json::Value;

use super::{Broken, ErrorKind, ServerRefusal, Stop};

/// Maximum depth of texts within texts.
const DEEPEST: usize = 8;
/// The first of the characters for private use that stand for halves of surrogate pairs.
const HALVES: u32 = 0x0010_F800;
/// The first byte of such characters in UTF-8.
const FIRST_BYTE: u8 = 0xf4;
/// The first surrogate.
const SURROGATES: u32 = 0xD800;
/// The first surrogate that is the second half of a pair.
const LOW: u32 = 0xDC00;
/// Types of parts that are reasoning.
const REASONS: &[&str] =
    &["thinking", "reasoning", "thought", "reasoning.text", "reasoning_text", "summary_text"];
/// Number of surrogates.
const COUNT: u32 = 0x800;

pub(super) type Shaped<T> = Result<T, Broken>;

/// Returns the error for a value of an unknown shape.
pub(super) fn unknown(name: &str, value: &Value) -> Broken {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object of an unknown form",
    };
    Broken::malformed(format!("the value of {name} is {kind}"))
}

/// Parses an event. Halves of surrogate pairs, which JSON forbids, become characters that
/// [`mended`] puts together. JSON that was encoded twice is decoded twice.
pub(super) fn parse(text: &str) -> Shaped<Value> {
    // Of texts that need no marks, most have no escape of a surrogate.
    let has_marks = memchr::memmem::find(text.as_bytes(), b"\\u").is_some()
        || memchr::memchr(FIRST_BYTE, text.as_bytes()).is_some();
    let parsed = match has_marks {
        true => serde_json::from_str(&marked(text)),
        false => serde_json::from_str(text),
    };
    match parsed {
        Ok(Value::String(inner)) if inner.trim_start().starts_with('{') => {
            let inner = mended(&inner);
            serde_json::from_str(&marked(&inner)).map_err(|error| not_json(&error, &inner))
        }
        Ok(value) => Ok(value),
        Err(error) => Err(not_json(&error, text)),
    }
}

fn not_json(error: &serde_json::Error, text: &str) -> Broken {
    let beginning: String = text.chars().take(80).collect();
    Broken::malformed(format!("a piece of the answer is not JSON: {error}: {beginning}"))
}

/// Replaces lone surrogates with characters for private use, and each such character with those
/// for its own surrogates.
fn marked(text: &str) -> String {
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(escape, 16).ok()
    };
    let (mut made, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(found) = memchr::memchr2(b'\\', FIRST_BYTE, &text.as_bytes()[at..]) {
        made += &text[at..at + found];
        at += found;
        let next = |at: usize| text[at..].chars().next();
        let units = [unit(at), unit(at + 6)];
        let pair = char::decode_utf16(units.into_iter().flatten()).next();
        let (read, length) = match (units[0], pair) {
            (Some(_), Some(Ok(c))) => (Some(c), 6 * c.len_utf16()),
            (Some(lone), _) => {
                made.extend(mark(lone));
                at += 6;
                continue;
            }
            (None, _) if text[at..].starts_with('\\') => {
                (None, 1 + next(at + 1).map_or(0, char::len_utf8))
            }
            (None, _) => (next(at), next(at).map_or(1, char::len_utf8)),
        };
        match read.filter(|c| half(*c).is_some()) {
            Some(c) => made.extend(c.encode_utf16(&mut [0; 2]).iter().filter_map(|it| mark(*it))),
            None => made += &text[at..at + length],
        }
        at += length;
    }
    made + &text[at..]
}

/// Returns the character that stands for a surrogate.
fn mark(surrogate: u16) -> Option<char> {
    char::from_u32(HALVES + u32::from(surrogate).checked_sub(SURROGATES)?)
}

/// Returns the surrogate that a character stands for.
fn half(c: char) -> Option<u32> {
    let offset = u32::from(c).checked_sub(HALVES).filter(|offset| *offset < COUNT);
    offset.map(|offset| SURROGATES + offset)
}

/// Puts halves of surrogate pairs together. A half without the other becomes U+FFFD.
pub(super) fn mended(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut made = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        let Some(first) = half(c) else {
            made.push(c);
            continue;
        };
        let low = chars.peek().and_then(|next| half(*next)).filter(|low| *low >= LOW);
        match low.filter(|_| first < LOW) {
            Some(low) => {
                chars.next();
                let code = 0x10000 + ((first - SURROGATES) << 10) + (low - LOW);
                made.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            None => made.push(char::REPLACEMENT_CHARACTER),
        }
    }
    made
}

/// Puts halves together in all texts of a value.
pub(super) fn mended_value(value: &Value) -> Value {
    let text = value.to_string();
    match memchr::memchr(FIRST_BYTE, text.as_bytes()) {
        Some(_) => serde_json::from_str(&mended(&text)).unwrap_or_default(),
        None => value.clone(),
    }
}

/// A text that arrives in pieces, which may end between the halves of a surrogate pair.
#[derive(Default)]
pub(super) struct Halves(Option<char>);

impl Halves {
    /// Adds a piece, and returns what can be shown now.
    pub(super) fn add(&mut self, more: &str) -> String {
        let mut text: String = self.0.take().into_iter().collect();
        text += more;
        self.0 = text.chars().next_back().filter(|last| half(*last).is_some_and(|it| it < LOW));
        let shown = self.0.map_or(text.len(), |held| text.len() - held.len_utf8());
        mended(&text[..shown])
    }

    /// Returns what was held back.
    pub(super) fn end(&mut self) -> String {
        self.0.take().map_or(String::new(), |held| mended(held.encode_utf8(&mut [0; 4])))
    }
}

/// A text, and the reasoning among its parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prose {
    pub(super) text: String,
    pub(super) reasoning: String,
}

/// Reads a text: a string, `null`, a part, or a list of parts, of which some may be reasoning.
pub(super) fn said(name: &str, value: &Value) -> Shaped<Prose> {
    let mut found = Prose::default();
    add(&mut found, name, value, false, DEEPEST)?;
    Ok(found)
}

/// Reads a text without telling reasoning apart.
pub(super) fn text(name: &str, value: &Value) -> Shaped<String> {
    let Prose { text, reasoning } = said(name, value)?;
    Ok(reasoning + &text)
}

fn add(found: &mut Prose, name: &str, value: &Value, thinks: bool, depth: usize) -> Shaped<()> {
    match value {
        _ if depth == 0 => return Err(unknown(name, value)),
        Value::Null => {}
        Value::String(text) if thinks => found.reasoning += text,
        Value::String(text) => found.text += text,
        Value::Array(parts) => {
            parts.iter().try_for_each(|part| add(found, name, part, thinks, depth - 1))?;
        }
        Value::Object(part) => {
            let kind = kind("type", part.get("type").unwrap_or(&Value::Null))?;
            let reasons = REASONS.contains(&kind);
            let texts = ["", "text", "output_text", "refusal", "input_text"];
            if !reasons && !texts.contains(&kind) {
                // A part of another kind, such as a reference to a source.
                return Ok(());
            }
            let names = ["thinking", "text", "content", "reasoning", "summary", "refusal", "value"];
            let inner = names.iter().find_map(|name| part.get(*name));
            let inner = inner.ok_or_else(|| unknown(name, value))?;
            add(found, name, inner, thinks || reasons, depth - 1)?;
        }
        Value::Bool(_) | Value::Number(_) => return Err(unknown(name, value)),
    }
    Ok(())
}

/// Reads a short text, such as an id: a string, a number, or `null`.
pub(super) fn word(name: &str, value: &Value) -> Shaped<String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(mended(text)),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(unknown(name, value)),
    }
}

/// Reads one of several known words, such as a type: a string, or nothing.
pub(super) fn kind<'v>(name: &str, value: &'v Value) -> Shaped<&'v str> {
    match value {
        Value::Null => Ok(""),
        Value::String(kind) => Ok(kind),
        _ => Err(unknown(name, value)),
    }
}

/// Reads a truth value, perhaps written as a string.
pub(super) fn flag(name: &str, value: &Value) -> Shaped<bool> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text == "true" || text == "false" => Ok(text == "true"),
        _ => Err(unknown(name, value)),
    }
}

/// Reads an index: a number, the digits of one, or `null`.
pub(super) fn index(name: &str, value: &Value) -> Shaped<Option<u64>> {
    match value {
        Value::Null => Ok(None),
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
            Err(unknown(name, value))
        }
        _ => figure(value).map(Some).ok_or_else(|| unknown(name, value)),
    }
}

/// Reads a list: an array, `null`, or the only entry itself.
pub(super) fn list<'v>(name: &str, value: &'v Value) -> Shaped<&'v [Value]> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(entries) => Ok(entries),
        Value::Object(_) => Ok(std::slice::from_ref(value)),
        _ => Err(unknown(name, value)),
    }
}

/// Reads an object; `None` for `null`.
pub(super) fn object<'v>(name: &str, value: &'v Value) -> Shaped<Option<&'v Value>> {
    match value {
        Value::Null => Ok(None),
        Value::Object(_) => Ok(Some(value)),
        _ => Err(unknown(name, value)),
    }
}

/// Checks that an object has one of these members, or none at all.
pub(super) fn has_one(name: &str, value: &Value, members: &[&str]) -> Shaped<()> {
    let has = |map: &serde_json::Map<String, Value>| {
        map.is_empty() || members.iter().any(|member| map.contains_key(*member))
    };
    match value.as_object().is_none_or(has) {
        true => Ok(()),
        false => Err(unknown(name, value)),
    }
}

/// Reads a count: a whole number, perhaps written with a fraction or as a string.
pub(super) fn figure(value: &Value) -> Option<u64> {
    let whole = |number: f64| (0.0..1e15).contains(&number).then_some(number.trunc() as u64);
    let text = || value.as_str()?.trim().parse().ok();
    value.as_u64().or_else(|| value.as_f64().and_then(whole)).or_else(text)
}

/// Returns the first of these entries that is there and not `null`.
pub(super) fn first<'v>(value: &'v Value, names: &[&str]) -> &'v Value {
    let found = names.iter().map(|name| &value[*name]).find(|value| !value.is_null());
    found.unwrap_or(&Value::Null)
}

/// Reads the reason for an end. The words are those of all families, since servers that imitate one
/// often pass on the words of another.
///
/// # Errors
/// The words for a failure of the server.
pub(super) fn stop(reason: &Value) -> Shaped<Option<Stop>> {
    let said = mended(kind("the reason for the end", reason)?);
    Ok(Some(match &*said.to_lowercase() {
        // Several servers send these with each piece.
        "" | "null" | "none" | "finish_reason_unspecified" => return Ok(None),
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete" | "completed"
        | "end" => Stop::Finished,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "max_length"
        | "limit"
        | "model_context_window_exceeded"
        | "context_length"
        | "token_limit" => Stop::Length,
        "tool_calls" | "tool_call" | "function_call" | "tool_use" => Stop::Calls,
        "refusal" => Stop::Refused,
        "content_filter"
        | "content_filtered"
        | "guardrail_intervened"
        | "sensitive"
        | "safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "image_safety"
        | "content-filter" => Stop::Filtered,
        "malformed_function_call"
        | "unexpected_tool_call"
        | "too_many_tool_calls"
        | "malformed_response"
        | "missing_thought_signature" => Stop::Malformed,
        "pause_turn" => Stop::Paused,
        "error" | "network_error" | "insufficient_system_resource" | "abort" | "cancelled" => {
            let what = format!("the answer broke off: {}", said.to_lowercase());
            return Err(ServerRefusal::new(ErrorKind::Unavailable, what).into());
        }
        _ => Stop::Other(said),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_of_characters_are_put_together() {
        let value =
            parse(r#"{"a": "x\ud83d", "b": "\ude00y\\ud83d", "c": "\ud83d\ude00"}"#).unwrap();
        let text = |name: &str| value[name].as_str().unwrap();
        let mut halves = Halves::default();
        assert_eq!(halves.add(text("a")), "x");
        assert_eq!(halves.add(text("b")), "😀y\\ud83d");
        assert_eq!(text("c"), "😀");
        assert_eq!(halves.add(text("a")), "x");
        assert_eq!(halves.add("z"), "\u{fffd}z");
        assert_eq!(halves.add(text("a")) + &halves.end(), "x\u{fffd}");
        for text in ["\u{10ffff}\u{10f800}", r"\udbff\udfff\udbfe\udc00"] {
            let value = parse(&format!("[{{\"a\": \"{text}\"}}]")).unwrap();
            assert_eq!(mended(value[0]["a"].as_str().unwrap()), "\u{10ffff}\u{10f800}");
            assert_eq!(mended_value(&value)[0]["a"], "\u{10ffff}\u{10f800}");
        }
        assert!(parse(r#"{"a": "\ud83d"#).is_err());
        assert!(parse("{\"a\\").is_err());
    }

    #[track_caller]
    fn check(value: Value, text: &str, reasoning: &str) {
        let found = said("content", &value).unwrap();
        assert_eq!((&*found.text, &*found.reasoning), (text, reasoning), "{value}");
    }

    #[test]
    fn texts_come_in_many_shapes() {
        check(json!(null), "", "");
        check(json!("a"), "a", "");
        check(json!(["a", {"type": "text", "text": "b"}, {"text": "c"}]), "abc", "");
        check(json!({"type": "output_text", "text": {"value": "a"}}), "a", "");
        check(
            json!([{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, "a"]),
            "a",
            "r",
        );
        check(json!([{"type": "reference", "reference_ids": [1]}, "a"]), "a", "");
        for value in [json!(1), json!(true), json!([1]), json!({"type": "text"}), json!({"x": "a"})]
        {
            assert!(said("content", &value).is_err(), "{value}");
        }
    }

    #[test]
    fn counts_come_as_numbers_and_as_text() {
        for value in [json!(7), json!(7.0), json!("7")] {
            assert_eq!(figure(&value), Some(7), "{value}");
        }
        for value in [json!(-7), json!("x"), json!(null), json!([7]), json!(1e300)] {
            assert_eq!(figure(&value), None, "{value}");
        }
    }
}
