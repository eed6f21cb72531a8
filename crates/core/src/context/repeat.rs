//! Finds out whether a manager already has the text of an item: the same lines of a file, some of
//! them or the whole file, or an earlier copy of the same buffer. Has no side effects.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::item::{AS_OF, Item, ItemId, Metadata, Origin};
use crate::names::names;

names! {
    /// Relation of an added item to the items that were there before.
    #[cfg_attr(feature = "schema", schemars(rename = "ItemRepeat"))]
    Repeat {
        /// The item was there already; it is the last item now.
        Same => "same",
        /// An item with some of the same lines was extended; it is the last item now.
        Extended => "extended",
        /// An earlier copy of the same buffer was replaced; it is the last item now.
        Replaced => "replaced",
    }
}

/// The result of adding an item whose text or source is already there, at least in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
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
pub fn merged<'a>(
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
    let mut now = LineBlock { range, content: content.to_string() };
    let mut found = Vec::new();
    for item in others {
        let Some(range) = item.metadata.lines() else { continue };
        let is_same = range == now.range || names_same(metadata, &item.metadata, range, now.range);
        if is_same {
            found.push((item.id, Repeat::Same));
        } else if let Some(union) =
            now.union(&LineBlock { range, content: item.content.to_string() })
        {
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
struct LineBlock {
    range: (u64, u64),
    content: String,
}

impl LineBlock {
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

/// Returns the result of adding a copy, whose metadata have a date, if an earlier copy has the same
/// text from the same source, or is of the same whole buffer or output. `None` for other items.
pub fn copied_again<'a>(
    items: impl Iterator<Item = &'a Item>,
    content: &Arc<str>,
    metadata: &Metadata,
) -> Option<Merged> {
    metadata.get(AS_OF)?;
    let origin = metadata.origin()?;
    let is_whole = metadata.lines().is_none() && WHOLE_COPIES.contains(&origin);
    let source = |metadata: &Metadata| {
        SOURCE.map(|name| metadata.text(name).map(|text| text.trim_end_matches('/').to_owned()))
    };
    let mut before = metadata.clone();
    if let Some(name) = metadata.get(BUFFER_WAS) {
        before.set("buffer", name.clone());
    }
    let of = [source(metadata), source(&before)];
    let is_again = |item: &&Item| {
        let is_copy = item.metadata.get(AS_OF).is_some();
        let is_of_source =
            item.metadata.origin() == Some(origin) && of.contains(&source(&item.metadata));
        let is_same = item.content == *content;
        is_copy && is_of_source && (is_same || (is_whole && item.metadata.lines().is_none()))
    };
    let earlier = items.filter(is_again).last()?;
    let repeat = if earlier.content == *content { Repeat::Same } else { Repeat::Replaced };
    let (content, lines) = (Arc::clone(content), metadata.lines());
    Some(Merged { into: earlier.id, absorbed: vec![], content, lines, repeat })
}

/// Origins of copies that become useless when a newer copy of the same source is added.
const WHOLE_COPIES: [Origin; 4] =
    [Origin::Buffer, Origin::Compilation, Origin::Diagnostic, Origin::Diff];
/// Names of the metadata that say where a copy was taken.
const SOURCE: [&str; 4] = ["filename", "buffer", "project", "symbol"];

/// Metadata name of the name that a buffer had when a copy was taken before.
const BUFFER_WAS: &str = "buffer-was";

/// Returns, for each item, the item that contains its text, if any: an item of the same file or
/// buffer that has its lines and more. An item that is stale contains only others that are stale.
pub fn covered(items: &[&Item]) -> Vec<Option<ItemId>> {
    let mut by = vec![None; items.len()];
    let mut sources: HashMap<(&str, &str, bool), Vec<usize>> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(source) = text_source(item) {
            sources.entry(source).or_default().push(index);
        }
    }
    for mut group in sources.into_values().filter(|group| group.len() > 1) {
        // What has more lines comes first; of the same lines, the last one.
        group.sort_by_key(|&index| {
            let length = items[index].metadata.lines().map_or(0, |(a, b)| u64::MAX - b.abs_diff(a));
            (length, items[index].metadata.is_set(PARTIAL), Reverse(index))
        });
        let mut wholes: Vec<ContainingItem<'_>> = Vec::new();
        for index in group {
            let item = items[index];
            by[index] = wholes.iter().find(|whole| whole.has(item)).map(|whole| whole.item.id);
            if by[index].is_none() {
                wholes.push(ContainingItem::of(item));
            }
        }
    }
    by
}

/// Returns the file or buffer that an item has the text of, and whether it is stale; `None` if the
/// item may have another text, such as a diff.
pub(super) fn text_source(item: &Item) -> Option<(&str, &str, bool)> {
    use Origin::{Buffer, Defun, File, Region, Symbol, Tree};
    let origin = item.metadata.origin();
    let has_text = match origin {
        Some(origin) => [Buffer, Defun, File, Region, Symbol, Tree].contains(&origin),
        None => item.live,
    };
    // The text of a rectangle is not that of its lines.
    let has_text = has_text && item.metadata.get("start-column").is_none();
    let (of, name) = match item.metadata.filename() {
        Some(file) => ("file", file),
        None => ("buffer", item.metadata.copied_buffer()?),
    };
    has_text.then_some((of, name, item.stale().is_some()))
}

/// An item that may contain others, with the beginnings of its lines.
struct ContainingItem<'a> {
    item: &'a Item,
    first: u64,
    starts: Vec<usize>,
}

