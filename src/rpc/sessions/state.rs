//! The state of a session: what its agent's hooks told, or else what the recording shows.

use crate::rpc::connected::{SessionState, Signal};
use crate::session::message::Role;
use crate::store::session::SessionRow;

/// Time without a new message, in seconds, up to which a model without hooks counts as working on a
/// question or a result.
const WORKS_FOR: i64 = 10 * 60;
/// Time without a new message, in seconds, up to which a session without hooks counts as live.
const LIVE_FOR: i64 = 60 * 60;
/// Time without a new message, in seconds, after which a call of a session without hooks no longer
/// counts as open.
const OPEN_FOR: i64 = 24 * 60 * 60;

/// Returns the state of a session at the time `now`, and when that began, in Unix seconds.
/// `is_answering` is true if one of our own turns runs in the session; `signal` is the last that
/// the agent's hooks told.
pub(super) fn state(
    row: &SessionRow,
    is_answering: bool,
    signal: Option<&Signal>,
    now: i64,
) -> (SessionState, i64) {
    if is_answering {
        return (SessionState::Working, row.updated);
    }
    if let Some(signal) = signal {
        // What was recorded since shows that the user has answered.
        let is_answered = signal.state == SessionState::Waiting && row.updated > signal.at;
        let is_stopped = row.origin.is_stopped && row.updated >= signal.at;
        return match () {
            () if signal.has_ended() => (SessionState::Ended, signal.at),
            () if is_stopped => (SessionState::Idle, row.updated),
            () if is_answered => (SessionState::Working, row.updated),
            () => (signal.state, signal.at),
        };
    }
    let quiet_for = now.saturating_sub(row.updated);
    let state = match (row.origin.open_since, row.last_role) {
        (Some(since), _) if quiet_for <= OPEN_FOR => return (SessionState::CallOpen, since),
        (Some(_), _) => SessionState::Quiet,
        (None, Some(Role::User | Role::Tool))
            if quiet_for <= WORKS_FOR && row.origin.agent.is_some() && !row.origin.is_stopped =>
        {
            SessionState::Working
        }
        (None, _) if quiet_for <= LIVE_FOR => SessionState::Idle,
        (None, _) => SessionState::Quiet,
    };
    (state, row.updated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::session::RecordedOrigin;

    const NOW: i64 = 1_000_000;

    fn row(role: Role, ago: i64, open_since: Option<i64>) -> SessionRow {
        let origin =
            RecordedOrigin { agent: Some("codex".into()), open_since, ..RecordedOrigin::default() };
        SessionRow { updated: NOW - ago, last_role: Some(role), origin, ..SessionRow::default() }
    }

    #[test]
    fn without_hooks_a_state_says_only_what_the_recording_shows() {
        let check = |role, ago, open, expected| {
            let (state, _) = state(&row(role, ago, open), false, None, NOW);
            assert_eq!(state, expected, "{role:?} {ago} {open:?}");
        };
        check(Role::User, 5, None, SessionState::Working);
        check(Role::Tool, 5, None, SessionState::Working);
        check(Role::Tool, WORKS_FOR + 1, None, SessionState::Idle);
        check(Role::Assistant, 5, None, SessionState::Idle);
        check(Role::Assistant, LIVE_FOR + 1, None, SessionState::Quiet);
        check(Role::Assistant, 5, Some(NOW - 5), SessionState::CallOpen);
        check(Role::Assistant, OPEN_FOR + 1, Some(1), SessionState::Quiet);
    }

    #[test]
    fn hooks_tell_more_until_the_recording_goes_on() {
        let waiting = Signal { state: SessionState::Waiting, at: NOW - 9, process: None };
        let told =
            |ago| state(&row(Role::Assistant, ago, Some(NOW - 9)), false, Some(&waiting), NOW);
        assert_eq!(told(9), (SessionState::Waiting, NOW - 9));
        assert_eq!(told(2), (SessionState::Working, NOW - 2));
        // The user refused the call, and the agent waits for a prompt.
        let mut stopped = row(Role::Tool, 2, None);
        stopped.origin.is_stopped = true;
        for signal in [None, Some(&waiting)] {
            assert_eq!(state(&stopped, false, signal, NOW), (SessionState::Idle, NOW - 2));
        }
        let next = Signal { state: SessionState::Working, at: NOW - 1, process: None };
        let told = state(&stopped, false, Some(&next), NOW);
        assert_eq!(told, (SessionState::Working, NOW - 1), "a new prompt");
        // No process has this number.
        let gone = Signal { process: Some(i32::MAX), ..waiting };
        let (ended, _) = state(&row(Role::Assistant, 9, None), false, Some(&gone), NOW);
        assert_eq!(ended, SessionState::Ended);
    }
}
