//! A turn of a chat with a model: it begins, its answers come in, and it ends.

use std::sync::Arc;

use super::super::{Engine, EngineError};
use super::{NewMessage, SessionSettings};
use crate::session::message::{Message, Role};
use crate::store::session::{SessionRow, Spent};

/// The answer of a model, as far as the session keeps it.
#[derive(Debug, Clone, Default)]
pub struct ModelAnswer {
    /// The answer itself and the results of the tools that it called. Empty when it says nothing.
    pub messages: Vec<NewMessage>,
    /// The cost of asking, if the model got as far as to answer.
    pub asked: Option<AskedWindow>,
}

/// The cost of asking a model with a window.
#[derive(Debug, Clone)]
pub struct AskedWindow {
    /// Number of the window's line in the log of usage.
    pub line: u64,
    /// Number of tokens that the window was counted as.
    pub counted: u64,
    /// The provider's figures.
    pub spent: Spent,
}

/// Names the note that a chat with a request key has its whole answer.
const ENDED: &str = "chat-ended";

impl Engine {
    /// Begins a turn of a chat: until it ends, others of the same session are refused. The session
    /// is found as by [`find_session`](Self::find_session).
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], [`EngineError::SessionBusy`].
    pub fn begin_turn(
        &mut self,
        name: Option<&str>,
    ) -> Result<(SessionRow, SessionSettings), EngineError> {
        let (row, settings) = self.find_with_settings(name)?;
        if self.sessions.answering.contains(&row.id) {
            return Err(EngineError::SessionBusy { session: row.name });
        }
        self.sessions.answering.push(row.id);
        Ok((row, settings))
    }

    /// Ends a turn of a chat that failed or needs no answer.
    pub fn end_turn(&mut self, id: u64) {
        self.sessions.answering.retain(|answering| *answering != id);
    }

    /// Returns the whole answer to message `question` if the chat that was called with this key has
    /// it already. The beginning of an answer is taken out of view, because the whole will be asked
    /// for; the log keeps it.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn answered(
        &mut self,
        id: u64,
        question: u64,
        key: &str,
    ) -> Result<Option<Arc<Message>>, EngineError> {
        let ended = self.recall::<()>(ENDED, key)?.is_some();
        let session = self.session(id)?;
        let later = session.active().filter(|said| said.number > question);
        let run = later.take_while(|said| said.role != Role::User);
        let last = run.last().filter(|said| said.role == Role::Assistant);
        // An answer that calls tools is not the last one.
        let Some(last) = last.filter(|said| said.tool_calls.is_empty()).cloned() else {
            return Ok(None);
        };
        if ended {
            return Ok(Some(last));
        }
        if session.state().is_in_view(last.number) {
            self.change_view(id, "chat", |state| state.pruned.insert(last.number, last.number))?;
            self.session_changed(id, "chat")?;
        }
        Ok(None)
    }

    /// Adds an answer to the log, notes what asking for it cost, and learns from the tokens that
    /// the provider counted. Returns the numbers of its messages.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn add_answer(&mut self, id: u64, answer: ModelAnswer) -> Result<Vec<u64>, EngineError> {
        if let Some(asked) = answer.asked {
            // An answer counts more than its price.
            if let Err(error) = self.note_usage(asked) {
                tracing::warn!("what the provider reported was not kept: {error}");
            }
        }
        match answer.messages.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.add_messages(id, answer.messages)?.numbers),
        }
    }

    /// Adds the last answer of a turn, notes that the chat with this key has it, and ends the turn:
    /// all of it is kept, or nothing. Returns the number of the answer, if it says something.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn end_turn_with(
        &mut self,
        id: u64,
        answer: ModelAnswer,
        key: Option<&str>,
    ) -> Result<Option<u64>, EngineError> {
        let numbers = self.add_answer(id, answer)?;
        if key.is_some() {
            self.once(ENDED, key, |_| Ok(()))?;
        }
        self.end_turn(id);
        Ok(numbers.last().copied())
    }

    fn note_usage(&mut self, asked: AskedWindow) -> Result<(), EngineError> {
        let AskedWindow { line, counted, spent } = asked;
        if let Some(store) = self.store.note()? {
            store.add_spent(line, &spent)?;
        }
        if let Some(reported) = spent.input {
            self.report_usage(&spent.model, counted, reported)?;
        }
        Ok(())
    }
}
