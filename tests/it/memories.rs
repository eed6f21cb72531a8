//! What is remembered, for whom, how it is found again, and how it fades.

use crate::support::*;

const HOUR: i64 = 3600;

/// A server at a time, over the state of the one before it.
fn at(home: &Home, hours: i64) -> Client {
    let time = (1_700_000_000 + hours * HOUR).to_string();
    home.stdio(&["--fixed-time", &time])
}

fn remember(client: &mut Client, content: &str, more: &str) -> String {
    let params = format!("(:content {} {more})", quoted(content));
    client.ok("remember", &params)["id"].as_str().unwrap().to_owned()
}

/// The ids that are found for a text.
#[track_caller]
fn found(client: &mut Client, query: &str, more: &str) -> Vec<String> {
    let found = client.ok("ground-query", &format!("(:query {} {more})", quoted(query)));
    let memories = found["memories"].as_array().cloned().unwrap_or_default();
    memories.iter().map(|memory| memory["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn memories_are_for_a_session_a_project_or_everywhere() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    for (name, project) in [("a", "/srv/p"), ("b", "/srv/p"), ("c", "/srv/q")] {
        client.ok("open-session", &format!("(:name \"{name}\" :project \"{project}\")"));
    }
    let everywhere = remember(&mut client, "the port is one", "");
    let project = remember(&mut client, "the port is two", ":scope :project :session \"a\"");
    let session = remember(&mut client, "the port is three", ":session \"a\"");
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let of = |client: &mut Client, name: &str| {
        sorted(found(client, "port", &format!(":session \"{name}\"")))
    };
    assert_eq!(of(&mut client, "a"), [&*everywhere, &*project, &*session]);
    assert_eq!(of(&mut client, "b"), [&*everywhere, &*project]);
    assert_eq!(of(&mut client, "c"), [&*everywhere]);
    assert_eq!(
        sorted(found(&mut client, "port", ":project \"/srv/p\"")),
        [&*everywhere, &*project]
    );
    assert_eq!(found(&mut client, "port", "").len(), 3);
    let listed = client.ok("list-memories", "(:session \"a\")");
    let scopes: Vec<&str> =
        listed.as_array().unwrap().iter().map(|row| row["scope"].as_str().unwrap()).collect();
    assert_eq!(scopes, ["session", "project", "everywhere"]);
    assert_eq!(client.fails("remember", "(:content \"x\" :scope :project)").param(), "project");
    client.end();
}

#[test]
fn a_memory_is_forgotten_and_brought_back() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let id = remember(&mut client, "the port is one", "");
    assert!(
        client.ok("update-memory", &format!("(:id \"{id}\" :forgotten t)"))["forgotten"]
            .is_number()
    );
    assert!(found(&mut client, "port", "").is_empty());
    assert!(is_nil(&client.ok("list-memories", "nil")));
    assert_eq!(client.ok("list-memories", "(:forgotten t)")[0]["id"], id);
    client.end();
    let mut client = home.stdio(&[]);
    let back = client.ok("update-memory", &format!("(:id \"{id}\" :forgotten nil)"));
    assert!(back.get("forgotten").is_none(), "{back}");
    assert_eq!(found(&mut client, "port", ""), [id]);
    let error = client.fails("update-memory", "(:id \"mem-99\" :forgotten t)");
    assert_eq!((error.kind(), error.data["memory"].as_str()), ("no-such-memory", Some("mem-99")));
    client.end();
}

#[test]
fn identifiers_are_found_by_their_parts_and_words_in_all_their_forms() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let id =
        remember(&mut client, "parseHttpHeader in src/net/http_client.rs retries requests", "");
    remember(&mut client, "nothing to do with it", "");
    for query in ["header", "http client", "retry", "request", "PARSEHTTPHEADER", "net"] {
        assert_eq!(found(&mut client, query, ""), [&*id], "{query}");
    }
    assert!(found(&mut client, "zebra", "").is_empty());
    let nothing = client.ok("ground-query", "(:query \"zebra\")");
    assert_eq!((&nothing["relevance"], &nothing["summary"]), (&0.0.into(), &"".into()));
}

