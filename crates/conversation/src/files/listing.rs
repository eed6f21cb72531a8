//! Formats a tree of files with their sizes and tokens, for users and models. Must not touch the
//! disk.

use std::fmt::Write;
use std::path::Path;

use crate::visible::visible;

/// A file in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Path relative to the root, with `/` between the names.
    pub relative: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of tokens in the file's text.
    pub tokens: u64,
}

/// Formats the tree under `root`, one line per file or folder, indented by two spaces per level:
///
/// ```text
/// demo/ (2 files, 1.5 kB, 420 tokens)
///   src/ (1 file, 1.2 kB, 330 tokens)
///     lib.rs (1.2 kB, 330 tokens)
///   README.md (310 B, 90 tokens)
/// ```
///
/// A folder's line has the totals of everything below it; a folder that holds only one folder
/// shares its line. Entries are sorted by the bytes of each name, whatever the order of `files`.
/// Sizes are decimal (1 kB is 1000 bytes) with one digit after the point, below 1 kB in bytes.
/// Backslashes and hidden characters in names are escaped as in Rust strings. There is no final
/// newline.
pub fn listing(root: &Path, files: &[ListedFile]) -> String {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let mut entries: Vec<ListingEntry<'_>> = files
        .iter()
        .map(|file| ListingEntry { names: file.relative.split('/').collect(), file })
        .collect();
    entries.sort_by(|one, other| one.names.cmp(&other.names));
    let mut text = String::new();
    print_line(&mut text, 0, &format!("{}/", escaped(&name)), &totals(&entries));
    print_below(&mut text, 1, 0, &entries);
    text.truncate(text.trim_end_matches('\n').len());
    text
}

struct ListingEntry<'a> {
    /// Names on the path from the root; the last is that of the file.
    names: Vec<&'a str>,
    file: &'a ListedFile,
}

