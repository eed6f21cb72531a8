//! Tests of memories in each kind of store.

use super::*;
use crate::store::Store;
use crate::store::testing::{commit, store};

fn note(scope: MemoryScope, content: &str) -> NewMemory {
    NewMemory { scope, kind: "note".into(), origin: None, content: content.into(), created: 100 }
}

fn project() -> MemoryScope {
    MemoryScope::Project("/p λ".into())
}

fn of(scopes: &[MemoryScope]) -> MemoryFilter {
    MemoryFilter { scopes: Some(scopes.to_vec()), ..MemoryFilter::default() }
}

#[track_caller]
fn check(store: &mut dyn Store, text: &str, filter: &MemoryFilter, expected: &[u64]) {
    let found = store.read().search_memories(text, filter, 10).unwrap();
    let ids: Vec<u64> = found.iter().map(|(row, _)| row.id).collect();
    assert_eq!(ids, expected, "{text:?}");
    assert!(found.iter().all(|(_, score)| *score > 0.0));
}

fn ids(rows: &[MemoryRow]) -> Vec<u64> {
    rows.iter().map(|row| row.id).collect()
}

#[test]
fn a_memory_reads_back_and_counts_its_uses() {
    let mut store = store();
    let origin = Some(MemoryOrigin { session: 3, first: 4, last: 9 });
    let made = NewMemory { origin, ..note(project(), "a\nb λ") };
    let id = store.change().unwrap().add_memory(&made).unwrap();
    commit(&mut *store);
    let (accessed, accesses, forgotten, machine) = (100, 0, None, None);
    let fresh = MemoryRow { id, made, accessed, accesses, forgotten, machine };
    assert_eq!(store.read().memory(id).unwrap(), Some(fresh.clone()));
    store.change().unwrap().touch_memories(&[id, 99], 250).unwrap();
    store.change().unwrap().touch_memories(&[id], 200).unwrap();
    let used = MemoryRow { accessed: 250, accesses: 2, ..fresh };
    assert_eq!(store.read().memory(id).unwrap(), Some(used));
    assert_eq!(store.read().memory(99).unwrap(), None);
}

#[test]
fn memories_are_found_in_their_scopes() {
    let mut store = store();
    let store = &mut *store;
    let scopes = [MemoryScope::Session(1), project(), MemoryScope::Everywhere];
    for scope in &scopes {
        store
            .change()
            .unwrap()
            .add_memory(&note(scope.clone(), "the port of the server is 4005"))
            .unwrap();
    }
    check(store, "port", &MemoryFilter::default(), &[3, 2, 1]);
    check(store, "which ports?", &of(&scopes[..2]), &[2, 1]);
    check(store, "port", &of(&[MemoryScope::Session(11)]), &[]);
    check(store, "port", &of(&[]), &[]);
    check(store, "absent", &of(&scopes), &[]);
    check(store, "what is the", &of(&scopes), &[]);
    check(store, "port OR \"(NEAR*", &of(&scopes[..1]), &[1]);
    assert_eq!(ids(&store.read().memories(&of(&scopes), 2).unwrap()), [3, 2]);
    assert_eq!(ids(&store.read().memories(&MemoryFilter::default(), u64::MAX).unwrap()), [3, 2, 1]);
}

#[test]
fn the_memory_with_the_rarer_words_is_best() {
    let mut store = store();
    for content in ["parser of lines", "the parser crashed in parseLine at column 9", "x"] {
        store.change().unwrap().add_memory(&note(MemoryScope::Everywhere, content)).unwrap();
    }
    check(&mut *store, "Why does parse_line crash?", &MemoryFilter::default(), &[2, 1]);
}

