//! Serves many agents over HTTP. Each request must carry the token, and none may come from a web
//! page. Until a connection has sent a request with the token, it is a guest with little time.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::{IncomingStream, Listener};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use super::tools::context::Given;
use super::{Bridge, Dial, Projects};
use crate::server::auth::SecretHash;
use crate::server::guests::{Guest, Guests, Peer, warn_of};
use crate::server::listen::pause_after;

/// Path at which agents are served.
pub(crate) const PATH: &str = "/mcp";

/// Time in which a connection must send its first request with the token.
const FIRST_REQUEST_TIME: Duration = Duration::from_secs(10);
/// Time after which a connection ends on which nothing was sent in either direction. While an answer is
/// made, or an agent listens, something is sent every few seconds.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// Maximum number of sessions of agents. Beyond it, agents can begin none until others end.
const MOST_SESSIONS: usize = 256;
/// Header that names the session of a request.
const SESSION: &str = "mcp-session-id";
/// Header that only the first request of a session leaves out.
const VERSION: &str = "mcp-protocol-version";

/// Serves agents that connect to `listener` until `ending` is cancelled. `dial` returns the way to
/// the server, and is called for each bridge.
pub(crate) async fn serve<D: Dial>(
    listener: TcpListener,
    guests: Guests,
    dial: impl Fn() -> D + Send + Sync + 'static,
    token: SecretHash,
    ending: CancellationToken,
) {
    let Ok(address) = listener.local_addr() else { return };
    let service = router(dial, address, token, ending.clone());
    let service = service.into_make_service_with_connect_info::<Visitor>();
    let serving = axum::serve(Entrance { listener, guests }, service);
    // Serving ends only when `ending` is cancelled.
    let _ = serving.with_graceful_shutdown(ending.cancelled_owned()).await;
}

/// Returns the service for agents on an address of this machine.
fn router<D: Dial>(
    dial: impl Fn() -> D + Send + Sync + 'static,
    address: SocketAddr,
    token: SecretHash,
    ending: CancellationToken,
) -> Router {
    let given = Arc::new(Given::default());
    let bridge = move || Ok(Bridge::sharing(dial(), Projects::default(), Arc::clone(&given)));
    // A web page can reach this address under the name of its own host, but its requests then name
    // that host. Besides, requests from web pages name their origin.
    let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", address.port()));
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(hosts.iter().map(|host| format!("http://{host}")))
        .with_allowed_hosts(hosts)
        .with_cancellation_token(ending);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(bridge, Arc::clone(&sessions), config);
    Router::new()
        .route_service(PATH, service)
        .layer(from_fn_with_state((Arc::new(token), sessions), with_token))
}

/// Refuses a request without the token, and a new session when there are too many.
async fn with_token(
    State((token, sessions)): State<(Arc<SecretHash>, Arc<LocalSessionManager>)>,
    ConnectInfo(visitor): ConnectInfo<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let given = headers.get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if !given.is_some_and(|given| token.is(given)) {
        let advice = "send the header Authorization: Bearer TOKEN; the chapter \"With agents\" \
                      of the manual says where the token is\n";
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], advice)
            .into_response();
    }
    visitor.0.note_known();
    let begins = !headers.contains_key(SESSION) && !headers.contains_key(VERSION);
    if begins && sessions.sessions.read().await.len() >= MOST_SESSIONS {
        let advice = format!(
            "{MOST_SESSIONS} sessions are open, the maximum; end some agents, or wait five minutes \
             until unused sessions end\n"
        );
        return (StatusCode::SERVICE_UNAVAILABLE, advice).into_response();
    }
    next.run(request).await
}

/// Accepts connections, except those of other users.
struct Entrance {
    listener: TcpListener,
    guests: Guests,
}

impl Listener for Entrance {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        loop {
            let (stream, peer) = match self.listener.accept().await {
                Ok(arrived) => arrived,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            };
            let Ok(local) = stream.local_addr() else { continue };
            match Peer::of(peer, local) {
                Peer::User(user) => {
                    warn_of("refused an agent of another user, with the id ", user);
                }
                who => match self.guests.admit(who) {
                    Some(guest) => return (Visit::new(stream, guest), peer),
                    None => warn_of("refused an agent: too many connections are open", ""),
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The place of a connection, which each of its requests carries.
#[derive(Clone)]
struct Visitor(Arc<Guest>);

impl Connected<IncomingStream<'_, Entrance>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Entrance>) -> Self {
        Self(Arc::clone(&stream.io().guest))
    }
}

/// A connection that fails once it has been a guest for too long, another one gets its place, or it is idle
/// for too long.
struct Visit<S = TcpStream> {
    stream: S,
    guest: Arc<Guest>,
    /// Resolves when the connection must end; `None` once it has.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Resolves when nothing was sent for [`IDLE_TIME`].
    idle: Pin<Box<Sleep>>,
}

impl<S> Visit<S> {
    fn new(stream: S, guest: Guest) -> Self {
        let guest = Arc::new(guest);
        let waiting = Arc::clone(&guest);
        let end = async move {
            let sent_away = tokio::time::timeout(FIRST_REQUEST_TIME, waiting.sent_away());
            if sent_away.await.is_err() && !waiting.is_guest() {
                std::future::pending().await
            }
        };
        let idle = Box::pin(tokio::time::sleep(IDLE_TIME));
        Self { stream, guest, end: Some(Box::pin(end)), idle }
    }

    /// Fails if the connection must end. Otherwise, the task is woken once it must.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let is_over = self.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready());
        if is_over || self.idle.as_mut().poll(context).is_ready() {
            self.end = None;
        }
        match self.end {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Begins the idle time anew if something was sent.
    fn note_sent(&mut self, was_sent: bool) {
        if was_sent {
            self.idle.as_mut().reset(Instant::now() + IDLE_TIME);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Visit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note_sent(buffer.filled().len() > before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Visit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_sent(matches!(written, Poll::Ready(Ok(1..))));
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_known_connection_ends_once_nothing_was_sent_for_long() {
        let (here, mut there) = duplex(64);
        let mut visit = Visit::new(here, Guests::default().admit(Peer::Own).unwrap());
        visit.guest.note_known();
        let begun = visit.idle.deadline();
        there.write_u8(1).await.unwrap();
        visit.read_u8().await.unwrap();
        let after_reading = visit.idle.deadline();
        visit.write_u8(1).await.unwrap();
        let after_writing = visit.idle.deadline();
        assert!(begun < after_reading && after_reading < after_writing);
        // A flush sends nothing.
        visit.flush().await.unwrap();
        assert_eq!(visit.idle.deadline(), after_writing);
        visit.idle.as_mut().reset(Instant::now());
        assert!(visit.read_u8().await.is_err() && visit.write_u8(1).await.is_err());
    }
}
