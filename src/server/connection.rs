//! One client's connection: reads messages, queues their calls in order, and sends the answers.
//!
//! Reading goes on while calls run and answers are written, so that a `cancel` overtakes them. It
//! pauses only while too many calls of the client wait, or their messages are too large in total.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::auth::Admission;
use super::dispatch::{Inside, dispatch};
use super::door::Door;
use super::guests::{Guest, warn_of};
use super::outbox::OutboxWriter;
use super::reader::{ClientReader, permits, read};
use super::running::RunningCalls;
use crate::rpc;
use crate::rpc::limits::WAITING_CALLS;
use crate::value::Value;
use crate::wire::frame::StreamDecoder;
use crate::wire::guard::GuardedDecoder;

/// Serves one client until the client leaves or reads too slowly, or the server ends.
pub(super) async fn serve(
    server: Server,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    (admission, guest): (Admission, Option<Guest>),
    hung_up: impl Future<Output = ()> + Send,
) {
    let limit = server.tools().limits.max_message_bytes;
    let (writer, outbox) = OutboxWriter::new(writer, limit, &server.unread);
    if matches!(admission, Admission::Refused) {
        warn_of(
            "refused a client from another user or machine; set up a secret to admit such clients \
            over TCP",
            "",
        );
        return;
    }
    // Not a child of the server's token: calls accepted before the shutdown still run.
    let gone = CancellationToken::new();
    let (calls, waiting) = mpsc::channel(WAITING_CALLS);
    let running = RunningCalls::default();
    let dispatching =
        dispatch(server.clone(), outbox.clone(), running.clone(), gone.clone(), waiting);
    let mut dispatcher = tokio::spawn(dispatching);
    let room = Arc::new(Semaphore::new(permits(limit)));
    let door = Door::new(admission, server.secret.clone()).with_guest(guest);
    let (decoder, access) = (decoder(&door, limit), door.access());
    let (engine, caller) = (server.tools().engine.clone(), calls.downgrade());
    let reading = read(
        ClientReader {
            server,
            outbox,
            calls,
            door,
            dialect: None,
            running,
            room,
            repls: None,
            gone: gone.clone(),
        },
        FramedRead::new(reader, decoder),
    );
    let mut reading = tokio::spawn(reading);
    let leaving = async {
        hung_up.await;
        // Calls that the client sent still run, but work that they are waiting for is dropped.
        let _ = (&mut reading).await;
        match caller.upgrade() {
            Some(calls) => {
                // Waits until every earlier call of the client has begun.
                let caller = Inside { calls, access, gone: gone.clone() };
                let _ = rpc::MethodCaller::call(&caller, "ping", Value::Nil).await;
            }
            None => drop((&mut dispatcher).await),
        }
        let _ = engine.ask(|_| Ok(())).await;
        gone.cancel();
    };
    let writing = writer.run();
    tokio::pin!(writing);
    let written = tokio::select! {
        written = &mut writing => written,
        () = leaving => writing.await,
    };
    if let Err(error) = written {
        tracing::debug!("a connection ended: {error}");
        gone.cancel();
        dispatcher.abort();
        reading.abort();
    }
}

/// Builds a decoder that is as strict as the client's admission requires.
fn decoder(door: &Door, limit: usize) -> GuardedDecoder {
    let mut messages = StreamDecoder::new(door.longest(limit));
    let secret = door.secret();
    let may_be_secret = secret.is_some();
    if let Some(secret) = secret {
        // A secret may look like a header.
        messages = messages.with_first_line(Box::new(move |line| secret.is(line)));
    }
    let decoder = GuardedDecoder::new(messages);
    if door.is_wary() { decoder.guarded(may_be_secret) } else { decoder }
}