#[test]
fn a_forgotten_memory_can_be_brought_back() {
    let mut store = store();
    let store = &mut *store;
    let id = store.change().unwrap().add_memory(&note(project(), "port 4005")).unwrap();
    assert!(store.change().unwrap().set_memory_forgotten(id, Some(300)).unwrap());
    check(store, "port", &MemoryFilter::default(), &[]);
    assert!(store.read().memories(&MemoryFilter::default(), 9).unwrap().is_empty());
    let with_forgotten = MemoryFilter { with_forgotten: true, ..MemoryFilter::default() };
    check(store, "port", &with_forgotten, &[id]);
    assert_eq!(store.read().memory(id).unwrap().unwrap().forgotten, Some(300));
    assert!(store.change().unwrap().set_memory_forgotten(id, None).unwrap());
    check(store, "port", &MemoryFilter::default(), &[id]);
    assert!(!store.change().unwrap().set_memory_forgotten(99, Some(1)).unwrap());
}

#[test]
fn a_summary_does_not_ground_its_own_session() {
    let mut store = store();
    let store = &mut *store;
    let from = |session, kind: &str| NewMemory {
        kind: kind.into(),
        origin: Some(MemoryOrigin { session, first: 1, last: 2 }),
        ..note(project(), "[context-summary] port 4005")
    };
    for memory in [from(1, "context-summary"), from(2, "context-summary"), from(1, "archived")] {
        store.change().unwrap().add_memory(&memory).unwrap();
    }
    store.change().unwrap().add_memory(&note(project(), "port 4005 context-summary")).unwrap();
    let except = Some((1, "context-summary".to_owned()));
    let filter = MemoryFilter { except, ..of(&[project()]) };
    check(store, "port", &filter, &[4, 3, 2]);
    let archived = MemoryFilter { kind: Some("archived".into()), ..filter };
    check(store, "port", &archived, &[3]);
}

#[test]
fn neighbours_are_those_next_to_a_memory_in_its_session() {
    let mut store = store();
    let spans = [(1, 1, 3), (1, 4, 4), (1, 7, 9), (1, 20, 20), (2, 5, 5)];
    for (session, first, last) in spans {
        let origin = Some(MemoryOrigin { session, first, last });
        store.change().unwrap().add_memory(&NewMemory { origin, ..note(project(), "x") }).unwrap();
    }
    store.change().unwrap().add_memory(&note(project(), "x")).unwrap();
    let all = MemoryFilter::default();
    let mut beside = |of: &[u64]| ids(&store.read().memories_beside(of, &all).unwrap());
    assert_eq!(beside(&[2]), [1, 3]);
    assert_eq!(beside(&[3, 1]), [2]);
    assert!(beside(&[4, 5, 6, 99]).is_empty());
    store.change().unwrap().set_memory_forgotten(1, Some(1)).unwrap();
    assert_eq!(ids(&store.read().memories_beside(&[2], &all).unwrap()), [3]);
}

#[test]
fn vectors_are_kept_by_model() {
    let mut store = store();
    let everywhere = [MemoryScope::Everywhere];
    for scope in [&everywhere[0], &everywhere[0], &project()] {
        store.change().unwrap().add_memory(&note(scope.clone(), "x")).unwrap();
    }
    store.change().unwrap().set_memory_vector(1, "m", &[1.0, -0.5]).unwrap();
    store.change().unwrap().set_memory_vector(1, "m", &[0.25, f32::MIN_POSITIVE]).unwrap();
    store.change().unwrap().set_memory_vector(2, "other", &[]).unwrap();
    store.change().unwrap().set_memory_vector(3, "m", &[3.0]).unwrap();
    let filter = of(&everywhere);
    let expected = [(1, vec![0.25, f32::MIN_POSITIVE])];
    assert_eq!(store.read().memory_vectors(&filter, "m").unwrap(), expected);
    assert_eq!(store.read().memory_vectors(&MemoryFilter::default(), "m").unwrap().len(), 2);
    assert_eq!(store.read().memory_ids(&filter).unwrap(), [1, 2]);
    assert_eq!(store.read().memory_ids(&MemoryFilter::default()).unwrap(), [1, 2, 3]);
    assert_eq!(ids(&store.read().memories_without_vector("m", 9).unwrap()), [2]);
    assert_eq!(ids(&store.read().memories_without_vector("new", 1).unwrap()), [3]);
}
