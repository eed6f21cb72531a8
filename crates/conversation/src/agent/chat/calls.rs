//! Tool calls: asks for permission, carries out the calls, and logs their results together with the
//! answer that made the calls.

use std::sync::Arc;
use std::time::Duration;

use super::begun::TurnState;
use super::log::answer_message;
use super::{ChatTurn, schema};
use crate::agent::tools::{CalledTool, OfferedTool, Outcome, ToolRequest, ToolTurn, cut};
use crate::agent::{AgentError, ApprovalQuestion, Decision, TurnEvent};
use crate::engine::{EngineError, NewMessage, SessionName, SessionSettings};
use crate::provider::chat::Response;
use crate::session::message::{Role, ToolCall};
use crate::wording::counted;

/// Maximum number of calls carried out for one answer; further calls are refused.
pub const MAX_CALLS: usize = 16;
/// Maximum time to wait for the user to allow a call; after that, the call is refused.
const PATIENCE: Duration = Duration::from_secs(600);

/// Returns why a call must not run, as text for the model: its arguments did not arrive whole, or
/// the tool's schema does not allow them.
fn refused_unread(
    called: &ToolCall,
    whole: &Response,
    tools: &[Arc<dyn OfferedTool>],
) -> Option<String> {
    if let Some(stop) = whole.stop.as_ref().filter(|stop| !stop.has_whole_calls()) {
        let why = stop.ending().unwrap_or_default();
        return Some(format!(
            "the call did not run, since the answer may lack a part of it: {why}"
        ));
    }
    let text = if called.arguments.trim().is_empty() { "{}" } else { &called.arguments };
    let arguments = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(arguments) if arguments.is_object() => arguments,
        Ok(_) => return Some("the arguments must be a JSON object; call again".to_owned()),
        Err(error) => {
            return Some(format!(
                "the arguments did not arrive as whole JSON: {error}; call again"
            ));
        }
    };
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Some("characters of the arguments were lost on the way; call again".to_owned());
    }
    let tool = tools.iter().find(|tool| tool.name() == called.name)?;
    let wrong = schema::violation(&tool.offered().schema, &arguments)?;
    Some(format!("the tool does not take these arguments: {wrong}; call again"))
}

impl ChatTurn {
    /// Returns the offered tools' names, descriptions and schemas as a text; `None` without tools.
    pub(super) fn schemas(&self) -> Option<String> {
        let offered: Vec<String> = self
            .tools
            .iter()
            .map(|tool| {
                let tool = tool.offered();
                format!("{} {} {}\n", tool.name, tool.description, tool.schema)
            })
            .collect();
        (!offered.is_empty()).then(|| offered.concat())
    }

