//! Tests of a turn that breaks off because of a defect.

use tokio_util::sync::CancellationToken;

use super::*;
use crate::agent::{Limits, Providers, Services, TurnEvent};
use crate::context::change::ContextSettings;
use crate::curation::summary::Extractive;
use crate::engine::{Caller, Handle, run};
use crate::session::message::Role;
use crate::store::session::NewSession;
use crate::store::sqlite::SqliteStore;
use crate::tokens::Estimate;

/// Panics when the answer begins.
struct BrokenListener;

impl EventSink for BrokenListener {
    fn send(&self, event: TurnEvent) -> bool {
        assert!(!matches!(event, TurnEvent::Text(_)), "this listener is broken");
        true
    }
}

#[tokio::test]
async fn a_turn_that_panics_says_which_question_is_in_the_log() {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    let mut engine = Engine::new(store, Box::new(|| 0), ContextSettings { max_items: 3 }).unwrap();
    let new = NewSession { name: "s".to_owned(), ..NewSession::default() };
    engine.open_session(new).unwrap();
    let (handle, queue) = Handle::channel();
    tokio::spawn(run(engine, queue, |_, _| {}));
    let configured = AvailableModel::playing();
    let limits = Limits { max_message_bytes: 1 << 20, max_file_bytes: 1 << 20, max_items: 3 };
    let mut services = Services::new(handle, Arc::new(Estimate), limits);
    services.providers = Providers::new(vec![configured]);
    let (services, cancelled) = (Arc::new(services), Arc::new(CancellationToken::new()));
    let job = Job { services, caller: Caller::Nobody, cancelled };
    let request = ChatRequest {
        session: None,
        message: NewMessage::counted(Role::User, "hi", Vec::new(), &Estimate),
        coherence: None,
        phase: None,
        sections: Sections::default(),
        provider: None,
        model: None,
        max_rounds: MAX_ROUNDS,
        temperature: None,
        max_tokens: None,
        summarizer: Arc::new(Extractive),
        manage: None,
        template: None,
        toolbox: Vec::new(),
        tools: None,
        choice: ToolChoice::default(),
        output: None,
        allow: Vec::new(),
        managers: None,
        restored: Vec::new(),
        key: None,
        if_version: None,
    };
    let error = chat(job, request, Arc::new(BrokenListener)).await.err().unwrap();
    let AgentError::InTurn { question: 1, source, .. } = error else { panic!("{error:?}") };
    assert!(matches!(*source, AgentError::Defect(_)), "{source:?}");
}
