//! The forms in which messages are shown.

/// The form in which a message is shown, ordered by how much is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// The whole message.
    Whole,
    /// The beginning and the end of a large result.
    Spilled,
    /// The lines of a result that the work at hand names.
    Cut,
    /// One line, because the message with this number read the same file later.
    Repeated(u64),
    /// One line that replaces a result.
    Masked,
    /// Nothing.
    Dropped,
}
