//! What a client is told of a turn: while it goes on, at its end, and what would be sent.

use std::sync::Arc;

use super::super::call::Call;
use super::super::error::engine_error;
use super::super::manage::Managed;
use super::super::present::{entry, figure, keyword, money};
use super::super::window::verdicts;
use super::super::{messages, templates, turn};
use super::turn::Opaque;
use super::{Begun, Chat};
use crate::agent::window::Built;
use crate::context::render::report::{Fate, Verdict};
use crate::curation::managed::without_directive;
use crate::curation::section::Section;
use crate::curation::window::Window;
use crate::provider::chat::{OnWait, Request, Said, Stop, Whole};
use crate::session::message::{Message, Role};
use crate::value::Value;
use crate::wire::message::WireError;

impl Chat {
    /// Tells the client something while the turn goes on. Whether it hears of it: who sent no id
    /// does not.
    pub(super) fn tell(&self, kind: &str, text: &str, more: Vec<(Box<str>, Value)>) -> bool {
        tell(&self.call, kind, text, more)
    }

    /// What is asked of the model with a window.
    pub(super) fn request(&self, window: &Window, opaque: &Opaque) -> Request {
        let spoken = window.parts.iter().filter(|part| part.section != Section::ToolSchemas);
        let messages: Vec<Said> = spoken
            .map(|part| Said {
                role: part.role,
                content: Arc::clone(&part.content),
                tool_calls: part.tool_calls.clone(),
                tool_call_id: part.tool_call_id.clone(),
                opaque: part.message.and_then(|number| opaque.get(&number)).cloned(),
            })
            .collect();
        // What comes before the user's new message is the same in the next request, as far as the
        // strategy lets it be; and so is all of it while calls are carried out.
        let last = messages.iter().rev().find(|said| said.role != Role::System);
        let stable = match last {
            Some(last) if last.role == Role::Tool => messages.len(),
            _ => messages.iter().rposition(|said| said.role == Role::User).unwrap_or(0),
        };
        let tools = self.tools.iter().map(|tool| tool.offered()).collect();
        let max_tokens = self.configured.answer_tokens();
        let call = self.call.clone();
        let on_wait = OnWait::new(move |phrase| {
            tell(&call, "retry", phrase, vec![]);
        });
        Request { messages, stable, tools, max_tokens, on_wait, ..Request::default() }
    }

    /// The answer to the call.
    pub(super) fn told(&self, begun: &Begun, whole: &Whole, answer: Option<u64>) -> Value {
        let count = |count: Option<u64>| count.map_or(Value::Nil, figure);
        let stop = match &whole.stop {
            Some(Stop::Finished) | None => "stop",
            Some(Stop::Length) => "length",
            Some(Stop::Calls) => "tool-calls",
            Some(Stop::Refused) => "refused",
            Some(Stop::Other(_)) => "other",
        };
        let usage = Value::Map(vec![
            entry("input", count(begun.usage.input)),
            entry("output", count(begun.usage.output)),
            entry("cached", count(begun.usage.cache_read)),
        ]);
        let mut turn = turn::turn_map(&begun.turn);
        turn.extend(self.embedded.outcome.clone().map(|outcome| entry("embedding", outcome)));
        Value::Map(vec![
            entry("session", &*self.row.name),
            entry("id", answer.map_or(Value::Nil, messages::name)),
            entry("question", messages::name(begun.turn.message)),
            entry("content", &*whole.text),
            entry("stop-reason", keyword(stop)),
            entry("usage", usage),
            entry("cost", begun.cost.filter(|_| begun.rounds > 0).map_or(Value::Nil, money)),
            entry("provider", &*self.configured.name),
            entry("model", self.configured.provider.model()),
            entry("window-tokens", figure(begun.window_tokens)),
            entry("left-out", left_out(&begun.items)),
            entry("management", begun.managed.as_ref().map_or(Value::Nil, Managed::told)),
            entry("rounds", figure(begun.rounds)),
            entry(
                "tool-calls",
                Value::List(begun.ran.iter().map(super::calls::Ran::told).collect()),
            ),
            entry("turn", Value::Map(turn)),
        ])
    }

    /// What would be sent, without sending or changing anything.
    pub(super) async fn dry_run(self) -> Result<Value, WireError> {
        let (id, message) = (self.row.id, self.message.clone());
        let managed_by = self.manage.as_ref().map(|wish| wish.template.clone());
        let origin = match managed_by.clone() {
            Some(name) => templates::origin(&self.call, self.row.project.clone(), name).await?,
            None => Vec::new(),
        };
        self.configured.find_limit().await;
        let mut material = self.read_material().await?;
        let (limit, limit_from) = (material.costs.model.limit, material.costs.model.limit_from);
        let length = self.call.tools.engine.ask(move |engine| Ok(engine.session(id)?.length()));
        let number = length.await.map_err(engine_error)? + 1;
        let said: Message = message.into_message(number, 0);
        material.messages.push(without_directive(&Arc::new(said)));
        let Built { window, items } = self.build_with(material, String::new(), None).await?;
        let payload = self.configured.provider.payload(&self.request(&window, &Opaque::new()));
        let parts = window.parts.iter().map(|part| {
            let mut map = vec![
                entry("section", keyword(part.section.name())),
                entry("role", keyword(part.role.name())),
                entry("tokens", figure(part.tokens)),
            ];
            map.extend(part.message.map(|number| entry("id", messages::name(number))));
            Value::Map(map)
        });
        let mut map = vec![
            entry("session", &*self.row.name),
            entry("provider", &*self.configured.name),
            entry("model", self.configured.provider.model()),
            entry("tokens", figure(window.tokens)),
            entry("limit", figure(limit)),
            entry("limit-from", keyword(limit_from.name())),
            entry("parts", Value::List(parts.collect())),
            entry("items", verdicts(&items)),
            entry("payload", payload),
            // What a manager would make of the history nobody knows before it is asked.
            entry("managed-by", managed_by.map_or(Value::Nil, Value::from)),
        ];
        map.extend(origin);
        Ok(Value::Map(map))
    }
}

fn tell(call: &Call, kind: &str, text: &str, more: Vec<(Box<str>, Value)>) -> bool {
    let Some(id) = call.id.clone() else { return false };
    let mut params =
        vec![entry("id", Value::from(id)), entry("kind", keyword(kind)), entry("text", text)];
    params.extend(more);
    call.peer.progress(Value::Map(params))
}

/// The items of which the model does not see all, and why.
fn left_out(items: &[Verdict]) -> Value {
    let in_part = items.iter().filter(|verdict| verdict.fate != Fate::Kept).cloned();
    verdicts(&in_part.collect::<Vec<_>>())
}
