//! Finds out whether a manager already has the text of a live item: the same lines, some of them,
//! or the whole file. Has no side effects.

use std::collections::HashMap;
use std::sync::Arc;

use super::item::{Item, ItemId, Metadata};
use crate::names::names;

names! {
    /// Relation of an added live item to the live items that were there before.
    #[cfg_attr(feature = "server", schemars(rename = "ItemRepeat"))]
    Repeat {
        /// The item was there already; it is the last item now.
        Same => "same",
        /// An item with some of the same lines was extended; it is the last item now.
        Extended => "extended",
    }
}

/// The result of adding a live item whose text is already there, at least in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged {
    /// Item of which the added one becomes a new version.
    pub into: ItemId,
    /// Other items that become part of that item.
    pub absorbed: Vec<ItemId>,
    /// Text of the merged item.
    pub content: Arc<str>,
    /// First and last line of the text; `None` for a whole file.
    pub lines: Option<(u64, u64)>,
    /// Relation of the added item to the items that were there before.
    pub repeat: Repeat,
}

/// Returns the result of adding a live item with this content and metadata; `None` if the new item
/// can be merged with none of `items`. If the new item repeats several items, the newest of these
/// remains.
pub(crate) fn merged<'a>(
    items: impl Iterator<Item = &'a Item>,
    content: &Arc<str>,
    metadata: &Metadata,
) -> Option<Merged> {
    let file = metadata.filename()?;
    let others = items.filter(|item| item.live && item.metadata.filename() == Some(file));
    let mut others: Vec<&Item> = others.filter(|item| !item.metadata.is_set(PARTIAL)).collect();
    others.reverse();
    let Some(range) = metadata.lines() else {
        let same = others.iter().find(|item| item.metadata.lines().is_none())?;
        let content = Arc::clone(content);
        let repeat = Repeat::Same;
        return Some(Merged { into: same.id, absorbed: vec![], content, lines: None, repeat });
    };
    if metadata.is_set(PARTIAL) {
        return None;
    }
    let mut now = Block { range, content: content.to_string() };
    let mut found = Vec::new();
    for item in others {
        let Some(range) = item.metadata.lines() else { continue };
        let is_same = range == now.range || names_same(metadata, &item.metadata, range, now.range);
        if is_same {
            found.push((item.id, Repeat::Same));
        } else if let Some(union) = now.union(&Block { range, content: item.content.to_string() }) {
            let is_same = union.range == range;
            found.push((item.id, if is_same { Repeat::Same } else { Repeat::Extended }));
            now = union;
        }
    }
    let (into, repeat) = *found.first()?;
    let absorbed = found.iter().skip(1).map(|(id, _)| *id).collect();
    let repeat = if found.len() > 1 { Repeat::Extended } else { repeat };
    Some(Merged { into, absorbed, content: now.content.into(), lines: Some(now.range), repeat })
}

/// Metadata name whose value is true for a region that began or ended inside a line.
const PARTIAL: &str = "partial";

/// Returns whether both items are of the same definition, on lines that overlap.
fn names_same(one: &Metadata, other: &Metadata, a: (u64, u64), b: (u64, u64)) -> bool {
    let symbol = one.text("symbol");
    symbol.is_some() && symbol == other.text("symbol") && a.0 <= b.1 && b.0 <= a.1
}

/// Lines of a file.
struct Block {
    range: (u64, u64),
    content: String,
}

impl Block {
    fn lines(&self) -> Option<Vec<&str>> {
        let lines: Vec<&str> = self.content.lines().collect();
        let (start, end) = self.range;
        (start <= end && lines.len() as u64 == end - start + 1).then_some(lines)
    }

