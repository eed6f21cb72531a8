//! Forms that SLY and SLIME send for evaluation. Known forms get answers, so that these clients can
//! connect and work; every other form is refused at once.

use std::sync::Arc;

use super::lisp::{items, keyword, list, no_lisp, number, plist, refusal, text, texts};
use super::{
    LONGEST_DIRECTORY, MessageRoom, PACKAGE, ReplShared, Repls, agent_q, complete, describe, locked,
};
use crate::value::Value;
use crate::value::sexp;
use crate::wire::dialect::{call_of, form_of};
use crate::wire::message::{LispForm, WireError};

type FormOutcome = Result<Value, WireError>;

/// SLY modules that the server reports as loaded, so that SLY does not ask for them.
const SLY_MODULES: [&str; 7] = [
    "slynk/indentation",
    "slynk/stickers",
    "slynk/trace-dialog",
    "slynk/package-fu",
    "slynk/fancy-inspector",
    "slynk/mrepl",
    "slynk/arglists",
];

/// Functions that do nothing here, so that their answer is always `nil`.
const NOTHING: [&str; 16] = [
    "slynk-add-load-paths",
    "swank-add-load-paths",
    "buffer-first-change",
    "update-indentation-information",
    "init-presentations",
    "clear-repl-results",
    "clear-repl-variables",
    "fuzzy-completion-selected",
    "completions-for-keyword",
    "completions-for-character",
    "find-definitions-for-emacs",
    "backtrace",
    "globally-redirect-io-to-default-connection",
    "dispatch-stepper",
    "quit-thread-browser",
    "quit-inspector",
];

impl Repls {
    /// Evaluates a form. Returns false if the form ends the connection.
    pub(super) fn evaluate(
        &mut self,
        id: i64,
        form: LispForm,
        thread: &Value,
        room: MessageRoom,
    ) -> bool {
        let outcome = match form {
            LispForm::Datum(datum) => constant(datum),
            LispForm::Call { package, name, arguments } => match &*package {
                editor if editor.starts_with("slynk") || editor.starts_with("swank") => {
                    let slime = editor.starts_with("swank");
                    return self.editor_form(id, (&name, slime), arguments, thread, room);
                }
                "agent-q" if &*name == "agent-q-get-session-info" => {
                    Ok(agent_q::info(&self.shared))
                }
                "agent-q" => {
                    self.later(id, room, move |shared| async move {
                        let outcome = agent_q::call(&shared, &name, arguments).await;
                        shared.place.row(&shared).await;
                        outcome
                    });
                    return true;
                }
                "cl" | "common-lisp" | "" => agent_q::common_lisp(&name, arguments),
                _ => Err(no_lisp(&format!("{package}:{name}"))),
            },
        };
        self.shared.editor.answer(id, outcome);
        true
    }

    fn editor_form(
        &mut self,
        id: i64,
        (name, slime): (&str, bool),
        arguments: Vec<Value>,
        thread: &Value,
        room: MessageRoom,
    ) -> bool {
        let given = arguments.first().and_then(Value::as_text).unwrap_or_default().to_owned();
        match name {
            "quit-lisp" => return false,
            "create-mrepl" if let Some(Value::Int(channel)) = arguments.first() => {
                self.create_mrepl(id, *channel, room);
            }
            "create-repl" => self.create_repl(id, room),
            "listener-eval" => self.listener_eval(id, &given, room),
            "simple-completions" | "completions" | "flex-completions" | "fuzzy-completions" => {
                let name = name.to_owned();
                self.later(id, room, move |shared| async move {
                    Ok(complete::answer(&shared, &name, &given).await)
                });
            }
            "interactive-eval"
            | "interactive-eval-region"
            | "pprint-eval"
            | "eval-and-grab-output" => {
                let grab = name == "eval-and-grab-output";
                self.later(
                    id,
                    room,
                    move |shared| async move { typed(&shared, &given, grab).await },
                );
            }
            _ => {
                let outcome = self.answer(slime, name, arguments, thread);
                self.shared.editor.answer(id, outcome);
            }
        }
        true
    }

