//! Errors from reading files and walking trees. Must not know who asked.

use std::io;
use std::path::PathBuf;

/// Error from reading a file. Each variant has a kind in the protocol. The messages say what
/// to do next; most name the path, quoted and escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is nothing at this path.
    #[error("{path:?} does not exist; check the name")]
    Missing {
        /// Requested path.
        path: PathBuf,
    },
    /// The file exists, but cannot be read.
    #[error(
        "cannot read {path:?}: {source}; check its name and permissions, or send the text with add-item"
    )]
    Unreadable {
        /// Requested path.
        path: PathBuf,
        /// Reason why it cannot be read.
        source: io::Error,
    },
    /// The file is not UTF-8 text.
    #[error("{path:?} is {sign} at offset {offset}; send text with add-item instead")]
    Binary {
        /// Requested path.
        path: PathBuf,
        /// Evidence that the file is not UTF-8 text, in words.
        sign: &'static str,
        /// Offset of the first byte that is not text, counted from 0.
        offset: u64,
    },
    /// The file begins like a picture or a PDF, but is not a whole one.
    #[error("{path:?} is not a complete PNG, JPEG, GIF, WebP or PDF")]
    BrokenPicture {
        /// Requested path.
        path: PathBuf,
    },
    /// The picture is wider or higher than the limit.
    #[error(
        "{path:?} has {width} × {height} pixels, but a picture has at most {limit} a side; make it smaller"
    )]
    TooManyPixels {
        /// Requested path.
        path: PathBuf,
        /// Width in pixels.
        width: u64,
        /// Height in pixels.
        height: u64,
        /// Limit for each side in pixels.
        limit: u64,
    },
    /// The file is larger than the limit.
    #[error(
        "{path:?} has {bytes} bytes, but the limit is {limit}; raise it with the option max-file-bytes, or send a part with add-item"
    )]
    TooLarge {
        /// Requested path.
        path: PathBuf,
        /// Size of the file; for a file that grows while it is read, the bytes seen so far.
        bytes: u64,
        /// Limit in bytes, [`ReadOptions::max_bytes`](super::ReadOptions::max_bytes).
        limit: u64,
    },
    /// The path is a directory, not a file.
    #[error("{path:?} is a directory; add it with add-tree")]
    IsDirectory {
        /// Requested path.
        path: PathBuf,
    },
    /// The path leads to a FIFO, a socket or a device, which is never opened, because opening it
    /// may block for ever.
    #[error("{path:?} is a {what}, not a regular file; send its text with add-item")]
    NotRegular {
        /// Requested path.
        path: PathBuf,
        /// `FIFO`, `socket`, `device` or `special file`.
        what: &'static str,
    },
    /// The range begins or ends after the last line.
    #[error(
        "{path:?} has {}, so the range {} goes past its end; {}",
        lines(*total_lines),
        range(*start, *end),
        instead(*total_lines)
    )]
    PastEnd {
        /// Requested path.
        path: PathBuf,
        /// First line requested.
        start: u64,
        /// Last line requested; `None` for the rest of the file.
        end: Option<u64>,
        /// Number of lines in the file.
        total_lines: u64,
    },
    /// The range is impossible in any file.
    #[error("{} is not a range of lines; lines are counted from 1, and the end must not be before the start", range(*start, *end))]
    BadRange {
        /// First line requested.
        start: u64,
        /// Last line requested, if any.
        end: Option<u64>,
    },
    /// The path leads outside the folder that it must stay in, or cannot be resolved there.
    #[error("{path:?} leads outside {folder:?}; name a file in that folder")]
    Outside {
        /// Name as it was given.
        path: PathBuf,
        /// Folder that the path must stay in.
        folder: PathBuf,
    },
    /// The file usually holds secrets, so it is not read for agents.
    #[error(
        "{path:?} may hold passwords, keys or tokens, so it is not read; ask the user to mark it in the editor, and read the item"
    )]
    Secret {
        /// Path of the file.
        path: PathBuf,
    },
    /// The path is relative, so it could mean different files to client and server.
    #[error("file names must begin with / or ~/, got {path:?}; expand the name first")]
    NotAbsolute {
        /// Name as it was given.
        path: String,
    },
    /// Only Emacs can open the name, such as `/ssh:host:/x`.
    #[error("{path:?} is on another machine; send its text with add-item")]
    NotLocal {
        /// Name as it was given.
        path: String,
    },
}

