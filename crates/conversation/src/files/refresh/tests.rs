//! Tests of refreshing items from real files.

use std::fs;

use super::*;
use crate::context::item::{ItemId, Metadata};
use crate::value::Value;

const NOW_MISSING: &str = "/nonexistent/file";

fn item(path: &Path, content: &str, metadata: &[(&str, Value)]) -> Item {
    let mut all = Metadata::default();
    all.set("filename", Value::Str(path.to_str().unwrap().to_owned()));
    for (name, value) in metadata {
        all.set(name, value.clone());
    }
    Item {
        id: ItemId(1),
        kind: Kind::Code,
        content: content.into(),
        metadata: all,
        timestamp: 0,
        taken_ms: 0,
        tokens: 0,
        counted_by: "estimate",
        live: false,
    }
}

fn refreshed(file: &[u8], content: &str, metadata: &[(&str, Value)]) -> Refreshed {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    fs::write(&path, file).unwrap();
    refresh(
        &item(&path, content, metadata),
        &ReadOptions { max_bytes: 100 },
        &mut FileReader::default(),
    )
}

fn origin(name: &str) -> (&'static str, Value) {
    ("origin", Value::Keyword(name.into()))
}

#[track_caller]
fn check_region(file: &str, content: &str, (start, end): (i64, i64), expected: Refreshed) {
    let lines = [("start-line", Value::Int(start)), ("end-line", Value::Int(end))];
    assert_eq!(refreshed(file.as_bytes(), content, &lines), expected);
}

fn moved(start_line: u64, end_line: u64) -> Refreshed {
    Refreshed::Moved { start_line, end_line }
}

const NOWHERE: Refreshed = Refreshed::Unsure("its text is no longer in the file");
const SEVERAL: Refreshed = Refreshed::Unsure("its text is in the file more than once");

#[test]
fn a_region_that_moved_is_found_again() {
    check_region("a\nb\nc\n", "b\nc\n", (2, 3), Refreshed::Unchanged);
    check_region("new\na\nb\nc\n", "b\nc\n", (2, 3), moved(3, 4));
    check_region("b\nc", "b\nc\n", (2, 3), moved(1, 2));
    check_region("new\r\na\r\nb\r\n", "b\n", (2, 2), moved(3, 3));
    check_region("\u{feff}b\nx\n", "b", (2, 2), moved(1, 1));
}

#[test]
fn a_region_is_never_guessed() {
    check_region("a\nchanged\nc\n", "b\n", (2, 2), NOWHERE);
    check_region("a\nb + 1\n", "b", (2, 2), NOWHERE);
    check_region("b\na\nb\n", "b\n", (2, 2), SEVERAL);
    check_region("x\na\na\na\n", "a\na\n", (1, 2), SEVERAL);
    check_region("b\nb\nb\n", "b\n", (2, 2), Refreshed::Unchanged);
    let empty = Refreshed::Unsure("its text is empty, so it cannot be found again");
    check_region("a\nb\n", "", (2, 2), empty);
}

#[test]
fn a_partial_region_is_found_inside_lines() {
    let metadata = [
        ("start-line", Value::Int(1)),
        ("end-line", Value::Int(1)),
        ("partial", Value::Bool(true)),
    ];
    let check = |file: &str, expected| {
        assert_eq!(refreshed(file.as_bytes(), "(f x)", &metadata), expected);
    };
    check("a = (f x) + 1\n", Refreshed::Unchanged);
    check("new\na = (f x)\n", moved(2, 2));
    check("new\n(f x)(f x)\n", SEVERAL);
    check("new\n(f y)\n", NOWHERE);
}

#[test]
fn whole_files_are_read_again() {
    for from in ["file", "tree", "buffer"] {
        assert_eq!(refreshed(b"a\n", "a\n", &[origin(from)]), Refreshed::Unchanged);
        let Refreshed::Updated(text) = refreshed(b"b\nc\n", "a\n", &[origin(from)]) else {
            panic!("{from}: the file changed")
        };
        assert_eq!((text.content.as_str(), text.lines, text.total_lines), ("b\nc\n", None, 2));
    }
}

#[test]
fn what_was_not_a_whole_file_is_not_made_one() {
    for from in ["region", "symbol"] {
        let found = refreshed(b"b\n", "a\n", &[origin(from)]);
        assert!(matches!(found, Refreshed::Unsure(_)), "{from}: {found:?}");
    }
    for from in ["diagnostic", "note", "repl"] {
        assert_eq!(refreshed(b"b\n", "a\n", &[origin(from)]), Refreshed::Unchanged, "{from}");
    }
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    fs::write(&path, "b\n").unwrap();
    let file = Item { kind: Kind::File, ..item(&path, "a\n", &[]) };
    assert!(matches!(
        refresh(&file, &ReadOptions::default(), &mut FileReader::default()),
        Refreshed::Updated(_)
    ));
}