/// Appends the lines of the entries below a folder to `text`. `entries` is sorted and not empty;
/// the text already has the first `depth` names of each entry.
fn print_below(text: &mut String, level: usize, depth: usize, entries: &[ListingEntry<'_>]) {
    for group in entries.chunk_by(|one, other| one.names[depth] == other.names[depth]) {
        if group[0].names.len() == depth + 1 {
            for entry in group {
                let size =
                    format!("{}, {}", size(entry.file.bytes), counted(entry.file.tokens, "token"));
                print_line(text, level, &escaped(entry.names[depth]), &size);
            }
            continue;
        }
        let below = depth + shared_folders(group, depth);
        let path: String =
            group[0].names[depth..below].iter().map(|name| escaped(name) + "/").collect();
        print_line(text, level, &path, &totals(group));
        print_below(text, level + 1, below, group);
    }
}

/// Returns the number of names from `depth` on that are folders shared by all entries of the group.
fn shared_folders(group: &[ListingEntry<'_>], depth: usize) -> usize {
    let (first, last) = (&group[0].names, &group[group.len() - 1].names);
    let folders = first.len().min(last.len()) - 1;
    // The group is sorted, so names shared by its first and last entry are shared by all.
    (depth..folders).take_while(|&at| first[at] == last[at]).count().max(1)
}

fn print_line(text: &mut String, level: usize, name: &str, about: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{:indent$}{name} ({about})", "", indent = level * 2);
}

fn totals(entries: &[ListingEntry<'_>]) -> String {
    let bytes = entries.iter().map(|entry| entry.file.bytes).sum();
    let tokens = entries.iter().map(|entry| entry.file.tokens).sum();
    let files = counted(entries.len() as u64, "file");
    format!("{files}, {}, {}", size(bytes), counted(tokens, "token"))
}

/// Formats a count with its noun: `1 file`, `1,234 files`.
fn counted(count: u64, noun: &str) -> String {
    let digits = count.to_string();
    let thousands = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", thousands.collect::<Vec<_>>().join(","))
}

/// Formats a size in bytes: `999 B`, `1.0 kB`, `34.1 MB`. Halves round up.
fn size(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut unit = 1000;
    for name in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        let tenths = (u128::from(bytes) * 10 + unit / 2) / unit;
        if tenths < 10_000 || name == "EB" {
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
        unit *= 1000;
    }
    format!("{bytes} B")
}

fn escaped(name: &str) -> String {
    visible(&name.replace('\\', "\\\\")).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(root: &str, files: &[(&str, u64, u64)], expected: &str) {
        let mut files: Vec<_> = files
            .iter()
            .map(|&(relative, bytes, tokens)| ListedFile {
                relative: relative.to_owned(),
                bytes,
                tokens,
            })
            .collect();
        assert_eq!(listing(Path::new(root), &files), expected);
        files.reverse();
        assert_eq!(
            listing(Path::new(root), &files),
            expected,
            "the order of files does not matter"
        );
    }

    #[test]
    fn folders_carry_totals() {
        check(
            "/home/me/demo",
            &[
                ("src/lib.rs", 1200, 330),
                ("README.md", 310, 90),
                ("src/a/x.rs", 1, 1),
                ("src-b", 0, 0),
            ],
            "demo/ (4 files, 1.5 kB, 421 tokens)\n  \
               README.md (310 B, 90 tokens)\n  \
               src/ (2 files, 1.2 kB, 331 tokens)\n    \
                 a/ (1 file, 1 B, 1 token)\n      \
                   x.rs (1 B, 1 token)\n    \
                 lib.rs (1.2 kB, 330 tokens)\n  \
               src-b (0 B, 0 tokens)",
        );
    }

    #[test]
    fn folders_with_one_folder_share_its_line() {
        check(
            "/p",
            &[("a/b/c/x", 1, 1), ("a/b/d/y", 1, 1), ("e/f/z", 1, 1), ("e/g", 1, 1)],
            "p/ (4 files, 4 B, 4 tokens)\n  \
               a/b/ (2 files, 2 B, 2 tokens)\n    \
                 c/ (1 file, 1 B, 1 token)\n      \
                   x (1 B, 1 token)\n    \
                 d/ (1 file, 1 B, 1 token)\n      \
                   y (1 B, 1 token)\n  \
               e/ (2 files, 2 B, 2 tokens)\n    \
                 f/ (1 file, 1 B, 1 token)\n      \
                   z (1 B, 1 token)\n    \
                 g (1 B, 1 token)",
        );
    }

    #[test]
    fn an_empty_tree_and_the_root_have_a_line() {
        check("/p/empty", &[], "empty/ (0 files, 0 B, 0 tokens)");
        check("/", &[("a", 1, 1)], "/ (1 file, 1 B, 1 token)\n  a (1 B, 1 token)");
    }

    #[test]
    fn names_cannot_break_a_line() {
        check(
            "/p",
            &[
                ("a\nb\u{1b}[31m", 1, 1),
                ("c\\n", 1, 1),
                ("d\u{202e}", 1, 1),
                ("é ü\u{301}'\"", 1, 1),
            ],
            "p/ (4 files, 4 B, 4 tokens)\n  \
               a\\nb\\u{1b}[31m (1 B, 1 token)\n  \
               c\\\\n (1 B, 1 token)\n  \
               d\\u{202e} (1 B, 1 token)\n  \
               é ü\u{301}'\" (1 B, 1 token)",
        );
    }

    proptest! {
        #[test]
        fn nothing_hides_in_a_name(name in "(a|\\p{C}|\\p{Cf}|\\PC){1,20}") {
            let relative = name.replace('/', "-");
            let file = ListedFile { relative, bytes: 1, tokens: 1 };
            let text = listing(Path::new(&format!("/{name}")), &[file]);
            prop_assert_eq!(crate::visible::visible_lines(&text), &*text);
            prop_assert_eq!(text.lines().count(), 2);
        }
    }

    #[test]
    fn sizes_are_decimal() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (1049, "1.0 kB"),
            (1050, "1.1 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (34_100_000, "34.1 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn counts_have_thousands_and_a_plural() {
        for (count, expected) in [
            (0, "0 files"),
            (1, "1 file"),
            (999, "999 files"),
            (1000, "1,000 files"),
            (1_234_567, "1,234,567 files"),
        ] {
            assert_eq!(counted(count, "file"), expected);
        }
    }
}
