//! Memories that a team keeps in its repository: one file each, so that they merge. What is in them
//! comes from outside: it is read within bounds, and says where it is from.

use std::io;
use std::path::{Path, PathBuf};

use super::read::{load_open, refused};
use super::{Beneath, FileError};
use crate::system::Folder;

/// Folder in a project that holds its memories.
const MEMORIES: &str = ".contexture/memories";
/// Maximum number of files that are read.
const MOST_FILES: usize = 200;
/// Maximum size of a file, in bytes.
const LARGEST: u64 = 16 << 10;
/// Number of words of a memory that make the name of its file.
const WORDS: usize = 6;
/// Maximum number of files that begin with the same words.
const MOST_ALIKE: usize = 100;
/// Line before and after the front matter.
const FENCE: &str = "---";

/// Returns the memories in a project, each with the file that it is from, sorted by their files.
/// Files that are too large, or are no text, or lead outside of the project are left out.
pub fn memories(project: &Path) -> Vec<String> {
    let folder = Path::new(MEMORIES);
    let Ok(project) = Beneath::new(project) else { return Vec::new() };
    let Ok(mut names) = project.names(folder, MOST_FILES) else { return Vec::new() };
    names.sort();
    let read = |name: &String| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
        let is_one = name.ends_with(".md") && !name.starts_with('.') && name.chars().all(is_plain);
        let opened = project.open(&folder.join(name)).ok().filter(|_| is_one)?;
        let text = opened.text(LARGEST).ok()?;
        let body = body(&text).trim();
        (!body.is_empty()).then(|| format!("[{MEMORIES}/{name}] {body}"))
    };
    names.iter().filter_map(read).collect()
}

/// Returns what follows the front matter.
fn body(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        at += line.len();
        let is_fence = line.trim_end() == FENCE;
        match (number, is_fence) {
            (0, false) => return text,
            (1.., true) => return &text[at..],
            _ => {}
        }
    }
    text
}

/// Writes a memory into a project and returns its file. A memory that is there already is not
/// written again.
///
/// # Errors
/// [`FileError`] if the folder leads outside of the project, or the file cannot be written.
pub fn write_memory(project: &Path, content: &str, kind: &str) -> Result<PathBuf, FileError> {
    let failed =
        |path: &Path, source: io::Error| FileError::Unreadable { path: path.to_owned(), source };
    let root = Beneath::new(project)?.place()?;
    let mut folder = Folder::at(&root).map_err(|error| refused(&root, error))?;
    let mut place = root.clone();
    for part in MEMORIES.split('/') {
        place.push(part);
        let below = folder.below(part).map_err(|error| failed(&place, error))?;
        // A link could lead anywhere.
        folder = below
            .ok_or_else(|| FileError::Outside { path: place.clone(), folder: root.clone() })?;
    }
    let text = format!("{FENCE}\nkind: {kind}\n{FENCE}\n{}\n", content.trim());
    let words = content.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.take(WORDS).map(str::to_lowercase).collect();
    let stem: String = words.join("-").chars().take(60).collect();
    let stem = if stem.is_empty() { "memory".to_owned() } else { stem };
    for number in 1..=MOST_ALIKE {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{stem}{number}.md");
        let path = place.join(&name);
        match folder.open(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let written = folder.replace(&name, text.as_bytes());
                return written.map(|()| path.clone()).map_err(|error| failed(&path, error));
            }
            Err(_) => {}
            // The same text needs no second file.
            Ok(file) => {
                let old = load_open(&path, file, LARGEST);
                if old.is_ok_and(|old| body(&old).trim() == content.trim()) {
                    return Ok(path);
                }
            }
        }
    }
    let full = io::Error::other("there are too many memories with this beginning");
    Err(failed(&place, full))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn memories_are_read_within_bounds_and_say_where_they_are_from() {
        let temp = tempfile::tempdir().unwrap();
        assert!(memories(temp.path()).is_empty());
        let folder = temp.path().join(MEMORIES);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.md"), "---\nkind: note\n---\nuse tabs\n").unwrap();
        fs::write(folder.join("b.md"), "plain\n---\nstill").unwrap();
        fs::write(folder.join("c.md"), "---\nnever closed").unwrap();
        fs::write(folder.join("d.md"), "x".repeat(20 << 10)).unwrap();
        fs::write(folder.join("e.md"), b"\xff\xfe").unwrap();
        fs::write(folder.join("f.txt"), "other").unwrap();
        fs::write(folder.join("g\u{202e}.md"), "hidden").unwrap();
        fs::write(folder.join("h.md"), "---\n---\n \n").unwrap();
        fs::write(temp.path().join("secret"), "outside").unwrap();
        symlink("/etc/hostname", folder.join("i.md")).unwrap();
        let read = memories(temp.path());
        let expected = [
            "[.contexture/memories/a.md] use tabs",
            "[.contexture/memories/b.md] plain\n---\nstill",
            "[.contexture/memories/c.md] ---\nnever closed",
        ];
        assert_eq!(read, expected);
        for number in 0..300 {
            fs::write(folder.join(format!("n{number}.md")), "many").unwrap();
        }
        assert!(memories(temp.path()).len() <= MOST_FILES);
    }

    #[test]
    fn a_memory_is_written_once_and_never_outside() {
        let temp = tempfile::tempdir().unwrap();
        let path = write_memory(temp.path(), "Use tabs, never spaces!", "note").unwrap();
        assert!(path.ends_with(".contexture/memories/use-tabs-never-spaces.md"), "{path:?}");
        assert_eq!(write_memory(temp.path(), "Use tabs, never spaces!", "note").unwrap(), path);
        let other = write_memory(temp.path(), "use tabs never spaces", "note").unwrap();
        assert!(other.ends_with("use-tabs-never-spaces-2.md"));
        assert_eq!(memories(temp.path()).len(), 2);
        let (hostile, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), hostile.path().join(".contexture")).unwrap();
        assert!(matches!(
            write_memory(hostile.path(), "x", "note"),
            Err(FileError::Outside { .. })
        ));
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
        let (project, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| project.path().join(name);
        fs::create_dir_all(elsewhere.path().join("memories")).unwrap();
        symlink(elsewhere.path(), at("link")).unwrap();
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    let _ = fs::rename(at(".contexture"), at("real"));
                    let _ = fs::rename(at("link"), at(".contexture"));
                    let _ = fs::rename(at(".contexture"), at("link"));
                    let _ = fs::rename(at("real"), at(".contexture"));
                }
            });
            for number in 0..2_000 {
                let _ = write_memory(project.path(), &format!("number {number}"), "note");
            }
            has_ended.store(true, Ordering::Relaxed);
        });
        let outside = fs::read_dir(elsewhere.path().join("memories")).unwrap().count();
        assert_eq!(outside, 0, "memories were written through a link");
    }
}