    /// Answers a form that can be answered without waiting.
    fn answer(
        &self,
        slime: bool,
        name: &str,
        arguments: Vec<Value>,
        thread: &Value,
    ) -> FormOutcome {
        let mut arguments = arguments.into_iter();
        let first = arguments.next().unwrap_or_default();
        let second = arguments.next().unwrap_or_default();
        Ok(match name {
            "connection-info" => self.connection_info(slime),
            "slynk-require" => list([first.clone(), first]),
            // SLIME ignores letter case when it compares the names of modules.
            "swank-require" => {
                texts(items(first).iter().filter_map(Value::as_text).map(str::to_uppercase))
            }
            "autodoc" => describe::autodoc(&first),
            "operator-arglist" => describe::arglist(&first),
            "describe-symbol"
            | "describe-function"
            | "describe-definition-for-emacs"
            | "documentation-symbol" => describe::description(&first)?,
            "apropos-list-for-emacs" => describe::apropos(&first, slime),
            "list-threads" => self.threads(),
            "list-all-package-names" => texts([PACKAGE]),
            "set-package" => list([text(PACKAGE), text(PACKAGE)]),
            "default-directory" => self.directory(),
            "set-default-directory" => {
                self.set_directory(first.as_text().unwrap_or("/"));
                self.directory()
            }
            "eval-for-mrepl" => self.for_mrepl(&first, &second, &arguments.collect::<Vec<_>>()),
            "ping" => keyword("pong"),
            "frame-locals-and-catch-tags" => list([Value::Nil, Value::Nil]),
            "invoke-nth-restart-for-emacs" => return Err(self.restart(thread, &second)),
            "sly-db-continue" | "sldb-continue" => return Err(self.restart(thread, &Value::Int(0))),
            "sly-db-abort" | "sldb-abort" | "throw-to-toplevel" => {
                return Err(self.restart(thread, &Value::Nil));
            }
            "create-mrepl" => {
                return Err(refusal("the channel of create-mrepl must be a number"));
            }
            name if NOTHING.contains(&name) => Value::Nil,
            name => return Err(no_lisp(name)),
        })
    }

    /// Changes the directory, unless its name is too long. A relative one is in the current one.
    fn set_directory(&self, given: &str) {
        let mut directory = self.shared.directory();
        let is_of_home = given.starts_with('~');
        let next = if is_of_home { given.into() } else { directory.join(given) };
        if next.as_os_str().len() <= LONGEST_DIRECTORY {
            *directory = next;
        }
    }

    /// Answers a function call that SLY's REPL (mREPL) sends: returns what its prompt shows, the
    /// package and the directory. Only functions that set the directory have an effect here.
    fn for_mrepl(&self, channel: &Value, function: &Value, arguments: &[Value]) -> Value {
        let given = match function.as_text().unwrap_or_default() {
            name if name.ends_with("sync-package-and-default-directory") => {
                let at = arguments.iter().position(|it| *it == keyword("directory"));
                at.and_then(|at| arguments.get(at + 1)).and_then(Value::as_text)
            }
            // The argument is a form that turns the name into a pathname.
            name if name.ends_with("set-default-directory") => match arguments.first() {
                Some(Value::List(form)) => form.last().and_then(Value::as_text),
                given => given.and_then(Value::as_text),
            },
            _ => None,
        };
        if let Some(directory) = given {
            self.set_directory(directory);
        }
        let repl = if let Value::Int(channel) = channel { self.repls.get(channel) } else { None };
        let name = repl.map_or_else(|| PACKAGE.to_owned(), |repl| repl.place().shown_name());
        let prompt = [text(PACKAGE), text(name), Value::Int(0), Value::Int(0)];
        list([list(prompt), list([text(PACKAGE), self.directory()])])
    }

