//! Finds the characters that a string literal must escape, fast enough for megabytes.

/// Number of bytes examined in one step. A fixed number lets the compiler use vector instructions.
const BLOCK: usize = 32;

/// Returns the number of bytes at the start of `bytes` that need no escape in a string literal,
/// neither in JSON nor in an s-expression. Control characters, double quotes and backslashes need
/// one.
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
