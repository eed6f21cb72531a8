//! Logs a model's answers in the session.

use std::sync::Arc;

use super::begun::TurnState;
use super::turn::material;
use super::{ChatTurn, TURN};
use crate::agent::{AgentError, BrokenOff, Job};
use crate::engine::{Engine, ModelAnswer, NewMessage, Versioned};
use crate::provider::ProviderError;
use crate::provider::chat::Response;
use crate::session::message::Role;
use crate::tokens::Counter;

impl ChatTurn {
    /// Logs the last answer, which ends the turn. Returns the number of the answer's message;
    /// `None` if the answer is empty and was not logged.
    pub(super) async fn end_with(
        &self,
        begun: &mut TurnState,
        whole: &Response,
    ) -> Result<Option<u64>, AgentError> {
        let answer = self.counted(begun, whole).await?;
        let (id, key) = (self.row.id, self.request.key.clone());
        let end = move |engine: &mut Engine| {
            let number = engine.end_turn_with(id, answer, key.as_deref())?;
            Ok((number, engine.version(&Versioned::Session(id))?))
        };
        let (number, version) = self.job.ask(end).await?;
        begun.version = version;
        Ok(number)
    }

    /// Returns an answer for the log with its tokens counted, which takes a while for a long one.
    async fn counted(
        &self,
        begun: &mut TurnState,
        whole: &Response,
    ) -> Result<ModelAnswer, AgentError> {
        let asked = begun.asked.take();
        if whole.text.is_empty() && whole.calls.is_empty() {
            return Ok(ModelAnswer { messages: Vec::new(), asked });
        }
        let (phase, said) = (self.request.phase, whole.clone());
        let count = move |job: &Job| answer_message(&said, &*job.services.counter);
        let counted = self.job.aside(TURN, count).await?;
        Ok(ModelAnswer { messages: vec![NewMessage { phase, ..counted }], asked })
    }

    /// Logs the part of an answer that arrived before `error`. Returns the error with the number of
    /// the logged message, or, if none was logged, with that of the turn's previous answer.
    pub(super) async fn failed(
        &self,
        begun: &mut TurnState,
        whole: Response,
        error: ProviderError,
    ) -> AgentError {
        // Models refuse every later request if a call has no result.
        let whole = Response { calls: Vec::new(), opaque: None, ..whole };
        let kept = self.log(begun, &whole).await.ok();
        let message = kept.and_then(|numbers| numbers.last().copied()).or(begun.answer);
        let (name, source) = (self.configured.name.clone(), Box::new(error));
        let source = AgentError::Provider { name, source };
        let (question, answer) = (begun.turn.message, Some(BrokenOff { message }));
        AgentError::InTurn { question, answer, source: Box::new(source) }
    }

    async fn log(&self, begun: &mut TurnState, whole: &Response) -> Result<Vec<u64>, AgentError> {
        let (id, answer) = (self.row.id, self.counted(begun, whole).await?);
        self.job.ask(move |engine| engine.add_answer(id, answer)).await
    }

    /// Logs an answer and the results of its calls as one unit, and reads the material for the next
    /// window. Returns the numbers of the messages.
    pub(super) async fn log_unit(
        &self,
        begun: &mut TurnState,
        unit: Vec<NewMessage>,
    ) -> Result<Vec<u64>, AgentError> {
        let answer = ModelAnswer { messages: unit, asked: begun.asked.take() };
        let (id, configured) = (self.row.id, self.configured.clone());
        let managers = self.request.managers.clone();
        let logged = self.job.ask(move |engine| {
            let numbers = engine.add_answer(id, answer)?;
            let row = engine.row(id)?;
            Ok((numbers, material(engine, row, &configured, managers)?))
        });
        let (numbers, material) = logged.await?;
        begun.material = Some(material);
        Ok(numbers)
    }
}

pub(super) fn answer_message(whole: &Response, counter: &dyn Counter) -> NewMessage {
    NewMessage {
        opaque: whole.opaque.clone().map(Arc::new),
        ..NewMessage::counted(Role::Assistant, &whole.text, whole.calls.clone(), counter)
    }
}
