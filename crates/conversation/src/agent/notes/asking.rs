//! Asks the note-taker for its notes.

use super::super::AvailableModel;
use super::super::whole::{Unheard, WantedAnswer, hear};
use super::run::{NotesRun, NotesStopped};
use crate::curation::notes::{NotesStatus, NotesStep};
use crate::provider::chat::{ChatMessage, Request, Response};
use crate::session::message::Role;
use crate::template::TASK;

/// Maximum length of notes, in bytes; a model that writes more is stopped.
const MAX_NOTES_BYTES: usize = 1 << 20;

impl NotesRun<'_> {
    /// Asks the note-taker `manager` for its notes. If only the prompt is wanted, returns
    /// [`NotesStopped::Raw`] without asking.
    pub(super) async fn notes(&mut self, manager: &AvailableModel) -> Result<String, NotesStopped> {
        self.step = NotesStep::Answer;
        let messages = vec![
            ChatMessage::new(Role::System, TASK),
            ChatMessage::new(Role::User, &self.view.prompt),
        ];
        let request = Request { messages, max_tokens: manager.max_tokens, ..Request::default() };
        self.view.payload = manager.provider.payload(&request);
        if self.only_prompt {
            self.view.status = NotesStatus::Managed.name().to_owned();
            return Err(NotesStopped::Raw);
        }
        let mut whole = Response::default();
        let wanted =
            WantedAnswer { what: "notes", it_has: "the notes have", most: MAX_NOTES_BYTES };
        let heard = hear(self.job, &*manager.provider, &request, &wanted, &mut whole).await;
        self.view.output = whole.text.trim().to_owned();
        self.view.input_tokens = whole.usage.input;
        self.view.output_tokens = whole.usage.output;
        match heard {
            Ok(()) => Ok(self.view.output.clone()),
            Err(Unheard::Cancelled) => Err(NotesStopped::Cancelled),
            Err(Unheard::Failed(reason)) => Err(NotesStopped::Failed(reason)),
        }
    }
}
