//! Reads the disk: files, lines of files, directory trees, and whether an item still matches its
//! file.
//!
//! This is the only module that touches the user's files. Its functions take plain data, block, and
//! return: call them on a blocking thread. It must not know the engine, the wire or the store; of
//! the rest of the program it only names the types of an item.

mod beneath;
mod bulk;
mod error;
mod freshness;
mod identity;
mod lines;
mod listing;
mod path;
mod project;
mod read;
mod refresh;
mod skipped;
pub mod templates;
mod tree;
mod trust;

pub use beneath::{Beneath, Named, Opened, resolve};
pub use bulk::read_each;
pub use error::{BinarySign, FileError, TreeError};
pub use freshness::{MAX_COMPARED_BYTES, states};
pub use identity::Identity;
pub use listing::{ListedFile, listing};
pub use path::{absolute, path_value};
pub use project::project_root;
pub use read::{DEFAULT_MAX_FILE_BYTES, FileText, ReadOptions, read};
pub use refresh::{LEADS_OUT, Refreshed, WITHIN, leads_out, refresh};
pub use skipped::{MAX_NAMED_SKIPS, SkipReason, Skipped};
pub use tree::{DEFAULT_MAX_TREE_ENTRIES, FoundFile, Progress, TreeOptions, Walk, walk};
pub use trust::{Standing, TRUST_FILE, Trust, TrustError, Trusted};
