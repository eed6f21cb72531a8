//! Reads the disk: reads files and lines of files, walks directory trees, and checks whether an
//! item still matches its file.
//!
//! Apart from the command line, this is the only module that reads the files of the user's
//! projects. Its functions block, so they must be called on a blocking thread. The module must not
//! know the engine, the protocol or the store; of the rest of the program, it uses only the types
//! of items and templates, and small helpers.

mod beneath;
mod bulk;
mod chosen;
mod error;
mod follow;
mod freshness;
mod git;
mod identity;
mod lines;
mod listing;
mod looks;
#[cfg(feature = "map")]
mod mapped;
mod memories;
mod moved;
mod path;
mod pdf;
mod places;
mod program;
mod project;
mod read;
mod recording;
mod refresh;
mod remote;
mod renamed;
mod repository;
mod secrets;
mod skipped;
pub(crate) mod templates;
#[cfg(test)]
pub(crate) mod testing;
mod tree;
mod trust;

pub(crate) use beneath::{Beneath, OpenedFile, resolve};
pub(crate) use bulk::read_each;
pub(crate) use chosen::walk_each;
pub use error::FileError;
pub(crate) use error::TreeError;
pub(crate) use follow::Found;
pub(crate) use freshness::{has_changed_since, states};
pub(crate) use identity::{Identity, without_user};
pub(crate) use listing::{ListedFile, listing};
pub(crate) use looks::{Looks, Stamp};
#[cfg(feature = "map")]
pub(crate) use mapped::ProjectOnDisk;
pub(crate) use memories::{memories, write_memory};
pub(crate) use path::{absolute, path_value};
pub(crate) use pdf::pages_of_pdf;
pub(crate) use places::{AgentPlaces, claude_folder, codex_folder, named_or, places};
pub(crate) use project::project_root;
pub(crate) use read::{DEFAULT_MAX_FILE_BYTES, FileText, ReadOptions, lines_of, read, seen};
pub(crate) use recording::{
    AIDER, LARGEST_RECORDING, LARGEST_WHOLE, MOST_RECORDINGS, Recording, opencode_session,
    project_of_history, recordings, whole_recording,
};
pub(crate) use refresh::{
    FileReader, Followed, LEADS_OUT, Refreshed, WITHIN, is_version, keep_marked, leads_out,
    refresh, refresh_from,
};
pub(crate) use remote::{remote_of, true_name, true_outside};
pub(crate) use repository::{is_there, project_of, repository_address};
pub(crate) use secrets::{holds_secrets, is_secret};
pub(crate) use skipped::{MAX_NAMED_SKIPS, SkipReason, Skipped};
pub(crate) use tree::{DEFAULT_MAX_TREE_ENTRIES, FoundFile, Progress, TreeOptions, Walk, walk};
pub(crate) use trust::{Standing, Trust, TrustError, Trusted};