    /// Returns the lines of both blocks as one, if they overlap and agree on the shared lines.
    fn union(&self, other: &Self) -> Option<Self> {
        let ((a, b), (c, d)) = (self.range, other.range);
        if a > d || c > b {
            return None;
        }
        let (own, others) = (self.lines()?, other.lines()?);
        let at = |start: u64, line: u64| usize::try_from(line.checked_sub(start)?).ok();
        let mut content = String::new();
        for line in a.min(c)..=b.max(d) {
            let one = at(a, line).and_then(|at| own.get(at));
            let other = at(c, line).and_then(|at| others.get(at));
            let text = match (one, other) {
                (Some(one), Some(other)) if one != other => return None,
                (one, other) => one.or(other)?,
            };
            content.push_str(text);
            content.push('\n');
        }
        Some(Self { range: (a.min(c), b.max(d)), content })
    }
}

/// Returns, for each item, the live item of a whole file that contains the item's text, if any. Only
/// live items that are not stale count.
pub(crate) fn covered(items: &[&Item]) -> Vec<Option<ItemId>> {
    let mut wholes: HashMap<&str, &Item> = HashMap::new();
    for item in items.iter().filter(|item| item.live && item.metadata.lines().is_none()) {
        if let Some(file) = item.metadata.filename() {
            wholes.entry(file).or_insert(item);
        }
    }
    let by = |item: &Item| {
        let is_part = item.live && item.metadata.lines().is_some();
        let whole = wholes.get(item.metadata.filename().filter(|_| is_part)?)?;
        (whole.stale().is_none() && item.stale().is_none()).then_some(whole.id)
    };
    items.iter().map(|item| by(item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::{With, code};

    fn live(id: u64, content: &str, lines: Option<(i64, i64)>) -> Item {
        let item = code(id, content).in_file("/p/a.rs");
        let item = match lines {
            Some((start, end)) => item.at_lines(start, end),
            None => item,
        };
        Item { live: true, ..item }
    }

    #[track_caller]
    fn check(there: &[Item], new: &Item, expected: Option<(u64, &[u64], &str, Repeat)>) {
        let found = merged(there.iter(), &new.content, &new.metadata);
        let ids = |ids: &[u64]| ids.iter().map(|id| ItemId(*id)).collect::<Vec<_>>();
        let found = found.map(|it| (it.into, it.absorbed, it.content.to_string(), it.repeat));
        let expected = expected
            .map(|(into, absorbed, text, how)| (ItemId(into), ids(absorbed), text.to_owned(), how));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_same_lines_are_the_same_item() {
        let there = [live(1, "a\nb\n", Some((1, 2))), live(2, "whole", None)];
        check(&there, &live(9, "A\nb\n", Some((1, 2))), Some((1, &[], "A\nb\n", Repeat::Same)));
        check(&there, &live(9, "new", None), Some((2, &[], "new", Repeat::Same)));
        check(&there, &live(9, "d\n", Some((4, 4))), None);
        let other = live(9, "a\nb\n", Some((1, 2))).in_file("/p/b.rs");
        check(&there, &other, None);
    }

    #[test]
    fn lines_that_overlap_extend_the_item() {
        let there = [live(1, "a\nb\n", Some((1, 2))), live(2, "d\ne\n", Some((4, 5)))];
        let (one, both) = (live(9, "b\nc\n", Some((2, 3))), live(9, "b\nc\nd\n", Some((2, 4))));
        check(&there, &one, Some((1, &[], "a\nb\nc\n", Repeat::Extended)));
        check(&there, &both, Some((2, &[1], "a\nb\nc\nd\ne\n", Repeat::Extended)));
        check(&there, &live(9, "b\n", Some((2, 2))), Some((1, &[], "a\nb\n", Repeat::Same)));
        check(&there, &live(9, "other\nc\n", Some((2, 3))), None);
    }

    #[test]
    fn a_definition_that_grew_is_the_same() {
        let there = [live(1, "a\nb\n", Some((1, 2))).with("symbol", "f")];
        let new = live(9, "a\nx\nb\n", Some((1, 3))).with("symbol", "f");
        check(&there, &new, Some((1, &[], "a\nx\nb\n", Repeat::Same)));
    }

    #[test]
    fn a_file_covers_its_regions() {
        let items = [live(1, "a\n", Some((1, 1))), live(2, "a\nb\n", None), code(3, "note")];
        assert_eq!(covered(&items.iter().collect::<Vec<_>>()), [Some(ItemId(2)), None, None]);
    }
}
