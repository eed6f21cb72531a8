//! The checks that each request passes before anybody looks at what it asks for: its path, the name of
//! the server, and the page that it comes from.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::names::ServerNames;

/// Time in seconds for which a browser may remember that a page may ask.
const REMEMBERED: &str = "600";
/// Destinations of requests that show the answer inside of another page.
const FRAMES: [&str; 5] = ["iframe", "frame", "embed", "object", "fencedframe"];
/// Headers of every answer: it is kept nowhere, taken for nothing else, framed by nobody, and loads and
/// runs only what the server itself has.
const ON_ALL: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
];

/// Origin of a foreign page that a request comes from, and that may embed what the server shows.
#[derive(Debug, Clone)]
pub(crate) struct EmbeddingPage(HeaderValue);

/// Lets a request pass, or answers it with the reason why not.
pub(super) async fn check(
    State(names): State<Arc<ServerNames>>,
    mut request: Request,
    next: Next,
) -> Response {
    let passed = passes(&names, &request);
    let embedder = passed.as_ref().ok().cloned().flatten();
    let mut response = match passed {
        Err(refused) => refused.into_response(),
        Ok(Some(_)) if request.method() == Method::OPTIONS => {
            StatusCode::NO_CONTENT.into_response()
        }
        Ok(embedder) => {
            embedder.map(|embedder| request.extensions_mut().insert(embedder));
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    for (name, value) in ON_ALL {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(EmbeddingPage(origin)) = embedder {
        allow(headers, origin);
    } else {
        let own = HeaderValue::from_static("same-origin");
        headers.insert(HeaderName::from_static("cross-origin-resource-policy"), own);
    }
    response
}

/// Tells the browser that a page of `origin` may read the answer. Cookies are never sent along.
fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        ("vary", "Origin"),
        ("access-control-allow-headers", "authorization, content-type"),
        ("access-control-max-age", REMEMBERED),
        // A page on the Internet may ask a server on this machine only if the server says so.
        ("access-control-allow-private-network", "true"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// A refused request: the status, and what to do.
type RefusedRequest = (StatusCode, String);

/// Returns a refusal with an advice, which ends with a line end.
pub(crate) fn refusal(status: StatusCode, advice: &str) -> RefusedRequest {
    (status, format!("{advice}\n"))
}

/// Returns the foreign page that may ask, if the request comes from one.
fn passes(names: &ServerNames, request: &Request) -> Result<Option<EmbeddingPage>, RefusedRequest> {
    let (uri, headers) = (request.uri(), request.headers());
    if uri.authority().is_some() || !is_normal(uri.path()) {
        let advice = "write the path alone, without //, /., backslashes and percent signs";
        return Err(refusal(StatusCode::BAD_REQUEST, advice));
    }
    if !only(headers, &header::HOST).is_some_and(|host| names.is_host(host)) {
        let advice = "this server has another name: name 127.0.0.1 and its port as the host; if a \
                      tunnel, a container or another system leads to a dashboard, start that with \
                      --public-url and the address in your browser";
        return Err(refusal(StatusCode::FORBIDDEN, advice));
    }
    let said = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if said("sec-fetch-dest").is_some_and(|kind| FRAMES.contains(&kind)) {
        let advice = "this page is not shown inside of others; use the elements of docs/embed.html";
        return Err(refusal(StatusCode::FORBIDDEN, advice));
    }
    let foreign = "this page may not ask; name its origin with --embed-origin";
    match headers.get(header::ORIGIN) {
        Some(origin) => match only(headers, &header::ORIGIN).unwrap_or_default() {
            text if names.is_own(text) => Ok(None),
            text if names.is_embedder(text) => Ok(Some(EmbeddingPage(origin.clone()))),
            _ => Err(refusal(StatusCode::FORBIDDEN, foreign)),
        },
        // Some requests of pages do not name their origin; the browser says whose page it is.
        None => match said("sec-fetch-site") {
            None | Some("same-origin" | "none") => Ok(None),
            // A link may lead here. A form of another page may send nothing.
            Some(_)
                if said("sec-fetch-mode") == Some("navigate")
                    && request.method() == Method::GET =>
            {
                Ok(None)
            }
            Some(_) => Err(refusal(StatusCode::FORBIDDEN, foreign)),
        },
    }
}

/// Returns the text of a header that a request has exactly once.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok())?
}

/// Returns whether a path has one reading only: nothing in it is decoded, joined or left out by others.
fn is_normal(path: &str) -> bool {
    path.starts_with('/') && !["//", "/.", "%", "\\"].iter().any(|part| path.contains(part))
}
