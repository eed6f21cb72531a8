//! The map of a repository: the files and definitions that matter for a task, within a budget.
//!
//! An [`Index`] keeps the facts of a project's files. [`Index::update`] brings it up to date, and
//! [`Index::map`] makes the map for a [`MapTask`]. The crate opens no file and runs no program itself: a
//! [`MapSource`] lists and reads the files, and runs Git.

mod facts;
mod grammar;
mod history;
mod index;
mod kept;
mod language;
mod lines;
mod lisp;
mod names;
mod rank;
mod source;
mod text;
mod words;

pub use facts::FileState;
pub use index::{Index, Unsaved, Updated};
pub use kept::StoredIndex;
pub use language::Language;
pub use rank::{MAX_QUERY_BYTES, MapTask, Weights};
pub use source::{Content, FileStamp, MapSource, WalkedFile};
pub use text::{MAX_TOKENS, MIN_TOKENS, Map, ShownDefinition, ShownFile, Style};
