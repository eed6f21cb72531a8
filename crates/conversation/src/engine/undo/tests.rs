//! Tests of undo and redo: managers that move items to each other, sets, items that follow their
//! sources, and random sequences compared with a model, across restarts.

use std::path::Path;
use std::sync::Arc;

use contexture_core::testing::rounds;
use proptest::prelude::*;

use super::*;
use crate::context::change::ContextSettings;
use crate::context::item::{Item, Kind, Metadata};
use crate::context::manager::ItemPlace;
use crate::context::picture::PICTURE;
use crate::engine::{ItemChanges, NewItem, Selection};
use crate::store::recovery;
use crate::value::Value;

fn open(folder: &Path) -> Engine {
    let store = recovery::open(folder, Box::new(|| Ok(()))).unwrap().store;
    Engine::new(Box::new(store), Box::new(|| 1_000_000), ContextSettings { max_items: 50 }).unwrap()
}

fn add(engine: &mut Engine, manager: &str, content: &str) -> ItemId {
    let item = NewItem {
        kind: Kind::Code,
        content: content.into(),
        metadata: Metadata::default(),
        taken_ms: 0,
        tokens: 1,
        counted_by: "estimate",
        live: true,
        pinned: false,
    };
    let added = engine.run_alone(|engine| engine.add("add-item", manager, vec![item]));
    ItemId(added.unwrap().ids[0])
}

/// Makes an item follow its source, whose text is now `content`.
fn follow(engine: &mut Engine, manager: &str, id: ItemId, content: &str) {
    let old = engine.view(manager, id).unwrap().item;
    let new = Arc::new(Item { content: content.into(), ..Item::clone(&old) });
    let version = (manager.to_owned(), old, new);
    engine.run_alone(|engine| engine.follow([version])).unwrap();
}

fn update(engine: &mut Engine, id: ItemId, content: &str) {
    let content = Some((content.into(), 1, "estimate", 5));
    let revision = ItemChanges { content, ..ItemChanges::default() };
    engine.run_alone(|engine| engine.update("update-items", "m", vec![(id, revision)])).unwrap();
}

fn undo(engine: &mut Engine, manager: &str) -> Result<String, EngineError> {
    engine.run_alone(|engine| engine.undo(manager)).map(|done| done.undone)
}

fn redo(engine: &mut Engine, manager: &str) -> Result<String, EngineError> {
    engine.run_alone(|engine| engine.redo(manager)).map(|done| done.redone)
}

/// Returns the items as stored, after comparing them with those in memory.
fn items(engine: &mut Engine, manager: &str) -> Vec<(ItemId, String, bool)> {
    let selection = Selection { managers: vec![manager.to_owned()], ..Selection::default() };
    let mut read = || {
        let views = engine.select(&selection).unwrap();
        engine.managers.clear();
        views
            .iter()
            .map(|view| (view.item.id, view.item.content.to_string(), view.pinned))
            .collect::<Vec<_>>()
    };
    let in_memory = read();
    assert_eq!(read(), in_memory, "as stored");
    in_memory
}

#[test]
fn the_content_of_a_picture_stays_as_long_as_an_undo_brings_the_picture_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = open(folder.path());
    let keep = |engine: &mut Engine, name: &str| {
        engine.run_alone(|engine| engine.keep_picture(name, b"picture")).unwrap();
    };
    keep(&mut engine, "shown");
    keep(&mut engine, "nowhere");
    let id = add(&mut engine, "m", "shot.png");
    let old = engine.view("m", id).unwrap().item;
    let mut metadata = Metadata::default();
    metadata.set(PICTURE, Value::Map(vec![("hash".into(), Value::Str("shown".into()))]));
    let new = Arc::new(Item { metadata, ..Item::clone(&old) });
    engine.run_alone(|engine| engine.follow([("m".to_owned(), old, new)])).unwrap();
    engine.run_alone(|engine| engine.remove("m", &[id])).unwrap();
    for number in 0..40 {
        keep(&mut engine, &format!("other {number}"));
    }
    let kept = |engine: &mut Engine, name: &str| engine.read().picture(name).unwrap().is_some();
    assert!(!kept(&mut engine, "nowhere") && !kept(&mut engine, "other 0"));
    assert!(kept(&mut engine, "shown") && kept(&mut engine, "other 39"));
    undo(&mut engine, "m").unwrap();
    assert_eq!(items(&mut engine, "m").len(), 1);
}

