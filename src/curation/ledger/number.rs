//! Which numbers of a sentence say something, and of what.

use super::Quantity;

/// A number's unit by what it measures; of different dimensions, no number supersedes another.
const UNITS: &[(&str, &[&str])] = &[
    (
        "time",
        &[
            "ns",
            "us",
            "µs",
            "ms",
            "s",
            "sec",
            "secs",
            "second",
            "seconds",
            "min",
            "mins",
            "minute",
            "minutes",
            "h",
            "hr",
            "hrs",
            "hour",
            "hours",
            "day",
            "days",
            "week",
            "weeks",
            "month",
            "months",
            "millisecond",
            "milliseconds",
            "microseconds",
        ],
    ),
    (
        "size",
        &[
            "b",
            "byte",
            "bytes",
            "kb",
            "kib",
            "mb",
            "mib",
            "gb",
            "gib",
            "tb",
            "tib",
            "k",
            "kilobytes",
            "megabytes",
            "gigabytes",
        ],
    ),
    ("share", &["%", "percent"]),
    ("tokens", &["token", "tokens"]),
    (
        "rate",
        &[
            "rps",
            "qps",
            "req/s",
            "requests/s",
            "mb/s",
            "gb/s",
            "kb/s",
            "mbit/s",
            "gbit/s",
            "fps",
            "req/min",
            "ops/s",
            "rpm",
            "iops",
            "tokens/s",
        ],
    ),
    ("frequency", &["hz", "khz", "mhz", "ghz"]),
    ("pixels", &["px", "pixels", "dpi"]),
    ("money", &["usd", "eur", "dollars", "euros", "cents", "$", "€"]),
    ("physical", &["°c", "°f", "km", "m", "cm", "mm", "kg", "g", "w", "kw", "v"]),
    (
        "count",
        &[
            "attempts",
            "bits",
            "characters",
            "chars",
            "columns",
            "connections",
            "cores",
            "entries",
            "errors",
            "files",
            "items",
            "jobs",
            "lines",
            "messages",
            "nodes",
            "pages",
            "partitions",
            "records",
            "replicas",
            "requests",
            "retries",
            "rows",
            "shards",
            "slots",
            "tests",
            "threads",
            "times",
            "tries",
            "users",
            "workers",
        ],
    ),
];
/// What may stand between a number and what binds it to its subject.
const QUALIFIERS: &[&str] = &[
    "about",
    "approximately",
    "around",
    "currently",
    "exactly",
    "just",
    "least",
    "less",
    "max",
    "maximum",
    "minimum",
    "more",
    "most",
    "nearly",
    "no",
    "now",
    "only",
    "over",
    "roughly",
    "than",
    "under",
    "below",
    "within",
    "up",
    "down",
    "at",
    "a",
    "an",
    "the",
    "still",
    "above",
    "beyond",
];
/// What binds a number to its subject.
const LINKS: &[&str] = &[
    "is", "are", "was", "were", "be", "been", "being", "to", "of", "=", ":", "by", "at", "takes",
    "took", "uses", "used", "has", "have", "needs", "stays", "stay", "reaches", "reached",
    "equals", "averaged", "averages", "peaked", "peaks", "hit", "hits", "costs", "exceed",
    "exceeds", "becomes", "remains", "measured", "->", "→", "==", "<", ">", "<=", ">=", "≤", "≥",
    "~", "gets", "allows", "holds", "as", "in", "drops", "dropped", "rises", "rose", "runs",
    "lasts", "lasted", "goes",
];
/// Words that belong to no subject.
const STOPS: &[&str] = &[
    "actually",
    "add",
    "agreed",
    "allow",
    "also",
    "and",
    "because",
    "bump",
    "but",
    "can",
    "cap",
    "capped",
    "change",
    "changed",
    "choose",
    "chose",
    "configure",
    "cut",
    "decided",
    "decrease",
    "did",
    "do",
    "does",
    "drop",
    "ensure",
    "fix",
    "fixed",
    "get",
    "give",
    "go",
    "going",
    "had",
    "he",
    "i",
    "if",
    "increase",
    "increased",
    "it",
    "its",
    "keep",
    "kept",
    "let",
    "let's",
    "limited",
    "lower",
    "lowered",
    "make",
    "makes",
    "may",
    "measure",
    "must",
    "need",
    "not",
    "note",
    "ok",
    "okay",
    "or",
    "please",
    "put",
    "raise",
    "raised",
    "reduce",
    "reduced",
    "remember",
    "run",
    "say",
    "see",
    "set",
    "setting",
    "shall",
    "should",
    "since",
    "so",
    "sure",
    "that",
    "them",
    "then",
    "there",
    "they",
    "this",
    "tune",
    "tuned",
    "update",
    "updated",
    "use",
    "using",
    "want",
    "we",
    "we'll",
    "when",
    "which",
    "while",
    "will",
    "with",
    "would",
    "yes",
    "you",
    "never",
    "always",
    "cannot",
    "don't",
    "instead",
    "rather",
    "again",
    "here",
    "these",
    "those",
    "after",
    "before",
    "went",
    "came",
    "turned",
    "move",
    "moved",
    "from",
    "has",
    "have",
    "leave",
    "pin",
    "pinned",
];
/// Prepositions that may join the words of a subject.
const JOINTS: &[&str] =
    &["for", "of", "on", "per", "in", "the", "a", "an", "our", "each", "your", "my"];
