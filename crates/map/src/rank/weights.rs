//! The weights of the signals. `docs/benchmarks.md` says how they were chosen.

use crate::facts::FileState;
use crate::language::Language;

/// How much each signal counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Words of the question.
    pub words: f64,
    /// Names and paths in the question.
    pub named: f64,
    /// References.
    pub graph: f64,
    /// What changed together.
    pub changes: f64,
    /// What changed together with what the question found, if no file is at hand.
    pub question_changes: f64,
    /// Messages of commits.
    pub messages: f64,
    /// How often a file changed.
    pub churn: f64,
    /// Nearness of paths.
    pub near: f64,
    /// Number that is added to each rank before it is inverted.
    pub rank_offset: f64,
    /// Weight of a file that the question found as a start of references, compared with a file at
    /// hand.
    pub question_seeds: f64,
    /// Number of such files.
    pub question_files: usize,
    /// How much a word in a path counts, beside one in a text.
    pub in_path: f64,
    /// How much a word in the name of a definition counts.
    pub in_name: f64,
    /// How much a test, an example or the like counts for a question that does not speak of one.
    pub aside: f64,
    /// Whether the best of a list count by their scores (1) or by their places alone (0).
    pub by_score: f64,
    /// Paths that hold the words of a question.
    pub covered: f64,
    /// How much the length of a file counts against it, from 0 to 1.
    pub length: f64,
    /// Share of rank that follows references backwards, to those that use a file.
    pub backwards: f64,
    /// Share of rank that goes on instead of beginning anew.
    pub damping: f64,
    /// Number of commits after which a change counts half.
    pub half_life: f64,
    /// How much frequent changes count against a file, from 0 to 1.
    pub often: f64,
    /// How much prose and data count, beside code.
    pub prose: f64,
    /// How much files count that programs made.
    pub generated: f64,
    /// Share of a budget for definitions; the rest names files.
    pub expanded: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            words: 1.0,
            named: 1.0,
            graph: 0.4,
            changes: 1.0,
            question_changes: 0.5,
            messages: 0.5,
            churn: 0.1,
            near: 0.3,
            rank_offset: 10.0,
            question_seeds: 0.3,
            question_files: 5,
            in_path: 6.0,
            in_name: 2.0,
            aside: 0.4,
            by_score: 0.8,
            covered: 1.0,
            length: 0.5,
            backwards: 0.5,
            damping: 0.7,
            half_life: 500.0,
            often: 0.3,
            prose: 0.8,
            generated: 0.3,
            expanded: 0.3,
        }
    }
}

impl Weights {
    /// Returns weights that leave only the words of the question (BM25), to measure beside.
    #[must_use]
    pub fn words_only(&self) -> Self {
        let (words, none) = (1.0, 0.0);
        Self {
            words,
            named: none,
            graph: none,
            changes: none,
            question_changes: none,
            messages: none,
            churn: none,
            near: none,
            covered: none,
            aside: 1.0,
            by_score: none,
            ..self.clone()
        }
    }

    pub(crate) fn of_file(&self, language: Language, state: FileState) -> f64 {
        let of_state = match state {
            FileState::Generated => self.generated,
            FileState::Binary | FileState::TooLarge | FileState::Secret | FileState::Unreadable => {
                0.3
            }
            FileState::Whole | FileState::Partial | FileState::Unparsed => 1.0,
        };
        of_state * if language == Language::Prose { self.prose } else { 1.0 }
    }
}
