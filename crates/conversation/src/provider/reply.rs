//! Answers in progress, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::attempts::FailedAttempt;
use super::chat::{AnswerStream, Stop, StreamEvent};
use super::error::{ErrorKind, ProviderError};
use super::family::{AnswerReader, Broken};
use super::http::Endpoint;
use super::lines::{TooLong, Unframer};
use super::network::Answered;
use super::pieces::Pieces;
use super::refusal::{RetryPolicy, ServerRefusal, in_a_line};
use super::secret::RequestSecrets;
use super::{Answer, MAX_ANSWER_BYTES, MAX_ANSWER_PIECES};

/// Maximum length of an answer in bytes. A stream has about two hundred bytes for each token.
const LONGEST_ANSWER: usize = 64 << 20;

/// Time to wait for the connection to end after a complete answer.
const FAREWELL: Duration = Duration::from_millis(50);

/// Name under which opaque data have the name of the server and model that sent them.
pub(super) const FROM: &str = "from";

/// Default of the maximum time for an answer to begin.
pub(super) const BEGIN_SECONDS: u64 = 600;
/// Default of the maximum time between two parts of an answer.
pub(super) const SILENCE_SECONDS: u64 = 120;

/// Time limits for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Maximum time for an answer to begin, over all attempts. A local server may have to load the
    /// model, and to read a long request on a slow processor.
    pub begin: Duration,
    /// Maximum time between two parts of an answer. A server that sends comments is alive.
    pub silence: Duration,
    /// Maximum time for the rest of an answer after the reason for its end, such as its usage.
    pub end: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            begin: Duration::from_secs(BEGIN_SECONDS),
            silence: Duration::from_secs(SILENCE_SECONDS),
            end: Duration::from_secs(2),
        }
    }
}

pub(super) struct HttpReply {
    endpoint: Arc<Endpoint>,
    /// Name of the server and model, which is kept with opaque data.
    origin: String,
    /// The connection; `None` once nothing more will be read, which closes it.
    response: Option<Answered>,
    /// Secrets that were sent, to be removed from the server's error messages.
    secrets: RequestSecrets,
    unframer: Unframer,
    reader: AnswerReader,
    pieces: Pieces,
    times: Times,
    /// Time at which the answer ends, once the reason for its end has come.
    ends: Option<Instant>,
    bytes: usize,
    /// Number of pieces in which the answer came so far.
    events: usize,
    /// Number of bytes of text, reasoning and calls so far; at most [`MAX_ANSWER_BYTES`].
    said: usize,
    failure: Option<ProviderError>,
    /// True once the answer is complete, even if the connection is still open.
    stopped: bool,
}

impl AnswerStream for HttpReply {
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>> {
        Box::pin(async move {
            loop {
                // Pieces that came before a failure are returned first.
                if self.response.is_none() {
                    self.pieces.end();
                }
                if let Some(piece) = self.pieces.take() {
                    return Ok(Some(piece));
                }
                if let Some(failure) = &self.failure {
                    return Err(failure.clone());
                }
                if self.response.is_none() {
                    return Ok(None);
                }
                if let Err(failed) = self.read(self.times.silence).await {
                    self.response = None;
                    self.failure = Some(failed.error);
                }
            }
        })
    }
}