/// Before a number that no longer holds.
const FORMER: &[&str] =
    &["from", "not", "previously", "formerly", "old", "former", "(was", "earlier", "originally"];
/// What says that a number was seen rather than laid down.
const OBSERVING: &[&str] = &[
    "took", "takes", "measured", "averaged", "averages", "peaked", "peaks", "reached", "finished",
    "observed", "ran", "clocked", "dropped", "rose", "saw", "lasted", "shows", "showed",
    "reported", "spent", "went", "came",
];
/// What lets a number without a subject mean that of an earlier message.
const MEANING_BACK: &[&str] =
    &["it", "that", "actually", "instead", "now", "rather", "again", "this", "correction"];
/// How many words a subject has at most.
const SUBJECT_WORDS: usize = 5;

/// An amount as it can be compared: `30 s` and `30 seconds` are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Amount {
    /// What kind of unit it has; empty for a bare number.
    pub(super) dimension: &'static str,
    number: String,
    unit: String,
}

impl Amount {
    /// Reads what [`quantities`] wrote.
    pub(super) fn of(text: &str) -> Self {
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',' || c == '$'));
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let unit = unit.trim_start_matches(['-', ' ']).to_lowercase();
        let number = number.trim_start_matches('$').replace(',', "");
        Self { dimension: dimension(&unit).unwrap_or(""), number, unit: short(&unit) }
    }
}

/// The numbers of a sentence that measure something. A number without a unit counts when it is
/// what something is set to, such as `port = 8080`.
pub(super) fn quantities(sentence: &str) -> Vec<Quantity> {
    if !sentence.contains(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    let words: Vec<Word> = sentence.split_whitespace().map(Word::new).collect();
    let observed = words.iter().any(|word| OBSERVING.contains(&word.lower.as_str()));
    let back = words.iter().any(|word| MEANING_BACK.contains(&word.lower.as_str()));
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
        let subject = number.subject(&words).or_else(|| {
            let same = |old: &&Quantity| Amount::of(&old.amount).dimension == number.dimension();
            found.iter().rev().find(same).map(|old| old.subject.clone())
        });
        let subject = subject.or_else(|| (back && number.has_unit).then(String::new));
        if let Some(subject) = subject {
            found.retain(|old| {
                old.subject != subject || Amount::of(&old.amount).dimension != number.dimension()
            });
            found.push(Quantity { subject, amount: number.text, observed });
        }
    }
    found
}

struct Word<'a> {
    raw: &'a str,
    /// In lower case, without the marks around it.
    lower: String,
    /// Whether a clause ends with it.
    ends: bool,
}

impl<'a> Word<'a> {
    fn new(raw: &'a str) -> Self {
        let bare = raw.trim_matches(|c: char| "`'\"()[]{},;!?*|".contains(c)).trim_end_matches('.');
        let lower = match bare.len() {
            0 | 1 => bare.to_lowercase(),
            _ => bare.trim_end_matches(':').to_lowercase(),
        };
        Self { raw, lower, ends: raw.ends_with([',', ';', '.', ')', '?', '!']) }
    }

    fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.lower.as_str())
    }
}

/// A number at a place of a sentence.
struct Number {
    start: usize,
    /// The place behind it and its unit.
    end: usize,
    text: String,
    has_unit: bool,
    /// Words glued to it, such as "timeout" of `30s-timeout`; or its unit when that is a noun.
    noun: Option<String>,
}

