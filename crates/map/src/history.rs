//! The last commits: which files changed together, and what their messages say.
//!
//! A commit never changes, so that what was read of one is kept by its name. Which commits count is
//! asked anew each time.

use std::collections::{HashMap, HashSet};

use crate::source::MapSource;
use crate::words::Splitter;

/// Maximum number of commits that count.
pub(crate) const MAX_COMMITS: usize = 3_000;
/// Maximum number of files of a commit that says anything about them. Larger ones are renamings,
/// imports and formattings.
pub(crate) const MAX_FILES: usize = 40;
/// Maximum length of a message that is read, in bytes.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Commit {
    /// Files that it changed, by their names then; none if there were too many.
    pub(crate) paths: Vec<String>,
    /// Files that it renamed: from, to.
    pub(crate) renamed: Vec<(String, String)>,
    /// Words of its message.
    pub(crate) words: Vec<String>,
}

/// The last commits of a checkout, the newest first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct CommitHistory {
    pub(crate) order: Vec<String>,
    pub(crate) commits: HashMap<String, Commit>,
}

impl CommitHistory {
    /// Brings the history up to date. Returns the commits that were not known before, and whether
    /// other commits count now.
    pub(crate) fn update(&mut self, source: &dyn MapSource) -> (Vec<String>, bool) {
        let limit = format!("--max-count={MAX_COMMITS}");
        let listed = source.git(&["rev-list", "--no-merges", &limit, "HEAD"], b"");
        let listed = listed.map(|text| String::from_utf8_lossy(&text).into_owned());
        let is_name = |line: &&str| line.len() >= 40 && line.bytes().all(|b| b.is_ascii_hexdigit());
        let order: Vec<String> = listed
            .as_deref()
            .unwrap_or_default()
            .lines()
            .filter(is_name)
            .map(str::to_owned)
            .collect();
        let new: Vec<&String> = order.iter().filter(|id| !self.commits.contains_key(*id)).collect();
        let mut added = Vec::new();
        if !new.is_empty() {
            let read = read(source, &new);
            for id in new {
                if let Some(commit) = read.get(id) {
                    self.commits.insert(id.clone(), commit.clone());
                    added.push(id.clone());
                }
            }
        }
        let kept: HashSet<&String> = order.iter().collect();
        if self.commits.len() > 2 * MAX_COMMITS {
            self.commits.retain(|id, _| kept.contains(id));
        }
        let before = std::mem::replace(&mut self.order, order);
        self.order.retain(|id| self.commits.contains_key(id));
        (added, before != self.order)
    }
}

/// Reads commits by their names.
fn read(source: &dyn MapSource, ids: &[&String]) -> HashMap<String, Commit> {
    let input: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let log = [
        "log",
        "--no-walk=unsorted",
        "--stdin",
        "--no-ext-diff",
        "--no-textconv",
        // Renamings of equal contents only: others would need contents that a partial clone lacks.
        "--find-renames=100%",
        "--root",
        "--relative",
        "--name-status",
        "-z",
        "--format=%x01%H%x02%B%x03",
    ];
    let text = source.git(&log, input.as_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut splitter = Splitter::default();
    text.split('\u{1}').filter_map(|entry| parse(entry, &mut splitter)).collect()
}

/// Reads `NAME ^B MESSAGE ^C NUL STATUS NUL PATH …`.
fn parse(entry: &str, splitter: &mut Splitter) -> Option<(String, Commit)> {
    let (id, rest) = entry.split_once('\u{2}')?;
    let (message, changes) = rest.split_once('\u{3}')?;
    let mut commit = Commit::default();
    let mut parts =
        changes.split('\0').map(|part| part.trim_matches('\n')).filter(|p| !p.is_empty());
    while let Some(status) = parts.next() {
        let Some(path) = parts.next() else { break };
        if status.starts_with(['R', 'C']) {
            let Some(to) = parts.next() else { break };
            if status.starts_with('R') {
                commit.renamed.push((path.to_owned(), to.to_owned()));
            }
            commit.paths.push(to.to_owned());
        } else {
            commit.paths.push(path.to_owned());
        }
    }
    if commit.paths.len() > MAX_FILES {
        commit.paths.clear();
    }
    let end = message.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_MESSAGE_BYTES);
    let mut words: Vec<String> = splitter
        .question(&message[..end.unwrap_or(message.len())])
        .into_iter()
        .map(String::from)
        .collect();
    words.sort_unstable();
    words.dedup();
    commit.words = words;
    Some((id.to_owned(), commit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_its_files_renamings_and_words() {
        let entry =
            "abc\u{2}Fix the parsing\n\nof headers\n\u{3}\0M\0a b.rs\0R100\0old.rs\0new.rs\0";
        let (id, commit) = parse(entry, &mut Splitter::default()).unwrap();
        assert_eq!(id, "abc");
        assert_eq!(commit.paths, ["a b.rs", "new.rs"]);
        assert_eq!(commit.renamed, [("old.rs".to_owned(), "new.rs".to_owned())]);
        assert_eq!(commit.words, ["fix", "header", "pars"]);
        assert_eq!(parse("x", &mut Splitter::default()), None);
    }
}
