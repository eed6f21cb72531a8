//! Tests of note-taking that takes too long or is cancelled.

use tokio_util::sync::CancellationToken;

use super::*;
use crate::agent::Limits;
use crate::engine::{Caller, Handle};
use crate::tokens::Estimate;

/// Takes notes with an engine that never answers.
fn stuck(deadline: Duration, cancelled: CancellationToken) -> Result<TurnNotes, AgentError> {
    let (engine, _never_read) = Handle::channel();
    let limits = Limits { max_message_bytes: 1 << 20, max_file_bytes: 1 << 20, max_items: 50 };
    let services = Arc::new(Services::new(engine, Arc::new(Estimate), limits));
    let job = Job { services, caller: Caller::Nobody, cancelled: Arc::new(cancelled) };
    let configured = AvailableModel::playing();
    let wish = WantedNotes { template: "freeform-chat".to_owned(), said: NotesOptions::default() };
    let outcome = outcome_of(NotesRun::new(&job, 1, &wish, &configured), deadline);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(outcome)
}

#[test]
fn what_takes_too_long_has_failed_where_it_was() {
    let managed = stuck(Duration::ZERO, CancellationToken::new()).ok().unwrap();
    assert_eq!(managed.view.status, "failed");
    assert_eq!(managed.view.step.as_deref(), Some("history"));
    assert_eq!(managed.view.reason.as_deref(), Some("note-taking took longer than 0 seconds"));
    assert!(!managed.has_view());
}

#[test]
fn what_nobody_wants_ends_at_once() {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert!(stuck(Duration::from_hours(1), cancelled).is_err());
}
