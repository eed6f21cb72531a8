//! Methods that say which projects the user trusts. No tool of a model is one of these.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Step;
use super::call::Call;
use super::error::{application, file_error, param_error};
use super::params::decode;
use super::present::{entry, figure, keyword};
use super::query::Nothing;
use crate::agent::refresh::now_ms;
use crate::files::templates::TemplateFolders;
use crate::files::{self, TrustError, Trusted};
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct OneProject {
    project: String,
}

pub(super) fn trust_project(call: Call, params: Value) -> Result<Step, WireError> {
    let project = project(&call, params)?;
    let trusted =
        call.tools.trust.trust(&project, now_ms()).map_err(|error| trust_error(&error))?;
    let mut map = trusted_map(&trusted);
    map.push(entry("templates", Value::List(own_templates(&call, &trusted))));
    Ok(Step::Done(Value::Map(map)))
}

pub(super) fn distrust_project(call: Call, params: Value) -> Result<Step, WireError> {
    let project = project(&call, params)?;
    let was_trusted = call.tools.trust.revoke(&project).map_err(|error| trust_error(&error))?;
    let project = project.to_string_lossy().into_owned();
    Ok(Step::Done(Value::Map(vec![entry("project", project), entry("was-trusted", was_trusted)])))
}

pub(super) fn list_trusted_projects(call: Call, params: Value) -> Result<Step, WireError> {
    let Nothing {} = decode(params)?;
    allowed(&call)?;
    let line = |trusted: Trusted| {
        let mut map = trusted_map(&trusted);
        map.push(entry("standing", keyword(trusted.standing().name())));
        Value::Map(map)
    };
    Ok(Step::Done(Value::List(call.tools.trust.list().into_iter().map(line).collect())))
}

/// The folder that is meant, for a client that may say so.
fn project(call: &Call, params: Value) -> Result<PathBuf, WireError> {
    let given: OneProject = decode(params)?;
    allowed(call)?;
    files::absolute(&given.project).map_err(|error| file_error(&error))
}

/// Trust is the user's to give: by a pipe or the user's own socket.
fn allowed(call: &Call) -> Result<(), WireError> {
    match call.access.is_local() {
        true => Ok(()),
        false => Err(application(
            "not-allowed",
            "projects are trusted over standard input or the Unix socket only; use contexture \
             trust in a shell, or M-x contexture-trust-project"
                .to_owned(),
            vec![],
        )),
    }
}

fn trusted_map(trusted: &Trusted) -> Vec<(Box<str>, Value)> {
    let since = u64::try_from(trusted.since_ms / 1000).unwrap_or_default();
    vec![
        entry("project", &*trusted.identity.project),
        entry("remote", trusted.identity.remote.as_deref().map_or(Value::Nil, Value::from)),
        entry("since", figure(since)),
    ]
}

/// The names of the project's own templates.
fn own_templates(call: &Call, trusted: &Trusted) -> Vec<Value> {
    let folders = TemplateFolders {
        project: Some(Path::new(&trusted.identity.project).to_owned()),
        user: None,
        trust: call.tools.trust.clone(),
    };
    let own = folders.list().into_iter().filter(|one| one.source.kind() == "project");
    own.map(|one| Value::Str(one.name)).collect()
}

fn trust_error(error: &TrustError) -> WireError {
    match error {
        TrustError::Unknown(error) => file_error(error),
        TrustError::TooMany => param_error("project", &error.to_string()),
        TrustError::Unwritable { .. } | TrustError::Damaged { .. } => {
            application("store-failed", error.to_string(), vec![])
        }
    }
}