#[test]
fn strength_decays_with_time_and_accesses_are_counted() {
    let home = Home::new();
    let relevance = |client: &mut Client| {
        let found = client.ok("ground-query", "(:query \"port\")");
        found["relevance"].as_f64().unwrap()
    };
    let strength = |hours: f64, age: f64, accesses: f64| {
        let stability = (168.0 + 0.1 * accesses) * 1.5;
        (-hours / stability).exp() * (-0.01 * age).exp().clamp(0.1, 1.0)
    };
    let mut client = at(&home, 0);
    let id = remember(&mut client, "the port is one", "");
    let close =
        |got: f64, expected: f64| assert!((got - expected).abs() < 1e-9, "{got} {expected}");
    close(relevance(&mut client), (1.0 + 1.0) / 2.0);
    let row = |client: &mut Client| client.ok("list-memories", "nil")[0].clone();
    assert_eq!((&row(&mut client)["accesses"], &row(&mut client)["id"]), (&1.into(), &id.into()));
    client.end();
    let mut client = at(&home, 50);
    close(relevance(&mut client), (1.0 + strength(50.0, 50.0, 1.0)) / 2.0);
    assert_eq!(row(&mut client)["accesses"], 2);
    assert_eq!(row(&mut client)["accessed"], 1_700_000_000 + 50 * HOUR);
    client.end();
    let mut client = at(&home, 1000);
    close(relevance(&mut client), (1.0 + strength(950.0, 1000.0, 2.0)) / 2.0);
    client.end();
    // Listing is no access, and a clock that went back makes nothing stronger than strong.
    let mut client = at(&home, -9000);
    assert_eq!(row(&mut client)["accesses"], 3);
    let now = relevance(&mut client);
    assert!((0.0..=1.0).contains(&now), "{now}");
    client.end();
}

#[test]
fn of_several_the_best_comes_first_and_relevance_falls_from_one_to_the_next() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    for number in 0..20 {
        remember(&mut client, &format!("note {number} about the database"), "");
    }
    let best = remember(&mut client, "the database password lies in vault/prod.toml", "");
    let found = client.ok("ground-query", "(:query \"where is the database password\" :limit 4)");
    let memories = found["memories"].as_array().unwrap();
    assert_eq!((memories.len(), &memories[0]["id"]), (4, &best.into()));
    let scores: Vec<f64> =
        found["relevance_scores"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    assert!(scores.windows(2).all(|pair| pair[0] > pair[1]), "{scores:?}");
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
    let text = found["summary"].as_str().unwrap();
    assert!(text.starts_with("Relevant context from memory:\n- the database password"), "{text}");
    assert_eq!(text.lines().count(), 5);
}

#[test]
fn what_was_pruned_comes_back_by_grounding_but_not_what_is_still_in_view() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("add-message", "(:content \"begin\")");
    client
        .ok("add-message", "(:role :assistant :content \"the vault key is under the blue stone\")");
    let filler = "something else entirely ".repeat(40);
    for _ in 0..5 {
        client.ok("add-message", &format!("(:role :assistant :content \"{filler}\")"));
    }
    client.ok("add-message", "(:content \"go on\")");
    let pruned = client.ok("prune-context", "(:max-tokens 10)");
    assert!(pruned["removed"].to_string().contains("blue stone"));
    let listed = client.ok("list-memories", "(:session \"a\")");
    assert_eq!(pruned["archived"], listed.as_array().unwrap().len());
    client.end();
    let mut client = home.stdio(&[]);
    let done = client.ok("process-turn", "(:content \"where is the vault key?\")");
    assert!(done["grounding"].as_str().unwrap().contains("blue stone"), "{done}");
    assert_eq!(
        done["grounding_used"].as_array().unwrap().len(),
        done["relevance_scores"].as_array().unwrap().len()
    );
    // The window has it where the client puts it, last of all.
    let params =
        format!("(:sections (:grounding {}))", quoted(done["grounding"].as_str().unwrap()));
    let window = client.ok("build-context", &params);
    let last = window["parts"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["section"], &last["role"]), (&"grounding".into(), &"system".into()));
    // Once the messages are back themselves, they are not brought in twice.
    client.ok("restore", "(:session \"a\" :operation 0)");
    let done = client.ok("process-turn", "(:content \"where is the vault key?\")");
    assert!(is_nil(&done["grounding_used"]), "{done}");
    // It can be turned off.
    client.ok("open-session", "(:name \"b\")");
    client.ok("configure-session", "(:archive-pruned nil)");
    for _ in 0..3 {
        client.ok("add-message", &format!("(:role :assistant :content \"{filler}\")"));
    }
    client.ok("add-message", "(:content \"go on\")");
    let pruned = client.ok("prune-context", "(:max-tokens 100)");
    assert_eq!((&pruned["archived"], is_nil(&pruned["removed"])), (&0.into(), false));
    client.end();
}

