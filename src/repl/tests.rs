//! Tests of the REPLs without a connection: the answers that a client gets to its messages.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::rpc::{Approval, Later, Listener, Peer, UserInput};
use crate::wire::dialect::Dialect;
use crate::wire::message::{Incoming, Outgoing};

/// A client that records what it is told.
struct Notes(mpsc::UnboundedSender<String>);

impl Notes {
    fn note(&self, message: &Outgoing) {
        let mut out = Vec::new();
        crate::wire::dialect::Encoder::new(Dialect::Slynk).encode(message, &mut out);
        let _ = self.0.send(String::from_utf8(out).unwrap()[6..].to_owned());
    }
}

impl Editor for Notes {
    fn tell(&self, event: Value) {
        self.note(&Outgoing::Event(event));
    }

    fn answer(&self, id: i64, outcome: Result<Value, WireError>) {
        self.note(&Outgoing::Reply(Some(crate::wire::message::RequestId::Int(id)), outcome));
    }
}

/// A caller that opens sessions, and answers every other call with an echo.
#[derive(Default)]
struct EchoCaller {
    sessions: AtomicUsize,
}

impl MethodCaller for EchoCaller {
    fn call(&self, method: &str, params: Value) -> Later<'_, Result<Value, WireError>> {
        let answer = match method {
            "open-session" => {
                assert_eq!(params.get("current"), Some(&Value::Nil), "nobody else is moved");
                let name = match lisp::string_at(&params, "name") {
                    Some(known) => known.to_owned(),
                    None => format!("s-{}", self.sessions.fetch_add(1, Ordering::Relaxed) + 1),
                };
                let fields = ["session", "id", "manager"].map(|field| (field, text(&*name)));
                lisp::plist(fields)
            }
            method => lisp::plist([("method", text(method)), ("params", params)]),
        };
        Box::pin(async move { Ok(answer) })
    }

    fn stream(
        &self,
        method: &str,
        params: Value,
        _: Arc<dyn Peer>,
        _: CancellationToken,
    ) -> Later<'_, Result<Value, WireError>> {
        self.call(method, params)
    }
}

/// A model that repeats the typed text, waits, or asks for permission.
struct Parrot;

impl Answerer for Parrot {
    fn describe(&self) -> Value {
        Value::Nil
    }

    fn take_turn<'a>(
        &'a self,
        turn: UserInput,
        _: &'a dyn MethodCaller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>> {
        let cancelled = turn.cancelled.clone();
        let answering = async move {
            match &*turn.text {
                "wait" => std::future::pending().await,
                "long" => {
                    listener.say("one");
                    listener.shown().await;
                    listener.say("two");
                }
                "fail" => return Err(refusal("the model is out")),
                "ask" => {
                    let request = Approval { title: "rm".into(), details: vec!["-r".into()] };
                    let decision = listener.allow(request).await;
                    listener.say(&format!("{decision:?}"));
                }
                said => listener.say(&format!("{}: {said}", turn.session)),
            }
            Ok(())
        };
        Box::pin(async move { cancelled.run_until_cancelled(answering).await.unwrap_or(Ok(())) })
    }
}

struct ReplClient {
    repls: Repls,
    told: mpsc::UnboundedReceiver<String>,
}

impl ReplClient {
    fn new() -> Self {
        let (notes, told) = mpsc::unbounded_channel();
        let settings = ReplSettings { answerer: Arc::new(Parrot), ..ReplSettings::default() };
        let caller = Arc::new(EchoCaller::default());
        Self { repls: Repls::new(Arc::new(Notes(notes)), caller, settings), told }
    }

    /// Sends a message. Returns whether the connection continues.
    fn say(&mut self, message: &str) -> bool {
        self.say_in(message, None)
    }

    fn say_in(&mut self, message: &str, room: MessageRoom) -> bool {
        match Dialect::Slynk.decode(message.as_bytes()) {
            Incoming::Talk(talk) => self.repls.take(talk, room),
            other => panic!("{message}: {other:?}"),
        }
    }

