//! Describes a datum in an error message: short and on one line, whatever it holds.

use super::Value;

/// Maximum length of a quoted text, in characters: enough to recognize the text, too little to
/// flood a log.
const LONGEST: usize = 40;

impl Value {
    /// Describes the datum for `got …`: the datum itself if it is small, otherwise its type.
    pub fn describe(&self) -> String {
        match self {
            Self::Nil => "nil".to_owned(),
            Self::Bool(true) => "t".to_owned(),
            Self::Bool(false) => "false".to_owned(),
            Self::Int(number) => number.to_string(),
            Self::BigInt(digits) => cut(digits),
            // With a point, to tell it from an integer.
            Self::Float(number) | Self::FloatText(number, _) => format!("{number:?}"),
            Self::Str(text) => format!("\"{}\"", cut(text)),
            Self::RawStr(_) => "a string with raw bytes".to_owned(),
            Self::Symbol(name) => format!("the symbol {}", cut(name)),
            Self::Keyword(name) => format!(":{}", cut(name)),
            Self::List(_) => "a list".to_owned(),
            Self::Dotted(..) => "a dotted pair".to_owned(),
            Self::Vector(_) => "a vector".to_owned(),
            Self::Map(_) => "a map".to_owned(),
        }
    }
}

/// Returns the beginning of `text`, with everything escaped that would break the line.
fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
