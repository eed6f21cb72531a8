//! Puts what a model answers into the log of the session.

use std::sync::Arc;

use super::super::error::{engine_error, provider_error};
use super::super::messages;
use super::super::present::entry;
use super::turn::{Begun, material};
use super::{Chat, broken};
use crate::engine::{Engine, ModelAnswer, NewMessage};
use crate::provider::ProviderError;
use crate::provider::chat::Whole;
use crate::session::message::Role;
use crate::tokens::Counter;
use crate::value::Value;
use crate::wire::message::WireError;

impl Chat {
    /// Ends the turn with what came of the answer, and gives its number.
    pub(super) async fn end_with(
        &self,
        begun: &mut Begun,
        whole: &Whole,
    ) -> Result<Option<u64>, WireError> {
        let answer = self.counted(begun, whole).await?;
        let (id, key) = (self.row.id, self.key.clone());
        let end = move |engine: &mut Engine| engine.end_turn_with(id, answer, key.as_deref());
        self.call.tools.engine.ask(end).await.map_err(engine_error)
    }

    /// What came of an answer, as it is stored. It may be long, and counting it take a while.
    async fn counted(&self, begun: &mut Begun, whole: &Whole) -> Result<ModelAnswer, WireError> {
        let asked = begun.asked.take();
        if whole.text.is_empty() && whole.calls.is_empty() {
            return Ok(ModelAnswer { messages: Vec::new(), asked });
        }
        let (tools, said) = (Arc::clone(&self.call.tools), whole.clone());
        let count = move || answer_message(&said, &*tools.counter);
        let counted = tokio::task::spawn_blocking(count).await.map_err(|_| broken())?;
        Ok(ModelAnswer { messages: vec![NewMessage { phase: self.phase, ..counted }], asked })
    }

    /// The error of an answer that failed, of which the beginning is kept.
    pub(super) async fn failed(
        &self,
        begun: &mut Begun,
        whole: Whole,
        error: ProviderError,
    ) -> WireError {
        // A call without a result would make every later request one that models refuse.
        let whole = Whole { calls: Vec::new(), ..whole };
        let kept = self.log(begun, &whole).await.ok().and_then(|numbers| numbers.last().copied());
        let mut wire = self.question_kept(begun, provider_error(&self.configured.name, &error));
        if let Value::Map(data) = &mut wire.data {
            data.push(entry("id", kept.map_or(Value::Nil, messages::name)));
        }
        wire
    }

    async fn log(&self, begun: &mut Begun, whole: &Whole) -> Result<Vec<u64>, WireError> {
        let (id, answer) = (self.row.id, self.counted(begun, whole).await?);
        let logged = self.call.tools.engine.ask(move |engine| engine.add_answer(id, answer));
        logged.await.map_err(engine_error)
    }

    /// Puts an answer and the results of its calls into the log at once: a unit is never there in
    /// part. Gives their numbers. Also reads what the next window is built from.
    pub(super) async fn log_unit(
        &self,
        begun: &mut Begun,
        unit: Vec<NewMessage>,
    ) -> Result<Vec<u64>, WireError> {
        let answer = ModelAnswer { messages: unit, asked: begun.asked.take() };
        let (id, configured) = (self.row.id, self.configured.clone());
        let logged = self.call.tools.engine.ask(move |engine| {
            let numbers = engine.add_answer(id, answer)?;
            Ok((numbers, material(engine, id, &configured)?))
        });
        let (numbers, material) = logged.await.map_err(engine_error)?;
        begun.material = Some(material);
        Ok(numbers)
    }
}

/// An answer as a message of the log.
pub(super) fn answer_message(whole: &Whole, counter: &dyn Counter) -> NewMessage {
    NewMessage::counted(Role::Assistant, &whole.text, whole.calls.clone(), counter)
}