    /// Returns the name of the tool that a call means. Some models write a space before the name, or
    /// a namespace such as `functions.`.
    pub(super) fn meant<'a>(&self, name: &'a str) -> &'a str {
        let is_tool = |name: &str| self.tools.iter().any(|tool| tool.name() == name);
        let last = name.trim().rsplit(['.', ':', '/']).next().unwrap_or(name);
        match !is_tool(name) && is_tool(last) {
            true => last,
            false => name,
        }
    }

    /// Carries out the calls of the answer `whole`, and logs the answer with the results.
    pub(super) async fn carry_out(
        &self,
        begun: &mut TurnState,
        whole: &Response,
    ) -> Result<(), AgentError> {
        let max_rounds = self.request.max_rounds;
        let mut results = Vec::with_capacity(whole.calls.len());
        let mut always = Vec::new();
        for (at, called) in whole.calls.iter().enumerate() {
            let result = match () {
                () if self.job.cancelled.is_cancelled() => {
                    (Outcome::Refused, "the turn was cancelled".to_owned())
                }
                () if begun.rounds >= max_rounds => (
                    Outcome::Refused,
                    format!(
                        "a turn may have at most {} with tools; answer without calling tools now",
                        counted(max_rounds, "request")
                    ),
                ),
                () if at >= MAX_CALLS => {
                    (Outcome::Refused, format!("an answer may make at most {MAX_CALLS} tool calls"))
                }
                () => match refused_unread(called, whole, &self.tools) {
                    Some(why) => (Outcome::Failed, why),
                    None => self.carry_out_one(called, &mut always).await,
                },
            };
            let (outcome, text) = result.clone();
            let (id, tool) = (called.id.clone(), called.name.clone());
            self.events.send(TurnEvent::ToolResult { id, tool, outcome, text });
            results.push(result);
        }
        self.log_results(begun, whole, results).await?;
        match self.job.cancelled.is_cancelled() {
            true => Err(EngineError::Cancelled.into()),
            false => Ok(()),
        }
    }

    async fn carry_out_one(
        &self,
        called: &ToolCall,
        always: &mut Vec<String>,
    ) -> (Outcome, String) {
        let offered = self.tools.iter().find(|tool| tool.name() == called.name);
        let Some(tool) = offered else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
            let known = match &names[..] {
                [] => "no tools are offered".to_owned(),
                [only] => format!("the only tool is {only}"),
                names => format!("the tools are {}", names.join(", ")),
            };
            return (Outcome::Failed, format!("there is no tool {}; {known}", called.name));
        };
        let asked = match tool.understand(called, &self.row).await {
            Ok(asked) => asked,
            Err(text) => return (Outcome::Failed, text),
        };
        let named = |names: &[String]| names.iter().any(|name| name == tool.name());
        let trusted = !tool.needs_approval()
            || named(&self.request.allow)
            || named(always)
            || tool.is_allowed(&self.row, &self.stored);
        let allowed = trusted && asked.outside().is_none() && !asked.reaches_secrets();
        if !allowed {
            match self.decision(&*asked, called).await {
                Ok(Decision::Once) => {}
                Ok(Decision::Always) => {
                    always.push(called.name.clone());
                    self.allow_always(&**tool).await;
                }
                Ok(Decision::Refuse) => {
                    return (Outcome::Refused, "the user did not allow the call".to_owned());
                }
                Err(reason) => return (Outcome::Refused, reason),
            }
        }
        let turn = ToolTurn { session: &self.row, managers: &self.managers };
        match asked.carry_out(&self.job, turn).await {
            Ok(text) => (Outcome::Done, cut(text)),
            Err(text) => (Outcome::Failed, cut(text)),
        }
    }

    /// Asks the user whether a call is allowed.
    ///
    /// # Errors
    /// The reason why there is no decision, as text for the model: nobody could be asked, nobody
    /// answered in time, or the turn was cancelled.
    async fn decision(
        &self,
        asked: &dyn ToolRequest,
        called: &ToolCall,
    ) -> Result<Decision, String> {
        let cancelled = || Err("the turn was cancelled".to_owned());
        tokio::select! {
            () = self.events.room() => {}
            () = self.given_up() => return cancelled(),
        }
        let approval = |number| ApprovalQuestion {
            number,
            id: called.id.clone(),
            tool: called.name.clone(),
            arguments: called.arguments.clone(),
            phrase: asked.phrase(),
            outside: asked.outside(),
        };
        let session = SessionName { id: self.row.id, name: self.row.name.clone(), version: 0 };
        let mut question = self.job.services.approvals.ask(session, approval);
        if !self.events.send(TurnEvent::Approval(approval(question.number))) {
            let why = "nobody could be asked, because nobody receives the events of this turn; \
                       call only tools that the user allowed beforehand";
            return Err(why.to_owned());
        }
        self.tell_of_approval(question.number, true).await;
        let decision = tokio::select! {
            decision = question.answered() => Ok(decision),
            () = self.given_up() => cancelled(),
            () = tokio::time::sleep(PATIENCE) => {
                Err(format!("nobody allowed the call within {} seconds", PATIENCE.as_secs()))
            }
        };
        self.tell_of_approval(question.number, false).await;
        decision
    }

    /// Tells all clients that a question was opened or closed.
    async fn tell_of_approval(&self, number: u64, is_open: bool) {
        let id = self.row.id;
        let told = self.job.ask(move |engine| engine.note_approval(id, number, is_open));
        if let Err(error) = told.await {
            tracing::warn!("cannot tell clients about permission question {number}: {error}");
        }
    }

    /// Records that a tool no longer needs permission in this session.
    async fn allow_always(&self, tool: &dyn OfferedTool) {
        let Some(name) = tool.allow(&self.row) else { return };
        let id = self.row.id;
        let noted = self.job.ask(move |engine| {
            let mut settings = SessionSettings::parse(&engine.row(id)?.settings)?;
            if settings.allowed_tools.contains(&name) {
                return Ok(());
            }
            settings.allowed_tools.push(name);
            engine.set_session_settings(id, &settings.print()?)
        });
        if let Err(error) = noted.await {
            tracing::warn!("cannot store that {} is always allowed: {error}", tool.name());
        }
    }

    /// Logs an answer and the results of its calls.
    async fn log_results(
        &self,
        begun: &mut TurnState,
        whole: &Response,
        results: Vec<(Outcome, String)>,
    ) -> Result<(), AgentError> {
        let counter = &*self.job.services.counter;
        let phase = self.request.phase;
        let mut unit = vec![NewMessage { phase, ..answer_message(whole, counter) }];
        for (called, (_, text)) in whole.calls.iter().zip(&results) {
            unit.push(NewMessage {
                phase,
                tool_call_id: Some(called.id.clone()),
                ..NewMessage::counted(Role::Tool, text, Vec::new(), counter)
            });
        }
        let numbers = self.log_unit(begun, unit).await?;
        begun.answer = numbers.first().copied();
        begun.ran.extend(whole.calls.iter().zip(results).map(|(called, (outcome, text))| {
            CalledTool {
                id: called.id.clone(),
                tool: called.name.clone(),
                arguments: called.arguments.clone(),
                outcome,
                text,
            }
        }));
        Ok(())
    }
}
