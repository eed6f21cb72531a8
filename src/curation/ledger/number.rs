//! Finds the numbers of a sentence that measure something, and the things they measure.

use super::Quantity;
use super::amount::Amount;
use super::lexicon::{Classes, dimension};

/// Maximum number of words in the name of a measured thing, without its article.
const SUBJECT_WORDS: usize = 5;
/// Words that begin a name without belonging to it.
const ARTICLES: &[&str] =
    &["the", "a", "an", "our", "my", "your", "each", "that", "this", "new", "current"];
/// Pairs of words before an amount that no longer holds.
const NO_LONGER: &[(&str, &str)] =
    &[("instead", "of"), ("rather", "than"), ("used", "to"), ("no", "longer"), ("had", "been")];

/// Finds the numbers of a sentence that measure something. A number without a unit counts if the
/// sentence names what it measures, as in `port = 8080`.
pub(super) fn quantities(sentence: &str) -> Vec<Quantity> {
    if !sentence.bytes().any(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let words: Vec<Word<'_>> = sentence.split_whitespace().map(Word::new).collect();
    let has = |class: Classes| words.iter().any(|word| word.is(&[class]));
    let (observed, back) = (has(Classes::OBSERVING), has(Classes::BACK));
    let mut found: Vec<Quantity> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let Some(number) = Number::read(&words, at) else {
            at += 1;
            continue;
        };
        at = number.end;
        if number.is_former(&words) {
            continue;
        }
        let dimension = Amount::of(&number.text).dimension;
        let same = |old: &&Quantity| Amount::of(&old.amount).dimension == dimension;
        let own = number.subject(&words);
        if own.is_none() && number.is_refused(&words) && found.iter().any(|old| same(&old)) {
            continue;
        }
        // A number beside the name of a file is the number of a line.
        if !number.has_unit && own.as_deref().is_some_and(is_of_file) {
            continue;
        }
        let around = || number.has_unit.then(|| around(&words, &number)).flatten();
        let own = own.filter(|name| number.glued || !is_outdone(name, around().as_deref()));
        let named = own.map(|name| (name, false));
        let (subject, loose) = match named
            .or_else(|| found.iter().rev().find(same).map(|old| (old.subject.clone(), old.loose)))
            .or_else(|| {
                let unit = number.named.clone()?;
                around()
                    .is_none_or(|near| !near.contains(' '))
                    .then_some((unit, false))
                    .filter(|_| !back)
            })
            .or_else(|| {
                around().map(|near| (if names_one(&words) { near } else { String::new() }, true))
            }) {
            Some(named) => named,
            // "Make it 45 s" or "no, 45 s" is about an earlier quantity.
            None if number.has_unit => (String::new(), false),
            None => continue,
        };
        found.push(Quantity { subject, amount: number.text, observed, loose });
    }
    found
}

/// Returns whether a name is a single word and the sentence has a longer, better name: "the parser
/// timeout has a limit of 45 s".
fn is_outdone(name: &str, around: Option<&str>) -> bool {
    let mut others = around.unwrap_or("").split(", ");
    !name.contains(' ') && others.any(|other| other.contains(' ') && !other.contains(name))
}

/// Returns whether a name contains the name of a file, or is a part of a time. A number next to
/// such a name does not measure it.
fn is_of_file(name: &str) -> bool {
    name.split(' ').any(|word| super::path::path(word).is_some())
        || !name.contains(char::is_alphabetic)
}

/// Returns whether a sentence names a thing: by several words in a row, or after an article or
/// preposition. "Nah, 45 s" and "can you double it to 45 s" name no thing.
fn names_one(words: &[Word<'_>]) -> bool {
    use Classes as C;
    let empty = [C::STOP, C::LINK, C::AUXILIARY, C::QUALIFIER, C::JOINT, C::BACK, C::TOPIC];
    let named = |word: &Word<'_>| {
        let letters = word.lower.chars().filter(|c| c.is_alphabetic()).count() > 1;
        letters && !word.is_number() && !word.is(&empty) && dimension(&word.lower).is_none()
    };
    words.windows(2).enumerate().any(|(at, pair)| {
        let before = named(&pair[0]) || pair[0].is(&[C::JOINT]);
        let leads = at == 0 && introduces(pair, words.get(2));
        before && !pair[0].ends && named(&pair[1]) && !leads
    })
}

