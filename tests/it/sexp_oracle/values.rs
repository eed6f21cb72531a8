//! Random values: any that can be read, those that Emacs keeps as they are, and everyday ones.

use contexture_program::internals::value::Value;
use contexture_program::internals::value::sexp::print;
use proptest::collection::vec;
use proptest::prelude::*;

/// The same data to the last bit, NaN and the sign of zero included.
pub(crate) fn identical(one: &Value, other: &Value) -> bool {
    format!("{one:?}") == format!("{other:?}") && print(one) == print(other)
}

/// Any value that reading can give.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    atom().prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 1..6).prop_map(Value::List),
            1 => vec(inner.clone(), 0..6).prop_map(Value::Vector),
            1 => (vec(inner.clone(), 1..4), inner).prop_map(|(items, tail)| dotted(items, tail)),
        ]
    })
}

/// What lexpr can represent: no nasty names, no huge integers, no odd floats.
pub(crate) fn everyday() -> impl Strategy<Value = Value> {
    let atom = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (-1000i32..1000).prop_map(|eighths| Value::Float(f64::from(eighths) / 8.0)),
        "[ -~λé\n\t]{0,12}".prop_map(Value::Str),
        "[a-su-z][a-z0-9-]{1,8}".prop_filter("nil", |name| name != "nil").prop_map(symbol),
        "[a-z][a-z0-9-]{0,8}".prop_map(|name| Value::Keyword(name.into_boxed_str())),
        Just(Value::Nil),
    ];
    atom.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..6).prop_map(Value::List),
            vec(inner.clone(), 0..6).prop_map(Value::Vector),
            (vec(inner.clone(), 1..4), inner).prop_map(|(items, tail)| dotted(items, tail)),
        ]
    })
}

/// Our value for lexpr's.
pub(crate) fn from_lexpr(value: &lexpr::Value) -> Value {
    match value {
        lexpr::Value::Nil | lexpr::Value::Null => Value::Nil,
        lexpr::Value::Bool(truth) => Value::Bool(*truth),
        lexpr::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap()),
        },
        lexpr::Value::String(text) => Value::Str(text.to_string()),
        lexpr::Value::Symbol(name) => symbol(name.to_string()),
        lexpr::Value::Keyword(name) => Value::Keyword(name.clone()),
        lexpr::Value::Vector(items) => Value::Vector(items.iter().map(from_lexpr).collect()),
        lexpr::Value::Cons(cons) => {
            let (items, tail) = cons.to_vec();
            let items = items.iter().map(from_lexpr).collect();
            dotted(items, from_lexpr(&tail))
        }
        other => panic!("{other:?} is nothing everyday"),
    }
}

/// lexpr's value for ours.
pub(crate) fn to_lexpr(value: &Value) -> lexpr::Value {
    match value {
        Value::Nil => lexpr::Value::Null,
        Value::Int(number) => lexpr::Value::from(*number),
        Value::Float(number) => lexpr::Value::from(*number),
        Value::Str(text) => lexpr::Value::from(text.as_str()),
        Value::Symbol(name) => lexpr::Value::symbol(name.clone()),
        Value::Keyword(name) => lexpr::Value::keyword(name.clone()),
        Value::List(items) => lexpr::Value::list(items.iter().map(to_lexpr)),
        Value::Vector(items) => {
            lexpr::Value::Vector(items.iter().map(to_lexpr).collect::<Vec<_>>().into())
        }
        Value::Dotted(items, tail) => {
            lexpr::Value::append(items.iter().map(to_lexpr), to_lexpr(tail))
        }
        other => panic!("{other:?} is nothing everyday"),
    }
}

fn atom() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Nil),
        Just(Value::Bool(true)),
        any::<i64>().prop_map(Value::Int),
        "-?[1-9][0-9]{19,60}".prop_map(|digits| Value::BigInt(digits.into_boxed_str())),
        any::<u64>().prop_map(|bits| Value::Float(quiet(f64::from_bits(bits)))),
        prop::num::f64::ANY.prop_map(|number| Value::Float(quiet(number))),
        any::<String>().prop_map(Value::Str),
        "[a-f0-9\\\\\"\u{0}-\u{20}\u{7f}-\u{a0}λ]{0,20}".prop_map(Value::Str),
        raw_string(),
        name().prop_map(symbol),
        name().prop_map(|name| Value::Keyword(name.into_boxed_str())),
    ]
    .boxed()
}

/// Names full of what readers stumble over, but those that are no plain symbols.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9+.?#'\"`,;()\\[\\]\\\\ {}|~@:&eINF\t\u{0}\u{7f}λ\u{a0}“Â-]{0,6}",
        "[-+]?[0-9]{0,3}[.]?[0-9]{0,3}(e[-+]?([0-9]{1,2}|INF|NaN))?[.x]?",
        any::<String>().prop_map(|name| name.replace(['\n', '\r'], "")),
    ]
    .prop_filter("not a plain symbol", |name| {
        name != "nil" && name != "t" && !name.starts_with(':')
    })
}

fn symbol(name: String) -> Value {
    Value::Symbol(name.into_boxed_str())
}

/// A string with at least one code that is no character.
fn raw_string() -> impl Strategy<Value = Value> {
    let code = prop_oneof![
        2 => 0x3F_FF80u32..=0x3F_FFFF,
        2 => 0u32..0x80,
        1 => Just(0xE9u32),
        1 => any::<char>().prop_map(u32::from),
    ];
    (vec(code, 0..10), 0x3F_FF80u32..=0x3F_FFFF).prop_map(|(mut codes, raw)| {
        codes.push(raw);
        Value::RawStr(codes)
    })
}

/// A list with a tail in the form in which it is read: a list as tail continues the list.
fn dotted(mut items: Vec<Value>, tail: Value) -> Value {
    match tail {
        Value::Nil => Value::List(items),
        Value::List(more) => {
            items.extend(more);
            Value::List(items)
        }
        Value::Dotted(more, tail) => {
            items.extend(more);
            Value::Dotted(items, tail)
        }
        atom => Value::Dotted(items, Box::new(atom)),
    }
}

/// Signalling NaNs cannot be written.
fn quiet(number: f64) -> f64 {
    if number.is_nan() { f64::from_bits(number.to_bits() | 1 << 51) } else { number }
}
