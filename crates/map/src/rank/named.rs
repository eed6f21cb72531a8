//! Scores files by names and paths in a question: of traces, errors and symbols.

use super::{IndexView, Scores};
use crate::words::symbols;

/// Score of a file that is named by its path.
const PATH: f64 = 20.0;

/// Maximum number of names of a question that are looked up.
pub(super) const MAX_SYMBOLS: usize = 2_000;

/// Scores files by the names and paths in a question.
pub(super) fn by_names(view: &IndexView<'_>, query: &str) -> Scores {
    let mut scores = vec![0.0; view.files.len()];
    let mut seen = Vec::new();
    for symbol in symbols(query).take(MAX_SYMBOLS) {
        add_path(view, symbol, &mut scores);
        let (mut parts, has_signs) = (variants(symbol), looks_like_a_name(symbol));
        parts.retain(|part| !seen.contains(part));
        seen.extend(parts.iter().copied());
        for id in parts.iter().filter_map(|part| view.index.names.known(part)) {
            let named = &view.across.names[id as usize];
            if named.definers.is_empty() {
                continue;
            }
            let weight = view.weight(id) * if has_signs { 1.0 } else { 0.2 };
            named.definers.iter().for_each(|at| scores[*at] += 3.0 * weight);
            for (at, times) in &named.users {
                scores[*at] += 0.3 * weight * (1.0 + f64::from(*times)).ln();
            }
        }
    }
    scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect()
}

/// Returns a name with its parts: `a::b` also means `b`, and `x.y` also `y`.
pub(super) fn variants(symbol: &str) -> Vec<&str> {
    let symbol = symbol.trim_end_matches("()");
    let mut all = vec![symbol];
    all.extend(symbol.split(['.', ':', '/', '#']).filter(|part| part.len() >= 3));
    all.dedup();
    all
}

/// Returns true for what is more likely a name than a word of English.
fn looks_like_a_name(symbol: &str) -> bool {
    let inner = symbol.get(1..).unwrap_or_default();
    inner.contains(['_', ':', '.', '/', '-']) || inner.contains(char::is_uppercase)
}

/// Adds to the files whose path ends with `symbol`, as in `src/a.rs:12`.
fn add_path(view: &IndexView<'_>, symbol: &str, scores: &mut [f64]) {
    let path = symbol.split(':').next().unwrap_or(symbol);
    let path = path.trim_start_matches(['.', '/']);
    let name = path.rsplit('/').next().unwrap_or(path);
    if path.len() < 4 || !(path.contains('/') || name.get(1..).is_some_and(|it| it.contains('.'))) {
        return;
    }
    let ends = |one: &str, other: &str| {
        one.strip_suffix(other).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let hits: Vec<usize> = view
        .files
        .iter()
        .enumerate()
        // A trace may name the file from a folder above the project.
        .filter(|(_, (own, _))| ends(own, path) || own.contains('/') && ends(path, own))
        .map(|(at, _)| at)
        .collect();
    for at in &hits {
        scores[*at] += PATH / hits.len() as f64;
    }
}
