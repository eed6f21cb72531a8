//! Compares an item with its file, and returns the item's new text or place. Never guesses. Must
//! not change the item: the caller makes the new version.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::follow::{self, Anchor, Searched, TextMatch, WantedText};
use super::freshness::{Look, MAX_COMPARED_BYTES, cover, file_of, holds_at, settled};
use super::lines::{self, Cover, TextFound};
use super::moved::{Inode, moved};
use super::project::project_root;
use super::renamed::Renamings;
use super::{Beneath, FileError, FileText, OpenedFile, ReadOptions, holds_secrets};
use crate::context::item::{ANCHOR, Item, Kind, Metadata, Origin, State};
use crate::context::language;
use crate::value::Value;

/// Name of the metadata entry for the folder that the file of an item must stay in. Set on items
/// that a model added from a project.
pub const WITHIN: &str = "within";

/// Name of the metadata entry that is set if the path of an item's file led outside the file's
/// project when the item was added.
const LEADS_OUT: &str = "leads-out";

/// Reason why an item is stale: its file has changed, and is not in UTF-8.
const NOT_UTF8: &str = "its file has changed, and is not UTF-8 text: only an editor can read it";

/// Result of refreshing an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refreshed {
    /// The item has no file, or still matches its file. This is also the result for a listing whose
    /// folder exists; [`walk`](super::walk) and [`listing`](super::listing()) make a new listing.
    Unchanged,
    /// The whole file was read again.
    Updated(FileText),
    /// The item's text is unchanged but now on these lines.
    Moved {
        /// First line, counted from 1.
        start_line: u64,
        /// Last line, included.
        end_line: u64,
    },
    /// The text of a live item was found.
    Followed(Followed),
    /// The place or the new content of the item's text is unknown, for the given reason. The item
    /// keeps its text and is stale.
    Unsure(&'static str),
    /// The file is gone.
    Missing,
}

/// The current text of a live item in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// New text; `None` if the text is unchanged.
    pub text: Option<String>,
    /// First and last line of the text.
    pub lines: (u64, u64),
    /// Lines around the text, with which the text can be found again.
    pub anchor: Anchor,
    /// Way in which the text was found.
    pub found: follow::Found,
}

/// A reader of files. It keeps the text of the last file, both as it is and prepared for searches,
/// the last answer about a renamed file, and what Git said of renamings.
#[derive(Default)]
pub struct FileReader {
    last: Option<Last>,
    searched: Option<Searched>,
    renamed: Option<(PathBuf, Vec<PathBuf>)>,
    renamings: Renamings,
    /// The file that is read under its name, whatever has the name by now.
    held: Option<(PathBuf, OpenedFile)>,
    /// Inode that the file of the next item had, if known.
    pub inode: Option<Inode>,
}

/// The text of the last file.
struct Last {
    path: PathBuf,
    /// The folder that it was kept in when it was opened.
    folder: Option<PathBuf>,
    text: String,
}

impl FileReader {
    fn load(&mut self, item: &Item, path: &Path, max_bytes: u64) -> Result<&str, FileError> {
        let folder = kept_in(item, path);
        let is_last = |last: &Last| last.path == path && last.folder.as_deref() == folder;
        if !self.last.as_ref().is_some_and(is_last) {
            (self.last, self.searched) = (None, None);
            let text = self.read(folder, path, |file| file.text(max_bytes))?;
            let folder = folder.map(Path::to_owned);
            self.last = Some(Last { path: path.to_owned(), folder, text });
        }
        Ok(self.last.as_ref().map_or("", |last| &last.text))
    }

    /// Opens a file and reads it.
    fn read<T>(
        &self,
        folder: Option<&Path>,
        path: &Path,
        read: impl FnOnce(&OpenedFile) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        match self.held.as_ref().filter(|(name, _)| name == path) {
            Some((_, held)) => read(held),
            None => read(&opened(folder, path, path)?),
        }
    }

    /// Returns the last file, prepared to be searched for an item.
    fn searched(&mut self, item: &Item) -> &Searched {
        let language = language::of_item(item);
        let text = self.last.as_ref().map_or("", |last| &last.text);
        let last = self.searched.take().filter(|last| last.language() == language);
        self.searched.insert(last.unwrap_or_else(|| Searched::new(text, &language)))
    }

