//! The agents family of methods: about the agents that are connected, the items that their sessions
//! were given, and the items to send with their next prompts.

mod listed;
mod marked;
mod next;
mod record;
mod table;

pub(super) use self::listed::MAX_LISTED;
pub(super) use self::next::MAX_WAITING;
pub(super) use self::record::{MAX_DIGEST_BYTES, MAX_PUSHED_ITEMS};
pub(super) use self::table::METHODS;

use super::params::Short;

fn text(given: Option<Short>) -> String {
    given.map(|Short(text)| text).unwrap_or_default()
}
