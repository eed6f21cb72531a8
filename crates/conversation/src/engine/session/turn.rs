//! Processes a turn: adds the user's message, finds memories, summarizes, measures the quality of
//! the context, and takes a checkpoint or rolls back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::memory::{Grounded, Query, memories_for};
use super::super::{Costs, Engine, EngineError};
use super::checkpoint::RolledBack;
use super::curate::{Keep, Summarized, ahead, most_said_tokens, references};
use super::messages::NewMessage;
use super::settings::SessionContext;
use crate::curation::config::TurnConfig;
use crate::curation::quality::{Observed, Quality};
use crate::curation::section::Section;
use crate::curation::summary::{Ahead, Summarizer};
use crate::curation::unit::History;
use crate::memory::grounding::Grounding;
use crate::session::message::{Message, Role};
use crate::session::state::Learned;
use crate::store::session::SessionRow;

/// Number of consecutive unhelpful attempts to summarize after which the next attempt must wait.
const FUTILE_AT_MOST: u64 = 2;
/// Number of turns from the last unhelpful attempt to the next attempt.
const TURNS_BACKED_OFF: u64 = 5;
/// Minimum share of the view that a helpful summary removes. The view must also be small enough
/// afterwards.
const HELPFUL: f64 = 0.05;

/// Input of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTurn {
    /// Name of the method that changes the session, for its event.
    pub method: &'static str,
    /// The user's message.
    pub message: NewMessage,
    /// Coherence of the last answer, from 0 to 1, if it was rated.
    pub coherence: Option<f64>,
    /// Name of the embedding model and its vector for the message, if there is one.
    pub vector: Option<(String, Vec<f32>)>,
}

/// Result of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnDone {
    /// Number of the user's message.
    pub message: u64,
    /// Numbers of the memories that match the message, best first.
    pub grounding_used: Vec<u64>,
    /// Relevance of each memory in `grounding_used`, from 0 to 1.
    pub relevance_scores: Vec<f64>,
    /// Text of the memories in `grounding_used` for the window; empty if no memory matches.
    pub grounding: String,
    /// Summary, if one was made.
    pub summarized: Option<Summarized>,
    /// Reason why no summary was made although the view is too large.
    pub not_summarized: Option<String>,
    /// Number of the checkpoint, if one was taken.
    pub checkpoint: Option<u64>,
    /// Rollback, if one was made because the quality was too low.
    pub rolled_back: Option<RolledBack>,
    /// Reason why there was no rollback although the quality is too low.
    #[serde(default)]
    pub not_rolled_back: Option<String>,
    /// Quality of the context, from 0 to 1.
    pub quality_score: f64,
    /// Parts of the quality: name, value, weight and reason.
    pub quality_parts: Vec<(String, f64, f64, String)>,
    /// Number of tokens in view, including the grounding.
    pub token_count: u64,
    /// Number of turns in the session.
    pub turn: u64,
}

