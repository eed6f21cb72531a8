//! Recognizes paths of files among words.

use crate::retrieval::names::ENDINGS;

/// File names without an extension.
const NAMES: &[&str] =
    &["Makefile", "Dockerfile", "LICENSE", "Procfile", "Gemfile", "Rakefile", "Jenkinsfile"];
/// Names of libraries that look like files.
const LIBRARIES: &[&str] =
    &["Node.js", "Vue.js", "Next.js", "Three.js", "D3.js", "Express.js", "Nuxt.js", "Socket.io"];
/// Maximum length of a path, in bytes. Longer words are data.
const LONGEST: usize = 200;

/// Returns the path in a word of a text, without quotes around it, and without line numbers and
/// full stops after it; `None` if the word is no path.
pub(super) fn path(word: &str) -> Option<&str> {
    let named =
        || word.contains(char::is_uppercase) && NAMES.iter().any(|name| word.contains(name));
    if word.len() > LONGEST || !(word.contains(['.', '/', '\\']) || named()) {
        return None;
    }
    let bare = without_place(bare(word));
    let fits = |c: char| c.is_alphanumeric() || "/\\._-+@~:#$".contains(c);
    if bare.len() < 3 || bare.contains("://") || !bare.chars().all(fits) {
        return None;
    }
    is_path(bare).then_some(bare)
}

/// Returns the word without punctuation around it and without an option such as `--out=`.
fn bare(word: &str) -> &str {
    let around = |c: char| "`'\"()[]{}<>,;:!?*=|".contains(c);
    let word = word.trim_start_matches("#!").trim_matches(around);
    // `--out=target/x` and `path:src/x` name the path after the sign.
    let word = word.rsplit_once('=').map_or(word, |(_, value)| value);
    word.trim_end_matches('.').trim_matches(around)
}

/// Returns the word without `:12`, `:12:5` or `#L12` at its end.
fn without_place(word: &str) -> &str {
    let lines = |place: &str| place.starts_with(|c: char| c.is_ascii_digit());
    let mut rest = match word.rsplit_once("#L") {
        Some((before, place)) if lines(place) => before,
        _ => word,
    };
    while let Some((before, place)) = rest.rsplit_once(':') {
        let number = place.chars().all(|c| c.is_ascii_digit() || c == '-');
        if !number {
            break;
        }
        rest = before;
    }
    rest
}

fn is_path(word: &str) -> bool {
    let drive = word.as_bytes()[0].is_ascii_alphabetic() && word[1..].starts_with(":\\");
    if drive {
        return word.len() > 4;
    }
    if word.contains([':', '#', '\\']) {
        return false;
    }
    let segments: Vec<&str> = word.split('/').filter(|segment| !segment.is_empty()).collect();
    let Some(last) = segments.last() else { return false };
    let lettered = word.chars().any(char::is_alphabetic);
    let rooted = ["/", "./", "../", "~/", "$"].iter().any(|root| word.starts_with(root));
    match segments.len() {
        _ if !lettered => false,
        1 if !word.contains('/') => is_file_name(word),
        _ if rooted => segments.iter().any(|segment| segment.len() > 1),
        1 => last.len() > 1,
        2 => word.ends_with('/') || has_extension(last) || NAMES.contains(last),
        _ => true,
    }
}

fn is_file_name(word: &str) -> bool {
    let dotted = word.strip_prefix('.').unwrap_or(word);
    let known = dotted.rsplit_once('.').is_some_and(|(stem, extension)| {
        stem.chars().any(char::is_alphanumeric) && ENDINGS.binary_search(&extension).is_ok()
    });
    (known && !LIBRARIES.contains(&word)) || NAMES.contains(&word)
}

/// Returns whether a name in a folder ends like a file name. Any short extension counts.
fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        (1..=8).contains(&extension.len()) && extension.chars().any(|c| c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(words: &str, expected: &[&str]) {
        let found: Vec<&str> = words.split(' ').filter_map(super::path).collect();
        assert_eq!(found, expected, "{words}");
    }

    #[test]
    fn paths_are_found_without_surrounding_marks() {
        check(
            "see `src/a.rs`, (docs/b.md:12:5), src/c.rs#L7-L9 and Cargo.toml.",
            &["src/a.rs", "docs/b.md", "src/c.rs", "Cargo.toml"],
        );
        check(
            "--out=target/x/y ./run ../lib ~/x.el /etc/hosts $HOME/x #!/bin/sh",
            &["target/x/y", "./run", "../lib", "~/x.el", "/etc/hosts", "$HOME/x", "/bin/sh"],
        );
        check(
            "C:\\work\\a.txt src/curation/ tests/it/main.rs:7: Makefile",
            &["C:\\work\\a.txt", "src/curation/", "tests/it/main.rs", "Makefile"],
        );
    }

    #[test]
    fn words_that_only_look_like_paths_are_ignored() {
        check("and/or 1/2 2026/11/21 text/plain e.g. i.e. v1.2.3 a.b", &[]);
        check("https://x.org/a.rs origin/main Node.js 3.14 std::fs ...", &[]);
    }
}
