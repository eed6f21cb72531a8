//! The words that help to understand numbers, from `lexicon.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The classes of a word, as a set of bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Classes(u16);

/// The classes of each word, and the dimension of each unit.
#[derive(Default)]
struct Lexicon {
    classes: HashMap<&'static str, Classes>,
    dimensions: HashMap<&'static str, &'static str>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| read(include_str!("lexicon.txt")));

impl Classes {
    pub(super) const QUALIFIER: Self = Self(1);
    pub(super) const LINK: Self = Self(1 << 1);
    pub(super) const WEAK_LINK: Self = Self(1 << 2);
    pub(super) const AUXILIARY: Self = Self(1 << 3);
    pub(super) const STOP: Self = Self(1 << 4);
    pub(super) const JOINT: Self = Self(1 << 5);
    pub(super) const FORMER: Self = Self(1 << 6);
    pub(super) const OBSERVING: Self = Self(1 << 7);
    pub(super) const BACK: Self = Self(1 << 8);
    pub(super) const TOPIC: Self = Self(1 << 9);
    pub(super) const CHOICE: Self = Self(1 << 10);

    const NAMES: &[(&'static str, Self)] = &[
        ("qualifier", Self::QUALIFIER),
        ("link", Self::LINK),
        ("weak-link", Self::WEAK_LINK),
        ("auxiliary", Self::AUXILIARY),
        ("stop", Self::STOP),
        ("joint", Self::JOINT),
        ("former", Self::FORMER),
        ("observing", Self::OBSERVING),
        ("back", Self::BACK),
        ("topic", Self::TOPIC),
        ("choice", Self::CHOICE),
    ];

    /// Returns the classes of `word`, which must be in lower case.
    pub(super) fn of(word: &str) -> Self {
        LEXICON.classes.get(word).copied().unwrap_or_default()
    }

    /// Returns whether the set has at least one of these classes.
    pub(super) fn any(self, of: &[Self]) -> bool {
        of.iter().any(|class| self.0 & class.0 != 0)
    }
}

/// Returns the dimension, such as `time`, of a unit in lower case; `None` for an unknown unit.
pub(super) fn dimension(unit: &str) -> Option<&'static str> {
    LEXICON.dimensions.get(unit).copied()
}

/// Returns the short name of a unit, such as `s` for `seconds`; other units unchanged.
pub(super) fn short(unit: &str) -> &str {
    match unit {
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
    }
}

fn read(text: &'static str) -> Lexicon {
    let mut lexicon = Lexicon::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((class, words)) = line.split_once(": ") else { continue };
        let bits = Classes::NAMES.iter().find(|(name, _)| *name == class).map(|(_, bits)| *bits);
        for word in words.split(' ') {
            if let Some(dimension) = class.strip_prefix("unit-") {
                lexicon.dimensions.insert(word, dimension);
            } else if let Some(bits) = bits {
                lexicon.classes.entry(word).or_default().0 |= bits.0;
            }
        }
    }
    lexicon
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_lexicon_is_understood() {
        for line in include_str!("lexicon.txt").lines().filter(|line| !line.is_empty()) {
            let class = line.split(':').next().unwrap();
            let known = Classes::NAMES.iter().any(|(name, _)| *name == class);
            assert!(line.starts_with("# ") || known || class.starts_with("unit-"), "{line}");
        }
        assert_eq!(dimension("gib"), Some("size"));
        assert!(Classes::of("is").any(&[Classes::LINK]));
        assert!(!Classes::of("hit").any(&[Classes::LINK]));
    }
}
