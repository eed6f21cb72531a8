//! Puts the files of a project in order for a task.
//!
//! Each signal gives a list: words of the question (BM25), names and paths in it, references (personalised
//! PageRank), what changed together, and messages of commits. The lists are joined by reciprocal ranks.
//! Sums run in the order of paths and names, so that equal projects give equal orders to the last bit.

mod across;
mod changes;
mod graph;
mod named;
mod terms;
mod weights;

use std::collections::HashSet;

use crate::index::{Definition, Index, IndexedFacts};
use crate::names::NameId;
use crate::words::Splitter;

pub(crate) use across::Across;
pub use weights::Weights;

/// Maximum length of a question in bytes. What is longer counts up to there.
pub const MAX_QUERY_BYTES: usize = 64 << 10;

/// Stems of words in the paths of tests, examples and the like.
const ASIDE: &[&str] =
    &["test", "spec", "exampl", "bench", "benchmark", "fixtur", "mock", "doc", "demo", "sampl"];

/// What a map is for.
#[derive(Debug, Clone, Default)]
pub struct MapTask<'a> {
    /// The question, or what is to be done; may be empty.
    pub query: &'a str,
    /// Paths of the files that are at hand. They are not in the map themselves.
    pub focus: Vec<&'a str>,
    /// The weights of the signals.
    pub weights: Weights,
}

/// The files of a project in the order of a map, without those at hand.
pub(crate) struct Ranking<'a> {
    view: IndexView<'a>,
    order: Vec<usize>,
    known: Interest,
}

/// The files of an index, with what they say together.
pub(crate) struct IndexView<'a> {
    pub(crate) index: &'a Index,
    pub(crate) files: Vec<(&'a str, &'a IndexedFacts)>,
    pub(crate) across: &'a Across,
}

/// A list of files by their place in the view, with a score above zero.
pub(crate) type Scores = Vec<(usize, f64)>;

impl<'a> IndexView<'a> {
    fn new(index: &'a Index) -> Self {
        Self { index, files: index.files(), across: index.across() }
    }

    /// Returns for each file whether its path shows a test, an example or the like that the
    /// question does not mention.
    fn aside(&self, stems: &[Box<str>]) -> Vec<bool> {
        let mut aside = vec![false; self.files.len()];
        let unspoken = ASIDE.iter().filter(|kind| !stems.iter().any(|stem| **stem == ***kind));
        for id in unspoken.filter_map(|kind| self.index.names.known(kind)) {
            self.across.path_words[id as usize].iter().for_each(|at| aside[*at] = true);
        }
        aside
    }

    pub(crate) fn place(&self, path: &str) -> Option<usize> {
        self.files.binary_search_by_key(&path, |(path, _)| *path).ok()
    }

    /// Returns how much a use of a name says: rare and long names say more.
    pub(crate) fn weight(&self, name: NameId) -> f64 {
        self.across.counts.weight(self.index, name)
    }

    /// Returns the places of a file's definitions.
    fn definitions(&self, file: &'a IndexedFacts) -> impl Iterator<Item = (usize, &'a Definition)> {
        let counts = &self.across.counts;
        file.definitions.iter().enumerate().filter(|(_, it)| it.counts && counts.is_one(it))
    }
}

impl<'a> Ranking<'a> {
    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns all files by path, also those at hand.
    pub(crate) fn files(&self) -> &[(&'a str, &'a IndexedFacts)] {
        &self.view.files
    }

    /// Returns the path and the file at a rank.
    pub(crate) fn get(&self, rank: usize) -> Option<(&'a str, &'a IndexedFacts)> {
        self.order.get(rank).map(|at| self.view.files[*at])
    }

    /// Returns the number of definitions of a file.
    pub(crate) fn definitions(&self, file: &'a IndexedFacts) -> usize {
        self.view.definitions(file).count()
    }

    /// Returns the places of a file's definitions, the best first. That a file provides its own name
    /// goes without saying.
    pub(crate) fn best(&self, file: &'a IndexedFacts) -> Vec<usize> {
        let mut splitter = Splitter::default();
        let score = |(at, it)| (at, self.known.score(&self.view, it, &mut splitter));
        let shown = self.view.definitions(file);
        let shown = shown.filter(|(_, it)| !it.signature.starts_with("(provide "));
        by_score(shown.map(score).collect()).map(|(at, _)| at).collect()
    }
}

