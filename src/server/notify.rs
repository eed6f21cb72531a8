//! Turns events into notifications.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::engine::{Event, Statistics};
use crate::ids::{CheckpointId, MemoryId, SessionId};
use crate::rpc::notification::{
    AgentsChanged, ApprovalsChanged, CheckpointCreated, ContextChanged, ContextPruned,
    ContextSummarized, ManagementFailed, MemoriesChanged, ProvidersChanged, SessionChanged,
    TextWanted, ToolsChanged, WindowBuilt,
};
use crate::rpc::present::MessageShown;
use crate::rpc::{Subscription, Topic};
use crate::value::{Value, to_value};
use crate::wire::message::Outgoing;

/// Events of one commit, with the statistics after it.
#[derive(Debug, Clone)]
pub(crate) struct Burst {
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

impl Burst {
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
pub(crate) fn notifications(burst: &Burst, wanted: &Subscription) -> Vec<Outgoing> {
    let mut told = Vec::new();
    let events = || burst.events.iter().filter(|event| is_wanted(event, wanted));
    for (event, is_alone) in latest(events().filter(|event| says_how_it_is(event))) {
        told.extend(notification(event, is_alone && is_own(event, wanted)));
    }
    let others = events().filter(|event| !says_how_it_is(event));
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
) -> impl Iterator<Item = (&'a Event, bool)> {
    let mut newest: Vec<(&Event, bool)> = Vec::new();
    let mut places: HashMap<(Option<Topic>, &str), usize> = HashMap::new();
    for event in events {
        match places.entry((topic(event), event.subject())) {
            Entry::Occupied(place) => newest[*place.get()] = (event, false),
            Entry::Vacant(place) => {
                place.insert(newest.len());
                newest.push((event, true));
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
        && match event {
            Event::ContextChanged { manager, .. } => has(managers, manager),
            Event::MemoriesChanged { .. }
            | Event::ProvidersChanged { .. }
            | Event::AgentsChanged { .. }
            | Event::ToolsChanged { .. }
            | Event::TextWanted { .. } => true,
            Event::SessionChanged { session, .. }
            | Event::WindowBuilt { session, .. }
            | Event::ApprovalsChanged { session, .. }
            | Event::ContextPruned { session, .. }
            | Event::ContextSummarized { session, .. }
            | Event::CheckpointCreated { session, .. }
            | Event::TurnManaged { session, .. } => {
                has(sessions, &session.name) || has(sessions, &SessionId(session.id).to_string())
            }
        }
}

/// Returns whether the event is a change to a manager by a call of the subscribed connection.
fn is_own(event: &Event, wanted: &Subscription) -> bool {
    matches!(event, Event::ContextChanged { by, .. } if *by == wanted.caller)
}

/// Returns the topic of an event; `None` for an event that only counts in the statistics.
fn topic(event: &Event) -> Option<Topic> {
    Some(match event {
        Event::ContextChanged { .. } => Topic::ContextChanged,
        Event::SessionChanged { .. } => Topic::SessionChanged,
        Event::WindowBuilt { .. } => Topic::WindowBuilt,
        Event::MemoriesChanged { .. } => Topic::MemoriesChanged,
        Event::ProvidersChanged { .. } => Topic::ProvidersChanged,
        Event::ApprovalsChanged { .. } => Topic::ApprovalsChanged,
        Event::AgentsChanged { .. } => Topic::AgentsChanged,
        Event::ToolsChanged { .. } => Topic::ToolsChanged,
        Event::TextWanted { .. } => Topic::TextWanted,
        Event::ContextPruned { .. } => Topic::ContextPruned,
        Event::ContextSummarized { .. } => Topic::ContextSummarized,
        Event::CheckpointCreated { .. } => Topic::CheckpointCreated,
        Event::TurnManaged { failure: Some(_), .. } => Topic::ManagementFailed,
        Event::TurnManaged { failure: None, .. } => return None,
    })
}

/// Builds the notification of an event; `None` for an event that only counts in the statistics.
/// `is_own` is true if all changes to the manager were made by the notified connection.
pub(super) fn notification(event: &Event, is_own: bool) -> Option<Outgoing> {
    Some(Outgoing::Notify(topic(event)?.name(), params(event, is_own)?))
}

fn says_how_it_is(event: &Event) -> bool {
    use Event::{
        AgentsChanged, ContextChanged, MemoriesChanged, ProvidersChanged, SessionChanged,
        ToolsChanged, WindowBuilt,
    };
    matches!(
        event,
        ContextChanged { .. }
            | SessionChanged { .. }
            | WindowBuilt { .. }
            | MemoriesChanged { .. }
            | ProvidersChanged { .. }
            | AgentsChanged { .. }
            | ToolsChanged { .. }
    )
}

/// Returns the parameters of an event's notification; `None` for an event that only counts in the
/// statistics.
fn params(event: &Event, is_own: bool) -> Option<Value> {
    Some(match event {
        Event::ContextChanged {
            manager, method, undone, redone, count, tokens, version, ..
        } => {
            let (undone, redone) = (undone.as_deref(), redone.as_deref());
            let (count, tokens) = (*count, *tokens);
            let (version, own) = (*version, is_own.then_some(true));
            Value::of(&ContextChanged {
                manager,
                method,
                undone,
                redone,
                count,
                tokens,
                version,
                own,
            })
        }
        Event::SessionChanged { session, method, messages } => {
            Value::of(&SessionChanged { of: session.into(), method, messages: *messages })
        }
        Event::WindowBuilt { session, tokens, max_tokens } => {
            let (of, tokens, max_tokens) = (session.into(), *tokens, *max_tokens);
            Value::of(&WindowBuilt { of, tokens, max_tokens })
        }
        Event::MemoriesChanged { method, id } => {
            Value::of(&MemoriesChanged { method, id: MemoryId(*id) })
        }
        Event::ProvidersChanged { method, provider } => {
            Value::of(&ProvidersChanged { method, provider })
        }
        Event::ApprovalsChanged { session, approval, is_open } => {
            let (approval, open) = (*approval, *is_open);
            Value::of(&ApprovalsChanged { of: session.into(), approval, open })
        }
        Event::AgentsChanged { method, agent, session } => {
            Value::of(&AgentsChanged { method, agent, agent_session: session })
        }
        Event::ToolsChanged { is_for_agents } => {
            Value::of(&ToolsChanged { agents: *is_for_agents })
        }
        Event::TextWanted { question, path } => {
            Value::of(&TextWanted { question: *question, path: path.as_deref() })
        }
        Event::ContextPruned { session, before, after, removed } => Value::of(&ContextPruned {
            of: session.into(),
            original: *before,
            r#final: *after,
            token_reduction: before.saturating_sub(*after),
            removed: removed.iter().map(MessageShown::from).collect(),
        }),
        Event::ContextSummarized { session, summarized, kept, summary } => {
            let (of, summarized, kept) = (session.into(), *summarized, *kept);
            Value::of(&ContextSummarized { of, summarized, kept, summary })
        }
        Event::CheckpointCreated { session, checkpoint, turn, message, automatic } => {
            let (checkpoint, turn, automatic) = (CheckpointId(*checkpoint), *turn, *automatic);
            Value::of(&CheckpointCreated {
                of: session.into(),
                checkpoint,
                turn,
                message,
                automatic,
            })
        }
        Event::TurnManaged { session, turn, template, status, failure } => {
            let (step, reason) = failure.as_ref()?;
            let (of, turn, status, step) = (session.into(), *turn, *status, *step);
            Value::of(&ManagementFailed { of, turn, template, status, step, reason })
        }
    })
}
