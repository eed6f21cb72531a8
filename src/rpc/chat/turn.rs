//! A turn's way: the question into the log, a window, the answer, and the answer into the log.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::call::Tools;
use super::super::curate::session_costs;
use super::super::error::{agent_error, engine_error};
use super::super::manage::{self, Managed};
use super::super::messages;
use super::super::present::entry;
use super::calls::Ran;
use super::fit::Refused;
use super::{Chat, broken};
use crate::agent::Configured;
use crate::agent::window::{Built, Purpose, build};
use crate::context::render::report::Verdict;
use crate::curation::section::{Counted, Section};
use crate::curation::summary::Extractive;
use crate::curation::window::Window;
use crate::engine::{AskedWindow, Engine, EngineError, Material, Turn, TurnDone};
use crate::provider::ProviderError;
use crate::provider::chat::{Piece, Request, Usage, Whole, cancelled, malformed};
use crate::session::message::Message;
use crate::store::session::Spent;
use crate::value::Value;
use crate::visible::visible;
use crate::wire::message::WireError;

/// How often the model is asked in one turn at most: once, and again after each answer that calls
/// tools. The calls of the last are refused, and it is asked once more for an answer without any.
pub(super) const MAX_ROUNDS: u64 = 8;

/// How many calls one answer may make; a longer one is no answer.
const MAX_CALLS_HEARD: usize = 128;

/// What providers want to have back with their answers, such as signatures of thoughts, by message.
pub(super) type Opaque = HashMap<u64, serde_json::Value>;

/// A turn that is under way.
pub(super) struct Begun {
    pub(super) turn: TurnDone,
    /// What the next window is built from, if it was read already.
    pub(super) material: Option<Material>,
    /// The cost of the last answer, to be stored with it.
    pub(super) asked: Option<AskedWindow>,
    /// What became of the managing of its history.
    pub(super) managed: Option<Managed>,
    /// How often the model was asked.
    pub(super) rounds: u64,
    /// What it called.
    pub(super) ran: Vec<Ran>,
    /// The message of the last answer that called tools.
    pub(super) answer: Option<u64>,
    /// What the provider wants to have back with its answers in this turn, by message.
    pub(super) opaque: Opaque,
    /// What all its answers took.
    pub(super) usage: Usage,
    /// What they cost, as far as each cost is known.
    pub(super) cost: Option<f64>,
    /// What the last window had.
    pub(super) window_tokens: u64,
    /// What became of the items in it.
    pub(super) items: Vec<Verdict>,
    /// The last refusal of a window that was too long for the model.
    pub(super) refused: Option<Refused>,
    /// Whether the session sets how many tokens a window may have.
    pub(super) is_budget_set: bool,
    /// How many tokens the model takes, as far as is known.
    pub(super) limit: u64,
}

impl Begun {
    /// Whether the model is asked for an answer that calls nothing.
    pub(super) fn is_last_word(&self) -> bool {
        self.rounds > MAX_ROUNDS
    }

    /// Adds what a request and its answer took.
    fn spend(&mut self, usage: Usage, cost: Option<f64>) {
        self.usage = self.usage.plus(usage);
        self.cost = self.cost.zip(cost).map(|(before, cost)| before + cost);
    }
}

impl Chat {
    pub(super) async fn turn(self) -> Result<Value, WireError> {
        self.configured.find_limit().await;
        let (mut begun, answered) = self.begin().await?;
        if let Some(said) = answered {
            let whole = Whole { text: said.content.to_string(), ..Whole::default() };
            return Ok(self.told(&begun, &whole, Some(said.number)));
        }
        if let Some(Value::Str(why)) = &self.embedded.outcome {
            self.progress("status", &format!("memories are found by their words alone: {why}"));
        }
        if begun.turn.summarized.is_some() {
            self.progress("status", "older turns were summarized");
        }
        if let Some(wish) = &self.manage {
            self.progress(
                "status",
                &format!("the history is managed by {}", visible(&wish.template)),
            );
            let managed = manage::manage(&self.call, self.row.id, wish, &self.configured).await;
            let managed = managed.map_err(|error| self.question_kept(&begun, error))?;
            self.account_for_notes(&mut begun, &managed);
            begun.managed = Some(managed);
        }
        loop {
            let mut whole = self.answer(&mut begun).await?;
            if begun.is_last_word() {
                // Some models call though they may not.
                whole.calls.clear();
            }
            if whole.calls.is_empty() || self.tools.is_empty() {
                let answer = self.end_with(&mut begun, &whole).await?;
                return Ok(self.told(&begun, &whole, answer.or(begun.answer)));
            }
            self.carry_out(&mut begun, &whole).await?;
        }
    }

