//! Remembers which items were compared with their files, so that files that have not changed since
//! are not read again.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use super::freshness::{changed_ms, file_of};
use super::moved::Inode;
use super::path::absolute;
use super::read::load;
use crate::context::item::{Item, ItemId, Metadata as Attributes};

/// Maximum size of a file that says where a linked work tree has its index, in bytes.
const MAX_GIT_BYTES: u64 = 1 << 20;
/// Number of remembered items at which items that no longer exist are forgotten.
const KEPT: usize = 4096;
/// Minimum age of a file's last change, in milliseconds, for a comparison to be remembered. A file
/// that changes again within the same tick of the clock keeps its time.
const SETTLED_MS: i64 = 50;

/// The comparisons that were made, by item.
#[derive(Default)]
pub struct Looks(Mutex<HashMap<ItemId, Seen>>);

/// A comparison of an item with its file.
struct Seen {
    version: Weak<Item>,
    stamp: Stamp,
    /// True if the item has the text of its file, and every change since then has changed the stamp.
    settled: bool,
    /// What the file is known by if it is renamed.
    inode: Option<Inode>,
}

/// The attributes of a file that differ after a change, so that the file need not be read to notice
/// the change. If the file is gone, the attributes are those of the index of its Git work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    signs: Vec<Sign>,
    changed_ms: i64,
    inode: Option<Inode>,
}

/// Size, inode, device, and the times at which content and inode changed.
type Sign = (u64, u64, u64, i64, i64, i64, i64);

impl Looks {
    /// Remembers what the files of new items were when the items were added, by the ids of the items.
    /// A file is then found even if it is renamed before anybody compares it.
    pub fn arrived(&self, files: impl IntoIterator<Item = (u64, Stamp)>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, stamp) in files {
            let (version, inode) = (Weak::new(), stamp.inode);
            let seen_first = Seen { version, stamp, settled: false, inode };
            seen.entry(ItemId(id)).or_insert(seen_first);
        }
    }

    /// Returns the stamp of an item's file. Returns `None` if this version of the item was compared
    /// since its file last changed, or if the item has no file.
    pub fn unseen(&self, item: &Arc<Item>) -> Option<Stamp> {
        let stamp = Stamp::of(&file_of(item)?);
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_seen = seen.get(&item.id).is_some_and(|look| {
            let is_it = |version| Arc::ptr_eq(&version, item);
            look.settled && look.stamp == stamp && look.version.upgrade().is_some_and(is_it)
        });
        (!is_seen).then_some(stamp)
    }

    /// Remembers that this version of an item was compared with its file after `stamp` was taken.
    /// If the file differs (`is_same` is false) or had changed just before, only its inode counts:
    /// the file is compared again.
    pub fn note(&self, item: &Arc<Item>, stamp: Stamp, is_same: bool) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= KEPT {
            seen.retain(|_, look| look.version.strong_count() > 0);
        }
        let version = Arc::downgrade(item);
        let inode = stamp.inode.or_else(|| seen.get(&item.id)?.inode);
        let settled = is_same && stamp.is_settled();
        seen.insert(item.id, Seen { version, settled, inode, stamp });
    }

    /// Returns the inode that an item's file had when it was last there.
    pub fn inode(&self, item: &Item) -> Option<Inode> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&item.id)?.inode
    }
}

impl Stamp {
    /// Returns the stamp that the file with these attributes of an item has now, if the item has a
    /// file on this machine.
    pub fn of_new(attributes: &Attributes) -> Option<Self> {
        Some(Self::of(&absolute(attributes.filename()?).ok()?))
    }

    fn of(path: &Path) -> Self {
        let metadata_of = |path: &Path| -> Vec<Metadata> {
            let named = path.symlink_metadata().ok();
            let target = named.as_ref().and_then(|it| it.is_symlink().then(|| path.metadata()));
            named.into_iter().chain(target.and_then(Result::ok)).collect()
        };
        let mut found = metadata_of(path);
        let inode = found.last().map(Inode::of);
        if found.is_empty() {
            found = git_index(path).map(|index| metadata_of(&index)).unwrap_or_default();
        }
        let changed_ms = found.iter().map(changed_ms).max().unwrap_or(0);
        Self { signs: found.iter().map(sign).collect(), changed_ms, inode }
    }

    /// Returns whether the last change is so old that another change would change the stamp.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        self.changed_ms.saturating_add(SETTLED_MS) < now
    }
}

fn sign(it: &Metadata) -> Sign {
    (it.size(), it.ino(), it.dev(), it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec())
}

/// Returns the index of the work tree that a path is in. In a linked work tree, `.git` is a file
/// that names the folder with the index.
fn git_index(path: &Path) -> Option<PathBuf> {
    let git =
        path.ancestors().skip(1).map(|folder| folder.join(".git")).find(|git| git.exists())?;
    if git.is_dir() {
        return Some(git.join("index"));
    }
    // What is named `.git` may be a pipe, which would never end.
    let named = load(&git, MAX_GIT_BYTES).ok()?;
    Some(git.parent()?.join(named.strip_prefix("gitdir:")?.trim()).join("index"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;
    use crate::context::testing;

    #[test]
    fn a_file_is_looked_at_again_once_it_changed() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let mut item = testing::code(1, "one");
        item.metadata.set("filename", crate::files::path_value(&path));
        let (item, looks) = (Arc::new(item), Looks::default());
        let stamp = looks.unseen(&item).unwrap();
        assert!(!stamp.is_settled());
        looks.note(&item, stamp.clone(), true);
        assert!(looks.unseen(&item).is_some(), "it may have changed again");
        assert!(looks.inode(&item).is_some(), "it may be renamed at once");
        assert!(Stamp { changed_ms: 1000, ..stamp.clone() }.is_settled());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(5)).unwrap();
        let old = looks.unseen(&item).unwrap();
        assert_ne!(old, stamp);
        let old = Stamp { changed_ms: 1000, ..old };
        let settled = |is_same| {
            looks.note(&item, old.clone(), is_same);
            looks.0.lock().unwrap()[&item.id].settled
        };
        assert!(settled(true) && !settled(false), "what differs is compared again");
    }

    #[test]
    fn a_linked_work_tree_has_its_index_elsewhere() {
        let temp = tempfile::tempdir().unwrap();
        let (main, linked) = (temp.path().join("main"), temp.path().join("linked"));
        std::fs::create_dir_all(main.join(".git/worktrees/linked")).unwrap();
        std::fs::create_dir(&linked).unwrap();
        assert_eq!(git_index(&main.join("sub/a")), Some(main.join(".git/index")));
        let folder = main.join(".git/worktrees/linked");
        std::fs::write(linked.join(".git"), format!("gitdir: {}\n", folder.display())).unwrap();
        assert_eq!(git_index(&linked.join("a")), Some(folder.join("index")));
        let odd = temp.path().join("odd");
        std::fs::create_dir(&odd).unwrap();
        crate::system::make_fifo(odd.join(".git"));
        assert_eq!(git_index(&odd.join("a")), None, "a pipe is not read");
    }
}
