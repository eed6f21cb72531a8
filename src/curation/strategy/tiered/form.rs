//! The forms in which messages are shown.

/// The form in which a message is shown, ordered by how much is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// The whole message.
    Whole,
    /// The beginning and the end of a large result.
    Spilled,
    /// One line that replaces a result.
    Masked,
    /// Nothing.
    Dropped,
}
