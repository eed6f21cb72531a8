//! The method that exchanges changes with another machine.

use schemars::JsonSchema;
use serde::Deserialize;

use super::changes::exchanged;
use super::hub;
use crate::engine::SyncAsked;
use crate::hub::HubTask;
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::params::Short;
use crate::sync::{PROTOCOL, SeenChanges, SentChange};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExchangeParams {
    #[schemars(description = format!("Version of the exchange; must be {PROTOCOL}."))]
    protocol: u64,
    /// How far the other machine knows the changes of all machines; it is given what it lacks. `nil`
    /// if it wants none.
    known: Option<Vec<SeenChanges>>,
    /// Changes that the other machine gives.
    changes: Option<Vec<SentChange>>,
    /// What to do with the hub of the configuration, in place of an exchange.
    hub: Option<HubTask>,
    /// Role of the hub's database whose members may read the project; defaults to `public`, everybody.
    readers: Option<Short>,
    /// Folder of a project to share on the hub, or to name with `:project-name`.
    project: Option<Short>,
    /// What the project is called on all machines, in place of its Git remote.
    project_name: Option<Short>,
}

pub(super) fn exchange(call: MethodCall, given: ExchangeParams) -> Result<Step, WireError> {
    call.check_access("exchange changes with other machines")?;
    if given.protocol != PROTOCOL {
        let why = format!(
            "must be {PROTOCOL}, not {}: the machines have different versions of Contexture",
            given.protocol
        );
        return Err(param_error("protocol", &why));
    }
    if given.hub.is_none() && given.project.is_some() != given.project_name.is_some() {
        return Err(param_error("project-name", "goes with project"));
    }
    if let Some(task) = given.hub {
        return hub::act(&call, task, given.project, given.readers);
    }
    let asked = SyncAsked {
        known: given.known,
        changes: given.changes.unwrap_or_default(),
        ..SyncAsked::default()
    };
    Step::done(&exchanged(&call.tools, asked, given.project.zip(given.project_name))?)
}
