//! Replays a history to find when its window was last chosen anew.
//!
//! A choice depends only on the messages up to that point. A longer version of a history therefore
//! begins with the same choice until its room is full again, and a cached prompt stays valid until
//! then.

use crate::curation::unit::{History, KeptReason};
use crate::session::message::Role;

/// Share of the room that is filled when parts are chosen, unless no later window continues this
/// one. The rest is for later messages. A larger rest keeps cached prompts valid for longer, but
/// shows less on average.
const FILL: f64 = 0.87;
/// Minimum share to fill of the room that is left beside the units that cannot be left out.
const LEAST: f64 = 0.5;

/// The last choice of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refill {
    /// Index of the newest message at that time. Later messages are shown whole.
    pub(super) now: usize,
    /// Maximum cost of what is chosen from the messages up to `now`, in tokens.
    pub(super) target: u64,
}

impl Refill {
    /// Chooses now, for the whole room; `None` if everything fits.
    pub(super) fn whole(history: &History<'_>, budget: u64) -> Option<Self> {
        let target = history.room(budget);
        let now = history.messages.len().checked_sub(1)?;
        (history.tokens() > target).then_some(Self { now, target })
    }

    /// Finds the last choice; `None` if everything fits.
    pub(super) fn last(history: &History<'_>, budget: u64) -> Option<Self> {
        let unit_of = history.unit_of_each_message();
        let (mut total, mut fixed, mut last_user, mut last) = (0, 0, 0, None);
        for (now, message) in history.messages.iter().enumerate() {
            let cost = history.measure.message(message.tokens);
            total += cost;
            match history.units[unit_of[now]].kept {
                // A unit counts as fixed only if no later message can change that.
                Some(KeptReason::System | KeptReason::Pinned | KeptReason::FirstUser) => {
                    fixed += cost
                }
                _ if message.role == Role::User && !message.is_notice() => last_user = cost,
                _ => {}
            }
            let folded = history.folded.as_ref().filter(|folded| folded.newest == now);
            let room = folded.map_or(budget, |folded| folded.room.min(budget));
            let least = fixed + last_user;
            let rest = room.saturating_sub(least) as f64;
            let target = (room as f64 * FILL).max(least as f64 + rest * LEAST) as u64;
            if total > budget || folded.is_some() && total > target {
                last = Some(Self { now, target });
                total = target.min(total);
            }
        }
        last
    }
}
