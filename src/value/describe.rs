//! How a datum is named in an error message: short, on one line, whatever it holds.

use super::Value;

/// Longer texts are cut, in characters: enough to recognise, too little to flood a log.
const LONGEST: usize = 40;

impl Value {
    /// A few words for `got …`: the datum itself when it is small, else what it is.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Nil => "nil".to_owned(),
            Self::Bool(true) => "t".to_owned(),
            Self::Bool(false) => "false".to_owned(),
            Self::Int(number) => number.to_string(),
            Self::BigInt(digits) => cut(digits),
            Self::Float(number) => number.to_string(),
            Self::Str(text) => format!("\"{}\"", cut(text)),
            Self::RawStr(_) => "a string with raw bytes".to_owned(),
            Self::Symbol(name) => format!("the symbol {}", cut(name)),
            Self::Keyword(name) => format!(":{}", cut(name)),
            Self::List(_) => "a list".to_owned(),
            Self::Dotted(..) => "a dotted pair".to_owned(),
            Self::Vector(_) => "a vector".to_owned(),
            Self::Map(_) => "a map".to_owned(),
            Self::Record(_) => "a record".to_owned(),
            Self::Propertized(text, _) => format!("\"{}\"", cut(text)),
            Self::BoolVector(..) => "a bool-vector".to_owned(),
        }
    }
}

/// The beginning of `text`, with everything that would break a line escaped.
fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
