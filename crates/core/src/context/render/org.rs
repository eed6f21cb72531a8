//! Org: a heading and a source block per item.

use super::{RenderPart, end_line, push_age, push_annotation};

pub(super) const FRAME: [&str; 3] = ["* Context\n\n", "", ""];

pub(super) fn section(part: &RenderPart<'_>, out: &mut String) {
    out.push_str("** ");
    out.push_str(part.item.kind.title());
    push_annotation(part.item, out);
    push_age(part.item, out);
    out.push_str("\n#+begin_src ");
    out.push_str(&part.language);
    out.push('\n');
    push_escaped(part.body, out);
    end_line(out);
    out.push_str("#+end_src\n\n");
}

/// Appends `text` with the commas that Org adds to code: one before each `*`, `#+`, `,*` and `,#+`
/// at the beginning of a line, after its indentation. Does the same as `org-escape-code-in-string`.
fn push_escaped(text: &str, out: &mut String) {
    for line in text.split_inclusive('\n') {
        let code = line.trim_start_matches([' ', '\t']);
        let sign = code.trim_start_matches(',');
        if sign.starts_with('*') || sign.starts_with("#+") {
            out.push_str(&line[..line.len() - code.len()]);
            out.push(',');
            out.push_str(code);
        } else {
            out.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut out = String::new();
        push_escaped(text, &mut out);
        assert_eq!(out, expected, "{text:?}");
    }

    /// The expected texts are the results of Emacs 28.2 for the same strings.
    #[test]
    fn lines_with_a_meaning_in_org_get_a_comma() {
        check("", "");
        check("a * b\n# c\n,d", "a * b\n# c\n,d");
        check("* a\n** b\n", ",* a\n,** b\n");
        check("#+end_src\n  #+begin\n\t* x", ",#+end_src\n  ,#+begin\n\t,* x");
        check(",* a\n,,#+b\n  ,* c", ",,* a\n,,,#+b\n  ,,* c");
        check(", * a\n*", ", * a\n,*");
        check("x\r\n* y\r* z", "x\r\n,* y\r* z");
        check("\u{a0}* a", "\u{a0}* a");
    }
}
