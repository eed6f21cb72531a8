//! What is called before a request waits.

use std::sync::Arc;

/// A callback that receives a phrase to show to the user when a request must wait: the reason and
/// the length of the wait. All callbacks compare equal, so that a callback never makes two requests
/// differ.
#[derive(Clone, Default)]
pub struct OnWait(Option<Arc<Hear>>);

/// The function that an [`OnWait`] calls.
type Hear = dyn Fn(&str) + Send + Sync;

impl OnWait {
    /// Creates a callback that calls `hear`.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// Calls the callback, if there is one.
    pub(super) fn tell(&self, phrase: &str) {
        if let Some(hear) = &self.0 {
            hear(phrase);
        }
    }
}

impl std::fmt::Debug for OnWait {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OnWait")
    }
}

impl PartialEq for OnWait {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
