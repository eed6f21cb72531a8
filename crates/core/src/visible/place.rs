//! Decides whether a hidden character has its proper place in ordinary text.

use icu_properties::props::{
    CanonicalCombiningClass, Emoji, EmojiModifier, ExtendedPictographic, GeneralCategory,
    JoiningType, Script, UnifiedIdeograph,
};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::is_hidden;

/// Subdivisions whose flags Unicode recommends (RGI), as letters: England, Scotland and Wales. A
/// flag is a black flag followed by these letters as tag characters. Other tags could carry
/// invisible text.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
const BLACK_FLAG: char = '\u{1f3f4}';
const CANCEL_TAG: char = '\u{e007f}';

/// Returns whether the hidden character `c` changes the look of ordinary text, which is its purpose.
/// `before` is the text before `c` as readers see it, with its escapes. `after` is the text after
/// `c` as it was written. A non-joiner does so between letters that would join, a
/// joiner in an emoji (UTS 51), and both after a virama (RFC 5892, A.1 and A.2). A selector does so
/// in an emoji and after a character that has variants. A tag does so in a flag. Anywhere else, a
/// hidden character only makes one name look like another.
pub(super) fn is_proper(c: char, before: &str, after: &str) -> bool {
    let Some(base) = before.chars().next_back() else { return false };
    let next = after.chars().next();
    match c {
        '\u{200c}' => is_virama(base) || parts_letters(before, after),
        '\u{200d}' => is_virama(base) || (ends_in_emoji(before) && next.is_some_and(is_picture)),
        '\u{fe0e}' | '\u{fe0f}' => {
            let has_both = CodePointSetData::new::<Emoji>().contains(base);
            has_both && (!base.is_ascii() || next == Some('\u{20e3}'))
        }
        '\u{fe00}'..='\u{fe0d}' => is_ideograph(base) || is_mathematical(base),
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(base),
        '\u{180b}'..='\u{180f}' => is_mongolian_letter(base),
        '\u{e0020}'..='\u{e007f}' => is_in_flag(c, before, after),
        _ => false,
    }
}

fn is_virama(c: char) -> bool {
    let class = CodePointMapData::<CanonicalCombiningClass>::new().get(c);
    class == CanonicalCombiningClass::Virama
}

/// Returns whether the letters on both sides would join if there were nothing in between.
fn parts_letters(before: &str, after: &str) -> bool {
    let joining = |c: char| CodePointMapData::<JoiningType>::new().get(c);
    let opaque = |kind: &JoiningType| *kind == JoiningType::Transparent;
    let left = before.chars().rev().map(joining).find(|kind| !opaque(kind));
    let seen = after.chars().take_while(|c| !is_hidden(*c));
    let right = seen.map(joining).find(|kind| !opaque(kind));
    matches!(left, Some(JoiningType::LeftJoining | JoiningType::DualJoining))
        && matches!(right, Some(JoiningType::RightJoining | JoiningType::DualJoining))
}

/// Returns whether the text ends in an emoji, which may have a skin tone or selector after it.
fn ends_in_emoji(before: &str) -> bool {
    let is_modifier =
        |c: char| c == '\u{fe0f}' || CodePointSetData::new::<EmojiModifier>().contains(c);
    let mut backwards = before.chars().rev();
    match backwards.next() {
        Some(last) if is_modifier(last) => backwards.next().is_some_and(is_picture),
        last => last.is_some_and(is_picture),
    }
}

/// Returns whether the character is a picture that readers see. Unicode reserves some code points for
/// later pictures.
fn is_picture(c: char) -> bool {
    !is_hidden(c) && CodePointSetData::new::<ExtendedPictographic>().contains(c)
}

fn is_ideograph(c: char) -> bool {
    CodePointSetData::new::<UnifiedIdeograph>().contains(c)
}

fn is_mathematical(c: char) -> bool {
    CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::MathSymbol
}

fn is_mongolian_letter(c: char) -> bool {
    c.is_alphabetic() && CodePointMapData::<Script>::new().get(c) == Script::Mongolian
}

/// Returns whether the tag `c` is part of one of [`FLAGS`].
fn is_in_flag(c: char, before: &str, after: &str) -> bool {
    let tag = |letter: char| char::from_u32(0xE0000 + u32::from(letter));
    FLAGS.iter().any(|letters| {
        let tags: String = letters.chars().filter_map(tag).chain([CANCEL_TAG]).collect();
        tags.char_indices().filter(|(_, one)| *one == c).any(|(at, _)| {
            let (first, rest) = (&tags[..at], &tags[at + c.len_utf8()..]);
            before.strip_suffix(first).is_some_and(|text| text.ends_with(BLACK_FLAG))
                && after.starts_with(rest)
        })
    })
}
