//! Scores files by the history: what changed together, and what messages say.

use std::collections::HashMap;

use super::{Scores, View, Weights};
use crate::history::Commit;

/// Commits, the newest first, with the current names of their files.
type Commits<'a> = [(&'a Commit, Vec<&'a str>)];

/// Scores files by the commits in which they changed together with the seeds.
pub(super) fn together(
    view: &View<'_>,
    commits: &Commits<'_>,
    seeds: &[(usize, f64)],
    weights: &Weights,
) -> Scores {
    let mut seeded = vec![0.0; view.files.len()];
    seeds.iter().for_each(|(at, weight)| seeded[*at] += weight);
    let (mut scores, mut times) = (vec![0.0; view.files.len()], vec![0.0_f64; view.files.len()]);
    for (age, (_, paths)) in commits.iter().enumerate() {
        let places: Vec<usize> = paths.iter().filter_map(|path| view.place(path)).collect();
        let recent = 0.5_f64.powf(age as f64 / weights.half_life);
        let seed: f64 = places.iter().map(|at| seeded[*at]).sum();
        for at in &places {
            times[*at] += recent;
            let others = seed - seeded[*at];
            if others > 0.0 {
                scores[*at] += others * recent / (1.0 + places.len() as f64).ln();
            }
        }
    }
    let usual = |at: usize, score: f64| score / (1.0 + times[at]).powf(weights.often);
    let scores = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0);
    scores.map(|(at, score)| (at, usual(at, score))).collect()
}

/// Scores files by the messages of the commits that changed them.
pub(super) fn by_messages(view: &View<'_>, commits: &Commits<'_>, stems: &[Box<str>]) -> Scores {
    let mut rarity: HashMap<&str, f64> = stems.iter().map(|stem| (&**stem, 0.0)).collect();
    for (commit, _) in commits {
        for word in &commit.words {
            if let Some(found) = rarity.get_mut(word.as_str()) {
                *found += 1.0;
            }
        }
    }
    let count = commits.len() as f64;
    rarity.values_mut().for_each(|found| *found = (1.0 + count / (1.0 + *found)).ln());
    let mut scores = vec![0.0; view.files.len()];
    for (commit, paths) in commits {
        let known = commit.words.iter().filter_map(|word| rarity.get(word.as_str()));
        let score: f64 = known.sum();
        if score <= 0.0 || paths.is_empty() {
            continue;
        }
        // One word in common says little, several say much.
        let score =
            score * score / (5.0 + commit.words.len() as f64) / (1.0 + paths.len() as f64).ln();
        for at in paths.iter().filter_map(|path| view.place(path)) {
            scores[at] += score;
        }
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}

/// Scores files by how often they changed, and how recently.
pub(super) fn often(view: &View<'_>, commits: &Commits<'_>) -> Scores {
    let mut scores = vec![0.0; view.files.len()];
    for (age, (_, paths)) in commits.iter().enumerate() {
        for at in paths.iter().filter_map(|path| view.place(path)) {
            scores[at] += 1.0 / (20.0 + age as f64);
        }
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}
