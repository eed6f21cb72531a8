//! Bounds the connections over TCP and HTTP, so that nobody can use up the descriptors that the
//! user's own sockets and files need. A guest is a connection on which no valid message, or no
//! request with the token, has come yet. Also logs
//! what strangers do, without letting them fill the log. Knows nothing of messages.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, geteuid, getrlimit};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::system::peer_user;

/// Maximum number of guests. Beyond it, the oldest guest is sent away, and the user's own only if
/// there is no other.
const MOST_GUESTS: usize = 256;
/// Maximum number of guests of one peer, unless the peer is the server's user. Beyond it, the
/// oldest of these is sent away.
const MOST_OF_A_PEER: usize = 32;
/// Share of the descriptors of this process that connections over TCP and HTTP may take. The rest
/// is for the user's own sockets, the store, and files.
const SHARE_OF_ALL: u64 = 2;
/// Share of the descriptors of this process that guests may take.
const SHARE_OF_GUESTS: u64 = 8;

/// Time after a wrong secret of a peer before another secret of the same peer is looked at.
const GUESS_TIME: Duration = Duration::from_secs(1);
/// Number of peers with wrong secrets at which the peers whose time is over are forgotten.
const MOST_GUESSERS: usize = 1024;
/// Number of low bits of an IPv6 address that the owner of a network chooses freely.
const BITS_OF_A_HOST: u32 = 64;

/// The other end of a connection over TCP or HTTP, as far as the system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RemotePeer {
    /// The user that the server runs as, on this machine.
    Own,
    /// Another user of this machine.
    User(u32),
    /// Anybody with this address.
    Address(IpAddr),
}

impl RemotePeer {
    /// Asks the system who is at the other end of the connection from `peer` to `local`.
    pub(crate) fn of(peer: SocketAddr, local: SocketAddr) -> Self {
        let is_near = local.ip().is_loopback() && peer.ip().is_loopback();
        match is_near.then(|| peer_user(peer, local)).flatten() {
            Some(user) if user == geteuid().as_raw() => Self::Own,
            Some(user) => Self::User(user),
            None => Self::Address(peer.ip().to_canonical()),
        }
    }

    /// Returns the peer that stands for all that one network can pretend to be.
    fn network(self) -> Self {
        match self {
            Self::Address(IpAddr::V6(address)) => {
                let bits = address.to_bits() >> BITS_OF_A_HOST << BITS_OF_A_HOST;
                Self::Address(Ipv6Addr::from_bits(bits).into())
            }
            peer => peer,
        }
    }
}

/// The connections over TCP and HTTP. Clones share the same connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guests(Arc<Mutex<Places>>);

#[derive(Debug, Default)]
struct Places {
    /// Number of guests so far.
    number: u64,
    guests: BTreeMap<u64, (RemotePeer, CancellationToken)>,
    /// Number of open connections that are no longer guests.
    known: usize,
    /// Peers that sent a wrong secret, or are about to send one.
    guessers: BTreeMap<RemotePeer, Arc<NextGuess>>,
}

/// Time at which the next secret of a peer is looked at. Whoever holds the lock is the next.
type NextGuess = tokio::sync::Mutex<Instant>;

/// The turn of a guest to have its secret looked at. No other secret of its peer is looked at
/// meanwhile.
pub(crate) struct GuessTurn(OwnedMutexGuard<Instant>);

impl GuessTurn {
    /// Records that the secret was wrong.
    pub(crate) fn note_wrong(mut self) {
        *self.0 = Instant::now() + GUESS_TIME;
    }
}

/// The place of a connection, which is free again when the value is dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    all: Guests,
    number: u64,
    peer: RemotePeer,
    sent_away: CancellationToken,
}

impl Guests {
    /// Gives a new connection a place, if need be that of an older guest. Returns `None` if all
    /// places are taken by connections that are no guests.
    pub(crate) fn admit(&self, peer: RemotePeer) -> Option<Guest> {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let share = |share| usize::try_from(descriptors / share).unwrap_or(usize::MAX);
        self.admit_within(peer, share(SHARE_OF_ALL), MOST_GUESTS.min(share(SHARE_OF_GUESTS)))
    }

    fn admit_within(&self, peer: RemotePeer, all: usize, guests: usize) -> Option<Guest> {
        let mut places = self.places();
        let of_peer = places.guests.values().filter(|(other, _)| *other == peer).count();
        if peer != RemotePeer::Own && of_peer >= MOST_OF_A_PEER {
            places.send_away(|other| other == peer);
        } else if places.guests.len() >= guests || places.guests.len() + places.known >= all {
            let _ =
                places.send_away(|other| other != RemotePeer::Own) || places.send_away(|_| true);
        }
        if places.guests.len() + places.known >= all {
            return None;
        }
        places.number += 1;
        let (number, sent_away) = (places.number, CancellationToken::new());
        places.guests.insert(number, (peer, sent_away.clone()));
        Some(Guest { all: self.clone(), number, peer, sent_away })
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Sends away the oldest guest that fits. Returns whether there is one.
    fn send_away(&mut self, fits: impl Fn(RemotePeer) -> bool) -> bool {
        let oldest = self.guests.iter().find(|(_, (peer, _))| fits(*peer));
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        if let Some((_, sent_away)) = self.guests.remove(&number) {
            sent_away.cancel();
        }
        true
    }
}

impl Guest {
    /// Records that the connection is known from now on. It then keeps its place.
    pub(crate) fn note_known(&self) {
        let mut places = self.all.places();
        if places.guests.remove(&self.number).is_some() {
            places.known += 1;
        }
    }