impl Number {
    fn read(words: &[Word<'_>], at: usize) -> Option<Self> {
        let bare = words[at].lower.trim_start_matches(['~', '≈', '<', '>', '=', '≤', '≥', '+']);
        // `retries=5` and `timeout:30s` are a subject and its number in one word.
        let (glued, bare) = match bare.rsplit_once(['=', ':']) {
            Some((name, number)) if number.starts_with(|c: char| c.is_ascii_digit()) => {
                (Some(name), number)
            }
            _ => (None, bare),
        };
        let money = bare.starts_with(['$', '€']);
        let digits = bare.trim_start_matches(['$', '€']);
        let end = digits.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',' || c == '_'));
        let (number, rest) = digits.split_at(end.unwrap_or(digits.len()));
        if !number.starts_with(|c: char| c.is_ascii_digit()) || number.matches('.').count() > 1 {
            return None;
        }
        let next = words.get(at + 1).filter(|_| !words[at].ends);
        let rest = rest.trim_start_matches('-');
        let (unit, end) = match (rest, next) {
            ("", Some(next)) if dimension(&next.lower).is_some() => {
                (Some(next.lower.as_str()), at + 2)
            }
            ("", _) => (None, at + 1),
            (rest, _) if dimension(rest).is_some() => (Some(rest), at + 1),
            _ => return None,
        };
        let written = unit.map(|unit| as_written(words, at, end, unit));
        let text = match written {
            Some(unit) if end == at + 2 => format!("{number} {unit}"),
            Some(unit) => format!("{number}{unit}"),
            None if money => format!("${number}"),
            None => number.to_owned(),
        };
        let noun = match (glued, unit) {
            (Some(name), _) => Some(name.to_owned()),
            (None, Some(unit)) if dimension(unit) == Some("count") => Some(unit.to_owned()),
            _ => None,
        };
        Some(Self {
            start: at,
            end,
            text,
            has_unit: unit.is_some() || money,
            noun: noun.filter(|n| !n.is_empty()),
        })
    }

    fn dimension(&self) -> &'static str {
        Amount::of(&self.text).dimension
    }

    /// Whether the words say that this number no longer holds.
    fn is_former(&self, words: &[Word<'_>]) -> bool {
        let before = |back: usize| self.start.checked_sub(back).map(|at| &words[at]);
        let near = (1..=2)
            .filter_map(before)
            .any(|word| word.is(FORMER) || word.raw.eq_ignore_ascii_case("(was"));
        let two = before(2).zip(before(1)).map(|(a, b)| format!("{} {}", a.lower, b.lower));
        near && before(1).is_some_and(|word| !word.is(&["to"]))
            || two.is_some_and(|two| {
                ["instead of", "rather than", "be at", "used to"].contains(&two.as_str())
            })
    }

    /// What it measures: the words before what binds it, else those behind it.
    fn subject(&self, words: &[Word<'_>]) -> Option<String> {
        let noun = self.noun.clone();
        if let Some(name) =
            noun.as_ref().filter(|_| !self.has_unit || words[self.start].lower.contains(['=', ':']))
        {
            return Some(name.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
                .filter(|n| !n.is_empty());
        }
        let (linked, before) = self.before(words);
        let subject = if linked { before } else { None };
        let behind = || self.has_unit.then(|| self.behind(words)).flatten();
        let subject = subject.or_else(behind);
        match (subject, noun) {
            (Some(subject), _) => Some(subject),
            (None, noun) => noun,
        }
    }

    /// Whether something binds the number to words before it, and which.
    fn before(&self, words: &[Word<'_>]) -> (bool, Option<String>) {
        let mut at = self.start;
        let mut linked = false;
        while at > 0 {
            let word = &words[at - 1];
            let number = word.lower.starts_with(|c: char| c.is_ascii_digit());
            // The former amount in "from 30 s to 40 s".
            let former = linked
                && (word.is(&["from"])
                    || number
                    || dimension(&word.lower).is_some()
                        && at > 1
                        && words[at - 2].lower.starts_with(|c: char| c.is_ascii_digit()));
            let colon = word.raw.ends_with(':') || word.raw.ends_with('=');
            if word.is(LINKS) || word.is(QUALIFIERS) || former {
                linked |= word.is(LINKS)
                    || word
                        .is(&["under", "below", "within", "over", "than", "most", "least", "max"]);
                at -= 1;
            } else if linked
                && word.is(&[
                    "must",
                    "should",
                    "not",
                    "stay",
                    "limited",
                    "capped",
                    "set",
                    "raised",
                    "lowered",
                    "changed",
                    "now",
                    "can",
                    "may",
                    "never",
                    "always",
                    "has",
                    "have",
                    "kept",
                    "will",
                    "bumped",
                    "reduced",
                    "increased",
                ])
            {
                at -= 1;
            } else {
                linked |= colon;
                break;
            }
        }
        (linked, self.phrase(words[..at].iter().rev(), Direction::Backwards))
    }

    fn behind(&self, words: &[Word<'_>]) -> Option<String> {
        if words[self.end - 1].ends {
            return None;
        }
        self.phrase(words[self.end..].iter(), Direction::Forwards)
    }

    /// The words of a name, up to where a clause ends or begins.
    fn phrase<'a>(
        &self,
        words: impl Iterator<Item = &'a Word<'a>>,
        direction: Direction,
    ) -> Option<String> {
        let mut phrase: Vec<&str> = Vec::new();
        for word in words {
            let backwards = direction == Direction::Backwards;
            let number = word.lower.starts_with(|c: char| c.is_ascii_digit());
            let stop = word.lower.is_empty()
                || number
                || word.is(STOPS)
                || (word.is(LINKS) && !word.is(JOINTS));
            if stop
                || (backwards && word.ends && !phrase.is_empty())
                || (backwards && word.raw.ends_with([',', ';', '.']))
                || phrase.len() >= SUBJECT_WORDS
            {
                break;
            }
            phrase.push(&word.lower);
            if !backwards && word.ends {
                break;
            }
        }
        if direction == Direction::Backwards {
            phrase.reverse();
        }
        let edge = |word: &&&str| JOINTS.contains(*word) || QUALIFIERS.contains(*word);
        let start = phrase.iter().take_while(edge).count();
        let end = phrase.len() - phrase[start..].iter().rev().take_while(edge).count();
        let words: Vec<&str> = phrase[start..end]
            .iter()
            .copied()
            .filter(|word| !["the", "a", "an", "our", "my", "your"].contains(word))
            .collect();
        let named = words.iter().any(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1);
        named.then(|| words.join(" "))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Backwards,
    Forwards,
}

/// The unit with its capitals.
fn as_written(words: &[Word<'_>], at: usize, end: usize, unit: &str) -> String {
    let raw = if end == at + 2 { words[at + 1].raw } else { words[at].raw };
    let lower = raw.to_lowercase();
    match lower.rfind(unit) {
        Some(place) if lower.len() == raw.len() => raw[place..place + unit.len()].to_owned(),
        _ => unit.to_owned(),
    }
}

fn dimension(unit: &str) -> Option<&'static str> {
    let known = |(_, units): &&(&str, &[&str])| units.contains(&unit);
    UNITS.iter().find(known).map(|(dimension, _)| *dimension)
}

/// One name for each unit of time and share that has several.
fn short(unit: &str) -> String {
    let short = match unit {
        "sec" | "secs" | "second" | "seconds" => "s",
        "millisecond" | "milliseconds" => "ms",
        "mins" | "minute" | "minutes" => "min",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "percent" => "%",
        "byte" | "bytes" => "b",
        "kilobytes" => "kb",
        "megabytes" => "mb",
        "gigabytes" => "gb",
        other => other,
    };
    short.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sentence: &str, expected: &str) {
        let show = |q: &Quantity| format!("{} = {}", q.subject, q.amount);
        let found: Vec<String> = quantities(sentence).iter().map(show).collect();
        assert_eq!(found.join("; "), expected, "{sentence}");
    }

    #[test]
    fn the_subject_stands_before_what_binds_it() {
        check("The request timeout is 30 s.", "request timeout = 30 s");
        check("Set the batch size to 64 please", "batch size = 64");
        check("retries = 5, port: 8080", "retries = 5; port = 8080");
        check("The size of the cache must stay under 200 MB", "size of cache = 200 MB");
        check("max_connections=50", "max_connections = 50");
        check("Upload limit: 25 MB", "upload limit = 25 MB");
    }

    #[test]
    fn or_behind_the_number() {
        check("Use a 45-second request timeout.", "request timeout = 45second");
        check("allow 30 s for the nightly job", "nightly job = 30 s");
        check("spawn 8 workers", "workers = 8 workers");
    }

    #[test]
    fn what_no_longer_holds_is_passed_over() {
        check("Raise the request timeout from 30 s to 45 s", "request timeout = 45 s");
        check("The retry delay is 5 s, not 2 s", "retry delay = 5 s");
        check("The retry delay is now 5 s instead of 2 s", "retry delay = 5 s");
        check("The retry delay was 2 s, now 5 s", "retry delay = 5 s");
    }

    #[test]
    fn numbers_of_nothing_are_none() {
        check("step 3 of issue 12 on 2026-11-21, see v1.2.3", "");
        check("line 45 has x", "");
    }

    #[test]
    fn it_means_something_said_before() {
        check("Actually make it 45 s", " = 45 s");
    }
}
