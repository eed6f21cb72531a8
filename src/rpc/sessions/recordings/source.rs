//! Where the recordings are: most are files, some are parts of a file or made of several files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{self, FileError, MOST_RECORDINGS, Recording};
use crate::recorded::chats;
use crate::store::opencode;

/// A recording: a file, or one of several in a file.
#[derive(Debug, Clone)]
pub(super) struct RecordingSource {
    pub(super) path: PathBuf,
    /// Which one in the file; `None` if the file is the recording.
    part: Option<String>,
    /// The text of a part, unless a database has it.
    text: Option<Arc<str>>,
    /// True if the call names the file itself.
    pub(super) is_named: bool,
}

/// Returns the recordings at `path`, a file or folder.
pub(super) fn sources(path: &Path) -> Result<Vec<RecordingSource>, FileError> {
    let found = files::recordings(path)?;
    let is_named = found == [path];
    let mut all = Vec::new();
    for path in found {
        let parts: Vec<(String, Option<Arc<str>>)> = match () {
            () if is_database(&path) => {
                let ids = opencode::ids(&path).unwrap_or_default();
                ids.into_iter().map(|id| (id, None)).collect()
            }
            // The file is read once, however many chats it has.
            () if is_aider(&path) => {
                let chats = chats(&files::whole_recording(&path).unwrap_or_default());
                chats.into_iter().map(|(name, chat)| (name, Some(chat.into()))).collect()
            }
            () => Vec::new(),
        };
        let one = |part, text| RecordingSource { path: path.clone(), part, text, is_named };
        match parts.is_empty() {
            true => all.push(one(None, None)),
            false => {
                let parts = parts.into_iter().take(MOST_RECORDINGS);
                all.extend(parts.map(|(part, text)| one(Some(part), text)));
            }
        }
    }
    Ok(all)
}

fn is_database(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "db")
}

fn is_aider(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == files::AIDER)
}

impl RecordingSource {
    /// Opens the recording.
    pub(super) fn open(&self) -> Result<Recording, FileError> {
        let Some(part) = &self.part else {
            return Ok(match files::opencode_session(&self.path)? {
                Some(text) => Recording::of_text(files::true_name(&self.path), text),
                None => Recording::open(&self.path)?,
            });
        };
        let text = match &self.text {
            Some(text) => Some(text.to_string()),
            None => opencode::export(&self.path, part).ok().flatten(),
        };
        let path = files::true_name(&self.path);
        match text {
            Some(text) => Ok(Recording::of_text(path, text)),
            None => Err(FileError::Missing { path }),
        }
    }

    /// Returns the name under which the recording is known.
    pub(super) fn name(&self, recording: &Recording) -> String {
        let path = recording.path().to_string_lossy();
        self.part
            .as_ref()
            .map_or_else(|| path.clone().into_owned(), |part| format!("{path}#{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading the file again for each of its chats would take hours for a long history.
    #[test]
    fn a_history_of_many_chats_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(files::AIDER);
        let chat = |number| {
            format!("\n# aider chat started at 2026-02-01 20:36:45\n\n#### q{number}\n\nyes\n")
        };
        std::fs::write(&path, (0..5_000).map(chat).collect::<String>()).unwrap();
        let all = sources(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(all.len(), 5_000);
        let names: std::collections::HashSet<String> =
            all.iter().map(|source| source.name(&source.open().unwrap())).collect();
        assert_eq!(names.len(), 5_000, "each chat has a name of its own");
    }
}
