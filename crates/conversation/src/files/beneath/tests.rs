//! Tests of hostile names. The results are compared with the files that the kernel opens for these
//! names.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::SystemTime;

use super::*;
use crate::files::testing::Dice;
use crate::system::make_fifo;

/// Number of names that each method is tried with.
const NAMES: usize = 100_000;

/// Parts of names: existing ones, other spellings of them, missing ones, and some that lead out.
const PARTS: &[&str] = &[
    "a.txt",
    "A.TXT",
    "sub",
    "sub/b.txt",
    "Sub",
    "..",
    ".",
    "",
    "missing",
    "in",
    "in-abs",
    "again",
    "out",
    "out-abs",
    "out-dir",
    "back",
    "dangling",
    "dangling-in",
    "loop",
    "up",
    "self",
    "fifo",
    "~",
    "~root",
    "file:",
    "file:a.txt",
    ":",
    "...",
    "proc",
    "caf\u{e9}",
    "cafe\u{301}",
    "caf\u{e9}/d.txt",
    "cafe\u{301}/d.txt",
    "two  words ",
    "a.txt\n",
    "hard",
    "project",
    "outside",
    "secret",
    "%2e%2e",
    "..\\..",
    "sub\u{2215}b.txt",
    "\u{ff0e}\u{ff0e}",
    "deep/er/still",
    "top",
    "long-chain-0",
];
/// Paths through folders, most of which lead back.
const WAYS: &[&str] = &[
    ".",
    "",
    "self",
    "sub/..",
    "up/project",
    "deep/top",
    "out-dir/../project",
    "../alias",
    "caf\u{e9}/..",
    "deep/er/../..",
    "deep/er/still/up",
    "..",
    "sub",
    "self/self",
];
/// Endings of names.
const ENDS: &[&str] = &[
    "a.txt",
    "sub/b.txt",
    "in",
    "in-abs",
    "again",
    "back",
    "out",
    "hard",
    "caf\u{e9}/d.txt",
    "~/a.txt",
    "/.",
];
/// Beginnings of names.
const STARTS: &[&str] =
    &["", "", "", "", "", "/", "//", "/:", "./", "../", "~/", "file://", "/:/:"];

struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tree = Self { dir };
        let at = |name: &str| tree.dir.path().join(name);
        for folder in [
            "project/sub",
            "project/caf\u{e9}",
            "project/deep/er/still",
            "outside",
            "project/~",
            "project/:",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in [
            "a.txt",
            "sub/b.txt",
            "caf\u{e9}/d.txt",
            "two  words ",
            "...",
            "~/a.txt",
            ":/a.txt",
            "file:a.txt",
            "deep/er/still/a.txt",
            "..\\..",
        ] {
            fs::write(at("project").join(file), file).unwrap();
        }
        for file in ["outside/secret", "outside/a.txt", "a.txt", "project-too"] {
            fs::write(at(file), "not to be read").unwrap();
        }
        let absolute = |name: &str| at(name).to_str().unwrap().to_owned();
        for (name, target) in [
            ("in", "sub/b.txt"),
            ("in-abs", &absolute("project/a.txt")),
            ("again", "in"),
            ("out", "../outside/secret"),
            ("out-abs", &absolute("outside/secret")),
            ("out-dir", "../outside"),
            ("back", "../project/a.txt"),
            ("dangling", "../outside/none"),
            ("dangling-in", "sub/none"),
            ("loop", "loop"),
            ("up", ".."),
            ("self", "."),
            ("proc", "/proc/self/root"),
            ("deep/top", "../../project"),
            ("deep/er/still/up", "../../../.."),
        ] {
            symlink(target, at("project").join(name)).unwrap();
        }
        for number in 0..30 {
            let target = match number {
                29 => "sub/b.txt".to_owned(),
                number => format!("long-chain-{}", number + 1),
            };
            symlink(target, at("project").join(format!("long-chain-{number}"))).unwrap();
        }
        symlink(at("project"), at("alias")).unwrap();
        make_fifo(at("project/fifo"));
        tree
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the file that the kernel opens by a name, if it is within the project. Uses none of
    /// the tested code.
    fn oracle(&self, name: &Path) -> Option<(u64, u64)> {
        let mut path = self.at("project").into_os_string();
        match name.is_absolute() {
            true => path = name.into(),
            false => {
                path.push("/");
                path.push(name);
            }
        }
        let found = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let real = fs::canonicalize(&path).ok()?;
        real.starts_with(fs::canonicalize(self.at("project")).unwrap()).then(|| identity(&found))
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Returns a name made of any parts, or a path through existing folders to one of the files.
fn name(dice: &mut Dice, tree: &Tree) -> String {
    let top = tree.dir.path().display();
    let mut name = match dice.roll(8) {
        0 => format!("{top}/project/"),
        1 => format!("{top}/alias/"),
        2 => format!("{top}/"),
        _ => dice.of(STARTS).to_owned(),
    };
    let is_wild = dice.roll(2) == 0;
    for _ in 0..=dice.roll(5) {
        name += dice.of(if is_wild { PARTS } else { WAYS });
        name += dice.of(if is_wild { &["/", "/", "/", "//", "/./", ""] } else { &["/", "//"] });
    }
    if !is_wild || dice.roll(2) == 0 {
        name += dice.of(ENDS);
    }
    match dice.roll(200) {
        0 => name + "\0",
        1 => name + "/",
        _ => name,
    }
}

#[track_caller]
fn check_hostile_names(is_kept: bool) {
    let tree = Tree::new();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    for (seed, project) in [(1, "project"), (u64::from(now), "alias")] {
        let mut folder = Beneath::new(&tree.at(project)).unwrap();
        folder.is_kept = is_kept;
        let (mut random, mut inside) = (Dice(seed), 0);
        for _ in 0..NAMES / 2 {
            let name = name(&mut random, &tree);
            let file = folder.open(Path::new(&name));
            let file = file.ok().map(|file| file.held.metadata().unwrap());
            let found = file.filter(fs::Metadata::is_file).map(|file| identity(&file));
            assert_eq!(found, tree.oracle(Path::new(&name)), "{name:?}, seed {seed}, {is_kept}");
            inside += usize::from(found.is_some());
        }
        assert!((NAMES / 50..NAMES / 4).contains(&inside), "{inside} lead to a file");
    }
}

#[test]
fn hostile_names_open_what_the_kernel_says_or_nothing() {
    check_hostile_names(keeps_inside());
}

#[test]
fn hostile_names_open_the_same_where_the_kernel_must_be_asked() {
    check_hostile_names(false);
}

#[test]
fn a_models_names_are_inside_only_if_the_kernel_says_so() {
    let tree = Tree::new();
    let mut random = Dice(7);
    for _ in 0..NAMES / 10 {
        let name = name(&mut random, &tree);
        let Ok(named) = resolve(&name, Some(&tree.at("project"))) else { continue };
        let path = match name.starts_with(['/', '~']) {
            true => expanded(&name).unwrap(),
            false => PathBuf::from(&name),
        };
        if let Ok(file) = &named.file
            && file.held.metadata().unwrap().is_file()
        {
            assert_eq!(named.outside.is_none(), tree.oracle(&path).is_some(), "{name:?}");
            // The reported path leads to the opened file.
            let called = fs::metadata(file.path()).unwrap();
            assert_eq!(identity(&called), identity(&file.held.metadata().unwrap()), "{name:?}");
        }
    }
}

/// Checks whether a name from a model is inside, and the file's text or the error's kind.
#[track_caller]
fn check(tree: &Tree, name: &str, is_inside: bool, expected: Result<&str, &str>) {
    let named = resolve(name, Some(&tree.at("project"))).unwrap();
    let text = named.file.and_then(|file| file.text(100));
    assert_eq!(text.as_deref().map_err(FileError::kind), expected, "{name}");
    assert_eq!(named.outside.is_none(), is_inside, "{name}");
}

#[test]
fn what_leads_out_is_told_from_what_is_missing() {
    let tree = Tree::new();
    for name in ["a.txt", "sub/../a.txt", "in-abs", "back"] {
        check(&tree, name, true, Ok("a.txt"));
    }
    check(&tree, tree.at("alias/a.txt").to_str().unwrap(), true, Ok("a.txt"));
    check(&tree, "fifo", true, Err("not-a-regular-file"));
    check(&tree, "sub", true, Err("is-a-directory"));
    for name in ["nowhere", "missing/../../outside/secret", "a.txt/../../outside/secret", "a.txt/"]
    {
        check(&tree, name, true, Err("file-missing"));
    }
    for name in ["out", "out-abs", "up/outside/secret", "../outside/secret"] {
        check(&tree, name, false, Ok("not to be read"));
    }
    check(&tree, "../outside/none", false, Err("file-missing"));
    check(&tree, "/:/:/etc/passwd", false, Err("file-missing"));
}

#[test]
fn a_project_that_is_gone_has_nothing_inside() {
    let named = resolve("/etc/passwd", Some(Path::new("/nonexistent"))).unwrap();
    assert!(named.outside.is_some() && named.file.is_ok());
    let named = resolve("x", Some(Path::new("/nonexistent"))).unwrap();
    assert!(named.outside == Some("/nonexistent/x".into()) && named.file.is_err());
    assert_eq!(resolve("x", None).unwrap_err().kind(), "not-absolute");
}

#[test]
fn what_was_resolved_is_read_whatever_its_name_becomes() {
    let tree = Tree::new();
    let folder = Beneath::new(&tree.at("project")).unwrap();
    let file = folder.open(Path::new("a.txt")).unwrap();
    fs::remove_file(tree.at("project/a.txt")).unwrap();
    symlink(tree.at("outside/secret"), tree.at("project/a.txt")).unwrap();
    assert_eq!(file.text(100).unwrap(), "a.txt");
    assert_eq!(file.text(3).unwrap_err().kind(), "file-too-large");
    assert_eq!(folder.open(Path::new("a.txt")).unwrap_err().kind(), "outside-folder");
    fs::remove_dir_all(tree.at("project")).unwrap();
    assert_eq!(folder.open(Path::new(".")).unwrap_err().kind(), "outside-folder");
}

#[test]
fn names_of_a_folder_are_those_within() {
    let tree = Tree::new();
    let folder = Beneath::new(&tree.at("project")).unwrap();
    assert_eq!(folder.names(Path::new("sub"), 9).unwrap(), ["b.txt"]);
    assert_eq!(folder.names(Path::new("."), 3).unwrap().len(), 3);
    assert_eq!(folder.names(Path::new("out-dir"), 9).unwrap_err().kind(), "outside-folder");
    assert!(folder.names(Path::new("a.txt"), 9).is_err());
}