/// Puts what is scored in order, the best first, and what is equal by its place.
fn by_score(mut scored: Scores) -> impl Iterator<Item = (usize, f64)> {
    scored.sort_by(|(one, score), (other, more)| more.total_cmp(score).then(one.cmp(other)));
    scored.into_iter()
}

/// Puts the files in order for a task, without those at hand.
pub(crate) fn rank<'a>(index: &'a Index, task: &MapTask<'_>) -> Ranking<'a> {
    let view = IndexView::new(index);
    let weights = &task.weights;
    let query = beginning(task.query);
    let focus: Vec<usize> = task.focus.iter().filter_map(|path| view.place(path)).collect();
    let stems = Splitter::default().question(query);
    let aside = view.aside(&stems);
    let lower = |mut list: Scores| {
        list.iter_mut().filter(|(at, _)| aside[*at]).for_each(|(_, score)| *score *= weights.aside);
        list
    };
    let wanted = terms::wanted(&view, &stems);
    let words = lower(terms::by_words(&view, &wanted, weights));
    let named = lower(named::by_names(&view, query));
    let covered = lower(terms::by_coverage(&view, &wanted));
    let seeds = seeds(&focus, &words, &named, weights);
    let of_changes = if focus.is_empty() { weights.question_changes } else { weights.changes };
    let lists = [
        (weights.words, words),
        (weights.named, named),
        (weights.covered, covered),
        (weights.graph, graph::by_references(&view, &seeds, weights)),
        (of_changes, changes::together(&view, &seeds, weights)),
        (weights.messages, changes::by_messages(&view, &stems)),
        (weights.churn, changes::often(&view)),
        (weights.near, near(&view, &focus)),
    ];
    let scores = fuse(&view, lists, weights).into_iter().enumerate();
    let others = scores.filter(|(at, _)| !focus.contains(at)).collect();
    let order = by_score(others).map(|(at, _)| at).collect();
    let known = Interest::new(&view, &focus, &stems, query);
    Ranking { view, order, known }
}

fn beginning(query: &str) -> &str {
    let end = query.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_QUERY_BYTES);
    &query[..end.unwrap_or(query.len())]
}

/// Joins lists by reciprocal ranks and by shares of their best scores.
fn fuse<const N: usize>(
    view: &IndexView<'_>,
    lists: [(f64, Scores); N],
    weights: &Weights,
) -> Vec<f64> {
    let mut fused = vec![0.0; view.files.len()];
    for (weight, list) in lists {
        let mut top = None;
        for (rank, (at, score)) in by_score(list).enumerate() {
            let share = score / *top.get_or_insert(score);
            let placed = 1.0 / (weights.rank_offset + rank as f64);
            let scored = share / weights.rank_offset;
            fused[at] += weight * (placed + weights.by_score * (scored - placed));
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
        let mut top = None;
        for (at, score) in by_score(list.clone()).take(weights.question_files) {
            let part = score / *top.get_or_insert(score) / weights.question_files as f64;
            seeds.push((at, share * part));
        }
    }
    seeds
}

/// Scores files by what their paths have in common with those at hand: the folder, the name.
fn near(view: &IndexView<'_>, focus: &[usize]) -> Scores {
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
    stems: HashSet<NameId>,
    symbols: HashSet<NameId>,
    used_at_hand: HashSet<NameId>,
}

impl Interest {
    fn new(view: &IndexView<'_>, focus: &[usize], stems: &[Box<str>], query: &str) -> Self {
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

    /// Returns how much a definition is worth showing.
    fn score(&self, view: &IndexView<'_>, it: &Definition, splitter: &mut Splitter) -> f64 {
        let used = f64::from(view.across.counts.used_in[it.name as usize]);
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
            let hits = splitter.stems(name).iter().filter_map(|stem| view.index.names.known(stem));
            score += 20.0 * hits.filter(|stem| self.stems.contains(stem)).count() as f64;
        }
        score
    }
}
