//! Excerpts: pieces of texts around the words that were searched for.

use super::words::SoughtStems;

/// Number of characters shown before the found word.
const BEFORE: usize = 40;
/// Total number of characters shown, not counting the ellipses.
const SHOWN: usize = 160;

/// Returns a piece of `text` around its first word that shares a stem with `sought`, or the
/// beginning of the text if no word does. The piece is on one line, with an ellipsis at each end
/// that was cut.
pub fn excerpt(text: &str, sought: &str) -> String {
    let sought = SoughtStems::of(sought);
    let place = runs(text).find(|(_, run)| sought.are_in(run));
    let place = place.map_or(0, |(place, _)| place);
    let start = text[..place].char_indices().rev().take(BEFORE).last().map_or(place, |(at, _)| at);
    let rest = &text[start..];
    let end = rest.char_indices().nth(SHOWN).map_or(rest.len(), |(at, _)| at);
    let folded = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let [before, after] = [start > 0, end < rest.len()].map(|cut| if cut { "…" } else { "" });
    format!("{before}{folded}{after}")
}

/// Returns the beginning of a text, up to a number of characters, with an ellipsis if more follow.
pub fn beginning(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the runs of letters, digits and underscores, each with its byte offset.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts
        .filter(|part| !part.is_empty())
        .map(|part| (part.as_ptr().addr() - text.as_ptr().addr(), part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, sought: &str, expected: &str) {
        assert_eq!(excerpt(text, sought), expected);
    }

    #[test]
    fn a_short_text_is_shown_in_full_on_one_line() {
        check("  Fix\n\tthe   parser ", "parsing", "Fix the parser");
        check("", "x", "");
        check("日本語 λόγος", "absent", "日本語 λόγος");
    }

    #[test]
    fn a_long_text_is_cut_around_the_word() {
        let text = format!("{}the parseLine function{}", "é ".repeat(50), " ü".repeat(200));
        let shown = excerpt(&text, "parse");
        assert!(shown.starts_with("…é é") && shown.ends_with('…'), "{shown}");
        assert!(shown.contains("é the parseLine function ü") && shown.chars().count() <= 162);
        assert!(excerpt(&text, "absent").starts_with("é é"));
    }
}