#[track_caller]
fn check(engine: &mut Engine, manager: &str, expected: &[&str]) {
    let contents: Vec<String> = items(engine, manager).into_iter().map(|item| item.1).collect();
    assert_eq!(contents, expected);
}

fn new(content: &str) -> NewItem {
    NewItem {
        kind: Kind::Code,
        content: content.into(),
        metadata: Metadata::default(),
        taken_ms: 0,
        tokens: 1,
        counted_by: "estimate",
        live: false,
        pinned: false,
    }
}

#[test]
fn what_one_request_changed_is_one_step_at_any_size_and_in_all_managers() {
    const MANY: u64 = 3 * crate::store::UNDO_DEPTH;
    let temp = tempfile::tempdir().unwrap();
    let mut engine = open(temp.path());
    engine.run_alone(|engine| engine.configure("m", ContextSettings { max_items: 1000 })).unwrap();
    add(&mut engine, "m", "before");
    let many = |engine: &mut Engine| {
        for number in 0..MANY {
            let added = engine.add("add-item", "m", vec![new(&number.to_string())])?;
            let revision = ItemChanges { kind: Some(Kind::Text), ..ItemChanges::default() };
            engine.update("update-items", "m", vec![(ItemId(added.ids[0]), revision)])?;
        }
        engine.add("add-item", "other", vec![new("there")])
    };
    engine.run_alone(many).unwrap();
    let all = items(&mut engine, "m");
    assert_eq!(all.len() as u64, MANY + 1);
    drop(engine);
    let mut engine = open(temp.path());
    let undone = engine.run_alone(|engine| engine.undo("m")).unwrap();
    assert_eq!((undone.undone.as_str(), undone.also), ("add-item", vec!["other".to_owned()]));
    check(&mut engine, "m", &["before"]);
    check(&mut engine, "other", &[]);
    let redone = engine.run_alone(|engine| engine.redo("other")).unwrap();
    assert_eq!(redone.also, ["m"]);
    assert_eq!(items(&mut engine, "m"), all);
    check(&mut engine, "other", &["there"]);
    undo(&mut engine, "m").unwrap();
    undo(&mut engine, "m").unwrap();
    check(&mut engine, "m", &[]);
}

#[test]
fn a_later_request_can_join_a_step() {
    let temp = tempfile::tempdir().unwrap();
    let mut engine = open(temp.path());
    add(&mut engine, "m", "a");
    let step = engine.manager("m").unwrap().version();
    let more = |engine: &mut Engine| {
        engine.join_step(step);
        engine.add("add-item", "m", vec![new("b")])
    };
    engine.run_alone(more).unwrap();
    check(&mut engine, "m", &["a", "b"]);
    undo(&mut engine, "m").unwrap();
    check(&mut engine, "m", &[]);
}

#[test]
fn a_manager_that_changed_since_keeps_its_part_of_a_step() {
    let temp = tempfile::tempdir().unwrap();
    let mut engine = open(temp.path());
    let both = |engine: &mut Engine| {
        engine.add("add-item", "m", vec![new("here")])?;
        engine.add("add-item", "other", vec![new("there")])
    };
    engine.run_alone(both).unwrap();
    add(&mut engine, "other", "later");
    let undone = engine.run_alone(|engine| engine.undo("m")).unwrap();
    assert!(undone.also.is_empty());
    check(&mut engine, "m", &[]);
    check(&mut engine, "other", &["there", "later"]);
}