impl Engine {
    /// Processes a turn. Appends the message, finds matching memories, summarizes if the view is
    /// too large, and computes the quality. If the quality is too low and the settings say so,
    /// rolls back to the last checkpoint before the previous turn, but keeps the message in view.
    /// Otherwise takes a checkpoint of the conversation before the turn, if one is due.
    ///
    /// # Errors
    /// Returns errors of these steps. A failed summary is not an error; the result reports it.
    pub fn process_turn(
        &mut self,
        context: &SessionContext,
        turn: NewTurn,
        summarizer: &dyn Summarizer,
    ) -> Result<TurnDone, EngineError> {
        let SessionContext { row, settings, costs, .. } = context;
        let (id, config, max_tokens) = (row.id, settings.turn, context.max_tokens());
        let before = self.session(id)?;
        let (position, turns_before) = (before.length(), before.turns());
        let last_turn = before.turn_numbers().last();
        let content = Arc::clone(&turn.message.content);
        let said = self.append(id, vec![turn.message])?.numbers;
        let message = said.last().copied().unwrap_or_default();
        if let Some((model, vector)) = &turn.vector {
            self.set_message_vector((id, message), model, vector)?;
        }
        let grounded = self.ground_turn(row, &content, turn.vector, &config)?;
        let (summarized, not_summarized) =
            self.keep_small(context, &grounded.grounding, summarizer)?;
        self.observe(id, grounded.grounding.relevance(), turn.coherence)?;
        let mut token_count = self.view_tokens(id, costs, &grounded.grounding)?;
        let mut quality = self.quality(id, max_tokens, token_count)?;
        let is_poor = config.auto_rollback && quality.score < config.quality_threshold;
        let due = turns_before.saturating_sub(self.session(id)?.state().checkpoint_turn)
            >= config.checkpoint_interval;
        let checkpoint = match settings.versioning && config.auto_checkpoint && due && !is_poor {
            true => {
                let message = format!("Auto checkpoint at turn {turns_before}");
                Some(self.checkpoint_at(id, position, &message, true)?)
            }
            false => None,
        };
        let (rolled_back, not_rolled_back) = match is_poor {
            true => self.leave_last_turn(id, settings.versioning, last_turn, message)?,
            false => (None, None),
        };
        if rolled_back.is_some() {
            self.observe(id, grounded.grounding.relevance(), None)?;
            token_count = self.view_tokens(id, costs, &grounded.grounding)?;
            quality = self.quality(id, max_tokens, token_count)?;
        }
        self.session_changed(id, turn.method)?;
        Ok(TurnDone {
            message,
            relevance_scores: grounded.grounding.relevances,
            grounding_used: grounded.grounding.ids,
            grounding: grounded.grounding.text,
            summarized,
            not_summarized,
            checkpoint,
            rolled_back,
            not_rolled_back,
            quality_score: quality.score,
            quality_parts: quality_parts(&quality),
            token_count,
            turn: self.session(id)?.turns(),
        })
    }

