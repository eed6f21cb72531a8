//! How much of a real commit a map names: one file is at hand, the message is the question, and the
//! others are to be found, as the checkout was before the commit.

use std::collections::HashSet;

use contexture_map::{Index, Task, Weights};

use crate::checkout::Checkout;

const COMMITS: usize = 60;
/// Number of the latest commits from which those are taken.
const AMONG: usize = 600;
const BUDGETS: [u64; 2] = [1_024, 4_096];

struct Case {
    id: String,
    message: String,
    files: Vec<String>,
}

/// Prints the commits of a checkout, for measuring another map on them.
pub(crate) fn print_cases(folder: &str) {
    for case in cases(&Checkout::new(folder)) {
        let (hand, files) = (&case.files[case.hand()], case.files.join("\u{1e}"));
        print!("{}\u{1f}{hand}\u{1f}{files}\u{1f}{}\u{1d}", case.id, case.message);
    }
}

impl Case {
    /// Returns the place of the file at hand.
    fn hand(&self) -> usize {
        self.id.bytes().map(usize::from).sum::<usize>() % self.files.len()
    }
}

/// Prints recall for each checkout: the map, and words alone.
pub(crate) fn measure(folders: &[&str], weights: &Weights) {
    let words_only = Weights {
        words: 1.0,
        named: 0.0,
        graph: 0.0,
        changes: 0.0,
        messages: 0.0,
        churn: 0.0,
        near: 0.0,
        expanded: 0.0,
        ..weights.clone()
    };
    let ways = [("map", weights.clone()), ("words", words_only)];
    let mut all = [[0.0; 2]; 2];
    for folder in folders {
        let source = Checkout::new(folder);
        let branch = source.run(&["rev-parse", "HEAD"]);
        let mut index = Index::default();
        let mut sums = [[0.0; 2]; 2];
        let (mut over, mut expanded) = (0, 0);
        let cases = cases(&source);
        for case in &cases {
            source.check_out(&format!("{}~1", case.id));
            index.update(&source).unwrap();
            let hand = case.hand();
            for (way, (_, weights)) in ways.iter().enumerate() {
                for (at, budget) in BUDGETS.into_iter().enumerate() {
                    let focus = vec![case.files[hand].as_str()];
                    let task = Task { query: &case.message, focus, weights: weights.clone() };
                    let map = index.map(&task, &crate::style(budget));
                    over += usize::from(map.tokens > budget);
                    let named: HashSet<&str> = map.text.lines().collect();
                    let others = case.files.iter().enumerate().filter(|(file, _)| *file != hand);
                    let found = others.filter(|(_, file)| named.contains(file.as_str())).count();
                    sums[way][at] += found as f64 / (case.files.len() - 1) as f64;
                    if way == 0 && at == 0 {
                        expanded += map.files.iter().filter(|file| !file.shown.is_empty()).count();
                    }
                }
            }
        }
        source.check_out(branch.trim());
        let count = cases.len().max(1) as f64;
        print!(
            "{folder}: {} commits, {over} over, {:.1} expanded",
            cases.len(),
            expanded as f64 / count
        );
        for (way, (name, _)) in ways.iter().enumerate() {
            print!("  {name} {:.3} / {:.3}", sums[way][0] / count, sums[way][1] / count);
            (0..2).for_each(|at| all[way][at] += sums[way][at] / count / folders.len() as f64);
        }
        println!();
    }
    println!(
        "mean: map {:.4} / {:.4}  words {:.4} / {:.4}",
        all[0][0], all[0][1], all[1][0], all[1][1]
    );
}

/// Returns commits that change two to eight files that existed before, evenly from the latest.
fn cases(source: &Checkout) -> Vec<Case> {
    let limit = format!("-n{AMONG}");
    let log = source.run(&[
        "log",
        "--no-merges",
        &limit,
        "--no-renames",
        "--name-status",
        "--format=%x01%H%x02%B%x03",
    ]);
    let mut cases = Vec::new();
    for entry in log.split('\u{1}').skip(1) {
        let (id, rest) = entry.split_once('\u{2}').unwrap();
        let (message, changes) = rest.split_once('\u{3}').unwrap();
        let files: Vec<String> = changes
            .lines()
            .filter_map(|line| line.strip_prefix("M\t"))
            .filter(|path| !path.split('/').any(|part| part.starts_with('.')))
            .map(str::to_owned)
            .collect();
        if (2..=8).contains(&files.len()) {
            cases.push(Case { id: id.to_owned(), message: message.trim().to_owned(), files });
        }
    }
    let step = (cases.len() as f64 / COMMITS as f64).max(1.0);
    let chosen: HashSet<usize> = (0..COMMITS).map(|at| (at as f64 * step) as usize).collect();
    let mut at = 0;
    cases.retain(|_| {
        at += 1;
        chosen.contains(&(at - 1))
    });
    cases
}
