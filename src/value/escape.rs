//! Finds what a string literal must escape, fast enough for megabytes.

/// The bytes looked at in one step; a fixed number lets the compiler use vector instructions.
const BLOCK: usize = 32;

/// How many bytes at the start of `bytes` may stand in a string literal as they are: no control
/// character, double quote or backslash, in either dialect.
pub(crate) fn plain_prefix(bytes: &[u8]) -> usize {
    let mut at = 0;
    for block in bytes.chunks_exact(BLOCK) {
        if block.iter().fold(false, |found, byte| found | is_special(*byte)) {
            break;
        }
        at += BLOCK;
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == 0x7F) | (byte == b'"') | (byte == b'\\')
}
