//! Entries that a walk left out, with the reasons. Must not touch the disk.

use std::collections::BTreeMap;

use crate::names::names;

/// Maximum number of left-out entries that are named; the rest are only counted.
pub const MAX_NAMED_SKIPS: usize = 100;

names! {
    /// Reason why an entry of a tree was left out.
    SkipReason {
        /// An ignore file excludes the entry.
        Ignored => "ignored",
        /// The entry's name begins with a dot.
        Hidden => "hidden",
        /// The file is not UTF-8 text.
        Binary => "binary",
        /// The file looks like a secret: it may hold passwords, keys or tokens.
        Secret => "secret",
        /// The file is a backup or lock of an editor.
        Backup => "backup",
        /// The entry belongs to a version control system.
        VersionControl => "version-control",
        /// The file is over the size limit.
        TooLarge => "too-large",
        /// The entry cannot be read, or was removed during the walk.
        Unreadable => "unreadable",
        /// The entry is a FIFO, socket or device.
        NotAFile => "not-a-file",
        /// The entry is a symbolic link that is not followed, is broken, or leads to a folder above
        /// it.
        Link => "link",
    }
}

/// Entries left out of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skipped {
    /// Number of entries left out for each reason. An ignored folder counts once, even if it
    /// contains much.
    pub total: BTreeMap<SkipReason, u64>,
    /// Paths of the first [`MAX_NAMED_SKIPS`] entries left out, relative to the root, with the
    /// reasons. Folders end with a slash; names that are not UTF-8 are lossy.
    pub named: Vec<(String, SkipReason)>,
}

impl Skipped {
    /// Counts one more entry, and names it while there is room.
    pub fn add(&mut self, relative: String, reason: SkipReason) {
        *self.total.entry(reason).or_default() += 1;
        if self.named.len() < MAX_NAMED_SKIPS {
            self.named.push((relative, reason));
        }
    }

    /// Returns the same entries with names relative to a folder above their root. `folder` is the
    /// root as seen from there; empty if they are the same.
    pub fn below(mut self, folder: &str) -> Self {
        if !folder.is_empty() {
            self.named.iter_mut().for_each(|(name, _)| *name = format!("{folder}/{name}"));
        }
        self
    }

    /// Adds the entries that a later step left out, after those already there.
    pub fn merge(&mut self, later: Self) {
        for (reason, count) in later.total {
            *self.total.entry(reason).or_default() += count;
        }
        let room = MAX_NAMED_SKIPS - self.named.len().min(MAX_NAMED_SKIPS);
        self.named.extend(later.named.into_iter().take(room));
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
        assert_eq!(skipped.total.values().sum::<u64>(), 101);
        assert_eq!(skipped.total[&SkipReason::Ignored], 100);
        assert_eq!(skipped.named.len(), MAX_NAMED_SKIPS);
        assert_eq!(skipped.named[99], ("a".to_owned(), SkipReason::Binary));
    }
}
