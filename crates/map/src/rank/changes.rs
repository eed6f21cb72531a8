//! Scores files by the history: what changed together, and what messages say.

use std::collections::HashMap;

use super::{IndexView, Scores, Weights};

/// Scores files by the commits in which they changed together with the seeds.
pub(super) fn together(view: &IndexView<'_>, seeds: &[(usize, f64)], weights: &Weights) -> Scores {
    let mut seeded = vec![0.0; view.files.len()];
    seeds.iter().for_each(|(at, weight)| seeded[*at] += weight);
    let (mut scores, mut times) = (vec![0.0; view.files.len()], vec![0.0_f64; view.files.len()]);
    for (age, change) in view.across.changes.iter().enumerate() {
        let places = &change.places;
        let recent = 0.5_f64.powf(age as f64 / weights.half_life);
        let seed: f64 = places.iter().map(|at| seeded[*at]).sum();
        for at in places {
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
pub(super) fn by_messages(view: &IndexView<'_>, stems: &[Box<str>]) -> Scores {
    let across = view.across;
    let count = across.changes.len() as f64;
    // Sums run in the order of the question, so that they are equal to the last bit.
    let (mut seen, mut known): (Vec<&str>, HashMap<usize, f64>) = (Vec::new(), HashMap::new());
    for stem in stems {
        let Some(ages) = across.messages.get(stem) else { continue };
        if seen.contains(&&**stem) {
            continue;
        }
        seen.push(stem);
        let rarity = (1.0 + count / (1.0 + ages.len() as f64)).ln();
        ages.iter().for_each(|age| *known.entry(*age).or_default() += rarity);
    }
    let mut known: Vec<(usize, f64)> = known.into_iter().collect();
    known.sort_unstable_by_key(|(age, _)| *age);
    let mut scores = vec![0.0; view.files.len()];
    for (age, score) in known {
        let change = &across.changes[age];
        if change.places.is_empty() {
            continue;
        }
        // One word in common says little, several say much.
        let score =
            score * score / (5.0 + change.words as f64) / (1.0 + change.places.len() as f64).ln();
        change.places.iter().for_each(|at| scores[*at] += score);
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}

/// Scores files by how often they changed, and how recently.
pub(super) fn often(view: &IndexView<'_>) -> Scores {
    let mut scores = vec![0.0; view.files.len()];
    for (age, change) in view.across.changes.iter().enumerate() {
        change.places.iter().for_each(|at| scores[*at] += 1.0 / (20.0 + age as f64));
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}
