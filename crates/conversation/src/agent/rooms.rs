//! Token limits of a provider's models, as the model server reports them or reveals them in
//! refusals. Kept in memory until this server ends or the provider is configured again, since a
//! model server may be restarted with another window.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::curation::budget::RESERVED;
use crate::provider::{Limit, ProviderError};
use crate::tokens::model::{LimitFrom, Model};

/// Maximum time that a turn waits for a server to report its model's limit.
pub(super) const LIMIT_TIME: Duration = Duration::from_secs(1);

/// Minimum size of a window, in tokens, from which to learn how a server counts.
const TOO_FEW: u64 = 200;

/// Plausible range of a server's token count of a window, divided by our count.
const RATIOS: std::ops::RangeInclusive<f64> = 1.0..=8.0;

/// Known limits of one provider's models, by model name. Clones share the limits.
#[derive(Clone, Default)]
pub struct Rooms(Arc<Mutex<HashMap<String, Room>>>);

/// The known limit of one model.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Maximum number of tokens by the server's count, and the source of this number.
    pub limit: Option<(u64, LimitFrom)>,
    /// The server's last token count of a window, divided by our count.
    ratio: f64,
    /// True if the server need not be asked again.
    asked: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self { limit: None, ratio: 1.0, asked: false }
    }
}

impl Rooms {
    /// Returns what is known about the limit of a model.
    pub fn of(&self, model: &str) -> Room {
        self.rooms().get(model).copied().unwrap_or_default()
    }

    /// Returns whether the server must still be asked about a model.
    pub(super) fn is_to_be_asked(&self, model: &str) -> bool {
        !self.of(model).asked
    }

    /// Records the server's report; `None` if it took too long. The server is asked again in the
    /// next turn if asking failed or the limit can change, but not if the report took too long or
    /// named no limit.
    pub(super) fn told(&self, model: &str, told: Option<Result<Option<Limit>, ProviderError>>) {
        let mut rooms = self.rooms();
        let room = rooms.entry(model.to_owned()).or_default();
        match told {
            Some(Err(_)) => {}
            None | Some(Ok(None)) => room.asked = true,
            Some(Ok(Some(limit))) => {
                room.asked = !limit.may_change;
                room.limit = Some((limit.tokens, LimitFrom::Server));
            }
        }
    }

    /// Records the limit that a refusal names.
    pub(super) fn refused(&self, model: &str, limit: u64) {
        let mut rooms = self.rooms();
        rooms.entry(model.to_owned()).or_default().limit = Some((limit, LimitFrom::Refusal));
    }

    /// Records that the server counted `reported` tokens in a window in which we counted `counted`.
    /// Ignores small windows.
    pub(super) fn compared(&self, model: &str, counted: u64, reported: u64) {
        if counted < TOO_FEW || reported < TOO_FEW {
            return;
        }
        let ratio = (reported as f64 / counted as f64).clamp(*RATIOS.start(), *RATIOS.end());
        self.rooms().entry(model.to_owned()).or_default().ratio = ratio;
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<String, Room>> {
        // A panic cannot leave the limits inconsistent: each change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room {
    /// Applies this limit to a model, and leaves room for an answer of `output` tokens. The user's
    /// setting takes precedence over the server's report, but not over a lower limit from a
    /// refusal.
    pub(super) fn within(&self, model: Model, output: Option<u64>) -> Model {
        let Some((tokens, from)) = self.limit else { return model };
        let is_said = model.limit_from == LimitFrom::Configuration;
        if is_said && (from == LimitFrom::Server || model.limit <= tokens) {
            return model;
        }
        // Leaves room for the part of the answer that exceeds the usual reserve, and converts the
        // rest to our count.
        let half = tokens / 2;
        let beyond = output.unwrap_or(0).min(half).saturating_sub(RESERVED.min(half));
        let ours = ((tokens - beyond) as f64 / self.ratio).floor() as u64;
        Model { limit: ours, limit_from: from, known: true, ..model }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::model::Override;

    fn told(tokens: u64, may_change: bool) -> Option<Result<Option<Limit>, ProviderError>> {
        Some(Ok(Some(Limit { tokens, may_change })))
    }

    #[track_caller]
    fn check(rooms: &Rooms, said: Option<u64>, expected: (u64, LimitFrom)) {
        let over = Override { prefix: "m".into(), limit: said, ..Override::default() };
        let overrides = said.map(|_| over);
        let model = rooms.of("m").within(Model::named("m", overrides.as_slice()), None);
        assert_eq!((model.limit, model.limit_from), expected);
    }

    #[test]
    fn what_a_server_tells_counts_unless_the_user_says_otherwise_or_it_refuses() {
        let rooms = Rooms::default();
        check(&rooms, None, (100_000, LimitFrom::Default));
        rooms.told("m", told(8000, false));
        check(&rooms, None, (8000, LimitFrom::Server));
        check(&rooms, Some(50_000), (50_000, LimitFrom::Configuration));
        rooms.refused("m", 4000);
        check(&rooms, None, (4000, LimitFrom::Refusal));
        check(&rooms, Some(50_000), (4000, LimitFrom::Refusal));
        check(&rooms, Some(2000), (2000, LimitFrom::Configuration));
    }

    #[test]
    fn a_server_is_asked_until_it_has_said_what_stays() {
        let rooms = Rooms::default();
        let unreachable = ProviderError {
            kind: crate::provider::ErrorKind::Unavailable,
            provider: String::new(),
            model: String::new(),
            what: String::new(),
            retry_after: None,
            overflow: None,
        };
        rooms.told("m", Some(Err(unreachable)));
        assert!(rooms.is_to_be_asked("m"), "the server may be reachable later");
        rooms.told("m", told(8000, true));
        assert!(rooms.is_to_be_asked("m"), "the server may lower the limit");
        rooms.told("m", told(4000, false));
        assert!(!rooms.is_to_be_asked("m") && rooms.is_to_be_asked("n"));
        rooms.told("n", None);
        assert!(!rooms.is_to_be_asked("n"), "a slow server delays only one turn");
    }

    #[test]
    fn a_limit_is_told_in_tokens_of_the_server_and_counted_in_ours() {
        let rooms = Rooms::default();
        rooms.told("m", told(8000, false));
        rooms.compared("m", 1000, 2000);
        check(&rooms, None, (4000, LimitFrom::Server));
        // If the server counts fewer tokens than we do, the limit stays. A small window tells
        // nothing.
        rooms.compared("m", 1000, 500);
        check(&rooms, None, (8000, LimitFrom::Server));
        rooms.compared("m", 10, 90);
        check(&rooms, None, (8000, LimitFrom::Server));
    }

    #[test]
    fn a_long_answer_has_its_room_but_never_more_than_half() {
        let room = Room { limit: Some((16_000, LimitFrom::Server)), ..Room::default() };
        let limit = |output| room.within(Model::named("m", &[]), output).limit;
        assert_eq!([limit(None), limit(Some(4000)), limit(Some(6000))], [16_000, 16_000, 14_000]);
        assert_eq!(limit(Some(1_000_000)), 12_000);
    }
}
