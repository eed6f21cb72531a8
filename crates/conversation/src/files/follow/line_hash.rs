//! Short hashes by which lines are recognized.

/// Number of hexadecimal digits of a hash. With 512 known lines, a new line is mistaken for one of
/// them once in two thousand times.
const DIGITS: usize = 5;

/// Short hash of a line, to recognize the line.
pub(super) type LineHash = u32;

/// Returns the short hash by which a line is recognized.
pub(super) fn hash_of(line: &str) -> LineHash {
    let hash = blake3::hash(line.as_bytes());
    let [one, two, three, ..] = *hash.as_bytes();
    u32::from_be_bytes([0, one, two, three]) >> (24 - 4 * DIGITS)
}

/// Returns hashes as text.
pub(super) fn written(hashes: &[LineHash]) -> String {
    let digit = |hash: &LineHash, at: usize| char::from_digit(hash >> (4 * at) & 0xf, 16);
    hashes.iter().flat_map(|hash| (0..DIGITS).rev().filter_map(|at| digit(hash, at))).collect()
}

/// Reads hashes from text that [`written`] made. Returns no hashes for any other text.
pub(super) fn read(text: &str) -> Vec<LineHash> {
    let is_written = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_written || !text.len().is_multiple_of(DIGITS) {
        return Vec::new();
    }
    let hash = |digits: &[u8]| LineHash::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
    text.as_bytes().chunks(DIGITS).filter_map(hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_is_read() {
        let hashes = ["a", "b"].map(hash_of);
        assert_eq!(read(&written(&hashes)), hashes);
        for other in ["0123", "0123456", "+1234", "0123g", "ABCDE", "1234é"] {
            assert!(read(other).is_empty(), "{other}");
        }
    }
}
