//! The conversation between client and agent, as far as the proxy knows it: requests that wait for
//! their response, and the last push that each session received.
//!
//! A push is the text that the proxy adds to a prompt: the latest changes to the agent's context.
//! It counts as received once the agent works on the prompt or answers it. Until then, other
//! prompts of the session get no push. If the prompt fails or is cancelled, the push is made again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::aside::Aside;
use super::message::{AcpMessage, AcpParams, AcpResult};
use super::record::{AcpRecord, AcpSession};

/// Maximum number of requests that wait for a response, and of sessions. Beyond this number,
/// prompts are passed on without a push, and are not recorded.
const MOST: usize = 1000;
/// Maximum length of the id of a session and of the name of an agent, in bytes.
const LONGEST_NAME: usize = 200;

/// The conversation, and the thread that asks the server.
pub(super) struct AcpTalk {
    aside: Aside,
    /// Path of the Contexture program.
    program: String,
    /// Arguments with which `program` serves an agent. The folder of the session follows as the
    /// last argument.
    options: Vec<String>,
    known: Mutex<KnownSession>,
}

#[derive(Default)]
struct KnownSession {
    agent: String,
    embeds: bool,
    asked: HashMap<String, PendingRequest>,
    sessions: HashMap<String, TalkSession>,
}

/// A request that waits for its response.
enum PendingRequest {
    Start,
    Session {
        folder: PathBuf,
    },
    /// A prompt. If `is_carrier`, `number` is the number of the push that was sent with this
    /// prompt. Otherwise, it is the number of an earlier push that had not been received when the
    /// prompt was sent, if there was one.
    Prompt {
        session: String,
        number: Option<u64>,
        is_carrier: bool,
    },
}

struct TalkSession {
    folder: PathBuf,
    received: Option<u64>,
    /// Number of the push that was sent with a prompt and has not been received yet, if any.
    in_flight: Option<u64>,
}

impl AcpTalk {
    pub(super) fn new(agent: &str, program: String, options: Vec<String>, aside: Aside) -> Self {
        let known = KnownSession { agent: plain(agent), ..KnownSession::default() };
        Self { aside, program, options, known: Mutex::new(known) }
    }

    pub(super) fn aside(&self) -> &Aside {
        &self.aside
    }

    /// Reads a line from the client before the agent gets it. Returns the line to send instead, or
    /// `None` to send `line` unchanged.
    pub(super) fn client_says(&self, line: &[u8]) -> Option<Vec<u8>> {
        let message = AcpMessage::of(line)?;
        let method = message.method.as_deref()?;
        match method {
            "initialize" => self.known().ask(&message, PendingRequest::Start),
            "session/new" | "session/fork" | "session/load" | "session/resume" => {
                let params = message.params()?;
                let folder = params.cwd.clone()?;
                match params.session_id.as_deref() {
                    Some(id) if method != "session/fork" => self.resume(id, folder.clone()),
                    _ => self
                        .known()
                        .ask(&message, PendingRequest::Session { folder: folder.clone() }),
                }
                let options = self.options.iter().cloned();
                let args: Vec<String> = options.chain([folder.to_str()?.to_owned()]).collect();
                return message.with_server(line, &params, &self.program, &args);
            }
            "session/prompt" => return self.prompt(line, &message),
            _ => {}
        }
        None
    }

    fn resume(&self, id: &str, folder: PathBuf) {
        let place = AcpSession { agent: self.known().agent.clone(), session: id.into(), folder };
        let received = self.aside.received_before(&place);
        self.known().open(id, TalkSession { folder: place.folder, received, in_flight: None });
    }

    fn prompt(&self, line: &[u8], message: &AcpMessage<'_>) -> Option<Vec<u8>> {
        let params = message.params()?;
        let blocks = params.blocks()?;
        let (id, key) = (params.session_id.as_deref()?, message.id()?);
        let (place, received, in_flight) = {
            let known = self.known();
            let session = known.sessions.get(id).filter(|_| known.asked.len() < MOST)?;
            (known.place(id)?, session.received, session.in_flight)
        };
        self.aside.record(place.clone(), &AcpRecord::Prompt(blocks));
        let push = if in_flight.is_none() { self.aside.push(place, received) } else { None };
        let number = push.as_ref().and_then(|push| push.number);
        let mut known = self.known();
        if let Some(session) = known.sessions.get_mut(id) {
            session.in_flight = number.or(in_flight);
        }
        let (session, is_carrier) = (id.to_owned(), number.is_some());
        known.asked.insert(
            key,
            PendingRequest::Prompt { session, number: number.or(in_flight), is_carrier },
        );
        let text = push.map(|push| push.text).filter(|text| !text.is_empty())?;
        params.with_text(line, &text, known.embeds)
    }

