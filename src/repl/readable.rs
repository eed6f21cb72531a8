//! Formats answers of methods as lines that are easy to read.

use super::lisp::string_at;
use crate::value::sexp;
use crate::value::{Key, Value};
use crate::visible::visible;

/// Formats an item of the context as one line.
pub(super) fn item(item: &Value) -> String {
    let text = |name: &str| visible(string_at(item, name).unwrap_or_default());
    let tokens = item.get("tokens").map(plain).unwrap_or_default();
    let metadata = item.get("metadata");
    let of_metadata = |name| metadata.and_then(|metadata| metadata.get(name));
    // What is in no file came from a buffer, such as that of a debugger.
    let place = of_metadata("filename").or_else(|| of_metadata("buffer"));
    let place = place.map(plain).unwrap_or_default();
    let lines = match (of_metadata("start-line"), of_metadata("end-line")) {
        (Some(start), Some(end)) if start == end => format!(":{}", plain(start)),
        (Some(start), Some(end)) => format!(":{}-{}", plain(start), plain(end)),
        _ => String::new(),
    };
    let (id, kind) = (text("id"), text("type"));
    let line = format!("{id:<8} {kind:<12} {tokens:>6} tokens  {place}{lines}");
    format!("{}\n", line.trim_end())
}

/// Formats an answer with one line for each of its entries.
pub(super) fn answer(value: &Value) -> String {
    let mut out = String::new();
    lines(value, 0, &mut out);
    out
}

fn lines(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Map(entries) => {
            for (name, value) in entries {
                if is_nested(value) {
                    out.push_str(&format!("{indent}{}:\n", visible(name)));
                    lines(value, depth + 1, out);
                } else {
                    out.push_str(&format!("{indent}{}: {}\n", visible(name), plain(value)));
                }
            }
        }
        Value::List(items) => items.iter().for_each(|item| match item {
            Value::Map(entries) => {
                let entry =
                    |(name, value): &(Key, Value)| format!("{} {}", visible(name), plain(value));
                let line: Vec<_> = entries.iter().map(entry).collect();
                out.push_str(&format!("{indent}{}\n", line.join(", ")));
            }
            item => out.push_str(&format!("{indent}{}\n", plain(item))),
        }),
        value => out.push_str(&format!("{indent}{}\n", plain(value))),
    }
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Map(_) => true,
        Value::List(items) => items.iter().any(|item| matches!(item, Value::Map(_))),
        _ => false,
    }
}

/// Formats a value on one line, without Lisp's notation where possible.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Nil | Value::Bool(false) => "no".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Str(text) => visible(&text.replace('\n', " ")).into_owned(),
        Value::Keyword(name) | Value::Symbol(name) => visible(name).into_owned(),
        Value::List(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => visible(&sexp::print(other)).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repl::lisp::{list, number, plist};

    #[test]
    fn answers_are_lines() {
        let parts = list([plist([("part", Value::from("a")), ("value", Value::Float(0.5))])]);
        let value = plist([
            ("tokens", number(12)),
            ("full", Value::Nil),
            ("parts", parts),
            ("ids", list([Value::from("ctx-1"), Value::from("ctx-2")])),
        ]);
        let expected = "tokens: 12\nfull: no\nparts:\n  part a, value 0.5\nids: ctx-1 ctx-2\n";
        assert_eq!(answer(&value), expected);
    }

    #[test]
    fn items_say_where_they_are_from() {
        let check = |metadata: Value, expected: &str| {
            let row = plist([("id", Value::from("ctx-1")), ("metadata", metadata)]);
            assert_eq!(item(&row).split_once(" tokens").unwrap().1.trim(), expected);
        };
        let file = || ("filename", Value::from("/a.lisp"));
        check(plist([file()]), "/a.lisp");
        let lines = |end| plist([file(), ("start-line", number(3)), ("end-line", number(end))]);
        check(lines(7), "/a.lisp:3-7");
        check(lines(3), "/a.lisp:3");
        check(plist([("buffer", Value::from("*sly-db*"))]), "*sly-db*");
        check(Value::Nil, "");
    }

    #[test]
    fn nothing_hides_in_names() {
        let name = || Value::from("a\u{202e}b\u{1b}c\u{200b}");
        let metadata = plist([("filename", name())]);
        let line = item(&plist([("id", name()), ("type", name()), ("metadata", metadata)]));
        let parts = list([plist([("part", name())])]);
        let lines =
            answer(&plist([("session", name()), ("parts", parts), ("all", list([name()]))]));
        for text in [line, lines] {
            assert!(!text.contains(['\u{202e}', '\u{1b}', '\u{200b}']), "{text:?}");
            assert!(text.contains("a\\u{202e}b\\u{1b}c\\u{200b}"), "{text}");
        }
    }
}
