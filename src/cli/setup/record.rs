//! Records of the entries that were added to a file, so that removing them restores every byte of
//! the file. A record contains no other part of the file.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::edit::Edit;
use crate::store::ownership::make_private;
use crate::whole_file::replace;

/// The record of one file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SetupRecord {
    /// Hash of the text after the set-up; empty if the set-up cannot be undone exactly.
    after: String,
    /// Edit that undoes the set-up in the text whose hash is `after`.
    undo: Edit,
    /// True if the set-up created the file.
    pub(super) is_made: bool,
    /// Number of folders that were created for the file.
    pub(super) folders: usize,
}

impl SetupRecord {
    /// Records `edit`, which turned the text `before` into `after` and only added to it.
    pub(super) fn note(&mut self, before: &str, edit: &Edit, after: &str) {
        self.after = hash(after);
        self.undo = edit.inverse(before);
    }

    /// Forgets the edit, since the file cannot be restored exactly.
    pub(super) fn forget(&mut self) {
        self.after.clear();
        self.undo = Edit::default();
    }

    /// Returns whether the record has nothing that a later removal needs.
    pub(super) fn is_nothing(&self) -> bool {
        self.after.is_empty() && !self.is_made && self.folders == 0
    }

    /// Returns the edit that undoes the set-up; `None` if the text has changed since, or the set-up
    /// cannot be undone exactly.
    pub(super) fn undo(&self, text: &str) -> Option<&Edit> {
        (hash(text) == self.after).then_some(&self.undo)
    }
}

/// The folder of the records; `None` if no state is kept, so that there are no records.
pub(super) struct Records(Option<PathBuf>);

impl Records {
    pub(super) fn below(state: Option<&Path>) -> Self {
        Self(state.map(|state| state.join("setup")))
    }

    pub(super) fn read(&self, file: &Path) -> Option<SetupRecord> {
        serde_json::from_slice(&std::fs::read(self.path(file)?).ok()?).ok()
    }

    pub(super) fn write(&self, file: &Path, record: &SetupRecord) -> anyhow::Result<()> {
        let Some((path, folder)) = self.path(file).zip(self.0.as_deref()) else { return Ok(()) };
        if let Some(state) = folder.parent() {
            make_private(state)?;
        }
        make_private(folder)?;
        let text = serde_json::to_string(record)?;
        replace(&path, |file, _| file.write_all(text.as_bytes()))
            .context("cannot record the change")
    }

    pub(super) fn remove(&self, file: &Path) -> anyhow::Result<()> {
        match self.path(file).map(std::fs::remove_file) {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn path(&self, file: &Path) -> Option<PathBuf> {
        let hash = hash(&file.to_string_lossy());
        Some(self.0.as_ref()?.join(format!("{}.json", &hash[..32])))
    }
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
