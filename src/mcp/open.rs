//! An open connection to the server, over which both sides send JSON.

use std::time::Duration;

use futures_util::FutureExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines, ReadHalf, WriteHalf,
};

use super::answer::Trouble;

/// Maximum time within which a server must answer that it is there.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Both directions of a connection to the server.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection, over which one call is made at a time.
pub(crate) struct OpenConnection {
    lines: Lines<BufReader<ReadHalf<Box<dyn Stream>>>>,
    writer: WriteHalf<Box<dyn Stream>>,
    /// Id of the last call.
    pub(super) last: u64,
    /// True once the server has been told about the agent.
    pub(super) is_introduced: bool,
}

/// A message from the server: a reply, or a notification, which has no id.
#[derive(Deserialize)]
struct ServerMessage {
    id: Option<Json>,
}

/// A reply from the server.
#[derive(Deserialize)]
pub(super) struct ServerReply {
    #[serde(default)]
    result: Json,
    pub(super) error: Option<CallRefusal>,
}

/// The reason why the server refused a call.
#[derive(Deserialize)]
pub(super) struct CallRefusal {
    message: String,
    #[serde(default)]
    data: Json,
}

impl ServerReply {
    /// Decodes the result. Fails if the server refused the call, or the result has an unexpected
    /// form.
    pub(super) fn result<T: DeserializeOwned>(self) -> Result<T, Trouble> {
        match self.error {
            Some(refusal) => Err(Trouble::Refused(refusal.message)),
            None => serde_json::from_value(self.result).map_err(Trouble::Odd),
        }
    }
}

impl CallRefusal {
    /// Returns whether the server refused the call because the server is shutting down.
    pub(super) fn is_of_the_ending(&self) -> bool {
        self.data["kind"] == "shutting-down"
    }
}

impl OpenConnection {
    pub(crate) fn over(stream: Box<dyn Stream>) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self { lines: BufReader::new(reader).lines(), writer, last: 0, is_introduced: false }
    }

    /// Returns the connection, unless the server has closed the connection since the last call.
    pub(super) fn if_alive(mut self) -> Option<Self> {
        let has_ended = matches!(self.lines.next_line().now_or_never(), Some(Ok(None) | Err(_)));
        (!has_ended).then_some(self)
    }

    /// Waits for a notification, and returns its parameters; `None` if the connection ends, or the
    /// notification is not valid.
    pub(super) async fn notification(&mut self) -> Option<Json> {
        let told: Json = serde_json::from_str(&self.line().await?).ok()?;
        Some(told["params"].clone())
    }

    /// Waits for the next message, and returns its text; `None` if the connection ends.
    pub(crate) async fn line(&mut self) -> Option<String> {
        self.lines.next_line().await.ok()?
    }

    /// Sends a call and waits for the reply. Returns `None` if the connection ends before the
    /// reply, or the reply is not valid.
    pub(super) async fn ask(&mut self, method: &str, params: &Json) -> Option<ServerReply> {
        serde_json::from_str(&self.answer(method, params).await?).ok()
    }

    /// Sends a call like [`ask`](Self::ask), and returns the text of the reply.
    pub(crate) async fn answer(&mut self, method: &str, params: &Json) -> Option<String> {
        self.last += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.writer.write_all(format!("{request}\n").as_bytes()).await.ok()?;
        self.writer.flush().await.ok()?;
        loop {
            let line = self.line().await?;
            let ServerMessage { id } = serde_json::from_str(&line).ok()?;
            if id.as_ref().and_then(Json::as_u64) == Some(self.last) {
                return Some(line);
            }
        }
    }
}
