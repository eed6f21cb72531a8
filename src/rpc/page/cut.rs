//! Cuts lists to a size in bytes, and entries that are too long for any page.

use crate::value::{Key, Value};
use crate::wire::dialect::Dialect;

/// Name of the member that marks an entry whose longest parts were cut.
pub(super) const TRUNCATED: &str = "truncated";
/// Maximum number of attempts to shorten an entry. Each attempt shortens the entry's longest part by
/// the surplus.
const ATTEMPTS: usize = 64;
/// Length, in bytes, up to which a number, name or switch is never cut. Those that the server
/// itself writes are shorter.
const KEPT_WHOLE: usize = 64;

/// A list and its path in the result.
type At = (&'static str, Vec<Value>);

/// Takes entries out of `lists`, beginning with the first list: as many as fit into `room` bytes,
/// and at most `most` from each list. Takes them from the ends of the lists if `newest_last`.
/// Returns the taken entries, by list, and removes the lists that are empty now. Shortens the first
/// entry if it does not fit and `has_all_room`; otherwise the next page has more room for it.
pub(super) fn fill(
    lists: &mut Vec<At>,
    room: usize,
    has_all_room: bool,
    most: Option<usize>,
    newest_last: bool,
    dialect: Dialect,
) -> Vec<At> {
    let (mut room, mut may_shorten) = (room, has_all_room);
    let mut filled = Vec::new();
    while let Some((path, items)) = lists.first_mut() {
        let mut taken = Vec::new();
        if !newest_last {
            items.reverse();
        }
        while most.is_none_or(|most| taken.len() < most)
            && let Some(mut item) = items.pop()
        {
            let mut bytes = dialect.length_of(&item) + 1;
            if bytes > room && may_shorten {
                item = shortened(item, room, dialect);
                bytes = dialect.length_of(&item) + 1;
            } else if bytes > room {
                items.push(item);
                break;
            }
            (room, may_shorten) = (room.saturating_sub(bytes), false);
            taken.push(item);
        }
        match newest_last {
            true => taken.reverse(),
            false => items.reverse(),
        }
        filled.push((*path, taken));
        if !items.is_empty() {
            break;
        }
        lists.remove(0);
    }
    filled
}

/// Returns an entry marked with [`TRUNCATED`], its longest parts cut until it fits into `room`
/// bytes or nothing more can be cut.
fn shortened(mut item: Value, room: usize, dialect: Dialect) -> Value {
    if let Value::Map(entries) = &mut item {
        entries.push((Key::from(TRUNCATED), Value::Bool(true)));
    }
    for _ in 0..ATTEMPTS {
        let bytes = dialect.length_of(&item) + 1;
        match bytes.checked_sub(room) {
            None | Some(0) => break,
            Some(surplus) => shorten(&mut item, surplus, dialect),
        }
    }
    item
}

/// Removes about `surplus` bytes from the longest part of `value` that can be cut.
fn shorten(value: &mut Value, surplus: usize, dialect: Dialect) {
    match value {
        Value::Str(text) => {
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(surplus)));
        }
        Value::Map(entries) => {
            let longest = entries.iter_mut().max_by_key(|(_, value)| length_to_cut(value, dialect));
            if let Some((_, value)) = longest {
                shorten(value, surplus, dialect);
            }
        }
        Value::List(items) | Value::Vector(items) => {
            let mut removed = 0;
            while removed < surplus
                && let Some(item) = items.pop()
            {
                removed += dialect.length_of(&item) + 1;
            }
        }
        other if length_to_cut(other, dialect) > 0 => *other = Value::Nil,
        _ => {}
    }
}

