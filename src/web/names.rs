//! Names by which requests may reach the server, and origins of web pages that may ask.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use axum::http::Uri;

/// Origin of a web page: scheme, host and port, such as `https://example.org`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageOrigin {
    scheme: String,
    authority: String,
}

impl PageOrigin {
    fn new(scheme: &str, authority: &str) -> Self {
        Self { scheme: scheme.to_owned(), authority: authority.to_owned() }
    }

    /// Returns whether pages of the origin come over an encrypted connection.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }
}

impl fmt::Display for PageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

impl FromStr for PageOrigin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "must be an origin, such as https://example.org or http://localhost:3000, \
                             without a path and without *";
        let uri: Uri = text.to_ascii_lowercase().parse().map_err(|_| WRONG)?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) =
            (uri.scheme_str(), uri.authority())
        else {
            return Err(WRONG);
        };
        let is_plain = !authority.as_str().contains(['@', '*'])
            && uri.query().is_none()
            && matches!(uri.path(), "" | "/");
        // Browsers leave out the usual port.
        let usual = if scheme == "https" { ":443" } else { ":80" };
        let authority = authority.as_str();
        let authority = authority.strip_suffix(usual).unwrap_or(authority);
        if is_plain { Ok(Self::new(scheme, authority)) } else { Err(WRONG) }
    }
}

/// The names of a server, and the origins of pages that may embed what it shows.
#[derive(Debug, Clone)]
pub(crate) struct ServerNames {
    own: Vec<PageOrigin>,
    public: Option<PageOrigin>,
    embedders: Vec<PageOrigin>,
}

impl ServerNames {
    /// Creates the names of a server that listens on this address of the loopback interface.
    pub(crate) fn of(address: SocketAddr) -> Self {
        let own = ["127.0.0.1", "localhost"];
        let own = own.map(|host| PageOrigin::new("http", &format!("{host}:{}", address.port())));
        Self { own: own.to_vec(), public: None, embedders: Vec::new() }
    }

    /// Adds the origin under which a tunnel reaches the server, and the origins of pages that may
    /// embed what it shows.
    #[must_use]
    pub(crate) fn with(self, public: Option<PageOrigin>, embedders: Vec<PageOrigin>) -> Self {
        Self { public, embedders, ..self }
    }

    /// Returns whether a tunnel may reach the server.
    pub(super) fn is_public(&self) -> bool {
        self.public.is_some()
    }

    fn all(&self) -> impl Iterator<Item = &PageOrigin> {
        self.own.iter().chain(&self.public)
    }

    /// Returns the origin that people should use.
    pub(crate) fn preferred(&self) -> &PageOrigin {
        self.public.as_ref().unwrap_or(&self.own[0])
    }

    /// Returns the hosts by which requests may name the server.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = String> {
        self.all().map(|origin| origin.authority.clone())
    }

    /// Returns the origins of the server's own pages.
    pub(crate) fn origins(&self) -> impl Iterator<Item = String> {
        self.all().map(PageOrigin::to_string)
    }

    pub(super) fn is_host(&self, host: &str) -> bool {
        self.all().any(|origin| origin.authority.eq_ignore_ascii_case(host))
    }

    pub(super) fn is_own(&self, origin: &str) -> bool {
        self.all().any(|own| own.to_string() == origin)
    }

    pub(super) fn is_embedder(&self, origin: &str) -> bool {
        self.embedders.iter().any(|embedder| embedder.to_string() == origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        let read = |text: &str| text.parse::<PageOrigin>().map(|origin| origin.to_string()).ok();
        for (text, expected) in [
            ("https://Example.org", Some("https://example.org")),
            ("https://example.org:443/", Some("https://example.org")),
            ("http://localhost:3000", Some("http://localhost:3000")),
            ("*", None),
            ("https://*", None),
            ("null", None),
            ("example.org", None),
            ("ftp://example.org", None),
            ("https://example.org/path", None),
            ("https://example.org/?query", None),
            ("https://user@example.org", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }
}
