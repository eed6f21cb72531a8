//! Methods that manage which projects the user trusts. Models cannot call them.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::refresh::now_ms;
use crate::files::templates::TemplateFolders;
use crate::files::{self, Standing, TrustError, Trusted};
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::error::{param_error, refused};
use crate::rpc::error_data::PlainKind;
use crate::rpc::params::yes;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct OneProject {
    /// Folder of the project; without it, the call lists the trusted projects.
    project: Option<String>,
    /// Whether to trust the project; defaults to `t`.
    #[serde(default = "yes")]
    trusted: bool,
}

/// A trusted project.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TrustedProject")]
pub(super) struct TrustedShown {
    /// Path of the project's folder, without links.
    project: String,
    /// Address of the project's Git remote; `nil` if it has none.
    remote: Option<String>,
    /// Time at which the project became trusted, in Unix seconds.
    since: i64,
    /// Names of the project's own templates; not in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    templates: Option<Vec<String>>,
    /// What is at the path now. `:same`: the trusted project; `:other`: another repository, one
    /// that cannot be read, or a folder without one; `:gone`: no folder. Only in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<Standing>,
}

impl From<Trusted> for TrustedShown {
    fn from(Trusted { identity, since_ms }: Trusted) -> Self {
        let since = (since_ms / 1000).max(0);
        let (project, remote) = (identity.project, identity.remote);
        Self { project, remote, since, templates: None, standing: None }
    }
}

pub(super) fn trust_project(call: MethodCall, given: OneProject) -> Result<Step, WireError> {
    allowed(&call)?;
    let Some(project) = given.project else { return listed(&call) };
    let project = files::absolute(&project)?;
    if !given.trusted {
        let was_trusted = call.tools.trust.revoke(&project).map_err(trust_error)?;
        let project = project.to_string_lossy().into_owned();
        return Step::done(&Distrusted { project, was_trusted });
    }
    let trusted = call.tools.trust.trust(&project, now_ms()).map_err(trust_error)?;
    let templates = Some(own_templates(&call, &trusted));
    Step::done(&TrustedShown { templates, ..trusted.into() })
}

/// A project that is no longer trusted.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DistrustedProject")]
pub(super) struct Distrusted {
    /// Path of the project's folder.
    project: String,
    /// True if the project was trusted before.
    was_trusted: bool,
}

fn listed(call: &MethodCall) -> Result<Step, WireError> {
    let line = |trusted: Trusted| {
        let standing = Some(trusted.standing());
        TrustedShown { standing, ..trusted.into() }
    };
    Step::done(&call.tools.trust.list().into_iter().map(line).collect::<Vec<_>>())
}

/// Checks that the client acts for the user: over stdio or the user's own socket.
fn allowed(call: &MethodCall) -> Result<(), WireError> {
    match call.access.is_local() {
        true => Ok(()),
        false => Err(refused(
            PlainKind::NotAllowed,
            "clients over TCP cannot see or change which projects are trusted; use contexture trust \
             in a shell, or M-x contexture-trust-project in Emacs"
                .to_owned(),
        )),
    }
}

fn own_templates(call: &MethodCall, trusted: &Trusted) -> Vec<String> {
    let folders = TemplateFolders {
        project: Some(Path::new(&trusted.identity.project).to_owned()),
        user: None,
        trust: call.tools.trust.clone(),
    };
    let own = folders.list().into_iter().filter(|one| one.source.kind() == "project");
    own.map(|one| one.name).collect()
}

fn trust_error(error: TrustError) -> WireError {
    match error {
        TrustError::Unknown(error) => error.into(),
        TrustError::TooMany => {
            param_error("project", &format!("cannot be trusted, because {error}"))
        }
        TrustError::Unwritable { .. } | TrustError::Damaged { .. } => {
            refused(PlainKind::StoreFailed, error.to_string())
        }
    }
}
