//! The method that counts the tokens that a turn would send to the model now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::call::MethodCall;
use super::chat::{self, ChatParams};
use super::params::{InSession, ManagerName, Name, Switch, given_list};
use super::present::{Decided, verdicts};
use super::report::WindowReport;
use super::tool_names::ToolNames;
use super::window::SectionTexts;
use super::{Finish, Step};
use crate::agent::{self, RequestCount};
use crate::ids::MessageId;
use crate::session::message::Phase;
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
    /// Model, or the name of a provider. Defaults to the model of `:provider`, else to the session's
    /// model, else to that of the default provider.
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
    /// Ids of messages to bring back, as in `chat`.
    #[serde(default, deserialize_with = "given_list")]
    restore: Option<Vec<MessageId>>,
    /// Report each part of the window, and the outcome for each item.
    #[serde(default)]
    explain: bool,
}

/// The number of tokens that would be sent to the model now, and its limits.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CountedWindow")]
pub(super) struct CountResult<'a> {
    #[serde(flatten)]
    count: &'a RequestCount,
    /// Report on the parts in the window and those that were left out; only with `:explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<WindowReport<'a>>,
    /// Outcome for each item of the managers that were included; only with `:explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<Decided>>,
}

pub(super) fn count_window(call: MethodCall, given: CountParams) -> Result<Step, WireError> {
    let explain = given.explain;
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
        restore: given.restore,
        ..ChatParams::default()
    };
    let request = chat::request(&call, given)?;
    Step::then(move |_| {
        Ok(Finish::Later(Box::new(move || {
            let counting = agent::count(call.job(), request);
            let (count, built) = Handle::current().block_on(counting)?;
            Ok(Value::of(&CountResult {
                count: &count,
                report: explain.then(|| WindowReport::of(&built.window.report, true)),
                items: explain.then(|| verdicts(&built.items)),
            }))
        })))
    })
}
