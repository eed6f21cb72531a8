//! How well a question finds the files that answer it: NDCG@10 over questions that others wrote, for the
//! map, for words alone, and for the lines that ripgrep finds.
//!
//! Each line of the file of questions has fields between tabs: the folder, the question, its kind, and
//! the paths of the files that answer it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use contexture_map::{Index, MapTask, Weights};

use crate::checkout::Checkout;

const PLACES: usize = 10;
/// Number of files among which the answers are counted.
pub(crate) const FIRST: usize = 20;
const WAYS: [&str; 3] = ["map", "words", "ripgrep"];
/// Enough for more than `PLACES` paths.
const TOKENS: u64 = 4_096;

struct Question<'a> {
    folder: &'a str,
    text: &'a str,
    kind: &'a str,
    answers: Vec<&'a str>,
}

#[derive(Default)]
struct Sum {
    count: f64,
    gains: [f64; 3],
    /// Share of the answers among the first files of the map.
    recall: f64,
}

/// Prints NDCG@10 by folder and by kind of question, and the middle time of a question.
pub(crate) fn measure(file: &str, weights: &Weights) {
    let text = std::fs::read_to_string(file).unwrap();
    let questions: Vec<Question<'_>> = text.lines().map(read).collect();
    let mut indexes: HashMap<&str, Index> = HashMap::new();
    let (mut by_folder, mut by_kind) = (BTreeMap::new(), BTreeMap::new());
    let mut times = Vec::new();
    for question in &questions {
        let index = indexes.entry(question.folder).or_insert_with(|| {
            let mut index = Index::default();
            index.update(&Checkout::new(question.folder)).unwrap();
            index
        });
        let begun = Instant::now();
        let map = paths(index, question.text, weights);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let words = paths(index, question.text, &weights.words_only());
        let is_found = |answer: &&&str| map.iter().take(FIRST).any(|path| ends(path, answer));
        let recall =
            question.answers.iter().filter(is_found).count() as f64 / question.answers.len() as f64;
        let found = [map, words, ripgrep(question)].map(|paths| gain(&paths, &question.answers));
        if std::env::var_os("MAP_VERBOSE").is_some() {
            println!("{:.3} {:.3} {}: {}", found[0], found[1], question.folder, question.text);
        }
        add(by_folder.entry(question.folder).or_default(), found, recall);
        add(by_kind.entry(question.kind).or_default(), found, recall);
    }
    let mut all = Sum::default();
    for (name, sum) in by_folder.iter().chain(&by_kind) {
        print_sum(name, sum);
    }
    for sum in by_kind.values() {
        all.count += sum.count;
        all.recall += sum.recall;
        (0..WAYS.len()).for_each(|way| all.gains[way] += sum.gains[way]);
    }
    print_sum("all", &all);
    times.sort_by(f64::total_cmp);
    println!("a question takes {:.2} ms in the middle", times[times.len() / 2]);
}

fn read(line: &str) -> Question<'_> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().expect("a folder, a question and its kind");
    let (folder, text, kind) = (next(), next(), next());
    Question { folder, text, kind, answers: fields.collect() }
}

pub(crate) fn paths(index: &Index, query: &str, weights: &Weights) -> Vec<String> {
    let task = MapTask { query, focus: Vec::new(), weights: weights.clone() };
    let map = index.map(&task, &crate::style(TOKENS));
    map.files.into_iter().map(|file| file.path).collect()
}

/// Returns the files with the most lines that have the whole question.
fn ripgrep(question: &Question<'_>) -> Vec<String> {
    let mut rg = Command::new("rg");
    rg.args(["--count", "--ignore-case", "--fixed-strings", "--", question.text, "."]);
    let Ok(output) = rg.current_dir(question.folder).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counted: Vec<(u64, &str)> = text
        .lines()
        .filter_map(|line| line.rsplit_once(':'))
        .filter_map(|(path, count)| Some((count.parse().ok()?, path)))
        .collect();
    counted.sort_by(|(one, path), (other, more)| other.cmp(one).then(path.cmp(more)));
    counted.into_iter().map(|(_, path)| path.to_owned()).collect()
}

/// Returns the discounted gain of a list, as a share of that of the best list.
pub(crate) fn gain(paths: &[String], answers: &[&str]) -> f64 {
    let discount = |place: usize| 1.0 / (place as f64 + 2.0).log2();
    let place = |answer: &&str| paths.iter().take(PLACES).position(|path| ends(path, answer));
    let found: f64 = answers.iter().filter_map(place).map(discount).sum();
    found / (0..answers.len().min(PLACES)).map(discount).sum::<f64>()
}

/// Returns true if one path is the end of the other: answers are told from the root of the repository.
fn ends(path: &str, answer: &str) -> bool {
    Path::new(answer).ends_with(path.trim_start_matches("./")) || Path::new(path).ends_with(answer)
}

fn add(sum: &mut Sum, gains: [f64; 3], recall: f64) {
    sum.count += 1.0;
    sum.recall += recall;
    (0..WAYS.len()).for_each(|way| sum.gains[way] += gains[way]);
}

fn print_sum(name: &str, sum: &Sum) {
    print!("{name}: {} questions", sum.count);
    WAYS.iter().zip(sum.gains).for_each(|(way, gain)| print!("  {way} {:.3}", gain / sum.count));
    println!("  recall at {FIRST} files {:.3}", sum.recall / sum.count);
}
