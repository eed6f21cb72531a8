//! Compares choices: "SQLite for the parser" and, later, "the parser gets a trie".

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::lexicon::{Classes, dimension};
use super::phrases::Finder;
use super::subject::key;
use crate::retrieval::words::stems;

/// Minimum number of words in a name by which choices are compared: a single word may mean many
/// things.
const FEWEST_WORDS: usize = 2;

/// Maximum number of names in a choice. A sentence with more names says more than a choice.
const MOST_NAMES: usize = 5;
/// Maximum number of names in a sentence about a change for comparing it more loosely: the words of
/// an older choice's known name may then stand anywhere in the sentence, not only together.
const FEW_NAMES: usize = 3;
/// Words before the name of a thing that is already known. In "a trie for the parser", the parser
/// is known, and the trie is chosen for it.
const KNOWN: &[&str] =
    &["the", "our", "my", "your", "its", "this", "that", "for", "in", "of", "from"];

/// The names in the sentence of a choice, and signs of its meaning.
#[derive(Default)]
pub(super) struct Choice {
    names: Vec<BTreeSet<String>>,
    /// Names of things that are already known.
    known: Vec<BTreeSet<String>>,
    /// Stems of all words.
    words: BTreeSet<String>,
    /// True if the words say that something changes.
    pub(super) changes: bool,
    /// True if the words forbid something, and so choose nothing.
    forbids: bool,
}

impl Choice {
    pub(super) fn of(sentence: &str) -> Self {
        let (mut all, mut known) = (Vec::new(), Vec::new());
        for (name, is_known) in names(sentence) {
            let key = key(&name);
            if is_known && key.len() >= FEWEST_WORDS {
                known.push(key.clone());
            }
            all.push(key);
        }
        all.retain(|key| !key.is_empty());
        let words = stems(sentence).into_iter().collect::<BTreeSet<String>>();
        let plain = plain(sentence);
        let changes = !words.is_disjoint(&CHANGE_STEMS) || has_any(&plain, &CHANGES);
        Self { names: all, known, words, changes, forbids: has_any(&plain, &FORBIDS) }
    }

    /// Returns whether this choice may be about the same thing as another one. It may, unless the
    /// two name different things that are already known.
    pub(super) fn may_be_about(&self, other: &Self) -> bool {
        let shared = self.known.iter().any(|name| other.known.contains(name));
        shared || self.known.is_empty() || other.known.is_empty()
    }

    /// Returns whether this choice takes the place of an older one: that is, whether it is about
    /// the same thing and chooses something else. Unless the words of this choice say that
    /// something changes, it must name exactly one new thing, and leave out a name of the older
    /// choice.
    pub(super) fn replaces(&self, older: &Self) -> bool {
        let long = self.names.len().max(older.names.len()) > MOST_NAMES;
        if long || self.forbids && !self.changes || older.forbids {
            return false;
        }
        let said = |name: &BTreeSet<String>| {
            let among = self.changes && self.names.len() <= FEW_NAMES;
            self.known.contains(name) || among && name.is_subset(&self.words)
        };
        if !older.known.iter().any(said) {
            return false;
        }
        let has = |choice: &Self, word: &String| choice.names.iter().any(|n| n.contains(word));
        let other =
            |name: &&BTreeSet<String>, choice: &Self| name.iter().any(|word| !has(choice, word));
        let added = self.names.iter().filter(|name| other(name, older)).count();
        let gone = older.names.iter().any(|name| other(&name, self));
        added > 0 && (self.changes || added == 1 && gone)
    }
}

/// Returns whether a sentence, or its part after a colon, only names a thing and what is chosen for
/// it: "a trie for the parser".
pub(super) fn is_bare(sentence: &str) -> bool {
    let part = sentence.rsplit(": ").next().unwrap_or(sentence);
    part.contains(" for ") && names(part).len() == 2
}

