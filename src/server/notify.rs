//! Turns events into notifications.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::engine::{Event, Statistics};
use crate::ids::SessionId;
use crate::rpc::Subscription;
use crate::rpc::notification::{Topic, params, topic};
use crate::value::to_value;
use crate::wire::message::Outgoing;

/// Events of one commit, with the statistics after it.
#[derive(Debug, Clone)]
pub(crate) struct EventBurst {
    /// Events in the order in which they happened.
    pub events: Vec<Event>,
    /// Totals over all events since the start.
    pub statistics: Statistics,
}

/// Maximum number of removed messages in a pruning whose notification is built on the server's main
/// thread.
const FEW_MESSAGES: usize = 100;
/// Maximum length in bytes of a summary whose notification is built on the server's main thread.
const SHORT_SUMMARY: usize = 64 << 10;

impl EventBurst {
    /// Returns whether building the notifications takes so long that other clients would notice.
    pub(super) fn is_large(&self) -> bool {
        self.events.iter().any(|event| match event {
            Event::ContextPruned { removed, .. } => removed.len() > FEW_MESSAGES,
            Event::ContextSummarized { summary, .. } => summary.len() > SHORT_SUMMARY,
            _ => false,
        })
    }
}

/// Returns the notifications of a burst for a client with the subscription `wanted`: the latest
/// state of everything that changed, and every pruning, summary, checkpoint, failure to take notes,
/// change of an approval, and question to editors. `stats` comes last.
pub(crate) fn notifications(burst: &EventBurst, wanted: &Subscription) -> Vec<Outgoing> {
    let mut told = Vec::new();
    let events = || burst.events.iter().filter(|event| is_wanted(event, wanted));
    for (event, is_alone) in latest(events().filter(|event| event.is_state())) {
        told.extend(notification(&event, is_alone && is_own(&event, wanted)));
    }
    let others = events().filter(|event| !event.is_state());
    told.extend(others.filter_map(|event| notification(event, false)));
    if wanted.topics.contains(&Topic::Stats) && burst.events.iter().any(Event::is_counted) {
        let sums = to_value(&burst.statistics).unwrap_or_default();
        told.push(Outgoing::Notify(Topic::Stats.name(), sums));
    }
    told
}

/// Keeps only the last event of each kind and subject, in the order in which these pairs first
/// appeared. Returns with each event whether it was the only event of its pair.
fn latest<'a>(
    events: impl IntoIterator<Item = &'a Event>,
) -> impl Iterator<Item = (Cow<'a, Event>, bool)> {
    let mut newest: Vec<(Cow<'a, Event>, bool)> = Vec::new();
    let mut places: HashMap<(Option<Topic>, &str), usize> = HashMap::new();
    for event in events {
        match places.entry((topic(event), event.subject())) {
            Entry::Occupied(place) => {
                let (newest, is_alone) = &mut newest[*place.get()];
                *newest = Cow::Owned(event.clone().covering(newest));
                *is_alone = false;
            }
            Entry::Vacant(place) => {
                place.insert(newest.len());
                newest.push((Cow::Borrowed(event), true));
            }
        }
    }
    newest.into_iter()
}

/// Returns whether a client with this subscription receives the event.
pub(super) fn is_wanted(event: &Event, wanted: &Subscription) -> bool {
    let Subscription { topics, managers, sessions, .. } = wanted;
    let has = |names: &Option<Vec<String>>, name: &str| {
        names.as_ref().is_none_or(|names| names.iter().any(|one| one == name))
    };
    topic(event).is_some_and(|topic| topics.contains(&topic))
        && match (event, event.session()) {
            (Event::ContextChanged { manager, .. }, _) => has(managers, manager),
            (_, Some(session)) => {
                has(sessions, &session.name) || has(sessions, &SessionId(session.id).to_string())
            }
            _ => true,
        }
}

/// Returns whether the event is a change to a manager by a call of the subscribed connection.
fn is_own(event: &Event, wanted: &Subscription) -> bool {
    matches!(event, Event::ContextChanged { by, .. } if *by == wanted.caller)
}

/// Builds the notification of an event; `None` for an event that only counts in the statistics.
/// `is_own` is true if all changes to the manager were made by the notified connection.
pub(super) fn notification(event: &Event, is_own: bool) -> Option<Outgoing> {
    Some(Outgoing::Notify(topic(event)?.name(), params(event, is_own)?))
}