impl HttpReply {
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        origin: String,
        response: Answered,
        secrets: RequestSecrets,
        reader: AnswerReader,
        times: Times,
    ) -> Self {
        Self {
            endpoint,
            origin,
            response: Some(response),
            pieces: Pieces::new(secrets.clone()),
            secrets,
            unframer: Unframer::default(),
            reader,
            times,
            ends: None,
            bytes: 0,
            events: 0,
            said: 0,
            failure: None,
            stopped: false,
        }
    }

    /// Waits until text, reasoning or a call has come, or the answer has ended.
    ///
    /// # Errors
    /// The failure, if the answer does not begin.
    pub(super) async fn begin(&mut self, until: Instant) -> Result<(), FailedAttempt> {
        while !self.reader.has_begun() && !self.stopped {
            let left = until.saturating_duration_since(Instant::now());
            // A server that has sent anything, such as a comment, is alive.
            let alive = if self.bytes > 0 { self.times.silence } else { Duration::ZERO };
            if let Err(failed) = self.read(left.max(alive)).await {
                if !self.reader.has_begun() {
                    return Err(failed);
                }
                // What came before is told first.
                (self.response, self.failure) = (None, Some(failed.error));
                return Ok(());
            }
        }
        let malformed = StreamEvent::Stopped(Stop::Malformed);
        if self.reader.has_begun() || !self.pieces.contains(&malformed) {
            return Ok(());
        }
        let what = "the model made a tool call that its server could not read";
        let error = self.endpoint.error(ErrorKind::Malformed, what);
        Err(FailedAttempt::from(error).with(RetryPolicy::Soon))
    }

    /// Reads a part of the answer, which must come within this time.
    async fn read(&mut self, within: Duration) -> Result<(), FailedAttempt> {
        let Some(response) = &mut self.response else { return Ok(()) };
        if self.stopped {
            // A connection that is read to its end can be reused.
            let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
            let _ = timeout(FAREWELL, rest).await;
            self.response = None;
            return Ok(());
        }
        let until = self.ends.unwrap_or_else(|| Instant::now() + within);
        let chunk = match timeout_at(until, response.chunk()).await {
            // After the reason for its end, an answer needs no proper end.
            Err(_) | Ok(Err(_)) if self.reader.has_said_why() => None,
            Err(_) if self.bytes == 0 => return Err(self.endpoint.late().into()),
            Err(_) => {
                let what = format!("nothing more came for {} s", within.as_secs_f64());
                return Err(self.endpoint.error(ErrorKind::Unavailable, what).into());
            }
            Ok(Err(error)) => {
                return Err(FailedAttempt::from(self.endpoint.broken(error)).with(self.again()));
            }
            Ok(Ok(chunk)) => chunk,
        };
        self.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len());
        if self.bytes > LONGEST_ANSWER {
            let what = format!("the answer has more than {LONGEST_ANSWER} bytes");
            return Err(self.endpoint.error(ErrorKind::Malformed, what).into());
        }
        self.decode(chunk.as_deref())
    }

    /// Returns whether to ask again after a connection that failed: only if nothing came.
    fn again(&self) -> RetryPolicy {
        if self.reader.has_begun() { RetryPolicy::Never } else { RetryPolicy::Soon }
    }

    /// Decodes a part of the answer, or its end.
    fn decode(&mut self, chunk: Option<&[u8]>) -> Result<(), FailedAttempt> {
        let mut pieces = Vec::new();
        let (reader, events) = (&mut self.reader, &mut self.events);
        let read = match chunk {
            Some(chunk) => self.unframer.push(chunk, &mut |text: &str| {
                *events += 1;
                match *events > MAX_ANSWER_PIECES {
                    false => reader.take(text, &mut pieces),
                    true => {
                        let what = format!("the answer has more than {MAX_ANSWER_PIECES} pieces");
                        Err(Broken::malformed(what))
                    }
                }
            }),
            None => self.unframer.end(&mut |text: &str| reader.take_last(text, &mut pieces)),
        };
        let is_cut = read.is_ok() && chunk.is_none() && !self.reader.closed(&mut pieces);
        for piece in &mut pieces {
            if let StreamEvent::Opaque(opaque) = piece {
                opaque[FROM] = (*self.origin).into();
            }
        }
        self.said += pieces.iter().map(StreamEvent::said).sum::<usize>();
        self.stopped = pieces.iter().any(|piece| matches!(piece, StreamEvent::Stopped(_)));
        if self.reader.has_said_why() && (self.ends.is_none() || !pieces.is_empty()) {
            self.ends = Some(Instant::now() + self.times.end);
        }
        if chunk.is_none() {
            self.response = None;
        }
        self.pieces.add(pieces);
        if let Err(Broken(refusal)) = read {
            let what = in_a_line(&refusal.said, &self.secrets);
            let failed = self.endpoint.failed(*refusal, what);
            return Err(if self.reader.has_begun() {
                failed.with(RetryPolicy::Never)
            } else {
                failed
            });
        }
        if is_cut {
            return Err(self.broken_off());
        }
        match self.said > MAX_ANSWER_BYTES {
            false => Ok(()),
            true => {
                let what = format!(
                    "the answer has more than {MAX_ANSWER_BYTES} bytes of text, reasoning and calls"
                );
                Err(self.endpoint.error(ErrorKind::Malformed, what).into())
            }
        }
    }

    /// Returns the error of an answer that ended without a reason.
    fn broken_off(&self) -> FailedAttempt {
        let stray = ServerRefusal::read(200, self.unframer.stray(), None, &self.secrets).said;
        let (kind, what) = match (self.bytes, stray.is_empty()) {
            (0, _) => (ErrorKind::Unavailable, "the answer is empty".to_owned()),
            (_, true) => (ErrorKind::Unavailable, "the answer broke off in the middle".to_owned()),
            (_, false) if self.reader.has_begun() => {
                (ErrorKind::Unavailable, format!("the answer broke off in the middle: {stray}"))
            }
            _ => (ErrorKind::Malformed, format!("the answer is not an event stream: {stray}")),
        };
        let again = if kind == ErrorKind::Unavailable { self.again() } else { RetryPolicy::Never };
        FailedAttempt::from(self.endpoint.error(kind, what)).with(again)
    }
}

impl From<TooLong> for Broken {
    fn from(too_long: TooLong) -> Self {
        Self::malformed(too_long.to_string())
    }
}
