//! The method that imports the sessions that other agents recorded.

mod file;
mod known;
mod outcome;
mod source;
mod spent;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::file::{ImportRequest, import_file};
use self::outcome::{FileOutcome, ImportedFile};
use self::source::{RecordingSource, sources};
use crate::engine::EngineError;
use crate::files;
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::error::{cancelled, param_error};
use crate::rpc::params::Short;
use crate::rpc::shapes::CallId;
use crate::store::session::bare_folder;
use crate::value::{Keyword, Value};
use crate::visible::visible;
use crate::wire::message::WireError;

/// Number of recordings, those that changed last, whose folders are worth watching.
const RECORDINGS_WATCHED: usize = 100;
/// Maximum time that an import waits for the client to leave, if a method other than
/// `import-sessions` began it.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
pub(super) struct ImportAll {
    /// Absolute paths of files, or of folders whose files to import; may begin with `~/`. Defaults to
    /// the places where agents keep the sessions of the user who runs the server.
    paths: Option<Vec<Short>>,
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
    /// Folders to watch for changes of recordings: the places that were searched, the folders in
    /// which such a place may appear, and the folders whose recordings changed last. Only if the
    /// call names no paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    folders: Vec<String>,
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

pub(super) fn import_sessions(call: MethodCall, given: ImportAll) -> Result<Step, WireError> {
    if given.paths.as_ref().is_some_and(Vec::is_empty) {
        return Err(param_error("paths", "must name at least one file or folder"));
    }
    let done = import_all(&call, &given)?;
    Step::state(move |_| Ok::<_, EngineError>(done))
}

/// Imports a recording once the client has left, or after a second. Returns false, and does
/// nothing, if too many such imports are running.
pub(in crate::rpc) fn import_after(call: &MethodCall, recording: Short) -> bool {
    let Ok(room) = call.tools.imports.clone().try_acquire_owned() else { return false };
    let call = MethodCall { cancelled: Arc::default(), id: None, ..call.clone() };
    let name = visible(&recording).into_owned();
    tokio::spawn(async move {
        // The client may still be ending, and the import must not slow that down.
        let _ = tokio::time::timeout(PATIENCE, call.hung_up.cancelled()).await;
        tokio::task::spawn_blocking(move || {
            let given = ImportAll { paths: Some(vec![recording]), project: None, dry_run: None };
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

fn import_all(call: &MethodCall, given: &ImportAll) -> Result<ImportedAll, WireError> {
    let paths = given.files()?;
    let project = given.project.as_ref().map(|Short(path)| files::project_of(bare_folder(path)));
    let mut wanted = ImportRequest {
        project: project.as_deref(),
        is_dry: given.dry_run.unwrap_or(false),
        is_patient: true,
    };
    let mut done = ImportedAll { folders: given.folders(&paths), ..ImportedAll::default() };
    let (of, mut files, mut left) = (paths.len(), 0, paths);
    // Forks come after the sessions of which they are forks.
    while !left.is_empty() {
        let mut later = Vec::new();
        for source in &left {
            if call.cancelled.is_cancelled() {
                return Err(cancelled());
            }
            if let Some(id) = &call.id {
                let id = Value::from(id.clone());
                let messages = done.messages;
                call.peer.progress(Value::of(&Importing { id, files, of, messages }));
            }
            match import_file(call, source, wanted)? {
                FileOutcome::File(file) => {
                    done.sessions += usize::from(file.state == Keyword("new"));
                    done.messages += file.messages;
                    done.files.push(*file);
                }
                FileOutcome::Other => done.other_files += 1,
                FileOutcome::Later => {
                    later.push(source.clone());
                    continue;
                }
            }
            files += 1;
        }
        wanted.is_patient = later.len() < left.len();
        left = later;
    }
    Ok(done)
}

/// Returns the places where agents keep sessions.
fn usual_places() -> Vec<PathBuf> {
    let Some(home) = std::env::home_dir() else { return Vec::new() };
    files::places(&home, &home).into_iter().flat_map(|kept| kept.places).collect()
}

impl ImportAll {
    /// Returns what may be recordings.
    fn files(&self) -> Result<Vec<RecordingSource>, WireError> {
        let mut found = Vec::new();
        for Short(path) in self.paths.iter().flatten() {
            found.extend(sources(&files::absolute(path)?)?);
        }
        if self.paths.is_none() {
            for place in usual_places().iter().filter(|place| place.exists()) {
                found.extend(sources(place).unwrap_or_default());
            }
        }
        Ok(found)
    }

    /// Returns the folders to watch, for a call that names no paths and has found `found`.
    fn folders(&self, found: &[RecordingSource]) -> Vec<String> {
        if self.paths.is_some() {
            return Vec::new();
        }
        // An agent makes its place with its first session, in a folder that it has already.
        let home = std::env::home_dir();
        let there = |place: PathBuf| {
            if place.exists() {
                return Some(place);
            }
            let parent = place.parent().filter(|it| it.exists() && Some(*it) != home.as_deref());
            parent.map(Path::to_owned)
        };
        let mut places: Vec<PathBuf> = usual_places().into_iter().filter_map(there).collect();
        let changed =
            |source: &RecordingSource| source.path.metadata().and_then(|it| it.modified()).ok();
        let mut latest: Vec<_> =
            found.iter().filter_map(|it| Some((changed(it)?, it.path.parent()?))).collect();
        latest.sort_unstable_by(|one, other| other.cmp(one));
        for (_, folder) in latest.into_iter().take(RECORDINGS_WATCHED) {
            let is_within = |it: &&Path| places.iter().any(|place| it.starts_with(place));
            let all = folder.ancestors().take_while(is_within).map(Path::to_owned);
            let new: Vec<PathBuf> = all.filter(|it| !places.contains(it)).collect();
            places.extend(new);
        }
        places.into_iter().filter_map(|it| it.into_os_string().into_string().ok()).collect()
    }
}