/// Error from walking a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The root, or an ignore file that applies to it, cannot be read.
    #[error(transparent)]
    Root(#[from] FileError),
    /// The progress callback asked to stop.
    #[error("walking {path:?} was cancelled")]
    Cancelled { path: PathBuf },
    /// The tree has too many entries.
    #[error(
        "{path:?} has more than {limit} entries; add a folder inside it, or ignore some in a .ignore file"
    )]
    TooManyEntries { path: PathBuf, limit: u64 },
}

impl FileError {
    /// Returns the kind of this error in the protocol.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "file-missing",
            Self::Unreadable { .. } => "file-unreadable",
            Self::Binary { .. } | Self::BrokenPicture { .. } => "file-binary",
            Self::TooLarge { .. } | Self::TooManyPixels { .. } => "file-too-large",
            Self::IsDirectory { .. } => "is-a-directory",
            Self::NotRegular { .. } => "not-a-regular-file",
            Self::PastEnd { .. } => "past-end",
            Self::BadRange { .. } => "bad-range",
            Self::NotAbsolute { .. } => "not-absolute",
            Self::Outside { .. } => "outside-folder",
            Self::NotLocal { .. } => "not-local",
            Self::Secret { .. } => "holds-secrets",
        }
    }

    /// Returns the problem in words that call the file "it" and give no advice, for the errors of
    /// files that the program itself reads.
    pub fn problem(&self) -> String {
        match self {
            Self::Missing { .. } => "it does not exist".to_owned(),
            Self::Unreadable { source, .. } => source.to_string(),
            Self::Binary { .. } => "it is not UTF-8 text".to_owned(),
            Self::BrokenPicture { .. } => "it is not a complete picture or PDF".to_owned(),
            Self::TooLarge { limit, .. } => format!("it has more than {limit} bytes"),
            Self::IsDirectory { .. } | Self::NotRegular { .. } => "it is not a regular file".into(),
            Self::Outside { folder, .. } => format!("it leads outside {folder:?}"),
            other => other.to_string(),
        }
    }
}

impl TreeError {
    /// Returns the kind of this error in the protocol.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Root(error) => error.kind(),
            Self::Cancelled { .. } => "cancelled",
            Self::TooManyEntries { .. } => "tree-too-large",
        }
    }
}

fn lines(count: u64) -> String {
    match count {
        0 => "no lines".to_owned(),
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

/// Says which lines to ask for in a file with this number of lines.
fn instead(total_lines: u64) -> &'static str {
    match total_lines {
        0 => "ask for the whole file",
        _ => "ask for lines within the file",
    }
}

fn range(start: u64, end: Option<u64>) -> String {
    match end {
        Some(end) if end == start => start.to_string(),
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
    fn a_problem_has_neither_the_path_nor_advice() {
        let (path, folder) = (PathBuf::from("/p/a"), PathBuf::from("/p"));
        let outside = FileError::Outside { path: path.clone(), folder };
        assert_eq!(outside.problem(), r#"it leads outside "/p""#);
        assert_eq!(FileError::IsDirectory { path }.problem(), "it is not a regular file");
    }

    #[test]
    fn messages_name_the_path_and_the_next_step() {
        let path = || PathBuf::from("/a\nb");
        check(
            &FileError::Missing { path: path() },
            "file-missing",
            r#""/a\nb" does not exist; check the name"#,
        );
        check(
            &FileError::TooLarge { path: path(), bytes: 9, limit: 8 },
            "file-too-large",
            r#""/a\nb" has 9 bytes, but the limit is 8; raise it with the option max-file-bytes, or send a part with add-item"#,
        );
        check(
            &FileError::Binary { path: path(), sign: "binary: it has a NUL byte", offset: 3 },
            "file-binary",
            r#""/a\nb" is binary: it has a NUL byte at offset 3; send text with add-item instead"#,
        );
        check(
            &FileError::PastEnd { path: path(), start: 4, end: Some(9), total_lines: 5 },
            "past-end",
            r#""/a\nb" has 5 lines, so the range 4-9 goes past its end; ask for lines within the file"#,
        );
        check(
            &FileError::BadRange { start: 0, end: None },
            "bad-range",
            "0- is not a range of lines; lines are counted from 1, and the end must not be before the start",
        );
    }
}
