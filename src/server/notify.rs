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
        told.extend(changes(&burst.events));
    }
    if topics.contains(&Topic::Stats) {
        let sums = to_value(&burst.statistics).unwrap_or_default();
        told.push(Outgoing::Notify(Topic::Stats.name(), sums));
    }
    told
}

fn changes(events: &[Event]) -> Vec<Outgoing> {
    let name = |event: &Event| {
        let Event::ContextChanged { manager, .. } = event;
        manager.clone()
    };
    let last: HashMap<String, usize> =
        events.iter().enumerate().map(|(index, event)| (name(event), index)).collect();
    let newest = events.iter().enumerate().filter(|(index, event)| last[&name(event)] == *index);
    newest.map(|(_, event)| Outgoing::Notify(Topic::ContextChanged.name(), params(event))).collect()
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
