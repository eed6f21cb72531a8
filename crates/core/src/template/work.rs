//! Counts the list items that a template reads. The template engine counts steps, but one step may
//! read a whole list, as `in` and `==` do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueIter, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// Maximum number of list items that a template may read. An item counts each time it is read.
pub const MAX_ITEMS: usize = 1_000_000;

/// Number of list items that one rendering has read.
#[derive(Debug, Default)]
pub(super) struct ItemsRead(AtomicUsize);

/// A list whose items are counted whenever they are iterated over.
#[derive(Debug)]
struct CountedList {
    list: Value,
    work: Arc<ItemsRead>,
}

struct CountedItems {
    items: ValueIter,
    work: Arc<ItemsRead>,
    has_ended: bool,
}

impl ItemsRead {
    /// Returns the list, with its items counted as they are read.
    pub(super) fn counting(self: &Arc<Self>, list: Value) -> Value {
        Value::from_object(CountedList { list, work: Arc::clone(self) })
    }

    /// Counts an item. Returns whether it may be read.
    fn note(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) < MAX_ITEMS
    }
}

impl Object for CountedList {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.list.kind() {
            ValueKind::Seq => ObjectRepr::Seq,
            _ => ObjectRepr::Iterable,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.list.get_item(key).ok().filter(|item| !item.is_undefined())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.list.try_iter() {
            Ok(items) => {
                let work = Arc::clone(&self.work);
                Enumerator::Iter(Box::new(CountedItems { items, work, has_ended: false }))
            }
            Err(_) => Enumerator::NonEnumerable,
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.list.len()
    }
}

impl Iterator for CountedItems {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        if self.has_ended || self.work.note() {
            return self.items.next().filter(|_| !self.has_ended);
        }
        self.has_ended = true;
        let problem = format!("it reads more than {MAX_ITEMS} list items");
        // The engine reports this value as an error of the operation that reads the item.
        Some(Value::from(Error::new(ErrorKind::InvalidOperation, problem)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}
