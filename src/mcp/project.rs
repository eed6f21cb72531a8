//! The projects that an agent works in: the project that the command line names, else the projects
//! of the client's roots, else the project of the folder in which the program was started. Over
//! HTTP, the address of each request can name the project.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::sync::Mutex;

use super::answer::Trouble;
use crate::files::{project_root, true_name};
use crate::visible::{visible, visible_path};

/// Maximum time to wait for the client's roots.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The projects of one agent. The default value is for an agent that names its project in the
/// address of its requests.
#[derive(Default)]
pub(crate) struct AgentProjects {
    /// Project that the command line names.
    named: Option<PathBuf>,
    /// Folder in which the program was started; `None` over HTTP, where it says nothing about the
    /// agent.
    folder: Option<PathBuf>,
    /// Projects of the client's roots, or else of `folder`; `None` until the client has been asked.
    roots: Mutex<Option<Vec<AgentProject>>>,
}

/// A project, or a folder that stands in for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentProject {
    pub(super) root: PathBuf,
    /// True if the user named the project, or the folder has a marker such as `.git`. Otherwise no
    /// files are read, since the folder might be the home folder.
    pub(super) is_project: bool,
}

impl AgentProject {
    pub(super) fn of(path: &Path) -> Self {
        let path = true_name(path);
        match project_root(&path) {
            Some(root) => Self { root, is_project: true },
            None => Self { root: path, is_project: false },
        }
    }

    /// Returns the path of the folder.
    pub(super) fn directory(&self) -> String {
        self.root.to_string_lossy().into_owned()
    }

    /// Returns the path of the folder with a slash at its end, as sessions and memories name it.
    pub(super) fn key(&self) -> String {
        format!("{}/", self.directory().trim_end_matches('/'))
    }

    /// Returns the name of the folder, in a form that can be shown.
    pub(super) fn label(&self) -> String {
        let name = self.root.file_name().map(Path::new).unwrap_or(&self.root);
        visible_path(name).to_string()
    }

    /// Returns the name of a file relative to the project's folder, or its whole name if the file is
    /// elsewhere, in a form that can be shown.
    pub(super) fn relative<'a>(&self, filename: &'a str) -> Cow<'a, str> {
        let below = filename.strip_prefix(&*self.key());
        visible(below.filter(|below| !below.is_empty()).unwrap_or(filename))
    }
}

impl AgentProjects {
    /// Creates the projects of the agent that this program serves. `named` is the project that the
    /// command line names, if any, and `folder` is the folder in which the program was started.
    pub(crate) fn new(named: Option<PathBuf>, folder: PathBuf) -> Self {
        Self { named, folder: Some(folder), ..Self::default() }
    }

    /// Returns the folder of the project that the command line names, or else of the project in
    /// which the program was started; `None` over HTTP.
    pub(super) fn usual(&self) -> Option<String> {
        let folder = self.named.as_deref().or(self.folder.as_deref())?;
        Some(AgentProject::of(folder).directory())
    }

    /// Forgets the client's roots, so that the client is asked again.
    pub(super) async fn forget_roots(&self) {
        *self.roots.lock().await = None;
    }

    /// Returns the project that a call is about. `asked` is the name of the project's folder, or
    /// the absolute path of that folder or of anything in it. The default is the first project.
    /// Fails if there is no such project.
    pub(super) async fn choose(
        &self,
        asked: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<AgentProject, Trouble> {
        let known = self.known(context).await;
        let Some(first) = known.first() else {
            let advice = "no project is named; ask the user to add ?project=DIR to the address";
            return Err(Trouble::Wrong(advice.into()));
        };
        let Some(asked) = asked else { return Ok(first.clone()) };
        let path = true_name(Path::new(asked));
        let is_it = |project: &&AgentProject| {
            project.label() == asked || (asked.starts_with('/') && path.starts_with(&project.root))
        };
        known.iter().find(is_it).cloned().ok_or_else(|| {
            let names: Vec<String> = known.iter().map(|it| visible_path(&it.root)).collect();
            Trouble::Wrong(format!(
                "project {asked:?} is not open here; leave `project` out, or use one of: {}",
                names.join(", ")
            ))
        })
    }

    async fn known(&self, context: &RequestContext<RoleServer>) -> Vec<AgentProject> {
        if let Some(named) = self.named.clone().or_else(|| of_address(context)) {
            return vec![AgentProject { root: true_name(&named), is_project: true }];
        }
        let mut roots = self.roots.lock().await;
        if let Some(known) = &*roots {
            return known.clone();
        }
        let mut known: Vec<AgentProject> =
            client_roots(context).await.iter().map(|root| AgentProject::of(root)).collect();
        if known.is_empty() {
            known.extend(self.folder.as_deref().map(AgentProject::of));
        }
        known.dedup();
        roots.insert(known).clone()
    }
}

/// Returns the folder that the address of an HTTP request names, as in `?project=/home/me/app`;
/// `None` if it names no existing folder by an absolute path.
fn of_address(context: &RequestContext<RoleServer>) -> Option<PathBuf> {
    let query = context.extensions.get::<Parts>()?.uri.query()?;
    let path = query.split('&').find_map(|pair| pair.strip_prefix("project="))?;
    let path = PathBuf::from(&*percent_decode_str(path).decode_utf8().ok()?);
    (path.is_absolute() && path.is_dir()).then_some(path)
}

/// Asks the client for its roots, and returns the paths of those on this machine. Returns an empty
/// list if the client does not offer roots, does not answer in time, or speaks a version of the
/// protocol in which servers cannot ask.
#[expect(deprecated, reason = "clients of earlier versions of the protocol still have roots")]
async fn client_roots(context: &RequestContext<RoleServer>) -> Vec<PathBuf> {
    if context.client_capabilities().is_none_or(|able| able.roots.is_none()) {
        return Vec::new();
    }
    let asking = tokio::time::timeout(LONGEST_WAIT, context.peer.list_roots());
    match asking.await {
        Ok(Ok(listed)) => listed.roots.iter().filter_map(|root| local_path(&root.uri)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the path of a `file` URI of this machine; `None` for any other URI.
fn local_path(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = percent_decode_str(path).decode_utf8().ok()?;
    path.starts_with('/').then(|| PathBuf::from(&*path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_files_of_this_machine() {
        let check = |uri, expected: Option<&str>| {
            assert_eq!(local_path(uri), expected.map(PathBuf::from), "{uri}");
        };
        check("file:///home/u/my%20app", Some("/home/u/my app"));
        check("file://localhost/x", Some("/x"));
        check("file://elsewhere/x", None);
        check("https://x/y", None);
        check("file:///%ff", None);
    }

    #[test]
    fn names_of_files_are_shown_from_the_root() {
        let project = AgentProject { root: "/home/u/app".into(), is_project: true };
        assert_eq!(project.relative("/home/u/app/src/a.rs"), "src/a.rs");
        assert_eq!(project.relative("/home/u/apple"), "/home/u/apple");
        assert_eq!((project.key(), project.label()), ("/home/u/app/".into(), "app".into()));
    }
}
