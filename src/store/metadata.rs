//! Metadata as text that reads back exactly: an s-expression in which the values that only JSON has
//! (false, the empty list, maps) are records. Names are strings, because a symbol cannot contain a
//! newline.

use super::StoreError;
use crate::context::item::Metadata;
use crate::value::sexp;
use crate::value::{Key, Value};

/// Formats metadata for a column.
pub(super) fn print(metadata: &Metadata) -> String {
    print_value(&Value::Map(metadata.0.clone()))
}

/// Formats a datum as text that reads back exactly.
pub(crate) fn print_value(value: &Value) -> String {
    sexp::print(&enclose(value))
}

/// Parses text that [`print_value`] made.
pub(crate) fn read_value(text: &str) -> Option<Value> {
    disclose(sexp::read(text).ok()?)
}

/// Parses text that [`print`] made.
pub(super) fn read(text: &str) -> Result<Metadata, StoreError> {
    match read_value(text) {
        Some(Value::Map(entries)) => Ok(Metadata(entries)),
        _ => Err(StoreError::Damaged(format!("cannot parse the metadata {text:?}"))),
    }
}

fn enclose(value: &Value) -> Value {
    let all = |items: &[Value]| items.iter().map(enclose).collect::<Vec<_>>();
    match value {
        Value::Bool(false) => record("false", Vec::new()),
        Value::List(items) if items.is_empty() => record("list", Vec::new()),
        Value::Map(entries) => {
            let pair = |(key, value): &(Key, Value)| [enclose_key(key), enclose(value)];
            record("map", entries.iter().flat_map(pair).collect())
        }
        Value::FloatText(_, text) => record("number", vec![Value::Str(text.to_string())]),
        Value::Record(items) => record("record", all(items)),
        Value::List(items) => Value::List(all(items)),
        Value::Vector(items) => Value::Vector(all(items)),
        Value::Dotted(items, tail) => Value::Dotted(all(items), Box::new(enclose(tail))),
        other => other.clone(),
    }
}

/// Encloses a key: in a vector if its exact spelling in JSON text is fixed.
fn enclose_key(key: &Key) -> Value {
    let name = Value::Str(key.to_string());
    if key.is_exact() { Value::Vector(vec![name]) } else { name }
}

fn disclose_key(key: Value) -> Option<Key> {
    match key {
        Value::Str(name) => Some(name.into()),
        Value::Vector(names) => match &names[..] {
            [Value::Str(name)] => Some(Key::exact(name)),
            _ => None,
        },
        _ => None,
    }
}

fn disclose(value: Value) -> Option<Value> {
    let all = |items: Vec<Value>| items.into_iter().map(disclose).collect::<Option<Vec<_>>>();
    Some(match value {
        Value::Record(mut items) => {
            let Value::Symbol(name) = items.remove(0) else { return None };
            match &*name {
                "false" => Value::Bool(false),
                "list" => Value::List(Vec::new()),
                "map" => Value::Map(pairs(items)?),
                "number" => match &items[..] {
                    [Value::Str(text)] => Value::FloatText(text.parse().ok()?, (&**text).into()),
                    _ => return None,
                },
                "record" => Value::Record(all(items)?),
                _ => return None,
            }
        }
        Value::List(items) => Value::List(all(items)?),
        Value::Vector(items) => Value::Vector(all(items)?),
        Value::Dotted(items, tail) => Value::Dotted(all(items)?, Box::new(disclose(*tail)?)),
        other => other,
    })
}

fn pairs(flat: Vec<Value>) -> Option<Vec<(Key, Value)>> {
    let mut entries = Vec::with_capacity(flat.len() / 2);
    let mut flat = flat.into_iter();
    while let Some(name) = flat.next() {
        entries.push((disclose_key(name)?, disclose(flat.next()?)?));
    }
    Some(entries)
}

fn record(name: &str, mut items: Vec<Value>) -> Value {
    items.insert(0, Value::Symbol(name.into()));
    Value::Record(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_either_dialect_reads_back_exactly() {
        let lisp = r#"((b . c) [1 :x nil t "s\377" 1e+300 -0.0 #s(map 1 (:z 2))] #("x" 0 1 (face bold)) #&5"\37" sym)"#;
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
        assert!(read("(:a").is_err() && read("#s(map :a)").is_err() && read("3").is_err());
    }
}