    /// Evaluates a form in a task of its own, which answers when the evaluation is done.
    fn later<F>(&self, id: i64, room: MessageRoom, evaluate: impl FnOnce(Arc<ReplShared>) -> F)
    where
        F: Future<Output = FormOutcome> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let evaluating = evaluate(Arc::clone(&shared));
        tokio::spawn(async move {
            let outcome = tokio::select! {
                () = shared.ended.cancelled() => return,
                outcome = evaluating => outcome,
            };
            shared.editor.answer(id, outcome);
            drop(room);
        });
    }

    fn connection_info(&self, slime: bool) -> Value {
        let versions = &self.shared.settings;
        let version = if slime { &versions.swank_version } else { &versions.slynk_version };
        let modules = if slime { Value::Nil } else { texts(SLY_MODULES) };
        let own = env!("CARGO_PKG_VERSION");
        plist([
            ("pid", number(std::process::id() as usize)),
            // With any other style, an interrupt would be a signal that ends the whole server.
            ("style", keyword("spawn")),
            ("encoding", plist([("coding-systems", texts(["utf-8-unix"]))])),
            (
                "lisp-implementation",
                plist([
                    ("type", text("Contexture")),
                    ("name", text(PACKAGE)),
                    ("version", text(own)),
                    ("program", Value::Nil),
                ]),
            ),
            (
                "machine",
                plist([
                    ("instance", text("localhost")),
                    ("type", text(std::env::consts::ARCH)),
                    ("version", text(std::env::consts::OS)),
                ]),
            ),
            ("features", list([keyword("contexture")])),
            ("modules", modules),
            ("package", plist([("name", text(PACKAGE)), ("prompt", text(PACKAGE))])),
            ("version", text(&**version)),
        ])
    }

    fn threads(&self) -> Value {
        let heads = ["id", "name", "status"].map(keyword);
        let rows = self.repls.iter().map(|(id, repl)| {
            let status = if repl.is_busy() { "busy" } else { "idle" };
            list([Value::Int(*id), text(format!("REPL {id}")), text(status)])
        });
        list(std::iter::once(list(heads)).chain(rows))
    }

    fn directory(&self) -> Value {
        text(locked(&self.shared.directory).to_string_lossy())
    }

    /// Handles the choice of a restart in the debugger. Every restart leaves the debugger, so the
    /// answer is an error, which aborts the form that chose the restart.
    fn restart(&self, thread: &Value, restart: &Value) -> WireError {
        let thread = if let Value::Int(thread) = thread { Some(*thread) } else { None };
        let known = self.shared.questions.restart(thread, restart);
        refusal(if known { "answered" } else { "there is no open question" })
    }
}

/// Evaluates a constant, which is its own value. Refuses symbols and lists.
fn constant(datum: Value) -> FormOutcome {
    match datum {
        Value::Symbol(name) => Err(no_lisp(&name)),
        Value::List(_) => Err(no_lisp("this form")),
        constant => Ok(constant),
    }
}

/// Evaluates a form that was typed outside the REPL: a call of a method, or a constant. With
/// `grab`, the answer has the form that SLIME's `eval-and-grab-output` expects.
async fn typed(shared: &ReplShared, typed: &str, grab: bool) -> FormOutcome {
    let datum = sexp::read(typed).map_err(|error| refusal(error.to_string()))?;
    let value = match form_of(datum) {
        LispForm::Call { package, name, arguments } if package == PACKAGE => {
            let (method, params) = call_of(&name, arguments)?;
            shared.caller.call(&method, params).await?
        }
        LispForm::Call { package, name, .. } => return Err(no_lisp(&format!("{package}:{name}"))),
        LispForm::Datum(datum) => constant(datum)?,
    };
    let printed = text(sexp::print(&value));
    Ok(if grab { list([text(""), printed]) } else { printed })
}
