//! A checkout on disk, for measuring: what Git tracks, and what it does not ignore. The program has its
//! own way to files and Git.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use contexture_map::{Content, FileStamp, MapSource, WalkedFile};

const MAX_FILE_BYTES: u64 = 1 << 20;

pub(crate) struct Checkout {
    root: PathBuf,
}

impl Checkout {
    pub(crate) fn new(root: &str) -> Self {
        Self { root: Path::new(root).canonicalize().unwrap() }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&self.git(arguments, b"").unwrap_or_default()).into_owned()
    }

    /// Checks out a commit. A commit that lacks contents would leave files of another, so it ends the run.
    pub(crate) fn check_out(&self, commit: &str) {
        let done = self.git(&["checkout", "-q", "-f", "--detach", commit], b"");
        assert!(done.is_some(), "{commit} cannot be checked out");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

impl MapSource for Checkout {
    fn files(&self) -> Result<Vec<WalkedFile>, String> {
        let mut files = Vec::new();
        for path in self.run(&["ls-files", "-z", "-co", "--exclude-standard"]).split('\0') {
            let is_hidden = path.split('/').any(|name| name.starts_with('.'));
            let Ok(metadata) = self.path(path).symlink_metadata() else { continue };
            if is_hidden || !metadata.is_file() {
                continue;
            }
            let stamp = FileStamp {
                bytes: metadata.len(),
                modified: metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec(),
                changed: metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec(),
                inode: metadata.ino(),
            };
            files.push(WalkedFile { path: path.to_owned(), stamp });
        }
        Ok(files)
    }

    fn read(&self, path: &str) -> Content {
        let path = self.root.join(path);
        match std::fs::metadata(&path) {
            Err(_) => Content::Gone,
            Ok(metadata) if metadata.len() > MAX_FILE_BYTES => Content::TooLarge,
            Ok(_) => std::fs::read(&path).map_or(Content::Unreadable, Content::Bytes),
        }
    }

    fn now(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(now.as_nanos()).unwrap()
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.root).args(["-c", "core.hooksPath=/dev/null"]).args(arguments);
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = git.spawn().ok()?;
        let mut stdin = child.stdin.take()?;
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().ok()?;
        let _ = writer.join();
        output.status.success().then_some(output.stdout)
    }
}
