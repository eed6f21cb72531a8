//! Admission state of a connection: what the client must still prove, and what the client may do
//! afterwards. Knows nothing of dialects.

use std::time::Duration;

use super::auth::{Admission, SecretHash};
use super::guests::{GuessTurn, Guest};
use crate::rpc::Access;
use crate::wire::frame::LONGEST_FIRST_LINE;

/// Time in which a client must show a secret that is required.
const ADMISSION_TIME: Duration = Duration::from_secs(10);
/// Time in which a TCP client must send its first complete message. It is long, because somebody
/// may be typing the message.
const FIRST_MESSAGE_TIME: Duration = Duration::from_secs(600);
/// Maximum size in bytes of the first message of a TCP client.
const LONGEST_FIRST_MESSAGE: usize = 1 << 20;

/// Admission state of one connection.
pub(super) struct Door {
    admission: Admission,
    /// Secret that a client who needs no proof may send first.
    known: Option<SecretHash>,
    access: Access,
    is_new: bool,
    is_wary: bool,
    guest: Option<Guest>,
}

/// Kind of an incoming line or payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Message,
    /// The secret, or a wrong secret that was not asked for. Neither gets an answer.
    Secret,
    /// An unwanted client, which must be disconnected.
    Stranger,
}

impl Door {
    /// `secret` is the secret that a client who needs no proof may send first; the server then
    /// ignores it.
    pub(super) fn new(admission: Admission, secret: Option<SecretHash>) -> Self {
        let is_local = matches!(admission, Admission::Granted);
        let access = if is_local { Access::Local } else { Access::Tcp };
        let known = secret.filter(|_| is_local);
        Self { admission, known, access, is_new: true, is_wary: !is_local, guest: None }
    }

    /// Sets the place of the connection, which it may lose until its first valid message.
    pub(super) fn with_guest(self, guest: Option<Guest>) -> Self {
        Self { guest, ..self }
    }

