//! Finds and opens files that other programs may still be writing, to read them piece by piece.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use serde::de::IgnoredAny;

use super::FileError;
use super::read::{DEFAULT_MAX_FILE_BYTES, load, open, refused, size_of_regular};

/// Maximum size of a recording in bytes.
pub const LARGEST_RECORDING: u64 = 4 << 30;
/// Maximum size in bytes of a recording that is read as a whole: one with several sessions in a
/// file, or one that several files hold.
pub const LARGEST_WHOLE: u64 = 256 << 20;
/// Maximum number of files that are taken from one folder and the folders in it.
pub const MOST_RECORDINGS: usize = 20_000;
/// Maximum depth of folders that are searched for recordings.
const DEEPEST: usize = 12;
/// Number of bytes at the beginning of a file, and before an offset, from which the file is
/// recognized.
const END_BYTES: u64 = 4096;
/// Size of the buffer for reading.
const BUFFER: usize = 256 << 10;

/// An open file of which a part may have been read before, or a text that was taken from files.
pub struct Recording {
    content: RecordingContent,
    path: PathBuf,
    bytes: u64,
}

enum RecordingContent {
    File(File),
    Text(String),
}

impl Recording {
    /// Opens a regular file, under its real name.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = open(path, LARGEST_RECORDING)?;
        let bytes = size_of_regular(path, file.metadata())?;
        let path = path.canonicalize().map_err(|error| refused(path, error))?;
        Ok(Self { content: RecordingContent::File(file), path, bytes })
    }

    /// Returns a recording of which the file at `path` holds a part.
    pub fn of_text(path: PathBuf, text: String) -> Self {
        let bytes = text.len() as u64;
        Self { content: RecordingContent::Text(text), path, bytes }
    }

    /// Returns the file's real name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's size when it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a hash of the file's beginning and of the bytes before `offset`, which stays the
    /// same as long as the file changes only after `offset`.
    pub fn ends(&self, offset: u64) -> Result<String, FileError> {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = vec![0; usize::try_from(offset.min(END_BYTES)).unwrap_or(0)];
        // Reading at an offset does not move the position of a reader of the file.
        for start in [0, offset - bytes.len() as u64] {
            match &self.content {
                RecordingContent::File(file) => file
                    .read_exact_at(&mut bytes, start)
                    .map_err(|error| refused(&self.path, error))?,
                RecordingContent::Text(text) => {
                    let start = usize::try_from(start).unwrap_or(usize::MAX);
                    let part = text.as_bytes().get(start..).unwrap_or_default();
                    bytes.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
                }
            }
            hasher.update(&bytes);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Returns the content from `offset` to the end that the file had when it was opened.
    pub fn from(&self, offset: u64) -> Result<Box<dyn BufRead + '_>, FileError> {
        Ok(match &self.content {
            RecordingContent::File(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(offset)).map_err(|error| refused(&self.path, error))?;
                let part = file.take(self.bytes.saturating_sub(offset));
                Box::new(BufReader::with_capacity(BUFFER, part))
            }
            RecordingContent::Text(text) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                Box::new(text.as_bytes().get(start..).unwrap_or_default())
            }
        })
    }

    /// Returns whether a JSON file begins like a recording.
    pub fn may_be_session(&self) -> Result<bool, FileError> {
        let mut beginning = Vec::new();
        let read = self.from(0)?.take(PEEKED).read_to_end(&mut beginning);
        read.map_err(|error| refused(&self.path, error))?;
        let has = |sign: &&str| memchr::memmem::find(&beginning, sign.as_bytes()).is_some();
        Ok(SIGNS.iter().any(has))
    }
}

/// Members of which one stands near the beginning of every recording in JSON.
const SIGNS: &[&str] = &["\"projectHash\"", "\"messages\"", "\"role\"", "\"items\""];
/// Number of bytes at the beginning of a JSON file that are searched for them.
const PEEKED: u64 = 64 << 10;