#[test]
fn a_new_change_forgets_what_could_be_redone_and_following_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let a = add(&mut engine, "m", "a");
    add(&mut engine, "m", "b");
    undo(&mut engine, "m").unwrap();
    follow(&mut engine, "m", a, "A");
    assert_eq!(redo(&mut engine, "m").unwrap(), "add-item");
    check(&mut engine, "m", &["A", "b"]);
    undo(&mut engine, "m").unwrap();
    add(&mut engine, "m", "c");
    let error = redo(&mut engine, "m").unwrap_err();
    assert_eq!(error.kind(), "nothing-to-redo");
    check(&mut engine, "m", &["A", "c"]);
}

#[test]
fn following_drops_no_version_that_a_redo_needs() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let a = add(&mut engine, "m", "a");
    follow(&mut engine, "m", a, "A");
    update(&mut engine, a, "x");
    undo(&mut engine, "m").unwrap();
    follow(&mut engine, "m", a, "B");
    assert_eq!(redo(&mut engine, "m").unwrap(), "update-items");
    check(&mut engine, "m", &["x"]);
    undo(&mut engine, "m").unwrap();
    check(&mut engine, "m", &["B"]);
}

#[test]
fn what_undo_and_redo_would_do_has_a_name_and_can_be_rehearsed() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let a = add(&mut engine, "m", "a");
    follow(&mut engine, "m", a, "A");
    let next = |engine: &mut Engine, way| {
        let next = engine.operations("m", 1).unwrap().into_iter().find(|it| it.next == Some(way));
        next.map(|next| (next.method, next.items[0].content.clone()))
    };
    let added = Some(("add-item".to_owned(), Arc::from("a")));
    assert_eq!((next(&mut engine, Way::Undo), next(&mut engine, Way::Redo)), (added.clone(), None));
    let version = engine.manager("m").unwrap().version();
    let rehearsed = engine.run_alone(|engine| engine.rehearse(|engine| engine.undo("m"))).unwrap();
    assert_eq!(rehearsed.undone, "add-item");
    check(&mut engine, "m", &["A"]);
    assert_eq!(engine.manager("m").unwrap().version(), version);
    undo(&mut engine, "m").unwrap();
    assert_eq!((next(&mut engine, Way::Undo), next(&mut engine, Way::Redo)), (None, added));
    let failed = engine.run_alone(|engine| engine.rehearse(|engine| engine.undo("m")));
    assert_eq!(failed.unwrap_err().kind(), "nothing-to-undo");
    redo(&mut engine, "m").unwrap();
    check(&mut engine, "m", &["A"]);
}

#[test]
fn any_operation_that_is_kept_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let texts = ["a", "b", "c", "d"];
    for text in texts {
        add(&mut engine, "m", text);
    }
    for number in [2, 4, 0, 3, 1, 3] {
        let restored = engine.run_alone(|engine| engine.restore("m", number));
        assert_eq!(restored.unwrap(), Vec::<String>::new());
        check(&mut engine, "m", &texts[..number as usize]);
        let numbers: Vec<u64> =
            engine.operations("m", u64::MAX).unwrap().iter().map(|it| it.number).collect();
        assert_eq!(numbers, [4, 3, 2, 1]);
    }
    let error = engine.run_alone(|engine| engine.restore("m", 9)).unwrap_err();
    assert_eq!(error.kind(), "no-such-operation");
}

