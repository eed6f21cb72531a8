//! Turns events into notifications.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::engine::{Event, SessionName, Statistics};
use crate::ids::{CheckpointId, SessionId};
use crate::rpc::Topic;
use crate::rpc::present::{self, entry, figure, keyword};
use crate::value::{Value, to_value};
use crate::wire::message::Outgoing;

/// Events of one commit, with the statistics after it.
#[derive(Debug, Clone)]
pub struct Burst {
    /// Events in the order in which they happened.
    pub events: Vec<Event>,
    /// Totals over all events since the start.
    pub statistics: Statistics,
}

/// Maximum number of removed messages in a pruning event that is encoded on the connection's own
/// thread.
const FEW_MESSAGES: usize = 100;
/// Maximum length of a summary, in bytes, that is encoded on the connection's own thread.
const SHORT_SUMMARY: usize = 64 << 10;

impl Burst {
    /// Returns whether building the notifications takes so long that others would notice.
    pub(super) fn is_large(&self) -> bool {
        self.events.iter().any(|event| match event {
            Event::ContextPruned { removed, .. } => removed.len() > FEW_MESSAGES,
            Event::ContextSummarized { summary, .. } => summary.len() > SHORT_SUMMARY,
            _ => false,
        })
    }
}

/// Returns the notifications of a burst for a client subscribed to `topics`: the latest state of
/// each manager and session that changed, and every pruning, summary and checkpoint.
pub fn notifications(burst: &Burst, topics: &[Topic]) -> Vec<Outgoing> {
    let mut told = Vec::new();
    let wanted = || burst.events.iter().filter(|event| is_about(event, topics));
    told.extend(latest(wanted().filter(|event| says_how_it_is(event))).filter_map(notification));
    told.extend(wanted().filter(|event| !says_how_it_is(event)).filter_map(notification));
    if topics.contains(&Topic::Stats) {
        let sums = to_value(&burst.statistics).unwrap_or_default();
        told.push(Outgoing::Notify(Topic::Stats.name(), sums));
    }
    told
}

/// Keeps the last event of each kind and subject, in the order of their first appearance.
pub(super) fn latest<'a>(
    events: impl IntoIterator<Item = &'a Event>,
) -> impl Iterator<Item = &'a Event> {
    let mut newest: Vec<&Event> = Vec::new();
    let mut places: HashMap<(Option<Topic>, &str), usize> = HashMap::new();
    for event in events {
        match places.entry((topic(event), event.subject())) {
            Entry::Occupied(place) => newest[*place.get()] = event,
            Entry::Vacant(place) => {
                place.insert(newest.len());
                newest.push(event);
            }
        }
    }
    newest.into_iter()
}

/// Returns whether a client subscribed to `topics` receives the event.
pub(super) fn is_about(event: &Event, topics: &[Topic]) -> bool {
    topic(event).is_some_and(|topic| topics.contains(&topic))
}

/// Returns the topic of an event; `None` for one that only enters the statistics.
fn topic(event: &Event) -> Option<Topic> {
    Some(match event {
        Event::ContextChanged { .. } => Topic::ContextChanged,
        Event::SessionChanged { .. } => Topic::SessionChanged,
        Event::ContextPruned { .. } => Topic::ContextPruned,
        Event::ContextSummarized { .. } => Topic::ContextSummarized,
        Event::CheckpointCreated { .. } => Topic::CheckpointCreated,
        Event::TurnManaged { failure: Some(_), .. } => Topic::ManagementFailed,
        Event::TurnManaged { failure: None, .. } => return None,
    })
}

/// Builds the notification of an event; `None` for one that only enters the statistics.
pub(super) fn notification(event: &Event) -> Option<Outgoing> {
    Some(Outgoing::Notify(topic(event)?.name(), params(event)))
}

fn says_how_it_is(event: &Event) -> bool {
    matches!(event, Event::ContextChanged { .. } | Event::SessionChanged { .. })
}

fn params(event: &Event) -> Value {
    match event {
        Event::ContextChanged { manager, method, count, tokens, .. } => Value::Map(vec![
            entry("manager", &**manager),
            entry("method", &**method),
            entry("count", figure(*count as u64)),
            entry("tokens", figure(*tokens)),
        ]),
        Event::SessionChanged { session, method, messages } => of_session(
            session,
            vec![entry("method", *method), entry("messages", figure(*messages))],
        ),
        Event::ContextPruned { session, before, after, removed } => of_session(
            session,
            vec![
                entry("original", figure(*before)),
                entry("final", figure(*after)),
                entry("token-reduction", figure(before.saturating_sub(*after))),
                entry("removed", Value::List(removed.iter().map(present::message).collect())),
            ],
        ),
        Event::ContextSummarized { session, summarized, kept, summary } => of_session(
            session,
            vec![
                entry("summarized", figure(*summarized)),
                entry("kept", figure(*kept)),
                entry("summary", &**summary),
            ],
        ),
        Event::CheckpointCreated { session, checkpoint, turn, message, automatic } => of_session(
            session,
            vec![
                entry("checkpoint", CheckpointId(*checkpoint)),
                entry("turn", figure(*turn)),
                entry("message", &**message),
                entry("automatic", *automatic),
            ],
        ),
        Event::TurnManaged { session, turn, template, status, failure } => {
            let mut told = vec![
                entry("turn", figure(*turn)),
                entry("template", &**template),
                entry("status", keyword(status.name())),
            ];
            if let Some((step, reason)) = failure {
                told.extend([entry("step", keyword(step.name())), entry("reason", &**reason)]);
            }
            of_session(session, told)
        }
    }
}

fn of_session(session: &SessionName, more: Vec<(Box<str>, Value)>) -> Value {
    let mut map = vec![entry("session", &*session.name), entry("id", SessionId(session.id))];
    map.extend(more);
    Value::Map(map)
}
