//! How many files of a real commit a map names. One file is at hand, and the message is the
//! question. The map of the checkout before the commit should name the other files.

use std::collections::HashSet;

use contexture_map::{Index, MapTask, Weights};

use crate::checkout::Checkout;
use crate::search::{FIRST, gain, paths};

const COMMITS: usize = 60;
/// Number of the latest commits from which those are taken.
const AMONG: usize = 600;
const BUDGETS: [u64; 3] = [512, 1_024, 4_096];

/// A line of a stack trace, as programs in several languages print it.
const TRACE: &str = r#"Traceback \(most recent|^ *File ".*", line [0-9]+|^ +at .*\(.*:[0-9]+\)|panicked at|Debugger entered|goroutine [0-9]+ \[|^ *#[0-9]+ +0x|from .*\.rb:[0-9]+:in"#;

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
    let ways = [("map", weights.clone()), ("words", weights.words_only())];
    let mut all = [[0.0; BUDGETS.len()]; 2];
    for folder in folders {
        let source = Checkout::new(folder);
        let branch = source.run(&["rev-parse", "HEAD"]);
        let mut index = Index::default();
        let mut sums = [[0.0; BUDGETS.len()]; 2];
        let (mut over, mut expanded) = (0, 0);
        let cases = cases(&source);
        for case in &cases {
            source.check_out(&format!("{}~1", case.id));
            index.update(&source).unwrap();
            let hand = case.hand();
            for (way, (_, weights)) in ways.iter().enumerate() {
                for (at, budget) in BUDGETS.into_iter().enumerate() {
                    let focus = vec![case.files[hand].as_str()];
                    let task = MapTask { query: &case.message, focus, weights: weights.clone() };
                    let map = index.map(&task, &crate::style(budget));
                    over += usize::from(map.tokens > budget);
                    let named: HashSet<&str> = map.text.lines().collect();
                    let others = case.files.iter().enumerate().filter(|(file, _)| *file != hand);
                    let found = others.filter(|(_, file)| named.contains(file.as_str())).count();
                    sums[way][at] += found as f64 / (case.files.len() - 1) as f64;
                    if way == 0 && at == 1 {
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
            let means = sums[way].map(|sum| sum / count);
            print_means(name, &means);
            means.iter().enumerate().for_each(|(at, mean)| all[way][at] += mean);
        }
        println!();
    }
    print!("mean:");
    for (way, (name, _)) in ways.iter().enumerate() {
        print_means(name, &all[way].map(|sum| sum / folders.len() as f64));
    }
    println!();
}

fn print_means(name: &str, means: &[f64]) {
    let means: Vec<String> = means.iter().map(|mean| format!("{mean:.3}")).collect();
    print!("  {name} {}", means.join(" / "));
}

/// Returns commits that change two to eight files that existed before, evenly from the latest.
fn cases(source: &Checkout) -> Vec<Case> {
    let mut cases = commits(source, &[&format!("-n{AMONG}")]);
    cases.retain(|case| (2..=8).contains(&case.files.len()));
    let step = (cases.len() as f64 / COMMITS as f64).max(1.0);
    let chosen: HashSet<usize> = (0..COMMITS).map(|at| (at as f64 * step) as usize).collect();
    let mut at = 0;
    cases.retain(|_| {
        at += 1;
        chosen.contains(&(at - 1))
    });
    cases
}

/// Returns the commits that `git log` gives, with the files that they change and that existed before.
fn commits(source: &Checkout, which: &[&str]) -> Vec<Case> {
    let mut log = vec!["log", "--no-merges"];
    log.extend_from_slice(which);
    log.extend(["--no-renames", "--name-status", "--format=%x01%H%x02%B%x03"]);
    let mut cases = Vec::new();
    for entry in source.run(&log).split('\u{1}').skip(1) {
        let (id, rest) = entry.split_once('\u{2}').unwrap();
        let (message, changes) = rest.split_once('\u{3}').unwrap();
        let files: Vec<String> = changes
            .lines()
            .filter_map(|line| line.strip_prefix("M\t"))
            .filter(|path| !path.split('/').any(|part| part.starts_with('.')))
            .map(str::to_owned)
            .collect();
        cases.push(Case { id: id.to_owned(), message: message.trim().to_owned(), files });
    }
    cases
}

/// Prints what the message of a commit finds of its files while no file is at hand: NDCG@10, and the share
/// among the first 20. Takes all commits whose message has a stack trace, or others, evenly.
pub(crate) fn measure_messages(folders: &[&str], weights: &Weights, has_trace: bool) {
    let ways = [("map", weights.clone()), ("words", weights.words_only())];
    let (mut all, mut count) = ([[0.0; 2]; 2], 0.0);
    for folder in folders {
        let source = Checkout::new(folder);
        let branch = source.run(&["rev-parse", "HEAD"]);
        let mut cases = match has_trace {
            true => commits(&source, &["-E", &format!("--grep={TRACE}")]),
            false => cases(&source),
        };
        cases.retain(|case| (1..=8).contains(&case.files.len()));
        let (mut sums, mut index) = ([[0.0; 2]; 2], Index::default());
        for case in &cases {
            source.check_out(&format!("{}~1", case.id));
            index.update(&source).unwrap();
            let answers: Vec<&str> = case.files.iter().map(String::as_str).collect();
            for (way, (_, weights)) in ways.iter().enumerate() {
                let named = paths(&index, &case.message, weights);
                let found = named.iter().take(FIRST).filter(|path| case.files.contains(path));
                sums[way][0] += gain(&named, &answers);
                sums[way][1] += found.count() as f64 / case.files.len() as f64;
            }
        }
        source.check_out(branch.trim());
        print!("{folder}: {} messages; NDCG@10 / recall at {FIRST} files:", cases.len());
        for (way, (name, _)) in ways.iter().enumerate() {
            print_means(name, &sums[way].map(|sum| sum / cases.len().max(1) as f64));
            (0..2).for_each(|at| all[way][at] += sums[way][at]);
        }
        println!();
        count += cases.len() as f64;
    }
    print!("all {count} messages:");
    ways.iter()
        .zip(all)
        .for_each(|((name, _), sums)| print_means(name, &sums.map(|sum| sum / count)));
    println!();
}
