//! Tests of known counts, and a proof that halving a text never changes its count.

use proptest::prelude::*;

use super::*;

const BOTH: [Bpe; 2] = [Bpe::O200K, Bpe::CL100K];

/// Sources, a table and prose of this project, and scripts without ASCII letters.
const TEXTS: [&str; 4] = [
    include_str!("../bpe.rs"),
    include_str!("../../context/language/table.txt"),
    include_str!("../../context/language/content.rs"),
    "Prosa, die ihre Zeilen\nmitten im Satz umbricht.\n\n\n  \t\nDon't 'stop' – 東京は\n日本の首都。\n\
     (defun é ()\n  ;; λ\n  #'f)\n/path\n//x\n...\n/..\n1234\n56789\n\n\n'll\n \u{a0}\u{2003}\n\u{301}x\n",
];

/// Checks that every place accepted by [`splits`] leaves the count as it is.
#[track_caller]
fn check_every_place(text: &str) {
    for bpe in BOTH {
        let vocabulary = bpe.vocabulary();
        let whole = vocabulary.count(text);
        for at in (1..text.len()).filter(|at| text.as_bytes()[at - 1] == b'\n') {
            if splits(text.as_bytes(), at) {
                let (left, right) = text.split_at(at);
                let both = vocabulary.count(left) + vocabulary.count(right);
                assert_eq!(both, whole, "{} at {at}", bpe.name());
            }
        }
    }
}

#[track_caller]
fn check_large(text: &str) {
    assert!(text.len() > HALVED_ABOVE);
    for bpe in BOTH {
        assert_eq!(bpe.count(text), bpe.vocabulary().count(text) as u64, "{}", bpe.name());
    }
}

#[test]
fn known_texts_have_their_known_counts() {
    for bpe in BOTH {
        assert_eq!(bpe.count(""), 0);
        assert_eq!(bpe.count("hello world"), 2);
        assert_eq!(bpe.count("<|endoftext|>"), 7, "special tokens are text like any other");
    }
}

#[test]
fn lines_counted_before_have_the_count_of_the_whole() {
    for text in TEXTS {
        for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("{text}\n\n{text}x")] {
            for bpe in BOTH {
                let whole = Some(bpe.count(&text));
                assert_eq!(bpe.count_again(&text, &|| true), whole);
                assert_eq!(bpe.count_again(&text, &|| true), whole, "from memory");
            }
        }
    }
}

#[test]
fn no_place_to_split_changes_the_count() {
    for text in TEXTS {
        let part = &text[..text.floor_char_boundary(6000)];
        check_every_place(part);
        check_every_place(&part.replace('\n', "\r\n"));
        check_every_place(&part.replace('\n', "\n\n \n"));
    }
}

#[test]
fn halves_meet_near_the_middle() {
    assert_eq!(split("a\nb\ncc\nd"), Some(("a\nb\n", "cc\nd")));
    assert_eq!(split("aa\n b\n/c\n\nd"), Some(("aa\n b\n/c\n\n", "d")));
    assert_eq!(split("a\n(b) c d e f"), Some(("a\n", "(b) c d e f")));
    for whole in ["", "a", "a\n", "\n\n", "one line", " a\n b\n\tc\n/d\né"] {
        assert_eq!(split(whole), None, "{whole:?}");
    }
}

#[test]
fn large_texts_are_counted_like_a_whole() {
    for text in TEXTS {
        let large = text.repeat(HALVED_ABOVE / text.len() + 1);
        check_large(&large);
        check_large(&large.replace('\n', "\r\n"));
    }
    check_large(&"no line ends here, ".repeat(10_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_place_to_split_changes_the_count_of_random_text(
        text in "([a-zA-Z'/ (.;\t\r\n]|\n|\r\n|'s|\n/|1234|é|λ|東|\u{301}|\u{2028}|\u{a0}){0,60}"
    ) {
        check_every_place(&text);
    }
}
