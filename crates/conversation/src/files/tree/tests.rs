//! Tests of walking real trees.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

#[path = "../../../../../tests/it/skips.rs"]
mod skips;

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Creates a tree of these files (name and text); a name that ends in a slash is a folder. The root
/// contains a `.git`, so that no ignore rules from outside apply.
fn tree(entries: &[(&str, &str)]) -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join(".git")).unwrap();
    for (name, text) in entries {
        let path = temp.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    temp
}

fn shown(walk: &Walk) -> (Vec<&str>, Vec<(&str, SkipReason)>) {
    let skipped = walk.skipped.named.iter().map(|(name, reason)| (name.as_str(), *reason));
    (walk.files.iter().map(|file| file.relative.as_str()).collect(), skipped.collect())
}

#[track_caller]
fn check_with(options: &TreeOptions, root: &Path, files: &[&str], skipped: &[(&str, SkipReason)]) {
    let walk = walk(root, options, &mut go_on).unwrap();
    assert_eq!(shown(&walk), (files.to_vec(), skipped.to_vec()));
    assert_eq!(walk.skipped.total.values().sum::<u64>(), skipped.len() as u64);
}

#[track_caller]
fn check(root: &Path, files: &[&str], skipped: &[(&str, SkipReason)]) {
    check_with(&TreeOptions::default(), root, files, skipped);
}

use SkipReason::{Hidden, Ignored, Link, NotAFile, TooLarge};

#[test]
fn the_order_is_by_the_bytes_of_each_name() {
    let temp = tree(&[("b/x", ""), ("b.rs", ""), ("a", ""), ("B", ""), ("b/a/z", ""), ("ä", "")]);
    check(temp.path(), &["B", "a", "b/a/z", "b/x", "b.rs", "ä"], &[]);
}

#[test]
fn nested_ignore_files_and_negations_count() {
    let temp = tree(&[
        (".gitignore", "*.skipme\ntarget/\n!keep.skipme\n"),
        ("a.skipme", ""),
        ("keep.skipme", ""),
        ("src/.gitignore", "!b.skipme\nlocal\n"),
        ("src/b.skipme", ""),
        ("src/c.skipme", ""),
        ("src/local", ""),
        ("src/lib.rs", ""),
        ("target/debug/deps/x.o", ""),
        ("docs/.ignore", "draft.md\n"),
        ("docs/draft.md", ""),
        (".git/info/exclude", "mine\n"),
        ("mine", ""),
    ]);
    check(
        temp.path(),
        &["keep.skipme", "src/b.skipme", "src/lib.rs"],
        &[
            (".gitignore", Hidden),
            ("a.skipme", Ignored),
            ("docs/.ignore", Hidden),
            ("docs/draft.md", Ignored),
            ("mine", Ignored),
            ("src/.gitignore", Hidden),
            ("src/c.skipme", Ignored),
            ("src/local", Ignored),
            ("target/", Ignored),
        ],
    );
}

#[test]
fn rules_from_above_count_inside_a_repository_only() {
    let temp = tree(&[
        (".gitignore", "*.skipme\n/p/gen\n"),
        ("p/a.skipme", ""),
        ("p/b", ""),
        ("p/gen/c", ""),
    ]);
    check(&temp.path().join("p"), &["b"], &[("a.skipme", Ignored), ("gen/", Ignored)]);
    fs::remove_dir(temp.path().join(".git")).unwrap();
    check(&temp.path().join("p"), &["a.skipme", "b", "gen/c"], &[]);
}

#[test]
fn ignore_files_count_outside_a_repository() {
    let temp = tree(&[(".gitignore", "x\n"), ("x", ""), ("y", "")]);
    fs::remove_dir(temp.path().join(".git")).unwrap();
    check(temp.path(), &["y"], &[(".gitignore", Hidden), ("x", Ignored)]);
}