#[test]
fn a_move_is_redone_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let x = add(&mut engine, "a", "x");
    let transfer = |engine: &mut Engine| {
        engine.run_alone(|engine| engine.transfer("transfer-items", "a", &[x], "b")).unwrap()
    };
    transfer(&mut engine);
    for (undone, redone) in [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")] {
        undo(&mut engine, undone).unwrap();
        check(&mut engine, "a", &["x"]);
        check(&mut engine, "b", &[]);
        redo(&mut engine, redone).unwrap();
        check(&mut engine, "a", &[]);
        check(&mut engine, "b", &["x"]);
    }
    // The other side has changed meanwhile.
    undo(&mut engine, "a").unwrap();
    add(&mut engine, "b", "y");
    assert_eq!(redo(&mut engine, "a").unwrap(), "transfer-items");
    check(&mut engine, "a", &[]);
    check(&mut engine, "b", &["y", "x"]);
    // The manager that the item came from has changed, but the item is still moved back.
    let b = add(&mut engine, "a", "z");
    undo(&mut engine, "b").unwrap();
    check(&mut engine, "a", &["z", "x"]);
    redo(&mut engine, "b").unwrap();
    check(&mut engine, "a", &["z"]);
    check(&mut engine, "b", &["y", "x"]);
    // The item is gone from there: nothing is redone.
    undo(&mut engine, "b").unwrap();
    engine.run_alone(|engine| engine.remove("a", &[x, b])).unwrap();
    assert_eq!(redo(&mut engine, "b").unwrap_err().kind(), "no-such-item");
    check(&mut engine, "b", &["y"]);
}

#[test]
fn a_move_is_not_undone_once_the_item_went_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let x = add(&mut engine, "a", "x");
    let transfer = |engine: &mut Engine, from: &str, to: &str| {
        engine.run_alone(|engine| engine.transfer("transfer-items", from, &[x], to)).unwrap();
    };
    transfer(&mut engine, "a", "b");
    transfer(&mut engine, "b", "c");
    let error = undo(&mut engine, "a").unwrap_err();
    assert_eq!(error.to_string(), "no item ctx-1 in \"b\"; it is in \"c\"");
    check(&mut engine, "a", &[]);
    undo(&mut engine, "b").unwrap();
    undo(&mut engine, "a").unwrap();
    check(&mut engine, "a", &["x"]);
    check(&mut engine, "b", &[]);
    check(&mut engine, "c", &[]);
    // A removed item comes back where it was removed, and then goes back.
    transfer(&mut engine, "a", "b");
    engine.run_alone(|engine| engine.remove("b", &[x])).unwrap();
    assert_eq!(undo(&mut engine, "a").unwrap_err().to_string(), "no item ctx-1 in \"b\"");
    undo(&mut engine, "b").unwrap();
    undo(&mut engine, "a").unwrap();
    check(&mut engine, "a", &["x"]);
    check(&mut engine, "b", &[]);
}

/// Names of managers between which random steps move items.
const THREE: [&str; 3] = ["a", "b", "c"];

/// A random step: what is done, in which manager, with which item, and to which manager.
type Step = (usize, usize, usize, usize);

/// Does a random step, which may be refused. Returns false if the engine has to restart.
fn step(engine: &mut Engine, (what, at, number, to): Step) -> bool {
    let (at, to) = (THREE[at], THREE[to]);
    let held = items(engine, at);
    let id = number.checked_rem(held.len()).map(|number| held[number].0);
    match (what, id) {
        (0..4, Some(id)) if at != to => {
            let moved = engine.run_alone(|engine| engine.transfer("transfer-items", at, &[id], to));
            moved.unwrap();
        }
        (4, Some(id)) => drop(engine.run_alone(|engine| engine.remove(at, &[id])).unwrap()),
        (5..9, _) => drop(undo(engine, at)),
        (9..12, _) => drop(redo(engine, at)),
        (12, _) => return false,
        _ => drop(add(engine, at, "x")),
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(24, 256)))]

    #[test]
    fn an_item_is_never_in_two_managers(
        steps in prop::collection::vec((0..14_usize, 0..3_usize, 0..9_usize, 0..3_usize), 1..60)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path());
        for (number, done) in steps.iter().enumerate() {
            if !step(&mut engine, *done) {
                drop(engine);
                engine = open(dir.path());
            }
            let all = THREE.map(|manager| items(&mut engine, manager)).concat();
            let ids: std::collections::HashSet<_> = all.iter().map(|item| item.0).collect();
            prop_assert_eq!(ids.len(), all.len(), "after step {}: {:?}", number, done);
        }
    }
}

