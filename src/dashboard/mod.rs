//! The dashboard in a browser: one page, its stylesheet, and elements that other pages may embed. They
//! call the methods of the protocol, those in the lists below only.

mod events;
mod methods;
mod pass;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub(crate) use self::pass::Pass;

use self::pass::Right;
use crate::mcp::{Dial, OpenConnection};
use crate::web::{EmbeddingPage, Visitor, refusal};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The parts of the script, which are served as one: the order is that in which they are read.
const PARTS: [&str; 7] = [
    include_str!("page/base.js"),
    include_str!("page/rows.js"),
    include_str!("page/status.js"),
    include_str!("page/sessions.js"),
    include_str!("page/window.js"),
    include_str!("page/session.js"),
    include_str!("page/page.js"),
];

/// Path of the script, which pages that embed elements load with their token in the query.
const SCRIPT: &str = "/page.js";
/// Maximum size of a call in bytes.
const MAX_CALL_BYTES: usize = 256 << 10;
/// Time in which a call must have arrived.
const CALL_TIME: Duration = Duration::from_secs(10);
/// Time that a call may take on the server.
const ANSWER_TIME: Duration = Duration::from_secs(120);
/// Maximum number of streams of events. A browser has one for each visible page.
const MOST_STREAMS: usize = 32;

/// What the routes share.
struct Shared {
    dial: Box<dyn Dial>,
    pass: Arc<Pass>,
    streams: Arc<Semaphore>,
    /// Number of events so far, over all streams.
    events: AtomicU64,
    style: String,
    script: String,
    /// Hash of the page, which tells an open page that there is a new one.
    version: String,
    ending: CancellationToken,
}

/// Returns the routes of the dashboard, until `ending` is cancelled. `dial` is the way to the server.
pub(crate) fn routes(dial: impl Dial, pass: Arc<Pass>, ending: CancellationToken) -> Router {
    let [style, script] = [bare_style(), bare_script()];
    let version = blake3::hash(format!("{PAGE}{style}{script}").as_bytes()).to_hex();
    let shared = Arc::new(Shared {
        dial: Box::new(dial),
        pass,
        streams: Arc::new(Semaphore::new(MOST_STREAMS)),
        events: AtomicU64::new(0),
        style,
        script,
        version: version[..16].to_owned(),
        ending,
    });
    Router::new()
        .route("/", get(|| file("text/html; charset=utf-8", PAGE.to_owned())))
        .route("/page.css", get(serve_style))
        .route(SCRIPT, get(serve_script))
        .route("/call", post(call))
        .route("/events", get(events::stream))
        .layer(from_fn_with_state(Arc::clone(&shared), with_right))
        .with_state(shared)
}

/// Returns a text without its comments on lines of their own, its indentation, and the ends of lines
/// after which more must follow; `short` shortens each line. No browser needs them.
fn bare(text: &str, short: impl Fn(&str) -> String) -> String {
    let lines = text.lines().map(str::trim_start);
    let said = lines.filter(|line| !line.starts_with("//") && !line.starts_with("/*"));
    let goes_on = |line: &str| line.ends_with([',', ';', '{', '(', '[']) && !line.contains("//");
    said.map(|line| short(line) + if goes_on(line) { "" } else { "\n" }).collect()
}

/// Returns a text without the spaces around some of its marks.
fn without_spaces(text: &str, marks: &[&str]) -> String {
    marks.iter().fold(text.to_owned(), |text, mark| text.replace(mark, mark.trim()))
}

/// Returns the stylesheet without what no browser needs.
fn bare_style() -> String {
    bare(STYLE, |line| without_spaces(line, &[": ", "; ", ", ", "{ ", " {", " }"]))
}

/// Returns the script without what no browser needs. Code beside other texts than those in single
/// quotes, and one template on a line, keeps its spaces.
fn bare_script() -> String {
    let marks: Vec<String> =
        "=,:?{}()<>*|&!;".chars().flat_map(|it| [format!(" {it}"), format!("{it} ")]).collect();
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    let short = |code: &str| {
        if code.contains(['"', '/', '\\']) {
            return code.to_owned();
        }
        let pieces = code.split('\'').enumerate().map(|(at, piece)| match at % 2 {
            0 => without_spaces(piece, &marks),
            _ => piece.to_owned(),
        });
        pieces.collect::<Vec<_>>().join("'")
    };
    bare(&PARTS.concat(), |line| match line.split('`').collect::<Vec<_>>()[..] {
        [code] => short(code),
        [before, template, after] => format!("{}`{template}`{}", short(before), short(after)),
        _ => line.to_owned(),
    })
}

