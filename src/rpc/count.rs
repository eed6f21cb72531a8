//! The method that counts the tokens that a turn would send to the model now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::call::Call;
use super::chat::{self, ChatParams};
use super::error::agent_error;
use super::params::{InSession, ManagerName, Name, Switch, given_list};
use super::tool_names::ToolNames;
use super::window::SectionTexts;
use super::{Finish, Step};
use crate::agent::{self, Count};
use crate::ids::SessionId;
use crate::session::message::Phase;
use crate::tokens::model::LimitFrom;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct CountParams {
    session: Option<InSession>,
    /// Message that is being typed; defaults to none.
    content: Option<String>,
    /// Phase of the work.
    phase: Option<Phase>,
    /// Name of the provider; defaults to the one that has the model, else to the first configured.
    provider: Option<Name>,
    /// Model, or the name of a provider; defaults to the model of `:provider`; without `:provider`,
    /// to the session's model, else to that of the default provider.
    model: Option<Name>,
    /// Tools that the model may call: `t` means all, `nil` none. Defaults to the session's setting,
    /// and the tools that clients bring for the session.
    #[serde(default)]
    tools: ToolNames,
    /// Texts to include with the conversation, as in `build-window`.
    sections: Option<SectionTexts>,
    /// Managers whose items to include, in place of the session's managers, from general to
    /// specific.
    #[serde(default, deserialize_with = "given_list")]
    managers: Option<Vec<ManagerName>>,
}

pub(super) fn count_window(call: Call, given: CountParams) -> Result<Step, WireError> {
    let content = given.content.filter(|content| !content.trim().is_empty()).unwrap_or_default();
    let given = ChatParams {
        session: given.session,
        content,
        phase: given.phase,
        provider: given.provider,
        model: given.model,
        manage: Switch(Some(false)),
        tools: given.tools,
        sections: given.sections,
        managers: given.managers,
        ..ChatParams::default()
    };
    let request = chat::request(&call, given)?;
    Step::then(move |_| {
        Ok(Finish::Later(Box::new(move || {
            let counted = Handle::current().block_on(agent::count(call.job(), request));
            let count = counted.map_err(agent_error)?;
            Ok(Value::of(&CountedWindow::from(&count)))
        })))
    })
}

/// The number of tokens that would be sent to the model now, and its limits.
#[derive(Serialize, JsonSchema)]
pub(super) struct CountedWindow<'a> {
    /// Name of the session.
    session: &'a str,
    /// Id of the session.
    session_id: SessionId,
    /// Name of the model; `nil` if none is chosen.
    model: Option<&'a str>,
    /// Tokens that would be sent.
    tokens: u64,
    /// Maximum number of tokens that the model takes; `nil` if it is unknown.
    limit: Option<u64>,
    /// Source of the limit; `:default` if the limit is unknown.
    limit_from: LimitFrom,
    /// Maximum number of tokens in the window.
    max_tokens: u64,
    /// Tokens of everything that was offered for the window.
    offered: u64,
    /// True if the counts are the model's own rather than estimates.
    exact: bool,
    /// True if the messages in view take more than 80 % of the model's limit.
    needs_pruning: bool,
}

impl<'a> From<&'a Count> for CountedWindow<'a> {
    fn from(count: &'a Count) -> Self {
        Self {
            session: &count.session,
            session_id: SessionId(count.session_id),
            model: count.model.as_deref(),
            tokens: count.tokens,
            limit: count.limit,
            limit_from: count.limit_from,
            max_tokens: count.max_tokens,
            offered: count.offered,
            exact: count.exact,
            needs_pruning: count.needs_pruning,
        }
    }
}
