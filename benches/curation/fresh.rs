//! The sentences of `fresh.txt`, half of them for development and half for judging.

use crate::coding::Phrasing;

const SENTENCES: &str = include_str!("fresh.txt");

/// Returns the sentences of a class for one of the halves, or none for other sets of sentences.
pub(crate) fn sentences(class: &str, phrasing: Phrasing) -> Vec<&'static str> {
    let judged = match phrasing {
        Phrasing::Developed => false,
        Phrasing::Judged => true,
        _ => return Vec::new(),
    };
    let lines = SENTENCES.lines().filter_map(|line| line.split_once(": "));
    let of_class = lines.filter(|(known, _)| *known == class).map(|(_, sentence)| sentence);
    of_class.filter(|sentence| is_judged(sentence) == judged).collect()
}

/// Returns whether the hash of a sentence (FNV-1a) puts it into the half for judging.
fn is_judged(sentence: &str) -> bool {
    let hash = sentence.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) % 2 == 1
}
