//! What the files of an index say together: who defines and uses each name, which files have each word,
//! and what changed together. It is made once for each state of an index, so that a question is short.

use std::collections::{HashMap, HashSet};

use super::graph::Links;
use crate::facts::WordCount;
use crate::index::{Definition, Index, IndexedFacts};
use crate::names::NameId;

/// Who defines and uses each name.
#[derive(Debug)]
pub(crate) struct NameCounts {
    /// Number of files.
    files: usize,
    /// Macros of the project that define what they are given.
    definers: HashSet<NameId>,
    /// Number of files that define each name.
    pub(crate) defined_in: Vec<u32>,
    /// Number of files that use each name.
    pub(crate) used_in: Vec<u32>,
}

/// A commit, with the places of its files.
#[derive(Debug)]
pub(crate) struct CommitFiles {
    pub(crate) places: Vec<usize>,
    /// Number of different words of its message.
    pub(crate) words: usize,
}

/// What the files of an index say together.
#[derive(Debug)]
pub(crate) struct Across {
    pub(crate) counts: NameCounts,
    pub(crate) links: Links,
    /// For each word, the places of the files that have it, and how often.
    pub(crate) words: Vec<Vec<(usize, WordCount)>>,
    /// For each word, the places of the files whose path has it.
    pub(crate) path_words: Vec<Vec<usize>>,
    /// For each name, the places of the files that define it, or use it and how often.
    pub(crate) names: Vec<NamedFiles>,
    /// Average length of a file in words, at least 1.
    pub(crate) average_length: f64,
    /// Commits, the newest first.
    pub(crate) changes: Vec<CommitFiles>,
    /// For each word of a message, the commits that have it.
    pub(crate) messages: HashMap<Box<str>, Vec<usize>>,
}

/// The files that have a name.
#[derive(Debug, Default, Clone)]
pub(crate) struct NamedFiles {
    pub(crate) definers: Vec<usize>,
    /// Without those that define it.
    pub(crate) users: Vec<(usize, u32)>,
}

impl Across {
    pub(crate) fn of(index: &Index) -> Self {
        let files = index.files();
        let counts = NameCounts::of(&files, index.names.len());
        let links = Links::new(&files, &counts, index);
        let mut words = vec![Vec::new(); index.names.len()];
        let mut path_words = vec![Vec::new(); index.names.len()];
        let mut names = vec![NamedFiles::default(); index.names.len()];
        for (at, (_, file)) in files.iter().enumerate() {
            file.words.iter().for_each(|(id, times)| words[*id as usize].push((at, *times)));
            file.path_words.iter().for_each(|id| path_words[*id as usize].push(at));
            for id in counts.names_of(file) {
                let definers = &mut names[id as usize].definers;
                if definers.last() != Some(&at) {
                    definers.push(at);
                }
            }
            for (id, times) in &file.references {
                let named = &mut names[*id as usize];
                if named.definers.last() != Some(&at) {
                    named.users.push((at, *times));
                }
            }
        }
        let length: f64 = files.iter().map(|(_, file)| f64::from(file.length)).sum();
        let average_length = (length / files.len() as f64).max(1.0);
        let mut messages: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        let mut changes = Vec::new();
        for (age, (commit, paths)) in index.commits_by_path().into_iter().enumerate() {
            let place = |path| files.binary_search_by_key(&path, |(path, _)| *path).ok();
            let places = paths.into_iter().filter_map(place).collect();
            changes.push(CommitFiles { places, words: commit.words.len() });
            for word in &commit.words {
                messages.entry(word.as_str().into()).or_default().push(age);
            }
        }
        Self { counts, links, words, path_words, names, average_length, changes, messages }
    }
}

impl NameCounts {
    fn of(files: &[(&str, &IndexedFacts)], names: usize) -> Self {
        let definers = files.iter().flat_map(|(_, file)| file.definers.iter().copied()).collect();
        let (mut defined_in, mut used_in) = (vec![0; names], vec![0; names]);
        let mut last = vec![usize::MAX; names];
        for (at, (_, file)) in files.iter().enumerate() {
            for name in names_defined(&definers, file) {
                let name = name as usize;
                if last[name] != at {
                    last[name] = at;
                    defined_in[name] += 1;
                }
            }
            file.references.iter().for_each(|(name, _)| used_in[*name as usize] += 1);
        }
        Self { files: files.len(), definers, defined_in, used_in }
    }

    /// Returns whether this is a definition. The head of a form may be a macro; then the project
    /// must have a macro of this name that defines something.
    pub(crate) fn is_one(&self, definition: &Definition) -> bool {
        is_one(&self.definers, definition)
    }

    /// Returns the names that a file defines, and the one by which it is imported. Names may repeat.
    pub(crate) fn names_of(&self, file: &IndexedFacts) -> impl Iterator<Item = NameId> {
        names_defined(&self.definers, file)
    }

    /// Returns how much a use of a name says: rare and long names say more.
    pub(crate) fn weight(&self, index: &Index, name: NameId) -> f64 {
        let (defined, used) = (self.defined_in[name as usize], self.used_in[name as usize]);
        let text = index.names.text(name);
        let rarity = (1.0 + self.files as f64 / f64::from(used.max(1))).ln();
        let is_composed = text.len() >= 8
            && (text.contains(['_', '-', '/'])
                || text.contains(char::is_lowercase) && text.contains(char::is_uppercase));
        let shape = match text.len() {
            0..=2 => 0.1,
            3 => 0.4,
            _ if is_composed => 2.5,
            _ => 1.0,
        };
        rarity * shape / f64::from(defined.max(1)).sqrt()
    }
}

fn is_one(definers: &HashSet<NameId>, definition: &Definition) -> bool {
    definition.form.is_none_or(|form| definers.contains(&form))
}

fn names_defined(definers: &HashSet<NameId>, file: &IndexedFacts) -> impl Iterator<Item = NameId> {
    let own = file.definitions.iter().filter(|it| it.counts && is_one(definers, it));
    own.map(|it| it.name).chain(file.language.has_definitions().then_some(file.stem))
}
