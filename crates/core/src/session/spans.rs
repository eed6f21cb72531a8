//! Sets of message numbers, stored as ranges because most of the numbers are consecutive.

use serde::{Deserialize, Serialize};

/// A set of message numbers: disjoint ranges in ascending order, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// Returns whether the set contains the number.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < number);
        self.0.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the count of numbers in the set.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Returns the largest number in the set.
    pub fn last(&self) -> Option<u64> {
        self.0.last().map(|(_, last)| *last)
    }

    /// Returns the ranges in ascending order, both ends included.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Iterates over the numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    /// Adds the numbers from `first` to `last`.
    pub fn insert(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        // Merge the new range with those that overlap or touch it.
        let start = self.0.partition_point(|(_, end)| end.saturating_add(1) < first);
        let end = self.0.partition_point(|(begin, _)| *begin <= last.saturating_add(1));
        let joined = self.0[start..end]
            .iter()
            .fold((first, last), |(low, high), range| (low.min(range.0), high.max(range.1)));
        self.0.splice(start..end, [joined]);
    }

    /// Adds all numbers of another set.
    pub fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|&(first, last)| self.insert(first, last));
    }

    /// Removes every number above `last`.
    pub fn truncate(&mut self, last: u64) {
        self.0.retain(|(first, _)| *first <= last);
        if let Some(range) = self.0.last_mut() {
            range.1 = range.1.min(last);
        }
    }

    /// Returns the numbers of the set from 1 to `last`. Also sorts ranges that are out of order.
    #[must_use]
    pub fn within(&self, last: u64) -> Self {
        let mut spans = Self::default();
        self.0.iter().for_each(|range| spans.insert(range.0.max(1), range.1.min(last)));
        spans
    }

    /// Removes one number.
    pub fn remove(&mut self, number: u64) {
        let Some(at) = self.0.iter().position(|&(first, last)| first <= number && number <= last)
        else {
            return;
        };
        let (first, last) = self.0[at];
        let left = (first < number).then(|| (first, number - 1));
        let right = (number < last).then(|| (number + 1, last));
        self.0.splice(at..=at, left.into_iter().chain(right));
    }
}

impl FromIterator<u64> for Spans {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut spans = Self::default();
        numbers.into_iter().for_each(|number| spans.insert(number, number));
        spans
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(numbers: &[u64], expected: &[(u64, u64)]) {
        assert_eq!(numbers.iter().copied().collect::<Spans>().0, expected);
    }

    #[test]
    fn neighbours_join() {
        check(&[3, 1, 2], &[(1, 3)]);
        check(&[1, 3, 5, 4], &[(1, 1), (3, 5)]);
        check(&[7, 7], &[(7, 7)]);
        check(&[], &[]);
    }

    proptest! {
        #[test]
        fn they_equal_the_set_they_stand_for(
            steps in prop::collection::vec((0..4u8, 1..40u64, 0..6u64), 0..40)
        ) {
            let (mut spans, mut model) = (Spans::default(), BTreeSet::new());
            for (step, first, more) in steps {
                match step {
                    0 => { spans.remove(first); model.remove(&first); }
                    1 => { spans.truncate(first); model.retain(|n| *n <= first); }
                    _ => { spans.insert(first, first + more); model.extend(first..=first + more); }
                }
                prop_assert_eq!(spans.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(spans.len(), model.len() as u64);
                prop_assert_eq!(spans.last(), model.last().copied());
                prop_assert!((0..50).all(|n| spans.contains(n) == model.contains(&n)));
                prop_assert!(spans.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            }
        }
    }
}
