//! Share of questions about recorded dialogues with all of their evidence in the window.
//!
//! `DIALOGUES` names a folder with JSON files in the form of LoCoMo: the conversations
//! `session_1`, `session_2` … have messages with `dia_id`, `speaker` and `text`, and `qa` has
//! questions with the `dia_id`s of their `evidence`. Questions of category 5 have no answer, and
//! are left out. With a server of embeddings, windows by meaning are measured too.

use std::collections::HashMap;

use contexture_program::internals::curation::similarity::Similarity;
use contexture_program::internals::curation::strategy::{ALL, Aim, Shown, Strategy};
use contexture_program::internals::curation::unit::History;
use contexture_program::internals::retrieval::scan;
use contexture_program::internals::retrieval::words::stems;
use contexture_program::internals::session::message::Role;
use serde_json::Value;

use crate::log::Log;
use crate::table::{percent, print};
use crate::{baseline, meaning};

const SHARES: &[f64] = &[0.10, 0.25];
/// Category of questions without an answer.
const NO_ANSWER: i64 = 5;

struct Dialogue {
    log: Log,
    questions: Vec<Question>,
}

struct Question {
    text: String,
    /// Indices of the messages with the evidence.
    evidence: Vec<usize>,
    /// Its similarity to each message, and what windows make of the vectors.
    meaning: Option<(Vec<f64>, Similarity)>,
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
        row("BM25 and neighbours", &dialogues, |history, question, budget| {
            by_words(history, &question.text, budget)
        }),
    ];
    let questions = || dialogues.iter().flat_map(|dialogue| &dialogue.questions);
    let has_vectors = questions().any(|question| question.meaning.is_some());
    if has_vectors {
        rows.push(row("vectors and neighbours", &dialogues, by_vectors));
    }
    for strategy in ALL {
        for (asked, meant) in [(false, false), (true, false), (true, true)] {
            if meant && (!has_vectors || !["query", "tiered"].contains(&strategy.name())) {
                continue;
            }
            let name = format!(
                "`{}`{}{}",
                strategy.name(),
                if asked { " with the query" } else { "" },
                if meant { ", by meaning too" } else { "" }
            );
            rows.push(row(&name, &dialogues, |history, question, budget| {
                let query = asked.then_some(&*question.text);
                let meaning = question.meaning.as_ref().filter(|_| meant);
                let similarity = meaning.map(|(_, similarity)| similarity);
                whole(*strategy, history, &Aim { budget, query, similarity, once: false })
            }));
        }
    }
    let questions = questions().count();
    let title = format!(
        "Evidence kept, {questions} questions about {} recorded dialogues",
        dialogues.len()
    );
    print(&title, &["window in share of the history", "10 %", "25 %"], &rows)
}

fn row(
    name: &str,
    dialogues: &[Dialogue],
    shown: impl Fn(&History<'_>, &Question, u64) -> Vec<usize>,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for share in SHARES {
        let (mut kept, mut all) = (0, 0);
        for Dialogue { log, questions } in dialogues {
            let history = History::new(log.messages.iter().collect(), &log.measure);
            let budget = (history.tokens() as f64 * share) as u64;
            for question in questions {
                let shown = shown(&history, question, budget);
                all += 1;
                kept += usize::from(question.evidence.iter().all(|index| shown.contains(index)));
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

fn by_vectors(history: &History<'_>, question: &Question, budget: u64) -> Vec<usize> {
    let similar = question.meaning.as_ref().map(|(similar, _)| &**similar).unwrap_or_default();
    let scores = baseline::with_neighbours(similar);
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
            questions.push(Question { text: question.to_owned(), evidence, meaning: None });
        }
    }
    add_meaning(&log, &mut questions)?;
    Ok(Dialogue { log, questions })
}

fn add_meaning(log: &Log, questions: &mut [Question]) -> anyhow::Result<()> {
    let texts: Vec<String> = log.messages.iter().map(|it| it.content.to_string()).collect();
    let asked: Vec<String> = questions.iter().map(|question| question.text.clone()).collect();
    let (Some(messages), Some(asked)) = (meaning::vectors(&texts)?, meaning::vectors(&asked)?)
    else {
        return Ok(());
    };
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    for (question, vector) in questions.iter_mut().zip(&asked) {
        let cosine = |it: &Vec<f32>| dot(vector, it) / (dot(vector, vector) * dot(it, it)).sqrt();
        let similarity = Similarity::of(vector, messages.iter().map(|it| Some(&**it)));
        question.meaning = Some((messages.iter().map(cosine).collect(), similarity));
    }
    Ok(())
}
