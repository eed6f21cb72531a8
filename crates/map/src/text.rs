//! Writes a map: paths and definitions, never more than the budget, with a report of what is left out.

use crate::facts::FileState;
use crate::index::{Index, IndexedFacts};
use crate::rank::{MapTask, Ranking, rank};

/// Heading of the files whose definitions are not shown.
const NOT_EXPANDED: &str = "Not expanded:";
/// Maximum number of definitions of the first file in a map. Each later file has one less.
const MAX_SHOWN: usize = 8;
/// Least value of that maximum, for the last files.
const MIN_SHOWN: usize = 3;
/// Maximum number of tokens of a map. A larger budget counts as this one.
pub const MAX_TOKENS: u64 = 200_000;
/// Minimum budget of a map, in tokens. A map of this size has little more than the counts of what
/// it leaves out.
pub const MIN_TOKENS: u64 = 64;

/// How a map is written.
pub struct Style<'a> {
    /// Maximum number of tokens of the text.
    pub max_tokens: u64,
    /// Counts the tokens of a text.
    pub count: &'a dyn Fn(&str) -> u64,
    /// Makes a name or line from outside harmless to show on one line.
    pub show: &'a dyn Fn(&str) -> String,
}

/// A definition in a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownDefinition {
    /// Name.
    pub name: String,
    /// First line, from 1.
    pub line: u32,
    /// Last line.
    pub end: u32,
    /// Beginning of the definition, on one line.
    pub signature: String,
}

/// A file in a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFile {
    /// Path from the root of the project, as it is.
    pub path: String,
    /// How much of the file the map knows.
    pub state: FileState,
    /// Number of its definitions, also of those that are not shown.
    pub definitions: usize,
    /// The definitions that are shown, by line. Empty if the file is not expanded.
    pub shown: Vec<ShownDefinition>,
}

/// A map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The text.
    pub text: String,
    /// Exact number of tokens of the text.
    pub tokens: u64,
    /// The files in the text, the most important first.
    pub files: Vec<ShownFile>,
    /// Number of files in the project.
    pub total: usize,
    /// Number of files that are at hand and therefore not in the map.
    pub at_hand: usize,
    /// Number of commits that counted.
    pub commits: usize,
    /// Number of files of each state but [`FileState::Whole`] in the project.
    pub states: Vec<(FileState, usize)>,
}

impl Index {
    /// Makes the map for a task. The same index and task give the same map.
    #[must_use]
    pub fn map(&self, task: &MapTask<'_>, style: &Style<'_>) -> Map {
        let ranked = rank(self, task);
        let files = ranked.files();
        let total = files.len();
        let at_hand = total - ranked.len();
        let mut states: Vec<(FileState, usize)> = Vec::new();
        for (_, file) in files.iter().filter(|(_, file)| file.state != FileState::Whole) {
            match states.iter_mut().find(|(known, _)| *known == file.state) {
                Some((_, count)) => *count += 1,
                None => states.push((file.state, 1)),
            }
        }
        states.sort_unstable();
        let budget = style.max_tokens.clamp(MIN_TOKENS, MAX_TOKENS);
        let gaps = self.gaps(&states);
        let writer = MapWriter { index: self, style, ranked: &ranked, budget, at_hand, gaps };
        let (text, files) = writer.write(task.weights.expanded);
        let tokens = (style.count)(&text);
        Map { text, tokens, files, total, at_hand, commits: self.commits(), states }
    }

    /// Says what the map does not know, except for what is usual: binary and generated files.
    fn gaps(&self, states: &[(FileState, usize)]) -> String {
        let mut gaps = String::new();
        for (state, count) in states {
            let name = match state {
                FileState::Partial => "known in part",
                FileState::Unparsed => "not parsed",
                FileState::TooLarge => "too large",
                FileState::Secret => "secret",
                FileState::Unreadable => "unreadable",
                FileState::Whole | FileState::Generated | FileState::Binary => continue,
            };
            gaps += &format!(", {name}: {count}");
        }
        gaps + if self.commits() == 0 { ", no history" } else { "" }
    }
}

struct MapWriter<'a> {
    index: &'a Index,
    style: &'a Style<'a>,
    ranked: &'a Ranking<'a>,
    budget: u64,
    at_hand: usize,
    /// What the map does not know.
    gaps: String,
}

