//! Registry of one connection's queued and running calls, so that the connection can cancel its own
//! calls and no others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use crate::wire::message::{CallRequest, RequestId};

/// Calls by id. Clones share the same registry.
#[derive(Clone, Default)]
pub(super) struct RunningCalls(Arc<Mutex<HashMap<RequestId, Weak<CancellationToken>>>>);

impl RunningCalls {
    /// Registers a call.
    pub(super) fn remember(&self, request: &CallRequest, cancelled: &Arc<CancellationToken>) {
        let Some(id) = &request.id else { return };
        self.calls().insert(id.clone(), Arc::downgrade(cancelled));
    }

    /// Removes a call that is answered, unless a later call took its id. An id may be as long as a
    /// message, so that none is kept for longer.
    pub(super) fn forget(&self, id: &RequestId, cancelled: &Arc<CancellationToken>) {
        let mut calls = self.calls();
        if calls.get(id).is_some_and(|token| std::ptr::eq(token.as_ptr(), Arc::as_ptr(cancelled))) {
            calls.remove(id);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn a_call_is_known_until_it_is_answered() {
        let running = RunningCalls::default();
        let begin = |id: &str| {
            let (id, params) = (Some(RequestId::Str(id.to_owned())), Value::Nil);
            let cancelled = Arc::new(CancellationToken::new());
            running.remember(&CallRequest { id, method: "ping".to_owned(), params }, &cancelled);
            cancelled
        };
        let id = |id: &str| RequestId::Str(id.to_owned());
        for number in 0..2_000 {
            let (name, cancelled) = (number.to_string(), begin(&number.to_string()));
            running.forget(&id(&name), &cancelled);
        }
        assert_eq!(running.calls().len(), 0);
        let (first, second) = (begin("same"), begin("same"));
        running.forget(&id("same"), &first);
        assert!(running.cancel(&id("same")) && second.is_cancelled() && !first.is_cancelled());
        assert!(!running.cancel(&id("same")));
    }
}
