//! Asks the note-taker for its notes.

use super::super::Configured;
use super::run::{NotesRun, Stopped};
use crate::curation::notes::{NotesStatus, NotesStep};
use crate::provider::chat::{ChatMessage, Request, Response, Stop, cancelled};
use crate::session::message::Role;
use crate::template::TASK;

/// Maximum length of notes, in bytes; a model that writes more is stopped.
const MAX_NOTES_BYTES: usize = 1 << 20;

impl NotesRun<'_> {
    /// Asks the note-taker for its notes and returns them.
    pub(super) async fn notes(&mut self, manager: &Configured) -> Result<String, Stopped> {
        self.step = NotesStep::Answer;
        let messages = vec![
            ChatMessage::new(Role::System, TASK),
            ChatMessage::new(Role::User, &self.view.prompt),
        ];
        let request = Request { messages, max_tokens: manager.max_tokens, ..Request::default() };
        self.view.payload = manager.provider.payload(&request);
        if self.only_prompt {
            self.view.status = NotesStatus::Managed.name().to_owned();
            return Err(Stopped::Raw);
        }
        let mut whole = Response::default();
        let asked = self.listen(manager, &request, &mut whole).await;
        self.view.output = whole.text.trim().to_owned();
        self.view.input_tokens = whole.usage.input;
        self.view.output_tokens = whole.usage.output;
        asked?;
        let name = manager.provider.model();
        match whole.stop {
            _ if self.view.output.is_empty() => {
                Stopped::failed(format!("{name} returned no notes"))
            }
            Some(Stop::Length) => Stopped::failed(format!(
                "{name} was cut off before its notes were complete; raise the provider's max-tokens"
            )),
            Some(Stop::Refused) => Stopped::failed(format!("{name} refused to finish its notes")),
            _ => Ok(self.view.output.clone()),
        }
    }

    async fn listen(
        &self,
        manager: &Configured,
        request: &Request,
        whole: &mut Response,
    ) -> Result<(), Stopped> {
        let provider = &*manager.provider;
        let gone = self.job.cancelled.cancelled();
        tokio::pin!(gone);
        let reading = async {
            let mut reply = provider.chat(request).await?;
            while let Some(piece) = reply.next().await? {
                whole.add(piece);
                if whole.text.len() > MAX_NOTES_BYTES {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let read = tokio::select! {
            read = reading => read,
            () = &mut gone => Err(cancelled(provider)),
        };
        match read {
            Ok(false) => Ok(()),
            Ok(true) => {
                Stopped::failed(format!("the notes have more than {MAX_NOTES_BYTES} bytes"))
            }
            Err(_) if self.job.cancelled.is_cancelled() => Err(Stopped::Cancelled),
            Err(error) => Stopped::failed(error),
        }
    }
}
