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
pub mod templates;
#[cfg(test)]
pub mod testing;
mod tree;
mod trust;

pub use beneath::{Beneath, OpenedFile, resolve};
pub use bulk::read_each;
pub use chosen::walk_each;
pub use error::FileError;
pub use error::TreeError;
pub use follow::Found;
pub use freshness::{has_changed_since, states};
pub use identity::{Identity, without_user};
pub use listing::{ListedFile, listing};
pub use looks::{Looks, Stamp};
#[cfg(feature = "map")]
pub use mapped::ProjectOnDisk;
pub use memories::{memories, write_memory};
pub use path::{absolute, path_value};
pub use pdf::pages_of_pdf;
pub use places::{AgentPlaces, claude_folder, codex_folder, named_or, places};
pub use project::project_root;
pub use read::{DEFAULT_MAX_FILE_BYTES, FileText, ReadOptions, lines_of, read, seen};
pub use recording::{
    AIDER, LARGEST_RECORDING, LARGEST_WHOLE, MOST_RECORDINGS, Recording, opencode_session,
    project_of_history, recordings, whole_recording,
};
pub use refresh::{
    FileReader, Followed, Refreshed, WITHIN, is_version, keep_marked, note_way_out, refresh,
    refresh_from,
};
pub use remote::{remote_of, true_name, true_outside};
pub use repository::{is_there, project_of, repository_address};
pub use secrets::{holds_secrets, is_secret};
pub use skipped::{MAX_NAMED_SKIPS, SkipReason, Skipped};
pub use tree::{DEFAULT_MAX_TREE_ENTRIES, FoundFile, Progress, TreeOptions, Walk, walk};
pub use trust::{Standing, Trust, TrustError, Trusted};
