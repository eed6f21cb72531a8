//! The projects that the user trusts, listed in a file. Must not know what only trusted projects
//! may do.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::identity::Identity;
use super::{Beneath, FileError, OpenedFile};
use crate::names::names;
use crate::whole_file::replace;

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of trusted projects.
const MAX_PROJECTS: usize = 10_000;

/// The list of trusted projects.
#[derive(Debug, Default)]
pub struct Trust {
    /// File that holds the list; `None` when the server keeps no state.
    file: Option<PathBuf>,
    known: Mutex<Vec<Trusted>>,
}

/// A project that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Trusted {
    /// Identity of the project.
    #[serde(flatten)]
    pub identity: Identity,
    /// Time since which the project is trusted, in Unix milliseconds.
    pub since_ms: i64,
}

names! {
    /// Current state of a trusted project.
    #[cfg_attr(feature = "schema", schemars(rename = "ProjectStanding"))]
    Standing {
        /// The same project is at its place.
        Same => "same",
        /// Another repository, none, or an unreadable one is at the project's place.
        Other => "other",
        /// Nothing is at the project's place.
        Gone => "gone",
    }
}

/// Error from trusting a project, or from reading or writing the list.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The project cannot be identified.
    #[error("cannot identify the project: {0}")]
    Unknown(#[from] FileError),
    /// The list cannot be written.
    #[error("cannot write {path:?}: {cause}")]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it cannot be written.
        cause: io::Error,
    },
    /// The list cannot be read or parsed.
    #[error(
        "cannot read the list of trusted projects, {path:?} ({cause}), so no project is trusted; trust \
         your projects again"
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        cause: String,
    },
    /// Too many projects are trusted.
    #[error(
        "{MAX_PROJECTS} projects are already trusted, the maximum; revoke some with contexture \
         trust --revoke DIR"
    )]
    TooMany,
}

impl Trusted {
    /// Checks the project's place now.
    pub fn standing(&self) -> Standing {
        let folder = Beneath::new(Path::new(&self.identity.project));
        match folder.and_then(|folder| Identity::of(&folder)) {
            Ok(identity) if identity == self.identity => Standing::Same,
            Err(FileError::Missing { .. }) => Standing::Gone,
            _ => Standing::Other,
        }
    }
}

impl Trust {
    /// Reads the list kept in `file`; a missing file is an empty list.
    ///
    /// # Errors
    /// [`TrustError::Damaged`].
    pub fn open(file: PathBuf) -> Result<Self, TrustError> {
        let damaged = |cause: String| TrustError::Damaged { path: file.clone(), cause };
        let known = match OpenedFile::at(&file).and_then(|opened| opened.text(MAX_BYTES)) {
            Err(FileError::Missing { .. }) => Vec::new(),
            Err(error) => return Err(damaged(error.problem())),
            Ok(text) => serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?,
        };
        Ok(Self { file: Some(file), known: Mutex::new(known) })
    }

    /// Starts an empty list in place of a damaged file, which is renamed.
    pub fn anew(file: PathBuf) -> Self {
        let aside = file.with_extension("json.damaged");
        // If renaming fails, writing a new file in its place fails too.
        let _ = fs::rename(&file, aside);
        Self { file: Some(file), known: Mutex::default() }
    }

    /// Returns whether exactly this project is trusted.
    pub fn holds(&self, identity: &Identity) -> bool {
        self.known().iter().any(|trusted| trusted.identity == *identity)
    }

    /// Trusts the project in this folder from now on, and returns its entry.
    ///
    /// # Errors
    /// Any [`TrustError`] except [`TrustError::Damaged`].
    pub fn trust(&self, folder: &Path, now_ms: i64) -> Result<Trusted, TrustError> {
        let identity = Identity::of(&Beneath::new(folder)?)?;
        self.change(|known| {
            if let Some(trusted) = known.iter().find(|trusted| trusted.identity == identity) {
                return Ok(trusted.clone());
            }
            // The project that was at this place before is gone, and so is its trust.
            known.retain(|trusted| trusted.identity.project != identity.project);
            if known.len() >= MAX_PROJECTS {
                return Err(TrustError::TooMany);
            }
            known.push(Trusted { identity, since_ms: now_ms });
            Ok(known[known.len() - 1].clone())
        })
    }

