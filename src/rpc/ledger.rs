//! The method that returns the ledger of a session: a list of the facts in its messages.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::params::{InSession, not_negative};
use super::{Finish, Step};
use crate::curation::ledger::{Kind, Ledger};
use crate::ids::SessionId;
use crate::session::message::Message;
use crate::wire::message::WireError;

/// Default size of the ledger, in tokens.
const DEFAULT_TOKENS: u64 = 2_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SessionLedgerCall {
    session: Option<InSession>,
    #[schemars(description = format!("Maximum number of tokens; defaults to {DEFAULT_TOKENS}."))]
    max_tokens: Option<i64>,
    /// Maximum number of tokens of a second text, `:used`, with the commands, paths, addresses
    /// and figures that the work used. `:ledger` then leaves out commands and paths, and `:used`
    /// leaves out what is in `:ledger`. Tokens of `:max-tokens` that `:ledger` does not use are
    /// added to this number. Without this parameter, there is no `:used`.
    used_tokens: Option<i64>,
}

/// The facts of a session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionLedger")]
pub(super) struct LedgerShown {
    /// Name of the session.
    session: String,
    /// Id of the session.
    id: SessionId,
    /// Number of messages that the ledger is made from.
    messages: usize,
    /// The ledger as Markdown, with the id of each entry's message; empty if there is nothing to
    /// keep.
    ledger: String,
    /// Tokens of the ledger.
    tokens: u64,
    /// Number of entries that did not fit.
    left_out: u64,
    /// Commands, paths, addresses and figures that the work used, as Markdown. If not all fit,
    /// those that it used often and recently are preferred. Only with `:used-tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<String>,
}

pub(super) fn session_ledger(_: Call, given: SessionLedgerCall) -> Result<Step, WireError> {
    let tokens = not_negative("max-tokens", given.max_tokens)?.unwrap_or(DEFAULT_TOKENS);
    let used_tokens: Option<u64> = not_negative("used-tokens", given.used_tokens)?;
    Step::then(move |engine| {
        let context = engine.session_context(given.session.as_deref(), None)?;
        let session = engine.session(context.row.id)?;
        let is_active = |message: &&Arc<Message>| session.state().is_active(message.number);
        let messages: Vec<Arc<Message>> = session.log().iter().filter(is_active).cloned().collect();
        Ok(Finish::later(move || {
            let measure = &context.costs.measure;
            let messages: Vec<&Message> = messages.iter().map(|message| &**message).collect();
            let mut ledger = Ledger::of(messages.iter().copied());
            let used_of = used_tokens.map(|tokens| (tokens, ledger.clone()));
            if used_of.is_some() {
                ledger = ledger.without(&[Kind::Command, Kind::Path]);
            }
            let ledger = ledger.within(tokens, measure);
            let text = ledger.render();
            let taken = measure.text(&text);
            let left = tokens.saturating_sub(taken);
            let used =
                used_of.map(|(tokens, whole)| whole.used(&messages, &text, tokens + left, measure));
            Ok(LedgerShown {
                session: context.row.name,
                id: SessionId(context.row.id),
                messages: messages.len(),
                tokens: taken,
                ledger: text,
                left_out: ledger.left_out,
                used,
            })
        }))
    })
}
