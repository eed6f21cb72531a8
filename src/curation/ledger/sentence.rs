//! Classifies a sentence by its turns of phrase: a constraint, a decision, a task, a report of
//! finished work, or none of these.

use std::collections::HashSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::phrases::phrases;

/// The meaning of a turn of phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// Something must or must not be.
    Constraint,
    /// A constraint if it is an order ("always wait") and not a report ("it always waits").
    Order,
    /// Something is chosen.
    Decision,
    /// A choice, unless the next word shows that nothing is chosen, as in "let's see".
    Proposal,
    /// Something may have been chosen.
    Choice,
    /// Something is chosen in place of the thing that is named after the phrase.
    Replacing,
    /// Something is still to be done.
    Task,
    /// Something is done.
    Done,
}

/// The classes of phrases in `phrases.txt`, with the meanings of their phrases.
const CUES: [(&str, Cue); 8] = [
    ("cue-constraint", Cue::Constraint),
    ("cue-order", Cue::Order),
    ("cue-decision", Cue::Decision),
    ("cue-proposal", Cue::Proposal),
    ("cue-choice", Cue::Choice),
    ("cue-replacing", Cue::Replacing),
    ("cue-task", Cue::Task),
    ("cue-done", Cue::Done),
];
/// Words that, after "let's" and the like, show that nothing is chosen.
static NO_CHOICES: LazyLock<HashSet<&str>> = LazyLock::new(|| phrases("no-choice"));
/// Words that turn an order into a report: "it never ends".
const REPORTING: &[&str] = &[
    "i", "it", "they", "he", "she", "that", "we", "which", "who", "has", "have", "is", "was", "you",
];

/// Finder of the phrases in a text, with the meaning of each phrase.
static FINDER: LazyLock<Option<(AhoCorasick, Vec<Cue>)>> = LazyLock::new(|| {
    let with_cue = |(class, cue)| phrases::<Vec<_>>(class).into_iter().map(move |text| (text, cue));
    let (phrases, cues): (Vec<&str>, Vec<Cue>) = CUES.into_iter().flat_map(with_cue).unzip();
    let finder = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(phrases);
    Some((finder.ok()?, cues))
});

/// A cue, and the offset of the text after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) cue: Cue,
    pub(super) end: usize,
}

/// Finds the cues in a text that are whole words and have their usual meaning in this place.
pub(super) fn cues(text: &str) -> Vec<Found> {
    let Some((phrases, cues)) = FINDER.as_ref() else { return Vec::new() };
    let mut found = Vec::new();
    for hit in phrases.find_iter(text) {
        let cue = cues[hit.pattern().as_usize()];
        let (before, behind) = (&text[..hit.start()], &text[hit.end()..]);
        if stands_alone(before, behind) && means_it(cue, before, behind) {
            found.push(Found { cue, end: hit.end() });
        }
    }
    found
}

/// Splits a line into sentences, without list and quote marks at its beginning.
pub(super) fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = unmarked(line);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = sentence_end(rest);
        let (sentence, behind) = rest.split_at(end);
        rest = behind.trim_start();
        Some(sentence.trim())
    })
}

fn unmarked(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['>', '#', '*', '•']).trim_start();
    let line = line.strip_prefix("- ").filter(|rest| !rest.starts_with('[')).unwrap_or(line);
    line.trim_start_matches("**").trim_start()
}

/// Returns the end of the first sentence: after a full stop, question mark or exclamation mark that
/// is followed by a space. Ignores marks in backticks, after abbreviations, and after a question
/// that only names a topic.
fn sentence_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut quoted = false;
    for at in 0..bytes.len() {
        quoted ^= bytes[at] == b'`';
        let stop = matches!(bytes[at], b'.' | b'!' | b'?') && !quoted;
        if stop && bytes.get(at + 1).is_some_and(u8::is_ascii_whitespace) {
            let short = ["e.g", "i.e", "etc", "vs", "cf"];
            let topic = bytes[at] == b'?' && only_names(&text[..at]);
            if !topic && !short.iter().any(|word| text[..at].ends_with(word)) {
                return at + 1;
            }
        }
    }
    text.len()
}

/// Returns whether a question only names the topic of the next words: "The timeout? 30 s."
fn only_names(question: &str) -> bool {
    const MOST: usize = 6;
    const BEGIN: &[&str] =
        &["the", "our", "my", "and", "as", "about", "your", "that", "those", "what", "how"];
    let mut words = question.split_whitespace();
    let first = words.next().unwrap_or("").to_lowercase();
    let about = !["what", "how"].contains(&first.as_str()) || words.next() == Some("about");
    BEGIN.contains(&first.as_str()) && about && words.count() < MOST
}

fn stands_alone(before: &str, behind: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !before.ends_with(letter) && !behind.starts_with(letter)
}

fn means_it(cue: Cue, before: &str, behind: &str) -> bool {
    let last = || before.split_whitespace().next_back().unwrap_or("").to_lowercase();
    let next = || {
        let word = behind.split_whitespace().next().unwrap_or("");
        word.trim_end_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
    };
    match cue {
        Cue::Order => !REPORTING.contains(&last().as_str()),
        Cue::Constraint => !["i", "i've"].contains(&last().as_str()),
        Cue::Proposal => !NO_CHOICES.contains(next().as_str()),
        Cue::Task | Cue::Done | Cue::Decision | Cue::Choice | Cue::Replacing => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[Cue]) {
        let found: Vec<Cue> = cues(text).iter().map(|found| found.cue).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn phrases_match_as_whole_words() {
        check("You must never push", &[Cue::Constraint, Cue::Order]);
        check(
            "Let's go with SQLite instead of Postgres",
            &[Cue::Proposal, Cue::Decision, Cue::Replacing],
        );
        check("- [ ] write docs", &[Cue::Task]);
        check("mustard, nevertheless, keeper", &[]);
    }

    #[test]
    fn a_report_is_no_order_and_a_look_is_no_choice() {
        check("it never ends and I always wait", &[]);
        check("Let's see what happens", &[]);
    }

    #[test]
    fn sentences_end_at_stops_but_not_inside_names() {
        let found: Vec<&str> =
            sentences("- See src/a.rs, e.g. here. Then `a. b` – go! v1.2 ok").collect();
        assert_eq!(found, ["See src/a.rs, e.g. here.", "Then `a. b` – go!", "v1.2 ok"]);
        let found: Vec<&str> = sentences("Größe: 3 µs. Schön! … \u{202e}").collect();
        assert_eq!(found, ["Größe: 3 µs.", "Schön!", "… \u{202e}"]);
    }
}