    /// Returns the anchor of an item whose text is on its lines of its file now; `None` if the file
    /// does not have the text there, or cannot be read.
    pub fn anchor(&mut self, item: &Item, options: &ReadOptions) -> Option<Value> {
        let (path, range) = (file_of(item)?, item.metadata.lines()?);
        self.load(item, &path, options.max_bytes.max(MAX_COMPARED_BYTES)).ok()?;
        let file = self.searched(item);
        holds_at(item, file.text(), range)
            .then(|| made_anchor(item, file, range))?
            .map(|it| it.value())
    }

    /// Returns the files that an item's file, which is gone, may be now. The likeliest comes first:
    /// the file with its inode, then those with the names that it had before, in `former`, then
    /// those that Git knows. A project may name any file. So no name may lead to a secret, out of
    /// the folder that the item is kept in, or out of the folder in which the name was found. Each
    /// returned file is the one that was checked, even if another file gets its name afterwards.
    pub fn renamed(
        &mut self,
        item: &Item,
        path: &Path,
        former: &[PathBuf],
    ) -> Vec<(PathBuf, OpenedFile)> {
        if self.renamed.as_ref().is_none_or(|(last, _)| last != path) {
            self.renamed = Some((path.to_owned(), self.renamings.of(path)));
        }
        let of_git = self.renamed.iter().flat_map(|(_, names)| names);
        let project = item.metadata.text("project").map(Path::new);
        let own = kept_in(item, path).or(project.filter(|project| path.starts_with(project)));
        let above = || path.ancestors().skip(1).find(|folder| folder.is_dir());
        let Some(folder) = own
            .map(Path::to_owned)
            .or_else(|| project_root(path))
            .or_else(|| above().map(Path::to_owned))
        else {
            return Vec::new();
        };
        let moved = self.inode.and_then(|inode| moved(path, project, inode));
        let names = moved.iter().chain(former.iter().rev()).chain(of_git);
        let there = |name: &PathBuf| {
            let file = opened(Some(&folder), name, path).ok()?;
            file.check(u64::MAX).is_ok().then(|| (name.clone(), file))
        };
        names.filter(|name| *name != path).filter_map(there).collect()
    }
}

/// Compares an item with a file that was found under the item's name, as [`refresh`] does.
pub fn refresh_from(
    (name, file): (PathBuf, OpenedFile),
    item: &Item,
    options: &ReadOptions,
    reader: &mut FileReader,
) -> Refreshed {
    (reader.last, reader.held) = (None, Some((name, file)));
    let refreshed = refresh(item, options, reader);
    reader.held = None;
    refreshed
}

/// Compares an item with its file again.
///
/// A fresh item is `Unchanged`. An item that is a whole file is read again, within the size limit
/// of `options`: one without lines whose origin is file, tree or buffer, or that has no origin but
/// the type file. An item with lines is searched for in its file by its exact text, apart from line
/// ends and one final newline: as whole lines, or anywhere if its metadata has `partial` true. If
/// it is in exactly one place, the result is `Moved`; if it is in none or in several, `Unsure`.
/// Files larger than both [`MAX_COMPARED_BYTES`] and the limit of `options` are not searched.
///
/// A live item is always compared. If a live item has lines and is not `partial`, its text is also
/// found after edits, as far as [`follow::locate`] is certain.
pub fn refresh(item: &Item, options: &ReadOptions, reader: &mut FileReader) -> Refreshed {
    let Some(path) = file_of(item) else { return Refreshed::Unchanged };
    let look = Look::at(&path);
    match settled(item, look) {
        Some(State::Fresh) if item.live && matches!(look, Look::Changed(_)) => {}
        Some(State::Fresh) => return Refreshed::Unchanged,
        Some(State::Missing) => return Refreshed::Missing,
        Some(State::Stale) => {
            return Refreshed::Unsure("its file is now a folder or cannot be reached");
        }
        None => {}
    }
    let refreshed = compared(item, &path, options, reader);
    // An editor decoded the text, and the file has not changed since.
    let is_as_taken = matches!(look, Look::Changed(at) if at <= item.taken_ms) && is_saved(item);
    match refreshed == Refreshed::Unsure(NOT_UTF8) && item.live && is_as_taken {
        true => Refreshed::Unchanged,
        false => refreshed,
    }
}

