//! The sentences of `fresh.txt`, in two halves, and those of `later.txt` and `newest.txt`, which were
//! written after them.

use crate::coding::Phrasing;

const SENTENCES: &str = include_str!("fresh.txt");
const LATER: &str = include_str!("later.txt");
const NEWEST: &str = include_str!("newest.txt");

/// Returns the sentences of a class for one of the halves, or none for other sets of sentences.
pub(crate) fn sentences(class: &str, phrasing: Phrasing) -> Vec<&'static str> {
    let later = match phrasing {
        Phrasing::Later => of_class(LATER, class),
        Phrasing::Newest => of_class(NEWEST, class),
        _ => Vec::new(),
    };
    if !later.is_empty() {
        return later;
    }
    let judged = match phrasing {
        Phrasing::Developed => false,
        Phrasing::Judged | Phrasing::Later | Phrasing::Newest => true,
        _ => return Vec::new(),
    };
    let sentences = of_class(SENTENCES, class).into_iter();
    sentences.filter(|sentence| is_judged(sentence) == judged).collect()
}

fn of_class(text: &'static str, class: &str) -> Vec<&'static str> {
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| *known == class).map(|(_, sentence)| sentence).collect()
}

/// Returns whether the hash of a sentence (FNV-1a) puts it into the half for judging.
fn is_judged(sentence: &str) -> bool {
    let hash = sentence.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) % 2 == 1
}