#[test]
fn a_project_is_the_same_with_and_without_a_slash_at_its_end() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    for (name, folder) in [("a", "/srv/p"), ("b", "/srv/p/"), ("c", "/srv/pp")] {
        client.ok("open-session", &format!("(:name \"{name}\" :project \"{folder}\")"));
        client.ok("add-message", "(:content \"where is the vault?\")");
    }
    client.ok("remember", "(:content \"the vault is below\" :scope :project :project \"/srv/p\")");
    client
        .ok("remember", "(:content \"the vault has a key\" :scope :project :project \"/srv/p/\")");
    for folder in ["/srv/p", "/srv/p/"] {
        let listed = client.ok("list-sessions", &format!("(:project \"{folder}\")"));
        assert_eq!(listed.as_array().unwrap().len(), 2, "{folder}: {listed}");
        let params = format!("(:query \"vault\" :project \"{folder}\")");
        assert_eq!(client.ok("list-sessions", &params).as_array().unwrap().len(), 2, "{folder}");
        let found = client.ok("ground-query", &params);
        assert_eq!(found["memories"].as_array().unwrap().len(), 2, "{folder}: {found}");
    }
    for (session, count) in [("a", 2), ("b", 2), ("c", 0)] {
        let params = format!("(:query \"vault\" :session \"{session}\")");
        let found = client.ok("ground-query", &params)["memories"].clone();
        assert_eq!(found.as_array().map_or(0, Vec::len), count, "{session}: {found}");
    }
}

#[test]
fn a_summary_is_remembered_and_grounds_other_sessions_of_the_project_only() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\" :project \"/srv/p\")");
    let filler = "and so on with many words ".repeat(20);
    for number in 0..6 {
        client.ok(
            "process-turn",
            &format!("(:content \"We decided to use quartz timers. {number} {filler}\")"),
        );
        client.ok("add-message", &format!("(:role :assistant :content \"fine {filler}\")"));
    }
    let done = client.ok("summarize-context", "(:keep-turns 1)");
    let id = done["memory"].as_str().unwrap().to_owned();
    let of_a = client.ok("process-turn", "(:content \"what about quartz timers?\")");
    assert!(!ids(&of_a["grounding_used"]).contains(&id), "{of_a}");
    client.ok("open-session", "(:name \"b\" :project \"/srv/p\")");
    let of_b = client.ok("process-turn", "(:content \"what about quartz timers?\")");
    assert!(ids(&of_b["grounding_used"]).contains(&id), "{of_b}");
    assert!(of_b["grounding"].as_str().unwrap().contains("[context-summary]"));
    client.ok("open-session", "(:name \"c\" :project \"/srv/q\")");
    let of_c = client.ok("process-turn", "(:content \"what about quartz timers?\")");
    assert!(is_nil(&of_c["grounding_used"]), "{of_c}");
}