#[test]
fn sets_are_saved_and_dropped_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    add(&mut engine, "m", "a");
    engine.run_alone(|engine| engine.save_set("m", "s")).unwrap();
    let sets = |engine: &mut Engine| engine.read().sets().unwrap().len();
    undo(&mut engine, "m").unwrap();
    assert_eq!(sets(&mut engine), 0);
    redo(&mut engine, "m").unwrap();
    assert_eq!(sets(&mut engine), 1);
    undo(&mut engine, "m").unwrap();
    engine.run_alone(|engine| engine.save_set("other", "s")).unwrap();
    assert_eq!(redo(&mut engine, "m").unwrap_err().kind(), "set-changed");
}

#[test]
fn following_takes_no_steps_away() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let [a, b] = ["a", "b"].map(|text| add(&mut engine, "m", text));
    for number in 0..300 {
        follow(&mut engine, "m", a, &format!("a {number}"));
        follow(&mut engine, "m", b, &format!("b {number}"));
    }
    for number in 0..97 {
        follow(&mut engine, "m", a, &format!("then {number}"));
        update(&mut engine, b, &format!("{number}"));
    }
    drop(engine);
    let mut engine = open(dir.path());
    for _ in 0..99 {
        undo(&mut engine, "m").unwrap();
    }
    assert_eq!(items(&mut engine, "m").len(), 0);
}

#[test]
fn no_version_of_an_item_is_left_over_once_nothing_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let a = add(&mut engine, "m", "a");
    for number in 0..150 {
        add(&mut engine, "m", &format!("new {number}"));
        undo(&mut engine, "m").unwrap();
        follow(&mut engine, "m", a, &format!("a {number}"));
    }
    for number in 0..100 {
        update(&mut engine, a, &format!("b {number}"));
    }
    engine.run_alone(|engine| engine.read().sets().map(drop).map_err(EngineError::from)).unwrap();
    engine.settle();
    drop(engine);
    let db = rusqlite::Connection::open(dir.path().join("contexture.db")).unwrap();
    let count: u64 = db.query_row("SELECT count(*) FROM version", [], |row| row.get(0)).unwrap();
    let kept: u64 = db.query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap();
    assert!(count <= kept + 1, "{count} versions for {kept} changes");
}

/// A step of a random sequence. Numbers choose one of the items, modulo their count.
#[derive(Debug, Clone)]
enum Act {
    Add,
    Remove(usize),
    Clear,
    Pin(usize, bool),
    Move(usize, usize),
    Update(usize),
    Follow(usize),
    Undo,
    Redo,
    Restart,
}

/// An item of the model: its id, its text now, the text that it was last given by a change other
/// than following its source, and whether it is pinned.
type Modelled = (ItemId, String, String, bool);

/// A simple model of undo: the earlier states, the current state, and the undone states.
#[derive(Default)]
struct UndoModel {
    before: Vec<Vec<Modelled>>,
    now: Vec<Modelled>,
    undone: Vec<Vec<Modelled>>,
}

impl UndoModel {
    fn change(&mut self, now: Vec<Modelled>) {
        if now != self.now {
            self.before.push(std::mem::replace(&mut self.now, now));
            self.undone.clear();
        }
    }