#[test]
fn a_nested_repository_has_its_own_rules() {
    let temp =
        tree(&[(".gitignore", "*\n!inner\n"), ("inner/.git/", ""), ("inner/a", ""), ("b", "")]);
    check(&temp.path().join("inner"), &["a"], &[]);
}

#[test]
fn an_ignored_folder_can_be_the_root() {
    let temp = tree(&[(".gitignore", "target/\n"), ("target/doc/a.html", "")]);
    check(&temp.path().join("target"), &["doc/a.html"], &[]);
}

#[test]
fn a_file_as_root_is_taken_even_if_ignored_or_hidden() {
    let temp = tree(&[(".gitignore", "*\n"), ("src/.dotted", "A=1\n")]);
    let walk = walk(&temp.path().join("src/.dotted"), &TreeOptions::default(), &mut go_on).unwrap();
    assert_eq!(shown(&walk), (vec![".dotted"], vec![]));
    assert_eq!((walk.root, walk.files[0].bytes), (temp.path().join("src"), 4));
    let options = TreeOptions { max_file_bytes: 3, ..TreeOptions::default() };
    check_with(&options, &temp.path().join("src/.dotted"), &[], &[(".dotted", TooLarge)]);
}

#[test]
fn hidden_files_are_taken_on_demand_but_never_those_of_version_control() {
    let temp =
        tree(&[(".dotted", ""), (".folder/x", ""), (".git/HEAD", ""), ("sub/.git", "gitdir: x\n")]);
    check(temp.path(), &[], &[(".dotted", Hidden), (".folder/", Hidden)]);
    let options = TreeOptions { hidden: true, ..TreeOptions::default() };
    check_with(&options, temp.path(), &[".dotted", ".folder/x"], &[]);
}

#[test]
fn older_versions_that_editors_keep_are_taken_only_by_their_names() {
    let temp = tree(&[("a.py", ""), ("a.py~", ""), ("#a.py#", ""), ("#notes", ""), ("dir~/b", "")]);
    let taken = ["#notes", "a.py", "dir~/b"];
    check(temp.path(), &taken, &[("#a.py#", Ignored), ("a.py~", Ignored)]);
    check(&temp.path().join("a.py~"), &["a.py~"], &[]);
}

#[test]
fn a_hidden_file_that_a_rule_takes_back_is_found() {
    let temp = tree(&[(".gitignore", "!.dotted\n"), (".dotted", "")]);
    check(temp.path(), &[".dotted"], &[(".gitignore", Hidden)]);
}

#[test]
fn files_over_the_limit_are_named() {
    let temp = tree(&[("big", "12345"), ("fits", "1234")]);
    let options = TreeOptions { max_file_bytes: 4, ..TreeOptions::default() };
    check_with(&options, temp.path(), &["fits"], &[("big", TooLarge)]);
}

#[test]
fn links_are_reported_and_never_fatal() {
    let temp = tree(&[("dir/a", "")]);
    let at = |name: &str| temp.path().join(name);
    symlink(at("dir"), at("folder")).unwrap();
    symlink(at("dir/a"), at("file")).unwrap();
    symlink(at("gone"), at("broken")).unwrap();
    symlink(temp.path(), at("dir/up")).unwrap();
    symlink(at("self"), at("self")).unwrap();
    let left =
        [("broken", Link), ("dir/up", Link), ("file", Link), ("folder", Link), ("self", Link)];
    check(temp.path(), &["dir/a"], &left);
    let options = TreeOptions { follow_links: true, ..TreeOptions::default() };
    check_with(
        &options,
        temp.path(),
        &["dir/a", "file", "folder/a"],
        &[("broken", Link), ("dir/up", Link), ("folder/up", Link), ("self", Link)],
    );
}

#[test]
fn a_link_as_root_is_followed() {
    let temp = tree(&[("dir/a", "")]);
    symlink(temp.path().join("dir"), temp.path().join("link")).unwrap();
    let walk = walk(&temp.path().join("link"), &TreeOptions::default(), &mut go_on).unwrap();
    assert_eq!(shown(&walk), (vec!["a"], vec![]));
    assert_eq!(walk.files[0].path, temp.path().join("link/a"));
}

