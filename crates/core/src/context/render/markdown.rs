//! Markdown: a heading and a fenced block per item.

use super::{RenderPart, end_line, push_age, push_annotation};

pub(super) const FRAME: [&str; 3] = ["## Context\n\n", "", ""];

/// Shortest fence of `CommonMark`, in backticks.
const SHORTEST_FENCE: usize = 3;

pub(super) fn section(part: &RenderPart<'_>, out: &mut String) {
    let fence = fence(part.body);
    out.push_str("### ");
    out.push_str(part.item.kind.title());
    push_annotation(part.item, out);
    push_age(part.item, out);
    out.push('\n');
    out.push_str(&fence);
    out.push_str(&part.language);
    out.push('\n');
    out.push_str(part.body);
    end_line(out);
    out.push_str(&fence);
    out.push_str("\n\n");
}

/// Returns a fence of backticks that nothing in `content` can close: one more than the longest run
/// of backticks at the beginning of a line, at least three.
///
/// A line begins where `CommonMark` 0.31 lets it begin: at the start and after `\n` and `\r`. Up to
/// three spaces before the run are ignored, as for a closing fence. Four spaces or a tab turn the
/// line into code.
pub fn fence(content: &str) -> String {
    let bytes = content.as_bytes();
    let mut longest = SHORTEST_FENCE - 1;
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'`', &bytes[from..]) {
        let start = from + found;
        let run = bytes[start..].iter().take_while(|byte| **byte == b'`').count();
        if run > longest && begins_line(&bytes[..start]) {
            longest = run;
        }
        from = start + run;
    }
    "`".repeat(longest + 1)
}

/// Returns whether the text after `before` begins a line, apart from up to three spaces.
fn begins_line(before: &[u8]) -> bool {
    let spaces = before.iter().rev().take_while(|byte| **byte == b' ').take(4).count();
    spaces <= 3 && matches!(before[..before.len() - spaces].last(), None | Some(b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, expected: usize) {
        assert_eq!(fence(content).len(), expected, "{content:?}");
    }

    #[test]
    fn a_fence_is_longer_than_any_run_that_begins_a_line() {
        check("", 3);
        check("``", 3);
        check("a ```` b", 3);
        check("```", 4);
        check("```rust\nx\n```", 4);
        check("x\n`````\n```", 6);
        check("x\r````", 5);
        check("x\r\n````", 5);
        check("x\n   ````", 5);
        check("x\n    ````", 3);
        check("     ````", 3);
        check("x\n\t````", 3);
        check("``\u{2028}````", 3);
        check("` ````\n````", 5);
    }
}
