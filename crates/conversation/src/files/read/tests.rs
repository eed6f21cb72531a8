//! Tests of reading files, and of what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// Content, range and total number of lines, or the kind of the error.
type Expected<'a> = Result<(&'a str, Option<(u64, u64)>, u64), &'a str>;

#[track_caller]
fn check(bytes: &[u8], range: Option<(u64, Option<u64>)>, expected: Expected<'_>) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    fs::write(&path, bytes).unwrap();
    let found = read(&path, range, &ReadOptions { max_bytes: 20 });
    let found = found.as_ref().map(|f| (f.content.as_str(), f.lines, f.total_lines));
    assert_eq!(found.map_err(FileError::kind), expected);
}

#[test]
fn whole_files_are_verbatim() {
    check(b"a\nb\n", None, Ok(("a\nb\n", None, 2)));
    check(b"a\r\nb", None, Ok(("a\r\nb", None, 2)));
    check(b"", None, Ok(("", None, 0)));
    check("\u{feff}ä".as_bytes(), None, Ok(("ä", None, 1)));
}

#[test]
fn ranges_are_lines_of_the_file() {
    check(b"a\nb\nc\n", Some((2, Some(3))), Ok(("b\nc\n", Some((2, 3)), 3)));
    check(b"a\nb\nc", Some((3, None)), Ok(("c", Some((3, 3)), 3)));
    check(b"a\r\nb\r\n", Some((1, Some(1))), Ok(("a\r\n", Some((1, 1)), 2)));
    check(b"one", Some((1, Some(1))), Ok(("one", Some((1, 1)), 1)));
}

#[test]
fn ranges_past_the_end_say_the_real_length() {
    check(b"a\nb\n", Some((2, Some(3))), Err("past-end"));
    check(b"a\nb\n", Some((3, None)), Err("past-end"));
    check(b"", Some((1, None)), Err("past-end"));
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("x"), "1\n2\n3").unwrap();
    let error = read(&temp.path().join("x"), Some((2, Some(9))), &ReadOptions::default());
    assert!(
        error.unwrap_err().to_string().contains("has 3 lines, so the range 2-9 goes past its end")
    );
}

#[test]
fn impossible_ranges_are_refused_before_reading() {
    check(b"a\n", Some((0, None)), Err("bad-range"));
    check(b"a\n", Some((2, Some(1))), Err("bad-range"));
    let gone = Path::new("/nonexistent/x");
    assert_eq!(
        read(gone, Some((0, Some(1))), &ReadOptions::default()).unwrap_err().kind(),
        "bad-range"
    );
}

#[test]
fn binary_files_say_what_gave_them_away() {
    let sign = |bytes: &[u8]| match decode(Path::new("/x"), bytes.to_vec()) {
        Err(FileError::Binary { sign, offset, .. }) => Some((sign, offset)),
        _ => None,
    };
    assert_eq!(sign(b"ab\0c"), Some(("binary: it has a NUL byte", 2)));
    let invalid = "not UTF-8 text: it has an invalid byte";
    assert_eq!(sign(b"abc\xffd"), Some((invalid, 3)));
    assert_eq!(sign(b"ab\xc3"), Some((invalid, 2)));
    let mut late_nul = vec![b'a'; NUL_WINDOW];
    late_nul.push(0);
    assert_eq!(sign(&late_nul), None);
}

#[test]
fn the_limit_itself_is_allowed() {
    check(&[b'a'; 20], None, Ok(("aaaaaaaaaaaaaaaaaaaa", None, 1)));
    check(&[b'a'; 21], None, Err("file-too-large"));
    check(&[b'a'; 21], Some((1, Some(1))), Err("file-too-large"));
}

#[test]
fn huge_sparse_files_are_refused_without_reading() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("huge");
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = read(&path, None, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, FileError::TooLarge { bytes: 0x100_0000_0000, .. }), "{error}");
}

#[track_caller]
fn check_kind(path: &Path, expected: &str) {
    let found = read(path, None, &ReadOptions::default());
    assert_eq!(found.unwrap_err().kind(), expected);
}

#[test]
fn what_is_not_a_file_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    check_kind(temp.path(), "is-a-directory");
    check_kind(&at("gone"), "file-missing");
    fs::write(at("file"), "").unwrap();
    check_kind(&at("file/below"), "file-missing");
    symlink(at("gone"), at("dangling")).unwrap();
    check_kind(&at("dangling"), "file-missing");
    symlink(at("loop"), at("loop")).unwrap();
    check_kind(&at("loop"), "file-unreadable");
    check_kind(Path::new("/a\0b"), "file-unreadable");
    check_kind(Path::new("/dev/null"), "not-a-regular-file");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    check_kind(&at("socket"), "not-a-regular-file");
}

/// What a file is, its first bytes tell; a name that says otherwise is refused or does not count.
#[test]
fn a_picture_is_one_by_its_content_and_its_name_says_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let texts: [&[u8]; 6] = [
        b"<svg xmlns='http://www.w3.org/2000/svg'><image href='/etc/passwd'/></svg>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n(x) run\n",
        b"/* XPM */\nstatic char *x[] = {};\n",
        b"<html></html>",
        b"",
        b"GIF8",
    ];
    let picture = b"GIF89a\x01\0\x01\0";
    for end in ["png", "PNG", "jpg", "jpeg", "gif", "webp", "pdf", "txt", "svg"] {
        let path = temp.path().join(format!("a.{end}"));
        for text in texts {
            fs::write(&path, text).unwrap();
            let found = seen(&path, 99);
            match end {
                "txt" | "svg" => assert_eq!(found.unwrap(), None),
                _ => assert_eq!(found.unwrap_err().kind(), "file-binary", "{end}"),
            }
        }
        fs::write(&path, picture).unwrap();
        assert_eq!(seen(&path, 99).unwrap().unwrap(), picture, "{end}");
    }
}

#[test]
fn fifos_never_block() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("fifo");
    crate::system::make_fifo(&path);
    check_kind(&path, "not-a-regular-file");
    let after_the_first_look = load_open(&path, open_at_once(&path).unwrap(), 1);
    assert_eq!(after_the_first_look.unwrap_err().kind(), "not-a-regular-file");
}

#[test]
fn a_closed_file_is_unreadable_with_its_cause() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("closed");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        return; // Permissions do not stop root.
    }
    let error = read(&path, None, &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), "file-unreadable");
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[test]
fn refusals_of_the_system_are_sorted() {
    let kind = |kind: io::ErrorKind| refused(Path::new("/x"), kind.into()).kind();
    assert_eq!(kind(io::ErrorKind::PermissionDenied), "file-unreadable");
    assert_eq!(kind(io::ErrorKind::NotADirectory), "file-missing");
}

#[test]
fn files_without_a_size_are_read() {
    let text = read(Path::new("/proc/self/status"), None, &ReadOptions::default()).unwrap();
    assert!(text.content.starts_with("Name:"));
}
