//! Backpressure: how many bytes a client has not read yet, and when there is room for more.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::rpc::limits::max_unread;

/// Number of unread bytes at which a client stops getting progress and notifications.
pub(super) const CHATTER_LIMIT: usize = 1 << 20;
/// Number of unread bytes below which there is room for progress that should not be dropped.
pub(super) const ROOM_LIMIT: usize = CHATTER_LIMIT / 4;
/// Time to wait for a slow client before its progress messages are dropped.
const READER_TIME: Duration = Duration::from_secs(10);

/// What all clients of a server have not read yet.
#[derive(Clone, Default)]
pub(super) struct Unread(Arc<UnreadOfAll>);

#[derive(Default)]
struct UnreadOfAll {
    clients: Mutex<Vec<Weak<Backpressure>>>,
    /// Number of readings so far, which tells who read before whom.
    readings: AtomicU64,
}

impl Unread {
    /// Adds a client.
    pub(super) fn join(&self) -> Arc<Backpressure> {
        let client = Arc::new(Backpressure { all: self.clone(), ..Backpressure::default() });
        let mut clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(&client));
        client
    }

    /// Hangs up on clients until no more than `most` bytes are unread in all. First go the clients
    /// that have read nothing for the longest time. Clients with little to read stay.
    fn bound(&self, most: usize) {
        let clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let open = clients.iter().filter_map(Weak::upgrade);
        let mut open: Vec<_> = open.filter(|client| !client.hang_up.is_cancelled()).collect();
        let mut sum: usize = open.iter().map(|client| client.pending()).sum();
        open.retain(|client| client.pending() > CHATTER_LIMIT);
        open.sort_by_key(|client| client.last_read.load(Ordering::Relaxed));
        for client in open {
            if sum <= most {
                break;
            }
            sum = sum.saturating_sub(client.pending());
            client.hang_up.cancel();
        }
    }
}

/// Number of bytes on their way to a client.
#[derive(Default)]
pub(super) struct Backpressure {
    all: Unread,
    /// Place of the client's last reading among those of all clients.
    last_read: AtomicU64,
    /// Cancelled when all clients together have too much to read, and this one reads nothing.
    pub(super) hang_up: CancellationToken,
    /// Number of bytes that are encoded but not yet written.
    pending: AtomicUsize,
    /// Approximate number of bytes of progress messages in the writer's queue.
    queued: AtomicUsize,
    /// Notified when there is room again.
    news: Notify,
    /// Set after a time-out, until there is room again.
    is_stuck: AtomicBool,
}

impl Backpressure {
    pub(super) fn bytes(&self) -> usize {
        self.pending.load(Ordering::Relaxed) + self.queued.load(Ordering::Relaxed)
    }

    /// Counts the bytes of progress that was put into the queue.
    pub(super) fn add_queued(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts the bytes of progress that was taken from the queue.
    pub(super) fn take_queued(&self, bytes: usize) {
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    /// Sets the number of bytes that are encoded but not yet written. All clients together may have
    /// [`max_unread`] bytes.
    pub(super) fn set_pending(&self, bytes: usize, max_message: usize) {
        let before = self.pending.swap(bytes, Ordering::Relaxed);
        if bytes < before || before == 0 {
            let readings = self.all.0.readings.fetch_add(1, Ordering::Relaxed);
            self.last_read.store(readings, Ordering::Relaxed);
        }
        if bytes > before && bytes > CHATTER_LIMIT {
            self.all.bound(max_unread(max_message));
        }
        if self.bytes() < ROOM_LIMIT {
            self.news.notify_waiters();
        }
    }

    /// Waits until there is room, but at most for [`READER_TIME`]. After such a time-out, does not
    /// wait for the client again until it reads.
    pub(super) async fn room(&self) {
        if timeout(READER_TIME, self.read()).await.is_err() {
            self.is_stuck.store(true, Ordering::Relaxed);
        }
    }

    async fn read(&self) {
        loop {
            // Registered before the check, so that no notification is missed.
            let news = self.news.notified();
            if self.bytes() < ROOM_LIMIT {
                return self.is_stuck.store(false, Ordering::Relaxed);
            }
            if self.is_stuck.load(Ordering::Relaxed) {
                return;
            }
            news.await;
        }
    }

    /// Marks the client as stuck, as a time-out does.
    #[cfg(test)]
    pub(super) fn give_up(&self) {
        self.is_stuck.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::limits::{UNREAD_TOGETHER, max_unread_of_one};

    const MESSAGE: usize = 64 << 20;
    const EACH: usize = UNREAD_TOGETHER / 11;

    fn left(clients: &[Arc<Backpressure>]) -> Vec<usize> {
        let is_open = |at: &usize| !clients[*at].hang_up.is_cancelled();
        (0..clients.len()).filter(is_open).collect()
    }

    #[test]
    fn who_reads_least_goes_once_all_leave_too_much_unread() {
        let unread = Unread::default();
        let clients: Vec<_> = (0..12).map(|_| unread.join()).collect();
        // The first has little to read, and the second reads.
        clients[0].set_pending(CHATTER_LIMIT / 2, MESSAGE);
        for client in &clients[2..11] {
            clients[1].set_pending(EACH, MESSAGE);
            client.set_pending(EACH, MESSAGE);
            clients[1].set_pending(EACH / 2, MESSAGE);
        }
        assert_eq!(left(&clients), (0..12).collect::<Vec<_>>());
        clients[11].set_pending(2 * EACH, MESSAGE);
        assert_eq!(left(&clients), [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        clients[11].set_pending(5 * EACH, MESSAGE);
        assert_eq!(left(&clients), [0, 1, 6, 7, 8, 9, 10, 11]);
        // Who has left does not count.
        drop(clients);
        let newer: Vec<_> = (0..9).map(|_| unread.join()).collect();
        newer.iter().for_each(|client| client.set_pending(EACH, MESSAGE));
        assert_eq!(left(&newer), (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn one_client_may_leave_as_much_as_without_the_others() {
        for message in [1 << 20, MESSAGE, 1 << 30, usize::MAX] {
            let alone = Unread::default().join();
            alone.set_pending(max_unread_of_one(message), message);
            assert!(!alone.hang_up.is_cancelled());
        }
    }
}
