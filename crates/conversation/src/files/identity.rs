//! Identifies a project by its place and its repository. Must not run Git, since the project may be
//! untrusted: Git's configuration is only read, and only within the project's folder.

use std::path::Path;

use super::{Beneath, FileError};

/// Maximum size of a repository's configuration, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The identity of a project. A repository with another remote at the same place is another
/// project, and so is the same repository at another place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// Real path of the folder, without links.
    pub project: String,
    /// URL of the project's Git remote, `origin` if there is one, without user and password. For a
    /// worktree or submodule, the line that says where its repository is.
    pub remote: Option<String>,
}

impl Identity {
    /// Identifies the project in a folder.
    ///
    /// # Errors
    /// [`FileError`] if the folder's path is not UTF-8, or if a file of Git cannot be read or leads
    /// outside the folder.
    pub fn of(folder: &Beneath) -> Result<Self, FileError> {
        let place = folder.place()?;
        let Some(project) = place.to_str().map(str::to_owned) else {
            let source = std::io::Error::other("its name is not UTF-8");
            return Err(FileError::Unreadable { path: place, source });
        };
        Ok(Self { project, remote: remote(folder)? })
    }
}

fn remote(folder: &Beneath) -> Result<Option<String>, FileError> {
    let read = |name: &str| match folder.open(Path::new(name)) {
        Err(FileError::Missing { .. }) => Ok(None),
        file => file?.text(MAX_CONFIG_BYTES).map(Some),
    };
    match read(".git") {
        // In a worktree, `.git` is a file that names the repository.
        Ok(text) => Ok(text.map(|text| text.trim().to_owned())),
        Err(FileError::IsDirectory { .. }) => Ok(read(".git/config")?.as_deref().and_then(address)),
        Err(error) => Err(error),
    }
}

/// Returns the URL of `origin`, or else of the first remote, from the text of a Git configuration.
pub(super) fn address(config: &str) -> Option<String> {
    let (mut first, mut section) = (None, None);
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            section = remote_name(line);
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        if let Some(remote) = section.filter(|_| name.trim().eq_ignore_ascii_case("url")) {
            let address = without_user(value.trim());
            if remote == "origin" {
                return Some(address);
            }
            first.get_or_insert(address);
        }
    }
    first
}

/// Returns the name in `[remote "NAME"]`.
fn remote_name(line: &str) -> Option<&str> {
    let (kind, name) = line.strip_prefix('[')?.split_once('"')?;
    let (name, _) = name.split_once('"')?;
    kind.trim().eq_ignore_ascii_case("remote").then_some(name)
}

/// Removes user and password from a URL.
pub fn without_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let host = rest.find('/').unwrap_or(rest.len());
    let start = rest[..host].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[start..])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[track_caller]
    fn check(config: &str, expected: Option<&str>) {
        assert_eq!(address(config).as_deref(), expected, "{config}");
    }

    #[test]
    fn the_address_is_that_of_origin_or_of_the_first() {
        check("[core]\n\tbare = false\n", None);
        check(
            "[remote \"origin\"]\n\turl = https://a/b.git\n\tfetch = x\n",
            Some("https://a/b.git"),
        );
        let two = "[remote \"up\"]\nurl = a\n[Remote \"origin\"] ; note\r\n  URL=git@h:b.git\r\n";
        check(two, Some("git@h:b.git"));
        check("[remote \"up\"]\nurl = a\n[remote \"x\"]\nurl = b\n", Some("a"));
        check("[url \"a\"]\nurl = b\n[remote]\nurl = c\n[remote \"x\nurl = d\n", None);
        check("[remote \"o\"]\nurl = https://me:secret@host:1/x@y\n", Some("https://host:1/x@y"));
    }

    #[test]
    fn a_folder_is_told_by_its_place_and_its_remote() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("p/.git")).unwrap();
        symlink(top.join("p"), top.join("alias")).unwrap();
        let of = |name: &str| Identity::of(&Beneath::new(&top.join(name)).unwrap());
        let project = top.join("p").to_str().unwrap().to_owned();
        assert_eq!(of("alias").unwrap(), Identity { project: project.clone(), remote: None });
        fs::write(top.join("p/.git/config"), "[remote \"origin\"]\nurl = u\n").unwrap();
        assert_eq!(of("p").unwrap().remote.as_deref(), Some("u"));
        fs::remove_dir_all(top.join("p/.git")).unwrap();
        fs::write(top.join("p/.git"), "gitdir: /elsewhere/.git/worktrees/p\n").unwrap();
        let worktree = of("p").unwrap().remote;
        assert_eq!(worktree.as_deref(), Some("gitdir: /elsewhere/.git/worktrees/p"));
        fs::remove_file(top.join("p/.git")).unwrap();
        fs::create_dir(top.join("git")).unwrap();
        symlink("../git", top.join("p/.git")).unwrap();
        assert_eq!(of("p").unwrap_err().kind(), "outside-folder");
    }
}
