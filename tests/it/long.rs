//! Long conversations with each kind of server, none of which refuses any of them.

use contexture_program::internals::provider::Family;

use crate::endpoint::Endpoint;
use crate::model;
use crate::support::*;
use crate::tiers::rounds;

/// Words of a question: so many that a small session is summarized several times, and fewer.
const MANY: usize = 400;
const FEW: usize = 10;
const STATUS: &str = "/management/status";

fn turns() -> usize {
    rounds(24, 60)
}

/// Holds a conversation with each kind of server and gives the answers, and what was sent.
#[track_caller]
fn converse(
    configured: fn(&Home, &Endpoint) -> String,
    settings: &str,
    asks: &str,
    words: usize,
) -> Vec<(Family, Vec<Json>, String)> {
    let hold = &|family: &Family| {
        let server = model::serve();
        let home = Home::new();
        let config = configured(&home, &server) + &model::provider(*family, &server);
        model::configure(&home, &config);
        let mut client = home.ephemeral(&[]);
        client.ok("remember", "(:content \"the automobile is violet\")");
        client.ok("open-session", "(:name \"s\")");
        client.ok("configure-session", settings);
        let answers: Vec<Json> = (0..turns())
            .map(|turn| {
                let text = format!("question {turn} {asks} {}", "word ".repeat(words));
                client.ok("chat", &format!("(:content {})", quoted(&text)))
            })
            .collect();
        // The server refused nothing, or it says so when it is dropped.
        (*family, answers, model::sent(&server, 0, &Json::Null))
    };
    std::thread::scope(|scope| {
        let held: Vec<_> =
            Family::ALL.iter().map(|family| scope.spawn(move || hold(family))).collect();
        held.into_iter().map(|held| held.join().unwrap()).collect()
    })
}

#[test]
fn a_session_that_is_summarized_is_never_refused() {
    let small = "(:max-tokens 8192)";
    for (family, answers, sent) in converse(|_, _| String::new(), small, "which automobile?", MANY)
    {
        let summarized = answers.iter().filter(|a| a["turn"]["summarization_triggered"] == true);
        assert!(summarized.count() > 1, "{family:?}");
        assert!(sent.contains("[Previous conversation summary:"), "{family:?}");
        assert!(sent.contains("Relevant context from memory:"), "{family:?}");
    }
}

#[test]
fn a_session_with_embeddings_is_never_refused() {
    let embeddings = |_: &Home, server: &Endpoint| model::embeddings(server);
    for (family, answers, sent) in converse(embeddings, "nil", "which car?", FEW) {
        assert!(answers.iter().all(|answer| answer["turn"]["embedding"] == "used"), "{family:?}");
        assert!(sent.contains("the automobile is violet"), "{family:?}");
    }
}

#[test]
fn a_session_with_tools_is_never_refused() {
    let tools = "(:tools t :allowed-tools t)";
    for (family, answers, _) in converse(|_, _| String::new(), tools, model::USE_A_TOOL, FEW) {
        for answer in answers {
            let ran = answer["tool_calls"].as_array().map_or(0, Vec::len);
            assert_eq!((ran, answer["rounds"].as_i64()), (1, Some(2)), "{family:?}: {answer}");
        }
    }
}

#[test]
fn a_managed_session_is_never_refused() {
    let template = |home: &Home, _: &Endpoint| {
        model::template(home, "mine");
        String::new()
    };
    for (family, answers, sent) in converse(template, "(:manage t :template \"mine\")", "", FEW) {
        let managed = answers.iter().filter(|a| a.pointer(STATUS) == Some(&"managed".into()));
        assert!(managed.count() > turns() / 2, "{family:?}");
        assert!(sent.contains(model::NOTED), "{family:?}");
    }
}