    /// The turn as `process-turn` does it, and the whole answer that a call of the same key has
    /// brought already. A call that had brought none, or only a part of one, goes on.
    async fn begin(&self) -> Result<(Begun, Option<Arc<Message>>), WireError> {
        let (id, message) = (self.row.id, self.message.clone());
        let vector = self.embedded.vector.clone();
        let (key, configured) = (self.key.clone(), self.configured.clone());
        // A model that takes notes is asked first.
        let is_window_next = self.manage.is_none();
        let asked = self.call.tools.engine.ask(move |engine| {
            let row = engine.row(id)?;
            let costs = configured.with_room(session_costs(engine, &row.settings, None)?);
            let turn = engine.once("chat", key.as_deref(), |engine| {
                let turn = Turn { message, coherence: None, vector };
                engine.process_turn(id, turn, &costs, &Extractive)
            })?;
            let answered = match key {
                Some(key) => engine.answered(id, turn.message, &key)?,
                None => None,
            };
            let is_window_next = is_window_next && answered.is_none();
            let material = is_window_next.then(|| material(engine, id, &configured)).transpose()?;
            if answered.is_some() {
                engine.end_turn(id);
            }
            Ok((turn, answered, material))
        });
        let (turn, answered, material) = asked.await.map_err(engine_error)?;
        let begun = Begun {
            turn,
            material,
            asked: None,
            managed: None,
            rounds: 0,
            ran: Vec::new(),
            answer: None,
            opaque: Opaque::new(),
            usage: Usage::default(),
            cost: Some(0.0),
            window_tokens: 0,
            items: Vec::new(),
            refused: None,
            is_budget_set: false,
            limit: 0,
        };
        Ok((begun, answered))
    }

    /// The window, and the number of its line in the log of usage.
    pub(super) async fn window(&self, begun: &mut Begun) -> Result<(Arc<Window>, u64), WireError> {
        let built = match self.managed_window(begun).await? {
            Some(built) => built,
            None => self.build(self.material(begun).await?, begun).await?,
        };
        let Built { window, items } = built;
        begun.window_tokens = window.tokens;
        begun.items.clone_from(&items);
        let window = Arc::new(window);
        let (id, noted) = (self.row.id, Arc::clone(&window));
        let note = self.call.tools.engine.ask(move |engine| engine.note_window(id, &noted, items));
        let line = note.await.map_err(engine_error)?;
        Ok((window, line))
    }

    /// The window with the managed view in the place of the history; when it cannot be built, the
    /// view is given up, and there is none.
    async fn managed_window(&self, begun: &mut Begun) -> Result<Option<Built>, WireError> {
        if !begun.managed.as_ref().is_some_and(Managed::has_view) {
            return Ok(None);
        }
        let mut material = self.material(begun).await?;
        if let Some(managed) = &begun.managed {
            managed.apply(&mut material);
        }
        let built = self.build(material, begun).await;
        let Some(managed) = &mut begun.managed else { return Ok(None) };
        let reason = match built {
            Ok(built) if has_summary(&built.window) => {
                managed.stand(&self.call.tools).await;
                return Ok(Some(built));
            }
            Ok(_) => "the notes did not fit into the window beside the rest".to_owned(),
            Err(error) => error.message,
        };
        managed.give_up(&self.call.tools, reason).await;
        Ok(None)
    }

    async fn material(&self, begun: &mut Begun) -> Result<Material, WireError> {
        match begun.material.take() {
            Some(read) => Ok(read),
            None => self.read_material().await,
        }
    }

    pub(super) async fn read_material(&self) -> Result<Material, WireError> {
        let (id, configured) = (self.row.id, self.configured.clone());
        let asked = self.call.tools.engine.ask(move |engine| material(engine, id, &configured));
        asked.await.map_err(engine_error)
    }

    async fn build(&self, material: Material, begun: &mut Begun) -> Result<Built, WireError> {
        begun.is_budget_set = material.settings.max_tokens.is_some();
        begun.limit = material.costs.model.limit;
        let max_tokens = begun.refused.as_ref().map(|refused| refused.max_tokens);
        self.build_with(material, begun.turn.grounding.clone(), max_tokens).await
    }

