//! What was acknowledged is there after `kill -9`.

use std::collections::{HashMap, HashSet};

use contexture_program::internals::store::sqlite::SqliteStore;

use crate::support::*;
use crate::tiers::rounds;

/// How many adds are on their way when the server is killed.
const PIPELINED: usize = 120;

/// Options of a server that makes no backups by itself.
const NO_BACKUPS: [&str; 2] = ["--backups-kept", "0"];

/// The manager of a round; a few share one, so that rounds also build on each other.
fn manager(round: usize) -> String {
    format!("m{}", round / 4)
}

#[test]
fn kills_lose_nothing_that_was_acknowledged() {
    let rounds: usize = rounds(20, 500);
    let home = Home::new();
    let mut random = Random(42);
    let mut acknowledged: HashMap<String, String> = HashMap::new();
    let mut seen = HashSet::new();
    for round in 0..rounds {
        let mut client = home.stdio(&["--max-items", "1000"]);
        check_manager(&mut client, round.saturating_sub(1), &acknowledged);
        let first = client.send("ping", "nil");
        client.reply(first).unwrap();
        let mut lines = String::new();
        for number in 0..PIPELINED {
            let content = format!("round {round} item {number}");
            let params = format!("(:manager \"{}\" :content \"{content}\")", manager(round));
            lines += &request(Dialect::Native, &number.to_string(), "add-context", &params);
        }
        client.write(lines.as_bytes());
        let mut answers = Vec::new();
        for _ in 0..random.below(PIPELINED) {
            answers.push(client.line().unwrap());
        }
        client.process().kill();
        while let Some(line) = client.line() {
            answers.push(line);
        }
        for line in answers.iter().filter(|line| line.ends_with(')')) {
            let Ok(item) = outcome(parse(Dialect::Native, line)) else { panic!("{line}") };
            let id = item["id"].as_str().unwrap().to_owned();
            assert!(seen.insert(id.clone()), "{id} was given twice");
            acknowledged.insert(id, item["content"].as_str().unwrap().to_owned());
        }
        if round % 10 == 0 {
            home.succeed(&["doctor"]);
        }
    }
    let mut client = home.stdio(&["--max-items", "1000"]);
    for round in (0..rounds).step_by(4) {
        check_manager(&mut client, round, &acknowledged);
    }
    let held: usize = client
        .ok("list-managers", "nil")
        .as_array()
        .unwrap()
        .iter()
        .map(|manager| manager["count"].as_u64().unwrap() as usize)
        .sum();
    assert!(acknowledged.len() > rounds * PIPELINED / 4, "{}", acknowledged.len());
    assert!(held >= acknowledged.len() && held <= rounds * PIPELINED);
    let notices = client.ok("initialize", "nil")["notices"].clone();
    assert!(is_nil(&notices), "a killed server is no damage: {notices}");
    client.end();
    SqliteStore::check(&home.database()).unwrap();
    assert!(home.succeed(&["doctor"]).contains("contexture.db is sound"));
    eprintln!("{rounds} kills: {} acknowledged, none lost", acknowledged.len());
}

/// Every acknowledged item of the round's manager is there with its content, and no id twice.
#[track_caller]
fn check_manager(client: &mut Client, round: usize, acknowledged: &HashMap<String, String>) {
    let params = format!("(:manager \"{}\")", manager(round));
    let items = client.ok("get-context", &params);
    let items = items.as_array().cloned().unwrap_or_default();
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let held: HashMap<String, String> =
        items.iter().map(|item| (text(&item["id"]), text(&item["content"]))).collect();
    assert_eq!(held.len(), items.len(), "an id is there twice");
    let rounds: Vec<String> =
        (round / 4 * 4..round / 4 * 4 + 4).map(|round| format!("round {round} ")).collect();
    let mine = |content: &str| rounds.iter().any(|round| content.starts_with(round));
    for (id, content) in acknowledged.iter().filter(|(_, content)| mine(content)) {
        assert_eq!(held.get(id), Some(content), "{id} was acknowledged");
    }
    for (id, content) in &held {
        assert!(acknowledged.get(id).is_none_or(|said| said == content), "{id} is another");
    }
}

#[test]
fn a_killed_server_leaves_a_database_that_the_doctor_finds_sound() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.add("*shared*", "x");
    client.process().kill();
    SqliteStore::check(&home.database()).unwrap();
    assert!(home.succeed(&["doctor"]).contains("contexture.db is sound"));
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["x"]);
}

#[test]
fn notifications_before_an_acknowledged_call_are_kept_too() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.write(b"(:method add-context :params (:content \"quiet\"))\n");
    client.add("*shared*", "loud");
    client.process().kill();
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["quiet", "loud"]);
}

#[test]
fn a_damaged_database_does_not_keep_the_server_from_starting() {
    for has_backup in [true, false] {
        let home = Home::new();
        let mut client = home.stdio(&NO_BACKUPS);
        client.add("*shared*", "a");
        client.add("*shared*", "b");
        client.end();
        if has_backup {
            home.back_up();
        }
        let mut client = home.stdio(&NO_BACKUPS);
        client.ok("update-items", "(:id \"ctx-1\" :pinned t)");
        client.add("*shared*", "c");
        client.process().kill();
        for name in ["contexture.db", "contexture.db-wal"] {
            let garbage = "no database, but something ".repeat(400);
            std::fs::write(home.state().join(name), garbage).unwrap();
        }
        let mut told = String::new();
        for _ in 0..2 {
            let mut client = home.stdio(&NO_BACKUPS);
            let left: &[&str] = if has_backup { &["a", "b"] } else { &[] };
            assert_eq!(client.contents("*shared*"), left);
            told += &client.ok("initialize", "nil")["notices"].to_string();
            client.end();
        }
        assert_eq!(told.matches("the database was damaged").count(), 1, "{told}");
        let lost = if has_backup { "2 changes are lost" } else { "everything in it is lost" };
        assert!(told.contains(lost), "{told}");
        assert_eq!(home.stdio(&NO_BACKUPS).add("*shared*", "d"), "ctx-4");
    }
}