/// Returns the words near a number that could name the measured thing, with `, ` between the
/// possible names.
fn around(words: &[Word<'_>], number: &Number) -> Option<String> {
    const NEAR: usize = 12;
    use Classes as C;
    let empty = [C::STOP, C::LINK, C::AUXILIARY, C::QUALIFIER, C::JOINT, C::BACK, C::TOPIC];
    let (start, end) = (number.start.saturating_sub(NEAR), (number.end + NEAR).min(words.len()));
    let mut names: Vec<&str> = vec![","];
    for (at, word) in words.iter().enumerate().take(end).skip(start) {
        let inside = (number.start..number.end).contains(&at);
        let named = word.lower.starts_with(char::is_alphabetic)
            && !word.is(&empty)
            && word.lower.len() > 1
            && dimension(&word.lower).is_none();
        if named && !inside {
            names.push(&word.lower);
        }
        if (!named || inside || word.ends) && names.last() != Some(&",") {
            names.push(",");
        }
    }
    let names = names[1..].join(" ").replace(" ,", ",");
    let names = names.trim_end_matches(',');
    (!names.is_empty()).then(|| names.to_owned())
}

struct Word<'a> {
    raw: &'a str,
    /// The word in lower case, without the punctuation around it.
    lower: String,
    classes: Classes,
    /// True if a clause ends with this word.
    ends: bool,
}

impl<'a> Word<'a> {
    fn new(raw: &'a str) -> Self {
        let marks = |c: char| "`'\"()[]{},;!?*|".contains(c);
        let bare = raw.trim_matches(marks).trim_end_matches('.').trim_matches(marks);
        let bare = if bare.len() > 1 { bare.trim_end_matches(':') } else { bare };
        let lower = bare.to_lowercase();
        let ends = raw.ends_with([',', ';', '.', ')', '?', '!']);
        Self { raw, classes: Classes::of(&lower), lower, ends }
    }

    fn is(&self, any: &[Classes]) -> bool {
        self.classes.any(any)
    }

    fn is_number(&self) -> bool {
        self.lower.starts_with(|c: char| c.is_ascii_digit())
    }
}

/// A number and its place in a sentence.
struct Number {
    start: usize,
    /// Index of the word after the number and its unit.
    end: usize,
    text: String,
    has_unit: bool,
    /// Name that stands next to the number: `retries` in `retries=5`, or the unit in `8 workers`.
    named: Option<String>,
    /// True if the name and the number were one word.
    glued: bool,
}

