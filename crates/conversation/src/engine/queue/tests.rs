//! Tests of the order in which requests run. Each request only records its name.

use std::sync::{Arc, Mutex};

use super::*;
use crate::context::change::ContextSettings;
use crate::store::sqlite::SqliteStore;

type Ran = Arc<Mutex<Vec<&'static str>>>;

fn engine() -> Engine {
    let store = SqliteStore::in_memory().unwrap();
    Engine::new(Box::new(store), Box::new(|| 0), ContextSettings { max_items: 10 }).unwrap()
}

fn task(ran: &Ran, name: &'static str, caller: Caller, reach: Reach) -> QueuedTask {
    let ran = Arc::clone(ran);
    let work: QueuedWork = Box::new(move |_| {
        ran.lock().unwrap().push(name);
        Box::new(|_| ())
    });
    QueuedTask { caller, reach, work }
}

/// Takes bursts until nothing waits. Checks the names in each burst; those of a quick burst end
/// with `+`.
#[track_caller]
fn check(tasks: &[(&'static str, u64, Reach)], expected: &[&str]) {
    let mut engine = engine();
    engine.manager("known").unwrap();
    let ran = Ran::default();
    let mut waiting = QueuedRequests::default();
    let tasks = tasks.iter().cloned();
    waiting.extend(
        tasks.map(|(name, caller, reach)| task(&ran, name, Caller::Connection(caller), reach)),
    );
    let mut bursts = Vec::new();
    while !waiting.is_empty() {
        let RequestBurst { works, is_quick } = waiting.burst(&engine, 2);
        works.into_iter().for_each(|work| work(&mut engine)(Ok(())));
        let names = std::mem::take(&mut *ran.lock().unwrap()).join(" ");
        bursts.push(names + if is_quick { "+" } else { "" });
    }
    assert_eq!(bursts, expected);
}

fn known() -> Reach {
    Reach::Manager("known".to_owned())
}

#[test]
fn quick_requests_share_a_burst_and_go_first() {
    check(&[], &[]);
    check(&[("a", 1, known()), ("b", 2, known()), ("c", 1, known())], &["a b+", "c+"]);
    check(&[("long", 1, Reach::Anything), ("a", 2, known())], &["a+", "long"]);
    // A manager or session that is not in memory must be read first.
    check(&[("long", 1, Reach::Manager("new".to_owned())), ("a", 2, known())], &["a+", "long"]);
    check(&[("long", 1, Reach::Session(None)), ("a", 2, known())], &["a+", "long"]);
}

#[test]
fn the_requests_of_one_caller_stay_in_order() {
    check(
        &[("long", 1, Reach::Anything), ("a", 1, known()), ("b", 2, known())],
        &["b+", "long", "a+"],
    );
}

#[test]
fn callers_take_turns_with_long_requests() {
    let long = |name, caller| (name, caller, Reach::Anything);
    check(
        &[long("a1", 1), long("a2", 1), long("a3", 1), long("b1", 2), long("b2", 2)],
        &["a1", "b1", "a2", "b2", "a3"],
    );
}
