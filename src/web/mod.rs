//! HTTP on the loopback address, for agents and the dashboard: the listener, and the checks that each
//! request passes whatever it asks for. Knows nothing of what is served.

mod gate;
mod names;
mod visit;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use self::gate::{EmbeddingPage, refusal};
pub(crate) use self::names::{PageOrigin, ServerNames};
pub(crate) use self::visit::Visitor;

use self::visit::Entrance;
use crate::server::guests::Guests;

/// Serves `routes` to those who connect to `listener`, until `ending` is cancelled. A request must name
/// the server by one of `names`.
pub(crate) async fn serve(
    listener: TcpListener,
    guests: Guests,
    names: ServerNames,
    routes: Router,
    ending: CancellationToken,
) {
    let admits_others = names.is_public();
    let service = routes
        .layer(from_fn_with_state(std::sync::Arc::new(names), gate::check))
        .into_make_service_with_connect_info::<Visitor>();
    let serving = axum::serve(Entrance { listener, guests, admits_others }, service);
    // Serving ends only when `ending` is cancelled.
    let _ = serving.with_graceful_shutdown(ending.cancelled_owned()).await;
}

/// Returns the token of a request, which has the form `Authorization: Bearer TOKEN`, once. The case
/// of the scheme does not count.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = gate::only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' ').as_bytes())
}
