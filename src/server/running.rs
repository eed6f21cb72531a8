//! Registry of one connection's queued and running calls, so that the connection can cancel its own
//! calls and no others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use crate::wire::message::{Request, RequestId};

/// Number of entries at which the removal of finished calls begins.
const SWEEP: usize = 1024;

/// Calls by id. Clones share the same registry.
#[derive(Clone, Default)]
pub(super) struct RunningCalls(Arc<Mutex<HashMap<RequestId, Weak<CancellationToken>>>>);

impl RunningCalls {
    /// Registers a call for as long as its token is alive.
    pub(super) fn remember(&self, request: &Request, cancelled: &Arc<CancellationToken>) {
        let Some(id) = &request.id else { return };
        let mut calls = self.calls();
        if calls.len() >= SWEEP {
            calls.retain(|_, token| token.strong_count() > 0);
        }
        calls.insert(id.clone(), Arc::downgrade(cancelled));
    }

    /// Cancels a call. Returns whether it was queued or running.
    pub(super) fn cancel(&self, target: &RequestId) -> bool {
        let token = self.calls().remove(target).and_then(|token| token.upgrade());
        token.iter().for_each(|token| token.cancel());
        token.is_some()
    }

    /// Locks the registry. A panic cannot leave it inconsistent: each change is one insertion or
    /// removal.
    fn calls(&self) -> MutexGuard<'_, HashMap<RequestId, Weak<CancellationToken>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
