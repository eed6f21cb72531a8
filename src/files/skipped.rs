//! Entries that a walk left out, and why. Pure.

use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of left-out entries that are named; the rest are only counted.
pub const MAX_NAMED_SKIPS: usize = 100;

/// Reason why an entry of a tree was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// An ignore file excludes it.
    Ignored,
    /// Its name begins with a dot.
    Hidden,
    /// It is not UTF-8 text.
    Binary,
    /// It is over the size limit.
    TooLarge,
    /// It cannot be read, or was removed during the walk.
    Unreadable,
    /// It is a FIFO, socket or device.
    NotAFile,
    /// It is a symbolic link that is not followed, is broken, or leads back up.
    Link,
}

/// Entries left out of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skipped {
    /// Number of entries left out for each reason. An ignored folder counts once, whatever it
    /// contains.
    pub total: BTreeMap<SkipReason, u64>,
    /// The first [`MAX_NAMED_SKIPS`] of them: paths relative to the root. Folders end with a slash;
    /// names that are not UTF-8 are lossy.
    pub named: Vec<(String, SkipReason)>,
}

impl SkipReason {
    /// Returns the kebab-case name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Hidden => "hidden",
            Self::Binary => "binary",
            Self::TooLarge => "too-large",
            Self::Unreadable => "unreadable",
            Self::NotAFile => "not-a-file",
            Self::Link => "link",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Skipped {
    /// Counts one more entry, and names it while there is room.
    pub fn add(&mut self, relative: String, reason: SkipReason) {
        *self.total.entry(reason).or_default() += 1;
        if self.named.len() < MAX_NAMED_SKIPS {
            self.named.push((relative, reason));
        }
    }

    /// Adds the entries left out by a later step, after those that are here.
    pub fn merge(&mut self, later: Self) {
        for (reason, count) in later.total {
            *self.total.entry(reason).or_default() += count;
        }
        let room = MAX_NAMED_SKIPS - self.named.len().min(MAX_NAMED_SKIPS);
        self.named.extend(later.named.into_iter().take(room));
    }

    /// Returns the number of entries left out in all.
    pub fn count(&self) -> u64 {
        self.total.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_some_are_named() {
        let mut skipped = Skipped::default();
        for number in 0..99 {
            skipped.add(format!("{number}"), SkipReason::Ignored);
        }
        let mut later = Skipped::default();
        later.add("a".to_owned(), SkipReason::Binary);
        later.add("b".to_owned(), SkipReason::Ignored);
        skipped.merge(later);
        assert_eq!(skipped.count(), 101);
        assert_eq!(skipped.total[&SkipReason::Ignored], 100);
        assert_eq!(skipped.named.len(), MAX_NAMED_SKIPS);
        assert_eq!(skipped.named[99], ("a".to_owned(), SkipReason::Binary));
    }
}
