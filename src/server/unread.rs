//! How much is on its way to a client, and when there is room for more. It knows bytes only.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// A client that has this many bytes of progress and notifications unread gets no more of them.
pub(super) const CHATTER_LIMIT: usize = 1 << 20;
/// With less than this there is room for progress that must not be dropped.
pub(super) const ROOM_LIMIT: usize = CHATTER_LIMIT / 4;
/// How long a client is waited for that has more to read, until it gets no more progress.
const READER_TIME: Duration = Duration::from_secs(10);

/// What is on its way to a client, in bytes.
#[derive(Default)]
pub(super) struct Unread {
    /// Encoded, and not written yet.
    pending: AtomicUsize,
    /// Progress that the writer has not taken yet, about.
    queued: AtomicUsize,
    /// Told when there is room again.
    news: Notify,
    /// It was waited for in vain, and there has been no room since.
    is_stuck: AtomicBool,
}

impl Unread {
    pub(super) fn bytes(&self) -> usize {
        self.pending.load(Ordering::Relaxed) + self.queued.load(Ordering::Relaxed)
    }

    /// Progress was put into the queue.
    pub(super) fn add_queued(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Progress was taken from the queue.
    pub(super) fn take_queued(&self, bytes: usize) {
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// So much is encoded and not written.
    pub(super) fn set_pending(&self, bytes: usize) {
        self.pending.store(bytes, Ordering::Relaxed);
        if self.bytes() < ROOM_LIMIT {
            self.news.notify_waiters();
        }
    }

    /// Waits until there is room. A client that reads nothing is waited for once.
    pub(super) async fn room(&self) {
        if timeout(READER_TIME, self.read()).await.is_err() {
            self.is_stuck.store(true, Ordering::Relaxed);
        }
    }

    async fn read(&self) {
        loop {
            // Before looking, so that no news is missed.
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

    /// As when it was waited for in vain.
    #[cfg(test)]
    pub(super) fn give_up(&self) {
        self.is_stuck.store(true, Ordering::Relaxed);
    }
}
