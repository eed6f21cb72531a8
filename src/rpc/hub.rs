//! What others share on the hub of the configuration.

use std::path::Path;
use std::sync::Arc;

use super::Step;
use super::call::{MethodCall, Tools};
use super::error::refused;
use super::error_data::PlainKind;
use crate::agent::found::Hit;
use crate::context::place::normal_remote;
use crate::files;
use crate::hub::{Hub, HubLink, Whole};
use crate::ids::{MessageId, SharedId};
use crate::session::message::{Message, Role, Signals};
use crate::wire::message::WireError;

/// Returns the hub of the configuration.
pub(super) fn configured(tools: &Tools) -> Result<Arc<Hub>, WireError> {
    let none = "no hub is configured; add a [hub] with its url to the configuration file, and start \
                the server again";
    tools.hub.clone().ok_or_else(|| not_allowed(none))
}

/// Searches the hub, or lists what it has if there is no query.
pub(super) fn search(
    call: &MethodCall,
    query: String,
    project: Option<String>,
    most: u64,
) -> Result<Step, WireError> {
    call.check_access("search the hub")?;
    let tools = Arc::clone(&call.tools);
    let hub = configured(&tools)?;
    Ok(Step::Await(Box::pin(async move {
        if let Some(why) = hub.rests() {
            return Err(not_allowed(&why));
        }
        let project = match project {
            Some(folder) => match identity(&tools, &folder).await {
                Ok(identity) => Some(vec![identity]),
                // Nobody can have shared it.
                Err(_) => return Step::done(&Vec::<Hit>::new()),
            },
            None => None,
        };
        let machine = hub.machine();
        let found = HubLink::search(&hub.address, &query, project, &machine, most).await;
        hub.note(&found);
        let hits = found.map_err(|why| not_allowed(&why))?.into_iter().map(|found| Hit {
            session: found.name,
            id: SharedId(found.source).to_string(),
            score: found.score,
            snippet: found.snippet,
            message: (found.part > 0).then_some(MessageId(found.part)),
            role: role(&found.role),
            timestamp: Some(found.at),
            machine: Some(found.machine),
            shared_by: Some(found.author),
        });
        Step::done(&hits.collect::<Vec<_>>())
    })))
}

/// Reads a session on the hub: its name, with who shared it, and its messages. It must be of the
/// project in a folder, if one is given.
pub(super) fn read(
    call: &MethodCall,
    SharedId(source): SharedId,
    project: Option<String>,
) -> Result<impl Future<Output = Result<(String, Vec<Message>), WireError>> + use<>, WireError> {
    call.check_access("read what is on the hub")?;
    let (hub, tools) = (configured(&call.tools)?, Arc::clone(&call.tools));
    Ok(async move {
        let whole = HubLink::read(&hub.address, source).await.map_err(|why| not_allowed(&why))?;
        let Whole { name, author, machine, project: of, messages } = whole;
        if let Some(folder) = project
            && identity(&tools, &folder).await.as_ref() != Ok(&of)
        {
            return Err(not_allowed("the hub has no such session of this project"));
        }
        let counter = &tools.counter;
        let message = |(number, said, timestamp, content): (u64, String, i64, String)| {
            let role = role(&said).unwrap_or(Role::User);
            Message {
                number,
                role,
                signals: Signals::of(role, &content, &[]),
                tokens: counter.count(&content),
                counted_by: counter.name(),
                content: content.into(),
                timestamp,
                phase: None,
                tool_calls: Vec::new(),
                tool_call_id: None,
                opaque: None,
                pinned: false,
            }
        };
        let messages = messages.into_iter().map(message).collect();
        Ok((format!("{name} (shared by {author} from {machine})"), messages))
    })
}

fn role(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        _ => None,
    }
}

/// Returns what the project in a folder is called on all machines.
pub(super) async fn identity(tools: &Tools, folder: &str) -> Result<String, String> {
    let known = folder.trim_end_matches('/').to_owned();
    let known = tools.engine.ask(move |engine| Ok(engine.read().project_identity(&known)?));
    if let Some(identity) = known.await.map_err(|error| error.to_string())? {
        return Ok(identity);
    }
    remote_identity(folder).ok_or_else(|| {
        "this project has no Git remote, so that others cannot know it; give it a name with \
         `contexture sync --name NAME` in its folder"
            .to_owned()
    })
}

/// Returns what the project in a folder is called after its Git remote, if it has one.
pub(super) fn remote_identity(folder: &str) -> Option<String> {
    let remote = files::repository_address(Path::new(folder))?;
    Some(format!("git:{}", normal_remote(&remote)?))
}

/// Returns the refusal of something about other machines or the hub.
pub(super) fn not_allowed(why: &str) -> WireError {
    refused(PlainKind::NotAllowed, why.to_owned())
}
