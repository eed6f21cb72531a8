//! Forms that SLY and SLIME send for evaluation. Known forms get answers, so that these clients can
//! connect and work; every other form is refused at once.

use std::path::PathBuf;
use std::sync::Arc;

use super::lisp::{keyword, list, name_of, no_lisp, number, plist, refusal, text, texts};
use super::{PACKAGE, Repl, Repls, Shared, agent_q, complete, describe, locked};
use crate::value::Value;
use crate::value::sexp;
use crate::wire::dialect::{call_of, form_of};
use crate::wire::message::{Form, WireError};

type Outcome = Result<Value, WireError>;

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

impl Repls {
    /// Evaluates a form. Returns false if the form ends the connection.
    pub(super) fn evaluate(&mut self, id: i64, form: Form, thread: &Value) -> bool {
        let (package, name, arguments) = match form {
            Form::Call { package, name, arguments } => (package, name, arguments),
            Form::Datum(datum) => {
                self.shared.editor.answer(id, constant(datum));
                return true;
            }
        };
        match &*package {
            editor if editor.starts_with("slynk") || editor.starts_with("swank") => {
                return self.editor_form(id, editor.starts_with("swank"), &name, arguments, thread);
            }
            "agent-q" => {
                self.later(id, move |shared| async move {
                    agent_q::call(&shared, &name, arguments).await
                });
            }
            "cl" | "common-lisp" | "" => {
                let outcome = agent_q::common_lisp(&name, arguments);
                self.shared.editor.answer(id, outcome);
            }
            _ => self.shared.editor.answer(id, Err(unknown(&format!("{package}:{name}")))),
        }
        true
    }

    fn editor_form(
        &mut self,
        id: i64,
        slime: bool,
        name: &str,
        arguments: Vec<Value>,
        thread: &Value,
    ) -> bool {
        let first = arguments.first();
        match name {
            "quit-lisp" => return false,
            "create-mrepl" => match first {
                Some(Value::Int(channel)) => self.create_mrepl(id, *channel),
                _ => self
                    .shared
                    .editor
                    .answer(id, Err(refusal("the channel of create-mrepl must be a number"))),
            },
            "create-repl" => self.create_repl(id),
            "listener-eval" => {
                self.listener_eval(id, first.and_then(name_of).unwrap_or_default());
            }
            "simple-completions" | "completions" | "flex-completions" | "fuzzy-completions" => {
                let (name, pattern) = (name.to_owned(), complete::pattern(first));
                self.later(id, move |shared| async move {
                    Ok(complete::answer(&shared, &name, &pattern).await)
                });
            }
            "interactive-eval"
            | "interactive-eval-region"
            | "pprint-eval"
            | "eval-and-grab-output" => {
                let form = first.and_then(name_of).unwrap_or_default().to_owned();
                let grab = name == "eval-and-grab-output";
                self.later(id, move |shared| async move { typed(&shared, &form, grab).await });
            }
            _ => {
                let outcome = self.answer(slime, name, arguments, thread);
                self.shared.editor.answer(id, outcome);
            }
        }
        true
    }

    /// Answers a form that can be answered without waiting.
    fn answer(&self, slime: bool, name: &str, arguments: Vec<Value>, thread: &Value) -> Outcome {
        let mut arguments = arguments.into_iter();
        let first = arguments.next().unwrap_or_default();
        let second = arguments.next().unwrap_or_default();
        Ok(match name {
            "connection-info" => self.connection_info(slime),
            "slynk-require" => list([first.clone(), first]),
            "swank-require" => modules(first),
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
                *self.shared.directory() = PathBuf::from(name_of(&first).unwrap_or("/"));
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
            name if is_nothing(name) => Value::Nil,
            name => return Err(unknown(name)),
        })
    }

    /// Answers a function call that SLY's REPL (mREPL) sends: returns what its prompt shows, the
    /// package and the directory. Only functions that set the directory have an effect here.
    fn for_mrepl(&self, channel: &Value, function: &Value, arguments: &[Value]) -> Value {
        let given = match name_of(function).unwrap_or_default() {
            name if name.ends_with("sync-package-and-default-directory") => {
                let at = arguments.iter().position(|it| *it == keyword("directory"));
                at.and_then(|at| arguments.get(at + 1)).and_then(name_of)
            }
            // The argument is a form that turns the name into a pathname.
            name if name.ends_with("set-default-directory") => match arguments.first() {
                Some(Value::List(form)) => form.last().and_then(name_of),
                given => given.and_then(name_of),
            },
            _ => None,
        };
        if let Some(directory) = given {
            *self.shared.directory() = PathBuf::from(directory);
        }
        let repl = if let Value::Int(channel) = channel { self.repls.get(channel) } else { None };
        let name = repl.map_or_else(|| PACKAGE.to_owned(), Repl::name);
        let prompt = [text(PACKAGE), text(name), Value::Int(0), Value::Int(0)];
        list([list(prompt), list([text(PACKAGE), self.directory()])])
    }

    /// Evaluates a form in a task of its own, which answers when the evaluation is done.
    fn later<F>(&self, id: i64, evaluate: impl FnOnce(Arc<Shared>) -> F)
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let evaluating = evaluate(Arc::clone(&shared));
        tokio::spawn(async move {
            let outcome = tokio::select! {
                () = shared.ended.cancelled() => return,
                outcome = evaluating => outcome,
            };
            shared.editor.answer(id, outcome);
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
        let known = match restart {
            Value::Int(restart) => {
                let restart = usize::try_from(*restart).unwrap_or(usize::MAX);
                self.shared.questions.restart(thread, restart)
            }
            _ => self.shared.questions.refuse(thread),
        };
        refusal(if known { "answered" } else { "there is no open question" })
    }
}

/// Returns whether the function does nothing here, so that its answer is always `nil`.
fn is_nothing(name: &str) -> bool {
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
    NOTHING.contains(&name)
}

fn unknown(name: &str) -> WireError {
    no_lisp(name)
}

/// Evaluates a constant, which is its own value. Refuses symbols and lists.
fn constant(datum: Value) -> Outcome {
    match datum {
        Value::Symbol(name) => Err(unknown(&name)),
        Value::List(_) => Err(unknown("this form")),
        constant => Ok(constant),
    }
}

/// Returns the names of the requested modules in upper case. SLIME ignores letter case when it
/// compares them.
fn modules(asked: Value) -> Value {
    let names = super::lisp::items(asked);
    texts(names.iter().filter_map(name_of).map(str::to_uppercase))
}

/// Evaluates a form that was typed outside the REPL: a call of a method, or a constant. With
/// `grab`, the answer has the form that SLIME's `eval-and-grab-output` expects.
async fn typed(shared: &Shared, typed: &str, grab: bool) -> Outcome {
    let datum = sexp::read(typed).map_err(|error| refusal(error.to_string()))?;
    let value = match form_of(datum) {
        Form::Call { package, name, arguments } if package == PACKAGE => {
            let (method, params) = call_of(&name, arguments)?;
            shared.caller.call(&method, params).await?
        }
        Form::Call { package, name, .. } => return Err(unknown(&format!("{package}:{name}"))),
        Form::Datum(datum) => constant(datum)?,
    };
    let printed = text(sexp::print(&value));
    Ok(if grab { list([text(""), printed]) } else { printed })
}
