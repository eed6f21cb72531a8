//! Writes counts with their nouns.

/// Returns a count with its noun, in the singular or plural: `1 item`, `2 memories`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_nouns() {
        let counts = [counted(1, "item"), counted(0, "memory"), counted(2, "message")];
        assert_eq!(counts, ["1 item", "0 memories", "2 messages"]);
    }

    #[test]
    fn one_thing_is_singular() {
        let texts = [0, 1, 2].map(|count| counted(count, "message"));
        assert_eq!(texts, ["0 messages", "1 message", "2 messages"]);
    }
}
