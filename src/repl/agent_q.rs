//! Answers the calls that the Emacs package of agent-q (an agent for Common Lisp) makes to its
//! server. The answers have the form that the package expects, so that its users can keep it as
//! their front end.

use std::sync::Mutex;

use tokio::sync::Mutex as Queue;
use tokio_util::sync::CancellationToken;

use super::lisp::{items, list, no_lisp, plist, refusal, text, value_at};
use super::listener::INTERRUPT;
use super::{ReplShared, locked};
use crate::rpc::{Approval, Decision, Later, Listener, UserInput};
use crate::value::Value;
use crate::value::sexp;
use crate::wire::dialect::form_of;
use crate::wire::message::{LispForm, WireError};

type AgentQOutcome = Result<Value, WireError>;

/// The Unix epoch as a Common Lisp time, which counts seconds from 1900.
const UNIX_EPOCH: i64 = 2_208_988_800;
/// Thread number of questions to the user that come from calls outside a REPL.
const THREAD: i64 = 0;
const PACKAGE: &str = "agent-q";
const FUNCTIONS: [&str; 14] = [
    "agent-q-send",
    "agent-q-add-context",
    "agent-q-clear-context",
    "agent-q-get-context-summary",
    "agent-q-new-conversation",
    "agent-q-get-conversation-history",
    "agent-q-create-session",
    "agent-q-switch-session",
    "agent-q-save-session",
    "agent-q-delete-session",
    "agent-q-rename-session",
    "agent-q-list-sessions",
    "agent-q-search-sessions",
    "agent-q-get-session-info",
];

/// The turn that agent-q's package asked for last. The package waits for one answer at a time.
#[derive(Default)]
pub(super) struct AgentQTurn {
    current: Mutex<CancellationToken>,
    /// Held while a turn takes place.
    turns: Queue<()>,
}

impl AgentQTurn {
    /// Cancels the current turn, and returns the token that cancels the next turn.
    fn next(&self) -> CancellationToken {
        let next = CancellationToken::new();
        std::mem::replace(&mut *locked(&self.current), next.clone()).cancel();
        next
    }

    /// Cancels the current turn.
    pub(super) fn cancel(&self) {
        locked(&self.current).cancel();
    }
}

/// Answers one of the calls of agent-q's package.
pub(super) async fn call(shared: &ReplShared, name: &str, arguments: Vec<Value>) -> AgentQOutcome {
    let (first, keywords) = split(arguments);
    let given = |name| value_at(&keywords, name);
    match name {
        "agent-q-send" => send(shared, &first, given("include-context") != Value::Nil).await,
        // Our own Emacs package sends this, because agent-q's package tells nobody that its user
        // cancelled.
        "cancel" => {
            shared.asked.cancel();
            Ok(Value::Bool(true))
        }
        "agent-q-add-context" => {
            // Opens the session if need be, so that the item belongs to the conversation that
            // begins now.
            let manager = text(shared.place.session(shared).await?.manager);
            let params = [
                ("content", first),
                ("type", given("type")),
                ("metadata", given("metadata")),
                ("manager", manager),
            ];
            shared.call("add-item", params).await.map(done)
        }
        "agent-q-clear-context" => {
            let Some(manager) = manager(shared).await else { return Ok(Value::Bool(true)) };
            shared
                .call("remove-items", [("manager", manager), ("all", Value::Bool(true))])
                .await
                .map(done)
        }
        "agent-q-get-context-summary" => summary(shared).await,
        "agent-q-new-conversation" => {
            shared.place.open(shared, given("project")).await?;
            Ok(Value::Bool(true))
        }
        "agent-q-get-conversation-history" => history(shared, given("limit")).await,
        "agent-q-create-session" => Ok(text(shared.place.open(shared, given("name")).await?.id)),
        "agent-q-switch-session" => {
            let name = first.as_text().unwrap_or_default();
            Ok(truth(shared.place.switch(shared, name).await.unwrap_or(false)))
        }
        "agent-q-delete-session" => {
            Ok(truth(shared.call("delete-session", [("session", first)]).await.is_ok()))
        }
        "agent-q-rename-session" => Ok(truth(rename(shared, first).await.is_ok())),
        // Every message is already stored.
        "agent-q-save-session" => {
            Ok(shared.place.known().map_or(Value::Nil, |session| text(session.id)))
        }
        "agent-q-list-sessions" => {
            let rows = items(shared.call("list-sessions", []).await?);
            Ok(list(rows.iter().map(meta)))
        }
        "agent-q-search-sessions" => search(shared, first).await,
        "get-config-info" => {
            let mut described = shared.answerer().describe();
            if let (Some(provider), Value::Map(fields)) =
                (described.get("provider").cloned(), &mut described)
            {
                fields.push(("provider-name".into(), provider));
            }
            Ok(described)
        }
        _ => Err(refusal(format!("Contexture has no function {PACKAGE}:{name}"))),
    }
}