#[test]
fn a_question_asked_forty_times_does_not_hide_the_memory_that_answers_it() {
    const QUESTION: &str = "what of the database port?";
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    let fact = remember(&mut client, "the database listens on port 5433", "");
    for turn in 0..40 {
        let done = client.ok("process-turn", &format!("(:content \"{QUESTION}\")"));
        assert_eq!(done["grounding_used"][0], fact, "in turn {turn}");
        let grounding = done["grounding"].as_str().unwrap();
        assert!(grounding.matches(QUESTION).count() <= 1, "in turn {turn}: {grounding}");
        client.ok("add-message", "(:role :assistant :content \"Let me look at this one.\")");
        client.ok("prune-context", "(:max-tokens 40)");
    }
    let grounding = client.ok("ground-query", &format!("(:query \"{QUESTION}\" :session \"a\")"));
    assert_eq!(grounding["memories"][0]["id"], fact);
    assert_eq!(grounding["summary"].as_str().unwrap().matches(QUESTION).count(), 1);
    assert_eq!(found(&mut client, QUESTION, ":limit 1"), [fact]);
    client.end();
}

#[test]
fn an_answer_is_found_behind_any_number_of_questions() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    let question = "(:role :user :content \"database port database port?\")";
    client.ok("add-message", "(:role :user :content \"hello\")");
    client.ok(
        "add-message",
        "(:role :assistant :content \"The database uses port 5433, as I said.\")",
    );
    for _ in 0..150 {
        client.ok("add-message", question);
    }
    client.ok("prune-context", "(:max-tokens 20)");
    let grounding = client.ok("ground-query", "(:query \"database port\" :session \"a\" :limit 1)");
    let found = grounding["memories"][0]["content"].as_str().unwrap();
    assert!(found.contains("5433"), "{found}");
    client.end();
}

#[test]
fn a_repository_brings_its_memories_and_takes_one_only_when_asked() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let project = home.file("app").to_str().unwrap().to_owned();
    home.write("app/.contexture/memories/port.md", "---\nby: ann\n---\nThe port is 8080.\n");
    let list = |client: &mut Client, more: &str| {
        client.ok("list-memories", &format!("(:project {project:?} {more})"))
    };
    let listed = list(&mut client, "");
    assert_eq!(listed[0]["kind"], "repository");
    assert_eq!(listed[0]["content"], "[.contexture/memories/port.md] The port is 8080.");
    let found = client.ok("ground-query", &format!("(:query \"which port\" :project {project:?})"));
    assert_eq!(found["memories"][0]["id"], listed[0]["id"]);
    // Another project does not see it.
    assert!(is_nil(&client.ok("list-memories", "(:project \"/elsewhere\")")));
    // What was changed or removed is no longer there; what came back is, unless a user forgot it.
    home.write("app/.contexture/memories/port.md", "The port is 9090.");
    let listed = list(&mut client, "");
    assert_eq!(listed[0]["content"], "[.contexture/memories/port.md] The port is 9090.");
    assert_eq!(listed.as_array().unwrap().len(), 1);
    client.ok("update-memory", &format!("(:id {} :forgotten t)", listed[0]["id"]));
    assert!(is_nil(&list(&mut client, "")));
    home.write("app/.contexture/memories/port.md", "The port is 8080.");
    assert_eq!(list(&mut client, "").as_array().unwrap().len(), 1);
    // Only `update-memory` writes.
    let new = client.ok("remember", &format!("(:content \"Use tabs\" :project {project:?})"));
    assert!(!home.file("app/.contexture/memories/use-tabs.md").exists());
    let written = client.ok("update-memory", &format!("(:id {} :write t)", new["id"]));
    let path = home.file("app/.contexture/memories/use-tabs.md");
    assert!(written["path"].as_str().unwrap().ends_with("/.contexture/memories/use-tabs.md"));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "---\nkind: note\n---\nUse tabs\n");
    let everywhere = client.ok("remember", "(:content \"x\")");
    let error = client.fails("update-memory", &format!("(:id {} :write t)", everywhere["id"]));
    assert_eq!(error.param(), "project");
    client.end();
}
