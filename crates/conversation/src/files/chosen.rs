//! Walks several files and folders that somebody chose one by one, as one tree. Opens no files except
//! ignore files.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::tree::{is_version_control, relative};
use super::{FileError, Progress, SkipReason, Skipped, TreeError, TreeOptions, Walk, walk};

/// Finds the files at and below `paths`, which are absolute. A path that was chosen itself is
/// included even if it is hidden or ignored, but not if it belongs to version control or is the
/// backup or lock of an editor. Below a folder, the rules of [`walk`] apply. The root is the folder
/// that all paths have in common.
///
/// Errors: those of [`walk`], except that a path that cannot be read is only left out.
pub fn walk_each(
    paths: &[PathBuf],
    options: &TreeOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Walk, TreeError> {
    let root = common_folder(paths);
    let (mut files, mut skipped, mut seen) = (Vec::new(), Skipped::default(), HashSet::new());
    let mut before = Progress::default();
    for path in paths {
        if let Some(reason) = refusal(path) {
            let slash = if path.is_dir() { "/" } else { "" };
            skipped.add(relative(&root, path) + slash, reason);
            continue;
        }
        let mut so_far = before;
        let mut tell = |found: Progress| {
            let (files, bytes) = (before.files + found.files, before.bytes + found.bytes);
            so_far = Progress { files, bytes };
            progress(so_far)
        };
        match walk(path, options, &mut tell) {
            Ok(found) => {
                skipped.merge(found.skipped.below(&relative(&root, &found.root)));
                let new = found.files.into_iter().filter(|file| seen.insert(file.path.clone()));
                files.extend(new.map(|mut file| {
                    file.relative = relative(&root, &file.path);
                    file
                }));
            }
            Err(TreeError::Root(FileError::NotRegular { .. })) => {
                skipped.add(relative(&root, path), SkipReason::NotAFile);
            }
            Err(TreeError::Root(_)) => {
                skipped.add(relative(&root, path), SkipReason::Unreadable);
            }
            Err(error) => return Err(error),
        }
        before = so_far;
    }
    Ok(Walk { root, files, skipped })
}

/// Returns the reason why a chosen file or folder is left out; `None` if it is not.
fn refusal(path: &Path) -> Option<SkipReason> {
    let mut names = path.components().map(|part| part.as_os_str());
    if names.any(is_version_control) {
        return Some(SkipReason::VersionControl);
    }
    let name = path.file_name()?.as_encoded_bytes();
    let is_saved = name.starts_with(b"#") && name.ends_with(b"#");
    let is_backup = name.ends_with(b"~") || name.starts_with(b".#") || is_saved;
    is_backup.then_some(SkipReason::Backup)
}

/// Returns the deepest folder that contains all paths; of a single folder, the folder itself.
fn common_folder(paths: &[PathBuf]) -> PathBuf {
    if let [one] = paths
        && one.is_dir()
    {
        return one.clone();
    }
    let mut folders = paths.iter().map(|path| path.parent().unwrap_or(path));
    let first = folders.next().unwrap_or(Path::new("/"));
    let common = |one: &Path, other: &Path| -> PathBuf {
        let both = one.components().zip(other.components());
        both.take_while(|(a, b)| a == b).map(|(part, _)| part).collect()
    };
    folders.fold(first.to_path_buf(), |so_far, folder| common(&so_far, folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_chosen_itself_passes_the_filter_and_the_rest_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        fs::create_dir_all(at(".git")).unwrap();
        fs::create_dir_all(at("src/deep")).unwrap();
        fs::write(at(".gitignore"), "*.log\n").unwrap();
        for name in
            ["a.rs", "b.log", "src/c.rs", "src/d.log", "src/deep/e.rs", ".hidden", "f~", ".git/x"]
        {
            fs::write(at(name), "x\n").unwrap();
        }
        let chosen = ["a.rs", "b.log", "src", ".hidden", "f~", ".git", "gone", "src/c.rs"];
        let chosen: Vec<PathBuf> = chosen.into_iter().map(at).collect();
        let go_on = &mut |_: Progress| ControlFlow::Continue(());
        let found = walk_each(&chosen, &TreeOptions::default(), go_on).unwrap();
        let names: Vec<&str> = found.files.iter().map(|file| &*file.relative).collect();
        assert_eq!(names, ["a.rs", "b.log", "src/c.rs", "src/deep/e.rs", ".hidden"]);
        assert_eq!(found.root, temp.path());
        let left_out = [
            ("src/d.log", SkipReason::Ignored),
            ("f~", SkipReason::Backup),
            (".git/", SkipReason::VersionControl),
            ("gone", SkipReason::Unreadable),
        ];
        assert_eq!(found.skipped.named, left_out.map(|(name, why)| (name.to_owned(), why)));
    }
}
