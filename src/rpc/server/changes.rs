//! The changes of this machine, and those of others.

use std::sync::Arc;

use crate::engine::{SyncAsked, SyncRefusal};
use crate::files;
use crate::rpc::call::Tools;
use crate::rpc::error::{engine_error, internal_error, param_error};
use crate::rpc::hub::{not_allowed, remote_identity};
use crate::rpc::params::{MAX_NAME_BYTES, Short};
use crate::sync::{GivenChanges, MachineIdentity};
use crate::wire::message::WireError;

/// Exchanges changes, on a thread that may block. `named` has the folder of a project, and the name
/// that its user gives it.
pub(super) fn exchanged(
    tools: &Tools,
    asked: SyncAsked,
    named: Option<(Short, Short)>,
) -> Result<GivenChanges, WireError> {
    let folder = tools.state_folder.clone();
    let folder = folder.ok_or_else(|| not_allowed("this server keeps no state to exchange"))?;
    let asked = Arc::new(SyncAsked { projects: projects(tools, named)?, ..asked });
    let failed = |error: std::io::Error| {
        internal_error(&format!("cannot open the key of this machine: {error}"))
    };
    let mut me = MachineIdentity::open(&folder, false).map_err(failed)?;
    let mut outcome = attempt(tools, me, &asked)?;
    if matches!(outcome, Err(SyncRefusal::NeedsKey)) {
        me = MachineIdentity::open(&folder, true).map_err(failed)?;
        outcome = attempt(tools, me, &asked)?;
    }
    let given = match outcome {
        Ok(given) => given,
        Err(SyncRefusal::Wrong(why)) => return Err(not_allowed(&why)),
        Err(SyncRefusal::Engine(error)) => return Err(engine_error(error)),
        Err(SyncRefusal::NeedsKey) => return Err(not_allowed("this machine cannot get a key")),
    };
    // The number is beside the state before another machine can know it.
    let seq = given.known.iter().find(|seen| seen.machine == given.machine);
    MachineIdentity::note(&folder, &given.machine, seq.map_or(0, |seen| seen.seq))
        .map_err(failed)?;
    Ok(given)
}

fn attempt(
    tools: &Tools,
    me: MachineIdentity,
    asked: &Arc<SyncAsked>,
) -> Result<Result<GivenChanges, SyncRefusal>, WireError> {
    let asked = Arc::clone(asked);
    let outcome = tools.engine.ask_blocking(move |engine| Ok(engine.exchange(&me, &asked)));
    outcome.map_err(engine_error)
}

/// Returns the projects of this machine that have an identity, and whether the user gave it.
fn projects(
    tools: &Tools,
    named: Option<(Short, Short)>,
) -> Result<Vec<(String, String, bool)>, WireError> {
    let folders = tools.engine.ask_blocking(|engine| Ok(engine.read().project_folders()?));
    let folders = folders.map_err(engine_error)?;
    let identified = folders.into_iter().filter_map(|folder| {
        let folder = folder.trim_end_matches('/');
        Some((folder.to_owned(), remote_identity(folder)?, false))
    });
    let mut projects: Vec<_> = identified.collect();
    if let Some((folder, name)) = named {
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) {
            let why = format!("must have 1 to {MAX_NAME_BYTES} bytes");
            return Err(param_error("project-name", &why));
        }
        let folder = files::project_of(&folder);
        let folder = folder.trim_end_matches('/').to_owned();
        projects.retain(|(known, ..)| *known != folder);
        projects.push((folder, format!("name:{}", name.trim()), true));
    }
    Ok(projects)
}
