//! The requests of a turn, its reply, and its preview.

use std::sync::Arc;

use super::ChatTurn;
use super::begun::TurnState;
use crate::agent::pictures::show;
use crate::agent::summary::DescriptionOutcome;
use crate::agent::tools::CalledTool;
use crate::agent::window::Built;
use crate::agent::{AgentError, Embedded, TurnEvent, notes::TurnNotes};
use crate::context::render::report::{ItemFate, ItemVerdict};
use crate::curation::section::Section;
use crate::curation::window::Window;
use crate::engine::TurnDone;
use crate::files::templates::FindError;
use crate::provider::chat::{ChatMessage, OnWait, Request, Response, ShownAttachment, Stop, Usage};
use crate::session::message::Role;
use crate::template::Template;
use crate::tokens::model::LimitFrom;

/// The reply to a request for a turn: the answer and its costs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Reply {
    /// Name of the session.
    pub session: String,
    /// Number of the answer's message; `None` if the log has no answer.
    pub answer: Option<u64>,
    /// Number of the user's message.
    pub question: u64,
    /// Text of the answer.
    pub text: String,
    /// Reason why the answer ended; `None` if it is not known.
    pub stop: Option<Stop>,
    /// Why the answer is not whole, or is empty, as a phrase to show; `None` for a usual answer.
    pub ending: Option<String>,
    /// Tokens of all requests and answers of the turn, as the provider counted them.
    pub usage: Usage,
    /// Cost of the turn; `None` if a price or a count is not known, or if no model was asked.
    pub cost: Option<f64>,
    /// Name of the provider.
    pub provider: String,
    /// Name of the model.
    pub model: String,
    /// Tokens of the last window.
    pub window_tokens: u64,
    /// Items of the last window that the model did not see, or saw only in part.
    pub left_out: Vec<ItemVerdict>,
    /// Outcome of note-taking, if notes were asked for.
    pub managed: Option<TurnNotes>,
    /// Number of requests to the model, not counting retries with smaller windows.
    pub rounds: u64,
    /// True if the model used up its requests with tools, and was asked to answer without tool
    /// calls.
    pub is_out_of_rounds: bool,
    /// Tools that the model called.
    pub calls: Vec<CalledTool>,
    /// Outcome of processing the turn before the model was asked.
    pub turn: TurnDone,
    /// Outcome of asking a model to describe the messages that the turn's summary replaces, if a
    /// model was asked.
    pub described: Option<DescriptionOutcome>,
    /// Outcome of embedding the user's message.
    pub embedded: Embedded,
    /// Version of the session after the turn.
    pub version: u64,
}

/// A request that would be sent, with its window.
pub struct Preview {
    /// Name of the session.
    pub session: String,
    /// Name of the provider.
    pub provider: String,
    /// Name of the model.
    pub model: String,
    /// Maximum number of tokens that the model accepts, and the source of this number.
    pub limit: (u64, LimitFrom),
    /// The window.
    pub built: Built,
    /// The request in the form that would be sent.
    pub payload: String,
    /// Name of the template for note-taking, if notes would be taken. The window contains no new
    /// notes, since no model has written them yet.
    pub managed_by: Option<String>,
    /// The template itself, or the reason why it cannot be used.
    pub template: Option<Result<Template, FindError>>,
}

impl ChatTurn {
    /// Builds the request for a window.
    pub(super) fn request(&self, window: &Window, pictures: &[ShownAttachment]) -> Request {
        let spoken = window.parts.iter().filter(|part| part.section != Section::ToolSchemas);
        let messages: Vec<ChatMessage> = spoken
            .map(|part| ChatMessage {
                role: part.role,
                content: Arc::clone(&part.content),
                pictures: Vec::new(),
                tool_calls: part.tool_calls.clone(),
                tool_call_id: part.tool_call_id.clone(),
                opaque: part.opaque.as_deref().cloned(),
            })
            .collect();
        // If the strategy permits, the next request begins with the same messages up to the user's
        // new message. Between two requests of this turn, all messages stay the same.
        let last = messages.iter().rev().find(|said| said.role != Role::System);
        let stable = match last {
            Some(last) if last.role == Role::Tool => messages.len(),
            _ => messages.iter().rposition(|said| said.role == Role::User).unwrap_or(0),
        };
        let tools = self.tools.iter().map(|tool| tool.offered()).collect();
        let max_tokens = self.configured.answer_tokens();
        let events = Arc::clone(&self.events);
        let on_wait = OnWait::new(move |phrase| {
            events.send(TurnEvent::Retry(phrase.to_owned()));
        });
        let temperature = self.request.temperature;
        let mut request = Request {
            messages,
            stable,
            tools,
            max_tokens,
            temperature,
            output: self.request.output.clone(),
            on_wait,
            ..Request::default()
        };
        show(&mut request, pictures);
        request
    }

    /// Returns the reply of a turn that has ended.
    pub(super) fn reply(&self, begun: TurnState, whole: Response, answer: Option<u64>) -> Reply {
        let is_out_of_rounds = self.is_last_word(&begun);
        let in_part = begun.items.into_iter().filter(|verdict| verdict.fate != ItemFate::Kept);
        let ending = whole.stop.as_ref().and_then(Stop::ending).or_else(|| {
            let why = match (whole.text.trim().is_empty(), whole.reasoning.trim().is_empty()) {
                (false, _) => return None,
                _ if self.tools.is_empty() && !whole.calls.is_empty() => {
                    "the model called a tool, but may call none; turn tools on, or ask again"
                }
                (true, true) => "the model answered without any text; ask again",
                (true, false) => "the model ended within its reasoning; ask it to go on",
            };
            Some(why.to_owned())
        });
        Reply {
            ending,
            session: self.row.name.clone(),
            answer,
            question: begun.turn.message,
            text: whole.text,
            stop: whole.stop,
            usage: begun.usage,
            cost: begun.cost.filter(|_| begun.rounds > 0),
            provider: self.configured.name.clone(),
            model: self.configured.provider.model().to_owned(),
            window_tokens: begun.window_tokens,
            left_out: in_part.collect(),
            managed: begun.managed,
            is_out_of_rounds,
            rounds: begun.rounds,
            calls: begun.ran,
            described: begun.described,
            turn: begun.turn,
            version: begun.version,
            embedded: self.embedded.clone(),
        }
    }

    /// Returns the request that would be sent, without sending it. Changes nothing but live items,
    /// which are brought up to date.
    pub(super) async fn preview(self) -> Result<Preview, AgentError> {
        let managed_by = self.notes.as_ref().map(|wish| wish.template.clone());
        let template = match managed_by.clone() {
            Some(name) => {
                let folders = self.job.services.template_folders(self.row.project.clone())?;
                Some(self.job.aside("reading a template", move |_| folders.find(&name)).await?)
            }
            None => None,
        };
        let (model, built) = self.would_send().await?;
        let request = self.request(&built.window, &built.pictures);
        Ok(Preview {
            session: self.row.name.clone(),
            provider: self.configured.name.clone(),
            model: self.configured.provider.model().to_owned(),
            limit: (model.limit, model.limit_from),
            payload: self.configured.provider.payload(&request),
            built,
            managed_by,
            template,
        })
    }
}