impl<'a> ContainingItem<'a> {
    fn of(item: &'a Item) -> Self {
        let newlines = memchr::memchr_iter(b'\n', item.content.as_bytes());
        let starts = std::iter::once(0).chain(newlines.map(|at| at + 1)).collect();
        Self { item, first: item.metadata.lines().map_or(1, |(first, _)| first), starts }
    }

    /// Returns whether the text of `part` is in this item, on the lines of `part`.
    fn has(&self, part: &Item) -> bool {
        let text = part.content.trim_end_matches(['\n', '\r']);
        let Some((first, last)) = part.metadata.lines() else {
            let is_whole = self.item.metadata.lines().is_none();
            return is_whole && text == self.item.content.trim_end_matches(['\n', '\r']);
        };
        let at = |line: u64| {
            let index = usize::try_from(line.checked_sub(self.first)?).ok()?;
            self.starts.get(index).copied()
        };
        let Some(start) = at(first) else { return false };
        let end = at(last.saturating_add(1)).unwrap_or(self.item.content.len());
        let is_inside = self.item.metadata.lines().is_none_or(|(_, end)| last <= end);
        let lines = self.item.content.get(start..end).filter(|_| is_inside);
        let is_partial = part.metadata.is_set(PARTIAL) || self.item.metadata.is_set(PARTIAL);
        lines.is_some_and(|lines| match is_partial {
            true => !text.is_empty() && lines.contains(text),
            false => lines.trim_end_matches(['\n', '\r']) == text,
        })
    }
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

    fn by(items: &[Item]) -> Vec<u64> {
        let found = covered(&items.iter().collect::<Vec<_>>());
        found.into_iter().map(|id| id.map_or(0, |id| id.0)).collect()
    }

    #[test]
    fn a_file_covers_its_regions() {
        let items = [live(1, "a\n", Some((1, 1))), live(2, "a\nb\n", None), code(3, "note")];
        assert_eq!(by(&items), [2, 0, 0]);
    }

    #[test]
    fn what_has_more_lines_covers_what_is_within_it() {
        let part = live(3, "b", Some((2, 2))).with("origin", "region");
        let partial = Item {
            metadata: {
                let mut it = part.metadata.clone();
                it.set(PARTIAL, contexture_value::Value::Bool(true));
                it
            },
            ..live(4, "b", None)
        };
        let items = [
            live(1, "a\nb\nc\n", Some((1, 3))),
            live(2, "b\nc\n", Some((2, 3))),
            part,
            partial,
            live(5, "other\n", Some((2, 2))),
            live(6, "c\nd\n", Some((3, 4))),
        ];
        assert_eq!(by(&items), [0, 1, 1, 1, 0, 0]);
        let copies = [items[0].clone(), Item { live: false, ..items[2].clone() }];
        assert_eq!(by(&copies), [0, 1], "a copy with the same text");
        let stale = [live(1, "a\nb\n", None).with("stale", "?"), live(2, "a\n", Some((1, 1)))];
        assert_eq!(by(&stale), [0, 0]);
        let both = [stale[0].clone(), stale[1].clone().with("stale", "?")];
        assert_eq!(by(&both), [0, 1]);
    }

    fn copy(id: u64, content: &str, origin: &str) -> Item {
        let mut item = code(id, content).with("buffer", "*Help*").with("origin", origin);
        item.metadata.set(AS_OF, contexture_value::Value::Int(5));
        item
    }

    #[test]
    fn a_copied_buffer_covers_its_regions() {
        let region = copy(2, "b\n", "region").at_lines(2, 2);
        assert_eq!(by(&[copy(1, "a\nb\nc\n", "buffer"), region]), [0, 1]);
    }

    #[test]
    fn a_copy_replaces_the_earlier_one_of_its_buffer() {
        let there = [copy(1, "a", "buffer"), copy(2, "x", "kill"), code(3, "new")];
        let again = |new: &Item| {
            let found = copied_again(there.iter(), &new.content, &new.metadata);
            found.map(|it| (it.into.0, it.repeat))
        };
        assert_eq!(again(&copy(9, "new", "buffer")), Some((1, Repeat::Replaced)));
        assert_eq!(again(&copy(9, "a", "buffer")), Some((1, Repeat::Same)));
        assert_eq!(again(&copy(9, "x", "kill")), Some((2, Repeat::Same)));
        assert_eq!(again(&copy(9, "y", "kill")), None);
        assert_eq!(again(&code(9, "new")), None, "what has no date is no copy");
        let other = copy(9, "new", "buffer").with("buffer", "*mine*");
        assert_eq!(again(&other), None);
        let renamed = other.with(BUFFER_WAS, "*Help*");
        assert_eq!(again(&renamed), Some((1, Repeat::Replaced)), "the same buffer, renamed");
    }
}