#[test]
fn what_an_editor_decoded_is_fresh_until_its_file_changes() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("latin1");
    fs::write(&path, b"caf\xe9\n").unwrap();
    let decoded = Item { live: true, ..item(&path, "caf\u{e9}\n", &[origin("file")]) };
    let look = |taken_ms: i64, modified: bool| {
        let mut item = Item { taken_ms, ..decoded.clone() };
        item.metadata.set("unsaved", Value::Bool(true));
        item.metadata.set("modified", Value::Bool(modified));
        refresh(&item, &ReadOptions::default(), &mut FileReader::default())
    };
    assert_eq!(look(i64::MAX, false), Refreshed::Unchanged);
    assert_eq!(look(0, false), Refreshed::Unsure(NOT_UTF8));
    assert_eq!(look(i64::MAX, true), Refreshed::Unsure(NOT_UTF8), "edits were never saved");
}

#[test]
fn a_file_that_cannot_be_read_again_leaves_the_item_stale() {
    let unsure = |file: &[u8]| match refreshed(file, "a\n", &[origin("file")]) {
        Refreshed::Unsure(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(unsure(&[b'a'; 101]), "its file is now over the size limit, max-file-bytes");
    assert_eq!(unsure(b"a\0"), NOT_UTF8);
    let temp = tempfile::tempdir().unwrap();
    let folder = refresh(
        &item(temp.path(), "a", &[origin("file")]),
        &ReadOptions::default(),
        &mut FileReader::default(),
    );
    assert_eq!(folder, Refreshed::Unsure("its file is now a folder or cannot be reached"));
}

#[test]
fn a_region_of_a_file_over_the_limit_is_still_found() {
    let file = "x\n".repeat(100) + "b\n";
    check_region(&file, "b\n", (2, 2), moved(101, 101));
}

#[test]
fn a_file_that_is_gone_is_missing() {
    let gone = item(Path::new(NOW_MISSING), "a", &[origin("file")]);
    assert_eq!(
        refresh(&gone, &ReadOptions::default(), &mut FileReader::default()),
        Refreshed::Missing
    );
}

#[test]
fn items_without_a_file_and_listings_are_unchanged() {
    let options = ReadOptions::default();
    assert_eq!(
        refresh(&item(Path::new("a.rs"), "a", &[]), &options, &mut FileReader::default()),
        Refreshed::Unchanged
    );
    let temp = tempfile::tempdir().unwrap();
    let listing = item(temp.path(), "x/", &[origin("listing")]);
    assert_eq!(refresh(&listing, &options, &mut FileReader::default()), Refreshed::Unchanged);
}

#[test]
fn what_a_model_added_stays_within_its_project() {
    let temp = tempfile::tempdir().unwrap();
    let (project, secret) = (temp.path().join("p"), temp.path().join("secret"));
    fs::create_dir(&project).unwrap();
    fs::write(&secret, "secret").unwrap();
    let path = project.join("a");
    fs::write(&path, "new").unwrap();
    let within = ("within", Value::Str(project.to_str().unwrap().to_owned()));
    let item = item(&path, "old", &[origin("file"), within]);
    let found = refresh(&item, &ReadOptions { max_bytes: 100 }, &mut FileReader::default());
    assert!(matches!(found, Refreshed::Updated(text) if text.content == "new"));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&secret, &path).unwrap();
    let found = refresh(&item, &ReadOptions { max_bytes: 100 }, &mut FileReader::default());
    assert_eq!(
        found,
        Refreshed::Unsure("its path now leads outside the folder that it must stay in")
    );
}

#[test]
fn lines_of_a_file_that_became_a_link_out_or_to_a_secret_are_not_read() {
    let temp = tempfile::tempdir().unwrap();
    let (project, outside) = (temp.path().join("p"), temp.path().join("outside"));
    fs::create_dir(&project).unwrap();
    fs::write(&outside, "one\ntwo\nsecret\nfour\n").unwrap();
    fs::write(project.join(".env"), "one\ntwo\nsecret\nfour\n").unwrap();
    let path = project.join("a");
    let of_project = || ("project", Value::Str(project.to_str().unwrap().to_owned()));
    let lines = || [("start-line", Value::Int(2)), ("end-line", Value::Int(3))];
    let check = |target: &Path, name: &str, expected: &'static str| {
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(target, &path).unwrap();
        let all = [&[origin(name), of_project()][..], &lines()].concat();
        let item = Item { live: true, ..item(&path, "two\nthree", &all) };
        let found = refresh(&item, &ReadOptions { max_bytes: 100 }, &mut FileReader::default());
        assert_eq!(found, Refreshed::Unsure(expected), "{name}");
    };
    check(&outside, "file", "its path now leads outside the folder that it must stay in");
    let secret = "its path now leads to a file that may hold secrets";
    check(&project.join(".env"), "file", secret);
    check(&project.join(".env"), "region", secret);
}

