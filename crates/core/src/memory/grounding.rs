//! The text that brings memories into a window.

use super::strength::relevance;

/// First line of the text that shows memories to a model.
pub(crate) const HEADING: &str = "Relevant context from memory:";

/// Maximum length of a shown memory, in characters, not counting the ellipsis.
pub const LONGEST: usize = 500;

/// A memory to bring into a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remembered<'a> {
    /// Number of the memory.
    pub id: u64,
    /// Text of the memory.
    pub content: &'a str,
    /// Strength, from 0 to 1.
    pub strength: f64,
}

/// The memories that a turn is given; empty if there are none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grounding {
    /// Numbers of the memories, best first.
    pub ids: Vec<u64>,
    /// Relevance of each memory, from 0 to 1, in the order of `ids`.
    pub relevances: Vec<f64>,
    /// The heading and one line for each memory. Empty if there are no memories, so that no message
    /// is sent.
    pub text: String,
}

impl Grounding {
    /// Builds the text and the relevances from `memories`, which must be in order, best first.
    pub fn of(memories: &[Remembered<'_>]) -> Self {
        if memories.is_empty() {
            return Self::default();
        }
        let places = memories.iter().enumerate();
        let mut text = HEADING.to_owned();
        for memory in memories {
            text.push_str("\n- ");
            text.push_str(&line(memory.content));
        }
        Self {
            ids: memories.iter().map(|memory| memory.id).collect(),
            relevances: places.map(|(i, m)| relevance(i, memories.len(), m.strength)).collect(),
            text,
        }
    }

    /// Returns the mean of the relevances, from 0 to 1; 0 without memories.
    pub fn relevance(&self) -> f64 {
        match self.relevances.len() {
            0 => 0.0,
            count => self.relevances.iter().sum::<f64>() / count as f64,
        }
    }
}

/// Puts a text on one line, and cuts it at the end of a word when it is too long.
fn line(text: &str) -> String {
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((most, _)) = folded.char_indices().nth(LONGEST) else { return folded };
    let shown = &folded[..most];
    // Without a space in the second half, the text is cut within a word.
    let end = shown.rfind(' ').filter(|end| *end > most / 2).unwrap_or(most);
    format!("{}…", &shown[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(contents: &[&str], expected: &str) -> Grounding {
        let memories: Vec<Remembered<'_>> = (1..)
            .zip(contents)
            .map(|(id, content)| Remembered { id, content, strength: 0.5 })
            .collect();
        let grounding = Grounding::of(&memories);
        assert_eq!(grounding.text, expected);
        grounding
    }

    #[test]
    fn each_memory_is_a_line() {
        let expected = "Relevant context from memory:\n- the port is 4005\n- λ b c\n- ";
        let grounding = check(&["the port is 4005", " λ\nb\r\n\tc\n", ""], expected);
        assert_eq!(grounding.ids, [1, 2, 3]);
        assert_eq!(grounding.relevances[0], 0.75);
        assert!((grounding.relevance() - 7.0 / 12.0).abs() < 1e-12);
    }

    #[test]
    fn grounding_without_memories_is_empty() {
        assert_eq!(check(&[], "").relevance(), 0.0);
    }

    #[test]
    fn a_long_memory_is_shortened() {
        let words = "word ".repeat(200);
        let unbroken = "é".repeat(600);
        let grounding = Grounding::of(&[
            Remembered { id: 1, content: &words, strength: 1.0 },
            Remembered { id: 2, content: &unbroken, strength: 1.0 },
        ]);
        let lines: Vec<&str> = grounding.text.lines().collect();
        assert!(lines[1].ends_with("word…") && lines[1].chars().count() <= LONGEST + 3);
        assert_eq!(lines[2], format!("- {}…", "é".repeat(LONGEST)));
    }
}
