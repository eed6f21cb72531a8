//! Completion of commands, methods, items of the context, and files.

use std::path::Path;

use super::command::COMMANDS;
use super::lisp::{items, list, string_at, text, texts};
use super::{PACKAGE, ReplShared, absolute};
use crate::rpc;
use crate::value::Value;

/// Maximum number of completions offered.
const MOST: usize = 300;
/// Maximum number of directory entries examined.
const MOST_ENTRIES: usize = 20_000;

/// A completion and its kind.
type Completion = (String, &'static str);

/// Returns the completions in the form that the client expects from the function `name`.
pub(super) async fn answer(shared: &ReplShared, name: &str, pattern: &str) -> Value {
    let found = candidates(shared, pattern).await;
    match name {
        "flex-completions" => {
            let row = |(word, sort): &Completion| {
                list([text(&**word), score(pattern, word), chunks(pattern), text(*sort)])
            };
            list([list(found.iter().map(row)), Value::Nil])
        }
        "fuzzy-completions" => {
            let row = |(word, _): &Completion| {
                list([text(&**word), text("0.50"), chunks(pattern), text("--------")])
            };
            list([list(found.iter().map(row)), Value::Nil])
        }
        _ => {
            let common = text(common_prefix(&found).unwrap_or(pattern));
            list([texts(found.iter().map(|(word, _)| &**word)), common])
        }
    }
}

/// Returns the fraction of the word that has already been typed.
fn score(pattern: &str, word: &str) -> Value {
    let hundredths = 100 * pattern.len() / word.len().max(1);
    Value::Float(hundredths as f64 / 100.0)
}

/// Returns the typed part of a completion, in the form that the client highlights.
fn chunks(pattern: &str) -> Value {
    list([list([Value::Int(0), text(pattern)])])
}

async fn candidates(shared: &ReplShared, pattern: &str) -> Vec<Completion> {
    let mut found: Vec<Completion> = Vec::new();
    let mut offer = |words: &mut dyn Iterator<Item = Completion>| {
        found.extend(words.filter(|(word, _)| word.starts_with(pattern)));
    };
    offer(&mut COMMANDS.iter().map(|(name, ..)| ((*name).to_owned(), "command")));
    if pattern.starts_with(PACKAGE) {
        offer(&mut rpc::methods().map(|m| (format!("{PACKAGE}:{}", m.name), "method")));
    }
    if pattern.starts_with("ctx-") {
        offer(&mut item_ids(shared).await.into_iter().map(|id| (id, "item")));
    }
    let (directory, named) = (shared.directory().clone(), pattern.to_owned());
    let files = tokio::task::spawn_blocking(move || files(&directory, &named)).await;
    found.extend(files.unwrap_or_default());
    found.truncate(MOST);
    found
}

async fn item_ids(shared: &ReplShared) -> Vec<String> {
    let listed = shared.call("list-managers", []).await.unwrap_or_default();
    let managers = items(listed).iter().filter_map(|row| row.get("manager").cloned()).collect();
    let params = [("managers", Value::List(managers)), ("brief", Value::Bool(true))];
    let found = items(shared.call("list-items", params).await.unwrap_or_default());
    found.iter().filter_map(|item| string_at(item, "id").map(str::to_owned)).collect()
}

/// Lists the entries of the directory part of `named`, as completions of `named`. Hidden entries
/// are listed only if the part after the last slash begins with a dot. If `named` is empty, nothing
/// is listed.
fn files(directory: &Path, named: &str) -> Vec<Completion> {
    if named.is_empty() {
        return Vec::new();
    }
    let (folder, begun) = match named.rfind('/') {
        Some(slash) => named.split_at(slash + 1),
        None => ("", named),
    };
    let Ok(entries) = std::fs::read_dir(absolute(directory, folder)) else { return Vec::new() };
    let mut found: Vec<Completion> = Vec::new();
    for entry in entries.flatten().take(MOST_ENTRIES) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(begun) || (name.starts_with('.') && !begun.starts_with('.')) {
            continue;
        }
        let slash = if entry.path().is_dir() { "/" } else { "" };
        found.push((format!("{folder}{name}{slash}"), "file"));
    }
    found.sort();
    found
}

/// Returns the longest prefix that all completions share; `None` if there are no completions.
fn common_prefix(found: &[Completion]) -> Option<&str> {
    let (first, rest) = found.split_first()?;
    let common = rest.iter().fold(first.0.len(), |length, (word, _)| {
        let same = first.0.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
        length.min(same)
    });
    Some(&first.0[..first.0.floor_char_boundary(common)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_on_from_what_was_typed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["main.lisp", "maß.txt", ".hidden", "other"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("mad/inner")).unwrap();
        let check = |named: &str, expected: &[&str]| {
            let found = files(dir.path(), named);
            let words: Vec<_> = found.iter().map(|(word, _)| &**word).collect();
            assert_eq!(words, expected, "{named}");
        };
        check("ma", &["mad/", "main.lisp", "maß.txt"]);
        check("mad/", &["mad/inner/"]);
        check("./o", &["./other"]);
        check(".h", &[".hidden"]);
        check("", &[]);
        check("none/x", &[]);
        let words: Vec<Completion> = ["maß", "maße", "maö"].map(|w| (w.to_owned(), "")).into();
        assert_eq!(common_prefix(&words), Some("ma"));
        assert_eq!(common_prefix(&[]), None);
    }
}
