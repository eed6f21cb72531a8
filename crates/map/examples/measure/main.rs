//! Measures the map on checkouts: its times, and how much of a real commit it names.
//!
//! Usage: `measure map DIR TOKENS QUERY [FOCUS…]`, `measure search FILE`, or `measure
//! times|cases|messages|traces|recall DIR…`. The last three check out earlier commits in each DIR.
//! `scripts/bench-map` runs it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "prints figures"
)]

mod checkout;
mod recall;
mod search;
mod times;

use contexture_map::{Index, MapTask, Style, Weights};

use self::checkout::Checkout;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["map", folder, tokens, query, focus @ ..] => {
            let mut index = Index::default();
            index.update(&Checkout::new(folder)).unwrap();
            let weights = weights();
            let task = MapTask { query, focus: focus.to_vec(), weights };
            let map = index.map(&task, &style(tokens.parse().unwrap()));
            print!("{}", map.text);
            println!("{} tokens of {tokens}; {:?}", map.tokens, map.states);
        }
        ["times", folders @ ..] => folders.iter().for_each(|folder| times::measure(folder)),
        ["cases", folder] => recall::print_cases(folder),
        ["traces", folders @ ..] => recall::measure_messages(folders, &weights(), true),
        ["messages", folders @ ..] => recall::measure_messages(folders, &weights(), false),
        ["search", file] => search::measure(file, &weights()),
        ["recall", folders @ ..] => recall::measure(folders, &weights()),
        _ => eprintln!("usage: measure map|times|cases|search|messages|traces|recall DIR…"),
    }
}

/// Counts tokens as the program does by default.
fn count(text: &str) -> u64 {
    tiktoken::get_encoding("o200k_base").unwrap().count(text) as u64
}

fn style(max_tokens: u64) -> Style<'static> {
    Style { max_tokens, count: &count, show: &str::to_owned }
}

/// The weights, with changes of the variable `MAP_WEIGHTS`: `words=1.5,near=0`.
fn weights() -> Weights {
    let mut weights = Weights::default();
    for change in std::env::var("MAP_WEIGHTS").unwrap_or_default().split(',') {
        let Some((name, value)) = change.split_once('=') else { continue };
        let value: f64 = value.parse().unwrap();
        *match name {
            "words" => &mut weights.words,
            "named" => &mut weights.named,
            "graph" => &mut weights.graph,
            "changes" => &mut weights.changes,
            "question_changes" => &mut weights.question_changes,
            "messages" => &mut weights.messages,
            "churn" => &mut weights.churn,
            "near" => &mut weights.near,
            "rank_offset" => &mut weights.rank_offset,
            "question_seeds" => &mut weights.question_seeds,
            "in_path" => &mut weights.in_path,
            "in_name" => &mut weights.in_name,
            "aside" => &mut weights.aside,
            "by_score" => &mut weights.by_score,
            "covered" => &mut weights.covered,
            "length" => &mut weights.length,
            "backwards" => &mut weights.backwards,
            "damping" => &mut weights.damping,
            "half_life" => &mut weights.half_life,
            "often" => &mut weights.often,
            "prose" => &mut weights.prose,
            "generated" => &mut weights.generated,
            "expanded" => &mut weights.expanded,
            "question_files" => {
                weights.question_files = value as usize;
                continue;
            }
            other => panic!("there is no weight {other}"),
        } = value;
    }
    weights
}
