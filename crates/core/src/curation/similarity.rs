//! Similarity of messages to a question by meaning, computed from the embedding vectors of both.

use crate::retrieval::cosine::{cosine, dot};

/// Number of messages on each side that belong to the passage around a message. Messages without a
/// vector do not count. In a dialogue, the topic of a message is often named in its neighbours.
const NEARBY: usize = 2;

/// Similarity of each message of a history to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Similarity {
    messages: Vec<Option<Near>>,
}

/// Similarity of a message to a question, as cosines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    /// Similarity of the message itself.
    pub(super) own: f64,
    /// Similarity of the passage around the message, by the mean of the passage's vectors.
    pub(super) passage: f64,
}

impl Similarity {
    /// Compares a question's vector with the vectors of all messages of a history. Ignores messages
    /// without a vector of the same length.
    pub fn of<'v>(question: &[f32], vectors: impl Iterator<Item = Option<&'v [f32]>>) -> Self {
        let square = dot(question, question);
        let mut messages = Vec::new();
        let mut known = Vec::new();
        for (index, vector) in vectors.enumerate() {
            messages.push(None);
            let own = vector.and_then(|vector| cosine(question, square, vector));
            known.extend(own.zip(vector).map(|(own, vector)| (index, own, vector)));
        }
        let mut sum = vec![0.0; question.len()];
        for (at, (index, own, _)) in known.iter().enumerate() {
            let near = at.saturating_sub(NEARBY)..known.len().min(at + NEARBY + 1);
            add_directions(known[near].iter().map(|(_, _, vector)| *vector), &mut sum);
            let passage = cosine(question, square, &sum).unwrap_or(*own);
            messages[*index] = Some(Near { own: *own, passage });
        }
        Self { messages }
    }

    /// Returns the similarity of the message at an index of the history, if it has a vector.
    pub(super) fn at(&self, index: usize) -> Option<Near> {
        self.messages.get(index).copied().flatten()
    }
}

/// Sets `sum` to the sum of the vectors, each at length 1.
fn add_directions<'v>(vectors: impl Iterator<Item = &'v [f32]>, sum: &mut [f32]) {
    sum.fill(0.0);
    for vector in vectors {
        let scale = dot(vector, vector).sqrt().recip() as f32;
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value * scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(vectors: &[&[f32]], expected: &[Option<(f64, f64)>]) {
        let given = vectors.iter().map(|vector| Some(*vector).filter(|it| !it.is_empty()));
        let similarity = Similarity::of(&[2.0, 0.0], given);
        let round = |value: f64| (value * 100.0).round() / 100.0;
        let near = |index| similarity.at(index).map(|it| (round(it.own), round(it.passage)));
        assert_eq!((0..vectors.len()).map(near).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_passage_is_the_mean_of_the_vectors_around_a_message() {
        check(&[&[3.0, 0.0]], &[Some((1.0, 1.0))]);
        check(
            &[&[0.0, 5.0], &[], &[1.0, 0.0], &[0.0, 1.0], &[0.0, 2.0]],
            &[Some((0.0, 0.45)), None, Some((1.0, 0.32)), Some((0.0, 0.32)), Some((0.0, 0.45))],
        );
    }

    #[test]
    fn vectors_that_cannot_be_compared_are_left_out() {
        check(
            &[&[1.0], &[0.0, 0.0], &[f32::NAN, 1.0], &[0.0, 1.0]],
            &[None, None, None, Some((0.0, 0.0))],
        );
        check(&[&[1.0, 0.0], &[-1.0, 0.0]], &[Some((1.0, 1.0)), Some((-1.0, -1.0))]);
        assert_eq!(Similarity::of(&[], [None].into_iter()).at(0), None);
    }
}
