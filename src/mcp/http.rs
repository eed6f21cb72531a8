//! Serves many agents over HTTP. Each request must carry the token.

use std::sync::Arc;

use axum::Router;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::tools::context::GivenAnswers;
use super::{AgentProjects, Bridge, Dial, brief};
use crate::server::auth::SecretHash;
use crate::web::{ServerNames, Visitor, bearer};

/// Path at which agents are served.
pub(crate) const PATH: &str = "/mcp";

/// Maximum number of sessions of agents. Beyond it, agents can begin none until others end.
const MOST_SESSIONS: usize = 256;
/// Header that names the session of a request.
const SESSION: &str = "mcp-session-id";

/// Returns the routes for agents, until `ending` is cancelled. `dial` returns the way to the server,
/// and is called for each bridge.
pub(crate) fn routes<D: Dial>(
    dial: impl Fn() -> D + Send + Sync + 'static,
    names: &ServerNames,
    token: SecretHash,
    ending: CancellationToken,
) -> Router {
    let given = Arc::new(GivenAnswers::default());
    let bridge = move || Ok(Bridge::sharing(dial(), AgentProjects::default(), Arc::clone(&given)));
    // Every request has passed these checks before; without the names, the crate has names of its own.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(names.origins())
        .with_allowed_hosts(names.hosts())
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
    if !bearer(headers).is_some_and(|given| token.is(given)) {
        let advice = "send the header Authorization: Bearer TOKEN; the chapter \"With agents\" \
                      of the manual says where the token is\n";
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], advice)
            .into_response();
    }
    visitor.note_known();
    let begins = !headers.contains_key(SESSION);
    if begins && sessions.sessions.read().await.len() >= MOST_SESSIONS {
        let advice = format!(
            "{MOST_SESSIONS} sessions are open, the maximum; end some agents, or wait five minutes \
             until unused sessions end\n"
        );
        return (StatusCode::SERVICE_UNAVAILABLE, advice).into_response();
    }
    brief::refusal(next.run(request).await).await
}
