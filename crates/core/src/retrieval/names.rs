//! Names: the paths, files, identifiers, options, versions, hashes and issues of a text.
//!
//! A name is known by its shape alone, in every script. Whoever works on something repeats its
//! names exactly, so they tell better than common words what the work is about.

/// Minimum length of a name, in bytes.
const LEAST: usize = 4;
/// Minimum length of a hash, in digits.
const LEAST_HASH: usize = 7;
/// Minimum number of hyphens in a name without other marks. With one, most are compounds.
const HYPHENS: usize = 2;
/// Endings of files' names. A word after a dot is more often a field or a method.
pub(crate) const ENDINGS: &[&str] = &[
    "bash", "c", "cc", "cfg", "clj", "conf", "cpp", "cs", "css", "csv", "db", "diff", "el", "env",
    "erl", "ex", "exs", "go", "gradle", "h", "hpp", "hs", "html", "ini", "ipynb", "java", "jl",
    "js", "json", "jsonl", "jsx", "kt", "lisp", "lock", "log", "lua", "md", "mjs", "ml", "mod",
    "nix", "org", "patch", "pdf", "php", "pl", "png", "proto", "ps1", "py", "rb", "rs", "rst",
    "scala", "scm", "scss", "sexp", "sh", "sql", "sqlite", "svelte", "svg", "swift", "tex", "texi",
    "tf", "toml", "ts", "tsx", "txt", "vue", "wasm", "xml", "yaml", "yml", "zig", "zsh",
];

/// Passes the names of a text to `take`, in order. Of a path, the last part is its name, since the
/// same file is written with different folders before it.
pub fn each<'t>(text: &'t str, mut take: impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let (mut is_telling, mut before) = (false, ' ');
        let mut skipped = 1;
        while let Some(&byte) = bytes.get(at) {
            let c = if byte.is_ascii() { char::from(byte) } else { char_at(text, at) };
            if !is_part(c, before) {
                skipped = c.len_utf8();
                break;
            }
            is_telling |= !c.is_alphabetic() || (c.is_uppercase() && before.is_lowercase());
            before = c;
            at += c.len_utf8();
        }
        if is_telling {
            let is_issue = start > 0 && bytes[start - 1] == b'#';
            run(text, start, at, is_issue, &mut take);
        }
        at += skipped;
    }
}

fn char_at(text: &str, at: usize) -> char {
    text[at..].chars().next().unwrap_or(' ')
}

/// Returns whether a character continues a run after the character `before`. Letters without case,
/// as in Chinese, continue a run only after a mark such as `/` or after each other: prose in such
/// scripts has no spaces around names.
fn is_part(c: char, before: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || is_mark(c);
    }
    let is_caseless = |c: char| c.is_alphanumeric() && !c.is_lowercase() && !c.is_uppercase();
    c.is_alphanumeric() && (!is_caseless(c) || is_mark(before) || is_caseless(before))
}

fn is_mark(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | '~' | '@' | '+')
}

/// Passes on the names in a run of letters, digits and marks.
fn run<'t>(
    text: &'t str,
    start: usize,
    end: usize,
    is_issue: bool,
    take: &mut impl FnMut(&'t str),
) {
    let run = text[start..end].trim_end_matches(is_mark);
    if is_issue && run.len() > 1 && run.bytes().all(|byte| byte.is_ascii_digit()) {
        take(&text[start - 1..start + run.len()]);
        return;
    }
    if run.len() < LEAST {
        return;
    }
    let is_option = run.starts_with("--") && run[2..].starts_with(char::is_alphabetic);
    if is_option {
        take(run);
        return;
    }
    let Some((folders, name)) = run.rsplit_once('/') else {
        word(run.trim_start_matches(is_mark), take);
        return;
    };
    let is_path = folders.contains('/') || folders.starts_with(['.', '~']) || folders.is_empty();
    let is_named = name.len() >= LEAST && name.contains(char::is_alphabetic);
    if is_named && (is_path || is_file(name)) { take(name) } else { word(name, take) }
}

/// Passes on a word if it is a name, or else those of its parts that are.
fn word<'t>(word: &'t str, take: &mut impl FnMut(&'t str)) {
    if word.len() >= LEAST && (is_file(word) || is_version(word) || is_hyphenated(word)) {
        take(word);
        return;
    }
    let parts = word.split(['.', '@', '+', '~', '-']);
    parts.filter(|part| part.len() >= LEAST && is_identifier(part)).for_each(take);
}

fn is_file(word: &str) -> bool {
    let Some((stem, ending)) = word.rsplit_once('.') else { return false };
    !stem.is_empty() && ENDINGS.binary_search(&ending).is_ok()
}

fn is_version(word: &str) -> bool {
    let parts = || word.strip_prefix('v').unwrap_or(word).split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts().count() > 2 && parts().all(is_number)
}

/// Returns whether hyphens join the parts of a word, as in the names of Lisp functions.
fn is_hyphenated(word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    word.matches('-').count() >= HYPHENS
        && word.starts_with(char::is_alphabetic)
        && word.chars().all(is_part)
}

/// Returns whether a word has several parts in the forms `a_b` or `aB`, or is a hash.
fn is_identifier(word: &str) -> bool {
    let is_letter = |c: char| c.is_alphabetic();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hash = word.len() >= LEAST_HASH
        && (1..word.len()).contains(&digits)
        && word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let is_joined = || word.trim_matches('_').contains('_') && word.contains(is_letter);
    let has_hump = || {
        let next = word.chars().skip(1);
        word.chars().zip(next).any(|(left, right)| left.is_lowercase() && right.is_uppercase())
    };
    is_hash || is_joined() || has_hump()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut found = Vec::new();
        each(text, |name| found.push(name));
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn names_are_known_by_their_shape() {
        assert!(ENDINGS.is_sorted());
        check("Open src/main.rs:42, then ~/notes and Cargo.toml.", "main.rs notes Cargo.toml");
        check("cargo test --locked -p engine -- -v1", "--locked");
        check("parse_line(maxTokens) of Server, self.read_all()", "parse_line maxTokens read_all");
        check("version 1.20.3, a 3fa9c1d and #128", "1.20.3 3fa9c1d #128");
        check("(string-trim-left s) is well-known", "string-trim-left");
    }

    #[test]
    fn names_are_found_in_every_script() {
        check("修改src/main.rs文件,再看docs/説明書.md。", "main.rs 説明書.md");
        check("см. моя_функция и разборСтрок", "моя_функция разборСтрок");
        check("prüfe überLauf in größe.py", "überLauf größe.py");
    }

    #[test]
    fn common_words_are_none() {
        check("The parser fails and/or it is known – isn't it? A / B ... 5433 1.5 e.g. x.y", "");
        check("", "");
    }
}
