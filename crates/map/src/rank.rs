//! Puts the files of a project in order for a task.
//!
//! Each signal gives a list: words of the question (BM25), names and paths in it, references (personalised
//! PageRank), what changed together, and messages of commits. The lists are joined by reciprocal ranks.
//! Sums run in the order of paths and names, so that equal projects give equal orders to the last bit.

mod changes;
mod graph;
mod named;
mod terms;
mod weights;

use std::collections::{HashMap, HashSet};

use crate::index::{Definition, File, Index};
use crate::names::Id;
use crate::words::Splitter;

pub use weights::Weights;

/// Maximum length of a question in bytes. What is longer counts up to there.
pub const MAX_QUERY_BYTES: usize = 64 << 10;

/// What a map is for.
#[derive(Debug, Clone, Default)]
pub struct Task<'a> {
    /// The question, or what is to be done; may be empty.
    pub query: &'a str,
    /// Paths of the files that are at hand. They are not in the map themselves.
    pub focus: Vec<&'a str>,
    /// The weights of the signals.
    pub weights: Weights,
}

/// A file in the order of a map.
#[derive(Debug)]
pub(crate) struct Ranked<'a> {
    pub(crate) path: &'a str,
    pub(crate) file: &'a File,
    /// Its definitions, the best first, as their places in the file.
    pub(crate) best: Vec<usize>,
}

/// The files of an index, with what the signals need to know of them all.
pub(crate) struct View<'a> {
    pub(crate) index: &'a Index,
    pub(crate) files: Vec<(&'a str, &'a File)>,
    places: HashMap<&'a str, usize>,
    /// Macros of the project that define what they are given.
    definers: HashSet<Id>,
    /// Number of files that define each name.
    pub(crate) defined_in: Vec<u32>,
    /// Number of files that use each name.
    pub(crate) used_in: Vec<u32>,
}

/// A list of files by their place in the view, with a score above zero.
pub(crate) type Scores = Vec<(usize, f64)>;

impl<'a> View<'a> {
    fn new(index: &'a Index) -> Self {
        let files = index.files();
        let places = files.iter().enumerate().map(|(at, (path, _))| (*path, at)).collect();
        let definers = files.iter().flat_map(|(_, file)| file.definers.iter().copied()).collect();
        let names = index.names.len();
        let (defined_in, used_in) = (vec![0; names], vec![0; names]);
        let mut view = Self { index, files, places, definers, defined_in, used_in };
        view.count();
        view
    }

    fn count(&mut self) {
        let mut last = vec![u32::MAX; self.index.names.len()];
        for (at, (_, file)) in self.files.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            for name in names_defined(&self.definers, file) {
                let name = name as usize;
                if last[name] != at {
                    last[name] = at;
                    self.defined_in[name] += 1;
                }
            }
            for (name, _) in &file.references {
                self.used_in[*name as usize] += 1;
            }
        }
    }

    /// Returns true if a definition is one: a form of the project counts if the project says so.
    pub(crate) fn is_one(&self, definition: &Definition) -> bool {
        definition.form.is_none_or(|form| self.definers.contains(&form))
    }

    /// Returns the names that a file defines, and the one by which it is imported. Names may repeat.
    pub(crate) fn names_of(&self, file: &'a File) -> impl Iterator<Item = Id> {
        names_defined(&self.definers, file)
    }

    pub(crate) fn place(&self, path: &str) -> Option<usize> {
        self.places.get(path).copied()
    }

    /// Returns how much a use of a name says: rare and long names say more.
    pub(crate) fn weight(&self, name: Id) -> f64 {
        let (defined, used) = (self.defined_in[name as usize], self.used_in[name as usize]);
        let text = self.index.names.text(name);
        let rarity = (1.0 + self.files.len() as f64 / f64::from(used.max(1))).ln();
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

fn names_defined<'a>(definers: &'a HashSet<Id>, file: &'a File) -> impl Iterator<Item = Id> + 'a {
    let is_one =
        |it: &&Definition| it.counts && it.form.is_none_or(|form| definers.contains(&form));
    let own = file.definitions.iter().filter(is_one).map(|it| it.name);
    own.chain(file.language.has_definitions().then_some(file.stem))
}

/// Puts the files in order for a task, without those at hand.
pub(crate) fn rank<'a>(index: &'a Index, task: &Task<'_>) -> Vec<Ranked<'a>> {
    let view = View::new(index);
    let weights = &task.weights;
    let query = beginning(task.query);
    let focus: Vec<usize> = task.focus.iter().filter_map(|path| view.place(path)).collect();
    let stems = Splitter::default().question(query);
    let words = terms::by_words(&view, &stems, weights);
    let named = named::by_names(&view, query);
    let seeds = seeds(&focus, &words, &named, weights);
    let commits = index.commits_by_path();
    let lists = [
        (weights.words, words),
        (weights.named, named),
        (weights.graph, graph::by_references(&view, &seeds, weights)),
        (weights.changes, changes::together(&view, &commits, &seeds, weights)),
        (weights.messages, changes::by_messages(&view, &commits, &stems)),
        (weights.churn, changes::often(&view, &commits)),
        (weights.near, near(&view, &focus)),
    ];
    let scores = fuse(&view, lists, weights);
    let mut order: Vec<(usize, f64)> =
        scores.into_iter().enumerate().filter(|(at, _)| !focus.contains(at)).collect();
    order.sort_by(|(one, score), (other, more)| more.total_cmp(score).then(one.cmp(other)));
    let known = Interest::new(&view, &focus, &stems, query);
    order
        .into_iter()
        .map(|(at, _)| {
            let (path, file) = view.files[at];
            Ranked { path, file, best: known.best(&view, file) }
        })
        .collect()
}

fn beginning(query: &str) -> &str {
    let end = query.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_QUERY_BYTES);
    &query[..end.unwrap_or(query.len())]
}

