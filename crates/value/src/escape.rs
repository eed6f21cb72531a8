//! Finds the characters that a string literal must escape, fast enough for megabytes.

/// Number of bytes examined in one step. A fixed number lets the compiler use vector instructions.
const BLOCK: usize = 32;

/// Appends the content of a string literal, in JSON or an s-expression. `other` appends a control
/// character for which JSON and s-expressions do not share a short escape.
pub fn push_content(text: &str, out: &mut Vec<u8>, other: impl Fn(u8, &mut Vec<u8>)) {
    let mut rest = text.as_bytes();
    loop {
        let plain = plain_prefix(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some(byte) = rest.get(plain) else { return };
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            _ => other(*byte, out),
        }
        rest = &rest[plain + 1..];
    }
}

/// Returns the number of bytes before the first byte that needs an escape in a string literal, in
/// JSON or an s-expression: a control character, a double quote or a backslash. Counts all bytes if
/// none needs an escape.
fn plain_prefix(bytes: &[u8]) -> usize {
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
