//! Scores files by the words of a question (BM25 over texts, names of definitions, and paths).

use super::{IndexView, Scores, Weights};
use crate::facts::WordCount;
use crate::names::NameId;

/// How soon more occurrences of a word stop to count.
const SATURATION: f64 = 1.2;

/// Returns the words of a question that the project has, in the order of the question, and how much
/// each counts.
pub(super) fn wanted(view: &IndexView<'_>, stems: &[Box<str>]) -> Vec<(NameId, f64)> {
    let mut wanted: Vec<(NameId, f64)> = Vec::new();
    for id in stems.iter().filter_map(|stem| view.index.names.known(stem)) {
        match wanted.iter_mut().find(|(known, _)| *known == id) {
            // A word that is said again says a little more.
            Some((_, times)) => *times += 0.5,
            None => wanted.push((id, 1.0)),
        }
    }
    wanted
}

/// Scores files by the words of a question.
pub(super) fn by_words(
    view: &IndexView<'_>,
    wanted: &[(NameId, f64)],
    weights: &Weights,
) -> Scores {
    let (across, count) = (view.across, view.files.len() as f64);
    let mut scores = vec![0.0; view.files.len()];
    for (id, times) in wanted {
        let in_path = &across.path_words[*id as usize];
        let mut hits: Vec<(usize, f64)> = Vec::new();
        for (at, WordCount { text, names }) in &across.words[*id as usize] {
            hits.push((*at, f64::from(*text) + weights.in_name * f64::from(*names)));
        }
        let in_texts = hits.len();
        for at in in_path {
            match hits[..in_texts].binary_search_by_key(at, |(at, _)| *at) {
                Ok(hit) => hits[hit].1 += weights.in_path,
                Err(_) => hits.push((*at, weights.in_path)),
            }
        }
        let rarity = rarity(count, hits.len());
        for (at, frequency) in hits {
            let length = f64::from(view.files[at].1.length) / across.average_length;
            let damped = SATURATION * (1.0 - weights.length + weights.length * length);
            scores[at] += times * rarity * frequency * (SATURATION + 1.0) / (frequency + damped);
        }
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}

/// Scores files by the question's words that their paths have. A path says what its file is about; a large
/// file has many words in the names of its definitions.
pub(super) fn by_coverage(view: &IndexView<'_>, wanted: &[(NameId, f64)]) -> Scores {
    let mut scores = vec![0.0; view.files.len()];
    for (id, _) in wanted {
        let hits = &view.across.path_words[*id as usize];
        let rarity = rarity(view.files.len() as f64, hits.len());
        hits.iter().for_each(|at| scores[*at] += rarity);
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}

/// Returns how rare a word is that `found` of `count` files have (BM25).
fn rarity(count: f64, found: usize) -> f64 {
    let found = found as f64;
    (1.0 + ((count - found).max(0.0) + 0.5) / (found + 0.5)).ln()
}
