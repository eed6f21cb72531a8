//! The method that imports the sessions that other agents recorded.

mod file;
mod source;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::file::{ImportedFile, import_file};
use self::source::{Source, sources};
use crate::engine::EngineError;
use crate::files;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::error::{cancelled, param_error};
use crate::rpc::params::Short;
use crate::rpc::shapes::CallId;
use crate::store::session::bare_folder;
use crate::value::{Keyword, Value};
use crate::visible::visible;
use crate::wire::message::WireError;

/// Maximum time that an import waits for the client to leave, if a method other than
/// `import-sessions` began it.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
pub(super) struct ImportAll {
    /// Absolute paths of files, or of folders whose files to import; may begin with `~/`.
    paths: Vec<Short>,
    /// Import only sessions of the project in this folder.
    project: Option<Short>,
    /// Only report what would be imported; defaults to `nil`.
    dry_run: Option<bool>,
}

/// The outcome of importing, or only examining, sessions that other agents recorded.
#[derive(Serialize, JsonSchema, Default)]
#[schemars(rename = "ImportedSessions")]
pub(super) struct ImportedAll {
    /// The recordings that were found.
    files: Vec<ImportedFile>,
    /// Number of sessions that are new.
    sessions: usize,
    /// Number of messages that are new.
    messages: u64,
    /// Number of other files: those of other projects, and in folders also those that are not
    /// recordings.
    other_files: u64,
}

/// Progress of an import.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ImportProgress")]
pub(super) struct Importing {
    /// Id of the call.
    #[schemars(with = "CallId")]
    id: Value,
    /// Number of files done.
    files: usize,
    /// Number of files in all.
    of: usize,
    /// Number of new messages so far.
    messages: u64,
}

pub(super) fn import_sessions(call: Call, given: ImportAll) -> Result<Step, WireError> {
    if given.paths.is_empty() {
        return Err(param_error("paths", "must name at least one file or folder"));
    }
    let done = import_all(&call, &given)?;
    Step::state(move |_| Ok::<_, EngineError>(done))
}

/// Imports a recording once the client has left, or after a second. Returns false, and does
/// nothing, if too many such imports are running.
pub(in crate::rpc) fn import_after(call: &Call, recording: Short) -> bool {
    let Ok(room) = call.tools.imports.clone().try_acquire_owned() else { return false };
    let call = Call { cancelled: Arc::default(), id: None, ..call.clone() };
    let name = visible(&recording).into_owned();
    tokio::spawn(async move {
        // The client may still be ending, and the import must not slow that down.
        let _ = tokio::time::timeout(PATIENCE, call.hung_up.cancelled()).await;
        tokio::task::spawn_blocking(move || {
            let given = ImportAll { paths: vec![recording], project: None, dry_run: None };
            let failed = match import_all(&call, &given) {
                Ok(done) => done.files.into_iter().find_map(|file| file.error),
                Err(error) => Some(error.message),
            };
            if let Some(why) = failed {
                tracing::warn!("cannot import the recording {name}: {why}");
            }
            drop(room);
        });
    });
    true
}

fn import_all(call: &Call, given: &ImportAll) -> Result<ImportedAll, WireError> {
    let paths = given.files()?;
    let project = given.project.as_ref().map(|Short(path)| bare_folder(path));
    let is_dry = given.dry_run.unwrap_or(false);
    let mut done = ImportedAll::default();
    for (at, source) in paths.iter().enumerate() {
        if call.cancelled.is_cancelled() {
            return Err(cancelled());
        }
        if let Some(id) = &call.id {
            let id = Value::from(id.clone());
            let (of, messages) = (paths.len(), done.messages);
            call.peer.progress(Value::of(&Importing { id, files: at, of, messages }));
        }
        match import_file(call, source, project, is_dry)? {
            Some(file) => {
                done.sessions += usize::from(file.state == Keyword("new"));
                done.messages += file.messages;
                done.files.push(file);
            }
            None => done.other_files += 1,
        }
    }
    Ok(done)
}

impl ImportAll {
    /// Returns what may be recordings.
    fn files(&self) -> Result<Vec<Source>, WireError> {
        let mut found = Vec::new();
        for Short(path) in &self.paths {
            found.extend(sources(&files::absolute(path)?)?);
        }
        Ok(found)
    }
}
