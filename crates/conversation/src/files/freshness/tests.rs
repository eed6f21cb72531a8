//! Tests that compare items with real files.

use std::fs;

use super::*;
use crate::context::item::{ItemId, Kind, Metadata};

fn state_of(item: &Item) -> State {
    states(&[item])[0]
}

/// A time before any test file was written, so that texts are always compared.
const LONG_AGO: i64 = 0;
/// A time after all test files were written.
const NEVER: i64 = i64::MAX;

fn item(filename: &str, content: &str, lines: Option<(i64, i64)>, taken_ms: i64) -> Item {
    let mut metadata = Metadata::default();
    metadata.set("filename", Value::Str(filename.to_owned()));
    if let Some((start, end)) = lines {
        metadata.set("start-line", Value::Int(start));
        metadata.set("end-line", Value::Int(end));
    }
    Item {
        id: ItemId(1),
        kind: Kind::Code,
        content: content.into(),
        metadata,
        timestamp: 0,
        taken_ms,
        tokens: 0,
        counted_by: "estimate",
        live: false,
    }
}

fn with(mut item: Item, name: &str, value: Value) -> Item {
    item.metadata.set(name, value);
    item
}

/// Returns the state of an item with this text and these lines, taken before the file got its text.
#[track_caller]
fn check(file: &str, content: &str, lines: Option<(i64, i64)>, expected: State) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    fs::write(&path, file).unwrap();
    assert_eq!(state_of(&item(path.to_str().unwrap(), content, lines, LONG_AGO)), expected);
}

#[test]
fn whole_files_are_compared_whole() {
    check("a\nb\n", "a\nb\n", None, State::Fresh);
    check("a\nb\n", "a\nb", None, State::Fresh);
    check("a\r\nb\r\n", "a\nb\n", None, State::Fresh);
    check("\u{feff}a\n", "a\n", None, State::Fresh);
    check("a\nb\n", "a\n", None, State::Stale);
    check("", "", None, State::Fresh);
}

#[test]
fn regions_are_compared_with_their_lines() {
    check("a\nb\nc\n", "b\n", Some((2, 2)), State::Fresh);
    check("a\nb\nc", "b\nc\n", Some((2, 3)), State::Fresh);
    check("a\r\nb\r\n", "b", Some((2, 2)), State::Fresh);
    check("a\nb + 1\nc\n", "b", Some((2, 2)), State::Stale);
    check("a\n  b\nc\n", "b\n", Some((2, 2)), State::Stale);
    check("b\n", "b\n", Some((2, 2)), State::Stale);
    check("a\nb\n", "b\n", Some((2, 1)), State::Stale);
}

#[test]
fn a_partial_region_need_only_be_part_of_its_lines() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    fs::write(&path, "let a = (f x);\r\nif (y\r\n  z) {}\n").unwrap();
    let state = |content, lines| {
        let item = item(path.to_str().unwrap(), content, Some(lines), LONG_AGO);
        state_of(&with(item, "partial", Value::Bool(true)))
    };
    assert_eq!(state("(f x)", (1, 1)), State::Fresh);
    assert_eq!(state("(y\n  z)", (2, 3)), State::Fresh);
    assert_eq!(state("(f y)", (1, 1)), State::Stale);
    assert_eq!(state("(f x)", (2, 2)), State::Stale);
    assert_eq!(state("(f x)", (1, 2)), State::Stale, "one line of text is not two");
}

#[test]
fn each_row_of_a_rectangle_must_be_part_of_its_line() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    fs::write(&path, "apple  1.20\n\nfig    0.80\nplum\n").unwrap();
    let state = |content, lines| {
        let item = item(path.to_str().unwrap(), content, Some(lines), LONG_AGO);
        let item = with(item, "start-column", Value::Int(8));
        state_of(&with(item, "partial", Value::Bool(true)))
    };
    assert_eq!(state("1.20\n\n0.80\n", (1, 3)), State::Fresh);
    assert_eq!(state("0.80\n\n", (3, 4)), State::Fresh);
    assert_eq!(state("1.20\n0.80\n", (1, 3)), State::Stale);
    assert_eq!(state("1.20\n\n0.81\n", (1, 3)), State::Stale);
    assert_eq!(state("0.80\n\n1.20\n", (1, 3)), State::Stale);
}

#[test]
fn a_file_that_is_gone_is_missing() {
    let gone = |name| state_of(&item(name, "a", None, NEVER));
    assert_eq!(gone("/nonexistent/file"), State::Missing);
    assert_eq!(gone("/dev/null/x"), State::Missing);
}

