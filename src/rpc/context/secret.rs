//! What the methods that add items do with text that looks like a secret.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::rpc::error::application;
use crate::rpc::error_data::ErrorData;
use crate::wire::message::WireError;

/// Maximum number of names in the message of an error; its data has all.
const NAMED: usize = 5;

/// What to do with text that looks like a secret: a file that usually holds passwords, keys or
/// tokens, or a text that has some.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SecretPolicy {
    /// Add it like any other.
    Add,
    /// Add nothing, and fail with the names of what looks like a secret.
    Ask,
    /// Leave it out, and add the rest.
    Omit,
}

impl SecretPolicy {
    /// Returns whether a text is looked at.
    pub(super) fn is_asked(given: Option<Self>) -> bool {
        given.is_some_and(|given| given != Self::Add)
    }

    /// Refuses one text that looks like a secret, unless it is to be added; by default it is.
    pub(super) fn check(
        given: Option<Self>,
        name: Option<&str>,
        text: &str,
    ) -> Result<(), WireError> {
        match Self::is_asked(given) && files::is_secret(name.map(Path::new), text) {
            true => Err(refused(vec![name.unwrap_or("this text").to_owned()])),
            false => Ok(()),
        }
    }
}

/// Creates the error for texts with these names, which look like secrets.
pub(super) fn refused(names: Vec<String>) -> WireError {
    let more = names.len().saturating_sub(NAMED);
    let mut named = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    let (looks, it) = if names.len() == 1 { ("looks", "it") } else { ("look", "them") };
    let message = format!(
        "{named} {looks} like a secret, so nothing was added; ask the user, and add {it} with \
         :secrets :add"
    );
    application(&ErrorData::LooksSecret { names }, message)
}
