//! The data of every message: one type that s-expressions and JSON both map onto.
//!
//! It knows nothing of text, files or connections. [`Value`] keeps apart what Emacs keeps apart
//! (symbols and strings, lists and vectors) and what JSON keeps apart (`null`, `false` and `[]`),
//! so that a value goes through either dialect without loss.

/// One datum.
///
/// A property list arrives as a [`Value::List`] from an s-expression and as a [`Value::Map`] from
/// JSON or from a serialized struct; whoever wants a map takes both. Keys of a `Map` are kebab-case
/// names without a colon; the JSON side writes them in snake_case.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `nil`: null, and false and the empty list to readers who expect those.
    #[default]
    Nil,
    /// JSON's `true` and `false`; `t` reads as `Bool(true)`, `Bool(false)` prints as `nil`.
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// Any other integer: decimal digits with an optional minus sign, exact.
    BigInt(Box<str>),
    /// A float; infinities and NaN are allowed.
    Float(f64),
    /// Text.
    Str(String),
    /// A string that is not Unicode text: Emacs character codes, raw bytes as 0x3FFF80–0x3FFFFF.
    RawStr(Vec<u32>),
    /// A symbol other than `nil` and `t`, its name unescaped.
    Symbol(Box<str>),
    /// A keyword, its name without the leading colon, unescaped.
    Keyword(Box<str>),
    /// A proper list; never empty when it was read from an s-expression (that is `Nil`).
    List(Vec<Value>),
    /// A list with a tail other than `nil`: `(a b . c)`; the tail is never a list.
    Dotted(Vec<Value>, Box<Value>),
    /// A vector, `[a b]`.
    Vector(Vec<Value>),
    /// A map with kebab-case names in the order given.
    Map(Vec<(Box<str>, Value)>),
    /// A record or hash table, `#s(a b)`, kept as its printed elements.
    Record(Vec<Value>),
    /// A string with text properties, `#("x" 0 1 (face bold))`: its text and the property tail.
    Propertized(String, Vec<Value>),
    /// A bool-vector `#&LENGTH"BITS"`: its length in bits, and the packed bytes.
    BoolVector(usize, Vec<u8>),
}
