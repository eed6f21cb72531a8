//! The maps of projects: their indexes, in memory and in the state folder.
//!
//! Everything here blocks: it reads files and runs Git.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use contexture_map::MAX_QUERY_BYTES;
use contexture_map::{Map, MapTask, StoredIndex, Style, Unsaved, Weights};

use crate::engine::View;
use crate::files::{ProjectOnDisk, ReadOptions, TreeError, true_outside};
use crate::tokens::Counter;
use crate::visible::visible;

/// Maximum number of projects whose indexes are in memory. The one that was not used for the longest
/// time goes first, and is read from the state folder when it is needed again.
const MAX_PROJECTS: usize = 3;
/// Default maximum number of tokens of a map.
pub const DEFAULT_MAP_TOKENS: u64 = 1_024;

/// An index that one call at a time uses.
type SharedIndex = Arc<Mutex<Option<StoredIndex>>>;

/// The indexes of projects.
#[derive(Debug, Default)]
pub struct Maps {
    /// Folder for the files of the indexes; `None` keeps them in memory only.
    folder: Option<PathBuf>,
    /// Roots and indexes, the last used at the end.
    open: Mutex<Vec<(PathBuf, SharedIndex)>>,
}

/// What a map is wanted for.
#[derive(Debug, Default)]
pub struct WantedMap {
    /// What is to be done; may be empty.
    pub query: String,
    /// Files that are at hand: absolute, or relative to the project.
    pub focus: Vec<PathBuf>,
    /// Texts of unsaved buffers, with the absolute paths of their files.
    pub unsaved: Vec<(PathBuf, String)>,
    /// Maximum number of tokens.
    pub max_tokens: u64,
}

/// Returns the file and text of an item whose whole file is in an unsaved buffer.
pub fn unsaved(view: &View) -> Option<(PathBuf, String)> {
    let is_whole = view.is_held() && view.item.metadata.lines().is_none();
    let name = view.item.metadata.filename().filter(|_| is_whole)?;
    Some((true_outside(name)?, view.item.content.to_string()))
}

impl Maps {
    /// Creates indexes that are kept in `folder`, which is made when it is needed.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, open: Mutex::default() }
    }

    /// Makes the map of the project at `root`, an absolute path of a folder.
    ///
    /// # Errors
    /// Those of a walk, and that it was cancelled.
    pub fn map(
        &self,
        root: &Path,
        wanted: &WantedMap,
        options: ReadOptions,
        counter: &dyn Counter,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Map, TreeError> {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let source = ProjectOnDisk::new(&root, options, is_cancelled)?;
        let shared = self.shared(&root);
        let mut slot = locked(&shared);
        let kept = slot.get_or_insert_with(|| StoredIndex::open(self.file_of(&root)));
        let cancelled = || TreeError::Cancelled { path: root.clone() };
        kept.update(&source).map_err(|_| cancelled())?;
        let below = |path: &Path| {
            let path = path.strip_prefix(&root).unwrap_or(path);
            path.to_string_lossy().into_owned()
        };
        let unsaved: Vec<Unsaved> = wanted
            .unsaved
            .iter()
            .filter(|(path, _)| path.starts_with(&root))
            .map(|(path, text)| Unsaved { path: below(path), text: text.clone() })
            .collect();
        kept.index_mut().set_unsaved(&unsaved);
        let focus: Vec<String> = wanted.focus.iter().map(|path| below(path)).collect();
        let task = MapTask {
            query: &wanted.query,
            focus: focus.iter().map(String::as_str).collect(),
            weights: Weights::default(),
        };
        let style = Style {
            max_tokens: wanted.max_tokens,
            count: &|text| counter.count(text),
            show: &|text| visible(text).into_owned(),
        };
        let map = kept.index().map(&task, &style);
        if is_cancelled() { Err(cancelled()) } else { Ok(map) }
    }

    /// Returns the index of a project, which becomes the last used.
    fn shared(&self, root: &Path) -> SharedIndex {
        let mut open = locked(&self.open);
        let at = open.iter().position(|(known, _)| known == root);
        let (root, shared) = match at {
            Some(at) => open.remove(at),
            None => (root.to_owned(), SharedIndex::default()),
        };
        // An index that a call uses stays, since two would write to one file.
        let idle = open.iter().position(|(_, shared)| Arc::strong_count(shared) == 1);
        if let Some(idle) = idle.filter(|_| open.len() >= MAX_PROJECTS) {
            open.remove(idle);
        }
        open.push((root, Arc::clone(&shared)));
        shared
    }

    /// Returns the file that keeps the index of a project.
    fn file_of(&self, root: &Path) -> Option<PathBuf> {
        let folder = self.folder.as_deref()?;
        let made = std::fs::create_dir_all(folder);
        let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        made.is_ok().then(|| folder.join(format!("{}.map", &hash[..32])))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // An index is only ever replaced or brought further; a panic leaves one that is older.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
