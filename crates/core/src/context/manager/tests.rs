//! Tests that compare the manager with a plain model, and tests of each of its rules.

use proptest::prelude::*;

use super::*;
use crate::context::item::{Kind, Metadata};

fn item(id: u64) -> Arrival {
    let item = Item {
        id: ItemId(id),
        kind: Kind::Code,
        content: "x".into(),
        metadata: Metadata::default(),
        timestamp: 0,
        taken_ms: 0,
        tokens: 1,
        counted_by: "estimate",
        live: false,
    };
    Arrival { item: Arc::new(item), version: id, pinned: false }
}

/// Plans to pin or unpin items.
fn pin(manager: &Manager, ids: &[u64], pinned: bool) -> Result<Change, ManagerError> {
    let updates = ids.iter().map(|id| match manager.slot(ItemId(*id)) {
        Some(slot) => Arrival { pinned, version: slot.version, item: Arc::clone(&slot.item) },
        None => item(*id),
    });
    manager.plan_update("pin", updates.collect())
}

fn manager(capacity: usize, ids: std::ops::RangeInclusive<u64>) -> Manager {
    let mut manager = Manager::new(ContextSettings { max_items: capacity });
    for id in ids {
        let change = manager.plan_add("add-item", vec![item(id)]).unwrap();
        manager.apply(&change);
    }
    manager
}

fn ids(manager: &Manager) -> Vec<u64> {
    manager.slots().map(|slot| slot.item.id.0).collect()
}

#[track_caller]
fn check(manager: &mut Manager, plan: impl Fn(&Manager) -> Change, expected: &[u64]) {
    let before = ids(manager);
    let change = plan(manager);
    manager.apply(&change);
    assert_eq!(ids(manager), expected);
    assert_eq!(manager.tokens(), expected.len() as u64);
    let mut undone = manager.clone();
    undone.apply(&change.inverse());
    assert_eq!(ids(&undone), before);
}

#[test]
fn eviction_takes_the_oldest_unpinned_item() {
    let mut manager = manager(3, 1..=3);
    check(&mut manager, |m| pin(m, &[1], true).unwrap(), &[1, 2, 3]);
    check(&mut manager, |m| m.plan_add("add", vec![item(4)]).unwrap(), &[1, 3, 4]);
    let change = manager.plan_add("add", vec![item(5)]).unwrap();
    assert_eq!(change.leaving().collect::<Vec<_>>(), [ItemId(3)]);
}

#[test]
fn a_manager_full_of_pinned_items_refuses_another() {
    let mut manager = manager(2, 1..=2);
    check(&mut manager, |m| pin(m, &[1, 2], true).unwrap(), &[1, 2]);
    let full = ManagerError::CapacityFull { adding: 1, capacity: 2, pinned: 2 };
    assert_eq!(manager.plan_add("add", vec![item(3)]), Err(full));
}

#[test]
fn too_many_arrivals_are_refused_as_a_whole() {
    let manager = manager(3, 1..=1);
    let arrivals = (2..=5).map(item).collect();
    let full = ManagerError::CapacityFull { adding: 4, capacity: 3, pinned: 0 };
    assert_eq!(manager.plan_add("add", arrivals), Err(full));
}

#[test]
fn a_full_manager_says_what_does_not_fit_and_what_to_do() {
    let said = |adding, capacity, pinned| {
        ManagerError::CapacityFull { adding, capacity, pinned }.to_string()
    };
    assert_eq!(
        said(1, 2, 2),
        "1 more item does not fit: the manager holds at most 2 items, and 2 are pinned; unpin or \
         remove some, or raise :max-items with configure-manager"
    );
    assert_eq!(
        said(2, 2, 1),
        "2 more items do not fit: the manager holds at most 2 items, and 1 is pinned; unpin or \
         remove some, or raise :max-items with configure-manager"
    );
    assert_eq!(
        said(1, 1, 0),
        "1 more item does not fit: the manager holds at most 1 item; remove some, or raise \
         :max-items with configure-manager"
    );
    assert_eq!(
        said(4, 3, 0),
        "4 items do not fit: the manager holds at most 3 items; raise :max-items with \
         configure-manager"
    );
}

