//! Specifics: the paths, identifiers, options and numbers of a text. A person or a model that
//! works on something repeats them exactly, so they tell better than common words what the work
//! is about.

/// Minimum length of a number, in digits. Single digits are too common.
const LEAST_DIGITS: usize = 2;
/// Maximum length of the extension of a file's name, such as `rs`, in letters.
const LONGEST_ENDING: usize = 5;

/// Passes the specifics of a text to `take`, in order.
pub(crate) fn each<'t>(text: &'t str, mut take: impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let (mut telling, mut before) = (false, 0u8);
        while let Some(&byte) = bytes.get(at)
            && is_part(byte)
        {
            // Most words are small letters with at most one capital at the front.
            telling |= !byte.is_ascii_alphabetic()
                || (byte.is_ascii_uppercase() && before.is_ascii_lowercase());
            before = byte;
            at += 1;
        }
        if telling {
            run(&text[start..at], &mut take);
        }
        at += 1;
    }
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'~' | b'@' | b'+')
}

/// Calls `take` with each specific in a run of letters, digits, and characters of paths and
/// options, such as `/` and `-`.
fn run<'t>(run: &'t str, take: &mut impl FnMut(&'t str)) {
    let run = run.trim_end_matches(['.', '-', '/', '+', '@', '~']);
    if run.contains('/') {
        if run.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            take(run);
        }
        return;
    }
    let bare = run.trim_start_matches(['-', '.', '+', '@', '~']);
    if run.starts_with('-') && bare.starts_with(|c: char| c.is_ascii_alphabetic()) {
        take(run);
    } else if is_file(bare) || is_version(bare) {
        take(bare);
    } else {
        if is_hyphenated(bare) {
            take(bare);
        }
        bare.split(['.', '-', '@', '+', '~']).filter(|word| is_telling(word)).for_each(take);
    }
}

/// Returns whether a word is the name of a file with an extension.
fn is_file(word: &str) -> bool {
    let Some((stem, ending)) = word.rsplit_once('.') else { return false };
    let letters = ending.bytes().all(|byte| byte.is_ascii_alphabetic());
    !stem.is_empty() && letters && (1..=LONGEST_ENDING).contains(&ending.len())
}

/// Returns whether a word consists of numbers separated by dots.
fn is_version(word: &str) -> bool {
    word.contains('.')
        && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether a word has parts joined by hyphens, as names of Lisp functions, CSS classes and
/// packages do. English compounds look the same, but counting them as specifics does little harm.
fn is_hyphenated(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    word.contains('-') && word.bytes().all(is_part) && word.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Returns whether a word is a number or an identifier of several parts.
fn is_telling(word: &str) -> bool {
    let bytes = word.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) {
        return bytes.len() >= LEAST_DIGITS;
    }
    let hump = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    let joined = bytes.contains(&b'_') && bytes.iter().any(u8::is_ascii_alphabetic);
    joined || bytes.windows(2).any(hump)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut found = Vec::new();
        each(text, |specific| found.push(specific));
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn paths_identifiers_options_and_numbers_are_found() {
        check("Open src/a.rs, then ./b/ and ~/notes.txt.", "src/a.rs ./b ~/notes.txt");
        check("cargo test --locked -p engine -- -v1", "--locked -p -v1");
        check("parse_line(maxTokens) of Server, x.y_z", "parse_line maxTokens y_z");
        check("port 5433, version 1.20.3, step 7, 2 files", "5433 1.20.3");
        check("see main.rs:42 and Cargo.toml", "main.rs 42 Cargo.toml");
    }

    #[test]
    fn words_that_hyphens_join_are_found() {
        check("(string-trim-left s) text-gray-300", "string-trim-left text-gray-300 300");
        check("the 2-3 items of x-y-, --a-b and well-known a.b-c", "x-y --a-b well-known");
    }

    #[test]
    fn common_words_are_none() {
        check("The parser fails. It is known – isn't it? A / B ...", "");
        check("", "");
    }
}
