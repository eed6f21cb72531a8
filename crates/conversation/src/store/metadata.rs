//! Metadata as text that reads back exactly: an s-expression in which the values that only JSON has
//! (`false`, the empty list, maps, the spelling of a number) are records such as `#s(false)`. The
//! keys of maps are strings, because a symbol cannot contain a newline.

use super::StoreError;
use crate::context::item::Metadata;
use crate::value::sexp;
use crate::value::{Key, Value};

/// Formats metadata for a column.
pub(super) fn print(metadata: &Metadata) -> String {
    print_value(&Value::Map(metadata.0.clone()))
}

/// Formats a value as text that reads back exactly.
pub fn print_value(value: &Value) -> String {
    let mut out = Vec::new();
    print_into(value, &mut out);
    sexp::into_text(out)
}

/// Parses text that [`print_value`] made; `None` if it cannot be parsed.
pub fn read_value(text: &str) -> Option<Value> {
    decode(sexp::read_stored(text).ok()?)
}

/// Parses text that [`print`] made.
pub(super) fn read(text: &str) -> Result<Metadata, StoreError> {
    match read_value(text) {
        Some(Value::Map(entries)) => Ok(Metadata(entries)),
        _ => Err(StoreError::Damaged(format!("cannot parse the metadata {text:?}"))),
    }
}

fn print_into(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(false) => out.extend_from_slice(b"#s(false)"),
        Value::List(items) if items.is_empty() => out.extend_from_slice(b"#s(list)"),
        Value::FloatText(_, text) => {
            out.extend_from_slice(b"#s(number ");
            sexp::print_str(text, out);
            out.push(b')');
        }
        Value::Map(entries) => {
            out.extend_from_slice(b"#s(map");
            for (key, value) in entries {
                out.push(b' ');
                print_key(key, out);
                out.push(b' ');
                print_into(value, out);
            }
            out.push(b')');
        }
        Value::List(items) => sexp::print_items("(", items, ")", out, print_into),
        Value::Vector(items) => sexp::print_items("[", items, "]", out, print_into),
        Value::Dotted(items, tail) => {
            sexp::print_items("(", items, " . ", out, print_into);
            print_into(tail, out);
            out.push(b')');
        }
        other => sexp::print_into(other, out),
    }
}

/// Prints a key as a string, in a vector if the exact spelling of the key in JSON is fixed.
fn print_key(key: &Key, out: &mut Vec<u8>) {
    if key.is_exact() {
        out.push(b'[');
    }
    sexp::print_str(key, out);
    if key.is_exact() {
        out.push(b']');
    }
}

fn decode_key(key: Value) -> Option<Key> {
    match key {
        Value::Str(name) => Some(name.into()),
        Value::Vector(names) => match &names[..] {
            [Value::Str(name)] => Some(Key::exact(name)),
            _ => None,
        },
        _ => None,
    }
}

fn decode(value: Value) -> Option<Value> {
    let all = |items: Vec<Value>| items.into_iter().map(decode).collect::<Option<Vec<_>>>();
    Some(match value {
        Value::Dotted(items, tail) if *tail == sexp::END_OF_RECORD => {
            let mut items = items.into_iter();
            let Some(Value::Symbol(name)) = items.next() else { return None };
            let items: Vec<Value> = items.collect();
            match &*name {
                "false" => Value::Bool(false),
                "list" => Value::List(Vec::new()),
                "map" => Value::Map(pairs(items)?),
                "number" => match &items[..] {
                    [Value::Str(text)] => Value::FloatText(text.parse().ok()?, (&**text).into()),
                    _ => return None,
                },
                _ => return None,
            }
        }
        Value::List(items) => Value::List(all(items)?),
        Value::Vector(items) => Value::Vector(all(items)?),
        Value::Dotted(items, tail) => Value::Dotted(all(items)?, Box::new(decode(*tail)?)),
        other => other,
    })
}

fn pairs(flat: Vec<Value>) -> Option<Vec<(Key, Value)>> {
    let mut entries = Vec::with_capacity(flat.len() / 2);
    let mut flat = flat.into_iter();
    while let Some(name) = flat.next() {
        entries.push((decode_key(name)?, decode(flat.next()?)?));
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_either_dialect_reads_back_exactly() {
        let lisp = r#"((b . c) [1 :x nil t "s\377" 1e+300 -0.0 [map 1 (:z [])]] sym)"#;
        let json = Value::Map(vec![
            ("f".into(), Value::Bool(false)),
            ("e".into(), Value::List(vec![])),
            ("m".into(), Value::Map(vec![("n".into(), Value::Nil)])),
            ("a b\n)".into(), Value::List(vec![Value::Bool(false)])),
            (Key::exact("a-b"), Value::FloatText(100.0, "1e2".into())),
        ]);
        let metadata =
            Metadata(vec![("lisp".into(), sexp::read(lisp).unwrap()), ("json".into(), json)]);
        assert_eq!(read(&print(&metadata)).unwrap(), metadata);
        assert_eq!(read(&print(&Metadata::default())).unwrap(), Metadata::default());
        assert!(
            read("(:a").is_err()
                && read("#s(map :a)").is_err()
                && read("#s(x)").is_err()
                && read("3").is_err()
        );
    }
}
