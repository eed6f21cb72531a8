//! One count: what would be sent now, of what the model takes. The dry run of a chat, the window that
//! is then sent, and `count-window` have the same figure.

use crate::support::*;

fn home() -> Home {
    let home = Home::new();
    let script = home.write("answers.toml", "[[answer]]\ntext = \"yes\"\n");
    let folder = home.path("config/contexture");
    std::fs::create_dir_all(&folder).unwrap();
    let provider = |name: &str, model: &str| {
        format!(
            "[[providers]]\nname = {name:?}\nkind = \"scripted\"\nmodel = {model:?}\n\
             script = {script:?}\n"
        )
    };
    let config = provider("play", "nobody-knows") + &provider("other", "gpt-4");
    std::fs::write(folder.join("config.toml"), config).unwrap();
    home
}

/// Counts what would be sent, and compares it with the dry run.
#[track_caller]
fn count(client: &mut Client, typed: &str, more: &str) -> (u64, Option<u64>) {
    let params = format!("(:content {typed:?} {more})");
    let counted = client.ok("count-window", &params);
    if !typed.is_empty() {
        let dry = client.ok("chat", &format!("(:content {typed:?} :dry-run t {more})"));
        assert_eq!(counted["tokens"], dry["tokens"]);
        for figure in ["limit", "limit_from", "max_tokens", "messages", "exact"] {
            assert_eq!(counted[figure], dry[figure], "{figure}");
        }
    }
    let limit = counted["limit"].as_u64().filter(|_| counted["limit_from"] != "default");
    (counted["tokens"].as_u64().unwrap(), limit)
}

#[test]
fn all_that_would_be_sent_is_counted_once() {
    let home = home();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\" :managers (\"general\") :manager \"special\")");
    let (empty, limit) = count(&mut client, "", "");
    assert_eq!((empty, limit), (0, None), "nobody knows the limit of the first model");
    let (typed, _) = count(&mut client, "what is this?", "");
    assert!(typed > empty);
    // The layers, and what was said.
    client.add("general", "fn general() {}");
    let (general, _) = count(&mut client, "what is this?", "");
    assert!(general > typed);
    client.add("special", "fn special() {}");
    let (special, _) = count(&mut client, "what is this?", "");
    assert!(special > general);
    let system = ":sections (:system-prompt \"Answer in one word, please.\")";
    let (with_system, _) = count(&mut client, "what is this?", system);
    assert!(with_system > special);
    client.ok("add-message", "(:content \"a question of before\")");
    let (said, _) = count(&mut client, "what is this?", system);
    assert!(said > with_system);
    // Another model, whose limit is known.
    let (_, limit) = count(&mut client, "what is this?", ":provider \"other\"");
    assert_eq!(limit, Some(8192));
    client.ok("configure-session", "(:model \"gpt-4\")");
    let (by_session, limit) = count(&mut client, "what is this?", "");
    assert_eq!(limit, Some(8192));
    // What is then sent is what was counted.
    let answer = client.ok("chat", "(:content \"what is this?\")");
    assert_eq!(answer["window_tokens"], by_session);
    // Counting is no window that was built, and changes nothing.
    let version = client.ok("count-window", "nil")["version"].clone();
    assert_eq!(client.ok("count-window", "(:content \"more\")")["version"], version);
    assert_eq!(client.ok("session-report", "(:reports 9)")["reports"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_configured_model_the_session_s_counts() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    client.ok("add-message", "(:content \"hello\")");
    let counted = client.ok("count-window", "(:content \"and more\")");
    assert!(counted["tokens"].as_u64().unwrap() > 0);
    assert!(is_nil(&counted["model"]) && counted["limit"] == 100_000, "{counted}");
    assert_eq!(
        (&counted["limit_from"], &counted["max_tokens"]),
        (&"default".into(), &96_000.into())
    );
    client.ok("configure-session", "(:model \"gpt-4\")");
    let counted = client.ok("count-window", "nil");
    assert_eq!((&counted["model"], &counted["limit"]), (&"gpt-4".into(), &8192.into()));
    let built = client.ok("build-window", "nil");
    assert_eq!(counted["tokens"], built["tokens"]);
}

#[test]
fn messages_wanted_back_are_counted() {
    let home = home();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    client.ok("configure-session", "(:max-tokens 600)");
    for said in 0..20 {
        let text = format!("part {said} of the log ").repeat(20);
        client.ok("add-message", &format!("(:content {text:?})"));
    }
    count(&mut client, "and now?", ":restore (\"msg-3\")");
    let reason = |client: &mut Client, more: &str| {
        let counted = client.ok("count-window", &format!("(:explain t {more})"));
        let parts = counted["report"]["parts"].as_array().unwrap();
        parts.iter().find(|part| part["what"] == "msg-3").unwrap()["reason"].clone()
    };
    assert_ne!(reason(&mut client, ""), "wanted back by the user");
    assert_eq!(reason(&mut client, ":restore (\"msg-3\")"), "wanted back by the user");
}