    /// Returns whether the connection is still a guest.
    pub(crate) fn is_guest(&self) -> bool {
        self.all.places().guests.contains_key(&self.number)
    }

    /// Waits until the secret of the guest may be looked at: secrets of one peer are looked at one
    /// after the other, and after a wrong one comes a pause. A right secret waits too, since it
    /// would be told from the wrong ones by its time.
    pub(crate) async fn turn_to_guess(&self) -> GuessTurn {
        let next = {
            let mut places = self.all.places();
            if places.guessers.len() >= MOST_GUESSERS {
                let is_over =
                    |next: &NextGuess| next.try_lock().is_ok_and(|at| *at <= Instant::now());
                places.guessers.retain(|_, next| !is_over(next));
            }
            let next = places.guessers.entry(self.peer.network());
            Arc::clone(next.or_insert_with(|| Arc::new(NextGuess::new(Instant::now()))))
        };
        let turn = next.lock_owned().await;
        // A sleep takes a moment even if its time is over.
        if *turn > Instant::now() {
            sleep_until(*turn).await;
        }
        GuessTurn(turn)
    }

    /// Resolves when the connection must end because another one gets its place.
    pub(crate) async fn sent_away(&self) {
        self.sent_away.cancelled().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut places = self.all.places();
        if places.guests.remove(&self.number).is_none() && !self.sent_away.is_cancelled() {
            places.known = places.known.saturating_sub(1);
        }
    }
}

/// Logs what strangers may cause as often as they like: each kind of event the first time, and then
/// whenever its number has doubled. A full pipe at standard error would hold up all clients.
pub(crate) fn warn_of(kind: &'static str, detail: impl std::fmt::Display) {
    static SEEN: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let count = seen.entry(kind).or_default();
    *count += 1;
    match *count {
        1 => tracing::warn!("{kind}{detail}"),
        count if count.is_power_of_two() => tracing::warn!("{kind}{detail} ({count} times so far)"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_away(guest: &Guest) -> bool {
        guest.sent_away.is_cancelled()
    }

    #[test]
    fn others_make_room_for_the_user_and_never_take_it() {
        let all = Guests::default();
        let mine = all.admit_within(RemotePeer::Own, 20, 10).unwrap();
        let others: Vec<_> =
            (0..50).map(|user| all.admit_within(RemotePeer::User(user), 20, 10).unwrap()).collect();
        assert!(!is_away(&mine));
        assert_eq!(others.iter().filter(|other| !is_away(other)).count(), 9);
        assert!(!is_away(&others[49]) && is_away(&others[40]));
        mine.note_known();
        assert!(!mine.is_guest() && others[49].is_guest());
        let own: Vec<_> =
            (0..11).map(|_| all.admit_within(RemotePeer::Own, 20, 10).unwrap()).collect();
        assert!(others.iter().all(is_away), "the user's own come before others");
        assert!(is_away(&own[0]) && !is_away(&own[1]), "the oldest goes first");
    }

    #[test]
    fn one_peer_has_few_places() {
        let all = Guests::default();
        let other = all.admit_within(RemotePeer::User(1), 1000, 1000).unwrap();
        let address = RemotePeer::Address("192.0.2.1".parse().unwrap());
        let many: Vec<_> =
            (0..100).map(|_| all.admit_within(address, 1000, 1000).unwrap()).collect();
        assert_eq!(many.iter().filter(|it| !is_away(it)).count(), MOST_OF_A_PEER);
        assert!(!is_away(&other));
    }

    #[test]
    fn places_are_free_again_and_known_connections_keep_theirs() {
        let all = Guests::default();
        let known: Vec<_> = (0..3)
            .map(|_| {
                let guest = all.admit_within(RemotePeer::Own, 3, 3).unwrap();
                guest.note_known();
                guest
            })
            .collect();
        assert!(all.admit_within(RemotePeer::Own, 3, 3).is_none());
        assert!(!known.iter().any(is_away));
        drop(known);
        let guest = all.admit_within(RemotePeer::Own, 3, 3).unwrap();
        drop(guest);
        let places = all.places();
        assert_eq!((places.guests.len(), places.known), (0, 0));
    }

    #[tokio::test]
    async fn secrets_of_one_network_are_looked_at_one_after_the_other() {
        use futures_util::FutureExt;
        let all = Guests::default();
        let of = |address: &str| {
            let peer = RemotePeer::Address(address.parse().unwrap());
            all.admit_within(peer, 100_000, 100_000).unwrap()
        };
        for (one, same, other) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:0:1", "2001:db8:0:1::1"),
        ] {
            let (one, same, other) = (of(one), of(same), of(other));
            let turn = one.turn_to_guess().now_or_never().unwrap();
            assert!(same.turn_to_guess().now_or_never().is_none());
            assert!(other.turn_to_guess().now_or_never().is_some());
            drop(turn);
            // A right secret makes nobody wait.
            let turn = same.turn_to_guess().now_or_never().unwrap();
            let before = Instant::now();
            turn.note_wrong();
            let next = Arc::clone(&all.places().guessers[&one.peer.network()]);
            assert!(*next.try_lock().unwrap() >= before + GUESS_TIME);
        }
        for number in 0..2 * MOST_GUESSERS as u32 {
            let guest = of(&std::net::Ipv4Addr::from_bits(number).to_string());
            drop(guest.turn_to_guess().await);
        }
        assert!(all.places().guessers.len() <= MOST_GUESSERS);
    }
}
