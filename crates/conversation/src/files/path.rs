//! Makes the file names that clients send absolute. Must not touch the disk.

use std::env;
use std::path::{Component, Path, PathBuf};

use super::FileError;
use crate::value::Value;

/// Converts a client's file name to a local path.
///
/// `~` and `~/x` are relative to the home folder of the server's user. `.` and `..` are resolved by
/// name alone and symbolic links are kept, as Emacs's `expand-file-name` does, so that Emacs and
/// the server use the same name for a file. Emacs's quoting prefix `/:` is removed.
///
/// Errors: `not-absolute` for any other name that does not begin with `/`, `not-local` for a remote
/// name such as `/ssh:host:/x`. The result is never a name that Emacs would open on another
/// machine, even if dots, slashes or quotes hide that it is one.
pub fn absolute(path: &str) -> Result<PathBuf, FileError> {
    let clean = without_dots(&expanded(path)?);
    match is_remote(&clean.to_string_lossy()) {
        true => Err(FileError::NotLocal { path: path.to_owned() }),
        false => Ok(clean),
    }
}

/// Returns a path as a value; bytes that are not UTF-8 become U+FFFD.
pub fn path_value(path: &Path) -> Value {
    Value::Str(path.to_string_lossy().into_owned())
}

/// Converts a client's file name like [`absolute`], but keeps dots, which the operating system then
/// resolves.
pub(super) fn expanded(path: &str) -> Result<PathBuf, FileError> {
    let not_absolute = || FileError::NotAbsolute { path: path.to_owned() };
    let quoted = path.strip_prefix("/:").filter(|rest| rest.starts_with('/'));
    if quoted.is_none() && is_remote(path) {
        return Err(FileError::NotLocal { path: path.to_owned() });
    }
    let local = quoted.unwrap_or(path);
    if local.starts_with('/') {
        return Ok(PathBuf::from(local));
    }
    let below = match local.strip_prefix('~') {
        Some("") => "",
        Some(rest) => rest.strip_prefix('/').ok_or_else(not_absolute)?,
        None => return Err(not_absolute()),
    };
    let home = env::home_dir().filter(|home| home.is_absolute()).ok_or_else(not_absolute)?;
    // `join` would take a second slash, as in `~//x`, for the root.
    Ok(home.join(below.trim_start_matches('/')))
}

/// Returns whether Emacs could open this name on another machine, in any of TRAMP's syntaxes:
/// `/method:host:x`, `/host:x` or `/[method/host]x`. Users choose the syntax, so all of them count;
/// `contexture--remote-p` in Emacs has the same rule. `//host` is another machine on some systems.
fn is_remote(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    if let Some(rest) = rest.strip_prefix('/') {
        return !rest.is_empty() && !rest.starts_with('/');
    }
    let first = rest.split('/').next().unwrap_or_default();
    first.starts_with('[') || first.find(':').is_some_and(|at| at > 0)
}

fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Result<&str, &str>) {
        let found = absolute(name).map_err(|error| error.kind());
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn absolute_names_lose_their_dots() {
        check("/a/b.rs", Ok("/a/b.rs"));
        check("/a/./b//c/", Ok("/a/b/c"));
        check("/a/../../b", Ok("/b"));
        check("/", Ok("/"));
        check("/ä b\n/c", Ok("/ä b\n/c"));
    }

    #[test]
    fn the_tilde_is_the_home_folder() {
        let home = env::home_dir().unwrap();
        assert_eq!(absolute("~/x/../y").unwrap(), home.join("y"));
        assert_eq!(absolute("~").unwrap(), home);
        assert_eq!(absolute("~//etc").unwrap(), home.join("etc"));
        check("~other/x", Err("not-absolute"));
    }

    /// All names of up to four pieces: none becomes a name that Emacs would not open here.
    #[test]
    fn no_name_becomes_a_remote_one_or_keeps_dots() {
        let pieces = [
            "..",
            ".",
            "",
            "a",
            "ssh:h:",
            "ssh:u@h#22:",
            "ssh:a|sudo:b:",
            "sudo::",
            "-:h:",
            "~",
            "~u",
            "[ssh/h]",
            "h:x",
            "[/h]x",
            ":",
            "a.tar.gz",
            "$(touch x)",
            "$HOME",
            "%TEMP%",
            "\\\\h\\s",
            "a\0b",
            "\u{202e}",
            "\n",
        ];
        let starts = ["/", "//", "~/", "/:/", "/:", "", "./", "file:///", "C:/"];
        let mut names: Vec<String> = starts.map(str::to_owned).into();
        let mut count = 0;
        for _ in 0..3 {
            let longer =
                names.iter().flat_map(|name| pieces.map(|piece| format!("{name}{piece}/")));
            names = longer.collect();
            for name in &names {
                count += 1;
                let Ok(path) = absolute(name) else { continue };
                let text = path.to_str().unwrap();
                assert!(text.starts_with('/') && !is_remote(text), "{name:?} became {text:?}");
                assert!(!path.components().any(|part| part == Component::ParentDir), "{text:?}");
            }
        }
        assert!(count > 80_000, "only {count} names");
    }

    #[test]
    fn relative_names_are_refused() {
        for name in ["", "a", "./a", "../a", "C:/a"] {
            check(name, Err("not-absolute"));
        }
    }

    #[test]
    fn remote_names_are_refused_however_they_are_hidden() {
        for name in ["/ssh:host:/x", "/sudo::/etc/x", "/ssh:a|sudo:b:/x", "/-:h:/x", "/ssh:u@h#22:"]
        {
            check(name, Err("not-local"));
        }
        for name in
            ["/:/ssh:host:/x", "/a/../ssh:host:/x", "//ssh:host:/x", "/./sudo::/x", "/../-:h:/x"]
        {
            check(name, Err("not-local"));
        }
        check("/:/a/ssh:host:/x", Ok("/a/ssh:host:/x"));
        check("/tmp/a:b:c", Ok("/tmp/a:b:c"));
    }

    /// Names of files, each after `remote` or `local`. The tests of Emacs read them, too.
    #[test]
    fn remote_names_are_those_that_emacs_takes_for_remote() {
        let told = include_str!("../../../../tests/outside/remote-names.txt");
        let mut counts = [0, 0];
        for line in told.lines() {
            let (kind, name) = line.split_once(' ').unwrap();
            counts[usize::from(kind == "remote")] += 1;
            let is_refused = absolute(name).is_err_and(|error| error.kind() == "not-local");
            assert_eq!(is_refused, kind == "remote", "{name}");
        }
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
    }
}
