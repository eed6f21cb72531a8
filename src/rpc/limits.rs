//! Limits on calls and answers that several modules need. `server/limits.rs` lists all limits that
//! clients may meet.

/// Maximum length of a `cancel`, in bytes. A `cancel` overtakes other calls, so reading one must be
/// quick.
pub(crate) const MAX_CANCEL_BYTES: usize = 16 << 10;
/// Maximum length of an answer with lists, in bytes, unless the call names another length.
pub(crate) const PAGE_BYTES: usize = 64 << 10;
/// Maximum number of partly read lists that are kept for one client; the oldest is dropped first.
pub(crate) const LISTS_KEPT: usize = 8;
/// Maximum length of a name of a method or parameter in an error, in bytes.
pub(crate) const MAX_QUOTED_BYTES: usize = 256;
/// Maximum number of hits of a search of sessions.
pub(crate) const MAX_HITS: i64 = 1000;
/// Maximum number of calls in a batch.
pub(crate) const MAX_BATCH: usize = 1000;
/// Maximum number of queued calls of one client. Beyond it, messages wait in the transport.
pub(crate) const WAITING_CALLS: usize = 4096;
/// Maximum number of calls of one client, such as directory walks, that run alongside its other
/// calls.
pub(crate) const CALLS_ASIDE: usize = 4;
/// Maximum number of calls of one client that wait for outside work, such as answers of models.
/// [`CALLS_ASIDE`] does not count these calls.
pub(crate) const CALLS_ELSEWHERE: usize = 256;
/// Maximum time to wait for editors that were asked for unsaved text, in milliseconds.
pub(crate) const EDITOR_PATIENCE_MS: u64 = 200;
/// Maximum number of inputs that may wait in one REPL.
pub(crate) const WAITING_INPUTS: usize = 64;

/// Number of bytes that all clients of a server may leave unread, unless one of them may leave more.
pub(crate) const UNREAD_TOGETHER: usize = 256 << 20;

/// Returns the number of bytes that one client may leave unread.
pub(crate) fn max_unread_of_one(max_message: usize) -> usize {
    max_message.saturating_mul(2)
}

/// Returns the number of bytes that all clients may leave unread.
pub(crate) fn max_unread(max_message: usize) -> usize {
    max_unread_of_one(max_message).max(UNREAD_TOGETHER)
}
