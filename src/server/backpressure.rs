//! Backpressure: how many bytes a client has not read yet, and when there is room for more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Number of unread bytes at which a client stops getting progress and notifications.
pub(super) const CHATTER_LIMIT: usize = 1 << 20;
/// Number of unread bytes below which there is room for progress that should not be dropped.
pub(super) const ROOM_LIMIT: usize = CHATTER_LIMIT / 4;
/// Time to wait for a slow client before its progress messages are dropped.
const READER_TIME: Duration = Duration::from_secs(10);

/// Number of bytes on their way to a client.
#[derive(Default)]
pub(super) struct Backpressure {
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

    /// Sets the number of bytes that are encoded but not yet written.
    pub(super) fn set_pending(&self, bytes: usize) {
        self.pending.store(bytes, Ordering::Relaxed);
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