#[test]
fn a_projects_file_that_became_a_link_out_of_it_is_not_read() {
    let temp = tempfile::tempdir().unwrap();
    let (project, outside) = (temp.path().join("p"), temp.path().join("outside"));
    fs::create_dir_all(project.join("src")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "secret").unwrap();
    let path = project.join("src/a");
    fs::write(&path, "new").unwrap();
    let options = ReadOptions { max_bytes: 100 };
    let of_project = || ("project", Value::Str(project.to_str().unwrap().to_owned()));
    let origins = ["file", "tree", "buffer"].map(|name| vec![origin(name), of_project()]);
    let all = [&origins[..], &[vec![of_project()]]].concat();
    let mut items: Vec<Item> =
        all.iter().map(|of| Item { kind: Kind::File, ..item(&path, "old", of) }).collect();
    let check = |item: &Item, expected: Result<&str, &'static str>| {
        let found = match refresh(item, &options, &mut FileReader::default()) {
            Refreshed::Updated(text) => Ok(text.content),
            Refreshed::Unsure(why) => Err(why),
            other => panic!("{other:?}"),
        };
        assert_eq!(found.as_deref().map_err(|why| *why), expected);
    };
    for item in &mut items {
        note_way_out(&mut item.metadata);
        check(item, Ok("new"));
    }
    fs::rename(project.join("src"), project.join("was")).unwrap();
    std::os::unix::fs::symlink(&outside, project.join("src")).unwrap();
    for item in &mut items {
        check(item, Err("its path now leads outside the folder that it must stay in"));
        // One that led outside when it was added is the user's choice.
        note_way_out(&mut item.metadata);
        check(item, Ok("secret"));
    }
}

/// A file that was found under another name is read as it was found, whatever takes the name
/// between the check and the reading.
#[test]
fn what_was_found_is_what_is_read_whatever_takes_its_name() {
    type Swap = fn(&Path, &Path);
    let swaps: &[(&str, Swap)] = &[
        ("nothing", |_, _| {}),
        ("a link out", |name, temp| {
            std::os::unix::fs::symlink(temp.join("outside"), name).unwrap();
        }),
        ("a link to a secret", |name, _| std::os::unix::fs::symlink(".env", name).unwrap()),
        ("a link to a device", |name, _| std::os::unix::fs::symlink("/dev/zero", name).unwrap()),
        ("a pipe", |name, _| crate::system::make_fifo(name)),
        ("a folder", |name, _| fs::create_dir(name).unwrap()),
        ("another file", |name, _| fs::write(name, "the secret\n").unwrap()),
        ("a hard link", |name, temp| fs::hard_link(temp.join("outside"), name).unwrap()),
    ];
    let options = ReadOptions { max_bytes: 1000 };
    for of in ["file", "buffer", "region"] {
        for (what, swap) in swaps {
            let temp = tempfile::tempdir().unwrap();
            let (root, name) = (temp.path().join("p"), temp.path().join("p/b.txt"));
            fs::create_dir_all(root.join(".git")).unwrap();
            fs::write(temp.path().join("outside"), "the secret\n").unwrap();
            fs::write(root.join(".env"), "the secret\n").unwrap();
            fs::write(&name, "the text\nwas found\n").unwrap();
            let gone = root.join("a.txt");
            let lines = [("start-line", Value::Int(1)), ("end-line", Value::Int(1))];
            let all = [&[origin(of)][..], if of == "region" { &lines } else { &[] }].concat();
            let mut now = item(&gone, "the text\n", &all);
            let mut reader = FileReader::default();
            let mut found = reader.renamed(&now, &gone, std::slice::from_ref(&name));
            let one = found.pop().unwrap_or_else(|| panic!("{of}, {what}: nothing was found"));
            if *what != "nothing" {
                fs::remove_file(&name).unwrap();
            }
            swap(&name, temp.path());
            now.metadata.set("filename", Value::Str(name.to_str().unwrap().to_owned()));
            let read = refresh_from(one, &now, &options, &mut reader);
            match &read {
                Refreshed::Updated(text) => assert_eq!(text.content, "the text\nwas found\n"),
                Refreshed::Unchanged => assert_eq!(of, "region", "{what}"),
                Refreshed::Unsure(_) => assert_eq!(*what, "a folder", "{of}"),
                other => panic!("{of}, {what}: {other:?}"),
            }
            // Found anew, the name leads to nothing that was not there.
            let again = reader.renamed(&now, &gone, std::slice::from_ref(&name));
            let is_there = matches!(*what, "nothing" | "another file" | "a hard link");
            assert_eq!(!again.is_empty(), is_there, "{of}, {what}");
        }
    }
}
