//! Who may use the dashboard: whoever opened an address with a one-time token, whose browser then has a
//! cookie; and pages that embed its elements, which have a token to read with.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, Uri, header};

use crate::server::auth::{SecretHash, random_secret};
use crate::web::{EmbeddingPage, PageOrigin, bearer};

/// Time in which an address with a one-time token must be opened.
const TICKET_TIME: Duration = Duration::from_secs(600);
/// Maximum number of one-time tokens that wait to be used. Beyond it, the oldest is forgotten.
const MOST_TICKETS: usize = 16;

/// Rights of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// Read only.
    Read,
    /// Read, and change what the dashboard has actions for.
    Change,
}

/// The proofs that the dashboard accepts.
pub(crate) struct Pass {
    /// Name and value of the cookie, as browsers send them.
    cookie: String,
    attributes: &'static str,
    tickets: Mutex<VecDeque<(SecretHash, Instant)>>,
    reader: Option<SecretHash>,
}

impl Pass {
    /// Makes a new cookie for the dashboard at `origin`. `reader` is the token for pages that embed
    /// its elements, if there are any.
    ///
    /// # Errors
    /// Fails if the operating system has no random bytes.
    pub(crate) fn new(origin: &PageOrigin, reader: Option<SecretHash>) -> std::io::Result<Self> {
        let attributes = match origin.is_encrypted() {
            true => "; Path=/; HttpOnly; SameSite=Strict; Secure",
            false => "; Path=/; HttpOnly; SameSite=Strict",
        };
        // A browser sends the cookies of one port to all ports, so each dashboard has its own name.
        let name = blake3::hash(origin.to_string().as_bytes()).to_hex();
        let cookie = format!("contexture-{}={}", &name[..8], random_secret()?);
        Ok(Self { cookie, attributes, tickets: Mutex::default(), reader })
    }

    /// Makes a one-time token.
    ///
    /// # Errors
    /// Fails if the operating system has no random bytes.
    pub(crate) fn ticket(&self) -> std::io::Result<String> {
        let ticket = random_secret()?;
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.push_back((SecretHash::new(&ticket), Instant::now() + TICKET_TIME));
        if tickets.len() > MOST_TICKETS {
            tickets.pop_front();
        }
        Ok(ticket)
    }

    /// Uses up the one-time token of an address. Returns the cookie to set if the token is valid.
    pub(super) fn redeem(&self, uri: &Uri) -> Option<HeaderValue> {
        let ticket = token_of(uri)?.as_bytes();
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let place = tickets.iter().position(|(hash, _)| hash.is(ticket))?;
        let (_, end) = tickets.remove(place)?;
        if end < Instant::now() {
            return None;
        }
        HeaderValue::try_from(format!("{}{}", self.cookie, self.attributes)).ok()
    }

    /// Returns the rights of a request. A page that embeds elements has its token only, and only from
    /// its own origin; the cookie counts only for the dashboard's own pages.
    pub(super) fn right(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        embedder: Option<&EmbeddingPage>,
    ) -> Option<Right> {
        if embedder.is_some() {
            let is_reader = |given: &[u8]| self.reader.as_ref().is_some_and(|hash| hash.is(given));
            let in_address = token_of(uri).filter(|_| uri.path() == super::SCRIPT);
            let given = bearer(headers).or_else(|| in_address.map(str::as_bytes));
            return given.is_some_and(is_reader).then_some(Right::Read);
        }
        let own = SecretHash::new(&self.cookie);
        let sent = headers.get_all(header::COOKIE).iter();
        let mut sent = sent.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
        sent.any(|cookie| own.is(cookie.trim_ascii())).then_some(Right::Change)
    }
}

/// Returns the token in the query of an address.
fn token_of(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|part| part.strip_prefix("token="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(ticket: &str) -> Uri {
        format!("/?token={ticket}").parse().unwrap()
    }

    #[test]
    fn a_ticket_is_used_once_and_gives_the_cookie() {
        let pass = Pass::new(&"http://127.0.0.1:1".parse().unwrap(), None).unwrap();
        let ticket = pass.ticket().unwrap();
        assert!(pass.redeem(&uri("x")).is_none());
        let cookie = pass.redeem(&uri(&ticket)).unwrap();
        assert!(pass.redeem(&uri(&ticket)).is_none());
        let text = cookie.to_str().unwrap();
        assert!(text.ends_with("; HttpOnly; SameSite=Strict"), "{text}");
        let mut headers = HeaderMap::new();
        let right = |headers: &HeaderMap| pass.right(headers, &uri("x"), None);
        headers.insert(header::COOKIE, HeaderValue::from_static("contexture-1=x; other=y"));
        assert_eq!(right(&headers), None);
        let sent = format!("other=y; {}", text.split(';').next().unwrap());
        headers.insert(header::COOKIE, sent.parse().unwrap());
        assert_eq!(right(&headers), Some(Right::Change));
    }

    #[test]
    fn few_tickets_wait_and_none_for_long() {
        let pass = Pass::new(&"https://example.org".parse().unwrap(), None).unwrap();
        let first = pass.ticket().unwrap();
        let others: Vec<_> = (0..MOST_TICKETS).map(|_| pass.ticket().unwrap()).collect();
        assert!(pass.redeem(&uri(&first)).is_none());
        assert!(pass.redeem(&uri(&others[0])).unwrap().to_str().unwrap().ends_with("; Secure"));
        pass.tickets.lock().unwrap().iter_mut().for_each(|(_, end)| *end = Instant::now());
        assert!(pass.redeem(&uri(&others[1])).is_none());
    }
}
