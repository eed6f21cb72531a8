//! Why a file or a tree could not be read. It must not know who asked.

use std::io;
use std::path::PathBuf;

/// A file that was not read. Every variant is a kind of its own for the wire; messages name the
/// path, quoted and escaped, and the next step.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing is at this path.
    #[error("there is no file {path:?}; check the name, or save the buffer first")]
    Missing {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// Something is there, but the system refuses to give it.
    #[error(
        "cannot read {path:?}: {source}; check its permissions, or send the text with add-context"
    )]
    Unreadable {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not UTF-8 text.
    #[error("{path:?} is {sign} at byte {offset}; send text with add-context instead")]
    Binary {
        /// The path that was asked for.
        path: PathBuf,
        /// What gave it away.
        sign: BinarySign,
        /// Where, in bytes from the start of the file, counted from 0.
        offset: u64,
    },
    /// The file is larger than the limit in force.
    #[error(
        "{path:?} has {bytes} bytes and the limit is {limit}; raise it with the option max-file-bytes, or send a part with add-context"
    )]
    TooLarge {
        /// The path that was asked for.
        path: PathBuf,
        /// The file's size; for a file that grows while it is read, what had been seen.
        bytes: u64,
        /// The limit, [`ReadOptions::max_bytes`](super::ReadOptions::max_bytes).
        limit: u64,
    },
    /// A directory where a file was asked for.
    #[error("{path:?} is a directory; add it with add-tree")]
    IsDirectory {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// A FIFO, socket or device: opening one may block for ever, so it never happens.
    #[error("{path:?} is a {what}, not a regular file; send its text with add-context")]
    NotRegular {
        /// The path that was asked for.
        path: PathBuf,
        /// `FIFO`, `socket`, `device` or `special file`.
        what: &'static str,
    },
    /// The range ends, or begins, after the last line.
    #[error("{path:?} has {}, so {} is past its end; ask for lines within it", lines(*total_lines), range(*start, *end))]
    PastEnd {
        /// The path that was asked for.
        path: PathBuf,
        /// The first line asked for.
        start: u64,
        /// The last line asked for, or `None` for the rest of the file.
        end: Option<u64>,
        /// How many lines the file has.
        total_lines: u64,
    },
    /// A range that no file can have.
    #[error("{} is no range of lines; lines count from 1 and the end is not before the start", range(*start, *end))]
    BadRange {
        /// The first line asked for.
        start: u64,
        /// The last line asked for, if any.
        end: Option<u64>,
    },
    /// A name that leads out of the folder that it must stay in, or cannot be resolved in it.
    #[error("{path:?} leads out of {folder:?}; only what is in that folder is read")]
    Outside {
        /// The name as it was given.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// A path that means different files to the client and to the server.
    #[error("file names must begin with / or ~/, got {path:?}; expand it first")]
    NotAbsolute {
        /// The name as it was given.
        path: String,
    },
    /// A name that only Emacs can open, such as `/ssh:host:/x`.
    #[error("{path:?} is on another machine; send its text with add-context")]
    NotLocal {
        /// The name as it was given.
        path: String,
    },
}

/// How a file showed that it is not UTF-8 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinarySign {
    /// A NUL byte near the start.
    Nul,
    /// A byte sequence that is not UTF-8.
    NotUtf8,
}

/// A tree that was not walked, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The root itself cannot be read.
    #[error(transparent)]
    Root(#[from] FileError),
    /// The progress callback asked to stop.
    #[error("walking {path:?} was cancelled")]
    Cancelled {
        /// The root of the walk.
        path: PathBuf,
    },
    /// More entries than anybody means to add.
    #[error(
        "{path:?} has more than {limit} entries; add a folder inside it, or ignore some in a .ignore file"
    )]
    TooManyEntries {
        /// The root of the walk.
        path: PathBuf,
        /// The limit in force, in entries.
        limit: u64,
    },
}

impl FileError {
    /// The kind under which the wire reports this error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "file-missing",
            Self::Unreadable { .. } => "file-unreadable",
            Self::Binary { .. } => "file-binary",
            Self::TooLarge { .. } => "file-too-large",
            Self::IsDirectory { .. } => "is-a-directory",
            Self::NotRegular { .. } => "not-a-regular-file",
            Self::PastEnd { .. } => "past-end",
            Self::BadRange { .. } => "bad-range",
            Self::NotAbsolute { .. } => "not-absolute",
            Self::Outside { .. } => "outside-folder",
            Self::NotLocal { .. } => "not-local",
        }
    }
}

impl TreeError {
    /// The kind under which the wire reports this error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Root(error) => error.kind(),
            Self::Cancelled { .. } => "cancelled",
            Self::TooManyEntries { .. } => "tree-too-large",
        }
    }
}

impl std::fmt::Display for BinarySign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nul => "binary, with a NUL byte",
            Self::NotUtf8 => "not UTF-8 text, with an invalid byte",
        })
    }
}

fn lines(count: u64) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

fn range(start: u64, end: Option<u64>) -> String {
    match end {
        Some(end) => format!("{start}-{end}"),
        None => format!("{start}-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &FileError, kind: &str, message: &str) {
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
    }

    #[test]
    fn messages_name_the_path_and_the_next_step() {
        let path = || PathBuf::from("/a\nb");
        check(
            &FileError::Missing { path: path() },
            "file-missing",
            r#"there is no file "/a\nb"; check the name, or save the buffer first"#,
        );
        check(
            &FileError::TooLarge { path: path(), bytes: 9, limit: 8 },
            "file-too-large",
            r#""/a\nb" has 9 bytes and the limit is 8; raise it with the option max-file-bytes, or send a part with add-context"#,
        );
        check(
            &FileError::Binary { path: path(), sign: BinarySign::NotUtf8, offset: 3 },
            "file-binary",
            r#""/a\nb" is not UTF-8 text, with an invalid byte at byte 3; send text with add-context instead"#,
        );
        check(
            &FileError::PastEnd { path: path(), start: 4, end: Some(9), total_lines: 5 },
            "past-end",
            r#""/a\nb" has 5 lines, so 4-9 is past its end; ask for lines within it"#,
        );
        check(
            &FileError::BadRange { start: 0, end: None },
            "bad-range",
            "0- is no range of lines; lines count from 1 and the end is not before the start",
        );
    }
}
