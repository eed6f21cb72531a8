//! Recognizes HTTP and TLS by their first bytes, so that no web browser is taken for a client.

use super::dialect::Dialect;

/// Minimum length of a header's name, such as `Host`.
const SHORTEST_HEADER: usize = 4;

/// Returns whether bytes at the expected beginning of a message are HTTP or TLS. When more bytes of
/// the same line arrive, the result may change to true, but not back to false.
pub(super) fn is_foreign(bytes: &[u8]) -> bool {
    !Dialect::may_begin_line(bytes) && (is_tls(bytes) || is_http(first_line(bytes)))
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    bytes[..end].trim_ascii()
}

/// Returns whether bytes are a record of a TLS handshake, or the greeting of SSLv2 with which old
/// clients offer TLS.
pub(super) fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 3, ..] | [0x80..=0xff, _, 1, 0 | 3, ..])
}

/// Returns whether a line is the first line of an HTTP request or answer, or a header.
fn is_http(line: &[u8]) -> bool {
    let end = line.iter().position(|byte| !is_token(*byte)).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    match rest.first() {
        _ if word.is_empty() => false,
        Some(b':') => is_header(word),
        Some(b'/') => word == b"HTTP",
        Some(b' ' | b'\t') => is_target(rest.trim_ascii_start()) || word == b"CONNECT",
        _ => false,
    }
}

/// Returns whether a word before a colon is the name of a header. Words shorter than
/// [`SHORTEST_HEADER`] do not count: they may be a damaged message, and every request of a browser
/// has a header whose name is long enough.
fn is_header(word: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    word.len() >= SHORTEST_HEADER && word[0].is_ascii_alphabetic() && word.iter().all(is_letter)
}

/// Returns whether the text after a method of HTTP is a target: a path, a whole address, `*`, or
/// anything followed by a version.
fn is_target(rest: &[u8]) -> bool {
    let has = |part: &&[u8]| memchr::memmem::find(rest, part).is_some();
    matches!(rest, [b'/' | b'*', ..]) || [&b"://"[..], b"HTTP/"].iter().any(has)
}

/// Returns whether HTTP allows the character in names of methods and headers.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_recognized_by_its_lines() {
        for line in [
            "GET / HTTP/1.1",
            "POST /x?y HTTP/1.0\r\nHost: h\r\n",
            "PRI * HTTP/2.0",
            "OPTIONS *",
            "BREW pot-1 HTTP/1.1",
            "CONNECT h:80",
            "GET http://h/",
            " GET / HTTP/1.1",
            "GET /a/very/long/path/without/an/end",
            "HTTP/1.1 200 OK",
            "Host: evil.test",
            "host:h",
            "Sec-Fetch-Mode: no-cors",
        ] {
            assert!(is_foreign(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn tls_is_recognized_by_its_first_bytes() {
        assert!(is_foreign(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"));
        assert!(is_foreign(b"\x80\x2e\x01\x03\x01\x00\x15"));
        assert!(is_foreign(b"\x80\x2e\x01\x00\x02\x00\x15"));
        assert!(!is_foreign(b"\x16"));
    }

    #[test]
    fn messages_and_plain_nonsense_are_neither() {
        for line in [
            "",
            "(:id 1 :method ping)\nGET / HTTP/1.1",
            "  (:id 1 :method add-context :params (:content \"GET / HTTP/1.1\"))",
            "{\"id\": 1, \"method\": \"ping\"}",
            "; Host: a comment",
            "garbage",
            "help me",
            "ping nil",
            "8:id 1 :method ping",
            "id: 1",
            "1234: x",
            "a&b'c: x",
            ": x",
            "été 16:03",
            "000018(:emacs-rex (swank:x) nil t 1)",
        ] {
            assert!(!is_foreign(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn lines_begin_with_a_bracket() {
        for line in ["", " ", "(", "{", " \t(:id", "\u{feff}("] {
            assert!(Dialect::may_begin_line(line.as_bytes()), "{line:?}");
        }
        for line in ["\n(", ";", "GET", "\r\n", "0", "\u{feff}GET"] {
            assert!(!Dialect::may_begin_line(line.as_bytes()), "{line:?}");
        }
    }
}
