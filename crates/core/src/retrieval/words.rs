//! Splits a text into words, in every script. Identifiers are split too, so that `parse_line`,
//! `parseLine` and "parse line" have words in common. In scripts that put no spaces between words,
//! or that join particles to them, each two neighbouring characters count as a word.

use rust_stemmers::{Algorithm, Stemmer};

/// Maximum length of a run of letters and digits that is read as a whole, in bytes; a longer run is
/// read in pieces. Nobody searches for longer words, and the time to stem a word grows with the
/// square of its length.
pub const LONGEST_RUN: usize = 256;

/// Returns the words of a text in lower case and in order. An identifier of several parts gives its
/// parts and then the whole joined from them: `parseLine` gives `parse`, `line` and `parseline`.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

/// Passes the [`words`] of a text to `take`, one by one.
pub fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut joined = String::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '_').flat_map(runs) {
        // Most runs are a word already.
        match run.bytes().all(|byte| byte.is_ascii_lowercase()) {
            true => take(run),
            false => of_one_kind(run).for_each(|run| words_of(run, &mut joined, &mut take)),
        }
    }
}

/// Passes the words of a run, whose characters are of one kind, to `take`. `joined` is room for
/// them.
fn words_of(run: &str, joined: &mut String, mut take: impl FnMut(&str)) {
    if run.starts_with(is_unspaced) {
        return pairs(run).for_each(take);
    }
    joined.clear();
    let mut count = 0;
    for part in parts(run) {
        let start = joined.len();
        *joined += &part.to_lowercase();
        take(&joined[start..]);
        count += 1;
    }
    if count > 1 {
        take(joined);
    }
}

/// Returns whether a character belongs to a script that puts no spaces between words, such as Chinese,
/// Japanese and Thai, or that joins particles to words, such as Korean.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff // Thai, Lao
        | 0x1000..=0x109f // Burmese
        | 0x1780..=0x17ff // Khmer
        | 0x3040..=0x30ff // Japanese syllables
        | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff // Chinese characters
        | 0xac00..=0xd7a3) // Korean syllables
}

/// Cuts a run where a script without spaces begins or ends.
fn of_one_kind(run: &str) -> impl Iterator<Item = &str> {
    let mut rest = run;
    std::iter::from_fn(move || {
        let kind = is_unspaced(rest.chars().next()?);
        let end = rest.find(|c| is_unspaced(c) != kind).unwrap_or(rest.len());
        let (piece, more) = rest.split_at(end);
        rest = more;
        Some(piece)
    })
}

/// Returns each two neighbouring characters of a run, or the only one.
fn pairs(run: &str) -> impl Iterator<Item = &str> {
    let ends = || run.char_indices().map(|(at, c)| at + c.len_utf8());
    let starts = run.char_indices().map(|(at, _)| at);
    let only = (ends().count() == 1).then_some(run);
    starts.zip(ends().skip(1)).map(|(start, end)| &run[start..end]).chain(only)
}

/// Returns the pieces into which a run of letters and digits is split.
pub(super) fn runs(run: &str) -> impl Iterator<Item = &str> {
    let mut rest = run;
    std::iter::from_fn(move || {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(LONGEST_RUN));
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Maximum number of bytes of a query that are read: half from the beginning, half from the end.
pub const MOST_READ: usize = 64 << 10;

/// Returns the beginning and the end of a text, at most half of `most` bytes each. If the whole text
/// has at most `most` bytes, returns it and an empty text.
pub fn ends(text: &str, most: usize) -> [&str; 2] {
    if text.len() <= most {
        return [text, ""];
    }
    let end = text.ceil_char_boundary(text.len() - most / 2);
    [&text[..text.floor_char_boundary(most / 2)], &text[end..]]
}

/// Returns the stems of [`words`], by Porter's second algorithm for English.
pub fn stems(text: &str) -> Vec<String> {
    stems_where(text, |_| true)
}

/// Returns the stems of those [`words`] of a text for which `is_wanted` returns true.
pub(crate) fn stems_where(text: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut stems = Vec::new();
    each_word(text, |word| {
        if is_wanted(word) {
            stems.push(stemmer.stem(word).into_owned());
        }
    });
    stems
}

/// The stems of some words, to which the words of a long text are compared.
pub(super) struct SoughtStems {
    stems: Vec<String>,
    stemmer: Stemmer,
}

impl SoughtStems {
    /// Returns the stems of the [`words`] of a text.
    pub(super) fn of(text: &str) -> Self {
        Self { stems: stems(text), stemmer: Stemmer::create(Algorithm::English) }
    }

    /// Returns whether a text has a word with one of the stems.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let mut found = false;
        each_word(text, |word| {
            // A stem begins like its words, and to stem a word takes longer than to compare.
            let first = word.chars().next();
            let may_be = self.stems.iter().any(|stem| stem.chars().next() == first);
            found |= may_be && self.stems.iter().any(|stem| *stem == self.stemmer.stem(word));
        });
        found
    }
}

/// Returns the parts of an identifier. It is cut at underscores, between a small letter and a
/// capital, before the last of several capitals if a small letter follows, and between letters and
/// digits.
fn parts(run: &str) -> impl Iterator<Item = &str> {
    let mut cuts = vec![0];
    let marks: Vec<(usize, char)> = run.char_indices().collect();
    for (at, pair) in marks.windows(2).enumerate() {
        let ((_, left), (place, right)) = (pair[0], pair[1]);
        let next = marks.get(at + 2).map(|(_, next)| *next);
        let hump = left.is_lowercase() && right.is_uppercase();
        let acronym_ends =
            left.is_uppercase() && right.is_uppercase() && next.is_some_and(char::is_lowercase);
        let number = left.is_numeric() != right.is_numeric();
        if left == '_' || right == '_' || hump || acronym_ends || number {
            cuts.push(place);
        }
    }
    cuts.push(run.len());
    let pieces: Vec<&str> = cuts.windows(2).map(|cut| &run[cut[0]..cut[1]]).collect();
    pieces.into_iter().filter(|part| !part.is_empty() && !part.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(words(text).join(" "), expected);
    }

    #[test]
    fn identifiers_are_split_and_also_kept_whole() {
        check("parse_line", "parse line parseline");
        check("HTTPServer2 x", "http server 2 httpserver2 x");
        check("let fooBar = a.b;", "let foo bar foobar a b");
        check("__init__ déjàVu", "init déjà vu déjàvu");
        check("  ", "");
        check("порт тестового сервера", "порт тестового сервера");
    }

    #[test]
    fn words_are_found_where_there_are_no_spaces() {
        check("测试服务器的port是5433。", "测试 试服 服务 务器 器的 port 是 5433");
        check("ポートは8080", "ポー ート トは 8080");
        check("포트를 바꾼다 水", "포트 트를 바꾼 꾼다 水");
        check("parse行Line", "parse 行 line");
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        assert_eq!(stems("parsing parsed parses"), ["pars", "pars", "pars"]);
        let sought = SoughtStems::of("parsed the skies");
        for text in ["it_parses", "Parsing", "sky", "THE"] {
            assert!(sought.are_in(text), "{text}");
        }
        assert!(!sought.are_in("past skins") && !sought.are_in(""));
    }
}
