//! What the server reads from the disk: files, lines of files, directory trees, and whether an
//! item is still what its file says.
//!
//! This is the one module that touches the user's files. Everything in it takes owned or borrowed
//! data, blocks, and returns: call it on a blocking thread. It must know no engine, no wire and no
//! store; of the rest of the program it names the types of an item only.

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
pub use bulk::{read_all, read_each};
pub use error::{BinarySign, FileError, TreeError};
pub use freshness::{MAX_COMPARED_BYTES, state_of, states};
pub use identity::Identity;
pub use listing::{ListedFile, listing};
pub use path::absolute;
pub use project::project_root;
pub use read::{DEFAULT_MAX_FILE_BYTES, FileText, ReadOptions, read};
pub use refresh::{LEADS_OUT, Refreshed, WITHIN, leads_out, refresh};
pub use skipped::{MAX_NAMED_SKIPS, SkipReason, Skipped};
pub use tree::{DEFAULT_MAX_TREE_ENTRIES, FoundFile, Progress, TreeOptions, Walk, walk};
pub use trust::{Standing, TRUST_FILE, Trust, TrustError, Trusted};
