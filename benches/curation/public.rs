//! Share of questions about recorded dialogues with all of their evidence in the window.
//!
//! `DIALOGUES` names a folder with JSON files in the form of LoCoMo: the conversations
//! `session_1`, `session_2` … have messages with `dia_id`, `speaker` and `text`, and `qa` has
//! questions with the `dia_id`s of their `evidence`. Questions of category 5 have no answer, and
//! are left out.

use std::collections::HashMap;

use contexture::internals::curation::strategy::{ALL, Aim, Shown, Strategy};
use contexture::internals::curation::unit::History;
use contexture::internals::retrieval::scan;
use contexture::internals::retrieval::words::stems;
use contexture::internals::session::message::Role;
use serde_json::Value;

use crate::baseline;
use crate::log::Log;
use crate::table::{percent, print};

const SHARES: &[f64] = &[0.10, 0.25];
/// Category of questions without an answer.
const NO_ANSWER: i64 = 5;

struct Dialogue {
    log: Log,
    /// Questions with the indices of their evidence.
    questions: Vec<(String, Vec<usize>)>,
}

pub(crate) fn measure() -> anyhow::Result<()> {
    let Some(folder) = std::env::var_os("DIALOGUES").filter(|folder| !folder.is_empty()) else {
        return Ok(());
    };
    let mut dialogues = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort_unstable();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|it| it == "json")) {
        dialogues.push(dialogue(&serde_json::from_str(&std::fs::read_to_string(path)?)?)?);
    }
    let mut rows = vec![
        row("newest that fit", &dialogues, |history, _, budget| newest(history, budget)),
        row("BM25 and neighbours", &dialogues, by_words),
    ];
    for strategy in ALL {
        for asked in [false, true] {
            let name =
                format!("`{}`{}", strategy.name(), if asked { " with the query" } else { "" });
            rows.push(row(&name, &dialogues, |history, question, budget| {
                whole(*strategy, history, &Aim { budget, query: asked.then_some(question) })
            }));
        }
    }
    let questions: usize = dialogues.iter().map(|dialogue| dialogue.questions.len()).sum();
    let title = format!(
        "Evidence kept, {questions} questions about {} recorded dialogues",
        dialogues.len()
    );
    print(&title, &["window in share of the history", "10 %", "25 %"], &rows)
}

fn row(
    name: &str,
    dialogues: &[Dialogue],
    shown: impl Fn(&History<'_>, &str, u64) -> Vec<usize>,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for share in SHARES {
        let (mut kept, mut all) = (0, 0);
        for Dialogue { log, questions } in dialogues {
            let history = History::new(log.messages.iter().collect(), &log.measure);
            let budget = (history.tokens() as f64 * share) as u64;
            for (question, evidence) in questions {
                let shown = shown(&history, question, budget);
                all += 1;
                kept += usize::from(evidence.iter().all(|index| shown.contains(index)));
            }
        }
        row.push(percent(kept, all));
    }
    row
}

fn whole(strategy: &dyn Strategy, history: &History<'_>, aim: &Aim<'_>) -> Vec<usize> {
    let whole = |shown: Shown| match shown {
        Shown::Whole(index) => Some(index),
        Shown::Shortened { .. } | Shown::Note { .. } => None,
    };
    strategy.project(history, aim).shown.into_iter().filter_map(whole).collect()
}

fn newest(history: &History<'_>, budget: u64) -> Vec<usize> {
    fitting(history, (0..history.messages.len()).rev(), budget)
}

fn by_words(history: &History<'_>, question: &str, budget: u64) -> Vec<usize> {
    let texts = history.messages.iter().map(|message| [&*message.content]);
    let scores = baseline::with_neighbours(&scan::scores(texts, &stems(question)));
    fitting(history, baseline::best_first(&scores).into_iter(), budget)
}

fn fitting(
    history: &History<'_>,
    order: impl Iterator<Item = usize>,
    mut budget: u64,
) -> Vec<usize> {
    order
        .filter(|index| {
            let cost = history.measure.message(history.messages[*index].tokens);
            let fits = cost <= budget;
            budget -= if fits { cost } else { 0 };
            fits
        })
        .collect()
}

fn dialogue(json: &Value) -> anyhow::Result<Dialogue> {
    let mut log = Log::new("o200k")?;
    let mut places = HashMap::new();
    let mut first = None;
    for session in (1..).map_while(|number| json[format!("session_{number}")].as_array()) {
        for message in session {
            let speaker = message["speaker"].as_str().unwrap_or_default();
            let role =
                if *first.get_or_insert(speaker) == speaker { Role::User } else { Role::Assistant };
            places.insert(message["dia_id"].as_str().unwrap_or_default(), log.messages.len());
            log.say(role, &format!("{speaker}: {}", message["text"].as_str().unwrap_or_default()));
        }
    }
    let mut questions = Vec::new();
    for asked in json["qa"].as_array().into_iter().flatten() {
        let evidence = asked["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let evidence: Vec<usize> =
            evidence.filter_map(|id| places.get(id.trim()).copied()).collect();
        if !evidence.is_empty() && asked["category"].as_i64() != Some(NO_ANSWER) {
            let question = asked["question"].as_str().unwrap_or_default();
            questions.push((question.to_owned(), evidence));
        }
    }
    Ok(Dialogue { log, questions })
}