    /// Reads a line from the agent before the client gets it.
    pub(super) fn agent_says(&self, line: &[u8]) {
        let mut known = self.known();
        if known.asked.is_empty() {
            return;
        }
        let Some(message) = AcpMessage::of(line) else { return };
        let received = match message.method.as_deref() {
            Some("session/update") => {
                let Some(params) = message.params() else { return };
                if let Some((place, update)) = known.overheard(&params) {
                    self.aside.record(place, &AcpRecord::Update(update));
                }
                known.worked_on(&params)
            }
            Some(_) => None,
            None => {
                if let Some(place) = known.prompted(&message) {
                    self.aside.record(place, &AcpRecord::stop(message.outcome()));
                }
                known.answered(&message)
            }
        };
        if let Some((place, number)) = received {
            self.aside.note(place, number);
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownSession> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownSession {
    fn ask(&mut self, message: &AcpMessage<'_>, asked: PendingRequest) {
        if let Some(id) = message.id().filter(|_| self.asked.len() < MOST) {
            self.asked.insert(id, asked);
        }
    }

    fn open(&mut self, id: &str, session: TalkSession) {
        let is_plain = id.chars().all(|c| c.is_ascii_graphic());
        let is_valid = (1..=LONGEST_NAME).contains(&id.len()) && is_plain;
        if is_valid && (self.sessions.len() < MOST || self.sessions.contains_key(id)) {
            self.sessions.insert(id.to_owned(), session);
        }
    }

    fn place(&self, id: &str) -> Option<AcpSession> {
        let folder = self.sessions.get(id)?.folder.clone();
        Some(AcpSession { agent: self.agent.clone(), session: id.to_owned(), folder })
    }

    /// Returns the session and the update in `params`, if the update belongs in a recording.
    /// Updates that an agent repeats while it loads a session do not.
    fn overheard<'a>(&self, params: &AcpParams<'a>) -> Option<(AcpSession, &'a str)> {
        let id = params.session_id.as_deref()?;
        let is_asked = |asked: &PendingRequest| matches!(asked, PendingRequest::Prompt { session, .. } if session == id);
        let (update, text) = params.update()?;
        let is_wanted = update.is_recorded() && self.asked.values().any(is_asked);
        is_wanted.then(|| self.place(id).map(|place| (place, text)))?
    }

    /// Returns the session of the prompt that a response answers, if it answers a prompt.
    fn prompted(&self, message: &AcpMessage<'_>) -> Option<AcpSession> {
        match self.asked.get(&message.id()?)? {
            PendingRequest::Prompt { session, .. } => self.place(session),
            _ => None,
        }
    }

    /// Handles a response. If the response shows that the agent has received a push, returns the
    /// session and the number of the push. Returns `None` if that was known already.
    fn answered(&mut self, message: &AcpMessage<'_>) -> Option<(AcpSession, u64)> {
        let asked = self.asked.remove(&message.id()?)?;
        let outcome = message.outcome();
        match (asked, outcome) {
            (PendingRequest::Start, Some(outcome)) => self.started(&outcome),
            (PendingRequest::Session { folder }, Some(AcpResult { session_id: Some(id), .. })) => {
                // The agent has not received anything in this new session.
                self.open(&id, TalkSession { folder, received: Some(0), in_flight: None });
            }
            (PendingRequest::Prompt { session, number: Some(number), is_carrier }, outcome) => {
                // An agent that was cancelled may have thrown the prompt away.
                let is_kept = |it: &AcpResult| it.stop_reason.as_deref() != Some("cancelled");
                if outcome.as_ref().is_some_and(is_kept) {
                    return self.receive(&session, number);
                }
                if let Some(session) = self.sessions.get_mut(&session).filter(|_| is_carrier) {
                    session.in_flight = session.in_flight.filter(|in_flight| *in_flight != number);
                }
            }
            _ => {}
        }
        None
    }

    fn started(&mut self, outcome: &AcpResult) {
        self.embeds = outcome.embeds();
        if let Some(agent) = outcome.agent().map(plain).filter(|agent| !agent.is_empty()) {
            self.agent = agent;
        }
    }

    /// Handles an update. If it shows work on the only waiting prompt of its session, the agent has
    /// received the push of that prompt. Returns the session and the number of this push; `None` if
    /// there is no such push, or the push was known to be received.
    fn worked_on(&mut self, params: &AcpParams<'_>) -> Option<(AcpSession, u64)> {
        let in_flight = |session: &TalkSession| session.in_flight.is_some();
        if !self.sessions.values().any(in_flight) {
            return None;
        }
        let id = params.session_id.as_deref()?;
        params.update().filter(|(update, _)| update.is_work())?;
        // With several prompts on their way, it is not known which of them the agent works on.
        let mut numbers = self.asked.values().filter_map(|asked| match asked {
            PendingRequest::Prompt { session, number, .. } if session == id => Some(*number),
            _ => None,
        });
        let (Some(Some(number)), None) = (numbers.next(), numbers.next()) else { return None };
        self.receive(id, number)
    }

    fn receive(&mut self, id: &str, number: u64) -> Option<(AcpSession, u64)> {
        let session = self.sessions.get_mut(id)?;
        session.in_flight = session.in_flight.filter(|in_flight| *in_flight > number);
        if session.received.is_some_and(|received| received >= number) {
            return None;
        }
        session.received = Some(number);
        Some((self.place(id)?, number))
    }
}

/// Returns the visible ASCII characters of a name, at most [`LONGEST_NAME`] of them.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_graphic).take(LONGEST_NAME).collect()
}
