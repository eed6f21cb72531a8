//! A connection's client: the lists that it has read only in part.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::limits::LISTS_KEPT;
use super::locked;
use crate::value::Value;

/// The state of one connection that its calls share.
#[derive(Default)]
pub(crate) struct Client {
    lists: Mutex<Lists>,
}

/// The rest of a list, or of several lists in one result.
pub(super) struct Rest {
    /// Method that returned the lists.
    pub(super) method: &'static str,
    /// Lists, each with its path in the result, such as `report.parts`.
    pub(super) lists: Vec<(&'static str, Vec<Value>)>,
    /// True if pages are taken from the end.
    pub(super) newest_last: bool,
    /// Maximum number of entries in a page; `None` for as many as fit.
    pub(super) page: Option<usize>,
    /// True if the handler returned its maximum number of entries, so that there may be more.
    pub(super) is_clamped: bool,
    /// Approximate size in memory, in bytes.
    pub(super) bytes: usize,
}

#[derive(Default)]
struct Lists {
    /// Number of the last cursor.
    last: u64,
    /// Lists by their cursors, the oldest first.
    rests: VecDeque<(u64, Rest)>,
}

impl Client {
    /// Keeps the rest of a list and returns its cursor. Forgets the oldest lists if there are too
    /// many, or if together they take more than `most_bytes`, but never this one.
    pub(super) fn keep(&self, rest: Rest, most_bytes: usize) -> String {
        let mut lists = locked(&self.lists);
        lists.last += 1;
        let cursor = lists.last;
        lists.rests.push_back((cursor, rest));
        let bytes = |lists: &Lists| lists.rests.iter().map(|(_, rest)| rest.bytes).sum::<usize>();
        while lists.rests.len() > LISTS_KEPT
            || (lists.rests.len() > 1 && bytes(&lists) > most_bytes)
        {
            lists.rests.pop_front();
        }
        cursor.to_string()
    }

    /// Takes the list with this cursor; `None` if there is no such list.
    pub(super) fn take(&self, cursor: &str) -> Option<Rest> {
        let mut lists = locked(&self.lists);
        let at = lists.rests.iter().position(|(known, _)| known.to_string() == cursor)?;
        lists.rests.remove(at).map(|(_, rest)| rest)
    }
}
