//! Tool calls in a form that all servers accept.

use std::collections::HashSet;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Length of ids: templates of Mistral's models accept only this length, and only letters and
/// digits.
const ID_LENGTH: usize = 9;
/// Maximum length of a tool's name that all servers accept.
const LONGEST_NAME: usize = 64;
/// Name for a tool call without a name.
const NO_NAME: &str = "unknown";

/// The ids given so far. No two calls get the same new id, so that each result belongs to one call.
#[derive(Default)]
pub(super) struct Ids {
    taken: HashSet<String>,
}

impl Ids {
    /// Returns the id unchanged if no earlier call got it, and either the server gave it
    /// (`is_given`) or all servers accept it; else a replacement that depends only on the id and on
    /// earlier calls.
    pub(super) fn of(&mut self, id: &str, is_given: bool) -> String {
        let fits = id.len() == ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if (is_given || fits) && self.taken.insert(id.to_owned()) {
            return id.to_owned();
        }
        let mut given = made_of(id.as_bytes());
        while !self.taken.insert(given.clone()) {
            given = made_of(given.as_bytes());
        }
        given
    }
}

/// Derives an id of nine letters and digits.
fn made_of(bytes: &[u8]) -> String {
    const CHARACTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let character = |byte: &u8| char::from(CHARACTERS[usize::from(byte % 32)]);
    Sha256::digest(bytes).iter().take(ID_LENGTH).map(character).collect()
}

/// Turns a name into one of at most [`LONGEST_NAME`] ASCII letters, digits, `_` and `-`, which
/// begins with a letter or `_`.
pub(super) fn name(said: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut name: String = said.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    match name.chars().next() {
        None => return NO_NAME.to_owned(),
        Some(first) if first.is_ascii_alphabetic() || first == '_' => {}
        Some(_) => name.insert(0, '_'),
    }
    name.truncate(LONGEST_NAME);
    name
}

/// Returns arguments as the text of a JSON object: unchanged if they are an object, else wrapped in
/// one; see [`arguments`].
pub(super) fn object(text: &str) -> String {
    match serde_json::from_str::<serde_json::Map<String, Value>>(text) {
        Ok(_) => text.to_owned(),
        Err(_) => arguments(text).to_string(),
    }
}

/// Parses arguments as a JSON object. An empty text or `null` gives an empty object; any other text
/// becomes the entry `arguments` of an object.
pub(in crate::provider) fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Value::Object(map),
        _ if matches!(text.trim(), "" | "null") => Value::Object(serde_json::Map::new()),
        _ => serde_json::json!({"arguments": text}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_and_are_never_shared() {
        let mut ids = Ids::default();
        let given: Vec<String> = ["abcDEF123", "call_1", "call_1", "", "ä", "abcDEF123"]
            .map(|id| ids.of(id, false))
            .into();
        assert_eq!(given[0], "abcDEF123");
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len(), "{given:?}");
        for id in &given {
            assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
        assert_eq!(Ids::default().of("call_1", false), given[1]);
        assert_eq!(ids.of("toolu_01", true), "toolu_01");
    }

    #[test]
    fn names_have_what_servers_take() {
        assert_eq!(name("read_file"), "read_file");
        assert_eq!(name("api.read file"), "api_read_file");
        assert_eq!(name("9"), "_9");
        assert_eq!(name(""), "unknown");
        assert_eq!(name(&"ä".repeat(80)), "_".repeat(64));
    }

    #[test]
    fn arguments_are_an_object() {
        for text in ["{}", "{ \"a\" : 1.0 }"] {
            assert_eq!(object(text), text);
        }
        for text in ["", " \n", "null"] {
            assert_eq!(object(text), "{}");
        }
        for text in ["{\"a\":", "[1]", "7", "{\"a\": 1} and more"] {
            assert_eq!(object(text), serde_json::json!({"arguments": text}).to_string());
        }
    }
}
