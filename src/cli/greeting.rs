//! The greeting of a server that already runs: whether it answers, and its version.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use serde_json::{Value as Json, json};

use crate::store::ownership::Owner;
use crate::system::state_of;
use crate::visible::{visible, visible_path};

/// Maximum time within which a running server must answer.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Reason why a server did not answer the greeting.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// Nobody listens on the socket, or the server ended.
    #[error("{0}")]
    Unreachable(io::Error),
    /// The server took the connection, or lets it wait, but says nothing.
    #[error("{0}")]
    Mute(String),
}

/// Greets the server that listens on a socket, and returns its version if it says one. Waits at most
/// [`ANSWERS_WITHIN`].
pub(super) fn greet(owner: &Owner, path: &Path) -> Result<Option<String>, Unanswered> {
    match spoken(path) {
        Ok(version) => Ok(version),
        Err(error) if is_silence(&error) => Err(Unanswered::Mute(mute(owner, path))),
        Err(error) => Err(Unanswered::Unreachable(error)),
    }
}

/// Greets the server, and returns a warning if it is another version than this program.
pub(super) fn checked(owner: &Owner, path: &Path) -> Result<Option<String>, Unanswered> {
    Ok(greet(owner, path)?.and_then(|version| other_version(owner, &version)))
}

/// Says that the server is another version than this program; `None` if it is the same version.
pub(super) fn other_version(owner: &Owner, version: &str) -> Option<String> {
    let (own, version) = (env!("CARGO_PKG_VERSION"), visible(version));
    (version != own).then(|| {
        format!(
            "the server{} is version {version}, and this program is version {own}; end the server \
             with `contexture call shutdown`, so that the next one is of this version",
            of_process(owner)
        )
    })
}

/// Returns the process of a server in brackets, if it is known.
pub(super) fn of_process(owner: &Owner) -> String {
    match owner.pid {
        0 => String::new(),
        pid => format!(" (process {pid})"),
    }
}

fn mute(owner: &Owner, path: &Path) -> String {
    let (pid, process, path) = (owner.pid, of_process(owner), visible_path(path));
    match pid {
        // With the id 0, `kill` would end the caller's own processes.
        0 => format!(
            "the server does not answer on {path} within {} s; end it",
            ANSWERS_WITHIN.as_secs()
        ),
        _ if matches!(state_of(pid), Some('T' | 't')) => format!(
            "the server{process} is stopped, so it does not answer on {path}; resume it with \
             `kill -CONT {pid}`"
        ),
        _ => format!(
            "the server{process} does not answer on {path} within {} s; end it with `kill {pid}`, \
             or with `kill -KILL {pid}` if it stays",
            ANSWERS_WITHIN.as_secs()
        ),
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Sends a ping and a question for the version. The ping is answered even while the server works on
/// other calls, so the version may be missing.
fn spoken(path: &Path) -> io::Result<Option<String>> {
    let end = Instant::now() + ANSWERS_WITHIN;
    let stream = connected(path)?;
    stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
    let call = |id: u8, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    let calls = format!("{}\n{}\n", call(1, "ping"), call(2, "initialize"));
    (&stream).write_all(calls.as_bytes())?;
    let mut lines = BufReader::new(&stream);
    reply(&stream, &mut lines, 1, end)?;
    let info = reply(&stream, &mut lines, 2, end).unwrap_or_default();
    Ok(info["result"]["version"].as_str().map(str::to_owned))
}

/// Connects to a socket without waiting. A server that accepts no connections lets them wait until
/// there is no more room, and then the connection would block.
fn connected(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::from(socket(AddressFamily::UNIX, SocketType::STREAM, None)?);
    rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::CLOEXEC)?;
    stream.set_nonblocking(true)?;
    connect(&stream, &SocketAddrUnix::new(path)?)?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn reply(
    stream: &UnixStream,
    lines: &mut BufReader<&UnixStream>,
    id: u8,
    end: Instant,
) -> io::Result<Json> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let told: Json = serde_json::from_str(&line).map_err(io::Error::other)?;
        if told["id"] == id {
            return Ok(told);
        }
    }
}

/// Returns the owner of a socket that was named on the command line: its process is not known.
pub(super) fn unknown(socket: &Path) -> Owner {
    Owner { pid: 0, socket: Some(PathBuf::from(socket)) }
}
