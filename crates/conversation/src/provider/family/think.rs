//! Reasoning that a server leaves in the text, between tags at its beginning.

/// Tags around reasoning, as chat templates have them.
const TAGS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
];

/// Divides the text of an answer, as it arrives, into reasoning and text.
pub(super) struct Think {
    place: ThinkPlace,
    /// Text that may be the beginning of a tag.
    held: String,
    /// True if tags were found, so that the text differs from what the server sent.
    pub(super) found: bool,
}

#[derive(Clone, Copy)]
enum ThinkPlace {
    Beginning,
    /// Within reasoning that ends with this tag.
    Inside(&'static str),
    /// After reasoning, where more of it may come, or the text.
    Between,
    Text,
}

impl Think {
    /// Begins an answer. `is_open` is true if the template has already opened the reasoning.
    pub(super) fn new(is_open: bool) -> Self {
        let place = if is_open { ThinkPlace::Inside(TAGS[0].1) } else { ThinkPlace::Beginning };
        Self { place, held: String::new(), found: is_open }
    }

    /// Adds text; passes on reasoning with `true` and text with `false`.
    pub(super) fn add(&mut self, more: &str, tell: &mut dyn FnMut(bool, &str)) {
        self.held += more;
        loop {
            let held = std::mem::take(&mut self.held);
            match self.place {
                ThinkPlace::Text => return tell(false, &held),
                ThinkPlace::Beginning | ThinkPlace::Between => {
                    let text = held.trim_start();
                    let opened = TAGS
                        .iter()
                        .find_map(|(open, close)| Some((text.strip_prefix(open)?, *close)));
                    if let Some((rest, close)) = opened {
                        (self.place, self.found) = (ThinkPlace::Inside(close), true);
                        self.held = rest.to_owned();
                    } else if TAGS.iter().any(|(open, _)| open.starts_with(text)) {
                        self.held = held;
                        return;
                    } else {
                        let shown = if self.found { text.to_owned() } else { held };
                        (self.place, self.held) = (ThinkPlace::Text, shown);
                    }
                }
                ThinkPlace::Inside(close) => match held.split_once(close) {
                    Some((reasoning, rest)) => {
                        tell(true, reasoning);
                        (self.place, self.held) = (ThinkPlace::Between, rest.to_owned());
                    }
                    None => {
                        let kept = (1..close.len())
                            .filter(|length| close.is_char_boundary(*length))
                            .rfind(|length| held.ends_with(&close[..*length]));
                        let (reasoning, kept) = held.split_at(held.len() - kept.unwrap_or(0));
                        tell(true, reasoning);
                        self.held = kept.to_owned();
                        return;
                    }
                },
            }
        }
    }

    /// Ends the text, and passes on what was held back.
    pub(super) fn end(&mut self, tell: &mut dyn FnMut(bool, &str)) {
        let held = std::mem::take(&mut self.held);
        let rest =
            if matches!(self.place, ThinkPlace::Between) { held.trim_start() } else { &held };
        tell(matches!(self.place, ThinkPlace::Inside(_)), rest);
    }

    /// Returns whether the text is what the server sent, and stays so.
    pub(super) fn is_without(&self) -> bool {
        matches!(self.place, ThinkPlace::Text) && !self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks reasoning and text of an answer, in one piece and cut after each character.
    #[track_caller]
    fn check(is_open: bool, answer: &str, reasoning: &str, text: &str) {
        let every: Vec<String> = answer.chars().map(String::from).collect();
        for pieces in [vec![answer.to_owned()], every] {
            let (mut think, mut found) = (Think::new(is_open), (String::new(), String::new()));
            let mut tell = |thinks: bool, more: &str| match thinks {
                true => found.0 += more,
                false => found.1 += more,
            };
            pieces.iter().for_each(|piece| think.add(piece, &mut tell));
            think.end(&mut tell);
            assert_eq!((&*found.0, &*found.1), (reasoning, text));
        }
    }

    #[test]
    fn reasoning_between_tags_is_no_text() {
        check(false, "<think>plan</think>\n\nParis", "plan", "Paris");
        check(false, "\n<thinking>a < b</thinking>x</thinking>", "a < b", "x</thinking>");
        check(false, "◁think▷é◁/think▷ü", "é", "ü");
        check(false, "<think>never ended </th", "never ended </th", "");
        check(true, "plan</think>Paris", "plan", "Paris");
        check(false, "<think>a</think>\n<think>b</think>\nParis", "ab", "Paris");
        check(false, "<think>a</think>\n<b>Paris</b>", "a", "<b>Paris</b>");
        check(false, "<think>a</think>\n<thi", "a", "<thi");
        check(false, "<|channel>thought\na<channel|>Paris", "\na", "Paris");
        check(
            false,
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b",
            "a",
            "b",
        );
        for text in ["Use <think> and </think>", "<thin", "  <b>x</b>", " ", "", "</think>"] {
            check(false, text, "", text);
        }
    }
}
