//! The session that a connection or a REPL uses. Opening a session here does not change the current
//! session of the server, which calls of other clients use when they name no session.

use std::sync::Mutex;

use super::lisp::{items, string_at, text, texts, value_at};
use super::{PACKAGE, ReplShared, locked};
use crate::value::Value;
use crate::wire::message::WireError;

/// A session as it was when it was last looked up.
#[derive(Debug, Clone)]
pub(super) struct ReplSession {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) manager: String,
    /// All managers whose items the session shows; the session's own manager is the last.
    pub(super) managers: Vec<String>,
    /// Folder of the project that the session is about.
    pub(super) project: Option<String>,
    /// Number of messages.
    pub(super) messages: Value,
    /// Tokens of the messages.
    pub(super) tokens: Value,
}

/// Holds the session of a connection or a REPL. The session is opened when it is first needed.
#[derive(Default)]
pub(super) struct SessionSlot {
    known: Mutex<Option<ReplSession>>,
    /// Locked while a session is opened, so that only one session is opened.
    opening: tokio::sync::Mutex<()>,
}

impl ReplSession {
    pub(super) fn of(row: &Value) -> Self {
        let field = |name| string_at(row, name).unwrap_or_default().to_owned();
        let managers = items(value_at(row, "managers"));
        let managers = managers.iter().filter_map(Value::as_text).map(str::to_owned);
        let mut managers: Vec<String> = managers.collect();
        if managers.is_empty() {
            managers.push(field("manager"));
        }
        Self {
            id: field("id"),
            name: field("session"),
            manager: field("manager"),
            managers,
            project: string_at(row, "project").map(str::to_owned),
            messages: value_at(row, "messages"),
            tokens: value_at(row, "tokens"),
        }
    }
}

impl SessionSlot {
    /// Returns the session as it was when it was last looked up; `None` if there is none yet.
    pub(super) fn known(&self) -> Option<ReplSession> {
        locked(&self.known).clone()
    }

    /// Returns the session's name, to show it; the package's name if there is no session yet.
    pub(super) fn shown_name(&self) -> String {
        self.known().map_or_else(|| PACKAGE.to_owned(), |session| session.name)
    }

    /// Returns the session. Begins a new session if there is none yet or the session is gone.
    pub(super) async fn session(&self, shared: &ReplShared) -> Result<ReplSession, WireError> {
        let _opening = self.opening.lock().await;
        match self.looked_up(shared).await? {
            Some(row) => Ok(ReplSession::of(&row)),
            None => self.opened(shared, Value::Nil).await,
        }
    }

    /// Continues with the session of this name, or begins it; without a name, begins a new session.
    pub(super) async fn open(
        &self,
        shared: &ReplShared,
        name: Value,
    ) -> Result<ReplSession, WireError> {
        let _opening = self.opening.lock().await;
        self.opened(shared, name).await
    }

    /// Opens a session. A new one is about the project that the connection's directory belongs to,
    /// and shows its items.
    async fn opened(&self, shared: &ReplShared, name: Value) -> Result<ReplSession, WireError> {
        let open = here(shared).await?;
        let params = [
            ("name", name),
            ("project", value_at(&open, "root")),
            ("managers", managers_of(&open)),
            ("current", Value::Nil),
        ];
        let session = ReplSession::of(&shared.call("open-session", params).await?);
        *locked(&self.known) = Some(session.clone());
        Ok(session)
    }

    /// Returns the managers whose items the session shows, or those that a new session would show.
    pub(super) async fn managers(&self, shared: &ReplShared) -> Result<Value, WireError> {
        Ok(match self.row(shared).await {
            Some(row) => texts(ReplSession::of(&row).managers.iter().map(String::as_str)),
            None => managers_of(&here(shared).await?),
        })
    }

    /// Looks the session up, and returns it in the form that the method `open-session` returns;
    /// `None` if there is no session, or it cannot be looked up.
    pub(super) async fn row(&self, shared: &ReplShared) -> Option<Value> {
        self.looked_up(shared).await.ok().flatten()
    }

    /// Continues with the session of this name or id. Returns false if there is no such session.
    pub(super) async fn switch(&self, shared: &ReplShared, name: &str) -> Result<bool, WireError> {
        let _opening = self.opening.lock().await;
        let rows = items(shared.call("list-sessions", []).await?);
        let is = |row: &&Value, field| string_at(row, field) == Some(name);
        let found = rows.iter().find(|row| is(row, "session"));
        let found = found.or_else(|| rows.iter().find(|row| is(row, "id"))).map(ReplSession::of);
        let switched = found.is_some();
        if switched {
            *locked(&self.known) = found;
        }
        Ok(switched)
    }

    /// Looks up the known session again, since it may have been renamed or deleted meanwhile.
    /// Returns `None` if no session is known, or it has been deleted.
    async fn looked_up(&self, shared: &ReplShared) -> Result<Option<Value>, WireError> {
        let Some(known) = self.known() else { return Ok(None) };
        let params = [("name", text(&*known.id)), ("current", Value::Nil)];
        match shared.call("open-session", params).await {
            Ok(row) => {
                if let Some(seen) = locked(&self.known).as_mut().filter(|seen| seen.id == known.id)
                {
                    *seen = ReplSession::of(&row);
                }
                Ok(Some(row))
            }
            Err(error) if string_at(&error.data, "kind") == Some("no-such-session") => {
                *locked(&self.known) = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Opens the layers of the connection's directory.
async fn here(shared: &ReplShared) -> Result<Value, WireError> {
    let directory = text(shared.directory().to_string_lossy());
    shared.call("open-layers", [("directory", directory)]).await
}

/// Opens the layers of `place` (a file or folder), and returns their managers; see the method
/// `open-layers`.
pub(super) async fn layers<const N: usize>(
    shared: &ReplShared,
    place: [(&str, Value); N],
) -> Result<Value, WireError> {
    Ok(managers_of(&shared.call("open-layers", place).await?))
}

/// Returns the managers of the layers in an answer of the method `open-layers`.
fn managers_of(open: &Value) -> Value {
    let layers = items(value_at(open, "layers"));
    texts(layers.iter().filter_map(|layer| string_at(layer, "manager")))
}
