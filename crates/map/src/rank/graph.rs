//! Scores files by references: a walk from the seeds, from each use of a name to its definitions, and back
//! to those that use what a file defines (personalised PageRank).

use super::across::NameCounts;
use super::{IndexView, Scores, Weights};
use crate::index::{Index, IndexedFacts};

/// Number of steps of the walk. After these, the order hardly changes.
const STEPS: usize = 12;

/// The names that connect files, by numbers of their own.
#[derive(Debug)]
pub(crate) struct Links {
    /// For each file, the names that it uses and defines elsewhere, with weights.
    uses: Vec<Vec<(usize, f64)>>,
    /// For each file, the names that it defines, with weights.
    defines: Vec<Vec<(usize, f64)>>,
    /// For each name, the sum of the weights of its uses, and the number of its definitions.
    names: Vec<(f64, f64)>,
    /// For each file, the sums of the weights of what it uses, and of what it defines.
    out: Vec<(f64, f64)>,
}

/// Scores files by references from the seeds; without seeds, from all files.
pub(super) fn by_references(
    view: &IndexView<'_>,
    seeds: &[(usize, f64)],
    weights: &Weights,
) -> Scores {
    let count = view.files.len();
    if count == 0 {
        return Scores::new();
    }
    let links = &view.across.links;
    let mut start = vec![0.0; count];
    match seeds {
        [] => start.fill(1.0 / count as f64),
        seeds => {
            let all: f64 = seeds.iter().map(|(_, weight)| weight).sum();
            seeds.iter().for_each(|(at, weight)| start[*at] += weight / all);
        }
    }
    let mut ranks = start.clone();
    for _ in 0..STEPS {
        ranks = links.step(&ranks, &start, weights);
    }
    ranks.into_iter().enumerate().filter(|(_, rank)| *rank > 1e-9).collect()
}

impl Links {
    pub(crate) fn new(files: &[(&str, &IndexedFacts)], counts: &NameCounts, index: &Index) -> Self {
        let mut slots = vec![usize::MAX; index.names.len()];
        let mut names = Vec::new();
        let mut values = Vec::new();
        let count = files.len();
        let (mut uses, mut defines) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (at, (_, file)) in files.iter().enumerate() {
            for id in counts.names_of(file) {
                let used = counts.used_in[id as usize];
                if used == 0 {
                    continue;
                }
                let slot = &mut slots[id as usize];
                if *slot == usize::MAX {
                    *slot = names.len();
                    names.push((0.0, f64::from(counts.defined_in[id as usize])));
                    values.push(counts.weight(index, id));
                }
                let own: &mut Vec<(usize, f64)> = &mut defines[at];
                if !own.iter().any(|(known, _)| known == slot) {
                    own.push((*slot, values[*slot]));
                }
            }
        }
        for (at, (_, file)) in files.iter().enumerate() {
            for (id, times) in &file.references {
                let slot = slots[*id as usize];
                if slot == usize::MAX || defines[at].iter().any(|(known, _)| *known == slot) {
                    continue;
                }
                let weight = values[slot] * f64::from(*times).sqrt();
                names[slot].0 += weight;
                uses[at].push((slot, weight));
            }
        }
        let sum = |links: &[(usize, f64)]| links.iter().map(|(_, weight)| weight).sum::<f64>();
        let out = uses.iter().zip(&defines).map(|(uses, own)| (sum(uses), sum(own))).collect();
        Self { uses, defines, names, out }
    }

    fn step(&self, ranks: &[f64], start: &[f64], weights: &Weights) -> Vec<f64> {
        let mut to_definitions = vec![0.0; self.names.len()];
        let mut to_uses = vec![0.0; self.names.len()];
        let mut lost = 0.0;
        for (at, rank) in ranks.iter().enumerate() {
            let out = self.out[at].0 + weights.backwards * self.out[at].1;
            if out <= 0.0 {
                lost += rank;
                continue;
            }
            let share = rank / out;
            for (name, weight) in &self.uses[at] {
                to_definitions[*name] += share * weight;
            }
            for (name, weight) in &self.defines[at] {
                to_uses[*name] += share * weights.backwards * weight;
            }
        }
        let anew = 1.0 - weights.damping + weights.damping * lost;
        let mut next: Vec<f64> = start.iter().map(|share| anew * share).collect();
        for (at, rank) in next.iter_mut().enumerate() {
            for (name, _) in &self.defines[at] {
                *rank += weights.damping * to_definitions[*name] / self.names[*name].1;
            }
            for (name, weight) in &self.uses[at] {
                *rank += weights.damping * to_uses[*name] * weight / self.names[*name].0;
            }
        }
        next
    }
}