/// Returns the possible names in a sentence: runs of words that carry meaning by themselves. A bare
/// number is a part of the name before it. The flag of a name is true if the thing is already
/// known.
pub(super) fn names(sentence: &str) -> Vec<(String, bool)> {
    use Classes as C;
    let empty =
        [C::STOP, C::LINK, C::WEAK_LINK, C::AUXILIARY, C::QUALIFIER, C::JOINT, C::BACK, C::CHOICE];
    let mut names: Vec<(String, bool)> = Vec::new();
    let (mut open, mut is_known) = (false, false);
    let mut words = sentence.split_whitespace().peekable();
    while let Some(raw) = words.next() {
        let outside = |c: char| !c.is_alphanumeric();
        let word = raw.trim_matches(outside).to_lowercase();
        let unit = words
            .peek()
            .is_some_and(|next| dimension(&next.trim_matches(outside).to_lowercase()).is_some());
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        let named = !word.is_empty() && !Classes::of(&word).any(&empty);
        let kept = if number { open && !unit } else { named };
        match names.last_mut().filter(|_| open) {
            Some((name, _)) if kept => *name = format!("{name} {word}"),
            _ if kept => names.push((word, is_known)),
            _ => is_known = KNOWN.contains(&&*word),
        }
        open = kept && !raw.ends_with([',', ';', ':', '.', ')', '?', '!']);
    }
    names
}

/// Returns whether a sentence may decide a question anew. Quicker than reading all of it.
pub(super) fn may_decide_anew(sentence: &str) -> bool {
    static MARKS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let marks = CHANGES.phrases.iter().map(|mark| mark.strip_suffix('e').unwrap_or(mark));
        AhoCorasick::builder().ascii_case_insensitive(true).build(marks).ok()
    });
    sentence.contains(" for ") || MARKS.as_ref().is_some_and(|marks| marks.is_match(sentence))
}

static CHANGES: LazyLock<Finder> = LazyLock::new(|| Finder::of("change"));
/// Stems of those phrases in [`CHANGES`] that are single words.
static CHANGE_STEMS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let words = CHANGES.phrases.iter().filter(|phrase| !phrase.contains(' '));
    words.flat_map(|word| stems(word)).collect()
});
static FORBIDS: LazyLock<Finder> = LazyLock::new(|| Finder::of("forbid"));

/// Returns the words of a sentence in lower case, with one space around each.
fn plain(sentence: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '\'' { c } else { ' ' };
    let words: String = sentence.to_lowercase().replace('’', "'").chars().map(plain).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(" {words} ")
}

/// Returns whether [`plain`] words contain one of the phrases as whole words.
fn has_any(words: &str, phrases: &Finder) -> bool {
    let is_alone = |place: Range<usize>| {
        words[..place.start].ends_with(' ') && words[place.end..].starts_with(' ')
    };
    phrases.all(words).any(|(_, place)| is_alone(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(older: &str, newer: &str, expected: bool) {
        assert_eq!(Choice::of(newer).replaces(&Choice::of(older)), expected, "{older} {newer}");
    }

    #[test]
    fn a_later_choice_about_the_same_thing_replaces_the_earlier() {
        check("We use SQLite for the parser part 7.", "The parser part 7 gets a trie.", true);
        check(
            "We use SQLite for the parser part 7.",
            "Drop SQLite from the parser part 7, use a trie.",
            true,
        );
        check(
            "The billing store runs on Postgres.",
            "Actually, plain files for the billing store.",
            true,
        );
    }

    #[test]
    fn choices_about_other_things_stay() {
        check("We use SQLite for the parser part 7.", "The parser part 8 gets a trie.", false);
        check("We use SQLite for the billing store.", "The billing store uses SQLite.", false);
        check(
            "SQLite for the billing store.",
            "Use protobuf for the wire format of the billing store.",
            false,
        );
        check("SQLite for the parser.", "Now use a trie for the parser.", false);
        check("A ring buffer for the parser part 7.", "A ring buffer for the mail part 8.", false);
    }
}