impl Number {
    fn read(words: &[Word<'_>], at: usize) -> Option<Self> {
        let bare = words[at].lower.trim_start_matches(['~', '≈', '<', '>', '=', '≤', '≥', '+']);
        let (name, bare) = match bare.rsplit_once(['=', ':']) {
            Some((name, number)) if number.starts_with(|c: char| c.is_ascii_digit()) => {
                (Some(name).filter(|name| !name.is_empty()), number)
            }
            _ => (None, bare),
        };
        let money = bare.starts_with(['$', '€']);
        let digits = bare.trim_start_matches(['$', '€']);
        let end = digits.find(|c: char| !(c.is_ascii_digit() || ".,_".contains(c)));
        let (number, rest) = digits.split_at(end.unwrap_or(digits.len()));
        if !number.starts_with(|c: char| c.is_ascii_digit()) || number.matches('.').count() > 1 {
            return None;
        }
        let next =
            words.get(at + 1).filter(|next| !words[at].ends && dimension(&next.lower).is_some());
        let (unit, end) = match (rest.trim_start_matches('-'), next) {
            ("", Some(next)) => (Some(next.lower.as_str()), at + 2),
            ("", None) => (None, at + 1),
            (rest, _) if dimension(rest).is_some() => (Some(rest), at + 1),
            _ => return None,
        };
        let text = match unit {
            Some(unit) if end == at + 2 => {
                format!("{number} {}", as_written(words[at + 1].raw, unit))
            }
            Some(unit) => format!("{number}{}", as_written(words[at].raw, unit)),
            None if money => format!("${number}"),
            None => number.to_owned(),
        };
        let counted = unit.filter(|unit| dimension(unit) == Some("count"));
        let named = name.or(counted).map(str::to_owned);
        let has_unit = unit.is_some() || money;
        Some(Self { start: at, end, text, has_unit, named, glued: name.is_some() })
    }

    /// Returns whether the words before the number say that the number no longer holds.
    fn is_former(&self, words: &[Word<'_>]) -> bool {
        let before = |back: usize| self.start.checked_sub(back).map(|at| &words[at]);
        let Some(last) = before(1) else { return false };
        let two = before(2).is_some_and(|first| {
            let pair = (first.lower.as_str(), last.lower.as_str());
            NO_LONGER.contains(&pair) || first.is(&[Classes::FORMER]) && last.lower != "to"
        });
        two || last.is(&[Classes::FORMER]) || last.raw.eq_ignore_ascii_case("(was")
    }

    /// Returns whether the words after the number reject it: "30 s did not work".
    fn is_refused(&self, words: &[Word<'_>]) -> bool {
        const FAR: usize = 4;
        let end = (self.end + FAR).min(words.len());
        let refusing = |word: &Word<'_>| {
            ["not", "no", "failed", "too", "wrong", "bad", "before"].contains(&word.lower.as_str())
                || word.lower.ends_with("n't")
        };
        !words[self.end - 1].ends && words[self.end..end].iter().any(refusing)
    }

    /// Returns the thing that the number measures; `None` if nothing names it. Looks for its name
    /// in the number's own word, then in the words before the number that a link such as "is" joins
    /// to it, in the words after the number, and in earlier clauses.
    fn subject(&self, words: &[Word<'_>]) -> Option<String> {
        if self.glued {
            return self.named.clone();
        }
        let behind = || self.has_unit.then(|| self.behind(words)).flatten();
        self.before(words).or_else(behind).or_else(|| self.topic(words))
    }

    /// Returns the name before the number if a link, such as "is" or a colon, joins them.
    fn before(&self, words: &[Word<'_>]) -> Option<String> {
        use Classes as C;
        let mut at = self.start;
        // `the timeout (30 s)` needs no other link.
        let mut linked = words[at].raw.starts_with('(');
        while at > 0 {
            let word = &words[at - 1];
            let unit = at > 1 && dimension(&word.lower).is_some() && words[at - 2].is_number();
            // The earlier amount in "from 30 s to 40 s".
            let former = linked && (word.lower == "from" || word.is_number() || unit);
            let bound = ["under", "below", "within", "over", "than", "most", "least", "max"];
            if word.raw == "|" {
                // A cell of a table.
                linked = true;
            } else if word.is(&[C::LINK, C::WEAK_LINK, C::QUALIFIER]) && !word.raw.ends_with(',') {
                linked |= word.is(&[C::LINK, C::WEAK_LINK]) || bound.contains(&word.lower.as_str());
            } else if !(former || linked && (word.is(&[C::AUXILIARY]) || participle(words, at - 1)))
            {
                linked |= word.raw.ends_with([':', '=']);
                break;
            }
            at -= 1;
        }
        linked.then(|| backwards(&words[..at])).flatten()
    }

    fn behind(&self, words: &[Word<'_>]) -> Option<String> {
        if words[self.end - 1].ends {
            return None;
        }
        const APART: &[&str] =
            &["after", "at", "before", "by", "from", "in", "on", "per", "since", "when", "with"];
        let next = words.get(self.end)?;
        if APART.contains(&next.lower.as_str()) {
            return None;
        }
        let mut phrase: Vec<&Word<'_>> = Vec::new();
        let start = self.end + joined(&words[self.end..]);
        for word in words[start..].iter().take(SUBJECT_WORDS + 1) {
            // A purpose or place after the name is not part of it: "the timeout for now".
            let named = phrase.iter().any(|word| !word.is(&[Classes::JOINT]));
            if stops(word) || named && word.is(&[Classes::JOINT]) && word.lower != "of" {
                break;
            }
            phrase.push(word);
            if word.ends {
                break;
            }
        }
        name(&phrase)
    }

    /// Returns the thing that an earlier clause names without an amount: "for the queue, 30 s".
    fn topic(&self, words: &[Word<'_>]) -> Option<String> {
        let named = |word: &Word<'_>| word.raw.ends_with([',', ':', '?']);
        let clause = words[..self.start].iter().rposition(named)?;
        let near = self.start - clause <= 4;
        let start = words[..clause].iter().rposition(|word| word.ends).map_or(0, |at| at + 1);
        let asked = words[clause].raw.ends_with('?');
        let topic = near
            && (asked
                || words[start].is(&[Classes::TOPIC]) && !introduces(&words[start..=clause], None))
            && clause - start <= SUBJECT_WORDS + 1;
        topic.then(|| name(&words[start..=clause].iter().collect::<Vec<_>>())).flatten()
    }
}

/// Returns whether a clause is an introduction such as "on reflection", which names nothing: two
/// words before a punctuation mark or a number.
fn introduces(clause: &[Word<'_>], next: Option<&Word<'_>>) -> bool {
    let naming = ["for", "regarding", "concerning"];
    let [first, last] = clause else { return false };
    let ends = last.ends || next.is_some_and(Word::is_number);
    ends && first.is(&[Classes::JOINT, Classes::TOPIC]) && !naming.contains(&first.lower.as_str())
}

/// Returns whether a word is the participle of a report such as "was configured".
fn participle(words: &[Word<'_>], at: usize) -> bool {
    const BEING: &[&str] = &["is", "was", "are", "were", "be", "been", "being", "got", "gets"];
    let before = at.checked_sub(1).map(|at| words[at].lower.as_str());
    words[at].lower.ends_with("ed") && before.is_some_and(|before| BEING.contains(&before))
}

/// Counts the words that join a number to the name after it, as in "30 s is the timeout", "30 s as
/// the timeout" or "30 s – that's our timeout". An article must follow.
fn joined(behind: &[Word<'_>]) -> usize {
    const JOINING: &[&str] = &["as", "is", "for", "–", "-", "—", "that's", "that", "it's", "be"];
    let count = behind.iter().take_while(|word| JOINING.contains(&word.lower.as_str())).count();
    let article = behind.get(count).is_some_and(|word| ARTICLES.contains(&word.lower.as_str()));
    if article && count <= 3 { count } else { 0 }
}

/// Returns the name at the end of the words, back to its article, or further if a preposition
/// before the article joins more words: "size of queue" for "after the test the size of the queue".
fn backwards(words: &[Word<'_>]) -> Option<String> {
    let mut phrase: Vec<&Word<'_>> = Vec::new();
    for (at, word) in words.iter().enumerate().rev().take(SUBJECT_WORDS + 1) {
        if stops(word) || word.raw.ends_with([',', ';', '.', '!', '?']) {
            break;
        }
        phrase.push(word);
        let joined = at > 0 && words[at - 1].is(&[Classes::JOINT]);
        if ARTICLES.contains(&word.lower.as_str()) && !joined {
            break;
        }
    }
    phrase.reverse();
    name(&phrase)
}

/// Returns whether a name cannot continue across this word.
fn stops(word: &Word<'_>) -> bool {
    let link = word.is(&[Classes::LINK]) && !word.is(&[Classes::JOINT]);
    word.lower.is_empty() || word.is_number() || word.is(&[Classes::STOP]) || link
}

/// Makes a name from words, without articles, and without linking or qualifying words at its ends.
/// `None` if no word with more than one letter is left.
fn name(phrase: &[&Word<'_>]) -> Option<String> {
    let loose = |word: &&&Word<'_>| {
        word.is(&[Classes::JOINT, Classes::QUALIFIER, Classes::WEAK_LINK, Classes::TOPIC])
    };
    let start = phrase.iter().take_while(loose).count();
    let end = phrase.len() - phrase[start..].iter().rev().take_while(loose).count();
    let words: Vec<&str> = phrase[start..end]
        .iter()
        .map(|word| word.lower.as_str())
        .filter(|word| !ARTICLES.contains(word))
        .collect();
    let named = words.iter().any(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1);
    named.then(|| words.join(" "))
}

/// Returns the unit in its original letter case.
fn as_written(raw: &str, unit: &str) -> String {
    let lower = raw.to_lowercase();
    match lower.rfind(unit) {
        Some(place) if lower.len() == raw.len() => raw[place..place + unit.len()].to_owned(),
        _ => unit.to_owned(),
    }
}

#[cfg(test)]
mod tests;
