//! Sharing projects on a hub: what the method `exchange` does with `:hub`, and what is done by
//! itself when something changed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::changes::exchanged;
use crate::engine::{SyncAsked, SyncRefusal};
use crate::files;
use crate::hub::{
    EVERYBODY, HeldBack, Hub, HubLink, HubTask, Share, SharedPiece, Shares, shared_projects, within,
};
use crate::rpc::Step;
use crate::rpc::call::{MethodCall, Tools};
use crate::rpc::error::param_error;
use crate::rpc::hub::{configured, identity, not_allowed};
use crate::rpc::params::Short;
use crate::sync::{GivenChanges, HubStatus, MachineIdentity, SentChange};
use crate::wire::message::WireError;

/// Time from a change until it is shared, in which more may come.
const PAUSE: Duration = Duration::from_secs(10);
/// Time until a hub that failed is tried again.
const AGAIN: Duration = Duration::from_secs(300);
/// Maximum number of held back texts that a preview names.
const NAMED: usize = 50;

/// Does something with the hub.
pub(super) fn act(
    call: &MethodCall,
    task: HubTask,
    project: Option<Short>,
    readers: Option<Short>,
) -> Result<Step, WireError> {
    let tools = Arc::clone(&call.tools);
    let hub = configured(&tools)?;
    let project = match (task, project) {
        (HubTask::Preview | HubTask::Share | HubTask::Unshare, None) => {
            return Err(param_error("project", "is required to share a project"));
        }
        (_, project) => project.map(|folder| files::project_of(&folder)),
    };
    let readers = readers.map_or_else(|| EVERYBODY.to_owned(), |Short(readers)| readers);
    Ok(Step::Await(Box::pin(async move {
        let given = noted(&tools).await?;
        let shown = Acting { tools: &tools, hub: &hub, given: &given };
        let shown = match (task, project.as_deref()) {
            (HubTask::SetUp, _) => {
                HubLink::set_up(&hub.address).await.map_err(|why| not_allowed(&why))?;
                shown.status().await
            }
            (HubTask::Preview, Some(project)) => shown.preview(project, readers).await,
            (HubTask::Share, Some(project)) => shown.share(project, readers).await,
            (HubTask::Unshare, Some(project)) => shown.unshare(project).await,
            (HubTask::Push, _) => shown.pushed().await,
            (HubTask::Leave, _) => shown.leave().await,
            _ => shown.status().await,
        };
        let shown = shown.map_err(|why| not_allowed(&why))?;
        Step::done(&GivenChanges { hub: Some(Box::new(shown)), ..given })
    })))
}

/// Something that is done with the hub.
struct Acting<'a> {
    tools: &'a Arc<Tools>,
    hub: &'a Hub,
    given: &'a GivenChanges,
}

impl Acting<'_> {
    async fn status(&self) -> Result<HubStatus, String> {
        let time = self.hub.address.time;
        let about = within(time, async {
            let link = HubLink::open(&self.hub.address, time).await?;
            link.check().await?;
            link.about().await
        });
        let about = about.await;
        let mut shown = self.shown(about.as_ref().err().cloned()).await?;
        (shown.user, shown.owner) = about.ok().unzip();
        shown.problem = shown.problem.or_else(|| self.hub.problem());
        Ok(shown)
    }

    async fn shown(&self, problem: Option<String>) -> Result<HubStatus, String> {
        let shares = self.hub.shares().await?.shares;
        let (address, projects) = (self.hub.address.to_string(), shared_projects(&shares));
        Ok(HubStatus { address, problem, projects, ..HubStatus::default() })
    }

    async fn pushed(&self) -> Result<HubStatus, String> {
        let outcome = push(self.tools, self.hub).await;
        self.hub.note(&outcome);
        self.shown(outcome.err()).await
    }

    async fn preview(&self, project: &str, readers: String) -> Result<HubStatus, String> {
        let identity = identity(self.tools, project).await?;
        let share = Share { folder: project.to_owned(), readers, ..Share::default() };
        let mut shares = Shares { machine: self.given.machine.clone(), ..Shares::default() };
        shares.projects.insert(identity.clone(), share);
        let (mut held, mut names) = (Vec::new(), HashMap::new());
        loop {
            let (changes, more) = made_here(self.tools, shares.seq).await?;
            for sent in &changes {
                let (pieces, back) = shares.pieces(sent)?;
                for piece in pieces {
                    if let SharedPiece::Source { kind: "session", number, name, .. } = piece {
                        names.insert(number, name);
                    }
                }
                held.extend(back);
            }
            if !more || changes.is_empty() {
                break;
            }
        }
        let named = |held: &HeldBack| match held.kind {
            "session" => {
                let name = names.get(&held.number).cloned().unwrap_or_default();
                format!("message {} of {name:?}", held.part)
            }
            _ => format!("memory mem-{}", held.number),
        };
        Ok(HubStatus {
            address: self.hub.address.to_string(),
            projects: shared_projects(&shares),
            held: held.iter().take(NAMED).map(named).collect(),
            ..HubStatus::default()
        })
    }

    async fn share(&self, project: &str, readers: String) -> Result<HubStatus, String> {
        let identity = identity(self.tools, project).await?;
        let mut opened = self.hub.shares().await?;
        let share = Share { folder: project.to_owned(), readers, ..Share::default() };
        opened.shares.leaving.remove(&identity);
        opened.shares.projects.insert(identity, share);
        opened.shares.begin(&self.given.machine);
        opened.write()?;
        drop(opened);
        self.pushed().await
    }

    async fn unshare(&self, project: &str) -> Result<HubStatus, String> {
        let mut opened = self.hub.shares().await?;
        let shares = &mut opened.shares;
        let it = shares.projects.iter().find(|(_, share)| share.folder == project);
        let Some(identity) = it.map(|(identity, _)| identity.clone()) else {
            return Err("this project is not shared".to_owned());
        };
        shares.projects.remove(&identity);
        shares.leaving.insert(identity);
        opened.write()?;
        drop(opened);
        self.pushed().await
    }

    async fn leave(&self) -> Result<HubStatus, String> {
        let mut opened = self.hub.shares().await?;
        let projects = std::mem::take(&mut opened.shares.projects);
        opened.shares.leaving.extend(projects.into_keys());
        opened.write()?;
        let link = HubLink::to_write(&self.hub.address).await?;
        within(self.hub.writing(), link.leave()).await?;
        opened.shares.leaving.clear();
        opened.write()?;
        drop(opened);
        self.shown(None).await
    }
}