    /// Gives the item this text, now and after each undone change that does not replace the text.
    fn follow(&mut self, id: ItemId, text: &str) {
        let given = self.now.iter().find(|it| it.0 == id).unwrap().2.clone();
        let all = self.undone.iter_mut().chain([&mut self.now]).flatten();
        all.filter(|it| it.0 == id && it.2 == given).for_each(|it| text.clone_into(&mut it.1));
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => Just(Act::Add),
        2 => any::<usize>().prop_map(Act::Remove),
        1 => Just(Act::Clear),
        2 => any::<(usize, bool)>().prop_map(|(at, pinned)| Act::Pin(at, pinned)),
        2 => any::<(usize, usize)>().prop_map(|(at, to)| Act::Move(at, to)),
        3 => any::<usize>().prop_map(Act::Update),
        3 => any::<usize>().prop_map(Act::Follow),
        8 => Just(Act::Undo),
        8 => Just(Act::Redo),
        1 => Just(Act::Restart),
    ];
    prop::collection::vec(act, 1..60)
}

/// Applies one step to the engine and to the model. Returns false if the engine has to restart.
fn apply(engine: &mut Engine, model: &mut UndoModel, act: &Act, text: &str) -> bool {
    let at = |number: usize| number.checked_rem(model.now.len());
    let id = |at: usize| model.now[at].0;
    let mut now = model.now.clone();
    match *act {
        Act::Restart => return false,
        Act::Undo => match model.before.pop() {
            None => assert!(undo(engine, "m").is_err()),
            Some(before) => {
                undo(engine, "m").unwrap();
                model.undone.push(std::mem::replace(&mut model.now, before));
            }
        },
        Act::Redo => match model.undone.pop() {
            None => assert!(redo(engine, "m").is_err()),
            Some(after) => {
                redo(engine, "m").unwrap();
                model.before.push(std::mem::replace(&mut model.now, after));
            }
        },
        Act::Add => {
            now.push((add(engine, "m", text), text.to_owned(), text.to_owned(), false));
            model.change(now);
        }
        Act::Clear => {
            engine.run_alone(|engine| engine.clear("m")).unwrap();
            model.change(Vec::new());
        }
        Act::Follow(number) => {
            let Some(at) = at(number) else { return true };
            let id = id(at);
            follow(engine, "m", id, text);
            model.follow(id, text);
        }
        Act::Remove(number) => {
            let Some(at) = at(number) else { return true };
            engine.run_alone(|engine| engine.remove("m", &[id(at)])).unwrap();
            now.remove(at);
            model.change(now);
        }
        Act::Update(number) => {
            let Some(at) = at(number) else { return true };
            update(engine, id(at), text);
            (now[at].1, now[at].2) = (text.to_owned(), text.to_owned());
            model.change(now);
        }
        Act::Pin(number, pinned) => {
            let Some(at) = at(number) else { return true };
            let pin = ItemChanges { pinned: Some(pinned), ..ItemChanges::default() };
            engine.run_alone(|e| e.update("pin-items", "m", vec![(id(at), pin)])).unwrap();
            now[at].3 = pinned;
            model.change(now);
        }
        Act::Move(number, to) => {
            let Some((at, to)) = at(number).zip(at(to)) else { return true };
            engine.run_alone(|e| e.move_item("m", id(at), ItemPlace::Index(to))).unwrap();
            let moved = now.remove(at);
            now.insert(to, moved);
            model.change(now);
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(24, 256)))]

    #[test]
    fn random_sequences_agree_with_a_simple_model(acts in acts()) {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path());
        let (mut model, mut version) = (UndoModel::default(), 0);
        for (number, act) in acts.iter().enumerate() {
            if !apply(&mut engine, &mut model, act, &format!("text {number}")) {
                drop(engine);
                engine = open(dir.path());
            }
            let expected: Vec<_> =
                model.now.iter().map(|(id, text, _, pinned)| (*id, text.clone(), *pinned)).collect();
            prop_assert_eq!(items(&mut engine, "m"), expected, "after {}: {:?}", number, act);
            let undone = engine.operations("m", u64::MAX).unwrap();
            let undone = undone.iter().take_while(|it| it.next != Some(Way::Undo));
            prop_assert_eq!(undone.count(), model.undone.len());
            let now = engine.manager("m").unwrap().version();
            prop_assert!(now >= version, "the version went back");
            version = now;
        }
    }
}
