//! Earlier names of methods, which still work.

use super::error::param_error;
use super::params::KEY;
use crate::value::Value;
use crate::wire::message::WireError;

/// Earlier names of methods, each with the current name.
const RENAMED: [(&str, &str); 17] = [
    ("add-context", "add-item"),
    ("update-context", "update-item"),
    ("remove-context", "remove-items"),
    ("move-context", "move-item"),
    ("pin-context", "pin-items"),
    ("clear-context", "clear-manager"),
    ("get-context", "list-items"),
    ("render-context", "render-items"),
    ("context-summary", "count-items"),
    ("refresh-context", "refresh-items"),
    ("build-context", "build-window"),
    ("explain-context", "explain-window"),
    ("context-stats", "session-stats"),
    ("prune-context", "prune-session"),
    ("summarize-context", "summarize-session"),
    ("manage-context", "take-notes"),
    ("list-views", "list-notes"),
];

/// Earlier methods that did a part of what a method now does. Each comes with the name of that
/// method, the parameter that limits the method to this part, and the value of that parameter.
const PARTS: [(&str, &str, (&str, bool)); 2] = [
    ("switch-session", "open-session", ("create", false)),
    ("auto-manage-context", "prune-session", ("if-needed", true)),
];

/// Methods about a session that once had a parameter `messages` for a client's own history, each
/// with the method that now takes such a history.
const OF_HISTORY: [(&str, &str); 3] = [
    ("session-stats", "message-stats"),
    ("prune-session", "prune-messages"),
    ("summarize-session", "summarize-messages"),
];

pub(super) fn earlier_names(method: &str) -> impl Iterator<Item = &'static str> {
    let parts = PARTS.iter().map(|(earlier, now, _)| (*earlier, *now));
    let names = RENAMED.iter().copied().chain(parts);
    names.filter(move |(_, now)| *now == method).map(|(earlier, _)| earlier)
}

/// Returns the name under which the answers of a call are stored: the method's earlier name, if it
/// has one, so that a call can be repeated under either name.
pub(super) fn kept_name<'a>(method: &'a str, params: &Value) -> &'a str {
    let is_part = |(_, now, (name, value)): &&(&str, &str, (&str, bool))| {
        *now == method && params.get(name) == Some(&Value::Bool(*value))
    };
    let renamed = || RENAMED.iter().find(|(_, now)| *now == method).map(|(earlier, _)| *earlier);
    let part = PARTS.iter().find(is_part).map(|(earlier, ..)| *earlier);
    part.or_else(renamed).unwrap_or(method)
}

/// Returns the current name of a method called by an earlier name, and changes the parameters to
/// those that the method takes now. Returns `None` if the name is not an earlier one. Fails if the
/// parameters contradict each other.
pub(super) fn resolve(
    earlier: &str,
    params: &mut Value,
) -> Result<Option<&'static str>, WireError> {
    let renamed = RENAMED.iter().find(|(name, _)| *name == earlier).map(|(_, now)| *now);
    let part = PARTS.iter().find(|(name, ..)| *name == earlier);
    let Some(now) = renamed.or(part.map(|(_, now, _)| *now)) else { return Ok(None) };
    if earlier == "switch-session" {
        let session = params.take_named("session").unwrap_or_default();
        params.put_first("name", session);
    }
    if let Some((.., (name, value))) = part {
        params.put_first(name, Value::Bool(*value));
    }
    let of_history = OF_HISTORY.iter().find(|(of_session, _)| *of_session == now);
    match of_history.filter(|_| params.get("messages").is_some()) {
        Some((_, of_history)) => without_session(params).map(|()| Some(*of_history)),
        None => Ok(Some(now)),
    }
}

/// Removes the parameters that a call about a client's own history does not take: the session,
/// which must be `nil`, and the request key, since the call changes nothing.
fn without_session(params: &mut Value) -> Result<(), WireError> {
    params.take_named(KEY);
    match params.take_named("session") {
        None | Some(Value::Nil) => Ok(()),
        Some(_) => Err(param_error("messages", "cannot be combined with the parameter session")),
    }
}
