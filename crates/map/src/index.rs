//! The index of a project: the facts of its files, and its history.
//!
//! Whatever happened before, an updated index equals one that was made from nothing: the facts of a file
//! depend on its path and bytes only, and a file is read again unless its stamp proves that it is the
//! same.

mod update;

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use crate::facts::{FileFacts, FileState, WordCount};
use crate::history::{Commit, CommitHistory};
use crate::language::Language;
use crate::names::{NameId, NameTable};
use crate::rank::Across;
use crate::source::FileStamp;
use crate::words::Splitter;

pub use update::{Unsaved, Updated};

/// A definition, with the number of its name.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) name: NameId,
    pub(crate) line: u32,
    pub(crate) end: u32,
    pub(crate) depth: u8,
    pub(crate) counts: bool,
    /// The macro that has to define if this is to be a definition.
    pub(crate) form: Option<NameId>,
    pub(crate) signature: Box<str>,
}

/// The facts of a file, with numbers for names.
#[derive(Debug)]
pub(crate) struct IndexedFacts {
    pub(crate) language: Language,
    pub(crate) state: FileState,
    pub(crate) lines: u32,
    pub(crate) length: u32,
    /// Sorted by number.
    pub(crate) words: Box<[(NameId, WordCount)]>,
    /// Words of its path, sorted by number.
    pub(crate) path_words: Box<[NameId]>,
    /// The name by which other files import it.
    pub(crate) stem: NameId,
    /// Sorted by name.
    pub(crate) references: Box<[(NameId, u32)]>,
    /// In the order of the file.
    pub(crate) definitions: Box<[Definition]>,
    pub(crate) definers: Box<[NameId]>,
}

/// A file of the index.
#[derive(Debug)]
pub(crate) struct IndexedPath {
    pub(crate) stamp: FileStamp,
    /// False if the file may have changed since it was read without a change of its stamp.
    pub(crate) is_settled: bool,
    pub(crate) hash: [u8; 32],
    pub(crate) file: IndexedFacts,
}

/// An index.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) names: NameTable,
    pub(crate) entries: BTreeMap<Box<str>, IndexedPath>,
    pub(crate) history: CommitHistory,
    /// The files of unsaved buffers, which count instead of those on disk.
    pub(crate) unsaved: BTreeMap<Box<str>, ([u8; 32], IndexedFacts)>,
    pub(crate) splitter: SplitterCell,
    /// Empty after each change.
    pub(crate) across: OnceLock<Across>,
}

/// A splitter, which has nothing to show.
#[derive(Default)]
pub(crate) struct SplitterCell(pub(crate) Splitter);

impl std::fmt::Debug for SplitterCell {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Splitter")
    }
}

impl Index {
    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the project has no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of commits that count.
    #[must_use]
    pub fn commits(&self) -> usize {
        self.history.order.len()
    }

    /// Returns the files by path, with unsaved buffers in place of what is on disk.
    pub(crate) fn files(&self) -> Vec<(&str, &IndexedFacts)> {
        let mut files: Vec<(&str, &IndexedFacts)> = Vec::with_capacity(self.entries.len());
        for (path, entry) in &self.entries {
            let file = self.unsaved.get(path).map_or(&entry.file, |(_, file)| file);
            files.push((path, file));
        }
        let new = self.unsaved.iter().filter(|(path, _)| !self.entries.contains_key(*path));
        let before = files.len();
        files.extend(new.map(|(path, (_, file))| (&**path, file)));
        if files.len() > before {
            files.sort_unstable_by_key(|(path, _)| *path);
        }
        files
    }

    /// Returns the facts that follow from all files together.
    pub(crate) fn across(&self) -> &Across {
        self.across.get_or_init(|| Across::of(self))
    }

    /// Replaces names by numbers.
    pub(crate) fn numbered(&mut self, path: &str, facts: &FileFacts) -> IndexedFacts {
        let names = &mut self.names;
        let mut words: Vec<(NameId, WordCount)> =
            facts.words.iter().map(|(word, times)| (names.id(word), *times)).collect();
        words.sort_unstable_by_key(|(id, _)| *id);
        let mut path_words: Vec<NameId> = crate::words::tokens(path)
            .flat_map(|token| self.splitter.0.stems(token).to_vec())
            .map(|stem| names.id(&stem))
            .collect();
        path_words.sort_unstable();
        path_words.dedup();
        let definition = |it: &crate::facts::Defined| Definition {
            name: names.id(&it.name),
            line: it.line,
            end: it.end,
            depth: it.depth,
            counts: it.counts,
            form: it.form.as_deref().map(|form| names.id(form)),
            signature: it.signature.as_str().into(),
        };
        let definitions = facts.definitions.iter().map(definition).collect();
        IndexedFacts {
            language: facts.language,
            state: facts.state,
            lines: facts.lines,
            length: facts.length,
            words: words.into(),
            path_words: path_words.into(),
            stem: names.id(stem(path)),
            references: facts.references.iter().map(|(name, n)| (names.id(name), *n)).collect(),
            definitions,
            definers: facts.definers.iter().map(|name| names.id(name)).collect(),
        }
    }

    /// Gives the names anew, without those that no file has any more.
    pub(crate) fn forget_unused_names(&mut self) {
        self.across.take();
        let before = std::mem::take(&mut self.names);
        let names = &mut self.names;
        let mut anew = |id: &mut NameId| *id = names.id(before.text(*id));
        let unsaved = self.unsaved.values_mut().map(|(_, file)| file);
        for file in self.entries.values_mut().map(|entry| &mut entry.file).chain(unsaved) {
            file.words.iter_mut().for_each(|(id, _)| anew(id));
            file.words.sort_unstable_by_key(|(id, _)| *id);
            file.path_words.iter_mut().for_each(&mut anew);
            file.path_words.sort_unstable();
            anew(&mut file.stem);
            file.references.iter_mut().for_each(|(id, _)| anew(id));
            file.definers.iter_mut().for_each(&mut anew);
            for it in &mut file.definitions {
                anew(&mut it.name);
                it.form.as_mut().map(&mut anew);
            }
        }
    }

    /// Returns the commits that count, the newest first, with the current names of their files.
    pub(crate) fn commits_by_path(&self) -> Vec<(&Commit, Vec<&str>)> {
        let mut later: HashMap<&str, &str> = HashMap::new();
        let mut commits = Vec::with_capacity(self.history.order.len());
        for id in &self.history.order {
            let Some(commit) = self.history.commits.get(id) else { continue };
            let current = |path: &String| {
                let now = later.get(path.as_str()).copied().unwrap_or(path.as_str());
                self.entries.get_key_value(now).map(|(path, _)| &**path)
            };
            let mut paths: Vec<&str> = commit.paths.iter().filter_map(current).collect();
            paths.sort_unstable();
            paths.dedup();
            for (from, to) in &commit.renamed {
                let now = later.get(to.as_str()).copied().unwrap_or(to.as_str());
                if from != now {
                    later.insert(from, now);
                }
            }
            commits.push((commit, paths));
        }
        commits
    }
}

/// Returns the name by which other files import a file: its own without its ending, or that of its
/// folder.
pub(crate) fn stem(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name);
    match stem {
        "mod" | "index" | "__init__" | "lib" | "main" | "init" => parts.next().unwrap_or(stem),
        stem => stem,
    }
}
