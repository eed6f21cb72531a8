//! Reads the files that a walk found, one after the other. Must not know what the files are used
//! for.

use std::ops::ControlFlow;

use super::project::Projects;
use super::read::read_in;
use super::tree::PROGRESS_INTERVAL;
use super::{
    FileError, FileText, FoundFile, Progress, ReadOptions, SkipReason, Skipped, TreeError, Walk,
};

/// Reads the files of `walk`, in its order, and passes each to `take`, so that only one file is in
/// memory at a time. Returns the files that could not be read, for [`Skipped::merge`] with the
/// entries that the walk left out.
///
/// Calls `progress` every 200 files and at the end, with the files and bytes read so far. If
/// `progress` returns `Break`, the reading stops; `take` may have received some files by then.
/// Errors: `cancelled` only.
pub fn read_each(
    walk: &Walk,
    options: &ReadOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    take: &mut dyn FnMut(&FoundFile, FileText),
) -> Result<Skipped, TreeError> {
    let (mut projects, mut skipped) = (Projects::default(), Skipped::default());
    let mut so_far = Progress::default();
    let mut tell = |so_far| match progress(so_far) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(TreeError::Cancelled { path: walk.root.clone() }),
    };
    for (file, step) in walk.files.iter().zip(1..) {
        match read_in(&file.path, None, options, &mut projects) {
            Ok(text) => {
                so_far.files += 1;
                so_far.bytes += text.content.len() as u64;
                take(file, text);
            }
            Err(error) => skipped.add(file.relative.clone(), reason(&error)),
        }
        if step % PROGRESS_INTERVAL == 0 {
            tell(so_far)?;
        }
    }
    tell(so_far)?;
    Ok(skipped)
}

fn reason(error: &FileError) -> SkipReason {
    match error {
        FileError::Binary { .. } => SkipReason::Binary,
        FileError::TooLarge { .. } => SkipReason::TooLarge,
        FileError::NotRegular { .. } | FileError::IsDirectory { .. } => SkipReason::NotAFile,
        _ => SkipReason::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io};

    use super::super::{TreeOptions, walk};
    use super::*;

    fn go_on(_: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn files_come_in_the_order_of_the_walk_and_the_rest_has_a_reason() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        fs::create_dir(at(".git")).unwrap();
        fs::create_dir(at("b")).unwrap();
        for (name, bytes) in [("a.rs", "a\n"), ("b/c.rs", "c"), ("d.bin", "\0"), ("e", "e")] {
            fs::write(at(name), bytes).unwrap();
        }
        fs::write(at("latin1"), b"\xe4").unwrap();
        let walk = walk(temp.path(), &TreeOptions::default(), &mut go_on).unwrap();
        fs::remove_file(at("e")).unwrap();
        let mut seen = Progress::default();
        let mut texts = Vec::new();
        let mut note = |progress| {
            seen = progress;
            ControlFlow::Continue(())
        };
        let mut take = |_: &FoundFile, text| texts.push(text);
        let skipped = read_each(&walk, &ReadOptions::default(), &mut note, &mut take).unwrap();
        let names: Vec<_> = texts.iter().map(|text| text.path.clone()).collect();
        assert_eq!(names, [at("a.rs"), at("b/c.rs")]);
        assert!(texts.iter().all(|text| text.project.as_deref() == Some(temp.path())));
        assert_eq!(seen, Progress { files: 2, bytes: 3 });
        let named = [
            ("d.bin", SkipReason::Binary),
            ("e", SkipReason::Unreadable),
            ("latin1", SkipReason::Binary),
        ];
        assert_eq!(skipped.named, named.map(|(name, reason)| (name.to_owned(), reason)));
    }

    #[test]
    fn reading_can_be_cancelled() {
        let temp = tempfile::tempdir().unwrap();
        for number in 0..250 {
            fs::write(temp.path().join(format!("{number}")), "x").unwrap();
        }
        let walk = walk(temp.path(), &TreeOptions::default(), &mut go_on).unwrap();
        let mut stop = |_| ControlFlow::Break(());
        let mut read = 0;
        let error = read_each(&walk, &ReadOptions::default(), &mut stop, &mut |_, _| read += 1);
        assert_eq!((error.unwrap_err().kind(), read), ("cancelled", 200));
    }

    #[test]
    fn every_error_has_a_reason() {
        let path = std::path::PathBuf::from("/x");
        let denied = io::ErrorKind::PermissionDenied.into();
        assert_eq!(reason(&FileError::Unreadable { path, source: denied }), SkipReason::Unreadable);
    }
}