/// Evaluates the forms with which agent-q's package looks for its server. Refuses all other forms.
pub(super) fn common_lisp(name: &str, arguments: Vec<Value>) -> AgentQOutcome {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().unwrap_or_default();
    match name {
        "if" => {
            let (test, yes, no) = (next(), next(), next());
            value_of(if value_of(test)? == Value::Nil { no } else { yes })
        }
        "and" => {
            let mut last = Value::Bool(true);
            for form in arguments {
                last = value_of(form)?;
                if last == Value::Nil {
                    break;
                }
            }
            Ok(last)
        }
        "find-package" => Ok(truth(next().as_text().is_some_and(|name| {
            name.eq_ignore_ascii_case(PACKAGE) || name.eq_ignore_ascii_case(super::PACKAGE)
        }))),
        "fboundp" => Ok(truth(next().as_text().is_some_and(|name| {
            name.split_once(':').is_some_and(|(package, name)| {
                package == PACKAGE && FUNCTIONS.contains(&name.trim_start_matches(':'))
            })
        }))),
        // When it connects, the package uses this form to have its server loaded.
        "progn" if arguments.any(|form| sexp::print(&form).contains("quickload :agent-q")) => {
            Ok(text("Contexture answers in place of agent-q"))
        }
        _ => Err(no_lisp(&format!("({name} …)"))),
    }
}

fn value_of(form: Value) -> AgentQOutcome {
    match form_of(form) {
        LispForm::Call { package, name, arguments } if matches!(&*package, "cl" | "") => {
            common_lisp(&name, arguments)
        }
        LispForm::Call { package, name, .. } => Err(no_lisp(&format!("({package}:{name} …)"))),
        LispForm::Datum(datum) => Ok(datum),
    }
}

/// Returns the first positional argument, which is the only one that is used, and the keyword
/// arguments.
fn split(mut arguments: Vec<Value>) -> (Value, Value) {
    let at = arguments.iter().position(|argument| matches!(argument, Value::Keyword(_)));
    let keywords = arguments.split_off(at.unwrap_or(arguments.len()));
    (arguments.into_iter().next().unwrap_or_default(), Value::List(keywords))
}

fn truth(so: bool) -> Value {
    if so { Value::Bool(true) } else { Value::Nil }
}

fn done(_: Value) -> Value {
    Value::Bool(true)
}

/// Returns the name of the manager of the session's items; `None` if the connection has no session,
/// or the session cannot be looked up.
async fn manager(shared: &ReplShared) -> Option<Value> {
    shared.place.row(shared).await?.get("manager").cloned()
}

async fn summary(shared: &ReplShared) -> AgentQOutcome {
    let managers = ("managers", shared.place.managers(shared).await?);
    let summary = shared.call("list-items", [managers, ("count-only", Value::Bool(true))]).await?;
    let field = |name| value_at(&summary, name);
    let preview = match field("count") {
        Value::Int(0) => text("No context"),
        _ => field("preview"),
    };
    Ok(plist([("count", field("count")), ("types", field("types")), ("preview", preview)]))
}

async fn history(shared: &ReplShared, limit: Value) -> AgentQOutcome {
    let Some(row) = shared.place.row(shared).await else { return Ok(Value::Nil) };
    let params = [("session", value_at(&row, "id")), ("limit", limit)];
    let messages = items(shared.call("get-messages", params).await?);
    let row = |message| {
        plist([
            ("role", value_at(message, "role")),
            ("content", value_at(message, "content")),
            ("timestamp", universal(value_at(message, "timestamp"))),
        ])
    };
    Ok(list(messages.iter().map(row)))
}

async fn rename(shared: &ReplShared, name: Value) -> AgentQOutcome {
    let none = || refusal("there is no session yet; a message opens one");
    let row = shared.place.row(shared).await.ok_or_else(none)?;
    shared.call("configure-session", [("session", value_at(&row, "id")), ("name", name)]).await
}

