//! Share of questions with all of their evidence in the window, for each strategy.

use contexture_program::internals::curation::strategy::{ALL, Aim, Shown, Strategy};
use contexture_program::internals::curation::unit::History;
use contexture_program::internals::retrieval::scan;
use contexture_program::internals::retrieval::words::stems;

use crate::baseline::best_first;
use crate::dialogue::{Dialogue, Question, dialogue};
use crate::table::{percent, print};

const DIALOGUES: u64 = 8;
const MESSAGES: usize = 600;
const SHARES: &[f64] = &[0.05, 0.10, 0.25, 0.50];

pub(crate) fn measure() -> anyhow::Result<()> {
    let dialogues: Vec<Dialogue> =
        (1..=DIALOGUES).map(|seed| dialogue(seed, MESSAGES)).collect::<anyhow::Result<_>>()?;
    let mut rows = vec![row("BM25 alone, for comparison", &dialogues, bm25_alone)];
    for strategy in ALL {
        for asked in [false, true] {
            let name =
                format!("`{}`{}", strategy.name(), if asked { " with the query" } else { "" });
            rows.push(row(&name, &dialogues, |dialogue, question, budget| {
                shown(*strategy, dialogue, asked.then_some(&question.text), budget)
            }));
        }
    }
    let target = ["target, of those with the query", "–", "≥ 78 %", "≥ 84 %", "–"];
    rows.push(target.map(str::to_owned).to_vec());
    let questions: usize = dialogues.iter().map(|dialogue| dialogue.questions.len()).sum();
    let title = format!(
        "Evidence kept, {questions} questions about {DIALOGUES} dialogues of about {} messages",
        dialogues[0].log.messages.len()
    );
    print(
        &title,
        &["strategy, budget in share of the history", "5 %", "10 %", "25 %", "50 %"],
        &rows,
    )?;
    by_kind(&dialogues)
}

/// Shows where the query's ranking misses, at a tenth of the history.
fn by_kind(dialogues: &[Dialogue]) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let of_kind = |kind: &str, strategy: &dyn Strategy| {
        let (mut kept, mut all) = (0, 0);
        for dialogue in dialogues {
            let budget = budget(dialogue, 0.1);
            for question in dialogue.questions.iter().filter(|question| question.kind == kind) {
                all += 1;
                let shown = shown(strategy, dialogue, Some(&question.text), budget);
                kept += usize::from(has_all(question, &shown));
            }
        }
        (all, percent(kept, all))
    };
    let strategies: Vec<&dyn Strategy> =
        ALL.iter().copied().filter(|s| ["query", "tiered"].contains(&s.name())).collect();
    for kind in ["told outright", "told in reply", "updated", "needs both", "named otherwise"] {
        let figures: Vec<(usize, String)> = strategies.iter().map(|s| of_kind(kind, *s)).collect();
        let mut row = vec![kind.to_owned(), figures[0].0.to_string()];
        row.extend(figures.into_iter().map(|(_, share)| share));
        rows.push(row);
    }
    let mut columns = vec!["kind of question, at 10 %", "questions"];
    columns.extend(strategies.iter().map(|strategy| strategy.name()));
    print("Evidence kept by kind", &columns, &rows)
}

fn row(
    name: &str,
    dialogues: &[Dialogue],
    shown: impl Fn(&Dialogue, &Question, u64) -> Vec<usize>,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for share in SHARES {
        let (mut kept, mut all) = (0, 0);
        for dialogue in dialogues {
            let budget = budget(dialogue, *share);
            for question in &dialogue.questions {
                all += 1;
                kept += usize::from(has_all(question, &shown(dialogue, question, budget)));
            }
        }
        row.push(percent(kept, all));
    }
    row
}

fn budget(dialogue: &Dialogue, share: f64) -> u64 {
    let messages = dialogue.log.messages.iter();
    let tokens: u64 = messages.map(|m| dialogue.log.measure.message(m.tokens)).sum();
    (tokens as f64 * share) as u64
}

fn has_all(question: &Question, shown: &[usize]) -> bool {
    question.evidence.iter().all(|index| shown.binary_search(index).is_ok())
}

/// Returns the messages that are shown whole. A note or summary that repeats one does not count.
fn shown(
    strategy: &dyn Strategy,
    dialogue: &Dialogue,
    query: Option<&String>,
    budget: u64,
) -> Vec<usize> {
    let history = History::new(dialogue.log.messages.iter().collect(), &dialogue.log.measure);
    let aim = Aim { budget, query: query.map(String::as_str), ..Aim::default() };
    let projection = strategy.project(&history, &aim);
    let whole = |shown: &Shown| match shown {
        Shown::Whole(index) => Some(*index),
        Shown::Shortened { .. } | Shown::Note { .. } => None,
    };
    projection.shown.iter().filter_map(whole).collect()
}

fn bm25_alone(dialogue: &Dialogue, question: &Question, mut budget: u64) -> Vec<usize> {
    let messages = &dialogue.log.messages;
    let texts = messages.iter().map(|message| [&*message.content]);
    let scores = scan::scores(texts, &stems(&question.text));
    let mut shown = Vec::new();
    for at in best_first(&scores) {
        let cost = dialogue.log.measure.message(messages[at].tokens);
        if cost <= budget {
            budget -= cost;
            shown.push(at);
        }
    }
    shown.sort_unstable();
    shown
}
