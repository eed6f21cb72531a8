//! Tests of archiving in steps: no message is lost or archived twice.

use super::super::{Handle, NewMessage, PrunedView, run};
use super::*;
use crate::context::change::ContextSettings;
use crate::session::message::Role;
use crate::store::Store;
use crate::store::memory::MemoryFilter;
use crate::store::recovery::Files;
use crate::store::session::NewSession;
use crate::store::sqlite::SqliteStore;
use crate::tokens::Estimate;

/// Number of messages for two full steps and an incomplete one.
const MESSAGES: usize = 2 * STEP + 10;

fn engine_over(store: impl Store + 'static) -> Engine {
    let clock = Box::new(|| 1_000_000);
    Engine::new(Box::new(store), clock, ContextSettings { max_items: 3 }).unwrap()
}

fn engine() -> Engine {
    engine_over(SqliteStore::in_memory().unwrap())
}

fn message(number: usize) -> NewMessage {
    let role = if number == 0 { Role::User } else { Role::Assistant };
    let content = format!("word{number}");
    NewMessage { tokens: 10, ..NewMessage::counted(role, &content, Vec::new(), &Estimate) }
}

/// Prunes nearly all of a long session, as a request of the loop would.
fn prune(engine: &mut Engine) -> PrunedView {
    let new = NewSession { name: "s".into(), settings: "{}".into(), ..NewSession::default() };
    let pruned = engine.request(|engine| {
        let id = engine.open_session(new)?.id;
        engine.add_messages(id, (0..MESSAGES).map(message).collect())?;
        let costs = engine.costs(None)?;
        engine.prune_session(id, Some(60), &costs)
    });
    engine.commit().unwrap();
    pruned.unwrap()
}

/// Returns the memories in the store, oldest first.
fn stored(engine: &mut Engine) -> Vec<u64> {
    let rows = engine.store.read().memories(&MemoryFilter::default(), u64::MAX).unwrap();
    rows.iter().rev().map(|row| row.made.origin.unwrap().first).collect()
}

fn finish(engine: &mut Engine) {
    while engine.has_put_off() {
        engine.do_put_off();
    }
}

#[test]
fn many_pruned_messages_become_memories_in_steps() {
    let mut engine = engine();
    let pruned = prune(&mut engine);
    assert!(pruned.removed.len() > 2 * STEP && pruned.archived == pruned.removed.len() as u64);
    assert_eq!(stored(&mut engine), [0; 0]);
    engine.do_put_off();
    assert_eq!(stored(&mut engine), pruned.removed[..STEP]);
    finish(&mut engine);
    assert_eq!(stored(&mut engine), pruned.removed);
    let last = &engine.list_memories(&MemoryFilter::default(), 1).unwrap()[0].made;
    let number = pruned.removed.last().unwrap();
    assert_eq!(last.content, format!("assistant: word{}", number - 1));
    assert_eq!((last.kind.as_str(), last.created), (ARCHIVED, 1000));
}

#[test]
fn whoever_looks_for_memories_finds_those_that_were_put_off() {
    let mut engine = engine();
    let pruned = prune(&mut engine);
    let listed = engine.request(|e| e.list_memories(&MemoryFilter::default(), u64::MAX)).unwrap();
    assert_eq!(listed.len(), pruned.removed.len());
    engine.commit().unwrap();
    assert!(!engine.has_put_off());

    // A reader of memories without vectors gets some at a time, and all in the end.
    let mut engine = self::engine();
    prune(&mut engine);
    let lacking = engine.request(|e| e.memories_without_vector("model", 5)).unwrap();
    engine.commit().unwrap();
    assert_eq!((lacking.len(), stored(&mut engine).len()), (5, STEP));
    let lacking = engine.request(|e| e.memories_without_vector("model", u64::MAX)).unwrap();
    assert_eq!(lacking.len(), pruned.removed.len());
}

#[test]
fn a_step_that_is_taken_back_is_done_again() {
    let mut engine = engine();
    let pruned = prune(&mut engine);
    engine.do_put_off();
    let failed = engine.request(|engine| {
        engine.list_memories(&MemoryFilter::default(), 1)?;
        Err::<(), _>(EngineError::NoSuchMemory(0))
    });
    failed.unwrap_err();
    engine.commit().unwrap();
    assert_eq!(stored(&mut engine), pruned.removed[..STEP]);
    finish(&mut engine);
    assert_eq!(stored(&mut engine), pruned.removed);
}

#[test]
fn what_was_put_off_survives_the_end_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let open = || engine_over(SqliteStore::open(&files, None).unwrap());
    let mut engine = open();
    let pruned = prune(&mut engine);
    engine.do_put_off();
    drop(engine);
    let mut engine = open();
    assert_eq!(stored(&mut engine), pruned.removed[..STEP]);
    finish(&mut engine);
    drop(engine);
    let mut engine = open();
    assert_eq!(stored(&mut engine), pruned.removed);
    assert!(!engine.has_put_off());
}

#[tokio::test]
async fn the_loop_does_the_steps_while_nobody_waits() {
    let (handle, queue) = Handle::channel();
    let running = tokio::spawn(run(engine(), queue, |_, _| ()));
    let pruned = handle.ask(|engine| Ok(prune(engine))).await.unwrap();
    let (mut steps, mut known) = (0, 0);
    while known < pruned.removed.len() && steps < 1000 {
        known = handle.ask(|engine| Ok(stored(engine).len())).await.unwrap();
        steps += 1;
    }
    assert_eq!(known, pruned.removed.len());
    drop(handle);
    running.await.unwrap();
}