async fn file(kind: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn serve_style(State(shared): State<Arc<Shared>>) -> Response {
    file("text/css; charset=utf-8", shared.style.clone()).await
}

/// Serves the script; to other pages with the stylesheet, for the insides of the elements.
async fn serve_script(
    State(shared): State<Arc<Shared>>,
    embedder: Option<Extension<EmbeddingPage>>,
) -> Response {
    let style = match embedder {
        Some(_) => format!("globalThis.STYLE = {};\n", Json::from(&*shared.style)),
        None => String::new(),
    };
    file("text/javascript; charset=utf-8", style + &shared.script).await
}

/// Refuses a request without a proof of who asks.
async fn with_right(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(visitor): ConnectInfo<Visitor>,
    mut request: Request,
    next: Next,
) -> Response {
    let embedder = request.extensions().get::<EmbeddingPage>();
    let known = shared.pass.right(request.headers(), request.uri(), embedder);
    let is_page = request.uri().path() == "/" && embedder.is_none();
    let cookie = is_page.then(|| shared.pass.redeem(request.uri())).flatten();
    let Some(right) = known.or(cookie.as_ref().map(|_| Right::Change)) else {
        let advice = "this address was used before, or the dashboard was started anew; \
                      `contexture dashboard` prints a new address";
        return refusal(StatusCode::UNAUTHORIZED, advice).into_response();
    };
    visitor.note_known();
    request.extensions_mut().insert(right);
    let mut response = next.run(request).await;
    cookie.map(|cookie| response.headers_mut().insert(header::SET_COOKIE, cookie));
    response
}

/// A call of a method, as the page sends it.
#[derive(Deserialize)]
struct PageCall {
    method: String,
    #[serde(default)]
    params: Map<String, Json>,
}

/// Calls a method of the server, and returns its reply as it is.
async fn call(
    State(shared): State<Arc<Shared>>,
    Extension(right): Extension<Right>,
    request: Request,
) -> Response {
    match answer(&shared, right, request).await {
        Ok(reply) => {
            ([(header::CONTENT_TYPE, "application/json")], Body::from(reply)).into_response()
        }
        Err(refused) => refused.into_response(),
    }
}

async fn answer(
    shared: &Shared,
    right: Right,
    request: Request,
) -> Result<String, (StatusCode, String)> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/json") {
        let advice = "send the call with the header Content-Type: application/json";
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, advice));
    }
    let body = to_bytes(request.into_body(), MAX_CALL_BYTES);
    let body = tokio::time::timeout(CALL_TIME, body)
        .await
        .map_err(|_| refusal(StatusCode::REQUEST_TIMEOUT, "the call did not arrive in time"))?
        .map_err(|_| refusal(StatusCode::PAYLOAD_TOO_LARGE, "the call is too long"))?;
    let PageCall { method, params } = serde_json::from_slice(&body).map_err(|_| {
        refusal(StatusCode::BAD_REQUEST, "send {\"method\": NAME, \"params\": {…}} as JSON")
    })?;
    if !methods::may(right, &method) {
        let advice = match right {
            Right::Read => "the token of an embedded element only reads",
            Right::Change => "the dashboard has no use for this method; other clients may call it",
        };
        return Err(refusal(StatusCode::FORBIDDEN, advice));
    }
    let lost = |why: String| refusal(StatusCode::BAD_GATEWAY, &why);
    let mut open = OpenConnection::over(shared.dial.dial().await.map_err(lost)?);
    let replied = tokio::time::timeout(ANSWER_TIME, open.answer(&method, &params.into())).await;
    let replied = replied.map_err(|_| lost("the server did not answer in time".to_owned()))?;
    replied.ok_or_else(|| lost("the server ended before it answered".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of the page with its stylesheet and its script, in bytes: 60 KiB.
    const MAX_PAGE_BYTES: usize = 60 << 10;

    #[test]
    fn the_page_is_small_and_puts_no_text_in_as_html() {
        let size = PAGE.len() + bare_style().len() + bare_script().len();
        assert!(size <= MAX_PAGE_BYTES, "the page has {size} bytes");
        let ways = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("];
        for part in PARTS {
            for way in ways {
                assert!(!part.contains(way), "{way} takes text for HTML");
            }
            for line in part.lines() {
                let marks = line.matches('`').count();
                assert!(marks % 2 == 0, "a text must end on its line, for `bare_script`: {line}");
            }
        }
    }
}