    /// Builds a window on a thread that may block: files of live items are read.
    pub(super) async fn build_with(
        &self,
        material: Material,
        grounding: String,
        max_tokens: Option<u64>,
    ) -> Result<Built, WireError> {
        let tools: Arc<Tools> = Arc::clone(&self.call.tools);
        let mut sections = self.sections.clone();
        if sections.grounding.is_none() && !grounding.is_empty() {
            sections.grounding = Some(Counted::new(grounding, &*tools.counter));
        }
        if let Some(schemas) = self.schemas() {
            let said = sections.tool_schemas.map_or(String::new(), |said| said.text.to_string());
            sections.tool_schemas = Some(Counted::new(said + &schemas, &*tools.counter));
        }
        let (phase, may_grow) = (self.phase, true);
        let purpose = Purpose { phase, max_tokens, may_grow, sections, ..Purpose::default() };
        let built = tokio::task::spawn_blocking(move || {
            build(&*tools.counter, &tools.read_options(), material, purpose)
        });
        built.await.map_err(|_| broken())?.map_err(agent_error)
    }

    /// Asks the model and passes on what it says, until the end or until nobody wants it.
    pub(super) async fn stream(
        &self,
        request: &Request,
        whole: &mut Whole,
    ) -> Result<(), ProviderError> {
        let provider = &*self.configured.provider;
        let gone = self.given_up();
        tokio::pin!(gone);
        let mut reply = tokio::select! {
            reply = provider.chat(request) => reply?,
            () = &mut gone => return Err(cancelled(provider)),
        };
        loop {
            let piece = tokio::select! {
                piece = reply.next() => piece?,
                () = &mut gone => return Err(cancelled(provider)),
            };
            let Some(piece) = piece else { return Ok(()) };
            match &piece {
                Piece::Text(text) => self.progress("text", text),
                Piece::Reasoning(text) => self.progress("reasoning", text),
                Piece::Call(called) => {
                    let more = vec![entry("arguments", &*called.arguments)];
                    self.tell("tool-call", &called.name, more);
                }
                Piece::Usage(_) | Piece::Opaque(_) | Piece::Stopped(_) => {}
            }
            whole.add(piece);
            if whole.calls.len() > MAX_CALLS_HEARD {
                let what = format!("the answer calls more than {MAX_CALLS_HEARD} tools");
                return Err(malformed(provider, &what));
            }
            tokio::select! {
                () = self.call.peer.room() => {}
                () = &mut gone => return Err(cancelled(provider)),
            }
        }
    }

    /// An error that says under which name the question is in the log.
    pub(super) fn question_kept(&self, begun: &Begun, mut error: WireError) -> WireError {
        if let Value::Map(data) = &mut error.data {
            data.push(entry("question", messages::name(begun.turn.message)));
        }
        error
    }

    /// Reckons what the answer took; it is stored with the answer.
    pub(super) fn account(&self, begun: &mut Begun, line: u64, window: &Window, whole: &Whole) {
        let Usage { input, output, cache_read, .. } = whole.usage;
        let model = self.configured.provider.model().to_owned();
        let provider = self.configured.name.clone();
        let cost = self.configured.cost(&whole.usage);
        begun.spend(whole.usage, cost);
        let spent = Spent { provider, model, input, output, cached: cache_read, cost };
        let counted = window.tokens;
        if let Some(reported) = input {
            self.configured.rooms.compared(&spent.model, counted, reported);
        }
        begun.asked = Some(AskedWindow { line, counted, spent });
    }

    /// Counts what the manager's notes took, unless they were there already.
    fn account_for_notes(&self, begun: &mut Begun, managed: &Managed) {
        let view = &managed.view;
        let (provider, model) = (view.provider.as_deref(), view.model.as_deref());
        if managed.cached || view.payload.is_empty() {
            return;
        }
        let (input, output) = (view.input_tokens, view.output_tokens);
        let usage = Usage { input, output, ..Usage::default() };
        let manager = self.call.tools.providers.find(provider, model).ok();
        let cost = manager.and_then(|manager| manager.cost(&usage));
        begun.spend(usage, cost);
    }
}

/// What the session puts into a window for the model that answers.
pub(super) fn material(
    engine: &mut Engine,
    id: u64,
    configured: &Configured,
) -> Result<Material, EngineError> {
    let material =
        engine.material(Some(&format!("ses-{id}")), Some(configured.provider.model()))?;
    Ok(Material { costs: configured.with_room(material.costs), ..material })
}

fn has_summary(window: &Window) -> bool {
    window.parts.iter().any(|part| part.section == Section::Summary)
}
