//! Talking to a model: one turn from the user's words to the answer in the log.
//!
//! A turn is processed as by `process-turn`, its history is managed if it is to be, a window is
//! built, and the answer is streamed; calls of tools in it are carried out, and the model is asked
//! again. Once the user's message is in the log, whatever fails leaves it there, and what came of
//! an answer too.

mod calls;
mod fit;
mod log;
mod told;
mod turn;

use serde::Deserialize;

use self::turn::Begun;
use super::call::Call;
use super::embedding::{Embedded, embedded};
use super::error::{agent_error, engine_error, internal_error, param_error};
use super::messages::MessageParam;
use super::params::{Name, RequestKey, Switch, ToolNames, decode};
use super::tools::ContextTool;
use super::window::SectionTexts;
use super::{Step, manage};
use crate::agent::Configured;
use crate::curation::managed::{SaidSettings, directive};
use crate::curation::section::Sections;
use crate::engine::{Engine, NewMessage, SessionSettings};
use crate::session::message::Phase;
use crate::store::session::SessionRow;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ChatParams {
    session: Option<Name>,
    content: String,
    phase: Option<Phase>,
    provider: Option<Name>,
    model: Option<Name>,
    #[serde(default)]
    manage: Switch,
    template: Option<Name>,
    #[serde(default)]
    tools: ToolNames,
    #[serde(default)]
    allow: ToolNames,
    sections: Option<SectionTexts>,
    dry_run: Option<bool>,
    request_key: Option<RequestKey>,
}

/// What is asked for of a turn.
struct Asked {
    message: NewMessage,
    phase: Option<Phase>,
    sections: Sections,
    embedded: Embedded,
    /// By which a call that is made again is known.
    key: Option<String>,
    session: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    manage: Option<bool>,
    template: Option<String>,
    tools: Option<Vec<&'static ContextTool>>,
    allow: Vec<&'static ContextTool>,
}

/// A turn of a chat, with what the session's settings say of it.
struct Chat {
    call: Call,
    configured: Configured,
    row: SessionRow,
    message: NewMessage,
    phase: Option<Phase>,
    sections: Sections,
    embedded: Embedded,
    key: Option<String>,
    /// How the history is to be managed; `None` when it is not.
    manage: Option<manage::Wish>,
    /// What the model may call.
    tools: Vec<&'static ContextTool>,
    /// What it may call without being allowed to each time.
    allowed: Vec<&'static ContextTool>,
}

pub(super) fn chat(call: Call, params: Value) -> Result<Step, WireError> {
    let given: ChatParams = decode(params)?;
    if given.content.trim().is_empty() {
        return Err(param_error("content", "must say something"));
    }
    let counter = &call.counter();
    let message = MessageParam::of_user(given.content, given.phase).counted(counter)?;
    let asked = Asked {
        message,
        phase: given.phase,
        sections: given.sections.unwrap_or_default().counted(counter),
        embedded: Embedded::default(),
        key: given.request_key.map(|key| key.to_string()),
        session: given.session.map(|Name(name)| name),
        provider: given.provider.map(|Name(name)| name),
        model: given.model.map(|Name(name)| name),
        manage: given.manage.0,
        template: given.template.map(|Name(name)| name),
        tools: given.tools.0,
        allow: given.allow.0.unwrap_or_default(),
    };
    // What is wrong with the names is said before anything is done.
    let named = call.tools.providers.find(asked.provider.as_deref(), asked.model.as_deref());
    named.map_err(agent_error)?;
    let dry_run = given.dry_run.unwrap_or(false);
    // A dry run looks for no memories.
    let text = if dry_run { String::new() } else { asked.message.content.to_string() };
    let next = call.clone();
    embedded(&call, text, move |embedded| {
        let asked = Asked { embedded, ..asked };
        Ok(Step::AwaitEnd(Box::pin(async move {
            let outcome = match dry_run {
                true => Chat::to_rehearse(next, asked).await?.dry_run().await,
                // A task of its own: when the call is cancelled, it still keeps what had come.
                false => {
                    let turns = next.tools.turns.clone();
                    turns.spawn(hold(next, asked)).await.unwrap_or_else(|_| Err(broken()))
                }
            };
            outcome.map(Step::Done)
        })))
    })
}

fn broken() -> WireError {
    internal_error("chat; the server goes on")
}

/// The whole turn; other turns of the session are refused meanwhile.
async fn hold(call: Call, asked: Asked) -> Result<Value, WireError> {
    let (engine, session) = (call.tools.engine.clone(), asked.session.clone());
    let begun = engine.ask(move |engine| engine.begin_turn(session.as_deref())).await;
    let (row, settings) = begun.map_err(engine_error)?;
    let id = row.id;
    let outcome = match Chat::prepare(call, asked, row, &settings) {
        Ok(chat) => tokio::spawn(chat.turn()).await.unwrap_or_else(|_| Err(broken())),
        Err(error) => Err(error),
    };
    // A turn that succeeds has ended with its answer.
    if outcome.is_err() {
        let end = move |engine: &mut Engine| {
            engine.end_turn(id);
            Ok(())
        };
        engine.ask(end).await.map_err(engine_error)?;
    }
    outcome
}

impl Chat {
    async fn to_rehearse(call: Call, asked: Asked) -> Result<Self, WireError> {
        let session = asked.session.clone();
        let read = move |engine: &mut Engine| engine.find_with_settings(session.as_deref());
        let (row, settings) = call.tools.engine.ask(read).await.map_err(engine_error)?;
        Self::prepare(call, asked, row, &settings)
    }

    fn prepare(
        call: Call,
        asked: Asked,
        row: SessionRow,
        settings: &SessionSettings,
    ) -> Result<Self, WireError> {
        let (provider, model) = (asked.provider.as_deref(), asked.model.as_deref());
        let configured = call.tools.providers.chosen(provider, model, settings);
        let configured = configured.map_err(agent_error)?;
        let directed = directive(&asked.message.content).map(|(name, _)| name.to_owned());
        let managed = directed.is_some()
            || asked.manage.unwrap_or(asked.template.is_some() || settings.manage);
        let template = directed.or(asked.template);
        let manage = managed.then(|| manage::Wish {
            template: template.unwrap_or_else(|| settings.template_name().to_owned()),
            said: SaidSettings::default(),
        });
        let tools = asked.tools.unwrap_or_else(|| ToolNames::known(&settings.tools));
        let mut allowed = ToolNames::known(&settings.allowed_tools);
        allowed.extend(asked.allow);
        Ok(Self {
            call,
            configured,
            row,
            message: asked.message,
            phase: asked.phase,
            sections: asked.sections,
            embedded: asked.embedded,
            key: asked.key,
            manage,
            tools,
            allowed,
        })
    }

    /// Waits until nobody wants the turn any more: its caller, or a server that ends.
    async fn given_up(&self) {
        tokio::select! {
            () = self.call.cancelled.cancelled() => {}
            () = self.call.tools.ending.cancelled() => {}
        }
    }

    fn progress(&self, kind: &str, text: &str) {
        self.tell(kind, text, vec![]);
    }
}
