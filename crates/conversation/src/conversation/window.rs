//! Windows for programs that call the model themselves.

use std::fmt;
use std::sync::Arc;

use super::{Conversation, Error};
use crate::agent::Later;
use crate::agent::window::{Built, Purpose, build_aside};
use crate::curation::config::TurnConfig;
use crate::curation::section::CountedText;
use crate::curation::window::Window;
use crate::engine::Engine;
use crate::session::message::Phase;

/// A window that has not been built yet. Await it for the [`Window`].
#[must_use = "a window is not built until it is awaited"]
pub struct WindowRequest {
    conversation: Conversation,
    purpose: Purpose,
}

impl fmt::Debug for WindowRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("WindowRequest");
        shown.field("max_tokens", &self.purpose.max_tokens).finish_non_exhaustive()
    }
}

impl WindowRequest {
    pub(super) fn new(conversation: Conversation) -> Self {
        let sections = conversation.inner.sections.clone();
        Self { conversation, purpose: Purpose { sections, ..Purpose::default() } }
    }

    /// Sets the maximum number of tokens in the window.
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.purpose.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the phase of the work, which decides which sections the window has.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.purpose.phase = Some(phase);
        self
    }

    /// Sets the current question, for strategies that use it.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.purpose.query = Some(query.into());
        self
    }

    async fn build(self) -> Result<Window, Error> {
        let Self { conversation, mut purpose } = self;
        TurnConfig { max_tokens: purpose.max_tokens, ..TurnConfig::default() }.check()?;
        let (job, id) = (conversation.inner.job(), conversation.inner.id);
        let read = |engine: &mut Engine, context| engine.material(context);
        let material = conversation.ask_in_context(read).await?;
        let grounding = conversation.inner.shared.grounding().clone();
        if !grounding.is_empty() {
            purpose.sections.grounding = Some(CountedText::new(grounding, &job.counter()));
        }
        let built = build_aside(&job, "building a window", material, purpose).await?;
        let Built { window, items, .. } = built;
        let window = Arc::new(window);
        let noted = Arc::clone(&window);
        job.ask(move |engine| engine.note_window(id, &noted, items)).await?;
        Ok(Arc::unwrap_or_clone(window))
    }
}

impl IntoFuture for WindowRequest {
    type Output = Result<Window, Error>;
    type IntoFuture = Later<'static, Self::Output>;

    /// Builds the window.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.build())
    }
}