/// Joins lists by reciprocal ranks.
fn fuse<const N: usize>(view: &View<'_>, lists: [(f64, Scores); N], weights: &Weights) -> Vec<f64> {
    let mut fused = vec![0.0; view.files.len()];
    for (weight, mut list) in lists {
        list.sort_by(|(one, score), (other, more)| more.total_cmp(score).then(one.cmp(other)));
        for (rank, (at, _)) in list.into_iter().enumerate() {
            fused[at] += weight / (weights.rank_offset + rank as f64);
        }
    }
    for (at, (_, file)) in view.files.iter().enumerate() {
        fused[at] *= weights.of_file(file.language, file.state);
    }
    fused
}

/// Returns the files from which references and changes are followed: those at hand, and the best of
/// the question.
fn seeds(focus: &[usize], words: &Scores, named: &Scores, weights: &Weights) -> Vec<(usize, f64)> {
    let mut seeds: Vec<(usize, f64)> = focus.iter().map(|at| (*at, 1.0)).collect();
    let share = if focus.is_empty() { 1.0 } else { weights.question_seeds };
    for list in [words, named] {
        let mut list = list.clone();
        list.sort_by(|(one, score), (other, more)| more.total_cmp(score).then(one.cmp(other)));
        let top = list.first().map_or(1.0, |(_, score)| *score);
        for (at, score) in list.into_iter().take(weights.question_files) {
            seeds.push((at, share * score / top / weights.question_files as f64));
        }
    }
    seeds
}

/// Scores files by what their paths have in common with those at hand: the folder, the name.
fn near(view: &View<'_>, focus: &[usize]) -> Scores {
    let mut scores = Scores::new();
    for (at, (path, file)) in view.files.iter().enumerate() {
        let mut best: f64 = 0.0;
        for own in focus.iter().map(|own| view.files[*own]) {
            let folder = |path: &str| path.rsplit_once('/').map_or(0, |(folder, _)| folder.len());
            let common = own.0.split('/').zip(path.split('/')).take_while(|(a, b)| a == b).count();
            let depth = own.0.split('/').count().max(path.split('/').count()) as f64;
            let same =
                folder(own.0) == folder(path) && own.0[..folder(own.0)] == path[..folder(path)];
            let shared = own.1.path_words.iter().filter(|word| file.path_words.contains(word));
            let all = own.1.path_words.len().max(file.path_words.len()).max(1) as f64;
            let score = common as f64 / depth + f64::from(same) * 0.3 + shared.count() as f64 / all;
            best = best.max(score);
        }
        if best > 0.3 {
            scores.push((at, best));
        }
    }
    scores
}

/// What makes a definition worth showing.
struct Interest {
    stems: HashSet<Id>,
    symbols: HashSet<Id>,
    used_at_hand: HashSet<Id>,
}

impl Interest {
    fn new(view: &View<'_>, focus: &[usize], stems: &[Box<str>], query: &str) -> Self {
        let known = |name: &str| view.index.names.known(name);
        let used = focus.iter().flat_map(|at| view.files[*at].1.references.iter());
        Self {
            stems: stems.iter().filter_map(|stem| known(stem)).collect(),
            symbols: crate::words::symbols(query)
                .flat_map(named::variants)
                .filter_map(known)
                .collect(),
            used_at_hand: used.map(|(name, _)| *name).collect(),
        }
    }

    /// Returns the places of a file's definitions, the best first.
    fn best(&self, view: &View<'_>, file: &File) -> Vec<usize> {
        let mut scored: Vec<(usize, f64)> = file
            .definitions
            .iter()
            .enumerate()
            .filter(|(_, it)| it.counts && view.is_one(it))
            .map(|(at, it)| (at, self.score(view, it)))
            .collect();
        scored.sort_by(|(one, score), (other, more)| more.total_cmp(score).then(one.cmp(other)));
        scored.into_iter().map(|(at, _)| at).collect()
    }

    fn score(&self, view: &View<'_>, it: &Definition) -> f64 {
        let used = f64::from(view.used_in[it.name as usize]);
        let mut score =
            view.weight(it.name) * (1.0 + used).ln() / (1.0 + f64::from(it.depth)).sqrt();
        if self.used_at_hand.contains(&it.name) {
            score += 4.0 * view.weight(it.name);
        }
        if self.symbols.contains(&it.name) {
            score += 50.0;
        }
        if !self.stems.is_empty() {
            let name = view.index.names.text(it.name);
            let mut splitter = Splitter::default();
            let hits = splitter.stems(name).iter().filter_map(|stem| view.index.names.known(stem));
            score += 8.0 * hits.filter(|stem| self.stems.contains(stem)).count() as f64;
        }
        score
    }
}