    /// Returns the input of the summary that a turn with this message would make now, so that a
    /// model can describe it. Returns `None` if the turn would make no summary; memories that it
    /// would find are not counted.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn turn_ahead(
        &mut self,
        context: &SessionContext,
        message: &NewMessage,
    ) -> Result<Option<Ahead>, EngineError> {
        let SessionContext { row, settings, costs, .. } = context;
        let id = row.id;
        let nothing = Grounding::default();
        let tokens = self.view_tokens(id, costs, &nothing)? + costs.measure.message(message.tokens);
        let most = self.summarize_at(context);
        let session = self.session(id)?;
        let turns = session.turns() + u64::from(message.role == Role::User);
        if !settings.turn.auto_summarize
            || tokens <= most
            || turns_to_wait(session.learned(), turns).is_some()
        {
            return Ok(None);
        }
        let number = session.length() + 1;
        let (mut messages, prior) = self.in_view(id)?;
        messages.push(Arc::new(message.clone().into_message(number, 0)));
        let keep = Keep::Turns(turns_to_keep(&messages, context));
        ahead(&messages, prior.as_ref(), keep, context.max_tokens(), costs).map(Some)
    }

    /// Returns the current quality of a session's context.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn quality_score(&mut self, context: &SessionContext) -> Result<Quality, EngineError> {
        let SessionContext { row: SessionRow { id, .. }, costs, .. } = context;
        let tokens = self.view_tokens(*id, costs, &Grounding::default())?;
        self.quality(*id, context.max_tokens(), tokens)
    }

    fn ground_turn(
        &mut self,
        row: &SessionRow,
        text: &str,
        vector: Option<(String, Vec<f32>)>,
        config: &TurnConfig,
    ) -> Result<Grounded, EngineError> {
        let limit = usize::try_from(config.grounding_memories).unwrap_or(usize::MAX);
        if limit == 0 {
            return Ok(Grounded::default());
        }
        let filter = memories_for(row);
        let in_view = self.session(row.id)?.in_view().map(|message| message.number).collect();
        let in_view = Some((row.id, in_view));
        self.ground(&Query {
            text: text.to_owned(),
            vector,
            filter,
            limit,
            in_view,
            strengthen: true,
        })
    }

    /// Summarizes if the view is too large, unless recent attempts did not help. Returns the
    /// summary, or the reason why there is none; neither if the view is small enough or the
    /// settings turn off automatic summaries.
    fn keep_small(
        &mut self,
        context: &SessionContext,
        grounding: &Grounding,
        summarizer: &dyn Summarizer,
    ) -> Result<(Option<Summarized>, Option<String>), EngineError> {
        let SessionContext { row: SessionRow { id, .. }, settings, costs, .. } = context;
        let (id, most) = (*id, self.summarize_at(context));
        let tokens = self.view_tokens(id, costs, grounding)?;
        if !settings.turn.auto_summarize || tokens <= most {
            return Ok((None, None));
        }
        let session = self.session(id)?;
        let (turns, learned) = (session.turns(), session.learned());
        if let Some(wait) = turns_to_wait(learned, turns) {
            let (times, s) = (learned.futile, if wait == 1 { "" } else { "s" });
            return Ok((
                None,
                Some(format!(
                    "{times} attempts in a row to summarize did not shrink the view enough, so no \
                     further attempt is made for {wait} more turn{s}; raise max-tokens with \
                     configure-session, or call prune-session"
                )),
            ));
        }
        let keep = Keep::Turns(turns_to_keep(&self.in_view(id)?.0, context));
        match self.summarize_session(id, keep, context.max_tokens(), costs, summarizer) {
            Ok(done) => {
                let saved = done.tokens_before.saturating_sub(done.tokens_after);
                let enough = saved as f64 >= HELPFUL * done.tokens_before as f64;
                // If the view is still too large, the very next turn would summarize it again.
                let helped = enough && done.tokens_after <= most;
                self.note_attempt(id, turns, helped)?;
                Ok((Some(done), None))
            }
            Err(EngineError::NotSummarized(reason)) => {
                self.note_attempt(id, turns, false)?;
                Ok((None, Some(reason.to_string())))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the number of tokens in view above which older turns are summarized. This is the
    /// share in the settings. If no share is set, it is what the window holds besides the other
    /// sections. These count as in the last window, but at most as half of the window.
    fn summarize_at(&self, context: &SessionContext) -> u64 {
        let max_tokens = context.max_tokens();
        if let Some(ratio) = context.settings.turn.summarize_at_ratio {
            return (max_tokens as f64 * ratio) as u64;
        }
        let of_view = [Section::Messages, Section::Summary, Section::Grounding];
        let last = self.windows.of(context.row.id).next();
        let sections = last.iter().flat_map(|noted| &noted.report.sections);
        let beside = sections.filter(|it| !of_view.contains(&it.section)).map(|it| it.after);
        max_tokens - beside.sum::<u64>().min(max_tokens / 2)
    }

    fn note_attempt(&mut self, id: u64, turn: u64, helped: bool) -> Result<(), EngineError> {
        let learned = self.session(id)?.learned();
        let futile = if helped { 0 } else { learned.futile + 1 };
        self.learn(id, Learned { futile, tried_in_turn: turn, ..learned })
    }

    fn observe(
        &mut self,
        id: u64,
        relevance: f64,
        coherence: Option<f64>,
    ) -> Result<(), EngineError> {
        let known = self.session(id)?.learned();
        let coherence = coherence.or(known.coherence);
        self.learn(id, Learned { relevance, coherence, ..known })
    }

    /// Computes the quality of a session whose view has `tokens` tokens.
    fn quality(&mut self, id: u64, max_tokens: u64, tokens: u64) -> Result<Quality, EngineError> {
        let session = self.session(id)?;
        let Learned { relevance, coherence, .. } = session.learned();
        Ok(Quality::of(&Observed {
            relevance,
            coherence,
            turns: session.turns(),
            summaries: session.state().summaries,
            tokens,
            max_tokens,
        }))
    }

    /// Returns the number of tokens in view, including the turn's grounding.
    fn view_tokens(
        &mut self,
        id: u64,
        costs: &Costs,
        grounding: &Grounding,
    ) -> Result<u64, EngineError> {
        let measure = &costs.measure;
        let session = self.session(id)?;
        let messages: u64 = session.in_view().map(|m| measure.message(m.tokens)).sum();
        let summary = session.state().summary.as_ref();
        let summary = summary.map_or(0, |summary| measure.message(summary.tokens));
        let grounding = if grounding.text.is_empty() { 0 } else { measure.note(&grounding.text) };
        Ok(messages + summary + grounding)
    }

    /// Rolls back to the last checkpoint before the turn that message `last_turn` began, but keeps
    /// `message` in view. Returns the rollback, or the reason why it is impossible.
    fn leave_last_turn(
        &mut self,
        id: u64,
        versioning: bool,
        last_turn: Option<u64>,
        message: u64,
    ) -> Result<(Option<RolledBack>, Option<String>), EngineError> {
        let not = |reason: &str| Ok((None, Some(reason.to_owned())));
        let Some(last_turn) = last_turn else {
            return not("there is no earlier turn to roll back");
        };
        if !versioning {
            return not(
                "rollbacks are impossible, because the setting versioning of the session is off",
            );
        }
        let checkpoints = self.store.read().checkpoints(id)?;
        match checkpoints.into_iter().rev().find(|row| row.made.position < last_turn) {
            Some(target) => Ok((Some(self.roll_back_to(id, &target, Some(message))?), None)),
            None => not("no checkpoint precedes the last turn"),
        }
    }
}

/// Returns the number of turns until the next attempt to summarize, if the last attempts did not
/// help; `None` if the next attempt need not wait.
fn turns_to_wait(learned: Learned, turns: u64) -> Option<u64> {
    let since = turns.saturating_sub(learned.tried_in_turn);
    (learned.futile >= FUTILE_AT_MOST && since < TURNS_BACKED_OFF).then(|| TURNS_BACKED_OFF - since)
}

/// Returns the number of recent turns that a summary does not include. This is at least the number
/// in the settings. It is more if more turns fit into the target size of the view, together with
/// the summary and everything that is never dropped.
fn turns_to_keep(messages: &[Arc<Message>], context: &SessionContext) -> usize {
    let (config, max_tokens) = (&context.settings.turn, context.max_tokens());
    let history = History::new(references(messages), &context.costs.measure);
    let never_lost = history.units.iter().filter(|unit| unit.kept.is_some());
    let never_lost: u64 = never_lost.map(|unit| unit.tokens).sum();
    let taken = never_lost + most_said_tokens(max_tokens);
    let mut room = config.summarize_to(max_tokens).saturating_sub(taken);
    let mut turns = 0;
    for unit in history.units.iter().rev() {
        let tokens = if unit.kept.is_some() { 0 } else { unit.tokens };
        let Some(left) = room.checked_sub(tokens) else { break };
        room = left;
        turns += usize::from(history.messages[unit.members[0]].role == Role::User);
    }
    turns.max(usize::try_from(config.recent_turns_to_keep).unwrap_or(usize::MAX))
}

/// Returns the parts of a quality in the form stored with a turn.
pub fn quality_parts(quality: &Quality) -> Vec<(String, f64, f64, String)> {
    let part = |part: &crate::curation::quality::QualityPart| {
        (part.name.to_owned(), part.value, part.weight, part.reason.to_owned())
    };
    quality.parts.iter().map(part).collect()
}
