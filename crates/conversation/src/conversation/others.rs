//! The conversations of a state: lists, forks and deletions, and the removal of messages.

use std::sync::Arc;

use super::state::KeptSettings;
use super::{Conversation, ConversationInner, Error, Message};
use crate::engine::{Engine, EngineError, SessionSettings};
use crate::store::session::{NewSession, SessionRow};

/// What is known of a conversation that need not be open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationInfo {
    /// Name of the conversation.
    pub name: String,
    /// Folder of the project that the conversation is about.
    pub project: Option<String>,
    /// Number of messages that were ever said, including those that left the conversation.
    pub messages: u64,
    /// Time at which the conversation was created, in Unix seconds.
    pub created: i64,
    /// Time of the last message, or of the creation if there are none, in Unix seconds.
    pub updated: i64,
    /// Beginning of the last text, on one line.
    pub last_words: String,
}

impl From<SessionRow> for ConversationInfo {
    fn from(row: SessionRow) -> Self {
        let SessionRow { name, project, messages, created, updated, last_words, .. } = row;
        Self { name, project, messages, created, updated, last_words }
    }
}

impl Conversation {
    /// Returns the name of the conversation.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns all conversations of the state, this one included; the one with the latest message
    /// comes first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn conversations(&self) -> Result<Vec<ConversationInfo>, Error> {
        let rows = self.ask(|engine| Ok(engine.read().sessions(false)?)).await?;
        Ok(rows.into_iter().map(ConversationInfo::from).collect())
    }

    /// Deletes the conversation with this name from the state. Its handles can no longer take
    /// turns. Its data stays in the state folder, from which `restore-session` of the server brings
    /// it back.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such conversation.
    pub async fn delete(&self, name: impl Into<String>) -> Result<(), Error> {
        let name = name.into();
        self.ask(move |engine| engine.delete_session(&name)).await.map(drop)
    }

    /// Creates a conversation that continues this one under another name, from a checkpoint or from
    /// how this one is now. Both have the same settings, tools and providers, and go their own ways
    /// from there.
    ///
    /// # Errors
    /// [`Error::Refused`] if another conversation has the name, or there is no such checkpoint.
    pub async fn fork(
        &self,
        name: impl Into<String>,
        checkpoint: Option<u64>,
    ) -> Result<Self, Error> {
        let (of, name) = (self.inner.id, name.into());
        let fork = move |engine: &mut Engine| {
            let SessionRow { project, settings, .. } = engine.row(of)?;
            let new = NewSession { name, project, settings, ..NewSession::default() };
            let opened = engine.fork_session(of, checkpoint, new)?;
            let row = engine.row(opened.id)?;
            let settings = SessionSettings::parse(&row.settings)?;
            Ok::<_, EngineError>((row, settings))
        };
        let (row, SessionSettings { model, strategy, versioning, turn, .. }) =
            self.ask(fork).await?;
        let prompt = self.inner.sections.system_prompt.as_ref();
        let system_prompt = prompt.map(|prompt| prompt.text.to_string());
        let kept = KeptSettings { model, strategy, versioning, turn, system_prompt };
        let ConversationInner { services, state, runtime, tools, allowed, asked, sections, .. } =
            &*self.inner;
        let shared = state.shared(row.id, kept);
        let inner = ConversationInner {
            services: Arc::clone(services),
            state: state.clone(),
            runtime: runtime.clone(),
            shared: shared.ok_or_else(|| Error::AlreadyOpen(row.name.clone()))?,
            id: row.id,
            manager: row.manager_name(),
            name: row.name,
            project: row.project,
            model: self.inner.model.clone(),
            tools: tools.clone(),
            allowed: allowed.clone(),
            asked: asked.clone(),
            sections: sections.clone(),
            summarizer: Arc::clone(&self.inner.summarizer),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the messages in view, oldest first, with their numbers.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn numbered_messages(&self) -> Result<Vec<(u64, Message)>, Error> {
        let id = self.inner.id;
        let in_view = move |engine: &mut Engine| {
            let numbered = engine.session(id)?.in_view();
            Ok(numbered.map(|message| (message.number, Message::from(&**message))).collect())
        };
        self.ask(in_view).await
    }

    /// Removes a message from the conversation, given its number. A message with tool calls goes
    /// with the results, and a result with its call. A summary that tells of the message stays as
    /// it is. Returns the numbers of the removed messages; [`undo_view`](Self::undo_view) brings
    /// them back.
    ///
    /// # Errors
    /// [`Error::Refused`] if the conversation has no such message.
    pub async fn remove_message(&self, number: u64) -> Result<Vec<u64>, Error> {
        let id = self.inner.id;
        self.ask(move |engine| engine.remove_message(id, number)).await
    }
}
