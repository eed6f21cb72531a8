//! Events as notifications.

use std::collections::HashMap;

use crate::engine::{Event, Statistics};
use crate::rpc::Topic;
use crate::value::{Value, to_value};
use crate::wire::message::Outgoing;

/// The events of one commit, and the sums after it.
#[derive(Debug, Clone)]
pub struct Burst {
    /// In the order in which they happened.
    pub events: Vec<Event>,
    /// The sums over all events since the start.
    pub statistics: Statistics,
}

/// What a client that subscribed to `topics` is told of a burst: of each manager, how it is after
/// the last of its changes.
pub fn notifications(burst: &Burst, topics: &[Topic]) -> Vec<Outgoing> {
    let mut told = Vec::new();
    if topics.contains(&Topic::ContextChanged) {
        told.extend(changes(burst.events.iter().cloned()));
    }
    if topics.contains(&Topic::Stats) {
        let sums = to_value(&burst.statistics).unwrap_or_default();
        told.push(Outgoing::Notify(Topic::Stats.name(), sums));
    }
    told
}

/// Notifications of the last event of each manager, in order.
pub(super) fn changes(events: impl IntoIterator<Item = Event>) -> Vec<Outgoing> {
    let mut newest: Vec<Event> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for event in events {
        match places.get(event.manager()) {
            Some(place) => newest[*place] = event,
            None => {
                places.insert(event.manager().to_owned(), newest.len());
                newest.push(event);
            }
        }
    }
    newest
        .iter()
        .map(|event| Outgoing::Notify(Topic::ContextChanged.name(), params(event)))
        .collect()
}

fn params(event: &Event) -> Value {
    let Event::ContextChanged { manager, method, count, tokens, .. } = event;
    Value::Map(vec![
        ("manager".into(), Value::Str(manager.clone())),
        ("method".into(), Value::Str(method.clone())),
        ("count".into(), Value::Int(*count as i64)),
        ("tokens".into(), Value::Int(*tokens as i64)),
    ])
}
