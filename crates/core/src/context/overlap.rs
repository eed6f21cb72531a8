//! Shortens items that share some of their lines with later ones, so that each line is sent once.
//! Items of one manager are joined when they are added; those of several managers stay apart.

use super::item::{Item, ItemId};
use super::repeat::text_source;

/// An item without the lines that another item has, too.
pub struct Shortened {
    /// The item with the lines that are left.
    pub item: Item,
    /// The items that have the other lines.
    pub others: Vec<ItemId>,
}

/// Returns each item without the lines that later items have, or `None` if it stays as it is. An
/// item whose lines are all in another one is left to [`covered`](super::repeat::covered). `count`
/// counts the tokens of what is left.
pub fn shortened(items: &[&Item], count: impl Fn(&str) -> u64) -> Vec<Option<Shortened>> {
    let cut = |(index, item): (usize, &&Item)| {
        let mut left = lines(item)?;
        let mut others = Vec::new();
        for later in &items[index + 1..] {
            let Some(taken) = lines(later).filter(|_| text_source(item) == text_source(later))
            else {
                continue;
            };
            if let Some(rest) = without(item, left, later, taken) {
                left = rest;
                others.push(later.id);
            }
        }
        let ((start, end), (first, _)) = (left, lines(item)?);
        let at = |line: u64| usize::try_from(line - first).ok();
        let kept =
            item.content.split_inclusive('\n').skip(at(start)?).take(at(end)? + 1 - at(start)?);
        let content: String = kept.collect();
        let mut item =
            Item { tokens: count(&content), content: content.into(), ..Item::clone(item) };
        item.metadata.set_lines(start, end);
        (!others.is_empty()).then_some(Shortened { item, others })
    };
    items.iter().enumerate().map(cut).collect()
}

/// Returns the first and the last line of an item, if its text has whole lines, and their number is
/// right.
fn lines(item: &Item) -> Option<(u64, u64)> {
    let (start, end) = item.metadata.lines()?;
    let is_whole = !item.metadata.is_set("partial") && item.stale().is_none();
    let count = item.content.lines().count() as u64;
    (is_whole && start <= end && count == end - start + 1).then_some((start, end))
}

/// Returns what is left of the lines `left` of `item` without those of `later`; `None` if they share
/// none, if they disagree on those that they share, or if one contains the other.
fn without(item: &Item, left: (u64, u64), later: &Item, taken: (u64, u64)) -> Option<(u64, u64)> {
    let shared = (left.0.max(taken.0), left.1.min(taken.1));
    let text = |of: &Item, first: u64| -> Option<Vec<String>> {
        let skipped = usize::try_from(shared.0 - first).ok()?;
        let taken = usize::try_from(shared.1 - shared.0 + 1).ok()?;
        Some(of.content.lines().skip(skipped).take(taken).map(str::to_owned).collect())
    };
    if shared.0 > shared.1 || text(item, lines(item)?.0) != text(later, taken.0) {
        return None;
    }
    match (left.0 < taken.0, left.1 > taken.1) {
        (true, false) => Some((left.0, taken.0 - 1)),
        (false, true) => Some((taken.1 + 1, left.1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::{With, code};

    fn of(id: u64, lines: std::ops::RangeInclusive<i64>) -> Item {
        let content: String = lines.clone().map(|line| format!("line {line}\n")).collect();
        let item = code(id, &content).in_file("/p/a.rs").at_lines(*lines.start(), *lines.end());
        Item { live: true, ..item }
    }

    #[track_caller]
    fn check(items: &[Item], expected: &[Option<(&str, (u64, u64))>]) {
        let items: Vec<&Item> = items.iter().collect();
        let found = shortened(&items, |text| text.len() as u64);
        let told = found.iter().map(|it| {
            let item = &it.as_ref()?.item;
            assert_eq!(item.tokens, item.content.len() as u64);
            Some((&*item.content, item.metadata.lines()?))
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn shared_lines_are_those_of_the_later_item() {
        check(&[of(1, 1..=3), of(2, 3..=4)], &[Some(("line 1\nline 2\n", (1, 2))), None]);
        check(&[of(1, 3..=4), of(2, 1..=3)], &[Some(("line 4\n", (4, 4))), None]);
        let both = [of(1, 2..=5), of(2, 1..=2), of(3, 5..=6)];
        check(&both, &[Some(("line 3\nline 4\n", (3, 4))), None, None]);
    }

    #[test]
    fn what_shares_nothing_or_differs_stays() {
        check(&[of(1, 1..=2), of(2, 3..=4)], &[None, None]);
        check(&[of(1, 1..=4), of(2, 2..=3)], &[None, None]);
        let other = Item { content: "line 2\nline 9\n".into(), ..of(2, 2..=3) };
        let differs = Item { content: "line 0\nline 3\n".into(), ..of(2, 2..=3) };
        check(&[of(1, 1..=2), other], &[Some(("line 1\n", (1, 1))), None]);
        check(&[of(1, 1..=2), differs], &[None, None]);
        check(&[of(1, 1..=2), of(2, 2..=3).in_file("/p/b.rs")], &[None, None]);
        check(&[of(1, 1..=2), of(2, 2..=3).with("stale", "?")], &[None, None]);
    }
}