    /// Stops trusting the project that is, or was, in this folder. Returns whether the project was
    /// trusted.
    ///
    /// # Errors
    /// [`TrustError::Unwritable`].
    pub fn revoke(&self, folder: &Path) -> Result<bool, TrustError> {
        let place = Beneath::new(folder).and_then(|folder| folder.place());
        let names = [place.unwrap_or_default(), folder.components().collect()];
        self.change(|known| {
            let before = known.len();
            known.retain(|trusted| !names.iter().any(|name| name == &*trusted.identity.project));
            Ok(known.len() < before)
        })
    }

    /// Lists the trusted projects, sorted by path.
    pub fn list(&self) -> Vec<Trusted> {
        let mut known = self.known().clone();
        known.sort_by(|a, b| a.identity.cmp(&b.identity));
        known
    }

    fn known(&self) -> MutexGuard<'_, Vec<Trusted>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the list on the disk first, then in memory.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Trusted>) -> Result<T, TrustError>,
    ) -> Result<T, TrustError> {
        let mut known = self.known();
        let mut changed = known.clone();
        let outcome = change(&mut changed)?;
        if let Some(file) = self.file.as_ref().filter(|_| changed != *known) {
            let written = serde_json::to_vec_pretty(&changed)
                .map_err(io::Error::from)
                .and_then(|text| replace(file, |draft, _| draft.write_all(&text)));
            written.map_err(|cause| TrustError::Unwritable { path: file.clone(), cause })?;
        }
        *known = changed;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const TRUST_FILE: &str = "trusted.json";

    fn repository(at: &Path, url: &str) -> PathBuf {
        fs::create_dir_all(at.join(".git")).unwrap();
        fs::write(at.join(".git/config"), format!("[remote \"origin\"]\nurl = {url}\n")).unwrap();
        at.to_owned()
    }

    fn holds(trust: &Trust, folder: &Path) -> bool {
        trust.holds(&Identity::of(&Beneath::new(folder).unwrap()).unwrap())
    }

    #[test]
    fn trust_is_of_one_repository_at_one_place() {
        let dir = tempfile::tempdir().unwrap();
        let project = repository(&dir.path().join("p"), "one");
        let trust = Trust::default();
        assert!(!holds(&trust, &project));
        assert_eq!(trust.trust(&project, 7).unwrap().since_ms, 7);
        assert_eq!(trust.trust(&project, 8).unwrap().since_ms, 7, "since the first time");
        assert!(holds(&trust, &project));
        assert_eq!(trust.list()[0].standing(), Standing::Same);
        repository(&project, "another");
        assert!(!holds(&trust, &project));
        assert_eq!(trust.list()[0].standing(), Standing::Other);
        repository(&project, "one");
        let moved = dir.path().join("moved");
        fs::rename(&project, &moved).unwrap();
        assert!(!holds(&trust, &moved), "a moved folder must be trusted again");
        assert_eq!(trust.list()[0].standing(), Standing::Gone);
        assert!(trust.revoke(&project).unwrap(), "also when it is gone");
        assert!(!trust.revoke(&project).unwrap());
        assert!(trust.list().is_empty());
        assert!(matches!(trust.trust(&project, 9), Err(TrustError::Unknown(_))));
    }

    #[test]
    fn trust_survives_in_a_file_of_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (file, project) = (dir.path().join(TRUST_FILE), dir.path().join("p"));
        repository(&project, "one");
        Trust::open(file.clone()).unwrap().trust(&project, 1).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Trust::open(file.clone()).unwrap();
        assert!(holds(&again, &project));
        again.revoke(&project).unwrap();
        assert!(Trust::open(file).unwrap().list().is_empty());
    }

    #[test]
    fn a_damaged_list_trusts_nobody_and_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (file, project) = (dir.path().join(TRUST_FILE), dir.path().join("p"));
        repository(&project, "one");
        fs::write(&file, "[{").unwrap();
        assert!(matches!(Trust::open(file.clone()), Err(TrustError::Damaged { .. })));
        let trust = Trust::anew(file.clone());
        assert!(!holds(&trust, &project));
        trust.trust(&project, 1).unwrap();
        assert_eq!(Trust::open(file.clone()).unwrap().list().len(), 1);
        assert_eq!(fs::read_to_string(file.with_extension("json.damaged")).unwrap(), "[{");
    }

    #[test]
    fn what_cannot_be_kept_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let project = repository(&dir.path().join("p"), "one");
        let trust = Trust::open(dir.path().join("none").join(TRUST_FILE)).unwrap();
        assert!(matches!(trust.trust(&project, 1), Err(TrustError::Unwritable { .. })));
        assert!(!holds(&trust, &project));
    }
}