/// Returns `path` if it is a file. If `path` is a folder, returns the files in it, and in folders
/// below it, that may be recordings, sorted by name. Does not follow links in the folder.
///
/// # Errors
/// [`FileError`] for a path that is missing, or neither a file nor a folder.
pub fn recordings(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    match size_of_regular(path, path.metadata()) {
        Ok(_) => return Ok(vec![path.to_owned()]),
        Err(FileError::IsDirectory { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut walk = WalkBuilder::new(path);
    walk.standard_filters(false).follow_links(false).max_depth(Some(DEEPEST));
    walk.sort_by_file_name(std::ffi::OsStr::cmp);
    let entries = walk.build().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = files.map(ignore::DirEntry::into_path).filter(|path| may_be_recording(path));
    Ok(paths.take(MOST_RECORDINGS).collect())
}

fn may_be_recording(path: &Path) -> bool {
    let is_below = |name: &str| path.ancestors().skip(1).any(|folder| folder.ends_with(name));
    match path.extension().and_then(|end| end.to_str()) {
        Some("jsonl" | "md") => true,
        // The rest of what OpenCode stores belongs to its sessions.
        Some("json") => !is_below("storage") || is_below("storage/session"),
        Some("txt") => is_below("agent-transcripts"),
        Some("db") => path.file_name().is_some_and(|name| name == "opencode.db"),
        _ => false,
    }
}

/// Returns the project that the place of a recording tells: the folder that contains `.specstory`
/// or aider's history, the folder that Gemini CLI notes beside its chats, or the folder after which
/// Cursor names the folder of a transcript.
pub fn project_of_history(path: &Path) -> Option<PathBuf> {
    if path.file_name()? == AIDER {
        return path.parent().map(Path::to_owned);
    }
    let folder = |name: &str| path.ancestors().skip(1).find(|folder| folder.ends_with(name));
    if let Some(folder) = folder(".specstory") {
        return folder.parent().map(Path::to_owned);
    }
    if let Some(chats) = folder("chats") {
        let noted = load(&chats.parent()?.join(".project_root"), DEFAULT_MAX_FILE_BYTES).ok()?;
        return Some(PathBuf::from(noted.trim()));
    }
    let project = folder("agent-transcripts")?.parent()?.file_name()?.to_str()?;
    undashed(Path::new("/"), project, &mut MOST_LOOKED_AT.clone())
}

/// Name of aider's history.
pub const AIDER: &str = ".aider.chat.history.md";
/// Maximum number of folders that are looked at to find the one after which another is named.
const MOST_LOOKED_AT: usize = 20_000;

/// Finds the folder below `folder` whose path, with a dash for each character other than letters and
/// digits, is `name`.
fn undashed(folder: &Path, name: &str, left: &mut usize) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.filter_map(Result::ok) {
        *left = left.checked_sub(1)?;
        let own = entry.file_name();
        let own = own.to_string_lossy();
        let dashed = own.replace(|it: char| !it.is_ascii_alphanumeric(), "-");
        let Some(rest) = name.strip_prefix(dashed.trim_matches('-')) else { continue };
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let found = match rest.strip_prefix('-') {
            _ if !is_folder => None,
            None if rest.is_empty() => Some(path),
            None => None,
            Some(rest) => undashed(&path, rest.trim_start_matches('-'), left),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Reads a whole recording that holds several sessions.
///
/// # Errors
/// Same as [`read`](super::read()).
pub fn whole_recording(path: &Path) -> Result<String, FileError> {
    load(path, LARGEST_WHOLE)
}

/// Returns a session of OpenCode in the form of an export. The file `path` has the facts of the
/// session; OpenCode keeps the messages and their parts in other files. Returns `None` if the file
/// holds no such facts. Leaves out what cannot be read.
///
/// # Errors
/// [`FileError::TooLarge`] if the files together are.
pub fn opencode_session(path: &Path) -> Result<Option<String>, FileError> {
    let Some(places) = OpencodePlaces::of(path) else { return Ok(None) };
    let mut bytes = 0;
    let mut text = |file: &Path| match load(file, LARGEST_WHOLE - bytes) {
        // Each text becomes a part of another, so that it must be whole by itself.
        Ok(text) => {
            bytes += text.len() as u64;
            Ok(Some(text).filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok()))
        }
        Err(FileError::TooLarge { bytes: more, .. }) => Err(FileError::TooLarge {
            path: path.to_owned(),
            bytes: bytes.saturating_add(more),
            limit: LARGEST_WHOLE,
        }),
        Err(_) => Ok(None),
    };
    let Some(info) = text(path)? else { return Ok(None) };
    let session = found(&places.messages, &info, path);
    let parts_of = if places.is_early { found(&places.parts, &info, path) } else { places.parts };
    let mut all = Vec::new();
    for message in json_files(&session) {
        let Some(info) = text(&message)? else { continue };
        let files = json_files(&found(&parts_of, &info, &message));
        let parts = files.iter().map(|part| text(part)).filter_map(Result::transpose);
        let parts = parts.collect::<Result<Vec<_>, _>>()?.join(",");
        all.push(format!("{{\"info\":{info},\"parts\":[{parts}]}}"));
    }
    Ok(Some(format!("{{\"info\":{info},\"messages\":[{}]}}", all.join(","))))
}

/// The folders below which OpenCode keeps the messages of a session, and their parts.
struct OpencodePlaces {
    messages: PathBuf,
    parts: PathBuf,
    /// True if the parts are below a folder for each session.
    is_early: bool,
}

impl OpencodePlaces {
    /// Returns the folders for the session in the file `path`; `None` if the file is at another place.
    fn of(path: &Path) -> Option<Self> {
        let parent = path.parent()?;
        // Before August 2025, all was below `session`, and the facts in `session/info`.
        let is_early = parent.ends_with("session/info");
        let all = match is_early {
            true => parent.parent()?,
            false => parent.parent().filter(|it| it.ends_with("storage/session"))?.parent()?,
        };
        Some(Self { messages: all.join("message"), parts: all.join("part"), is_early })
    }
}

/// Returns the folder in `folder` that is named after the id in the text of a file, or else after the
/// file.
fn found(folder: &Path, text: &str, file: &Path) -> PathBuf {
    #[derive(serde::Deserialize)]
    struct NamedRecording {
        id: String,
    }
    let named = serde_json::from_str(text).ok().map(|NamedRecording { id }| id);
    // An id may be anything, but no way out of the folder.
    let named = named.filter(|id| !id.contains(['/', '\\']) && !id.starts_with('.'));
    let own = named.map(|id| folder.join(id)).filter(|own| own.is_dir());
    own.unwrap_or_else(|| folder.join(file.file_stem().unwrap_or_default()))
}

/// Returns the JSON files in a folder, sorted by name, which is their age. Follows no links.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let paths = files.map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grew_has_the_same_ends_and_another_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let ends = Recording::open(&path).unwrap().ends(8).unwrap();
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let grown = Recording::open(&path).unwrap();
        assert_eq!(grown.ends(8).unwrap(), ends);
        let mut rest = String::new();
        grown.from(8).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "three\n");
        std::fs::write(&path, "one\ntoo\nthree\n").unwrap();
        assert_ne!(Recording::open(&path).unwrap().ends(8).unwrap(), ends);
    }

    #[test]
    fn what_cannot_be_read_of_a_session_in_several_files_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join("storage").join(name);
        for (name, text) in [
            ("session/p/ses_1.json", "{\"id\":1}"),
            ("message/ses_1/msg_1.json", "{\"id\":2}"),
            ("part/msg_1/a.json", "{\"id\":3}"),
            ("session/p/copy.json", "{\"id\":\"ses_1\"}"),
            ("session/p/out.json", "{\"id\":\"../chats\"}"),
            ("chats/chats/s.json", "{}"),
            ("message/ses_1/msg_4.json", "{\"id\":4},\"parts\":[]},{\"info\":{\"id\":5}"),
            ("part/msg_1/f.json", "{\"id\":6},{\"id\":7}"),
        ] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        }
        for pipe in ["message/ses_1/msg_2.json", "part/msg_1/b.json", "chats/.project_root"] {
            crate::system::make_fifo(at(pipe));
        }
        for (target, link) in [
            ("/dev/zero".into(), "part/msg_1/c.json"),
            (at("chats/chats/s.json"), "part/msg_1/e.json"),
            (at("chats/chats/s.json"), "message/ses_1/msg_3.json"),
        ] {
            std::os::unix::fs::symlink(target, at(link)).unwrap();
        }
        let session = at("session/p/ses_1.json");
        let expected = r#"{"info":{"id":1},"messages":[{"info":{"id":2},"parts":[{"id":3}]}]}"#;
        assert_eq!(opencode_session(&session).unwrap().as_deref(), Some(expected));
        let copy = opencode_session(&at("session/p/copy.json")).unwrap().unwrap();
        assert_eq!(copy, expected.replacen('1', "\"ses_1\"", 1), "found by the id in the file");
        let out = opencode_session(&at("session/p/out.json")).unwrap().unwrap();
        assert!(out.ends_with("\"messages\":[]}"), "{out}");
        assert_eq!(project_of_history(&at("chats/chats/s.json")), None);
        let large = File::create(at("part/msg_1/d.json")).unwrap();
        large.set_len(LARGEST_WHOLE).unwrap();
        assert_eq!(opencode_session(&session).unwrap_err().kind(), "file-too-large");
    }

    #[test]
    fn only_regular_files_that_may_be_recordings_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join(".specstory/history");
        std::fs::create_dir_all(&inner).unwrap();
        for name in ["b.md", "a.jsonl", "c.txt"] {
            std::fs::write(inner.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(inner.join("a.jsonl"), inner.join("link.jsonl")).unwrap();
        let fifo = inner.join("pipe.jsonl");
        crate::system::make_fifo(&fifo);
        let found = recordings(folder.path()).unwrap();
        assert_eq!(found, [inner.join("a.jsonl"), inner.join("b.md")]);
        assert_eq!(project_of_history(&found[1]).as_deref(), Some(folder.path()));
        assert_eq!(
            Recording::open(&fifo).err().map(|error| error.kind()),
            Some("not-a-regular-file")
        );
        assert!(recordings(&folder.path().join("none")).is_err());
    }
}
