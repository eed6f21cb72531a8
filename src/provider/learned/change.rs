//! The changes of requests that servers teach.

/// A change of requests that a model's server needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    WithoutTools,
    WithoutToolChoice,
    WithoutStream,
    WithoutStreamOptions,
    OtherLimit,
    WithoutLimit,
    WithoutTemperature,
    WithoutTopP,
    OtherEffort,
    WithoutSummary,
    WithoutEffort,
    WithoutSystem,
    PlainSchemas,
    TextForNull,
    WithoutReasoning,
    WithReasoning,
    WithoutInclude,
    WithSignatures,
    WithoutMarks,
}

impl Change {
    /// Returns what changes, as a phrase for the user.
    pub(super) fn phrase(self) -> &'static str {
        match self {
            Self::WithoutTools => "the model takes no tools; asking again without them",
            Self::WithoutToolChoice => "it takes no choice of tools; asking again without it",
            Self::WithoutStream => "it sends no streams; asking for the answer as a whole",
            Self::WithoutStreamOptions => {
                "it does not report usage in streams; asking again without it"
            }
            Self::OtherLimit => {
                "it wants the other name for the length of answers; asking again with that"
            }
            Self::WithoutLimit => {
                "it takes no limit for the length of answers; asking again without one"
            }
            Self::WithoutTemperature => "it takes no temperature; asking again without one",
            Self::WithoutTopP => "it takes no top-p; asking again without it",
            Self::OtherEffort => "the model takes the effort in another form; asking again in that",
            Self::WithoutEffort => "the model has no effort to set; asking again without one",
            Self::WithoutSummary => "it sums no reasoning up; asking again without that",
            Self::WithoutSystem => {
                "the model takes no system message; asking again with it in the user's"
            }
            Self::PlainSchemas => {
                "it refuses the schemas of the tools; asking again with simpler ones"
            }
            Self::TextForNull => "it wants a text in each message; asking again with one",
            Self::WithoutReasoning => "it does not take reasoning back; asking again without it",
            Self::WithoutInclude => "it gives no reasoning to send back; asking again without it",
            Self::WithReasoning | Self::WithSignatures => {
                "it wants reasoning back for each answer; asking again with it"
            }
            Self::WithoutMarks => "it takes no marks for its cache; asking again without them",
        }
    }
}
