//! Import of exported sessions.

use super::super::{Engine, EngineError};
use super::{NewMessage, Opened};
use crate::session::state::Revision;
use crate::store::session::NewSession;

impl Engine {
    /// Creates a session from exported messages. If the name is taken, appends a number to it.
    /// `view` is the exported view; without it, all messages are in view.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn import_session(
        &mut self,
        mut new: NewSession,
        messages: Vec<NewMessage>,
        view: Option<Revision>,
    ) -> Result<Opened, EngineError> {
        let wanted = new.name.clone();
        for number in 2.. {
            if self.store.read().session_named(&new.name)?.is_none() {
                break;
            }
            new.name = format!("{wanted} ({number})");
        }
        let id = self.create_session(new, "import-session")?;
        self.append(id, messages)?;
        if let Some(view) = view {
            let Revision { state, learned } = view.of_log(self.session(id)?.length());
            self.learn(id, learned)?;
            self.revise(id, "import-session", state)?;
        }
        self.session_changed(id, "import-session")?;
        self.sessions.make_current(id);
        Ok(Opened { id, created: true })
    }
}
