//! Determines the language of an item, as the info string of a Markdown fence names it.
//!
//! This module looks at the item's metadata, file name and content, and never at the file. The
//! names, file names, interpreters and modes of each language are listed in `table.txt`.

mod content;
mod table;

use std::borrow::Cow;

use super::item::{Item, Kind};
use table::TABLE;

/// Maximum length of a language name from a client, in bytes.
const LONGEST_NAME: usize = 40;

/// Returns the language to name in the fence of `item`.
///
/// The first of these that tells the language decides: `:language` in the metadata (a name, an
/// alias or an Emacs mode; the harmless characters of an unknown name are kept), the file's name,
/// the content's mode line or shebang, and finally the type: `lisp` for code, errors and REPL
/// history, otherwise `text`. The result consists of ASCII letters, digits and `_+#.-`, and has at
/// least one character.
pub fn of_item(item: &Item) -> Cow<'static, str> {
    if let Some(language) = item.metadata.text("language").and_then(of_name) {
        return language;
    }
    let known = item.metadata.filename().and_then(of_path);
    Cow::Borrowed(known.or_else(|| content::language(&item.content)).unwrap_or(by_kind(item.kind)))
}

/// Returns the language of a file by its name alone: by a known name such as `Makefile`, then by
/// the longest known extension, then by a known name before the first dot (`Dockerfile.dev`).
/// Returns `None` if the name tells nothing.
pub fn of_path(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let by_extension = || {
        let mut dots = name.match_indices('.').map(|(at, _)| &name[at..]);
        dots.find_map(|extension| {
            TABLE.files.of(extension).or_else(|| TABLE.files.of(&lower(extension)))
        })
    };
    let stem = || name.split_once('.').and_then(|(stem, _)| TABLE.files.of(stem));
    TABLE.files.of(name).or_else(by_extension).or_else(stem)
}

/// Returns the language of an Emacs major mode, if the mode is known. The mode is given with or
/// without `-mode` and `-ts-mode`, in any letter case: `emacs-lisp-mode`, `rust-ts-mode`, `Lisp`.
pub(crate) fn of_mode(mode: &str) -> Option<&'static str> {
    let mode = lower(mode.trim());
    let stem = mode.strip_suffix("-mode").unwrap_or(&mode);
    let exact = |stem: &str| TABLE.modes.of(stem).or_else(|| TABLE.names.of(stem));
    exact(stem).or_else(|| exact(stem.strip_suffix("-ts")?))
}

/// Returns the language that a client names, or `None` if the name tells nothing.
fn of_name(name: &str) -> Option<Cow<'static, str>> {
    let name = name.trim();
    if let Some(known) = TABLE.names.of(&lower(name)).or_else(|| of_mode(name)) {
        return Some(Cow::Borrowed(known));
    }
    let stem = name.strip_suffix("-mode").unwrap_or(name);
    let stem = stem.strip_suffix("-ts").unwrap_or(stem);
    let harmless = |c: &char| c.is_ascii_alphanumeric() || "_+#.-".contains(*c);
    let kept: String = stem.chars().filter(harmless).take(LONGEST_NAME).collect();
    let meaningless = matches!(kept.as_str(), "" | "fundamental" | "special" | "prog" | "nil");
    (!meaningless).then_some(Cow::Owned(kept))
}

/// Returns the language to assume if nothing else tells the language.
fn by_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Code | Kind::Error | Kind::ReplHistory => "lisp",
        Kind::Text | Kind::File | Kind::Custom => "text",
    }
}

/// Returns `text` with its ASCII letters in lower case, borrowed if they are in lower case already.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests;
