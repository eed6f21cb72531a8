//! Handles windows that the model's server refuses as too long: builds smaller windows, and reports
//! the refusal if no window is small enough.

use std::sync::Arc;

use super::ChatTurn;
use super::begun::{RefusedWindow, TurnState};
use super::turn::context;
use crate::agent::pictures::with_contents;
use crate::agent::{AgentError, TurnEvent};
use crate::curation::budget::usable;
use crate::curation::window::Window;
use crate::engine::EngineError;
use crate::provider::chat::{Request, Response, ToolChoice};
use crate::provider::{ErrorKind, Overflow, ProviderError};
use crate::session::message::{Message, Role};

/// Maximum number of smaller windows to try after a refusal.
const MAX_FITTINGS: u32 = 3;
/// Maximum number of smaller windows to try after a refusal that names no numbers.
const MAX_BLIND_FITTINGS: u32 = 1;
/// Size of the next window, as a share of the refused one, if the server names neither its limit
/// nor the excess.
const BLIND_SHARE: f64 = 0.5;
/// Maximum size of the next window, as a share of the refused one.
const LARGEST_SHARE: f64 = 0.9;
/// Factor by which a reported excess is multiplied, for servers that report only the number of
/// tokens above the limit.
const EXCESS_FACTOR: f64 = 1.25;

impl ChatTurn {
    /// Asks the model, and retries with smaller windows if the first is too long for the model.
    pub(super) async fn answer(&self, begun: &mut TurnState) -> Result<Response, AgentError> {
        begun.rounds += 1;
        let mut fittings = 0;
        loop {
            let built = self.window(begun).await;
            let is_refused = begun.refused.is_some();
            let (window, line) =
                built.map_err(|error| match begun.is_budget_set && !is_refused {
                    true => error,
                    false => {
                        let refused = begun.refused.as_ref().map(|refused| refused.error.clone());
                        self.unfit(
                            refused.unwrap_or_else(|| self.expected_refusal(begun.limit)),
                            error,
                        )
                    }
                })?;
            let mut whole = Response::default();
            let choice = match (self.is_last_word(begun), begun.rounds) {
                (true, _) => ToolChoice::None,
                // A model that always has to call a tool would never end.
                (false, 1) => self.request.choice.clone(),
                (false, _) => ToolChoice::Auto,
            };
            let request = self.request(&window, &begun.pictures);
            let request = with_contents(&self.job, request).await?;
            let request = Request { choice, ..request };
            let outcome = self.stream(&request, &mut whole).await;
            let nothing_came = whole == Response::default();
            if outcome.is_ok() || !nothing_came {
                self.report(begun, line, &window, &whole);
            }
            let Err(error) = outcome else { return Ok(whole) };
            let too_long = error.kind == ErrorKind::ContextTooLong && nothing_came;
            let most = match &error.overflow {
                Some(_) => MAX_FITTINGS,
                None => MAX_BLIND_FITTINGS,
            };
            if !too_long || fittings >= most {
                return Err(self.failed(begun, whole, error).await);
            }
            fittings += 1;
            let why = format!("{}: {}; trying a smaller window", error.provider, error.what);
            self.events.send(TurnEvent::Retry(why));
            self.learn_that_too_long(&window, &error).await;
            let max_tokens = self.fitted(window.tokens, error.overflow.as_deref());
            begun.refused = Some(RefusedWindow { error, max_tokens });
        }
    }

    /// Returns the maximum number of tokens in the next window after a window of `counted` tokens
    /// was refused.
    fn fitted(&self, counted: u64, overflow: Option<&Overflow>) -> u64 {
        let share = |share: f64| (counted as f64 * share) as u64;
        let Overflow { limit, input, output, excess } = overflow.copied().unwrap_or_default();
        let fitted = match (limit, excess) {
            (Some(limit), _) => {
                let usable = usable(limit);
                let beside = limit.saturating_sub(output.unwrap_or(0)).max(limit / 2);
                let ratio = input.map_or(1.0, |input| input as f64 / counted.max(1) as f64);
                (usable.min(beside) as f64 / ratio.max(f64::EPSILON)) as u64
            }
            (None, Some(excess)) => {
                counted.saturating_sub((excess as f64 * EXCESS_FACTOR).ceil() as u64)
            }
            (None, None) => share(BLIND_SHARE),
        };
        fitted.min(share(LARGEST_SHARE))
    }

