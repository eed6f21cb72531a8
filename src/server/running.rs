//! The calls of one connection that wait or run, so that it can cancel them, and only it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use crate::value::Value;
use crate::wire::message::{Id, Request};

/// Number of calls at which those that are finished are swept out.
const SWEEP: usize = 1024;

/// The calls by their ids. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<Mutex<HashMap<Id, Weak<CancellationToken>>>>);

impl Running {
    /// Remembers a call for as long as somebody holds its token.
    pub(super) fn remember(&self, request: &Request, cancelled: &Arc<CancellationToken>) {
        let Some(id) = &request.id else { return };
        let mut calls = self.calls();
        if calls.len() >= SWEEP {
            calls.retain(|_, token| token.strong_count() > 0);
        }
        calls.insert(id.clone(), Arc::downgrade(cancelled));
    }

    /// Cancels a call; the answer says whether it was running.
    pub(super) fn cancel(&self, target: &Id) -> Value {
        let token = self.calls().remove(target).and_then(|token| token.upgrade());
        token.iter().for_each(|token| token.cancel());
        Value::Map(vec![("cancelled".into(), Value::Bool(token.is_some()))])
    }

    /// What a panic leaves behind is whole: every change is one insertion or removal.
    fn calls(&self) -> MutexGuard<'_, HashMap<Id, Weak<CancellationToken>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
