//! Counts, cuts out, compares and finds lines of a text. Must not touch the disk.
//!
//! A line ends with a newline, which the last line may lack. Lines are counted from 1, and an empty
//! text has no lines.

use std::borrow::Cow;

use memchr::{memchr_iter, memmem};

/// Returns the number of lines.
pub(super) fn count(text: &str) -> u64 {
    let newlines = memchr_iter(b'\n', text.as_bytes()).count() as u64;
    newlines + u64::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns lines `start` to `end`, both included, or from `start` to the end of the text, with
/// their line ends unchanged. `None` when the text has fewer lines. `start` must be at least 1.
pub(super) fn slice(text: &str, start: u64, end: Option<u64>) -> Option<&str> {
    let mut newlines = memchr_iter(b'\n', text.as_bytes());
    let from = match usize::try_from(start - 1).ok()? {
        0 => 0,
        before => newlines.nth(before - 1)? + 1,
    };
    if from >= text.len() {
        return None;
    }
    let Some(end) = end else { return Some(&text[from..]) };
    match newlines.nth(usize::try_from(end - start).ok()?) {
        Some(newline) => Some(&text[from..=newline]),
        None if count(text) == end => Some(&text[from..]),
        None => None,
    }
}

/// Returns whether two texts are equal apart from a byte-order mark, CRLF or LF, and one final
/// newline. Emacs hides the mark and the kind of line ends, and a region may end before the final
/// newline.
pub(super) fn same(one: &str, other: &str) -> bool {
    let (one, other) = (unified(one), unified(other));
    without_final_newline(&one) == without_final_newline(&other)
}

/// Removes a byte-order mark and turns CRLF into LF, as a buffer shows the text.
pub(super) fn unified(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if memmem::find(text.as_bytes(), b"\r\n").is_some() {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Extent that a match must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// Whole lines; the final newline may be left out.
    WholeLines,
    /// Any part of the text.
    Anything,
}

/// Result of searching a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFound {
    /// The wanted text does not occur.
    Nowhere,
    /// The wanted text occurs in exactly one place, on these lines.
    Once(u64, u64),
    /// The wanted text occurs in two or more places, which may overlap.
    Several,
}

/// Finds `wanted`, which must not be empty, in `text`; both are [`unified`]. Takes time linear in
/// the length of the text, whatever it contains.
pub(super) fn find(text: &str, wanted: &str, cover: Cover) -> TextFound {
    let place = match cover {
        Cover::Anything => find_once(text, wanted),
        // With a newline on both sides, every match is a run of whole lines, so two searches
        // suffice. Filtering the matches instead would be quadratic on repetitive texts.
        Cover::WholeLines => {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            let framed = format!("\n{text}{end}");
            find_once(&framed, &format!("\n{}\n", without_final_newline(wanted)))
        }
    };
    match place {
        Ok(offset) => {
            let before = memchr_iter(b'\n', &text.as_bytes()[..offset]).count() as u64;
            TextFound::Once(before + 1, before + count(wanted))
        }
        Err(otherwise) => otherwise,
    }
}

/// Returns the offset of the only match; otherwise, as an error, the result of the search.
fn find_once(text: &str, wanted: &str) -> Result<usize, TextFound> {
    let finder = memmem::Finder::new(wanted);
    let first = finder.find(text.as_bytes()).ok_or(TextFound::Nowhere)?;
    // Searches from the next byte, not from the match's end: an overlapping match is another place.
    match finder.find(&text.as_bytes()[first + 1..]) {
        Some(_) => Err(TextFound::Several),
        None => Ok(first),
    }
}

fn without_final_newline(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_counted_with_or_without_a_final_newline() {
        for (text, expected) in
            [("", 0), ("a", 1), ("a\n", 1), ("\n", 1), ("a\n\n", 2), ("a\nb", 2)]
        {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    #[track_caller]
    fn check_slice(text: &str, start: u64, end: Option<u64>, expected: Option<&str>) {
        assert_eq!(slice(text, start, end), expected);
    }

    #[test]
    fn slices_are_verbatim() {
        check_slice("a\r\nb\r\nc", 1, Some(2), Some("a\r\nb\r\n"));
        check_slice("a\nb\nc", 2, None, Some("b\nc"));
        check_slice("a\nb\nc", 3, Some(3), Some("c"));
        check_slice("a\nb\nc\n", 3, Some(3), Some("c\n"));
        check_slice("\n\n", 2, Some(2), Some("\n"));
        check_slice("one", 1, Some(1), Some("one"));
    }

    #[test]
    fn slices_past_the_end_are_none() {
        check_slice("", 1, None, None);
        check_slice("", 1, Some(1), None);
        check_slice("a\n", 2, None, None);
        check_slice("a\n", 1, Some(2), None);
        check_slice("a\nb", 1, Some(3), None);
        check_slice("a", u64::MAX, None, None);
        check_slice("a", 1, Some(u64::MAX), None);
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_make_no_difference() {
        for (one, other, expected) in [
            ("a\nb", "a\nb\n", true),
            ("a\r\nb\r\n", "a\nb", true),
            ("\u{feff}a", "a", true),
            ("a\n", "a\n\n", false),
            ("a\rb", "a\nb", false),
            ("a", "b", false),
        ] {
            assert_eq!(same(one, other), expected, "{one:?} {other:?}");
        }
    }

    #[track_caller]
    fn check_find(text: &str, wanted: &str, cover: Cover, expected: TextFound) {
        assert_eq!(find(text, wanted, cover), expected);
    }

    #[test]
    fn whole_lines_are_found_at_line_ends_only() {
        use Cover::WholeLines;
        check_find("a\nb\nc\n", "b\n", WholeLines, TextFound::Once(2, 2));
        check_find("a\nb\nc\n", "b", WholeLines, TextFound::Once(2, 2));
        check_find("a\nb\nc", "b\nc\n", WholeLines, TextFound::Once(2, 3));
        check_find("a\nbb\n", "b", WholeLines, TextFound::Nowhere);
        check_find("a\n b\n", "b", WholeLines, TextFound::Nowhere);
        check_find("a\nb\na\n", "a\n", WholeLines, TextFound::Several);
        check_find("a\na\na\n", "a\na\n", WholeLines, TextFound::Several);
        check_find("a\n", "a\n\n", WholeLines, TextFound::Nowhere);
        check_find("x\n\ny\n", "\n", WholeLines, TextFound::Once(2, 2));
        check_find("a", "a", WholeLines, TextFound::Once(1, 1));
    }

    #[test]
    fn parts_of_lines_are_found_anywhere() {
        use Cover::Anything;
        check_find("let a = (f x);\nb", "(f x)", Anything, TextFound::Once(1, 1));
        check_find("a (b\nc) d", "(b\nc)", Anything, TextFound::Once(1, 2));
        check_find("aaa", "aa", Anything, TextFound::Several);
        check_find("aé", "é", Anything, TextFound::Once(1, 1));
    }

    proptest! {
        #[test]
        fn any_run_of_lines_is_cut_out_and_found(
            text in "[ab\n]{0,24}", start in 1u64..9, length in 0u64..5,
        ) {
            let end = start + length;
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            let expected = (end <= all.len() as u64)
                .then(|| all[start as usize - 1..end as usize].concat());
            prop_assert_eq!(slice(&text, start, Some(end)), expected.as_deref());
            if let Some(wanted) = expected {
                let found = find(&text, &wanted, Cover::WholeLines);
                prop_assert!(matches!(found, TextFound::Several) || found == TextFound::Once(start, end));
            }
        }
    }
}
