//! Finds the files of a directory tree, in a fixed order, and records the entries that are left
//! out.
//!
//! Opens no files except ignore files, and asks Git what it tracks. Must not know what the files are
//! used for.

mod rules;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder};

use super::git;
use super::read::{refused, size_of_regular};
use super::{Beneath, DEFAULT_MAX_FILE_BYTES, FileError, SkipReason, Skipped, TreeError};

/// Default maximum number of entries in a walk: five times as many as a large repository has. Each
/// entry takes about 300 bytes during the walk.
pub const DEFAULT_MAX_TREE_ENTRIES: u64 = 500_000;

/// Number of entries between two reports of progress.
pub(super) const PROGRESS_INTERVAL: u64 = 200;

/// Folders of version control (`.git` may be a file), which are neither walked nor reported.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn", ".bzr", "_darcs", ".jj"];

/// Rules for what a walk includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeOptions {
    /// Maximum size of an included file in bytes.
    pub max_file_bytes: u64,
    /// True to include names that begin with a dot, except those of version control.
    pub hidden: bool,
    /// True to follow symbolic links inside the tree; a root that is a link is always followed.
    pub follow_links: bool,
    /// Maximum number of entries; a walk that meets more stops with an error.
    pub max_entries: u64,
}

/// Progress of a walk, or of the reading after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Number of files so far.
    pub files: u64,
    /// Total size of these files in bytes.
    pub bytes: u64,
}

/// A file that a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Path: the root as it was given, and the names below it.
    pub path: PathBuf,
    /// Path relative to the root; lossy where a name is not UTF-8.
    pub relative: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// The files of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// The walked directory; if the given root was a file, the folder of the file.
    pub root: PathBuf,
    /// The files, sorted by the bytes of each name on their path.
    pub files: Vec<FoundFile>,
    /// Entries that were left out, sorted in the same way.
    pub skipped: Skipped,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            max_file_bytes: DEFAULT_MAX_FILE_BYTES,
            hidden: false,
            follow_links: false,
            max_entries: DEFAULT_MAX_TREE_ENTRIES,
        }
    }
}

