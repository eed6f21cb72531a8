//! The words of errors as JSON clients know them: names in snake_case, `true`, `false` and `null`.
//! Errors are made with the words of Lisp.

use std::borrow::Cow;

use super::method::Method;
use crate::value::Value;
use crate::wire::dialect::Dialect;
use crate::wire::message::WireError;

/// Members of an error's data whose values are names of parameters or methods.
const NAMING: [&str; 4] = ["param", "setting", "nearest", "method"];
/// Phrases of Lisp with their counterparts in JSON; the first that fits is used.
const PHRASES: [(&str, &str); 5] = [
    ("t or nil", "true or false"),
    ("t", "true"),
    ("nil", "null"),
    ("a property list or map", "an object"),
    ("a property list", "an object"),
];

/// Returns an error in the words of the dialect. `method` is the called method, if there is one;
/// `is_method` tells whether a word is the name of a method.
pub(super) fn spelled(
    error: WireError,
    dialect: Dialect,
    method: Option<&Method>,
    is_method: impl Fn(&str) -> bool,
) -> WireError {
    if !dialect.is_json() {
        return error;
    }
    let told: Vec<&str> =
        NAMING.iter().filter_map(|name| error.data.get(name)).flat_map(texts).collect();
    let is_told = |word: &str| told.iter().any(|path| words(path).any(|told| told == word));
    let of_method = |word: &str| method.is_some_and(|method| method.has_name(word));
    let is_name =
        |word: &str| word.contains('-') && (is_told(word) || is_method(word) || of_method(word));
    let is_of_message =
        matches!(error.code, WireError::INVALID_PARAMS | WireError::INVALID_REQUEST);
    let has_phrases = !told.is_empty() || is_of_message;
    let message = match error.code {
        // Every name in the message is that of a method, even the unknown name.
        WireError::METHOD_NOT_FOUND => error.message.replace('-', "_"),
        _ => in_json(&error.message, if has_phrases { &PHRASES } else { &[] }, is_name),
    };
    WireError { code: error.code, message, data: with_names(error.data) }
}

/// Returns the texts in a value from the data of an error.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Str(text) => vec![text],
        Value::Keyword(text) | Value::Symbol(text) => vec![text],
        Value::List(names) => names.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Returns the names in a path such as `messages[0].tool-calls`.
fn words(path: &str) -> impl Iterator<Item = &str> {
    path.split(|c| !is_of_word(c))
}

fn with_names(data: Value) -> Value {
    let Value::Map(mut entries) = data else { return data };
    for (_, value) in entries.iter_mut().filter(|(key, _)| NAMING.contains(&&**key)) {
        snake(value);
    }
    Value::Map(entries)
}

fn snake(name: &mut Value) {
    match name {
        Value::Str(text) => *text = text.replace('-', "_"),
        Value::Keyword(text) | Value::Symbol(text) => *text = text.replace('-', "_").into(),
        Value::List(names) => names.iter_mut().for_each(snake),
        _ => {}
    }
}

/// Returns the message with its words in JSON's spelling. Text between quotes comes from a client
/// and stays.
fn in_json(
    message: &str,
    phrases: &[(&str, &'static str)],
    is_name: impl Fn(&str) -> bool,
) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => quoted(rest),
            // `:max-items` is the parameter `max_items`.
            ':' if !is_of_word(before) && before != ':' => match keyword(&rest[1..]) {
                Some(name) => {
                    out.push_str(&name.replace('-', "_"));
                    before = '-';
                    rest = &rest[1 + name.len()..];
                    continue;
                }
                None => 1,
            },
            _ if is_of_word(first) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let phrase = phrases.iter().find(|(lisp, _)| is_phrase(rest, lisp, before));
        let (taken, said) = match phrase {
            Some((lisp, json)) => (lisp.len(), Cow::Borrowed(*json)),
            None if before != '/' && is_name(&rest[..length]) => {
                (length, Cow::Owned(rest[..length].replace('-', "_")))
            }
            None => (length, Cow::Borrowed(&rest[..length])),
        };
        before = rest[..taken].chars().next_back().unwrap_or(before);
        out.push_str(&said);
        rest = &rest[taken..];
    }
    out
}

/// Returns the name at the beginning of a text, if it consists of several words joined by `-`.
fn keyword(text: &str) -> Option<&str> {
    let name = &text[..text.find(|c| !is_of_word(c)).unwrap_or(text.len())];
    (name.starts_with(|c: char| c.is_ascii_lowercase()) && name.contains('-')).then_some(name)
}

/// Returns the length in bytes of the quoted text at the beginning, including the quotes.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| match c {
        '"' => !is_escaped,
        c => {
            is_escaped = *c == '\\' && !is_escaped;
            false
        }
    });
    end.map_or(text.len(), |(end, _)| end + 1)
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_')
}

/// Returns whether the text begins with the phrase, as whole words. `before` is the character
/// before the text.
fn is_phrase(text: &str, phrase: &str, before: char) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c| is_of_word(c) || c == '\'');
    let begins = !is_of_word(before) && !matches!(before, ':' | '\'' | '/' | '.');
    begins && text.strip_prefix(phrase).is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        let is_name = |word: &str| ["max-tokens", "tool-calls", "start-line"].contains(&word);
        assert_eq!(in_json(message, &PHRASES, is_name), expected);
    }

    #[test]
    fn names_and_truth_are_spelled_as_in_json() {
        check("max-tokens must be 0 or more, got -3", "max_tokens must be 0 or more, got -3");
        check("metadata.start-line must be", "metadata.start_line must be");
        check("is required, or tool-calls, or x-y", "is required, or tool_calls, or x-y");
        check("must be t or nil, got nil", "must be true or false, got null");
        check("unpin some, or raise :max-items with x", "unpin some, or raise max_items with x");
        check("give t; don't, :t or nil-x", "give true; don't, :t or nil-x");
    }

    #[test]
    fn words_of_the_client_stay() {
        check(r#"got "max-tokens \" nil", nil"#, r#"got "max-tokens \" nil", null"#);
        check(
            "no file /srv/max-tokens and \"max-tokens",
            "no file /srv/max-tokens and \"max-tokens",
        );
    }
}
