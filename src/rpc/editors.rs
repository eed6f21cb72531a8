//! Editors that can be asked for text that is not saved, and the questions that wait for answers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use super::client::Client;
use super::limits::EDITOR_PATIENCE_MS;
use super::locked;
use crate::engine::{Engine, EngineError, Handle};

/// Maximum time to wait for the answers to a question.
const PATIENCE: Duration = Duration::from_millis(EDITOR_PATIENCE_MS);

/// The editors, which are the connections that subscribed to `text-wanted`.
#[derive(Default)]
pub struct Editors(Mutex<KnownEditors>);

#[derive(Default)]
struct KnownEditors {
    editors: Vec<Weak<Client>>,
    /// Number of the last question.
    last: u64,
    questions: HashMap<u64, EditorQuestion>,
}

/// A question that waits for answers.
struct EditorQuestion {
    /// Editors that have not answered yet.
    asked: Vec<Weak<Client>>,
    answers: UnboundedSender<EditorText>,
}

/// The answer of an editor: its text of the file, if that is newer than the file, and whether the
/// file is in a buffer with unsaved changes.
#[derive(Debug, Default)]
pub(super) struct EditorText {
    pub(super) text: Option<String>,
    pub(super) is_edited: bool,
}

/// The answers of the editors to a question.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// First text that an editor gave.
    pub(super) text: Option<String>,
    /// True if an editor has unsaved changes of the file, even if it gave no text.
    pub(super) is_edited: bool,
    /// Number of other texts that editors gave.
    pub(super) others: usize,
    /// Number of editors that were asked.
    pub(super) asked: usize,
    /// Number of editors that did not answer in time.
    pub(super) late: usize,
}

/// An open question, by its number. Dropping the value withdraws the question.
struct AskedEditors<'a>(&'a Editors, u64);

impl Drop for AskedEditors<'_> {
    fn drop(&mut self) {
        locked(&self.0.0).questions.remove(&self.1);
    }
}

impl Editors {
    /// Records whether a connection is an editor's.
    pub(super) fn note(&self, client: &Arc<Client>, is_editor: bool) {
        let client = Arc::downgrade(client);
        let mut known = locked(&self.0);
        known.editors.retain(|editor| editor.strong_count() > 0 && !editor.ptr_eq(&client));
        if is_editor {
            known.editors.push(client);
        }
    }

    /// Asks all editors but `asking` for their changes and, if `path` is given, for the unsaved
    /// text of that file. Waits for their answers, but no longer than [`PATIENCE`].
    pub(super) async fn ask(
        &self,
        engine: &Handle,
        asking: Option<&Arc<Client>>,
        path: Option<&Path>,
    ) -> Result<Heard, EngineError> {
        let Some((number, asked, mut answers)) = self.begin(asking) else {
            return Ok(Heard::default());
        };
        let _open = AskedEditors(self, number);
        let path = path.map(|path| path.to_string_lossy().into_owned());
        let tell = move |engine: &mut Engine| {
            engine.want_text(number, path);
            Ok(())
        };
        engine.ask(tell).await?;
        let (mut texts, mut is_edited): (Vec<String>, bool) = Default::default();
        let all = async {
            while let Some(answer) = answers.recv().await {
                is_edited |= answer.is_edited;
                texts.extend(answer.text.filter(|text| !texts.contains(text)));
            }
        };
        // Late editors are counted below.
        let _ = timeout(PATIENCE, all).await;
        let late = locked(&self.0).questions.get(&number).map_or(0, |it| it.asked.len());
        let others = texts.len().saturating_sub(1);
        Ok(Heard { text: texts.into_iter().next(), is_edited, others, asked, late })
    }

    /// Answers a question. Returns whether the question was waiting for this editor.
    pub(super) fn answer(&self, client: &Arc<Client>, number: u64, given: EditorText) -> bool {
        let client = Arc::downgrade(client);
        let mut known = locked(&self.0);
        let Some(question) = known.questions.get_mut(&number) else { return false };
        let Some(place) = question.asked.iter().position(|editor| editor.ptr_eq(&client)) else {
            return false;
        };
        question.asked.swap_remove(place);
        let is_heard = question.answers.send(given).is_ok();
        if question.asked.is_empty() {
            known.questions.remove(&number);
        }
        is_heard
    }

    /// Opens a question that waits for all editors but `asking`. Returns its number, the number of
    /// these editors, and the receiver of their answers; `None` if there is no editor at all.
    fn begin(
        &self,
        asking: Option<&Arc<Client>>,
    ) -> Option<(u64, usize, UnboundedReceiver<EditorText>)> {
        let mut known = locked(&self.0);
        known.editors.retain(|editor| editor.strong_count() > 0);
        if known.editors.is_empty() {
            return None;
        }
        let asking = asking.map(Arc::downgrade);
        let is_other =
            |editor: &&Weak<Client>| !asking.as_ref().is_some_and(|it| it.ptr_eq(editor));
        let asked: Vec<_> = known.editors.iter().filter(is_other).cloned().collect();
        let (number, count) = (known.last + 1, asked.len());
        known.last = number;
        let (answers, receiver) = mpsc::unbounded_channel();
        if count > 0 {
            known.questions.insert(number, EditorQuestion { asked, answers });
        }
        Some((number, count, receiver))
    }
}
