//! The words and phrases that classify a sentence, from `phrases.txt`.

use std::ops::Range;

use aho_corasick::AhoCorasick;

const SOURCE: &str = include_str!("phrases.txt");

/// Returns the phrases of a class, in the order of the file.
pub(super) fn phrases<T: FromIterator<&'static str>>(class: &str) -> T {
    let lines = SOURCE.lines().filter_map(|line| line.split_once(": "));
    let lines = lines.filter(|(known, _)| *known == class);
    lines.flat_map(|(_, phrases)| phrases.split("; ")).collect()
}

/// Finds the phrases of a class in texts.
pub(super) struct Finder {
    /// The phrases, in the order of the file.
    pub(super) phrases: Vec<&'static str>,
    automaton: Option<AhoCorasick>,
}

impl Finder {
    pub(super) fn of(class: &str) -> Self {
        let phrases: Vec<&str> = phrases(class);
        let automaton = AhoCorasick::new(&phrases).ok();
        Self { phrases, automaton }
    }

    /// Returns where the phrases stand in `text`, also within words. The text must be in lower
    /// case. Each range comes with the index of its phrase.
    pub(super) fn all(&self, text: &str) -> impl Iterator<Item = (usize, Range<usize>)> {
        let hits = self.automaton.iter().flat_map(move |it| it.find_overlapping_iter(text));
        hits.map(|hit| (hit.pattern().as_usize(), hit.range()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_code_asks_for_just_the_classes_of_the_file() {
        let lines = SOURCE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let known: BTreeSet<&str> = lines.map(|line| line.split_once(": ").unwrap().0).collect();
        let mut asked = BTreeSet::new();
        for code in [
            include_str!("choice.rs"),
            include_str!("command.rs"),
            include_str!("extract.rs"),
            include_str!("force.rs"),
            include_str!("sentence.rs"),
            include_str!("statement.rs"),
        ] {
            for before in ["phrases(\"", "phrases::<Vec<_>>(\"", "Finder::of(\"", "(\"cue-"] {
                for (at, _) in code.match_indices(before) {
                    asked.insert(code[at..].split('"').nth(1).unwrap());
                }
            }
        }
        assert_eq!(asked, known);
    }

    #[test]
    fn a_phrase_is_kept_as_it_is_written() {
        let done: Vec<&str> = phrases("cue-done");
        assert_eq!(done[..3], ["[x]", "done:", "fixed:"]);
        assert!(phrases::<Vec<&str>>("cue-decision").contains(&"it is, for"));
    }
}
