//! The words and phrases that classify a sentence, from `phrases.txt`.

const SOURCE: &str = include_str!("phrases.txt");

/// Returns the phrases of a class, in the order of the file.
pub(super) fn phrases<T: FromIterator<&'static str>>(class: &str) -> T {
    let lines = SOURCE.lines().filter_map(|line| line.split_once(": "));
    let lines = lines.filter(|(known, _)| *known == class);
    lines.flat_map(|(_, phrases)| phrases.split("; ")).collect()
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
            for before in ["phrases(\"", "phrases::<Vec<_>>(\"", "(\"cue-"] {
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
