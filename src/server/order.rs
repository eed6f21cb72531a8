//! Order of one client's changes. Some changes, such as directory walks, begin with long work
//! alongside the client's other calls, but still take effect in the order in which the client sent
//! them.

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::rpc::{Pace, Touched};

/// The calls that have not taken effect yet although later calls may already begin.
#[derive(Default)]
pub(super) struct Order {
    open: Vec<OpenOrder>,
}

struct OpenOrder {
    touched: Touched,
    /// False for a change with long work of its own, such as a directory walk: later calls that
    /// only read do not wait for it. True for any other call, which is here only because it is
    /// waiting, too.
    is_held: bool,
    begins_at_once: bool,
    effective: CancellationToken,
}

/// A call's place in the order. Later calls about the same manager or session continue when the
/// call has taken effect or its place is dropped.
pub(super) struct OrderPlace {
    before: Vec<CancellationToken>,
    /// True if the call begins at once, even before its turn has come. While it waits for its turn,
    /// it may hold a permit to run, so it must wait only for calls that already hold theirs.
    pub(super) begins_at_once: bool,
    /// Cancelled once the call has taken effect.
    pub(super) effective: CancellationToken,
    _dropped: DropGuard,
}

impl Order {
    /// Returns the place of the next call; `None` if the call need not wait for any other and no
    /// other need wait for it. A change waits for all earlier calls about the same manager or
    /// session. A call that only reads does not wait for changes with long work of their own, such
    /// as walks: it need not see their results. It does wait for any other earlier call about
    /// the same manager or session that is itself waiting.
    pub(super) fn place(
        &mut self,
        touched: impl FnOnce() -> Touched,
        pace: Pace,
    ) -> Option<OrderPlace> {
        self.open.retain(|open| !open.effective.is_cancelled());
        let is_aside = matches!(pace, Pace::Aside | Pace::AsideAfter);
        if self.open.is_empty() && !is_aside {
            return None;
        }
        let touched = touched();
        let is_first = |open: &&OpenOrder| {
            (touched.changes || open.is_held) && open.touched.subject.meets(&touched.subject)
        };
        let first = self.open.iter().filter(is_first);
        let begins_at_once = pace == Pace::Aside && first.clone().all(|open| open.begins_at_once);
        let before: Vec<_> = first.map(|open| open.effective.clone()).collect();
        if before.is_empty() && !(is_aside && touched.changes) {
            return None;
        }
        let is_held = !(is_aside && touched.changes);
        let effective = CancellationToken::new();
        self.open.push(OpenOrder {
            touched,
            is_held,
            begins_at_once,
            effective: effective.clone(),
        });
        let dropped = effective.clone().drop_guard();
        Some(OrderPlace { before, begins_at_once, effective, _dropped: dropped })
    }
}

impl OrderPlace {
    /// Waits until the earlier calls that this call must wait for have taken effect.
    pub(super) async fn wait(&self) {
        for effective in &self.before {
            effective.cancelled().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::TouchedPart;

    fn manager(name: &str, changes: bool) -> Touched {
        Touched { subject: TouchedPart::Manager(name.to_owned()), changes }
    }

    #[test]
    fn only_what_is_about_the_same_waits() {
        let mut order = Order::default();
        assert!(order.place(|| manager("m", true), Pace::Prompt).is_none());
        let walk = order.place(|| manager("m", true), Pace::Aside).unwrap();
        assert!(walk.before.is_empty());
        assert!(order.place(|| manager("other", true), Pace::Prompt).is_none());
        assert!(
            order.place(|| manager("m", false), Pace::Prompt).is_none(),
            "a reading sees what is there"
        );
        let clear = order.place(|| manager("m", true), Pace::Prompt).unwrap();
        let read = order.place(|| manager("m", false), Pace::Prompt).unwrap();
        assert_eq!((clear.before.len(), read.before.len()), (1, 1));
        let all = Touched { subject: TouchedPart::Everything, changes: false };
        assert_eq!(order.place(|| all, Pace::Prompt).unwrap().before.len(), 2);
        drop(walk);
        assert!(clear.before[0].is_cancelled() && !read.before[0].is_cancelled());
        clear.effective.cancel();
        assert!(read.before[0].is_cancelled());
        let nothing = Touched { subject: TouchedPart::Nothing, changes: true };
        assert!(order.place(|| nothing, Pace::Prompt).is_none());
    }

    #[test]
    fn sessions_meet_unless_their_names_differ() {
        let session = |name: Option<&str>| TouchedPart::Session(name.map(str::to_owned));
        assert!(session(None).meets(&session(Some("a"))));
        assert!(session(Some("a")).meets(&session(Some("a"))));
        assert!(!session(Some("a")).meets(&session(Some("b"))));
        assert!(session(Some("ses-1")).meets(&session(Some("b"))), "b may be its name");
        assert!(!session(None).meets(&TouchedPart::Manager("m".to_owned())));
    }
}