/// Returns whether an item has the text of its file, as far as its editor said.
fn is_saved(item: &Item) -> bool {
    !(item.is_unsaved() && item.metadata.is_set("modified"))
}

/// Reads the file of an item and compares them.
fn compared(item: &Item, path: &Path, options: &ReadOptions, reader: &mut FileReader) -> Refreshed {
    let Some(range) = item.metadata.lines() else { return whole(item, path, options, reader) };
    match reader.load(item, path, options.max_bytes.max(MAX_COMPARED_BYTES)) {
        Err(error) => unreadable(&error),
        Ok(_) if item.live => followed(item, reader.searched(item), range),
        Ok(text) => region(item, text, range),
    }
}

/// Finds the lines of a live item. The search starts from the text as it was marked, if its anchor
/// is known.
fn followed(item: &Item, file: &Searched, range: (u64, u64)) -> Refreshed {
    let Some(anchor) = Anchor::of(&item.metadata) else { return first_look(item, file, range) };
    let content = lines::unified(&item.content);
    let marked = anchor.text.as_deref().unwrap_or(&content);
    let (lines, symbol) = (anchor.lines.unwrap_or(range), item.metadata.text("symbol"));
    let wanted = WantedText { text: marked, range: lines, anchor: Some(&anchor), symbol };
    match follow::locate(&wanted, file) {
        TextMatch::Unsure(reason) => Refreshed::Unsure(reason),
        TextMatch::At { start, end, found } => {
            let now = lines::slice(file.text(), start, Some(end)).unwrap_or_default();
            let is_part = cover(item) == Cover::Anything;
            if is_part && !holds_at(item, file.text(), (start, end)) {
                return Refreshed::Unsure("its text is no longer in the file");
            }
            let is_as_marked = !is_part && lines::same(now, marked);
            let anchor = Anchor {
                lines: ((start, end) != lines).then_some(lines),
                text: (!is_as_marked).then(|| marked.to_owned()),
                ..anchor
            };
            let text = (!is_part && !lines::same(now, &content)).then(|| now.to_owned());
            Refreshed::Followed(Followed { text, lines: (start, end), anchor, found })
        }
    }
}

/// Finds the lines of a live item that has no anchor yet, and makes the anchor.
fn first_look(item: &Item, file: &Searched, range: (u64, u64)) -> Refreshed {
    let content = lines::unified(&item.content);
    let place = if holds_at(item, file.text(), range) {
        TextMatch::At { start: range.0, end: range.1, found: follow::Found::Exact }
    } else if cover(item) == Cover::Anything {
        return region(item, file.text(), range);
    } else {
        let symbol = item.metadata.text("symbol");
        follow::locate(&WantedText { text: &content, range, anchor: None, symbol }, file)
    };
    let (start, end, found) = match place {
        TextMatch::Unsure(reason) => return Refreshed::Unsure(reason),
        TextMatch::At { start, end, found } => (start, end, found),
    };
    let now = lines::slice(file.text(), start, Some(end)).unwrap_or_default();
    let is_same = found == follow::Found::Exact || lines::same(now, &content);
    let text = (!is_same).then(|| now.to_owned());
    let anchor = made_anchor(item, file, (start, end)).unwrap_or_default();
    Refreshed::Followed(Followed { text, lines: (start, end), anchor, found })
}

/// Returns the anchor of an item on these lines of its file. A part of lines is found by the whole
/// lines.
fn made_anchor(item: &Item, file: &Searched, lines: (u64, u64)) -> Option<Anchor> {
    let whole = || lines::slice(file.text(), lines.0, Some(lines.1)).map(str::to_owned);
    let text = if cover(item) == Cover::Anything { Some(whole()?) } else { None };
    Some(Anchor { text, ..follow::anchor(file, lines)? })
}

/// Keeps, in the anchor of an item that gets another text, the text and the lines as they were
/// marked.
pub fn keep_marked(old: &Item, new: &mut Item) {
    let Some(anchor) = Anchor::of(&old.metadata) else { return };
    let text = anchor.text.clone().unwrap_or_else(|| old.content.to_string());
    let lines = anchor.lines.or(old.metadata.lines());
    new.metadata.set(ANCHOR, Anchor { text: Some(text), lines, ..anchor }.value());
}