#[test]
fn fifos_and_sockets_are_no_files() {
    let temp = tree(&[("a", "")]);
    let fifo = temp.path().join("fifo");
    crate::system::make_fifo(&fifo);
    let _socket = std::os::unix::net::UnixListener::bind(temp.path().join("socket")).unwrap();
    check(temp.path(), &["a"], &[("fifo", NotAFile), ("socket", NotAFile)]);
    let error = walk(&fifo, &TreeOptions::default(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), "not-a-regular-file");
}

#[test]
fn what_the_system_refuses_is_reported() {
    let temp = tree(&[("a", ""), ("closed/x", "")]);
    let closed = temp.path().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&closed).is_ok() {
        return skips::skipped("permissions do not stop root");
    }
    check(temp.path(), &["a"], &[("closed/", SkipReason::Unreadable)]);
    let error = walk(&closed, &TreeOptions::default(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), "file-unreadable");
}

#[test]
fn names_that_are_not_unicode_are_found_and_shown_as_well_as_can_be() {
    let temp = tree(&[("日本/ü\u{301}.rs", "")]);
    fs::write(temp.path().join(OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    let walk = walk(temp.path(), &TreeOptions::default(), &mut go_on).unwrap();
    assert_eq!(shown(&walk), (vec!["bad\u{fffd}", "日本/ü\u{301}.rs"], vec![]));
    assert_eq!(fs::read_to_string(&walk.files[0].path).unwrap(), "x");
}

#[test]
fn bad_rules_are_passed_over() {
    let temp = tree(&[(".gitignore", "a[\n*.o\n"), ("x.o", ""), ("y", "")]);
    check(temp.path(), &["y"], &[(".gitignore", Hidden), ("x.o", Ignored)]);
}

#[test]
fn an_empty_root_gives_an_empty_walk_and_a_missing_one_an_error() {
    let temp = tree(&[("empty/", "")]);
    check(&temp.path().join("empty"), &[], &[]);
    let error = walk(&temp.path().join("gone"), &TreeOptions::default(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), "file-missing");
    assert!(error.to_string().contains("gone\""), "{error}");
}

#[test]
fn only_the_first_hundred_left_out_are_named() {
    let temp = tree(&[(".gitignore", "*.o\n")]);
    for number in 0..150 {
        fs::write(temp.path().join(format!("{number:03}.o")), "").unwrap();
    }
    let walk = walk(temp.path(), &TreeOptions::default(), &mut go_on).unwrap();
    assert_eq!((walk.skipped.total[&Ignored], walk.skipped.total[&Hidden]), (150, 1));
    assert_eq!(walk.skipped.named[99], ("098.o".to_owned(), Ignored));
    assert_eq!(walk.skipped.named.len(), 100);
}

fn many(count: usize) -> TempDir {
    let temp = tree(&[]);
    for number in 0..count {
        fs::write(temp.path().join(format!("{number}")), "ab").unwrap();
    }
    temp
}

#[test]
fn progress_is_told_in_steps_and_at_the_end() {
    let temp = many(450);
    let mut told = Vec::new();
    walk(temp.path(), &TreeOptions::default(), &mut |progress| {
        told.push((progress.files, progress.bytes));
        ControlFlow::Continue(())
    })
    .unwrap();
    // The root is an entry too, so the first step has one file fewer.
    assert_eq!(told, [(199, 398), (399, 798), (450, 900)]);
}

#[test]
fn a_walk_can_be_cancelled() {
    let temp = many(450);
    let mut calls = 0;
    let error = walk(temp.path(), &TreeOptions::default(), &mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!((error.unwrap_err().kind(), calls), ("cancelled", 1));
}

#[test]
fn a_walk_that_meets_too_much_stops() {
    let temp = many(30);
    let options = TreeOptions { max_entries: 30, ..TreeOptions::default() };
    let error = walk(temp.path(), &options, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), "tree-too-large", "30 files and .git");
    let options = TreeOptions { max_entries: 31, ..TreeOptions::default() };
    assert_eq!(walk(temp.path(), &options, &mut go_on).unwrap().files.len(), 30);
}

#[test]
fn errors_of_the_walk_are_reported_at_their_path() {
    let temp = tempfile::tempdir().unwrap();
    let (root, options) = (temp.path(), TreeOptions::default());
    let denied = |path: &Path| ignore::Error::WithDepth {
        depth: 1,
        err: Box::new(ignore::Error::WithPath {
            path: path.to_path_buf(),
            err: Box::new(ignore::Error::Io(std::io::ErrorKind::PermissionDenied.into())),
        }),
    };
    let top = Arc::new(Beneath::new(root).unwrap());
    let mut go_on = go_on;
    let mut walker = Walker::new(root, &options, top, &mut go_on);
    walker.awaited.insert(root.join("x"), false);
    walker.fail(&denied(&root.join("x")));
    walker.open_folder(&root.join("no-such-folder")).unwrap();
    walker.fail(&denied(&root.join("no-such-folder")));
    let walk = walker.finish().unwrap();
    let unreadable = [("no-such-folder/", SkipReason::Unreadable), ("x", SkipReason::Unreadable)];
    assert_eq!(shown(&walk), (vec![], unreadable.to_vec()));
}

#[test]
fn rules_that_are_no_plain_files_are_not_read() {
    let temp = tree(&[
        ("a/x", ""),
        ("b/x", ""),
        ("c/x", ""),
        ("c/rules", "y\n"),
        ("c/y", ""),
        ("d/x", ""),
        ("e/x", ""),
        ("f/x", ""),
        ("g/x", ""),
        ("own/rest", ""),
    ]);
    let at = |name: &str| temp.path().join(name);
    fs::create_dir_all(at(".git")).unwrap();
    // Three worktrees: their repository has a pipe, is endless, and has rules on a device.
    let gitdir = |name: &str| format!("gitdir: {}\n", at(name).to_str().unwrap());
    fs::write(at("e/.git"), gitdir("own")).unwrap();
    crate::system::make_fifo(at("own/commondir"));
    fs::File::create(at("f/.git")).unwrap().set_len(1 << 40).unwrap();
    fs::write(at("g/.git"), gitdir(".git/own")).unwrap();
    fs::create_dir_all(at(".git/own")).unwrap();
    fs::create_dir_all(at(".git/info")).unwrap();
    fs::write(at(".git/own/commondir"), "..\n").unwrap();
    symlink("/dev/zero", at("a/.gitignore")).unwrap();
    crate::system::make_fifo(at("b/.ignore"));
    symlink("rules", at("c/.gitignore")).unwrap();
    symlink("/nonexistent", at("d/.gitignore")).unwrap();
    let walk = walk(temp.path(), &TreeOptions::default(), &mut go_on).unwrap();
    let (files, skipped) = shown(&walk);
    assert_eq!(files, ["c/rules", "c/x", "d/x", "g/x", "own/rest"]);
    for folder in ["a/", "b/", "e/", "f/"] {
        assert!(skipped.contains(&(folder, SkipReason::Unreadable)), "{skipped:?}");
    }
    symlink("/dev/zero", at(".git/info/exclude")).unwrap();
    let error = super::walk(&at("g"), &TreeOptions::default(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), "not-a-regular-file");
    fs::remove_file(at(".git/info/exclude")).unwrap();
    let error = super::walk(&at("a"), &TreeOptions::default(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), "outside-folder");
    symlink("/dev/zero", at(".gitignore")).unwrap();
    let error = super::walk(&at("d"), &TreeOptions::default(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), "outside-folder", "the rules above count, too");
}