/// Finds the files under `root`, an absolute path.
///
/// Files excluded by `.gitignore`, `.ignore`, `.git/info/exclude` or the user's global excludes are
/// left out. What Git tracks is not: of these rules, it follows only those of `.ignore`. Rules from
/// above `root` apply only if `root` is in a Git repository; outside a
/// repository, `.gitignore` files inside the tree still apply. A folder that is left out is one
/// entry in `skipped` and is not opened. A `root` that is a file is included even if a rule
/// excludes it. Does not check whether a file is text; [`read_each`](super::read_each) does.
///
/// Calls `progress` every 200 entries and at the end. If `progress` returns `Break`, the walk
/// stops.
///
/// Errors: the kinds of [`FileError`] for a root that is missing, unreadable, or neither file nor
/// directory, and for an ignore file in or above the root that must not be read; `cancelled`;
/// `tree-too-large`. Problems below the root are not errors.
pub fn walk(
    root: &Path,
    options: &TreeOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Walk, TreeError> {
    match size_of_regular(root, root.metadata()) {
        Ok(bytes) => return Ok(single(root, bytes, options)),
        Err(FileError::IsDirectory { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    fs::read_dir(root).map_err(|source| refused(root, source))?;
    let top = Arc::new(Beneath::new(&rules::top(root))?);
    let mut above = root.ancestors().take_while(|folder| folder.starts_with(top.named()));
    above.try_for_each(|folder| rules::check(&top, folder))?;
    let mut walker = Walker::new(root, options, Arc::clone(&top), progress);
    walker.walk(&builder(root, options, Arc::clone(&top), None))?;
    let tracked = walker.tracked();
    if !tracked.is_empty() {
        let mut again = builder(root, options, top, Some(tracked));
        walker.walk(again.git_ignore(false).git_exclude(false).git_global(false))?;
        walker.files.sort_by(|one, other| one.path.cmp(&other.path));
    }
    walker.finish()
}

/// Makes a walk of all entries, or of those in `only`.
fn builder(
    root: &Path,
    options: &TreeOptions,
    top: Arc<Beneath>,
    only: Option<HashSet<PathBuf>>,
) -> WalkBuilder {
    // Without a repository around it, Git ignores a `.gitignore` above the root (in a home folder,
    // say), and so does the walk. Inside one, Git's own rules hold, also for nested repositories.
    let in_repository = root.ancestors().any(|folder| folder.join(".git").exists());
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(!options.hidden)
        .follow_links(options.follow_links)
        .require_git(in_repository)
        .parents(in_repository)
        .filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let enters = || !is_folder || rules::check(&top, entry.path()).is_ok();
            let is_left_out = !is_folder && is_backup(entry.file_name());
            let is_wanted = only.as_ref().is_none_or(|only| only.contains(entry.path()));
            is_wanted && !is_version_control(entry.file_name()) && !is_left_out && enters()
        })
        .sort_by_file_name(OsStr::cmp);
    builder
}

pub(super) fn is_version_control(name: &OsStr) -> bool {
    VERSION_CONTROL.iter().any(|known| name == *known)
}

/// Returns whether this is an editor's name for an older version of a file, or for what it saved
/// by itself.
fn is_backup(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.ends_with(b"~") || (name.starts_with(b"#") && name.ends_with(b"#"))
}

fn single(path: &Path, bytes: u64, options: &TreeOptions) -> Walk {
    let root = path.parent().unwrap_or(path).to_path_buf();
    let (relative, path) = (relative(&root, path), path.to_path_buf());
    let (mut files, mut skipped) = (Vec::new(), Skipped::default());
    match bytes > options.max_file_bytes {
        true => skipped.add(relative, SkipReason::TooLarge),
        false => files.push(FoundFile { path, relative, bytes }),
    }
    Walk { root, files, skipped }
}

/// A walk in progress.
struct Walker<'a> {
    root: &'a Path,
    options: &'a TreeOptions,
    top: Arc<Beneath>,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    files: Vec<FoundFile>,
    /// Entries of visited folders that the filtered walk has not yielded yet, and whether each is a
    /// folder. Those that remain at the end were filtered out.
    awaited: HashMap<PathBuf, bool>,
    /// Entries that were left out, whether each is a folder, and why it was left out.
    left_out: BTreeMap<PathBuf, (bool, SkipReason)>,
    so_far: Progress,
    entries: u64,
    steps: u64,
}

impl<'a> Walker<'a> {
    fn new(
        root: &'a Path,
        options: &'a TreeOptions,
        top: Arc<Beneath>,
        progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Self {
        Self {
            root,
            options,
            top,
            progress,
            files: Vec::new(),
            awaited: HashMap::new(),
            left_out: BTreeMap::new(),
            so_far: Progress::default(),
            entries: 0,
            steps: 0,
        }
    }

    /// Visits the entries of a walk that none visited before.
    fn walk(&mut self, builder: &WalkBuilder) -> Result<(), TreeError> {
        let is_first = self.steps == 0;
        for entry in builder.build() {
            match entry {
                Ok(entry) if entry.depth() == 0 && is_first => self.open_folder(self.root)?,
                Ok(entry) if is_first || self.awaited.contains_key(entry.path()) => {
                    self.visit(&entry)?;
                }
                Ok(_) => {}
                Err(error) => self.fail(&error),
            }
            self.tick()?;
        }
        Ok(())
    }

    /// Returns the files that Git tracks and a rule left out, with the folders that they are in.
    fn tracked(&self) -> HashSet<PathBuf> {
        let is_left_out = |path: &Path| {
            let mut up = path.ancestors().take_while(|up| *up != self.root);
            let found = up.find(|up| self.awaited.contains_key(*up));
            found.is_some_and(|found| self.options.hidden || !is_hidden(found))
        };
        let mut found = HashSet::new();
        if self.awaited.is_empty() {
            return found;
        }
        for name in git::tracked(self.root) {
            let path = self.root.join(OsStr::from_bytes(&name));
            if is_left_out(&path) && path.symlink_metadata().is_ok_and(|it| !it.is_dir()) {
                let up = path.ancestors().take_while(|up| up.starts_with(self.root));
                found.extend(up.map(Path::to_path_buf));
            }
        }
        found
    }

    fn visit(&mut self, entry: &DirEntry) -> Result<(), TreeError> {
        let path = entry.path();
        self.awaited.remove(path);
        let Some(kind) = entry.file_type() else { return Ok(()) };
        if kind.is_dir() {
            return self.open_folder(path);
        }
        match entry.metadata() {
            _ if kind.is_symlink() => self.leave_out(path, SkipReason::Link),
            _ if !kind.is_file() => self.leave_out(path, SkipReason::NotAFile),
            Err(_) => self.leave_out(path, SkipReason::Unreadable),
            Ok(metadata) if metadata.len() > self.options.max_file_bytes => {
                self.leave_out(path, SkipReason::TooLarge);
            }
            Ok(metadata) => self.take(path, metadata.len()),
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, bytes: u64) {
        self.so_far.files += 1;
        self.so_far.bytes += bytes;
        let relative = relative(self.root, path);
        self.files.push(FoundFile { path: path.to_path_buf(), relative, bytes });
    }

    /// Records everything in a folder that the walk is about to enter.
    fn open_folder(&mut self, folder: &Path) -> Result<(), TreeError> {
        let Ok(entries) = fs::read_dir(folder) else {
            self.left_out.insert(folder.to_path_buf(), (true, SkipReason::Unreadable));
            return Ok(());
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if !is_version_control(&entry.file_name()) {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                self.awaited.insert(entry.path(), is_folder);
            }
        }
        if self.entries > self.options.max_entries {
            let (path, limit) = (self.root.to_path_buf(), self.options.max_entries);
            return Err(TreeError::TooManyEntries { path, limit });
        }
        Ok(())
    }

    /// Records an entry that the walk failed on. A folder that cannot be opened was already
    /// recorded by `open_folder`, so its path is no longer awaited.
    fn fail(&mut self, error: &ignore::Error) {
        let Some((path, is_loop)) = place(error) else { return };
        if self.awaited.remove(path).is_some() {
            let is_link = is_loop || path.is_symlink();
            let reason = if is_link { SkipReason::Link } else { SkipReason::Unreadable };
            self.leave_out(path, reason);
        }
    }

    fn leave_out(&mut self, path: &Path, reason: SkipReason) {
        self.left_out.insert(path.to_path_buf(), (false, reason));
    }

    fn tick(&mut self) -> Result<(), TreeError> {
        self.steps += 1;
        if self.steps.is_multiple_of(PROGRESS_INTERVAL) { self.tell() } else { Ok(()) }
    }

    fn tell(&mut self) -> Result<(), TreeError> {
        match (self.progress)(self.so_far) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TreeError::Cancelled { path: self.root.to_path_buf() }),
        }
    }

    fn finish(mut self) -> Result<Walk, TreeError> {
        self.tell()?;
        for (path, is_folder) in self.awaited {
            let is_refused = || is_folder && rules::check(&self.top, &path).is_err();
            let reason = match !self.options.hidden && is_hidden(&path) {
                true => SkipReason::Hidden,
                false if is_refused() => SkipReason::Unreadable,
                false => SkipReason::Ignored,
            };
            self.left_out.insert(path, (is_folder, reason));
        }
        let mut skipped = Skipped::default();
        for (path, (is_folder, reason)) in self.left_out {
            let slash = if is_folder { "/" } else { "" };
            skipped.add(relative(self.root, &path) + slash, reason);
        }
        Ok(Walk { root: self.root.to_path_buf(), files: self.files, skipped })
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

pub(super) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// Returns the path that an error of the walk is about, and true if the error is a loop of links.
fn place(error: &ignore::Error) -> Option<(&Path, bool)> {
    match error {
        ignore::Error::Loop { child, .. } => Some((child, true)),
        ignore::Error::WithPath { path, err } => Some(place(err).unwrap_or((path, false))),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            place(err)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
