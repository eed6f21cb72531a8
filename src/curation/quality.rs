//! How good a context is, from 0 to 1, as a sum of four parts that are told with it.

/// What relevance counts for (§6, as the other weights).
pub const RELEVANCE: f64 = 0.3;
/// What coherence counts for.
pub const COHERENCE: f64 = 0.3;
/// What the session counts for.
pub const SESSION: f64 = 0.2;
/// What room in the window counts for.
pub const ROOM: f64 = 0.2;

/// How many summaries for each turn are expected of a session that goes well.
pub const SUMMARIES_PER_TURN: f64 = 0.1;

/// From what quality is reckoned.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Observed {
    /// How relevant what was found in memory for this turn is, on the average, from 0 to 1; 0 when
    /// nothing was found.
    pub relevance: f64,
    /// How coherent an evaluator found the last answer, from 0 to 1; `None` without one.
    pub coherence: Option<f64>,
    /// How many turns the session has.
    pub turns: u64,
    /// How many times it was summarized.
    pub summaries: u64,
    /// What the window costs.
    pub tokens: u64,
    /// How much it may cost.
    pub max_tokens: u64,
}

/// How good a context is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// From 0 to 1.
    pub score: f64,
    /// Of what it is made: relevance, coherence, session, room.
    pub parts: [QualityPart; 4],
}

/// A part of the quality.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QualityPart {
    /// Its name on the wire.
    pub name: &'static str,
    /// How good it is, from 0 to 1.
    pub value: f64,
    /// What it counts for.
    pub weight: f64,
    /// Why it is what it is.
    pub reason: &'static str,
}

impl QualityPart {
    /// What it adds to the score.
    pub fn points(&self) -> f64 {
        self.value * self.weight
    }
}

impl Quality {
    /// Reckons it. What is not from 0 to 1, or no number, is taken for the nearest that is.
    pub fn of(observed: &Observed) -> Self {
        let parts = [relevance(observed), coherence(observed), session(observed), room(observed)];
        let score = parts.iter().map(QualityPart::points).sum();
        Self { score: share(score), parts }
    }
}

fn relevance(observed: &Observed) -> QualityPart {
    let value = share(observed.relevance);
    let found = "how relevant what was found in memory is";
    let reason = if value > 0.0 { found } else { "nothing relevant was found in memory" };
    QualityPart { name: "relevance", value, weight: RELEVANCE, reason }
}

fn coherence(observed: &Observed) -> QualityPart {
    let reason = match observed.coherence {
        Some(_) => "as it was evaluated",
        None => "not evaluated",
    };
    let value = share(observed.coherence.unwrap_or(1.0));
    QualityPart { name: "coherence", value, weight: COHERENCE, reason }
}

fn session(observed: &Observed) -> QualityPart {
    let Observed { turns, summaries, .. } = *observed;
    let rate = summaries as f64 / turns.max(1) as f64;
    let off = (rate - SUMMARIES_PER_TURN).abs();
    let (value, reason) = match turns {
        0 => (1.0, "no turns yet"),
        _ if rate > SUMMARIES_PER_TURN => (1.0 - share(off), "more than one summary in ten turns"),
        _ => (1.0 - share(off), "at most one summary in ten turns"),
    };
    QualityPart { name: "session", value, weight: SESSION, reason }
}

fn room(observed: &Observed) -> QualityPart {
    let Observed { tokens, max_tokens, .. } = *observed;
    let value = 1.0 - share(tokens as f64 / max_tokens.max(1) as f64);
    QualityPart { name: "room", value, weight: ROOM, reason: "the share of the window left free" }
}

fn share(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(observed: Observed, expected: [f64; 4], score: f64) {
        let quality = Quality::of(&observed);
        for (part, expected) in quality.parts.iter().zip(expected) {
            assert!((part.value - expected).abs() < 1e-9, "{part:?}");
        }
        assert!((quality.score - score).abs() < 1e-9, "{}", quality.score);
        let sum: f64 = quality.parts.iter().map(QualityPart::points).sum();
        assert!((quality.score - sum).abs() < 1e-9);
    }

    #[test]
    fn it_is_the_weighted_sum_of_four_parts() {
        let none = Observed { max_tokens: 100, ..Observed::default() };
        check(none, [0.0, 1.0, 1.0, 1.0], 0.7);
        let all = Observed { relevance: 1.0, ..none };
        check(all, [1.0, 1.0, 1.0, 1.0], 1.0);
        let some = Observed {
            relevance: 0.5,
            coherence: Some(0.8),
            turns: 20,
            summaries: 6,
            tokens: 25,
            max_tokens: 100,
        };
        check(some, [0.5, 0.8, 0.8, 0.75], 0.7);
    }

    #[test]
    fn a_session_should_be_summarized_once_in_ten_turns() {
        let session = |turns, summaries| {
            Quality::of(&Observed { turns, summaries, ..Observed::default() }).parts[2].value
        };
        assert_eq!((session(10, 1), session(0, 5)), (1.0, 1.0));
        assert!((session(10, 0) - 0.9).abs() < 1e-9);
        assert_eq!(session(1, 9), 0.0);
    }

    #[test]
    fn absurd_figures_give_a_quality_all_the_same() {
        let absurd = Observed {
            relevance: f64::NAN,
            coherence: Some(f64::INFINITY),
            turns: 1,
            summaries: u64::MAX,
            tokens: u64::MAX,
            max_tokens: 0,
        };
        check(absurd, [0.0, 1.0, 0.0, 0.0], 0.3);
    }
}