#[test]
fn items_without_a_local_file_are_fresh() {
    for name in ["src/a.rs", "/ssh:host:/a.rs", ""] {
        assert_eq!(state_of(&item(name, "a", None, LONG_AGO)), State::Fresh, "{name:?}");
    }
    let mut bare = item("", "a", None, LONG_AGO);
    bare.metadata = Metadata::default();
    assert_eq!(state_of(&bare), State::Fresh);
}

#[test]
fn what_cannot_be_read_as_text_any_more_is_stale() {
    let temp = tempfile::tempdir().unwrap();
    let state =
        |name: &str| state_of(&item(temp.path().join(name).to_str().unwrap(), "a", None, LONG_AGO));
    fs::write(temp.path().join("binary"), "a\0").unwrap();
    let huge = fs::File::create(temp.path().join("huge")).unwrap();
    huge.set_len(MAX_COMPARED_BYTES + 1).unwrap();
    fs::create_dir(temp.path().join("folder")).unwrap();
    let fifo = temp.path().join("fifo");
    crate::system::make_fifo(&fifo);
    for name in ["binary", "huge", "folder", "fifo"] {
        assert_eq!(state(name), State::Stale, "{name}");
    }
}

#[test]
fn a_listing_is_fresh_while_its_folder_is_there() {
    let temp = tempfile::tempdir().unwrap();
    let listing = |path: &Path| {
        let item = item(path.to_str().unwrap(), "x/", None, LONG_AGO);
        state_of(&with(item, "origin", Value::Keyword("listing".into())))
    };
    assert_eq!(listing(temp.path()), State::Fresh);
    assert_eq!(listing(&temp.path().join("gone")), State::Missing);
}

#[track_caller]
fn check_settled(look: Look, taken_ms: i64, expected: Option<State>) {
    assert_eq!(settled(&item("/x", "a", None, taken_ms), look), expected);
}

#[test]
fn only_changes_clearly_before_the_item_spare_the_reading() {
    check_settled(Look::Changed(1000), 1021, Some(State::Fresh));
    check_settled(Look::Changed(1000), 1020, None);
    check_settled(Look::Changed(1000), 1000, None);
    check_settled(Look::Changed(1000), 999, None);
    check_settled(Look::Changed(i64::MAX), i64::MAX, None);
    check_settled(Look::Unknown, 1000, Some(State::Stale));
}

#[test]
fn an_old_file_under_an_old_name_is_seen() {
    let temp = tempfile::tempdir().unwrap();
    let (path, old) = (temp.path().join("file"), temp.path().join("old"));
    fs::write(&path, "new").unwrap();
    fs::write(&old, "old").unwrap();
    let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    fs::File::options().write(true).open(&old).unwrap().set_modified(past).unwrap();
    fs::rename(&old, &path).unwrap();
    let Look::Changed(at) = Look::at(&path) else { panic!("a file") };
    assert!(at > 1_000_000_000_000, "the change of the inode counts, not the time set");
}

#[test]
fn links_lead_to_their_file() {
    let temp = tempfile::tempdir().unwrap();
    let (file, link) = (temp.path().join("file"), temp.path().join("link"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(Look::at(&link), Look::Gone);
    fs::write(&file, "a").unwrap();
    assert!(matches!(Look::at(&link), Look::Changed(_)));
    assert_eq!(state_of(&item(link.to_str().unwrap(), "a", None, LONG_AGO)), State::Fresh);
    assert_eq!(state_of(&item(link.to_str().unwrap(), "b", None, LONG_AGO)), State::Stale);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(Look::at(&link), Look::Folder);
}

#[test]
fn a_file_shared_by_many_items_gives_each_its_own_state() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    fs::write(&path, "a\nb\n").unwrap();
    let name = path.to_str().unwrap();
    let items = [
        item(name, "a\n", Some((1, 1)), LONG_AGO),
        item("/nonexistent/file", "", None, LONG_AGO),
        item(name, "x\n", Some((2, 2)), LONG_AGO),
        item(name, "x\n", Some((2, 2)), NEVER),
        item("relative", "x", None, LONG_AGO),
    ];
    let expected = [State::Fresh, State::Missing, State::Stale, State::Fresh, State::Fresh];
    assert_eq!(states(&items.iter().collect::<Vec<_>>()), expected);
    assert_eq!(states(&[]), []);
}
