//! Times of a map: from nothing, again, and after a change of one file.

use std::time::Instant;

use contexture_map::{Index, MapTask};

use crate::checkout::Checkout;

const RUNS: usize = 9;

pub(crate) fn measure(folder: &str) {
    let source = Checkout::new(folder);
    crate::count("the vocabulary is loaded once");
    let task = || MapTask { query: "fix the error when reading a file", ..MapTask::default() };
    let begun = Instant::now();
    let mut index = Index::default();
    index.update(&source).unwrap();
    let indexed = begun.elapsed();
    let map = index.map(&task(), &crate::style(1_024));
    let cold = begun.elapsed();
    // Stamps settle two seconds after the last change.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    index.update(&source).unwrap();
    let mut updating = Vec::new();
    let mut mapping = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        index.update(&source).unwrap();
        updating.push(begun.elapsed());
        let begun = Instant::now();
        let _ = index.map(&task(), &crate::style(1_024));
        mapping.push(begun.elapsed());
    }
    let changed = map.files.iter().find(|file| file.definitions > 3).map(|file| file.path.clone());
    let mut one = Vec::new();
    if let Some(path) = changed {
        let path = source.path(&path);
        let before = std::fs::read(&path).unwrap();
        for run in 0..RUNS {
            let mut text = before.clone();
            text.extend(format!("\n{run}\n").bytes());
            std::fs::write(&path, text).unwrap();
            let begun = Instant::now();
            index.update(&source).unwrap();
            one.push(begun.elapsed());
        }
        std::fs::write(&path, before).unwrap();
    }
    let middle = |mut all: Vec<std::time::Duration>| {
        all.sort_unstable();
        all.get(all.len() / 2).map_or(0.0, |it| it.as_secs_f64() * 1e3)
    };
    println!(
        "{folder}: {} files, {} commits; index {:.0} ms, cold {:.0} ms; warm: update {:.1} ms, map {:.1} ms; one file: update {:.1} ms; {} MB",
        index.len(),
        index.commits(),
        indexed.as_secs_f64() * 1e3,
        cold.as_secs_f64() * 1e3,
        middle(updating),
        middle(mapping),
        middle(one),
        resident() / 1_000_000,
    );
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    pages * 4_096
}