fn whole(item: &Item, path: &Path, options: &ReadOptions, reader: &FileReader) -> Refreshed {
    match reader.read(kept_in(item, path), path, |file| file.read(None, options)) {
        Err(error) => unreadable(&error),
        Ok(text) if lines::same(&text.content, &item.content) => Refreshed::Unchanged,
        Ok(text) if is_whole_file(item) => Refreshed::Updated(text),
        Ok(_) => Refreshed::Unsure("its file has changed, and its lines in the file are not known"),
    }
}

/// Returns the folder that the item's file may not leave: the one set on a model's item, or the
/// project of a file that was in it when the item was added. Anybody who can change a project can
/// replace a file with a link.
fn kept_in<'a>(item: &'a Item, path: &Path) -> Option<&'a Path> {
    let named = |name: &str| item.metadata.text(name).map(Path::new);
    let is_kept = item.metadata.get(LEADS_OUT).is_none();
    let project = || named("project").filter(|project| is_kept && path.starts_with(project));
    named(WITHIN).or_else(project)
}

/// Opens a file that may have replaced the one at `before`: its path may now lead outside `folder`,
/// or to a file with secrets, which were never asked for.
fn opened(folder: Option<&Path>, path: &Path, before: &Path) -> Result<OpenedFile, FileError> {
    let opened = match folder {
        Some(folder) => Beneath::new(folder)?.open(path)?,
        None => OpenedFile::at(path)?,
    };
    match holds_secrets(opened.path()) && !holds_secrets(before) {
        true => Err(FileError::Secret { path: opened.path().to_owned() }),
        false => Ok(opened),
    }
}

/// Notes in an item's metadata whether the path of its file leads outside of its project now, as the
/// user knew when the item was added.
pub fn note_way_out(metadata: &mut Metadata) {
    let named = |name| metadata.text(name).map(Path::new);
    let (project, path) = (named("project"), metadata.filename().map(Path::new));
    let is_out = project.zip(path).is_some_and(|(project, path)| leads_out(project, path));
    match is_out {
        true => metadata.set(LEADS_OUT, Value::Bool(true)),
        false => metadata.remove(LEADS_OUT),
    }
}

/// Returns whether the path of a file in a project leads outside the project.
fn leads_out(project: &Path, path: &Path) -> bool {
    let opened = Beneath::new(project).and_then(|folder| folder.open(path));
    matches!(opened, Err(FileError::Outside { .. }))
}

fn region(item: &Item, text: &str, range: (u64, u64)) -> Refreshed {
    if holds_at(item, text, range) {
        return Refreshed::Unchanged;
    }
    let wanted = lines::unified(&item.content);
    if wanted.is_empty() {
        return Refreshed::Unsure("its text is empty, so it cannot be found again");
    }
    match lines::find(&lines::unified(text), &wanted, cover(item)) {
        TextFound::Once(start_line, end_line) => Refreshed::Moved { start_line, end_line },
        TextFound::Nowhere => Refreshed::Unsure("its text is no longer in the file"),
        TextFound::Several => Refreshed::Unsure("its text is in the file more than once"),
    }
}

/// Returns whether a text may be another version of an older one: most of their lines are the same.
pub fn is_version(now: &str, old: &str) -> bool {
    let lines = |text: &'_ str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let (now, old) = (lines::unified(now), lines::unified(old));
    let kept: HashSet<&str> = old.lines().filter(|line| !line.trim().is_empty()).collect();
    let same = now.lines().filter(|line| kept.contains(line)).count();
    same * 2 >= lines(&now).max(lines(&old))
}

fn is_whole_file(item: &Item) -> bool {
    match item.metadata.origin() {
        Some(Origin::File | Origin::Tree | Origin::Buffer) => true,
        None => item.kind == Kind::File,
        Some(_) => false,
    }
}

fn unreadable(error: &FileError) -> Refreshed {
    Refreshed::Unsure(match error {
        FileError::Missing { .. } => return Refreshed::Missing,
        FileError::Secret { .. } => "its path now leads to a file that may hold secrets",
        FileError::Outside { .. } => "its path now leads outside the folder that it must stay in",
        FileError::TooLarge { .. } => "its file is now over the size limit, max-file-bytes",
        FileError::Binary { .. } => NOT_UTF8,
        _ => "its file can no longer be read",
    })
}

#[cfg(test)]
mod tests;
