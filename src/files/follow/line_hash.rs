//! Prints: short hashes by which lines are recognized.

/// Number of hexadecimal digits of a print. With 512 known lines, a new line is mistaken for one of
/// them once in two thousand times.
const DIGITS: usize = 5;

/// A print: a short hash of a line, to recognize the line.
pub(super) type Print = u32;

/// Returns the print of a line.
pub(super) fn print(line: &str) -> Print {
    let hash = blake3::hash(line.as_bytes());
    let [one, two, three, ..] = *hash.as_bytes();
    u32::from_be_bytes([0, one, two, three]) >> (24 - 4 * DIGITS)
}

/// Returns prints as a text.
pub(super) fn written(prints: &[Print]) -> String {
    let digit = |print: &Print, at: usize| char::from_digit(print >> (4 * at) & 0xf, 16);
    prints.iter().flat_map(|print| (0..DIGITS).rev().filter_map(|at| digit(print, at))).collect()
}

/// Reads prints from a text. Returns no prints if the text has another form.
pub(super) fn read(text: &str) -> Vec<Print> {
    let print = |digits: &[u8]| Print::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
    text.as_bytes().chunks(DIGITS).map(print).collect::<Option<_>>().unwrap_or_default()
}