/// Returns the number of bytes that cutting a value can save, roughly.
fn length_to_cut(value: &Value, dialect: Dialect) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(items) | Value::Vector(items) if items.is_empty() => 0,
        Value::List(_) | Value::Vector(_) => dialect.length_of(value),
        Value::Map(entries) => entries.iter().map(|(_, value)| length_to_cut(value, dialect)).sum(),
        other => Some(dialect.length_of(other)).filter(|bytes| *bytes > KEPT_WHOLE).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(range: std::ops::Range<i64>) -> Vec<Value> {
        range.map(Value::Int).collect()
    }

    #[test]
    fn lists_are_filled_one_after_the_other() {
        let mut lists = vec![("a", numbers(0..4)), ("b", numbers(4..9))];
        let mut fill = |room, most| fill(&mut lists, room, true, most, false, Dialect::Native);
        assert_eq!(fill(6, None), [("a", numbers(0..3))]);
        assert_eq!(fill(6, None), [("a", numbers(3..4)), ("b", numbers(4..6))]);
        assert_eq!(fill(100, Some(2)), [("b", numbers(6..8))]);
        assert_eq!(fill(100, Some(2)), [("b", numbers(8..9))]);
        assert!(lists.is_empty());
    }

    #[test]
    fn the_newest_come_first_and_stay_in_their_order() {
        let mut lists = vec![("a", numbers(0..5))];
        let mut fill = |room, most| fill(&mut lists, room, true, most, true, Dialect::Json);
        assert_eq!(fill(4, None), [("a", numbers(3..5))]);
        assert_eq!(fill(100, Some(0)), [("a", vec![])]);
        assert_eq!(fill(100, None), [("a", numbers(0..3))]);
    }

    #[test]
    fn numbers_names_and_switches_are_never_cut() {
        let kept = [
            ("at", Value::Int(1_767_225_600)),
            ("strategy", Value::Keyword("tiered".into())),
            ("is-exact", Value::Bool(false)),
        ];
        let mut members = kept.to_vec();
        members.extend([
            ("text", Value::Str("x".repeat(90))),
            ("name", Value::Symbol("x".repeat(90).into())),
        ]);
        let entry = members.into_iter().map(|(name, value)| (Key::from(name), value)).collect();
        for dialect in [Dialect::Native, Dialect::Json] {
            let item = shortened(Value::Map(Vec::clone(&entry)), 10, dialect);
            for (name, value) in &kept {
                assert_eq!(item.get(name), Some(value), "{item:?}");
            }
            assert_eq!(item.get(TRUNCATED), Some(&Value::Bool(true)));
            assert_eq!(item.get("text"), Some(&Value::Str(String::new())));
            assert_eq!(item.get("name"), Some(&Value::Nil));
        }
    }

    #[test]
    fn an_entry_without_room_beside_other_members_waits_for_the_next_page() {
        let entry = || Value::Str("x".repeat(80));
        let mut lists = vec![("a", vec![entry()])];
        assert_eq!(fill(&mut lists, 50, false, None, false, Dialect::Json), [("a", vec![])]);
        assert_eq!(fill(&mut lists, 90, true, None, false, Dialect::Json), [("a", vec![entry()])]);
    }

    #[test]
    fn an_empty_page_has_no_entry_however_long_the_first_is() {
        let mut lists = vec![("a", vec![Value::Str("x".repeat(80))])];
        assert_eq!(fill(&mut lists, 50, true, Some(0), false, Dialect::Native), [("a", vec![])]);
        assert_eq!(lists[0].1.len(), 1);
    }

    #[test]
    fn an_entry_that_is_too_long_for_any_page_is_shortened_and_says_so() {
        let entry = |text: String| {
            let list = Value::List(numbers(0..50));
            let entries = [("id", Value::Int(1)), ("text", Value::Str(text)), ("list", list)];
            Value::Map(entries.map(|(name, value)| (Key::from(name), value)).to_vec())
        };
        for text in ["x".repeat(5000), "\n\u{1}λ\"".repeat(2000), String::new()] {
            for dialect in [Dialect::Native, Dialect::Json] {
                let mut lists = vec![("a", vec![entry(text.clone())])];
                let filled = fill(&mut lists, 100, true, None, false, dialect);
                let item = &filled[0].1[0];
                assert!(dialect.length_of(item) < 100, "{item:?}");
                assert_eq!(item.get("id"), Some(&Value::Int(1)));
                assert_eq!(item.get(TRUNCATED), Some(&Value::Bool(true)));
                assert!(lists.is_empty());
            }
        }
    }
}
