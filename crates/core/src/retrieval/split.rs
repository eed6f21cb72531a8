//! Splits long texts into the same words as [`words`] does, but much faster: most texts are ASCII,
//! and words in ASCII are not copied.

use super::words;

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const JOINT: u8 = 8;
const OTHER: u8 = 16;

/// Class of each byte. 0 stands for a byte between words.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => JOINT,
            0..=0x7f => 0,
            _ => OTHER,
        };
        byte += 1;
    }
    classes
}

/// Passes the words of a text to `take`, in order. Each word comes as the pieces that it is joined
/// from. ASCII letters may be in their original case; all other letters are in lower case.
pub(super) fn each_word(text: &str, mut take: impl FnMut(&[&str])) {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let mut seen = 0;
        while let Some(class) = bytes.get(at).map(|byte| CLASSES[usize::from(*byte)])
            && class != 0
        {
            seen |= class;
            at += 1;
        }
        let run = &text[start..at];
        // Characters outside ASCII may still separate words.
        match run.len() > words::LONGEST_RUN && seen & OTHER == 0 {
            true => words::runs(run).for_each(|piece| each_of(piece, seen, &mut parts, &mut take)),
            false if at > start => each_of(run, seen, &mut parts, &mut take),
            false => {}
        }
        at += 1;
    }
}

/// Passes on the words of a run of bytes that are not ASCII separators, or of a piece of such a
/// run. `seen` holds the classes of the whole run's bytes. `parts` is a buffer for the parts of
/// words.
fn each_of<'t>(run: &'t str, seen: u8, parts: &mut Vec<&'t str>, take: &mut impl FnMut(&[&str])) {
    let capital = || run.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    match seen {
        LOWER | UPPER | DIGIT => take(&[run]),
        _ if seen & OTHER != 0 => words::each_word(run, |word| take(&[word])),
        _ if seen == LOWER | UPPER && capital() => take(&[run]),
        _ => {
            parts.clear();
            ascii_parts(run, parts);
            parts.iter().for_each(|part| take(&[part]));
            if parts.len() > 1 {
                take(parts);
            }
        }
    }
}

/// Splits an identifier of ASCII characters into parts, as [`words::words`] does.
fn ascii_parts<'t>(identifier: &'t str, parts: &mut Vec<&'t str>) {
    let run = identifier.as_bytes();
    let mut start = 0;
    for at in 1..=run.len() {
        let cut = run.get(at).is_none_or(|right| {
            let left = run[at - 1];
            let hump = left.is_ascii_lowercase() && right.is_ascii_uppercase();
            let acronym_ends = left.is_ascii_uppercase()
                && right.is_ascii_uppercase()
                && run.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let number = left.is_ascii_digit() != right.is_ascii_digit();
            left == b'_' || *right == b'_' || hump || acronym_ends || number
        });
        if cut {
            if run[start] != b'_' {
                parts.push(&identifier[start..at]);
            }
            start = at;
        }
    }
}
