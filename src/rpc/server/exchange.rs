//! The method that exchanges changes with another machine.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::place::normal_remote;
use crate::engine::{Asked, Refusal};
use crate::files;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::error::{engine_error, internal_error, param_error, refused};
use crate::rpc::error_data::PlainKind;
use crate::rpc::params::{MAX_NAME_BYTES, Short};
use crate::sync::{Given, Identity, PROTOCOL, Seen, Sent};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Exchange {
    #[schemars(description = format!("Version of the exchange; must be {PROTOCOL}."))]
    protocol: u64,
    /// How far the other machine knows the changes of all machines; it is given what it lacks. `nil`
    /// if it wants none.
    known: Option<Vec<Seen>>,
    /// Changes that the other machine gives.
    changes: Option<Vec<Sent>>,
    /// Folder of a project to name with `:project-name`.
    project: Option<Short>,
    /// What the project is called on all machines, in place of its Git remote.
    project_name: Option<Short>,
}

pub(super) fn exchange(call: Call, given: Exchange) -> Result<Step, WireError> {
    call.check_access("exchange changes with other machines")?;
    let folder = call.tools.state_folder.clone();
    let folder = folder.ok_or_else(|| not_allowed("this server keeps no state to exchange"))?;
    if given.protocol != PROTOCOL {
        let why = format!(
            "must be {PROTOCOL}, not {}: the machines have different versions of Contexture",
            given.protocol
        );
        return Err(param_error("protocol", &why));
    }
    let asked = Arc::new(Asked {
        projects: projects(&call, given.project, given.project_name)?,
        known: given.known,
        changes: given.changes.unwrap_or_default(),
    });
    let failed =
        |error: std::io::Error| internal_error(&format!("the key of this machine: {error}"));
    let mut me = Identity::open(&folder, false).map_err(failed)?;
    let mut outcome = attempt(&call, me, &asked)?;
    if matches!(outcome, Err(Refusal::NeedsKey)) {
        me = Identity::open(&folder, true).map_err(failed)?;
        outcome = attempt(&call, me, &asked)?;
    }
    let given = match outcome {
        Ok(given) => given,
        Err(Refusal::Wrong(why)) => return Err(not_allowed(&why)),
        Err(Refusal::Engine(error)) => return Err(engine_error(error)),
        Err(Refusal::NeedsKey) => return Err(not_allowed("this machine cannot get a key")),
    };
    // The number is beside the state before another machine can know it.
    let seq = given.known.iter().find(|seen| seen.machine == given.machine);
    Identity::note(&folder, &given.machine, seq.map_or(0, |seen| seen.seq)).map_err(failed)?;
    Step::done(&given)
}

fn attempt(
    call: &Call,
    me: Identity,
    asked: &Arc<Asked>,
) -> Result<Result<Given, Refusal>, WireError> {
    let asked = Arc::clone(asked);
    let outcome = call.tools.engine.ask_blocking(move |engine| Ok(engine.exchange(&me, &asked)));
    outcome.map_err(engine_error)
}

/// Returns the projects of this machine that have an identity, and whether the user gave it.
fn projects(
    call: &Call,
    named: Option<Short>,
    name: Option<Short>,
) -> Result<Vec<(String, String, bool)>, WireError> {
    let folders = call.tools.engine.ask_blocking(|engine| Ok(engine.read().project_folders()?));
    let folders = folders.map_err(engine_error)?;
    let identified = folders.into_iter().filter_map(|folder| {
        let folder = folder.trim_end_matches('/');
        let remote = normal_remote(&files::repository_address(Path::new(folder))?)?;
        Some((folder.to_owned(), format!("git:{remote}"), false))
    });
    let mut projects: Vec<_> = identified.collect();
    match (named, name) {
        (Some(folder), Some(name)) if (1..=MAX_NAME_BYTES).contains(&name.len()) => {
            let folder = files::project_of(&folder);
            let folder = folder.trim_end_matches('/').to_owned();
            projects.retain(|(known, ..)| *known != folder);
            projects.push((folder, format!("name:{}", name.trim()), true));
        }
        (None, None) => {}
        _ => {
            let why = format!("must have 1 to {MAX_NAME_BYTES} bytes, and goes with project");
            return Err(param_error("project-name", &why));
        }
    }
    Ok(projects)
}

fn not_allowed(why: &str) -> WireError {
    refused(PlainKind::NotAllowed, why.to_owned())
}
