//! The method that counts the tokens that a turn would send to the model now.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::Handle;

use super::call::Call;
use super::chat::{self, ChatParams};
use super::params::{InSession, ManagerName, Name, Switch, given_list};
use super::tool_names::ToolNames;
use super::window::SectionTexts;
use super::{Finish, Step};
use crate::agent;
use crate::session::message::Phase;
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
        Ok(Finish::later(
            move || Ok(Handle::current().block_on(agent::count(call.job(), request))?),
        ))
    })
}
