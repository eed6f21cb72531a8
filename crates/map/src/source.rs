//! What the map asks of the outside: files, and Git.

/// A file that a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkedFile {
    /// Path from the root, with slashes.
    pub path: String,
    /// What tells without reading whether the file is still the same.
    pub stamp: FileStamp,
}

/// What the file system says of a file. Files with different stamps may still be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileStamp {
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change of the content, in nanoseconds.
    pub modified: i64,
    /// Time of the last change of content or attributes, in nanoseconds.
    pub changed: i64,
    /// Number of the file in its file system.
    pub inode: u64,
}

/// What reading a file gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// The file is no text.
    Binary,
    /// The file may hold secrets.
    Secret,
    /// The file is too large.
    TooLarge,
    /// The file cannot be read, or leads out of the project.
    Unreadable,
    /// The file is gone.
    Gone,
}

/// A project: its files as they are on disk, and its history.
pub trait MapSource: Sync {
    /// Lists the files of the project.
    ///
    /// # Errors
    /// The reason why there is no list, for people.
    fn files(&self) -> Result<Vec<WalkedFile>, String>;

    /// Reads a file that [`MapSource::files`] listed.
    fn read(&self, path: &str) -> Content;

    /// Returns the time in nanoseconds, by the clock of the file system's times.
    fn now(&self) -> i64;

    /// Runs Git in the project with `arguments` and `input`, and returns what it printed; `None` if there
    /// is no Git, no repository, or no answer.
    fn git(&self, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>>;

    /// Returns true if nobody waits for the map any more.
    fn is_cancelled(&self) -> bool {
        false
    }
}