impl MapWriter<'_> {
    fn write(&self, share: f64) -> (String, Vec<ShownFile>) {
        let rest = self.budget.saturating_sub(self.cost(&self.end(0, 0)));
        let heading = format!("{NOT_EXPANDED}\n");
        let names = self.names(rest);
        let has_all = names.len() == self.ranked.len();
        // Definitions get a share of the room, and what names of all files would leave of it.
        let mut named: u64 = self.cost(&heading) + names.iter().map(|(_, cost)| cost).sum::<u64>();
        let share = (rest as f64 * share) as u64;
        let (mut used, mut files, mut blocks) = (0, Vec::new(), Vec::new());
        for (at, (_, cost)) in names.iter().enumerate() {
            named -= cost;
            let room = if has_all { share.max(rest.saturating_sub(named)) } else { share };
            let Some((block, shown)) = self.fitting(at, room.saturating_sub(used)) else { break };
            used += self.cost(&block);
            blocks.push(block);
            files.push(shown);
        }
        let mut lines = Vec::new();
        used += self.cost(&heading);
        for (line, cost) in names.into_iter().skip(files.len()) {
            let Some((path, file)) = self.ranked.get(files.len()) else { break };
            used += cost;
            if used > rest {
                break;
            }
            lines.push(line);
            files.push(self.file(path, file, Vec::new()));
        }
        // Texts that are counted alone may have fewer tokens than together.
        loop {
            let heading = if lines.is_empty() { "" } else { &heading };
            let mut text = blocks.concat() + heading + &lines.concat();
            text += &self.end(blocks.len(), lines.len());
            if (self.style.count)(&text) <= self.budget {
                return (text, files);
            }
            if lines.pop().is_none() && blocks.pop().is_none() {
                return (String::new(), Vec::new());
            }
            files.pop();
        }
    }

    /// Returns the lines of the first files by name that fit the room, with their costs.
    fn names(&self, mut room: u64) -> Vec<(String, u64)> {
        let mut names = Vec::new();
        while let Some((path, _)) = self.ranked.get(names.len()) {
            let line = format!("{}\n", (self.style.show)(path));
            let cost = self.cost(&line);
            let Some(left) = room.checked_sub(cost) else { break };
            room = left;
            names.push((line, cost));
        }
        names
    }

    /// Writes the file at a rank with as many of its best definitions as fit the room. The first files
    /// get more of them than later ones.
    fn fitting(&self, rank: usize, room: u64) -> Option<(String, ShownFile)> {
        let (path, file) = self.ranked.get(rank)?;
        let mut best = self.ranked.best(file);
        best.truncate(MAX_SHOWN.saturating_sub(rank).max(MIN_SHOWN));
        let least = best.len().min(1);
        let mut blocks =
            (least..=best.len()).rev().map(|count| self.block(path, file, &best[..count]));
        blocks.find(|(block, _)| self.cost(block) <= room)
    }

    fn cost(&self, text: &str) -> u64 {
        (self.style.count)(text)
    }

    /// Writes a file with some of its definitions, in the order of their lines.
    fn block(&self, path: &str, file: &IndexedFacts, chosen: &[usize]) -> (String, ShownFile) {
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        let all = &file.definitions;
        let mut block = format!("{}\n", (self.style.show)(path));
        let mut shown = Vec::with_capacity(chosen.len());
        let mut before: Option<usize> = None;
        for at in chosen {
            let it = &all[at];
            let skipped = before.map_or(at, |before| at - before - 1);
            if skipped > 0 {
                block.push_str(" ⋮\n");
            }
            before = Some(at);
            let indent = " ".repeat(usize::from(it.depth) + 1);
            let signature = (self.style.show)(&it.signature);
            block.push_str(&format!("{indent}{} {signature}\n", it.line));
            shown.push(ShownDefinition {
                name: self.index.names.text(it.name).to_owned(),
                line: it.line,
                end: it.end,
                signature: it.signature.to_string(),
            });
        }
        if before.is_some_and(|before| before + 1 < all.len()) {
            block.push_str(" ⋮\n");
        }
        (block, self.file(path, file, shown))
    }

    fn file(&self, path: &str, file: &IndexedFacts, shown: Vec<ShownDefinition>) -> ShownFile {
        let (path, definitions) = (path.to_owned(), self.ranked.definitions(file));
        ShownFile { path, state: file.state, definitions, shown }
    }

    /// Says what the map leaves out.
    fn end(&self, expanded: usize, named: usize) -> String {
        let missing = self.ranked.len() - expanded - named;
        let at_hand = match self.at_hand {
            0 => String::new(),
            count => format!(", at hand: {count}"),
        };
        format!(
            "(files with definitions: {expanded}, by name: {named}, not shown: {missing}{at_hand}{})\n",
            self.gaps
        )
    }
}
