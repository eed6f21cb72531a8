//! The REPLs that SLY and SLIME show. Typed text is a message to the model, or a command.
//!
//! Each connection of SLY or SLIME has one [`Repls`]. This module calls methods by their names, and
//! sees the client only as an [`Editor`].

mod agent_q;
mod approval;
mod command;
mod complete;
mod describe;
mod form;
mod lisp;
mod listener;
mod readable;
mod retry;
mod session;
mod talk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::approval::Questions;
use self::lisp::{keyword, list, refusal, text};
use self::listener::{Input, OutputMode, Repl};
use self::session::SessionSlot;
use crate::rpc::limits::WAITING_INPUTS;
use crate::rpc::{Answerer, MethodCaller, ReplSettings, locked};
use crate::value::Value;
use crate::wire::message::{ReplTalk, WireError};

/// Name of the Lisp package in prompts and symbols.
const PACKAGE: &str = "contexture";

/// Maximum length of the name of a directory, in bytes; no system takes a longer one.
const LONGEST_DIRECTORY: usize = 4096;

/// The room that a message takes among those of its connection, until what it began has ended.
pub(crate) type MessageRoom = Option<OwnedSemaphorePermit>;

/// The client of a REPL.
pub(crate) trait Editor: Send + Sync {
    /// Sends an event to the client.
    fn tell(&self, event: Value);

    /// Answers the evaluation with this id.
    fn answer(&self, id: i64, outcome: Result<Value, WireError>);
}

/// The REPLs of one connection.
pub(crate) struct Repls {
    shared: Arc<ReplShared>,
    repls: BTreeMap<i64, Repl>,
    /// Number of the REPL of SLIME, which has only one; `None` until it is created.
    of_slime: Option<i64>,
    next: i64,
    /// Cancels the tasks of the connection once this value is dropped.
    _ending: DropGuard,
}

/// The data that every task of the connection uses.
struct ReplShared {
    editor: Arc<dyn Editor>,
    caller: Arc<dyn MethodCaller>,
    settings: ReplSettings,
    /// Directory to which file names are relative.
    directory: Mutex<PathBuf>,
    questions: Questions,
    /// The turn that agent-q's package asked for last.
    asked: agent_q::AgentQTurn,
    /// The connection's session, once it is open.
    place: Arc<SessionSlot>,
    /// Cancelled when the client has gone.
    ended: CancellationToken,
}

impl ReplShared {
    fn answerer(&self) -> &dyn Answerer {
        &*self.settings.answerer
    }

    fn directory(&self) -> MutexGuard<'_, PathBuf> {
        locked(&self.directory)
    }

    async fn call<const N: usize>(
        &self,
        method: &str,
        params: [(&str, Value); N],
    ) -> Result<Value, WireError> {
        self.caller.call(method, lisp::plist(params)).await
    }
}

/// Resolves a file name relative to a directory. `~/` stands for the home folder.
fn absolute(directory: &Path, name: &str) -> PathBuf {
    match (name.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => directory.join(name),
    }
}

impl Repls {
    /// Creates the state of a new connection, which has no REPL yet.
    pub(crate) fn new(
        editor: Arc<dyn Editor>,
        caller: Arc<dyn MethodCaller>,
        settings: ReplSettings,
    ) -> Self {
        let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let shared = ReplShared {
            questions: Questions::new(Arc::clone(&editor)),
            editor,
            caller,
            settings,
            directory: Mutex::new(directory),
            asked: agent_q::AgentQTurn::default(),
            place: Arc::default(),
            ended: CancellationToken::new(),
        };
        let _ending = shared.ended.clone().drop_guard();
        Self { shared: Arc::new(shared), repls: BTreeMap::new(), of_slime: None, next: 1, _ending }
    }

