//! What would be sent is told in several ways: a count, a preview, the report of the window, the answer,
//! and what the server of the model heard. Each two agree, with servers that tell their limit, that
//! tell none, and that tell it when they refuse.

use crate::endpoint::Endpoint;
use crate::rooms::{begin, taking};
use crate::support::*;

/// Tokens that a small model takes, by the count of its server.
const SMALL: usize = 9_000;
const LIST: &str = "{\"data\": [{\"id\": \"gguf\", \"meta\": {\"n_ctx\": 9000}}]}";
/// Servers: a name, what the model takes, and what the server tells about it.
const SERVERS: [(&str, usize, &str); 3] = [
    ("tells", SMALL, LIST),
    ("tells nothing", usize::MAX, ""),
    ("tells when it refuses", SMALL, ""),
];
const TURNS: usize = 40;
const IMPORTED: usize = 800;

/// One way in which it is told: a name, the tokens, the most that they may be, and how many messages
/// are sent, of how many, and how many are shortened.
type Told = (&'static str, [Option<u64>; 5]);

fn told(name: &'static str, said: &Json, tokens: &str) -> Told {
    let of = |pointer: &str| said.pointer(pointer).and_then(Json::as_u64);
    let messages = ["/max_tokens", "/messages/sent", "/messages/of", "/messages/shortened"];
    let [most, sent, all, shortened] = messages.map(of);
    (name, [of(tokens), most, sent, all, shortened])
}

/// How many of the conversation's messages are in the last request that the server heard.
fn heard(server: &Endpoint) -> u64 {
    let asked = server.asked();
    let body = &asked.iter().rfind(|asked| asked.method == "POST").unwrap().body;
    let said = body["messages"].as_array().unwrap().iter().filter(|said| said["role"] != "system");
    let begins = |line: &&str| {
        let word = line.split(' ').next().unwrap_or_default();
        word.ends_with('#') || word == "yes"
    };
    // Notes may quote messages that are not sent.
    let own = |text: &str| -> String {
        let parts = text.split("<system-note>");
        parts.map(|part| part.rsplit("</system-note>").next().unwrap_or_default()).collect()
    };
    let begun = |said: &Json| {
        own(said["content"].as_str().unwrap_or_default()).lines().filter(begins).count()
    };
    said.map(begun).sum::<usize>() as u64
}

/// Asks a question, and says in which ways it is told what is sent, with the count of the requests.
fn ask(client: &mut Client, server: &Endpoint, question: &str) -> Vec<Told> {
    let params = format!("(:content {})", quoted(question));
    let counted = client.ok("count-window", &params);
    let preview = client.ok("chat", &format!("(:content {} :dry-run t)", quoted(question)));
    let before = server.asked().iter().filter(|asked| asked.method == "POST").count();
    let answer = client.ok("chat", &params);
    let after = server.asked().iter().filter(|asked| asked.method == "POST").count();
    let explained = client.ok("session-report", "(:reports 1)")["reports"][0].clone();
    let mut ways = vec![
        told("explain", &explained, "/tokens_after"),
        ("answer", [answer["window_tokens"].as_u64(), None, None, None, None]),
        ("server", [None, None, Some(heard(server)), None, None]),
    ];
    // A refusal tells a limit that nobody knew before.
    if after == before + 1 {
        ways.push(told("count", &counted, "/tokens"));
        ways.push(told("preview", &preview, "/tokens"));
    }
    ways
}

#[track_caller]
fn agree(at: &str, ways: &[Told]) {
    for (index, (one, figures)) in ways.iter().enumerate() {
        for (other, others) in &ways[index + 1..] {
            for (figure, another) in figures.iter().zip(others) {
                let differ = figure.is_some() && another.is_some() && figure != another;
                assert!(!differ, "{at}: {one} {figures:?}, {other} {others:?}");
            }
        }
    }
    let [tokens, most, sent, of, _] = ways[0].1;
    assert!(tokens <= most && sent <= of, "{at}: {:?}", ways[0]);
}

/// Imports a recording of so many messages, and makes its session the current one.
fn import(home: &Home, client: &mut Client) {
    let line = |n: usize| {
        let text = format!("{n}# of the old messages says something");
        match n % 2 {
            0 => format!(
                r#"{{"type":"user","uuid":"u{n}","sessionId":"s-1","cwd":"/srv/db","timestamp":"2025-02-11T20:36:45Z","message":{{"role":"user","content":"{text}"}}}}"#
            ),
            _ => format!(
                r#"{{"type":"assistant","uuid":"u{n}","timestamp":"2025-02-11T20:36:47Z","message":{{"id":"m{n}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
            ),
        }
    };
    let lines: Vec<String> = (0..IMPORTED).map(line).collect();
    home.write("records/a.jsonl", lines.join("\n") + "\n");
    let folder = quoted(home.file("records").to_str().unwrap());
    let done = client.ok("import-sessions", &format!("(:paths ({folder}))"));
    assert_eq!(done["files"][0]["messages"], IMPORTED);
    let id = done["files"][0]["id"].as_str().unwrap().to_owned();
    client.ok("open-session", &format!("(:name {} :create :false)", quoted(&id)));
}

#[test]
fn forty_turns_are_told_alike_in_every_two_ways() {
    for (name, limit, list) in SERVERS {
        let server = taking(limit, list);
        let home = Home::new();
        let mut client = begin(&home, &server, "");
        client.ok("configure-session", "(:grounding-memories 0)");
        let mut least = u64::MAX;
        for turn in 0..TURNS {
            let question = format!("{turn}# is the question {}", "word ".repeat(150));
            let ways = ask(&mut client, &server, &question);
            agree(&format!("{name}, turn {turn}"), &ways);
            let [_, _, sent, of, _] = ways[0].1;
            least = least.min(sent.unwrap() * 100 / of.unwrap());
        }
        match limit {
            SMALL => assert!(least < 100, "{name}: not all fit"),
            _ => assert_eq!(least, 100, "{name}: all up to the limit is sent"),
        }
    }
}

#[test]
fn eight_hundred_imported_messages_are_told_alike_in_every_two_ways() {
    for (name, limit, list) in SERVERS {
        let server = taking(limit, list);
        let home = Home::new();
        let mut client = begin(&home, &server, "");
        import(&home, &mut client);
        client.ok("configure-session", "(:grounding-memories 0)");
        for turn in 0..3 {
            let ways = ask(&mut client, &server, &format!("{turn}# is new"));
            agree(&format!("{name}, turn {turn}"), &ways);
            let [_, most, sent, of, _] = ways[0].1;
            assert_eq!(of, Some(IMPORTED as u64 + 2 * turn + 1), "{name}");
            if limit != SMALL {
                assert_eq!((sent, most), (of, Some(96_000)), "{name}: all is sent");
            }
        }
    }
}
