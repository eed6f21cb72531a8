//! Where the recordings are: most are files, some are parts of a file or made of several files.

use std::path::{Path, PathBuf};

use crate::files::{self, FileError, Recording};
use crate::recorded::chats;
use crate::store::opencode;

/// A recording: a file, or one of several in a file.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Which one in the file; `None` if the file is the recording.
    part: Option<String>,
    /// True if the call names the file itself.
    pub(super) is_named: bool,
}

/// Returns the recordings at `path`, a file or folder.
pub(super) fn sources(path: &Path) -> Result<Vec<Source>, FileError> {
    let found = files::recordings(path)?;
    let is_named = found == [path];
    let mut all = Vec::new();
    for path in found {
        let parts: Vec<String> = match () {
            () if is_database(&path) => opencode::ids(&path).unwrap_or_default(),
            () if is_aider(&path) => {
                let chats = chats(&files::whole_recording(&path).unwrap_or_default());
                chats.into_iter().map(|(name, _)| name).collect()
            }
            () => Vec::new(),
        };
        let one = |part| Source { path: path.clone(), part, is_named };
        match parts.is_empty() {
            true => all.push(one(None)),
            false => all.extend(parts.into_iter().map(|part| one(Some(part)))),
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

impl Source {
    /// Opens the recording.
    pub(super) fn open(&self) -> Result<Recording, FileError> {
        let Some(part) = &self.part else {
            return Ok(match files::opencode_session(&self.path)? {
                Some(text) => Recording::of_text(files::true_name(&self.path), text),
                None => Recording::open(&self.path)?,
            });
        };
        let text = match is_database(&self.path) {
            true => opencode::export(&self.path, part).ok().flatten(),
            false => {
                let text = files::whole_recording(&self.path)?;
                chats(&text).into_iter().find(|(name, _)| name == part).map(|(_, chat)| chat)
            }
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
