//! Arguments of tools: parses the names of items, messages, files and lines that a model writes.

use super::answer::Trouble;

/// What the tool `read` can show.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadArgument<'a> {
    /// An item, by its id.
    Item(&'a str),
    /// A message of a session.
    Message {
        /// Id of the session; the project's latest by default.
        session: Option<&'a str>,
        /// Id of the message.
        message: &'a str,
    },
    /// A file, by its path, and the lines to show, if they are named after the path.
    Place(&'a str, Option<ArgumentLines>),
}

/// First and last line, counted from 1. `None` in place of the last line stands for the end of the
/// text.
pub(super) type ArgumentLines = (u64, Option<u64>);

impl<'a> ReadArgument<'a> {
    /// Parses `ctx-N`, `ses-N/msg-N`, `msg-N`, or a path, which may end with `:LINE`, `:FIRST-LAST` or
    /// `:FIRST-`.
    pub(super) fn read(text: &'a str) -> Self {
        if is_id(text, "ctx-") {
            return Self::Item(text);
        }
        if let Some((session, message)) = text.split_once('/')
            && is_id(session, "ses-")
            && is_id(message, "msg-")
        {
            return Self::Message { session: Some(session), message };
        }
        if is_id(text, "msg-") {
            return Self::Message { session: None, message: text };
        }
        match text.rsplit_once(':') {
            Some((path, after)) if !path.is_empty() => match lines(after) {
                Ok(lines) => Self::Place(path, Some(lines)),
                Err(_) => Self::Place(text, None),
            },
            _ => Self::Place(text, None),
        }
    }
}

/// Returns whether a text is an id: `beginning`, such as `ctx-`, followed by a number.
pub(super) fn is_id(text: &str, beginning: &str) -> bool {
    let number = text.strip_prefix(beginning);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Parses `LINE`, `FIRST-LAST` or `FIRST-`. Some models write whole numbers as `5.0`.
pub(super) fn lines(text: &str) -> Result<ArgumentLines, Trouble> {
    let number = |text: &str| {
        let text = text.trim();
        text.strip_suffix(".0").unwrap_or(text).parse::<u64>().ok().filter(|line| *line > 0)
    };
    let lines = match text.split_once('-') {
        None => number(text).map(|line| (line, Some(line))),
        Some((first, "")) => number(first).map(|first| (first, None)),
        Some((first, last)) => number(first).zip(number(last).map(Some)),
    };
    lines.filter(|(first, last)| last.is_none_or(|last| last >= *first)).ok_or_else(|| {
        Trouble::Wrong(format!("`lines` must look like \"10-20\", \"10-\" or \"10\", got {text:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_named_by_id_or_place() {
        let check = |text, expected| assert_eq!(ReadArgument::read(text), expected, "{text}");
        check("ctx-12", ReadArgument::Item("ctx-12"));
        check("ctx-x", ReadArgument::Place("ctx-x", None));
        check("ses-3/msg-4", ReadArgument::Message { session: Some("ses-3"), message: "msg-4" });
        check("msg-4", ReadArgument::Message { session: None, message: "msg-4" });
        check("ses-3/msg-4/x", ReadArgument::Place("ses-3/msg-4/x", None));
        check("src/a.rs", ReadArgument::Place("src/a.rs", None));
        check("src/a.rs:10", ReadArgument::Place("src/a.rs", Some((10, Some(10)))));
        check("/x/a.rs:10-20", ReadArgument::Place("/x/a.rs", Some((10, Some(20)))));
        check("a:b", ReadArgument::Place("a:b", None));
        check(":7", ReadArgument::Place(":7", None));
    }

    #[test]
    fn lines_are_a_line_or_a_range() {
        for (text, expected) in
            [("7", (7, Some(7))), ("7-9", (7, Some(9))), ("7-", (7, None)), ("7-7", (7, Some(7)))]
                .into_iter()
                .chain([("7.0", (7, Some(7))), ("7.0-9.0", (7, Some(9))), ("7.0-", (7, None))])
        {
            assert_eq!(lines(text).unwrap(), expected, "{text}");
        }
        for text in ["", "0", "-3", "9-7", "x", "1-y", "1-2-3", "7.5", "99999999999999999999"] {
            assert!(lines(text).unwrap_err().to_string().contains("must look like"), "{text}");
        }
    }
}
