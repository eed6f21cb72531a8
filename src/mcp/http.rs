//! Serves many agents over HTTP. Each request must carry the token, and none may come from a web
//! page.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::tools::context::Given;
use super::{Bridge, Dial, Projects};
use crate::server::auth::SecretHash;

/// Path at which agents are served.
pub(crate) const PATH: &str = "/mcp";

/// Returns the service for agents on an address of this machine. `dial` returns the way to the
/// server, and is called for each bridge. Cancelling `ending` ends the service for all agents.
pub(crate) fn router<D: Dial>(
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
    let service =
        StreamableHttpService::new(bridge, Arc::new(LocalSessionManager::default()), config);
    Router::new()
        .route_service(PATH, service)
        .layer(from_fn_with_state(Arc::new(token), with_token))
}

/// Refuses a request without the token.
async fn with_token(
    State(token): State<Arc<SecretHash>>,
    request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    match given.is_some_and(|given| token.is(given)) {
        true => next.run(request).await,
        false => {
            let advice = "send the header Authorization: Bearer TOKEN; the chapter \"With agents\" \
                          of the manual says where the token is\n";
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], advice)
                .into_response()
        }
    }
}