#[test]
fn items_move_by_index_and_beside_others() {
    let mut manager = manager(9, 1..=4);
    let to = |id, place| move |m: &Manager| m.plan_move("move", ItemId(id), place).unwrap();
    check(&mut manager, to(4, ItemPlace::Index(0)), &[4, 1, 2, 3]);
    check(&mut manager, to(4, ItemPlace::Index(99)), &[1, 2, 3, 4]);
    check(&mut manager, to(1, ItemPlace::After(ItemId(3))), &[2, 3, 1, 4]);
    check(&mut manager, to(4, ItemPlace::Before(ItemId(2))), &[4, 2, 3, 1]);
    check(&mut manager, to(2, ItemPlace::Before(ItemId(2))), &[4, 2, 3, 1]);
    assert_eq!(
        manager.plan_move("move", ItemId(1), ItemPlace::After(ItemId(7))),
        Err(ManagerError::NoSuchItem(ItemId(7)))
    );
}

#[test]
fn repeated_moves_between_the_same_neighbours_renumber() {
    let mut manager = manager(9, 1..=4);
    for _ in 0..60 {
        let change = manager.plan_move("move", ItemId(4), ItemPlace::After(ItemId(1))).unwrap();
        manager.apply(&change);
        let change = manager.plan_move("move", ItemId(3), ItemPlace::After(ItemId(1))).unwrap();
        manager.apply(&change);
        assert_eq!(ids(&manager), [1, 3, 4, 2]);
    }
}

#[test]
fn a_smaller_capacity_evicts_the_oldest_unpinned_items() {
    let mut manager = manager(5, 1..=5);
    check(&mut manager, |m| pin(m, &[2], true).unwrap(), &[1, 2, 3, 4, 5]);
    let smaller = ContextSettings { max_items: 2 };
    check(&mut manager, |m| m.plan_settings("configure", smaller).unwrap(), &[2, 5]);
    assert_eq!(manager.settings(), smaller);
    let too_small = manager.plan_settings("configure", ContextSettings { max_items: 0 });
    assert_eq!(too_small, Err(ManagerError::PinnedExceedCapacity { capacity: 0, pinned: 1 }));
}

proptest! {
    #[test]
    fn any_history_matches_a_plain_model_and_undoes_to_empty(
        steps in proptest::collection::vec((0..6u8, 0..12u64, 0..12usize), 1..120),
    ) {
        let mut manager = Manager::new(ContextSettings { max_items: 6 });
        let mut model: Vec<(u64, bool)> = Vec::new();
        let mut history = Vec::new();
        for (next, (op, a, b)) in steps.into_iter().enumerate() {
            let id = model.get(a as usize % model.len().max(1)).map_or(ItemId(999), |m| ItemId(m.0));
            let at = model.iter().position(|m| m.0 == id.0);
            let planned = match op {
                0..=2 => manager.plan_add("add", vec![item(1000 + next as u64)]),
                3 => manager.plan_remove("remove", &[id]),
                4 => pin(&manager, &[id.0], b % 2 == 0),
                _ => manager.plan_move("move", id, ItemPlace::Index(b)),
            };
            match (op, at) {
                (0..=2, _) => {
                    if model.len() == 6 {
                        if let Some(oldest) = model.iter().position(|m| !m.1) {
                            model.remove(oldest);
                            model.push((1000 + next as u64, false));
                        }
                    } else {
                        model.push((1000 + next as u64, false));
                    }
                }
                (3, Some(at)) => drop(model.remove(at)),
                (4, Some(at)) => model[at].1 = b % 2 == 0,
                (_, Some(at)) => {
                    let moved = model.remove(at);
                    model.insert(b.min(model.len()), moved);
                }
                (_, None) => {}
            }
            if let Ok(change) = planned {
                manager.apply(&change);
                history.push(change);
            }
            prop_assert_eq!(ids(&manager), model.iter().map(|m| m.0).collect::<Vec<_>>());
            prop_assert!(manager.slots().all(|s| manager.slot(s.item.id) == Some(s)));
        }
        for change in history.into_iter().rev() {
            manager.apply(&change.inverse());
        }
        prop_assert!(manager.is_empty());
        prop_assert_eq!(manager.tokens(), 0);
    }
}
