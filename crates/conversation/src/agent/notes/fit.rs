//! Chooses the part of a conversation to show to a note-taker: as many of the last runs as the
//! note-taker's model accepts. A run consists of all messages of one turn.
//!
//! Nothing here has side effects, but formatting a long conversation and counting its tokens is
//! slow.

use crate::curation::notes::NotesInput;
use crate::template::{ManagerPrompt, TASK, Template, TemplateConversation};
use crate::tokens::Measure;

/// Maximum size of the part of the conversation in a prompt, in bytes. More text hardly ever fits,
/// since a prompt has at most 96,000 tokens.
const MAX_RECENT_BYTES: usize = 2 << 20;

/// A prompt that fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FittedPrompt {
    pub(super) prompt: ManagerPrompt,
    pub(super) tokens: u64,
    /// Number of runs in the prompt, that is, of turns whose messages it shows.
    pub(super) runs: u64,
}

/// The reason why no prompt fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The template cannot be rendered.
    Broken(String),
    /// The prompt has this many tokens even without any earlier turn.
    TooLong(u64),
    Cancelled,
}

/// Builds the prompt with the messages of as many of the last turns as fit in `budget` tokens.
pub(super) fn fit(
    template: &Template,
    managing: &NotesInput,
    measure: &Measure,
    budget: u64,
    cancelled: impl Fn() -> bool,
) -> Result<FittedPrompt, Unfit> {
    let attempt = |runs: usize| match cancelled() {
        true => Err(Unfit::Cancelled),
        false => prompt_with(template, managing, measure, runs),
    };
    let fits = |fitted: &FittedPrompt| fitted.tokens <= budget;
    let mut too_many = worth_trying(&managing.recent_runs);
    match attempt(too_many) {
        Ok(fitted) if fits(&fitted) => return Ok(fitted),
        Err(Unfit::Cancelled) => return Err(Unfit::Cancelled),
        _ => {}
    }
    let mut best = attempt(0)?;
    if !fits(&best) {
        return Err(Unfit::TooLong(best.tokens));
    }
    let mut enough = 0;
    while too_many - enough > 1 {
        let between = enough + (too_many - enough) / 2;
        match attempt(between) {
            Ok(fitted) if fits(&fitted) => (enough, best) = (between, fitted),
            Err(Unfit::Cancelled) => return Err(Unfit::Cancelled),
            // A text too long for the template engine is too long for any model.
            _ => too_many = between,
        }
    }
    Ok(best)
}

/// Returns how many of the last runs have at most [`MAX_RECENT_BYTES`] together.
fn worth_trying(runs: &[String]) -> usize {
    let mut bytes = 0;
    let newest_first = runs.iter().rev();
    let within = newest_first.take_while(|run| {
        bytes += run.len() + 1;
        bytes <= MAX_RECENT_BYTES
    });
    within.count()
}

fn prompt_with(
    template: &Template,
    managing: &NotesInput,
    measure: &Measure,
    runs: usize,
) -> Result<FittedPrompt, Unfit> {
    let shown = &managing.recent_runs[managing.recent_runs.len() - runs..];
    let conversation = TemplateConversation {
        prior_summary: &managing.prior_summary,
        recent_conversation: &shown.join("\n"),
        latest_input: &managing.latest_input,
    };
    let prompt = template.manager_prompt(&conversation);
    let prompt = prompt.map_err(|error| Unfit::Broken(error.to_string()))?;
    let tokens = measure.note(TASK) + measure.note(&prompt.text);
    Ok(FittedPrompt { prompt, tokens, runs: runs as u64 })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use std::sync::Arc;

    use crate::template::TemplatePlace;
    use crate::tokens::Estimate;

    fn plain() -> Measure {
        Measure::plain(Arc::new(Estimate))
    }

    fn managing(runs: usize, words: &str) -> NotesInput {
        NotesInput {
            recent_runs: (0..runs).map(|run| format!("run{run} {words}\n")).collect(),
            latest_input: "now".to_owned(),
            prior_summary: String::new(),
            passthrough: Vec::new(),
        }
    }

    fn template(text: &str) -> Template {
        Template::parse("t", TemplatePlace::BuiltIn, text).unwrap()
    }

    const ALL: &str = "{{ recent_conversation }} {{ latest_input }}";

    #[test]
    fn the_last_runs_that_fit_are_found_in_few_attempts() {
        let (template, managing, measure) = (template(ALL), managing(1000, "said"), plain());
        for expected in [0_usize, 1, 2, 17, 500, 999, 1000] {
            let budget = prompt_with(&template, &managing, &measure, expected).unwrap().tokens;
            let attempts = Cell::new(0);
            let counted = || {
                attempts.set(attempts.get() + 1);
                false
            };
            let fitted = fit(&template, &managing, &measure, budget, counted).unwrap();
            let more = prompt_with(&template, &managing, &measure, (expected + 1).min(1000));
            let is_least = more.unwrap().tokens > budget || expected == 1000;
            assert!(fitted.runs >= expected as u64, "{} for {expected}", fitted.runs);
            assert!(fitted.runs == expected as u64 || !is_least, "{}", fitted.runs);
            assert!(attempts.get() <= 13, "{} attempts", attempts.get());
        }
    }

    #[test]
    fn it_ends_when_nobody_wants_it() {
        let (template, managing) = (template(ALL), managing(9, "said"));
        assert_eq!(fit(&template, &managing, &plain(), 1, || true), Err(Unfit::Cancelled));
    }

    #[test]
    fn what_never_fits_says_how_long_it_is() {
        let (template, managing, measure) = (template(ALL), managing(9, "said"), plain());
        let bare = prompt_with(&template, &managing, &measure, 0).unwrap().tokens;
        let found = fit(&template, &managing, &measure, bare - 1, || false);
        assert_eq!(found, Err(Unfit::TooLong(bare)));
    }

    #[test]
    fn no_more_is_written_out_than_any_model_takes() {
        let managing = managing(100, &"word ".repeat(10_000));
        let fitted = fit(&template(ALL), &managing, &plain(), u64::MAX, || false).unwrap();
        assert!((40..43).contains(&fitted.runs), "{}", fitted.runs);
    }
}
