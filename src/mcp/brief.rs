//! Errors of the library that speaks the protocol: they repeat what an agent sent, however long it
//! is. Here they lose the middle of each long text.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header;
use axum::response::Response;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value as Json;

use super::answer::MAX_REASON_BYTES;
use crate::visible::shortened;

/// Maximum size of a refusal over HTTP in bytes, before it is shortened. A request is no longer.
const MOST_BYTES: usize = 16 << 20;

/// A transport that shortens the errors that it sends.
pub(super) struct Brief<T>(pub(super) T);

impl<T: Transport<RoleServer>> Transport<RoleServer> for Brief<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Error(error) = &mut item {
            shorten(&mut error.error);
        }
        self.0.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.0.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.close().await
    }
}

fn shorten(error: &mut ErrorData) {
    let message = shortened(&error.message, MAX_REASON_BYTES).into_owned();
    error.message = message.into();
    error.data.iter_mut().for_each(shorten_in);
}

/// Shortens each text in a value.
fn shorten_in(value: &mut Json) {
    match value {
        Json::String(text) if text.len() > MAX_REASON_BYTES => {
            *text = shortened(text, MAX_REASON_BYTES).into_owned();
        }
        Json::Array(all) => all.iter_mut().for_each(shorten_in),
        Json::Object(all) => all.values_mut().for_each(shorten_in),
        _ => {}
    }
}

/// Shortens the answer to a request over HTTP if it is a refusal.
pub(super) async fn refusal(response: Response) -> Response {
    if !response.status().is_client_error() {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(text) = to_bytes(body, MOST_BYTES).await else {
        return Response::from_parts(head, Body::empty());
    };
    if text.len() <= MAX_REASON_BYTES {
        return Response::from_parts(head, text.into());
    }
    let short = match serde_json::from_slice::<Json>(&text) {
        Ok(mut message) => {
            message.get_mut("error").into_iter().for_each(shorten_in);
            message.to_string()
        }
        Err(_) => shortened(&String::from_utf8_lossy(&text), MAX_REASON_BYTES).into_owned(),
    };
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Bytes::from(short).into())
}
