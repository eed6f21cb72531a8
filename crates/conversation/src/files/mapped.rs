//! A project on disk, as its map sees it: the files that a walk finds, and the history of Git. Links are
//! not followed, and files that may hold secrets are not read.

use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use contexture_map::{Content, FileStamp, MapSource, WalkedFile};

use super::git;
use super::secrets::{holds_secrets, is_secret};
use super::{Beneath, FileError, Progress, ReadOptions, TreeError, TreeOptions, Walk, walk};

/// Maximum time for one call of Git. The first reads some thousand commits.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of entries of a project that has a map.
const MAX_ENTRIES: u64 = 200_000;

/// A project on disk.
pub struct ProjectOnDisk<'a> {
    root: PathBuf,
    folder: Beneath,
    walk: Walk,
    options: ReadOptions,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> ProjectOnDisk<'a> {
    /// Finds the files of the project at `root`, an absolute path of a folder.
    ///
    /// # Errors
    /// Those of [`walk`].
    pub fn new(
        root: &Path,
        options: ReadOptions,
        is_cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Self, TreeError> {
        // Larger files have a place in the map, by their names.
        let found = TreeOptions {
            max_file_bytes: u64::MAX,
            max_entries: MAX_ENTRIES,
            ..TreeOptions::default()
        };
        let mut go_on = |_: Progress| match is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let walk = walk(root, &found, &mut go_on)?;
        let folder = Beneath::new(&walk.root)?;
        Ok(Self { root: walk.root.clone(), folder, walk, options, is_cancelled })
    }

    fn read_text(&self, path: &str) -> Result<String, FileError> {
        let opened = self.folder.open(Path::new(path))?;
        if holds_secrets(opened.path()) {
            return Err(FileError::Secret { path: opened.path().to_owned() });
        }
        opened.check(self.options.max_bytes)?;
        Ok(opened.read(None, &self.options)?.content)
    }
}

impl MapSource for ProjectOnDisk<'_> {
    fn files(&self) -> Result<Vec<WalkedFile>, String> {
        let stamped = |file: &super::FoundFile| {
            let metadata = file.path.symlink_metadata().ok()?;
            let nanoseconds =
                |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000) + rest;
            let stamp = FileStamp {
                bytes: metadata.len(),
                modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
                changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
                inode: metadata.ino(),
            };
            Some(WalkedFile { path: file.relative.clone(), stamp })
        };
        Ok(self.walk.files.iter().filter_map(stamped).collect())
    }

    fn read(&self, path: &str) -> Content {
        match self.read_text(path) {
            Ok(text) if is_secret(None, &text) => Content::Secret,
            Ok(text) => Content::Bytes(text.into_bytes()),
            Err(FileError::Missing { .. }) => Content::Gone,
            Err(FileError::Secret { .. }) => Content::Secret,
            Err(FileError::TooLarge { .. }) => Content::TooLarge,
            Err(FileError::Binary { .. }) => Content::Binary,
            Err(_) => Content::Unreadable,
        }
    }

    fn now(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
        git::run(&self.root, arguments, input, &mut PATIENCE.clone())
    }

    fn is_cancelled(&self) -> bool {
        (self.is_cancelled)()
    }
}
