//! The branch of a recording that counts, where records name the record that each follows.

use std::collections::HashMap;

use serde::Deserialize;

use super::gathered::Gathered;
use super::records::{JsonRecord, parsed};
use super::report::{UNEXPECTED, WENT_BACK};

/// The place of a record: its own id, and that of the record that it follows. A record without an
/// id belongs to every branch.
pub(super) type TreePlace<'a> = (Option<&'a str>, Option<&'a str>);

/// Tells the records that are on the way to the last one, and counts the others as left out.
pub(super) fn tell_branch<'a, T: Deserialize<'a>>(
    records: &[JsonRecord<'a>],
    into: &mut Gathered,
    place: impl Fn(&T) -> TreePlace<'_>,
    tell: impl Fn(T, &mut Gathered) -> serde_json::Result<()>,
) {
    let entries = parsed::<T>(records, into);
    let places: Vec<TreePlace<'_>> = entries.iter().map(|(_, entry)| place(entry)).collect();
    let counts = on_branch(&places);
    for ((line, entry), counts) in entries.into_iter().zip(counts) {
        into.line = line;
        if !counts {
            into.leave_out("record", WENT_BACK);
        } else if tell(entry, into).is_err() {
            into.leave_out("record", UNEXPECTED);
        }
    }
}

/// Returns for each record whether it is on the way from the beginning to the last record. What was
/// rewound is not. If the way leads to an id that no record has, all records before its first one
/// count.
fn on_branch(places: &[TreePlace<'_>]) -> Vec<bool> {
    // Early versions of programs name no record that another follows.
    if places.iter().all(|(_, parent)| parent.is_none()) {
        return vec![true; places.len()];
    }
    // Several records may have the parts of one message, and its id.
    let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, id) in places.iter().enumerate().filter_map(|(at, (id, _))| Some((at, (*id)?))) {
        by_id.entry(id).or_default().push(at);
    }
    let mut counts: Vec<bool> = places.iter().map(|(id, _)| id.is_none()).collect();
    let mut next = places.iter().rev().find_map(|(id, _)| *id);
    while let Some(parts) = next.map(|id| &by_id[id]) {
        // A record that follows itself ends the way.
        if parts.iter().all(|at| counts[*at]) {
            break;
        }
        parts.iter().for_each(|at| counts[*at] = true);
        next = places[parts[0]].1;
        if let Some(parent) = next
            && !by_id.contains_key(parent)
        {
            counts[..parts[0]].fill(true);
            break;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_way_to_the_last_record_counts() {
        let branch = |places: &[(&str, Option<&'static str>)]| {
            let places: Vec<TreePlace<'_>> = places
                .iter()
                .map(|(id, to)| (Some(*id).filter(|id| !id.is_empty()), *to))
                .collect();
            let counts = on_branch(&places);
            counts.iter().map(|it| if *it { '+' } else { '-' }).collect::<String>()
        };
        assert_eq!(branch(&[("a", None), ("b", Some("a")), ("c", Some("b"))]), "+++");
        assert_eq!(branch(&[("a", None), ("b", Some("a")), ("", None), ("c", Some("a"))]), "+-++");
        assert_eq!(branch(&[("a", None), ("b", None)]), "++");
        assert_eq!(branch(&[("a", None), ("b", None), ("c", Some("b"))]), "-++");
        assert_eq!(branch(&[("a", None), ("b", Some("gone"))]), "++");
        assert_eq!(branch(&[("a", Some("b")), ("b", Some("a"))]), "++");
        assert_eq!(branch(&[("a", None), ("b", Some("a")), ("b", Some("a")), ("x", None)]), "---+");
        assert_eq!(
            branch(&[("a", None), ("x", Some("a")), ("b", Some("a")), ("b", Some("a"))]),
            "+-++"
        );
        assert_eq!(branch(&[]), "");
    }
}
