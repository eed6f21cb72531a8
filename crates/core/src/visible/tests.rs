//! Tests of the characters that are shown as escapes, over all of Unicode and over texts.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(name: &str, expected: &str) {
    assert_eq!(visible(name), expected, "{name:?}");
}

/// Checks that the text has no character to escape.
#[track_caller]
fn keeps(text: &str) {
    check(text, text);
}

#[test]
fn what_hides_is_shown() {
    check("a\nb\r\t\u{1b}[0m\0\u{7f}", "a\\nb\\r\\t\\u{1b}[0m\\u{0}\\u{7f}");
    check("\u{85}\u{9b}31m\u{2028}\u{2029}", "\\u{85}\\u{9b}31m\\u{2028}\\u{2029}");
    check(
        "cod\u{202e}sr.exe\u{2066}\u{200f}\u{61c}",
        "cod\\u{202e}sr.exe\\u{2066}\\u{200f}\\u{61c}",
    );
    check("a\u{200b}\u{2060}\u{ad}\u{feff}\u{34f}", "a\\u{200b}\\u{2060}\\u{ad}\\u{feff}\\u{34f}");
    check("\u{3164}\u{115f}\u{ffa0}", "\\u{3164}\\u{115f}\\u{ffa0}");
    check("a\u{e0041}\u{e0100}\u{fff9}", "a\\u{e0041}\\u{e0100}\\u{fff9}");
    check("\u{378}\u{ffff}\u{10ffff}", "\\u{378}\\u{ffff}\\u{10ffff}");
}

#[test]
fn ordinary_text_of_all_scripts_is_untouched() {
    for text in [
        "",
        "a b\\n.rs",
        "Größe",
        "e\u{301}",
        "данные",
        "λόγος",
        "文件.txt",
        "ファイル",
        "파일",
        "קובץ",
        "ملف",
        "ไฟล์",
        "फ़ाइल",
        "ফাইল",
        "ഫയൽ",
        "ගොනුව",
        "\u{a0}\u{3000}",
        "\u{e0b0}",
    ] {
        keeps(text);
    }
    keeps("\u{600}١٢٣"); // The sign that Arabic numbers stand on is a format character, and is seen.
}

#[test]
fn joiners_stay_where_letters_join() {
    keeps("می\u{200c}روم");
    keeps("نامه\u{200c}ای");
    keeps("क्\u{200d}ष");
    keeps("ක්\u{200d}ෂ");
    keeps("क्\u{200c}ष");
    check("a\u{200c}b", "a\\u{200c}b");
    check("a\u{200d}b", "a\\u{200d}b");
    check("می\u{200c}\u{200c}روم", "می\\u{200c}\\u{200c}روم");
    check("\u{200c}م", "\\u{200c}م");
    check("م\u{200c}", "م\\u{200c}");
    // A letter that joins nothing after it looks the same without the joiner.
    check("د\u{200c}م", "د\\u{200c}م");
}

#[test]
fn emoji_stay_whole() {
    for emoji in [
        "👩\u{200d}💻",
        "👩🏽\u{200d}🚒",
        "❤\u{fe0f}\u{200d}🔥",
        "🏳\u{fe0f}\u{200d}🌈",
        "1\u{fe0f}\u{20e3}",
        "☺\u{fe0e}",
        "©\u{fe0f}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    ] {
        keeps(emoji);
    }
    check("👩\u{200d}", "👩\\u{200d}");
    check("1\u{fe0f}", "1\\u{fe0f}");
    check("a\u{fe0f}", "a\\u{fe0f}");
    check("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\u{fe0f}");
    check("🏴\u{e0068}\u{e0069}\u{e007f}", "🏴\\u{e0068}\\u{e0069}\\u{e007f}");
}

#[test]
fn selectors_stay_where_there_are_variants() {
    keeps("葛\u{e0100}");
    keeps("∩\u{fe00}");
    keeps("\u{1820}\u{180b}");
    check("é\u{fe00}", "é\\u{fe00}");
    check("葛\u{e0100}\u{e0101}", "葛\u{e0100}\\u{e0101}");
}

#[test]
fn lines_may_stay_lines() {
    assert_eq!(visible_lines("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
    assert_eq!(visible_path(Path::new("/a\nb")), "/a\\nb");
}

#[test]
fn whole_classes_are_hidden() {
    let classes = [
        '\0'..='\u{1f}',
        '\u{7f}'..='\u{9f}',
        '\u{ad}'..='\u{ad}',
        '\u{61c}'..='\u{61c}',
        '\u{115f}'..='\u{1160}',
        '\u{180b}'..='\u{180f}',
        '\u{200b}'..='\u{200f}',
        '\u{2028}'..='\u{202e}',
        '\u{2060}'..='\u{206f}',
        '\u{3164}'..='\u{3164}',
        '\u{fe00}'..='\u{fe0f}',
        '\u{feff}'..='\u{feff}',
        '\u{ffa0}'..='\u{ffa0}',
        '\u{fff0}'..='\u{fffb}',
        '\u{1d173}'..='\u{1d17a}',
        '\u{e0000}'..='\u{e0fff}',
    ];
    for c in classes.into_iter().flatten() {
        assert_eq!(visible(&c.to_string()), c.escape_default().to_string());
    }
}

/// Generates texts in which hidden characters are likely to be at places that are proper for them.
fn texts() -> impl Strategy<Value = String> {
    "([a-z]|\\PC|\\p{C}|\\p{Cf}|[مدक्葛❤👩🏽1]|[\u{200b}-\u{200f}\u{202a}-\u{202e}\u{fe0e}\u{fe0f}\u{e0100}]){0,20}"
}

/// A character of each class on which a proper place depends: letters of scripts that join and do not
/// join, pictures that exist and that Unicode reserves for later, and what hides.
const CLASSES: [char; 16] = [
    'a',
    '1',
    'م',
    'د',
    'क',
    '्',
    '葛',
    '👩',
    '🏽',
    '\u{1f8ae}',
    '\u{ad}',
    '\u{200c}',
    '\u{200d}',
    '\u{fe0f}',
    '\u{e0100}',
    '\u{378}',
];

#[test]
fn what_is_shown_is_ordinary_in_any_order() {
    let texts = CLASSES.iter().map(char::to_string).collect::<Vec<_>>();
    let after = |texts: &[String]| -> Vec<String> {
        texts.iter().flat_map(|text| CLASSES.iter().map(move |c| format!("{text}{c}"))).collect()
    };
    for text in after(&after(&after(&texts))) {
        let shown = visible(&text);
        assert_eq!(visible(&shown), shown, "{text:?}");
    }
}

proptest! {
    #[test]
    fn nothing_hidden_is_left(text in texts()) {
        let shown = visible(&text);
        for (at, c) in shown.char_indices() {
            let rest = &shown[at + c.len_utf8()..];
            prop_assert!(!is_hidden(c) || place::is_proper(c, &shown[..at], rest), "{:?}", shown);
        }
        prop_assert_eq!(visible(&shown), &*shown, "what is shown is ordinary");
    }

    #[test]
    fn programs_read_back_what_was_there(text in texts()) {
        let json = serde_json::to_string(&text).unwrap();
        let shown = visible_json(&json);
        prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), &*text);
        let value = contexture_value::Value::Str(text);
        let sexp = contexture_value::sexp::print(&value);
        prop_assert_eq!(contexture_value::sexp::read(&visible_sexp(&sexp)).unwrap(), value);
    }
}
