//! The stream of events to a page. At its beginning, all subjects are due, since the page may have
//! missed events before. While the network is slow, only one event waits for each subject.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value as Json, json};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Shared;
use crate::mcp::OpenConnection;
use crate::web::refusal;

/// Topics of the protocol that change what the dashboard shows.
const TOPICS: [&str; 6] = [
    "agents-changed",
    "approvals-changed",
    "checkpoint-created",
    "context-changed",
    "session-changed",
    "window-built",
];
/// Pause after which a stream without events says that it is alive.
const ALIVE: Duration = Duration::from_secs(15);
/// Maximum number of subjects whose events wait. Beyond it, the whole state is due instead.
const MOST_WAITING: usize = 1000;

/// Sends events until the page or the server leaves.
pub(super) async fn stream(State(shared): State<Arc<Shared>>) -> Response {
    let Ok(place) = Arc::clone(&shared.streams).try_acquire_owned() else {
        let advice = "too many pages of the dashboard are open; close some";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, advice).into_response();
    };
    let dialed = shared.dial.dial().await;
    let mut open = match dialed {
        Ok(stream) => OpenConnection::over(stream),
        Err(why) => return refusal(StatusCode::BAD_GATEWAY, &why).into_response(),
    };
    if open.answer("subscribe", &json!({ "topics": TOPICS })).await.is_none() {
        let why = "the server ended before it sent events";
        return refusal(StatusCode::BAD_GATEWAY, why).into_response();
    }
    let waiting = Arc::new(Waiting::of_all(json!({ "version": shared.version })));
    let end = CancellationToken::new();
    let guard = end.clone().drop_guard();
    tokio::spawn(end.run_until_cancelled_owned(gather(open, Arc::clone(&waiting))));
    let ending = shared.ending.clone();
    let events = sent(shared, waiting, (guard, place)).take_until(ending.cancelled_owned());
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response()
}

/// Gathers notifications until the server leaves.
async fn gather(mut open: OpenConnection, waiting: Arc<Waiting>) {
    while let Some(line) = open.line().await {
        if let Ok(told) = serde_json::from_str::<Json>(&line) {
            waiting.add(told);
        }
    }
    waiting.end();
}

/// Returns the events of a page. `kept` is dropped with the stream.
fn sent(
    shared: Arc<Shared>,
    waiting: Arc<Waiting>,
    kept: (DropGuard, impl Send),
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    stream::unfold((shared, waiting, kept), |(shared, waiting, kept)| async move {
        let told = waiting.take().await?;
        let number = shared.events.fetch_add(1, Ordering::Relaxed);
        let event = Event::default().id(number.to_string()).data(Json::from(told).to_string());
        Some((Ok(event), (shared, waiting, kept)))
    })
}

/// Notifications that wait for the page, the latest of each kind and subject.
#[derive(Default)]
struct Waiting {
    told: Mutex<PageEvent>,
    changed: Notify,
}

#[derive(Default)]
struct PageEvent {
    latest: BTreeMap<String, Json>,
    has_ended: bool,
    /// Notification that the whole state is due.
    all: Json,
}

impl Waiting {
    /// Creates the notifications of a new page, for which the whole state is due.
    fn of_all(params: Json) -> Self {
        let waiting = Self::default();
        let all = json!({ "method": "state", "params": params });
        waiting.change(|told| {
            told.all = all;
            told.make_all_due();
        });
        waiting
    }

    fn change(&self, change: impl FnOnce(&mut PageEvent)) {
        change(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    fn add(&self, told: Json) {
        let params = &told["params"];
        let subject = [&params["session_id"], &params["manager"], &params["approval"]];
        let subject = subject.into_iter().find(|name| !name.is_null());
        let key = format!("{} {}", told["method"], subject.unwrap_or(&Json::Null));
        self.change(|all| {
            all.latest.insert(key, told);
            if all.latest.len() > MOST_WAITING {
                all.make_all_due();
            }
        });
    }

    fn end(&self) {
        self.change(|told| told.has_ended = true);
    }

    /// Waits for notifications, and takes all of them; `None` once there will be none.
    async fn take(&self) -> Option<Vec<Json>> {
        loop {
            {
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                if !told.latest.is_empty() {
                    return Some(std::mem::take(&mut told.latest).into_values().collect());
                }
                if told.has_ended {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

impl PageEvent {
    fn make_all_due(&mut self) {
        self.latest = BTreeMap::from([(String::new(), self.all.clone())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(session: usize, version: usize) -> Json {
        let params = json!({ "session_id": format!("ses-{session}"), "version": version });
        json!({ "method": "session-changed", "params": params })
    }

    #[tokio::test]
    async fn a_slow_page_gets_the_latest_of_each_subject_and_then_the_whole_state() {
        let waiting = Waiting::of_all(json!({ "version": "1" }));
        assert_eq!(waiting.take().await.unwrap()[0]["method"], "state");
        for version in 0..100 {
            waiting.add(told(1, version));
            waiting.add(told(2, version));
        }
        assert_eq!(waiting.take().await.unwrap(), [told(1, 99), told(2, 99)]);
        (0..=MOST_WAITING).for_each(|session| waiting.add(told(session, 1)));
        let due = waiting.take().await.unwrap();
        assert_eq!((due.len(), &due[0]["params"]["version"]), (1, &json!("1")));
        waiting.add(told(1, 1));
        waiting.end();
        assert_eq!(waiting.take().await.unwrap(), [told(1, 1)]);
        assert!(waiting.take().await.is_none());
    }
}
