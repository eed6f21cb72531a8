//! The contract: the calls that the design documents of Contexture describe. Other programs are
//! written to those documents, so the names, parameters and results of these calls never change.
//! Every other name may change.

use super::error::param_error;
use super::params::KEY;
use crate::value::Value;
use crate::wire::message::WireError;

/// A call of the contract.
pub(crate) struct ContractCall {
    /// Name of the call.
    pub(super) name: &'static str,
    /// Method that carries out the call.
    method: &'static str,
    /// Parameters that the method names otherwise: the name in the contract, and the method's.
    renamed: &'static [(&'static str, &'static str)],
    /// Parameter that the call gives to the method, and its value.
    given: Option<(&'static str, bool)>,
}

const KEPT_TOKENS: &[(&str, &str)] = &[("max-tokens", "keep-tokens")];
const KEPT_ITEMS: &[(&str, &str)] = &[("max-items", "keep-messages")];

/// Every call of the contract.
pub(crate) const CONTRACT: [ContractCall; 13] = [
    row("add-context", "add-item"),
    row("get-context", "list-items"),
    ContractCall { given: Some(("all", true)), ..row("clear-context", "remove-items") },
    ContractCall { given: Some(("text-only", true)), ..row("context-to-string", "render-items") },
    row("build-context", "build-window"),
    row("process-turn", "process-turn"),
    row("checkpoint", "checkpoint"),
    row("rollback", "rollback"),
    ContractCall { given: Some(("quality-only", true)), ..row("quality-score", "session-report") },
    ContractCall { renamed: KEPT_TOKENS, ..row("prune-context", "prune-session") },
    ContractCall { renamed: KEPT_ITEMS, ..row("summarize-context", "summarize-session") },
    row("context-stats", "session-report"),
    ContractCall {
        renamed: KEPT_TOKENS,
        given: Some(("if-needed", true)),
        ..row("auto-manage-context", "prune-session")
    },
];

const fn row(name: &'static str, method: &'static str) -> ContractCall {
    ContractCall { name, method, renamed: &[], given: None }
}

/// Returns the calls of the contract that the method carries out under another name.
pub(super) fn rows_of(method: &str) -> impl Iterator<Item = &'static ContractCall> {
    CONTRACT.iter().filter(move |row| row.method == method && row.name != method)
}

/// Finds the call of the contract with this name, and changes its parameters to those of its
/// method. Returns the name of the method, too; `None` if the name is not in the contract.
pub(super) fn resolve(
    name: &str,
    params: &mut Value,
) -> Option<(&'static ContractCall, &'static str)> {
    let row = CONTRACT.iter().find(|row| row.name == name)?;
    for (in_contract, of_method) in row.renamed {
        if let Some(value) = params.take_named(in_contract) {
            params.put_first(of_method, value);
        }
    }
    if let Some((name, value)) = row.given {
        params.put_first(name, Value::Bool(value));
    }
    Some((row, row.method))
}

/// Name of the parameter with a history of the client's own.
pub(super) const HISTORY: &str = "messages";

/// Removes the parameters that a call about a client's own history does not take: the session,
/// which must be `nil`, and the request key, since the call changes nothing.
pub(super) fn without_session(params: &mut Value) -> Result<(), WireError> {
    params.take_named(KEY);
    for name in ["session", "if-version", "since", "dry-run"] {
        if !matches!(params.take_named(name), None | Some(Value::Nil)) {
            let message = format!("cannot be combined with the parameter {name}");
            return Err(param_error(HISTORY, &message));
        }
    }
    Ok(())
}

/// Returns the error of a call with the names that the contract has for the parameters.
pub(super) fn in_contract(mut error: WireError, row: &ContractCall) -> WireError {
    for (in_contract, of_method) in row.renamed {
        if let Some(rest) = error.message.strip_prefix(of_method) {
            error.message = format!("{in_contract}{rest}");
            let entries = match &mut error.data {
                Value::Map(entries) => &mut entries[..],
                _ => &mut [],
            };
            let params = entries.iter_mut().filter(|(key, _)| &**key == "param");
            params.for_each(|(_, value)| *value = Value::Keyword((*in_contract).into()));
        }
    }
    error
}

/// Returns a sentence about the calls of the contract that the method carries out; empty if there
/// are none.
pub(crate) fn described(method: &str) -> String {
    let one = |row: &ContractCall| {
        let renamed = row.renamed.iter().map(|(one, other)| format!("`:{one}` is `:{other}`"));
        let given = row.given.map(|(name, _)| format!("`:{name}` is true"));
        let all: Vec<_> = renamed.chain(given).collect();
        match all.is_empty() {
            true => format!("`{}`", row.name),
            false => format!("`{}` ({})", row.name, all.join(", ")),
        }
    };
    let rows: Vec<_> = rows_of(method).map(one).collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!("In the contract: {}.", rows.join(", ")),
    }
}
