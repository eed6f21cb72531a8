//! Rates the quality of a context from 0 to 1. The quality is a weighted sum of four parts, which
//! are returned with it.

/// Weight of the relevance. The four weights add up to 1.
pub(crate) const RELEVANCE: f64 = 0.3;
/// Weight of the coherence.
pub(crate) const COHERENCE: f64 = 0.3;
/// Weight of the session's part, which rates how often the session was summarized.
pub const SESSION: f64 = 0.2;
/// Weight of the free room in the window.
pub const ROOM: f64 = 0.2;

/// Number of summaries per turn that is rated best.
pub(crate) const SUMMARIES_PER_TURN: f64 = 0.1;

/// The observations that the quality is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Observed {
    /// Mean relevance of the memories found for this turn, from 0 to 1; 0 if none were found.
    pub relevance: f64,
    /// Coherence of the last rated answer, from 0 to 1; `None` if no answer was rated.
    pub coherence: Option<f64>,
    /// Number of turns of the session.
    pub turns: u64,
    /// Number of summaries of the session.
    pub summaries: u64,
    /// Cost of the window, in tokens.
    pub tokens: u64,
    /// Maximum cost of the window, in tokens.
    pub max_tokens: u64,
}

/// The quality of a context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Quality from 0 to 1.
    pub score: f64,
    /// Parts of the score: relevance, coherence, session and room.
    pub parts: [QualityPart; 4],
}

/// A part of the quality.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QualityPart {
    /// Name in the client protocol.
    pub name: &'static str,
    /// Value from 0 to 1.
    pub value: f64,
    /// Weight in the score.
    pub weight: f64,
    /// Explanation of the value.
    pub reason: &'static str,
}

impl QualityPart {
    /// Returns what this part contributes to the score: its value times its weight.
    pub fn points(&self) -> f64 {
        self.value * self.weight
    }
}

impl Quality {
    /// Computes the quality. A value outside 0 to 1 counts as the nearest end, and NaN counts as 0.
    pub fn of(observed: &Observed) -> Self {
        let parts = [relevance(observed), coherence(observed), session(observed), room(observed)];
        let score = parts.iter().map(QualityPart::points).sum();
        Self { score: share(score), parts }
    }
}

fn relevance(observed: &Observed) -> QualityPart {
    let value = share(observed.relevance);
    let found = "mean relevance of the memories found";
    let reason = if value > 0.0 { found } else { "no relevant memories were found" };
    QualityPart { name: "relevance", value, weight: RELEVANCE, reason }
}

fn coherence(observed: &Observed) -> QualityPart {
    let reason = match observed.coherence {
        Some(_) => "rated by the client",
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
    QualityPart { name: "room", value, weight: ROOM, reason: "share of the window left free" }
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
    fn absurd_figures_still_give_a_quality() {
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