/// Shares what changed, some time after it changed, as long as the server runs.
pub(crate) async fn share(tools: Weak<Tools>) {
    let Some(hub) = tools.upgrade().and_then(|tools| tools.hub.clone()) else { return };
    hub.wanted.notify_one();
    loop {
        hub.wanted.notified().await;
        tokio::time::sleep(PAUSE).await;
        let Some(tools) = tools.upgrade() else { return };
        let outcome = push(&tools, &hub).await;
        if let (true, Err(why)) = (hub.note(&outcome), &outcome) {
            tracing::warn!("cannot share with the hub, and will try again: {why}");
        }
        if outcome.is_err() {
            drop(tools);
            tokio::time::sleep(AGAIN).await;
            hub.wanted.notify_one();
        }
    }
}

/// Shares what is new, and takes back what is to be shared no longer.
async fn push(tools: &Arc<Tools>, hub: &Hub) -> Result<(), String> {
    if hub.shares().await?.shares.is_done() {
        return Ok(());
    }
    let given = noted(tools).await.map_err(|error| error.message)?;
    let mut link = HubLink::to_write(&hub.address).await?;
    let known = within(hub.writing(), link.seq(&given.machine)).await?;
    let mut opened = hub.shares().await?;
    let shares = &mut opened.shares;
    if !shares.leaving.is_empty() {
        within(hub.writing(), link.take_back(shares)).await?;
        shares.leaving.clear();
    }
    if shares.machine != given.machine || known < shares.seq {
        shares.begin(&given.machine);
    }
    opened.write()?;
    drop(opened);
    loop {
        let mut opened = hub.shares().await?;
        let shares = &mut opened.shares;
        let (changes, more) = made_here(tools, shares.seq).await?;
        let mut pieces = Vec::new();
        for sent in &changes {
            pieces.extend(shares.pieces(sent)?.0);
        }
        if changes.is_empty() {
            return Ok(());
        }
        within(hub.writing(), link.put(&given.name, pieces, shares)).await?;
        opened.write()?;
        if !more {
            return Ok(());
        }
    }
}

/// Notes what changed at this machine.
async fn noted(tools: &Arc<Tools>) -> Result<GivenChanges, WireError> {
    let tools = Arc::clone(tools);
    let noted = tokio::task::spawn_blocking(move || {
        loop {
            let given = exchanged(&tools, SyncAsked::default(), None)?;
            if !given.more {
                return Ok(given);
            }
        }
    });
    noted.await.unwrap_or_else(|_| Err(not_allowed("the changes of this machine were not noted")))
}

/// Returns changes that this machine made after the one with this number, and whether there are
/// more.
async fn made_here(tools: &Arc<Tools>, seq: u64) -> Result<(Vec<SentChange>, bool), String> {
    let tools = Arc::clone(tools);
    let made = tokio::task::spawn_blocking(move || {
        let folder = tools.state_folder.as_deref().ok_or("this server keeps no state")?;
        let me = MachineIdentity::open(folder, false).map_err(|error| error.to_string())?;
        let made = tools.engine.ask_blocking(move |engine| Ok(engine.made_here(&me.key, seq)));
        match made.map_err(|error| error.to_string())? {
            Ok(made) => Ok(made),
            Err(SyncRefusal::Engine(error)) => Err(error.to_string()),
            Err(SyncRefusal::Wrong(why)) => Err(why),
            Err(SyncRefusal::NeedsKey) => Err("this machine has another key now".to_owned()),
        }
    });
    made.await.unwrap_or_else(|_| Err("the changes of this machine were not read".to_owned()))
}
