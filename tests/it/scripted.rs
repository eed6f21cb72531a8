//! A server within this process whose agent does as it is told, so that what takes time, or asks,
//! can be tested without a model.

use std::sync::Arc;

use contexture_program::internals::context::change::ContextSettings;
use contexture_program::internals::engine::Engine;
use contexture_program::internals::rpc::{
    Answerer, Approval, Later, Limits, Listener, MethodCaller, ReplSettings, Tools, UserInput,
};
use contexture_program::internals::server::Server;
use contexture_program::internals::server::listen::serve_tcp;
use contexture_program::internals::store::sqlite::SqliteStore;
use contexture_program::internals::tokens::TokenizerName;
use contexture_program::internals::value::Value;
use contexture_program::internals::wire::message::WireError;

/// Streams, waits, asks, or counts what was said.
pub(crate) struct Scripted;

impl Answerer for Scripted {
    fn describe(&self) -> Value {
        Value::Map(vec![("model".into(), Value::from("scripted"))])
    }

    fn take_turn<'a>(
        &'a self,
        turn: UserInput,
        caller: &'a dyn MethodCaller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>> {
        Box::pin(async move {
            let params = vec![
                ("session".into(), Value::from(&*turn.session)),
                ("content".into(), Value::from(&*turn.text)),
            ];
            caller.call("process-turn", Value::Map(params)).await?;
            match &*turn.text {
                "stream" => {
                    for number in 0..300 {
                        listener.say(&format!("piece {number}\n"));
                        tokio::task::yield_now().await;
                    }
                }
                "big" => listener.say(&"λ".repeat(100_000)),
                "wait" => {
                    listener.say("waiting\n");
                    turn.cancelled.cancelled().await;
                }
                "ask" => {
                    let details = vec!["in /tmp".to_owned(), "it's \"irrevocable\"".to_owned()];
                    let request = Approval { title: "run rm -r x".to_owned(), details };
                    let decision = listener.allow(request).await;
                    listener.say(&format!("decided {decision:?}\n"));
                }
                "sure" => {
                    let confirmed = listener.confirm("Really?".to_owned()).await;
                    listener.say(&format!("confirmed {confirmed}\n"));
                }
                text => {
                    listener.say(&format!("you said {} characters\n", text.chars().count()));
                }
            }
            Ok(())
        })
    }
}

/// A server over memory with the scripted agent. Must be called within a runtime.
pub(crate) fn server() -> Server {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    let clock = Box::new(|| 1_700_000_000_000);
    let engine = Engine::new(store, clock, ContextSettings { max_items: 50 }).unwrap();
    let counter = TokenizerName::Estimate.counter();
    let limits = Limits { max_message_bytes: 64 << 20, max_file_bytes: 1 << 20, max_items: 50 };
    let repl = ReplSettings { answerer: Arc::new(Scripted), ..ReplSettings::default() };
    Server::start(engine, |engine| Tools { repl, ..Tools::new(engine, counter, limits) })
}

/// Serves over TCP, on a thread of its own, for as long as `client` runs with the port.
pub(crate) fn serving<T>(client: impl FnOnce(u16) -> T) -> T {
    let (port_known, port) = std::sync::mpsc::channel();
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            port_known.send(listener.local_addr().unwrap().port()).unwrap();
            tokio::select! {
                () = serve_tcp(listener, server(), None) => {}
                _ = end => {}
            }
        });
    });
    let outcome = client(port.recv().unwrap());
    drop(ended);
    serving.join().unwrap();
    outcome
}
