//! Judges how binding a person's sentence is.
//!
//! People state rules in endless ways, and no list of phrases is ever complete. But people write
//! little compared with models and tools, so nearly everything that they write can be kept. This
//! module only judges how binding a sentence is. It looks at the small words of obligation,
//! prohibition, generality, exception and preference, of which every language has only a few.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::phrases::{Finder, phrases};

/// The binding force of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Force {
    /// A remark, or a single request.
    Remark,
    /// Something wanted or preferred.
    Wish,
    /// An obligation, a prohibition, or something that always holds.
    Rule,
}

/// Words that oblige, forbid or allow, or that mean always or never.
static RULES: LazyLock<HashSet<&str>> = LazyLock::new(|| phrases("rule"));
/// Phrases that oblige, forbid or allow, or that mean always or never.
static RULE_PHRASES: LazyLock<Finder> = LazyLock::new(|| Finder::of("rule-phrase"));
/// Words that express a wish.
static WISHES: LazyLock<HashSet<&str>> = LazyLock::new(|| phrases("wish"));
/// Introductory words at the beginning of a sentence.
const LEADS: &[&str] = &[
    "and", "but", "so", "also", "then", "ok", "okay", "well", "now", "please", "oh", "again",
    "yes", "no,", "hey", "hm", "hmm",
];
/// Subjects after which a general word such as "never" belongs to a report, not to a rule: "it
/// never ends". Sentences about what "we" or "you" always do are rules.
const REPORTED: &[&str] = &["i", "it", "they", "he", "she", "that", "which", "who", "this"];
/// Endings that make a sentence look like a question although it is none, such as "ok".
static TAGS: LazyLock<Vec<&str>> = LazyLock::new(|| phrases("tag"));
/// Maximum length of a sentence, in bytes. A longer text without a full stop is data.
const LONGEST: usize = 600;
/// Minimum number of words of a wish or remark. Fewer say nothing without their context.
const FEWEST_WORDS: usize = 4;

/// Returns how binding a person's sentence is, or `None` for a question, data, or a sentence that
/// is too short to say anything. A request such as "could you keep the tests out of this?" is no
/// question.
pub(super) fn force(sentence: &str) -> Option<Force> {
    if sentence.len() > LONGEST || !is_prose(sentence) {
        return None;
    }
    let text = sentence.to_lowercase().replace('’', "'");
    let asks = text.ends_with('?') && !is_tagged(&text);
    let words = words(&text);
    let force = by_words(&words).max(by_phrases(&words));
    match force {
        // "Could you keep the tests out of this?" is not really a question.
        Some(Force::Rule) if asks => is_request(&words).then_some(Force::Rule),
        _ if asks => None,
        Some(Force::Rule) => force,
        _ => (words.len() >= FEWEST_WORDS).then_some(force.unwrap_or(Force::Remark)),
    }
}

fn words(text: &str) -> Vec<&str> {
    let inner = |c: char| c.is_alphanumeric() || c == '\'' || c == '-' || c == '_';
    let words = text.split(|c: char| !inner(c)).map(|word| word.trim_matches(['\'', '-']));
    words.filter(|word| !word.is_empty()).collect()
}

fn by_words(words: &[&str]) -> Option<Force> {
    let start = words.iter().take_while(|word| LEADS.contains(word)).count();
    if words.get(start).is_some_and(|first| ["no", "not"].contains(first)) && words.len() > 2 {
        return Some(Force::Rule);
    }
    let mut force = None;
    for (at, word) in words.iter().enumerate() {
        let reported = at > 0 && REPORTED.contains(&words[at - 1]);
        if RULES.contains(word) && !reported {
            return Some(Force::Rule);
        }
        if WISHES.contains(word) {
            force = Some(Force::Wish);
        }
    }
    force
}

fn by_phrases(words: &[&str]) -> Option<Force> {
    let joined = format!(" {} ", words.join(" "));
    let is_rule = |place: Range<usize>| {
        let (before, behind) = (&joined[..place.start], &joined[place.end..]);
        let last = before.split(' ').rev().nth(1).unwrap_or("");
        before.ends_with(' ') && behind.starts_with(' ') && !REPORTED[..1].contains(&last)
    };
    RULE_PHRASES.all(&joined).any(|(_, place)| is_rule(place)).then_some(Force::Rule)
}

fn is_request(words: &[&str]) -> bool {
    let start = words.iter().take_while(|word| LEADS.contains(word)).count();
    let first = words.get(start..start + 2).unwrap_or_default();
    matches!(first, ["can" | "could" | "would" | "will", "you" | "we"])
}

/// Returns whether only the ending makes a sentence a question: "don't touch it, ok?"
fn is_tagged(text: &str) -> bool {
    let text = text.trim_end_matches('?').trim_end();
    TAGS.iter().any(|tag| {
        text.strip_suffix(tag).is_some_and(|rest| rest.trim_end().ends_with([',', ';', '–', '-']))
    })
}

/// Returns whether at least two words, and at least half of all words, are plain, unlike in a log,
/// a table or code.
fn is_prose(text: &str) -> bool {
    let mut all = 0;
    let mut plain = 0;
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        all += 1;
        let inner = |c: char| c.is_alphabetic() || c == '\'' || c == '’' || c == '-';
        plain += usize::from(!word.is_empty() && word.chars().all(inner));
    }
    plain >= 2 && plain * 2 >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sentence: &str, expected: Option<Force>) {
        assert_eq!(force(sentence), expected, "{sentence}");
    }

    #[test]
    fn rules_oblige_or_forbid_in_any_words() {
        for rule in [
            "You must not lie.",
            "No new dependencies, thanks.",
            "We never deploy on Fridays.",
            "Leave the public names as they are.",
            "Don’t touch the schema, ok?",
            "Could you keep the tests out of this?",
            "The cache is not to be shared between users.",
            "Nothing in here talks to the network.",
            "Ask me before you delete anything.",
            "That stays local unless I say otherwise.",
        ] {
            check(rule, Some(Force::Rule));
        }
    }

    #[test]
    fn wishes_and_remarks_have_less_force() {
        check("I'd prefer small commits.", Some(Force::Wish));
        check("Please split the parser in two.", Some(Force::Wish));
        check("It never ends and nobody wonders.", Some(Force::Rule));
        check("The old parser came from another team.", Some(Force::Remark));
    }

    #[test]
    fn questions_exclamations_and_data_have_no_force() {
        check("Must it be so?", None);
        check("How is it going?", None);
        check("Nice, thanks.", None);
        check("12:01:33.5 [w-3] GET /x/y 200 5ms", None);
    }
}