    async fn expect<const N: usize>(&mut self, expected: [&str; N]) {
        for expected in expected {
            assert_eq!(self.told.recv().await.unwrap(), expected);
        }
    }
}

fn run(test: impl AsyncFnOnce(ReplClient)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { test(ReplClient::new()).await });
}

#[test]
fn what_the_mode_line_of_agent_q_asks_waits_for_nothing() {
    run(async |mut client| {
        client.say("(:emacs-rex (agent-q:agent-q-create-session :name \"q\") nil t 1)");
        client.expect(["(:return (:ok \"q\") 1)"]).await;
        client.say("(:emacs-rex (agent-q:agent-q-get-session-info) nil t 2)");
        // No task ran meanwhile.
        assert!(client.told.try_recv().unwrap().contains(":name \"q\""));
    });
}

#[test]
fn a_repl_of_sly_takes_turns() {
    run(async |mut client| {
        client.say("(:emacs-rex (slynk-mrepl:create-mrepl 7) nil t 4)");
        client
            .expect([
                "(:return (:ok (1 1)) 4)",
                "(:channel-send 7 (:prompt \"contexture\" \"contexture\" 0 0))",
            ])
            .await;
        client.say("(:emacs-channel-send 1 (:process \"it's (λ\"))");
        client.say("(:emacs-channel-send 1 (:process \"  \"))");
        client.say("(:emacs-channel-send 1 (:process \"fail\"))");
        client.say("(:emacs-channel-send 1 (:clear-repl-history))");
        client
            .expect([
                "(:channel-send 7 (:write-string \"s-1: it's (λ\"))",
                "(:channel-send 7 (:prompt \"contexture\" \"s-1\" 0 1))",
                "(:channel-send 7 (:prompt \"contexture\" \"s-1\" 0 2))",
                "(:channel-send 7 (:write-string \"; the model is out\\n\"))",
                "(:channel-send 7 (:prompt \"contexture\" \"s-1\" 0 3))",
                "(:channel-send 7 (:clear-repl-history))",
                "(:channel-send 7 (:prompt \"contexture\" \"s-1\" 0 3))",
            ])
            .await;
    });
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_next() {
    run(async |mut client| {
        client.say("(:emacs-rex (slynk-mrepl:create-mrepl 7) nil t 1)");
        client.say("(:emacs-rex (slynk-mrepl:create-mrepl 8) nil t 2)");
        for _ in 0..4 {
            client.told.recv().await.unwrap();
        }
        client.say("(:emacs-channel-send 1 (:process \"wait\"))");
        client.say("(:emacs-channel-send 1 (:process \"next\"))");
        client.say("(:emacs-channel-send 2 (:process \"other\"))");
        client
            .expect([
                "(:channel-send 8 (:write-string \"s-2: other\"))",
                "(:channel-send 8 (:prompt \"contexture\" \"s-2\" 0 1))",
            ])
            .await;
        client.say("(:emacs-interrupt 1)");
        client
            .expect([
                "(:channel-send 7 (:evaluation-aborted \"interrupt\"))",
                "(:channel-send 7 (:prompt \"contexture\" \"s-1\" 0 1))",
                "(:channel-send 7 (:write-string \"s-1: next\"))",
                "(:channel-send 7 (:prompt \"contexture\" \"s-1\" 0 2))",
            ])
            .await;
        // Nothing runs, and one REPL is gone.
        client.say("(:emacs-interrupt t)");
        client.say("(:emacs-channel-send 1 (:teardown))");
        client.say("(:emacs-channel-send 1 (:process \"lost\"))");
        client.say("(:emacs-rex (slynk:ping) nil t 9)");
        client.expect(["(:return (:ok :pong) 9)"]).await;
    });
}

#[test]
fn nothing_is_said_in_a_repl_that_is_gone() {
    run(async |mut client| {
        client.say("(:emacs-rex (slynk-mrepl:create-mrepl 7) nil t 1)");
        client.told.recv().await.unwrap();
        client.told.recv().await.unwrap();
        client.say("(:emacs-channel-send 1 (:process \"wait\"))");
        tokio::task::yield_now().await;
        client.say("(:emacs-channel-send 1 (:teardown))");
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        client.say("(:emacs-rex (slynk:ping) nil t 9)");
        client.expect(["(:return (:ok :pong) 9)"]).await;
    });
}

#[test]
fn a_repl_of_slime_answers_when_the_turn_is_over() {
    run(async |mut client| {
        client.say("(:emacs-rex (swank-repl:listener-eval \"x\\n\") \"X\" :repl-thread 1)");
        client
            .expect(["(:return (:abort \"there is no REPL yet: create one with create-repl\") 1)"])
            .await;
        client
            .say("(:emacs-rex (swank-repl:create-repl nil :coding-system \"utf-8-unix\") nil t 2)");
        client.say("(:emacs-rex (swank-repl:listener-eval \"a\\n\\n\") \"X\" :repl-thread 3)");
        client
            .expect([
                "(:return (:ok (\"contexture\" \"contexture\")) 2)",
                "(:write-string \"s-1: a\\n\")",
                "(:new-package \"contexture\" \"s-1\")",
                "(:return (:ok nil) 3)",
            ])
            .await;
        client.say("(:emacs-rex (swank-repl:listener-eval \"wait\\n\") \"X\" :repl-thread 4)");
        client.say("(:emacs-interrupt :repl-thread)");
        client.expect(["(:new-package \"contexture\" \"s-1\")"]).await;
        client.expect(["(:return (:abort \"interrupt\") 4)"]).await;
    });
}

#[test]
fn approvals_are_debuggers_and_an_interrupt_closes_them() {
    run(async |mut client| {
        client.say("(:emacs-rex (slynk-mrepl:create-mrepl 7) nil t 1)");
        client.say("(:emacs-channel-send 1 (:process \"ask\"))");
        client.told.recv().await.unwrap();
        client.told.recv().await.unwrap();
        let debugger = "(:debug 1 1 (\"rm\" \"[approval]\" nil) \
                        ((\"ALLOW\" \"Allow this action once.\") \
                        (\"ALWAYS\" \"Allow this action and all similar ones from now on.\") \
                        (\"*ABORT\" \"Refuse this action.\")) ((0 \"-r\") (1 \"Project: none\")) nil)";
        client.expect([debugger, "(:debug-activate 1 1)"]).await;
        client.say("(:emacs-rex (slynk:invoke-nth-restart-for-emacs 1 1) nil 1 2)");
        client
            .expect([
                "(:return (:abort \"answered\") 2)",
                "(:debug-return 1 1 nil)",
                "(:channel-send 7 (:write-string \"Always\"))",
                "(:channel-send 7 (:prompt \"contexture\" \"s-1\" 0 1))",
            ])
            .await;
        client.say("(:emacs-channel-send 1 (:process \"ask\"))");
        client.expect([debugger, "(:debug-activate 1 1)"]).await;
        client.say("(:emacs-rex (slynk:throw-to-toplevel) nil 1 3)");
        client
            .expect([
                "(:return (:abort \"answered\") 3)",
                "(:debug-return 1 1 nil)",
                "(:channel-send 7 (:write-string \"Refuse\"))",
            ])
            .await;
        client.told.recv().await.unwrap();
        client.say("(:emacs-channel-send 1 (:process \"ask\"))");
        client.expect([debugger, "(:debug-activate 1 1)"]).await;
        client.say("(:emacs-interrupt 1)");
        client
            .expect([
                "(:debug-return 1 1 nil)",
                "(:channel-send 7 (:evaluation-aborted \"interrupt\"))",
            ])
            .await;
        client.told.recv().await.unwrap();
        client.say("(:emacs-rex (slynk:invoke-nth-restart-for-emacs 1 0) nil 1 5)");
        client.expect(["(:return (:abort \"there is no open question\") 5)"]).await;
    });
}

#[test]
fn every_form_is_answered_at_once() {
    run(async |mut client| {
        for (form, answer) in [
            ("\"PONG\"", "(:ok \"PONG\")"),
            ("42", "(:ok 42)"),
            ("nil", "(:ok nil)"),
            ("foo", "(:abort "),
            ("(1 2)", "(:abort "),
            ("(slynk:frobnicate 1)", "(:abort \"this is the connection to Contexture"),
            ("(cl-user::launch)", "(:abort \"this is the connection to Contexture"),
            ("(cl:eval 1)", "(:abort \"this is the connection to Contexture"),
            ("(slynk-mrepl:create-mrepl nil)", "(:abort \"the channel of create-mrepl must"),
            (
                "(slynk:slynk-require '(\"slynk/mrepl\"))",
                "(:ok ((\"slynk/mrepl\") (\"slynk/mrepl\")))",
            ),
            (
                "(swank:swank-require '(swank-repl :swank-c-p-c))",
                "(:ok (\"SWANK-REPL\" \"SWANK-C-P-C\"))",
            ),
            ("(slynk:slynk-add-load-paths '(\"/x/\"))", "(:ok nil)"),
            ("(slynk:set-default-directory \"/x/\")", "(:ok \"/x/\")"),
            ("(slynk:set-default-directory \"y/\")", "(:ok \"/x/y/\")"),
            ("(slynk:set-default-directory \"/x/\")", "(:ok \"/x/\")"),
            ("(slynk:autodoc (quote nil) :print-right-margin 120)", "(:ok (:not-available t))"),
            (
                "(slynk-mrepl:eval-for-mrepl 1 'slynk:set-default-directory \
                 (slynk-backend:filename-to-pathname \"/y/\"))",
                "(:ok ((\"contexture\" \"contexture\" 0 0) (\"contexture\" \"/y/\")))",
            ),
            (
                "(slynk-mrepl:eval-for-mrepl 1 'slynk-mrepl:sync-package-and-default-directory \
                 :package-name \"x\" :directory \"/z/\")",
                "(:ok ((\"contexture\" \"contexture\" 0 0) (\"contexture\" \"/z/\")))",
            ),
            ("(swank:simple-completions \"/dr\" 'x)", "(:ok ((\"/drop\") \"/drop\"))"),
            ("(swank:interactive-eval \"(contexture:ping)\")", "(:ok \"(:method \\\"ping\\\""),
            ("(swank:interactive-eval \"(+ 1 2)\")", "(:abort "),
            ("(swank:interactive-eval \"(\")", "(:abort "),
            ("(agent-q:dance)", "(:abort \"Contexture has no function agent-q:dance"),
            ("(slynk:list-threads)", "(:ok ((:id :name :status)))"),
        ] {
            assert!(client.say(&format!("(:emacs-rex {form} nil t 3)")));
            let told = client.told.recv().await.unwrap();
            let expected = format!("(:return {answer}");
            assert!(told.starts_with(&expected) && told.ends_with(" 3)"), "{form}: {told}");
        }
        client.say("(:emacs-rex (swank:connection-info) nil t 1)");
        let info = client.told.recv().await.unwrap();
        assert!(info.contains(":version \"2.27\"") && info.contains(":style :spawn"), "{info}");
        assert!(!client.say("(:emacs-rex (slynk:quit-lisp) nil t 2)"));
    });
}

#[test]
fn a_new_question_of_agent_q_is_not_answered_with_the_old_answer() {
    run(async |mut client| {
        client.say("(:emacs-rex (agent-q:agent-q-send \"wait\") nil t 1)");
        client.say("(:emacs-rex (agent-q:agent-q-send \"new\") nil t 2)");
        client.expect(["(:return (:abort \"interrupt\") 1)"]).await;
        client.expect(["(:return (:ok \"s-1: new\") 2)"]).await;
        client.say("(:emacs-rex (agent-q:agent-q-send \"fail\") nil t 3)");
        client.expect(["(:return (:ok \"Error: the model is out\") 3)"]).await;
        client.say("(:emacs-rex (agent-q:agent-q-send \"wait\") nil t 4)");
        tokio::task::yield_now().await;
        client.say("(:emacs-rex (agent-q:cancel) nil t 5)");
        client.expect(["(:return (:ok t) 5)", "(:return (:abort \"interrupt\") 4)"]).await;
        client.say("(:emacs-rex (agent-q:agent-q-send \"wait\") nil t 6)");
        tokio::task::yield_now().await;
        client.say("(:emacs-interrupt t)");
        client.expect(["(:return (:abort \"interrupt\") 6)"]).await;
    });
}

#[test]
fn too_much_in_one_repl_is_refused() {
    run(async |mut client| {
        client.say("(:emacs-rex (slynk-mrepl:create-mrepl 7) nil t 1)");
        client.say("(:emacs-channel-send 1 (:process \"wait\"))");
        client.told.recv().await.unwrap();
        client.told.recv().await.unwrap();
        tokio::task::yield_now().await;
        for _ in 0..=WAITING_INPUTS {
            client.say("(:emacs-channel-send 1 (:process \"more\"))");
        }
        let told = client.told.recv().await.unwrap();
        assert!(told.contains("too many inputs are waiting"), "{told}");
        client.say("(:emacs-interrupt 1)");
        client.expect(["(:channel-send 7 (:evaluation-aborted \"interrupt\"))"]).await;
    });
}

#[test]
fn more_is_said_once_the_client_has_shown_what_was_said() {
    run(async |mut client| {
        client.say("(:emacs-rex (slynk-mrepl:create-mrepl 1) nil t 1)");
        client.say("(:emacs-channel-send 1 (:process \"long\"))");
        loop {
            let told = client.told.recv().await.unwrap();
            assert!(!told.contains("two"), "{told}");
            if told.starts_with("(:ping 1 ") {
                break;
            }
        }
        client.say("(:emacs-pong 1 1)");
        client.expect(["(:channel-send 1 (:write-string \"two\"))"]).await;
    });
}

#[test]
fn what_a_message_begins_keeps_its_room_until_its_end() {
    run(async |mut client| {
        let room = Arc::new(Semaphore::new(10));
        let taken = || room.clone().try_acquire_owned().ok();
        client.say_in("(:emacs-rex (slynk-mrepl:create-mrepl 7) nil t 1)", taken());
        client.say_in("(:emacs-channel-send 1 (:process \"wait\"))", taken());
        client.say_in("(:emacs-channel-send 1 (:process \"more\"))", taken());
        // An answer at once, and a REPL that is not there.
        client.say_in("(:emacs-rex (slynk:connection-info) nil t 2)", taken());
        client.say_in("(:emacs-channel-send 99 (:process \"lost\"))", taken());
        assert_eq!(room.available_permits(), 7);
        client.say("(:emacs-channel-send 1 (:teardown))");
        while room.available_permits() < 10 {
            tokio::task::yield_now().await;
        }
        client.say_in("(:emacs-rex (slynk:interactive-eval \"17\") nil t 3)", taken());
        assert_eq!(room.available_permits(), 9);
        while room.available_permits() < 10 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn the_name_of_the_directory_does_not_grow() {
    run(async |mut client| {
        for _ in 0..LONGEST_DIRECTORY {
            client.say("(:emacs-rex (slynk:set-default-directory \"deep\") nil t 1)");
        }
        assert!(client.repls.shared.directory().as_os_str().len() <= LONGEST_DIRECTORY);
        client.say("(:emacs-rex (slynk:set-default-directory \"/tmp\") nil t 2)");
        assert_eq!(client.repls.shared.directory().as_os_str(), "/tmp");
    });
}
