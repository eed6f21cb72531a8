//! Scores files by the words of a question (BM25 over texts, names of definitions, and paths).

use super::{Scores, View, Weights};
use crate::facts::Times;

/// How soon more occurrences of a word stop to count.
const SATURATION: f64 = 1.2;

/// Scores files by the stems of a question.
pub(super) fn by_words(view: &View<'_>, stems: &[Box<str>], weights: &Weights) -> Scores {
    let names = &view.index.names;
    let mut wanted: Vec<(u32, f64)> = Vec::new();
    for id in stems.iter().filter_map(|stem| names.known(stem)) {
        match wanted.iter_mut().find(|(known, _)| *known == id) {
            // A word that is said again says a little more.
            Some((_, times)) => *times += 0.5,
            None => wanted.push((id, 1.0)),
        }
    }
    if wanted.is_empty() || view.files.is_empty() {
        return Scores::new();
    }
    let count = view.files.len() as f64;
    let total: f64 = view.files.iter().map(|(_, file)| f64::from(file.length)).sum();
    let average = (total / count).max(1.0);
    let mut scores = vec![0.0; view.files.len()];
    for (id, times) in wanted {
        let mut hits: Vec<(usize, f64)> = Vec::new();
        for (at, (_, file)) in view.files.iter().enumerate() {
            let found = file.words.binary_search_by_key(&id, |(word, _)| *word);
            let Times { text, names } = found.map_or(Times::default(), |place| file.words[place].1);
            let in_path = file.path_words.binary_search(&id).is_ok();
            let frequency = f64::from(text)
                + weights.in_name * f64::from(names)
                + if in_path { weights.in_path } else { 0.0 };
            if frequency > 0.0 {
                hits.push((at, frequency));
            }
        }
        let found = hits.len() as f64;
        let rarity = (1.0 + (count - found + 0.5) / (found + 0.5)).ln();
        for (at, frequency) in hits {
            let length = f64::from(view.files[at].1.length) / average;
            let damped = SATURATION * (1.0 - weights.length + weights.length * length);
            scores[at] += times * rarity * frequency * (SATURATION + 1.0) / (frequency + damped);
        }
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}