    /// Resolves when the connection must end because another one gets its place.
    pub(super) async fn sent_away(&self) {
        match &self.guest {
            Some(guest) => guest.sent_away().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the next line or payload may be looked at; only a required secret has to wait.
    pub(super) async fn turn(&self) -> Option<GuessTurn> {
        match &self.guest {
            Some(guest) if self.is_pending() => Some(guest.turn_to_guess().await),
            _ => None,
        }
    }

    /// Returns the client's rights.
    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// Returns whether the client still has to show a secret.
    pub(super) fn is_pending(&self) -> bool {
        self.admission.is_pending()
    }

    /// Returns whether the connection must end silently if anything but a complete valid message
    /// comes in.
    pub(super) fn is_wary(&self) -> bool {
        self.is_wary
    }

    /// Returns the time, from the beginning of the connection, in which the client must send the
    /// secret if one is awaited, or else its first message; `None` if there is no limit.
    pub(super) fn patience(&self) -> Option<Duration> {
        match (self.is_pending(), self.is_wary) {
            (true, _) => Some(ADMISSION_TIME),
            (false, true) => Some(FIRST_MESSAGE_TIME),
            (false, false) => None,
        }
    }

    /// Returns the maximum size of the next message in bytes; `most` is that of a known client's.
    pub(super) fn longest(&self, most: usize) -> usize {
        match (self.is_pending(), self.is_wary) {
            (true, _) => most.min(LONGEST_FIRST_LINE),
            (false, true) => most.min(LONGEST_FIRST_MESSAGE),
            (false, false) => most,
        }
    }

    /// Returns whether no line or payload has come in yet.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the secret that may or must come first, if there is one.
    pub(super) fn secret(&self) -> Option<SecretHash> {
        self.admission.secret().or_else(|| self.known.clone())
    }

    /// Records that this connection comes from a relay, for a client that reached the relay over
    /// TCP.
    pub(super) fn note_relayed(&mut self) {
        (self.access, self.is_wary) = (Access::Tcp, true);
    }

    /// Records that a complete valid message has come in.
    pub(super) fn note_message(&mut self) {
        self.is_wary = false;
        if let Some(guest) = &self.guest {
            guest.note_known();
        }
    }

    /// Classifies the next line or payload. A secret that was not asked for is ignored: SLY and
    /// SLIME send the secret that the user's home folder has for them as their first payload, and
    /// other clients may send the right one.
    pub(super) fn enter(&mut self, said: &[u8], framed: bool) -> EntryKind {
        let is_first = std::mem::replace(&mut self.is_new, false);
        let was_known = self.known.take().is_some_and(|known| known.is(said));
        match self.admission.admit(said) {
            None => EntryKind::Stranger,
            Some(false) => {
                self.access = Access::TcpWithSecret;
                EntryKind::Secret
            }
            Some(true) if is_first && was_known => EntryKind::Secret,
            Some(true) if is_first && framed && !said.trim_ascii_start().starts_with(b"(") => {
                EntryKind::Secret
            }
            Some(true) => EntryKind::Message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(admission: Admission, said: &[&str], entry: EntryKind, access: Access) {
        let mut door = Door::new(admission, None);
        let entries: Vec<_> = said.iter().map(|said| door.enter(said.as_bytes(), true)).collect();
        assert_eq!(entries.last(), Some(&entry), "{said:?}");
        assert_eq!(door.access(), access, "{said:?}");
    }

    #[test]
    fn who_showed_the_secret_has_shown_it_and_nobody_else() {
        let offered = || Admission::Offered(Some(SecretHash::new("s3cret")));
        let demanded = || Admission::Demanded(SecretHash::new("s3cret"));
        check(offered(), &["s3cret"], EntryKind::Secret, Access::TcpWithSecret);
        check(demanded(), &["s3cret"], EntryKind::Secret, Access::TcpWithSecret);
        check(demanded(), &["wrong"], EntryKind::Stranger, Access::Tcp);
        check(offered(), &["wrong"], EntryKind::Secret, Access::Tcp);
        check(offered(), &["wrong", "s3cret"], EntryKind::Message, Access::Tcp);
        check(offered(), &["(call 1 ping nil)"], EntryKind::Message, Access::Tcp);
        check(offered(), &["(call 1 ping nil)", "s3cret"], EntryKind::Message, Access::Tcp);
        check(Admission::Offered(None), &["s3cret"], EntryKind::Secret, Access::Tcp);
        check(Admission::Refused, &["s3cret"], EntryKind::Stranger, Access::Tcp);
        check(Admission::Granted, &["s3cret"], EntryKind::Secret, Access::Local);
    }

    #[test]
    fn a_local_client_may_send_the_secret_first_and_gains_nothing() {
        let door = || Door::new(Admission::Granted, Some(SecretHash::new("s3cret")));
        let mut right = door();
        assert!(right.secret().is_some_and(|secret| secret.is(b"s3cret")));
        assert_eq!(right.enter(b"s3cret", false), EntryKind::Secret);
        assert_eq!(right.enter(b"s3cret", false), EntryKind::Message);
        assert_eq!(right.access(), Access::Local);
        assert_eq!(door().enter(b"help", false), EntryKind::Message);
        let offered = Door::new(Admission::Offered(None), Some(SecretHash::new("x")));
        assert!(offered.secret().is_none());
    }

    #[test]
    fn a_silent_client_is_kept_as_long_as_it_may_take() {
        let mut door = Door::new(Admission::Demanded(SecretHash::new("s3cret")), None);
        assert_eq!(door.patience(), Some(ADMISSION_TIME));
        door.enter(b"s3cret", false);
        assert_eq!(door.patience(), Some(FIRST_MESSAGE_TIME));
        door.note_message();
        assert_eq!(door.patience(), None);
        assert_eq!(Door::new(Admission::Offered(None), None).patience(), Some(FIRST_MESSAGE_TIME));
        assert_eq!(Door::new(Admission::Granted, None).patience(), None);
    }

    #[test]
    fn a_message_is_as_long_as_its_sender_is_known() {
        let mut door = Door::new(Admission::Demanded(SecretHash::new("s3cret")), None);
        assert_eq!(door.longest(9 << 20), LONGEST_FIRST_LINE);
        door.enter(b"s3cret", false);
        assert_eq!(door.longest(9 << 20), LONGEST_FIRST_MESSAGE);
        assert_eq!(door.longest(9), 9);
        door.note_message();
        assert_eq!(door.longest(9 << 20), 9 << 20);
    }

    #[test]
    fn a_relayed_client_is_no_longer_local() {
        let mut door = Door::new(Admission::Granted, None);
        assert_eq!((door.access(), door.is_wary()), (Access::Local, false));
        door.note_relayed();
        assert_eq!((door.access(), door.is_wary()), (Access::Tcp, true));
        assert_eq!(door.enter(b"s3cret", true), EntryKind::Secret);
        assert_eq!(door.enter(b"(call 1 ping nil)", true), EntryKind::Message);
        door.note_message();
        assert_eq!((door.access(), door.is_wary()), (Access::Tcp, false));
    }
}