async fn search(shared: &ReplShared, query: Value) -> AgentQOutcome {
    let hits = items(shared.call("list-sessions", [("query", query)]).await?);
    let found = |row: &Value| hits.iter().any(|hit| hit.get("id") == row.get("id"));
    let rows = items(shared.call("list-sessions", []).await?);
    Ok(list(rows.iter().filter(|row| found(row)).map(meta)))
}

/// Describes the connection's session, as it was when it was last looked up: agent-q's package asks
/// for it whenever it draws its mode line, and Emacs waits for the answer.
pub(super) fn info(shared: &ReplShared) -> Value {
    let Some(session) = shared.place.known() else { return Value::Nil };
    let described = shared.answerer().describe();
    plist([
        ("id", text(session.id)),
        ("name", text(session.name)),
        ("message-count", session.messages),
        ("total-input-tokens", session.tokens),
        ("total-output-tokens", Value::Int(0)),
        ("model", value_at(&described, "model")),
        ("provider", value_at(&described, "provider")),
    ])
}

/// Formats a session for the list of sessions that agent-q's package shows.
fn meta(row: &Value) -> Value {
    plist([
        ("id", value_at(row, "id")),
        ("name", value_at(row, "session")),
        ("created-at", universal(value_at(row, "created"))),
        ("message-count", value_at(row, "messages")),
    ])
}

fn universal(time: Value) -> Value {
    match time {
        Value::Int(seconds) => Value::Int(seconds.saturating_add(UNIX_EPOCH)),
        other => other,
    }
}

/// Runs a turn in the connection's session, and returns its complete output. Errors are returned as
/// text, which the package shows. A new turn cancels the previous turn, and the call of the
/// previous turn fails: otherwise, the package would take the previous answer for that of the new
/// turn.
async fn send(shared: &ReplShared, message: &Value, with_items: bool) -> AgentQOutcome {
    let cancelled = shared.asked.next();
    let _turn = shared.asked.turns.lock().await;
    let collected = Collected { shared, said: Mutex::default() };
    let outcome = match shared.place.session(shared).await {
        _ if cancelled.is_cancelled() => Ok(()),
        Err(error) => Err(error),
        Ok(session) => {
            let turn = UserInput {
                session: session.name,
                text: message.as_text().unwrap_or_default().to_owned(),
                with_items,
                cancelled: cancelled.clone(),
            };
            shared.answerer().take_turn(turn, &*shared.caller, &collected).await
        }
    };
    if cancelled.is_cancelled() {
        return Err(refusal(INTERRUPT));
    }
    let mut said = std::mem::take(&mut *locked(&collected.said));
    if let Err(error) = outcome {
        said += &format!("Error: {error}");
    }
    Ok(text(said))
}

/// A listener that collects the output of a turn.
struct Collected<'a> {
    shared: &'a ReplShared,
    said: Mutex<String>,
}

impl Listener for Collected<'_> {
    fn say(&self, piece: &str) {
        locked(&self.said).push_str(piece);
    }

    fn allow(&self, request: Approval) -> Later<'_, Decision> {
        Box::pin(self.shared.questions.allow(THREAD, request))
    }

    fn confirm(&self, question: String) -> Later<'_, bool> {
        Box::pin(self.shared.questions.confirm(THREAD, question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repl::lisp::keyword;

    #[test]
    fn the_package_finds_its_server() {
        let check = |form: &str, expected: &str| {
            let form = sexp::read(form).unwrap();
            let said = value_of(form).map_or_else(|e| e.to_string(), |v| sexp::print(&v));
            assert!(said.contains(expected), "{said}");
        };
        check(
            "(cl:if (cl:and (cl:find-package :agent-q) (cl:fboundp (quote agent-q:agent-q-send)))
                 t nil)",
            "t",
        );
        check("(cl:find-package :swank)", "nil");
        check("(cl:if (cl:fboundp 'agent-q:dance) 1 \"no\")", "\"no\"");
        check(
            "(cl:progn (cl:handler-case (ql:quickload :agent-q :silent cl:t)))",
            "in place of agent-q",
        );
        check(
            "(cl:princ-to-string (swank:backtrace 0 10))",
            "which cannot evaluate (princ-to-string",
        );
    }

    #[test]
    fn arguments_by_place_and_by_keyword() {
        let arguments = vec![text("a"), keyword("type"), keyword("code")];
        let (first, keywords) = split(arguments);
        assert_eq!(first, text("a"));
        assert_eq!(keywords.get("type"), Some(&keyword("code")));
        assert_eq!(split(vec![]).0, Value::Nil);
    }
}