    /// Records what the refusal reveals: the model's limit, and how the server counts tokens.
    async fn learn_that_too_long(&self, window: &Window, error: &ProviderError) {
        let overflow = error.overflow.as_deref().copied().unwrap_or_default();
        let (model, counted) = (self.configured.provider.model().to_owned(), window.tokens);
        if let Some(limit) = overflow.limit {
            self.configured.rooms.refused(&model, limit);
        }
        if let Some(input) = overflow.input {
            self.configured.rooms.compared(&model, counted, input);
        }
        let learned = self.job.ask(move |engine| {
            let costs = engine.costs(Some(&model))?;
            let least =
                || Some(costs.model.limit).filter(|limit| costs.model.known && counted < *limit);
            if let Some(reported) = overflow.input.or_else(least) {
                engine.report_usage(&model, counted, reported)?;
            }
            Ok(())
        });
        if let Err(error) = learned.await {
            tracing::warn!("cannot record that a window was too long: {error}");
        }
    }

    /// Fails if no window can hold the question, so that this is said before the question is
    /// stored. Does not compute what notes would leave out.
    pub(super) async fn expect_room(&self) -> Result<(), AgentError> {
        if self.notes.is_some() {
            return Ok(());
        }
        let (id, configured, max_tokens) =
            (self.row.id, self.configured.clone(), self.request.max_tokens);
        let asked = self.request.key.as_ref().map(|key| format!("chat {key}"));
        let (question, sections) = (self.request.message.tokens, self.request.sections.clone());
        // A text has at most as many tokens as bytes.
        let schemas = self.schemas().map_or(0, |schemas| schemas.len() as u64);
        let checked = self.job.ask(move |engine| {
            let row = engine.row(id)?;
            let context = context(engine, row, &configured, max_tokens)?;
            let is_set = context.settings.turn.max_tokens.is_some();
            let limit = context.costs.model.limit;
            let is_stored = match &asked {
                Some(name) => engine.recorded(name)?.is_some(),
                None => false,
            };
            let cost = |tokens: u64| context.costs.measure.message(tokens);
            let stays = |said: &&Arc<Message>| said.pinned || said.role == Role::System;
            let stay = engine.session(id)?.offered().filter(stays).map(|said| cost(said.tokens));
            let needed = stay.sum::<u64>() + cost(question) + cost(schemas);
            let needed = needed + sections.tokens(&context.costs.measure);
            Ok((is_stored || needed <= context.max_tokens(), is_set, limit))
        });
        match checked.await? {
            (true, ..) => Ok(()),
            (false, is_set, limit) => match self.would_send().await {
                Err(error) if !is_set => Err(self.unfit(self.expected_refusal(limit), error)),
                built => built.map(|_| ()),
            },
        }
    }

    /// Turns the error for a window that cannot be made small enough into
    /// [`AgentError::NeverFits`], with `source` as the reason. Returns any other error unchanged.
    fn unfit(&self, mut source: ProviderError, error: AgentError) -> AgentError {
        let error = match error {
            AgentError::Engine(EngineError::BudgetTooSmall(error)) => error,
            error => return error,
        };
        let needed = error.needed;
        source.what =
            format!("{}; the parts that cannot be left out need {needed} tokens", source.what);
        source.model = self.configured.provider.model().to_owned();
        let name = self.configured.name.clone();
        AgentError::NeverFits { name, source: Box::new(source), needed, parts: error.parts }
    }

    /// Creates the error that stands in for a refusal if the server has not refused a window.
    fn expected_refusal(&self, limit: u64) -> ProviderError {
        ProviderError {
            kind: ErrorKind::ContextTooLong,
            provider: self.configured.name.clone(),
            model: String::new(),
            what: format!("the model accepts only {limit} tokens"),
            retry_after: None,
            overflow: None,
        }
    }
}
