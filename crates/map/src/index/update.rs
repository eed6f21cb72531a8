//! Brings an index up to date.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Index, IndexedPath};
use crate::facts::{FileFacts, FileState};
use crate::source::{Content, MapSource, WalkedFile};
use crate::words::Splitter;

/// Time before a reading, in nanoseconds, in which a change of a file may not show in its stamp:
/// the coarsest clock of a file system.
const UNSETTLED: i64 = 2_000_000_000;
/// Maximum number of threads that read files.
const MAX_THREADS: usize = 8;
/// Number of files from which on several threads read.
const FEW: usize = 8;

/// A buffer with changes that are not saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsaved {
    /// Path from the root of the project.
    pub path: String,
    /// Text of the buffer.
    pub text: String,
}

/// What an update did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Updated {
    /// Number of files that were read.
    pub read: usize,
    /// Paths of files whose facts are new.
    pub changed: Vec<String>,
    /// Paths of files that are no longer there.
    pub removed: Vec<String>,
    /// Paths of files of which only the stamp is new.
    pub touched: Vec<String>,
    /// Names of commits that are new.
    pub commits: Vec<String>,
}

/// What reading a file gave, for the index.
struct ReadForIndex {
    hash: [u8; 32],
    /// `None` if the file is as it was.
    facts: Option<FileFacts>,
}

impl Index {
    /// Brings the index up to date with the files and the history of `source`.
    ///
    /// # Errors
    /// The reason why there is no list of files, or that the work was cancelled. The index then is what
    /// it was, or further along.
    pub fn update(&mut self, source: &dyn MapSource) -> Result<Updated, String> {
        let mut history = std::mem::take(&mut self.history);
        let (mut updated, mut is_other) = (Updated::default(), false);
        // Git works while the files are read.
        let files = std::thread::scope(|scope| {
            let commits = scope.spawn(|| history.update(source));
            let files = self.update_files(source, &mut updated);
            (updated.commits, is_other) = commits.join().unwrap_or_default();
            files
        });
        if !updated.changed.is_empty() || !updated.removed.is_empty() || is_other {
            self.across.take();
        }
        self.history = history;
        files.map(|()| updated)
    }

    fn update_files(
        &mut self,
        source: &dyn MapSource,
        updated: &mut Updated,
    ) -> Result<(), String> {
        let begun = source.now();
        let mut listed = source.files()?;
        listed.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        listed.dedup_by(|one, other| one.path == other.path);
        let is_known = |file: &WalkedFile| {
            let entry = self.entries.get(file.path.as_str());
            entry.is_some_and(|entry| entry.stamp == file.stamp && entry.is_settled)
        };
        let unknown: Vec<&WalkedFile> = listed.iter().filter(|file| !is_known(file)).collect();
        let mut splitter = std::mem::take(&mut self.splitter);
        let read = self.read_all(source, &unknown, &mut splitter.0);
        self.splitter = splitter;
        let read = read?;
        let mut gone = Vec::new();
        for (file, read) in unknown.iter().zip(read) {
            updated.read += 1;
            let Some(ReadForIndex { hash, facts }) = read else {
                gone.push(file.path.as_str());
                continue;
            };
            let stamp = file.stamp;
            let is_settled = stamp.modified.max(stamp.changed) < begun - UNSETTLED;
            match (facts, self.entries.get_mut(file.path.as_str())) {
                (None, Some(entry)) => {
                    (entry.stamp, entry.is_settled) = (stamp, is_settled);
                    updated.touched.push(file.path.clone());
                }
                (facts, _) => {
                    let facts = facts
                        .unwrap_or_else(|| FileFacts::nameless(&file.path, FileState::Unreadable));
                    let entry = IndexedPath {
                        stamp,
                        is_settled,
                        hash,
                        file: self.numbered(&file.path, &facts),
                    };
                    self.entries.insert(file.path.as_str().into(), entry);
                    updated.changed.push(file.path.clone());
                }
            }
        }
        let is_there = |path: &str| {
            listed.binary_search_by(|file| file.path.as_str().cmp(path)).is_ok()
                && !gone.contains(&path)
        };
        self.entries.retain(|path, _| {
            let kept = is_there(path);
            if !kept {
                updated.removed.push(path.to_string());
            }
            kept
        });
        Ok(())
    }

    /// Reads files, many on several threads. The results are in the order of the files; `None` stands for
    /// one that is gone. Few files are often those of before, whose words `splitter` remembers.
    fn read_all(
        &self,
        source: &dyn MapSource,
        files: &[&WalkedFile],
        splitter: &mut Splitter,
    ) -> Result<Vec<Option<ReadForIndex>>, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if files.len() < FEW { 1 } else { cores.min(MAX_THREADS) };
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(files.len())));
        let work = |splitter: &mut Splitter| {
            let mut own = Vec::new();
            while !source.is_cancelled() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = files.get(at) else { break };
                own.push((at, self.read_one(source, &file.path, splitter)));
            }
            if let Ok(mut results) = results.lock() {
                results.append(&mut own);
            }
        };
        if threads == 1 {
            work(splitter);
        } else {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| work(&mut Splitter::default()));
                }
            });
        }
        let mut results = results.into_inner().unwrap_or_default();
        if results.len() < files.len() {
            return Err("the map was cancelled".to_owned());
        }
        results.sort_unstable_by_key(|(at, _)| *at);
        Ok(results.into_iter().map(|(_, read)| read).collect())
    }

    fn read_one(
        &self,
        source: &dyn MapSource,
        path: &str,
        splitter: &mut Splitter,
    ) -> Option<ReadForIndex> {
        let state = |state: FileState| {
            let hash = blake3::hash(&[state.number()]).into();
            Some(ReadForIndex { hash, facts: Some(FileFacts::nameless(path, state)) })
        };
        let bytes = match source.read(path) {
            Content::Bytes(bytes) => bytes,
            Content::Binary => return state(FileState::Binary),
            Content::Secret => return state(FileState::Secret),
            Content::TooLarge => return state(FileState::TooLarge),
            Content::Unreadable => return state(FileState::Unreadable),
            Content::Gone => return None,
        };
        // The first byte keeps contents apart from states.
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"t").update(&bytes);
        let hash = hasher.finalize().into();
        let facts = match self.entries.get(path) {
            Some(entry) if entry.hash == hash => None,
            _ => Some(FileFacts::of(path, &bytes, splitter)),
        };
        Some(ReadForIndex { hash, facts })
    }

    /// Takes the texts of unsaved buffers, which count until the next call.
    pub fn set_unsaved(&mut self, buffers: &[Unsaved]) {
        let mut before = std::mem::take(&mut self.unsaved);
        let mut is_same = buffers.len() == before.len();
        for buffer in buffers {
            let hash = blake3::hash(buffer.text.as_bytes()).into();
            let file = match before.remove(buffer.path.as_str()) {
                Some((known, file)) if known == hash => file,
                _ => {
                    is_same = false;
                    let mut splitter = std::mem::take(&mut self.splitter);
                    let facts =
                        FileFacts::of(&buffer.path, buffer.text.as_bytes(), &mut splitter.0);
                    self.splitter = splitter;
                    self.numbered(&buffer.path, &facts)
                }
            };
            self.unsaved.insert(buffer.path.as_str().into(), (hash, file));
        }
        if !is_same {
            self.across.take();
        }
    }
}