    /// Handles a message from the client, which takes `room`. Returns false if the connection must
    /// end.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub(crate) fn take(&mut self, talk: ReplTalk, room: MessageRoom) -> bool {
        match talk {
            ReplTalk::Evaluate { id, form, thread } => {
                return self.evaluate(id, form, &thread, room);
            }
            ReplTalk::Channel { channel, message } => self.channel(channel, &message, room),
            ReplTalk::Interrupt { thread } => self.interrupt(&thread),
            ReplTalk::Answer { tag, value } => self.shared.questions.answered(&tag, &value),
        }
        true
    }

    /// Begins a REPL that shows its output in the given way, and returns its number. The first REPL
    /// uses the connection's session; while it is open, each further REPL uses a session of its
    /// own.
    fn begin(&mut self, way: OutputMode, room: MessageRoom) -> i64 {
        let number = self.next;
        self.next += 1;
        let taken = self.repls.values().any(|repl| Arc::ptr_eq(repl.place(), &self.shared.place));
        let place = if taken { Arc::default() } else { Arc::clone(&self.shared.place) };
        let repl = Repl::begin(Arc::clone(&self.shared), number, (way, room), place);
        self.repls.insert(number, repl);
        number
    }

    fn create_mrepl(&mut self, id: i64, channel: i64, room: MessageRoom) {
        let number = self.begin(OutputMode::Channel(channel), room);
        let numbers = list([Value::Int(number), Value::Int(number)]);
        // The answer goes first, so that a prompt formatter of the buffer is ready for the first
        // prompt.
        self.shared.editor.answer(id, Ok(numbers));
        self.input(number, Input::Greeting, None);
    }

    fn create_repl(&mut self, id: i64, room: MessageRoom) {
        if let Some(old) = self.of_slime.take() {
            self.repls.remove(&old);
        }
        self.of_slime = Some(self.begin(OutputMode::TopLevel, room));
        self.shared.editor.answer(id, Ok(list([text(PACKAGE), text(PACKAGE)])));
    }

    /// Handles a text that was typed in SLIME's REPL. The answer follows when the turn or command
    /// has ended.
    fn listener_eval(&mut self, id: i64, typed: &str, room: MessageRoom) {
        let Some(number) = self.of_slime else {
            let error = refusal("there is no REPL yet: create one with create-repl");
            return self.shared.editor.answer(id, Err(error));
        };
        // SLIME adds a newline to the typed text.
        let typed = typed.strip_suffix('\n').unwrap_or(typed);
        self.input(number, Input::Text { text: typed.to_owned(), answer: Some(id) }, room);
    }

    fn channel(&mut self, channel: i64, message: &[Value], room: MessageRoom) {
        let Some(Value::Keyword(what)) = message.first() else { return };
        match (&**what, message.get(1)) {
            ("process", Some(Value::Str(text))) => {
                self.input(channel, Input::Text { text: text.clone(), answer: None }, room);
            }
            ("clear-repl-history", _) => self.input(channel, Input::Clear, room),
            ("teardown", _) => drop(self.repls.remove(&channel)),
            _ => {
                let said = format!("unknown REPL message :{what}");
                self.shared.editor.tell(list([keyword("background-message"), text(said)]));
            }
        }
    }

    fn input(&mut self, number: i64, input: Input, room: MessageRoom) {
        if let Some(repl) = self.repls.get(&number) {
            repl.input(input, room);
        }
    }

    /// Stops the current input of the REPL with this thread. If no REPL has this thread, stops the
    /// current inputs of all REPLs and the turn of agent-q's package.
    fn interrupt(&self, thread: &Value) {
        let number = match thread {
            Value::Int(number) => Some(*number),
            Value::Keyword(_) => self.of_slime,
            _ => None,
        };
        match number.and_then(|number| self.repls.get(&number)) {
            Some(repl) => repl.interrupt(),
            None => {
                self.repls.values().for_each(Repl::interrupt);
                self.shared.asked.cancel();
            }
        }
    }
}

#[cfg(test)]
mod tests;
