//! Turns of a chat with a model: beginning, answers, end.

use std::sync::Arc;

use super::super::{Engine, EngineError, Event};
use super::{NewMessage, SessionSettings};
use crate::session::message::{Message, Role};
use crate::store::session::{SessionRow, Spent};

/// A model's answer in the form that the session keeps.
#[derive(Debug, Clone, Default)]
pub struct ModelAnswer {
    /// Messages with the answer and the results of its tool calls; none if the answer is empty.
    pub messages: Vec<NewMessage>,
    /// Cost of the request, if the model began to answer.
    pub asked: Option<AskedWindow>,
}

/// The cost of sending a window to a model.
#[derive(Debug, Clone)]
pub struct AskedWindow {
    /// Number of the window's line in the usage log.
    pub line: u64,
    /// Number of tokens in the window by Contexture's own count.
    pub counted: u64,
    /// Usage as the provider reported it.
    pub spent: Spent,
}

/// Method name under which [`once`](Engine::once) records that the chat with a request key has its
/// complete answer.
const ENDED: &str = "chat-ended";

impl Engine {
    /// Begins a turn of a chat. Other turns of the same session are refused until this turn ends.
    /// The session is found as in [`find_session`](Self::find_session).
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], [`EngineError::SessionBusy`].
    pub fn begin_turn(
        &mut self,
        name: Option<&str>,
    ) -> Result<(SessionRow, SessionSettings), EngineError> {
        let (row, settings) = self.find_with_settings(name)?;
        if self.sessions.answering.contains(&row.id) {
            return Err(EngineError::SessionBusy(row.name));
        }
        self.sessions.answering.push(row.id);
        Ok((row, settings))
    }

    /// Returns whether a model is answering in a session.
    pub fn is_answering(&self, id: u64) -> bool {
        self.sessions.answering.contains(&id)
    }

    /// Ends a turn that failed or needs no answer.
    pub fn end_turn(&mut self, id: u64) {
        self.sessions.answering.retain(|answering| *answering != id);
    }

    /// Takes message `question` out of the conversation, so that it is not sent with the next
    /// question. The log keeps it. Changes nothing if the question is pinned, or has an answer or
    /// the beginning of one.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn withdraw(&mut self, id: u64, question: u64) -> Result<(), EngineError> {
        let session = self.session(id)?;
        let is_pinned = session.state().pinned.contains(question);
        let next = session.active().find(|said| said.number > question);
        let is_answered = next.is_some_and(|said| said.role != Role::User);
        if is_pinned || is_answered || !session.state().is_active(question) {
            return Ok(());
        }
        self.change_view(id, "chat", |state| {
            state.active.remove(question);
            state.pruned.remove(question);
        })?;
        self.session_changed(id, "chat")
    }

    /// Takes the last message out of the conversation if it is the user's and says the same as
    /// `content`: a question that has no answer is asked again.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn withdraw_same(&mut self, id: u64, content: &str) -> Result<(), EngineError> {
        let last = self.session(id)?.active().next_back();
        let same = last.filter(|said| said.role == Role::User && &*said.content == content);
        same.map(|said| said.number).map_or(Ok(()), |number| self.withdraw(id, number))
    }

    /// Returns message `question` to the conversation if it was taken back.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    fn bring_back(&mut self, id: u64, question: u64) -> Result<(), EngineError> {
        if self.session(id)?.state().is_active(question) {
            return Ok(());
        }
        self.change_view(id, "chat", |state| state.active.insert(question, question))
    }

    /// Returns the complete answer to message `question`, if the chat with this key has one.
    /// Otherwise, if a partial answer without tool calls comes last, takes it out of view, because
    /// the model will be asked again; the log keeps it. Brings the question back if it was taken
    /// back.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn answered(
        &mut self,
        id: u64,
        question: u64,
        key: &str,
    ) -> Result<Option<Arc<Message>>, EngineError> {
        self.bring_back(id, question)?;
        let ended = self.recall::<()>(ENDED, key)?.is_some();
        let session = self.session(id)?;
        let later = session.active().filter(|said| said.number > question);
        let run = later.take_while(|said| said.role != Role::User);
        let last = run.last().filter(|said| said.role == Role::Assistant);
        // An answer with tool calls is not the last one.
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

    /// Adds an answer to the log, records its cost, and learns from the token counts that the
    /// provider reported. Returns the numbers of the answer's messages.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn add_answer(&mut self, id: u64, answer: ModelAnswer) -> Result<Vec<u64>, EngineError> {
        if let Some(asked) = answer.asked {
            // The answer matters more than the record of its price.
            self.moments.windows.insert(id, self.counters.give_version());
            if let Err(error) = self.note_usage(asked) {
                tracing::warn!("cannot store the provider's token counts: {error}");
            }
        }
        if answer.messages.is_empty() {
            return Ok(Vec::new());
        }
        let said = self.append(id, answer.messages)?;
        self.session_changed(id, "chat")?;
        Ok(said.numbers)
    }

    /// Adds the last answer of a turn, records that the chat with this `key`, if any, is answered,
    /// and ends the turn, all in one step. Returns the number of the answer's last message; `None`
    /// if the answer is empty.
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

    /// Announces with an event that a turn of a session has started or stopped waiting for the
    /// user's approval.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn note_approval(
        &mut self,
        id: u64,
        approval: u64,
        is_open: bool,
    ) -> Result<(), EngineError> {
        let session = self.session_name(id)?;
        self.events.push(Event::ApprovalsChanged { session, approval, is_open });
        Ok(())
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
