//! Versions: they name states, never fall, and let a client change only what it knows and read only
//! what has changed.

use std::collections::HashMap;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Resource, Rlimit};

use crate::random_calls::plain;
use crate::support::*;

/// Number of random steps, unless `CONTEXTURE_SEED` makes others of them.
const STEPS: usize = 200;
/// Longest answer that says that nothing has changed, in bytes.
const SHORT: usize = 200;

/// Returns the version in an answer.
#[track_caller]
fn version(answer: &Json) -> u64 {
    answer["version"].as_u64().unwrap_or_else(|| panic!("no version: {answer}"))
}

/// What a client has seen.
#[derive(Default)]
struct Seen {
    /// States by place and version.
    states: HashMap<(String, u64), String>,
    /// Newest version of each place.
    newest: HashMap<String, u64>,
}

impl Seen {
    /// Reads all managers and sessions, and compares what they hold with what was seen before under
    /// the same version.
    #[track_caller]
    fn look(&mut self, client: &mut Client) {
        for manager in ["m0", "m1"] {
            let read = client.ok("list-items", &format!("(:manager {manager:?} :since 0)"));
            let now = version(&read);
            let lines = client.ok("list-managers", "nil");
            let line = lines.as_array().into_iter().flatten().find(|it| it["manager"] == manager);
            assert!(line.is_none_or(|line| version(line) == now), "{line:?} {now}");
            let capacity = line.map(|line| line["max_items"].clone());
            self.note(manager, now, format!("{} {capacity:?}", plain(&read["items"])));
        }
        for session in ["s0", "s1"] {
            let of = format!("(:session {session:?} :view :log :since 0)");
            let read = client.ok("get-messages", &of);
            let of = format!("(:session {session:?})");
            let stats = client.ok("session-report", &of);
            let revisions = client.ok("list-operations", &of);
            assert_eq!(version(&stats), version(&read));
            let sessions = client.ok("list-sessions", "nil");
            let line = sessions.as_array().unwrap().iter().find(|it| it["session"] == session);
            assert_eq!(version(line.unwrap()), version(&read));
            let state =
                [&read["items"], &stats, &revisions].map(|it| plain(it).to_string()).join(" ");
            self.note(session, version(&read), state);
        }
    }

    #[track_caller]
    fn note(&mut self, place: &str, version: u64, state: String) {
        let newest = self.newest.entry(place.to_owned()).or_default();
        assert!(version >= *newest, "{place} fell from {newest} to {version}");
        *newest = version;
        let known = self.states.entry((place.to_owned(), version)).or_insert(state.clone());
        assert_eq!(*known, state, "{place} {version}");
    }
}

/// Makes one random change, which may be refused.
fn change(random: &mut Random, client: &mut Client) -> Result<Json, Failure> {
    let manager = format!(":manager \"m{}\"", random.below(2));
    let session = format!(":session \"s{}\"", random.below(2));
    let number = random.below(1000);
    let (method, params) = match random.below(20) {
        0..4 => ("add-item", format!("({manager} :content \"{number}\" :pinned nil)")),
        4 => ("remove-items", format!("(:all t {manager})")),
        5 => ("remove-items", format!("(:all t :reset t {manager})")),
        6 => ("save-set", format!("({manager} :name \"set\")")),
        7 => ("load-set", format!("({manager} :name \"set\")")),
        8 => ("configure-manager", format!("({manager} :max-items {})", 3 + number % 3)),
        9..12 => ("undo", format!("({manager})")),
        12..14 => ("add-message", format!("({session} :content \"{number}\")")),
        14 => ("checkpoint", format!("({session})")),
        15 => ("rollback", format!("({session})")),
        16 => ("undo", format!("({session})")),
        17 => (
            "pin-message",
            format!("({session} :id \"msg-1\" :pinned {})", number.is_multiple_of(2)),
        ),
        18 => ("process-turn", format!("({session} :content \"turn {number}\")")),
        _ => {
            let atomic = if number.is_multiple_of(2) { ":atomic t" } else { "" };
            let calls = format!(
                "((:method add-item :params ({manager} :content \"b\")) (:method add-message :params \
                 ({session} :content \"b\")) (:method remove-items :params (:id \"ctx-9999\")))"
            );
            ("batch", format!("({atomic} :calls {calls})"))
        }
    };
    client.call(method, &params.replace("true", "t").replace("false", "nil"))
}

/// Lets no file of the server become longer than this from now on.
#[cfg(target_os = "linux")]
fn limit_files(server: &Listening, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    let pid = Pid::from_child(&server.process.child);
    rustix::process::prlimit(Some(pid), Resource::Fsize, limit).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_version_never_names_two_states_and_never_falls() {
    let seed = std::env::var("CONTEXTURE_SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("CONTEXTURE_SEED={seed}");
    let mut random = Random(seed);
    let home = Home::new();
    let mut seen = Seen::default();
    let connect = |home: &Home| {
        let server = home.listening(&[]);
        let clients = [Dialect::Native, Dialect::Json].map(|dialect| server.unix(dialect));
        (server, clients)
    };
    let (mut server, mut clients) = connect(&home);
    for session in ["s0", "s1"] {
        clients[0].ok("open-session", &format!("(:name {session:?})"));
    }
    let (mut failed, mut refused) = (0, 0);
    for _ in 0..STEPS {
        let client = random.below(2);
        match random.below(20) {
            0 => {
                server.process.kill();
                (server, clients) = connect(&home);
            }
            1 => {
                limit_files(&server, Some(1));
                let outcome = change(&mut random, &mut clients[client]);
                failed += u32::from(outcome.is_err_and(|error| error.kind() == "store-failed"));
                limit_files(&server, None);
            }
            _ => refused += u32::from(change(&mut random, &mut clients[client]).is_err()),
        }
        seen.look(&mut clients[random.below(2)]);
    }
    println!("{} states, {failed} failed commits, {refused} refused", seen.states.len());
    assert!(seen.states.len() > STEPS / 3 && failed > 1, "{} {failed}", seen.states.len());
}

/// A session with some history, in which a manager has an item, and a reading of each kind.
const READINGS: &[(&str, &str)] = &[
    ("list-items", "(:manager \"m\")"),
    ("render-items", "(:manager \"m\" :text-only t)"),
    ("render-items", "(:manager \"m\")"),
    ("list-items", "(:count-only t :manager \"m\")"),
    ("list-items", "(:manager \"m\" :query \"long\")"),
    ("list-operations", "(:manager \"m\")"),
    ("export-session", "(:session \"a\")"),
    ("get-messages", "(:session \"a\")"),
    ("list-operations", "(:session \"a\")"),
    ("list-notes", "(:session \"a\")"),
    ("build-window", "(:session \"a\")"),
    ("count-window", "(:session \"a\")"),
    ("session-report", "(:session \"a\" :windows 9 :reports 9)"),
    ("session-report", "(:session \"a\" :quality-only t)"),
    ("export-session", "(:session \"a\" :max-tokens 500)"),
];

fn with(params: &str, more: &str) -> String {
    format!("{} {more})", params.strip_suffix(')').unwrap())
}

#[test]
fn every_reading_says_shortly_that_nothing_has_changed_and_raises_no_version() {
    let document = crate::schema::document();
    for dialect in [Dialect::Native, Dialect::Json] {
        let home = Home::new();
        let mut client = home.ephemeral(&[]);
        client.dialect = dialect;
        client.add("m", &"long ".repeat(100));
        client.ok("open-session", "(:name \"a\" :manager \"m\")");
        client.ok("build-window", "(:session \"a\")");
        for number in 0..30 {
            client.ok("add-message", &format!("(:session \"a\" :content \"hello {number}\")"));
        }
        client.ok("checkpoint", "(:session \"a\")");
        for pages in ["", ":max-bytes 60000"] {
            read_twice(&mut client, &document, pages);
        }
    }
    let readings: Vec<&str> = READINGS.iter().map(|(method, _)| *method).collect();
    for (method, of) in document["methods"].as_object().unwrap() {
        let takes_since = of["params"]["properties"].get("since").is_some();
        assert_eq!(readings.contains(&&**method), takes_since, "{method}");
    }
}

/// Makes every reading for all there is, and for what has changed since.
fn read_twice(client: &mut Client, document: &Json, pages: &str) {
    let of_manager = version(&client.ok("list-items", "(:count-only t :manager \"m\")"));
    let of_session = version(&client.ok("list-sessions", "(:current t)")[0]);
    for (method, params) in READINGS {
        let known = &document["methods"][*method]["params"]["properties"];
        let pages = if known.get("max_bytes").is_some() { pages } else { "" };
        let now = if params.contains("manager") { of_manager } else { of_session };
        // One that shows windows is whole, since others have built one.
        if *method != "session-report" {
            assert_unchanged(client, method, &with(params, pages), now);
        }
        let whole = client.ok(method, &with(params, &format!("{pages} :since 0")));
        assert_eq!(version(&whole), now, "{method}");
        assert!(whole["unchanged"].is_null(), "{method} {whole}");
    }
    let after = client.ok("list-sessions", "(:current t)")[0].clone();
    assert_eq!(version(&after), of_session, "a reading raised the version");
    // A window was built since that version.
    let log =
        client.ok("session-report", &format!("(:session \"a\" :windows 9 :since {of_session})"));
    assert!(log["windows"].as_array().is_some(), "{log}");
    let changed = version(&client.ok("add-message", "(:session \"a\" :content \"more\")"));
    for method in ["session-report", "build-window"] {
        assert_unchanged(client, method, "(:session \"a\")", changed);
    }
}

/// Checks that a reading since this version says in a few bytes that nothing has changed.
#[track_caller]
fn assert_unchanged(client: &mut Client, method: &str, params: &str, since: u64) {
    client.send(method, &with(params, &format!(":since {since}")));
    let line = client.line().unwrap();
    assert!(line.len() <= SHORT, "{method}: {line}");
    let answer = outcome(parse(client.dialect, &line)).unwrap();
    assert_eq!((version(&answer), is_true(&answer["unchanged"])), (since, true), "{method}");
}

fn is_true(value: &Json) -> bool {
    *value == true
}

#[test]
fn opening_a_session_does_not_change_it() {
    let mut client = Home::new().ephemeral(&[]);
    let first = version(&client.ok("open-session", "(:name \"a\")"));
    client.ok("open-session", "(:name \"b\")");
    assert_eq!(version(&client.ok("open-session", "(:create nil :name \"a\")")), first);
    assert_eq!(version(&client.ok("open-session", "(:name \"a\")")), first);
    client.ok("build-window", "nil");
    assert_eq!(version(&client.ok("list-sessions", "(:current t)")[0]), first);
}

#[test]
fn a_change_of_another_version_is_a_conflict_and_does_nothing() {
    for dialect in [Dialect::Native, Dialect::Json] {
        let mut client = Home::new().ephemeral(&[]);
        client.dialect = dialect;
        let id = client.add("m", "one");
        let now = version(&client.ok("list-items", "(:count-only t :manager \"m\")"));
        let remove = |expected| format!("(:manager \"m\" :id {id:?} :if-version {expected})");
        let error = client.fails("remove-items", &remove(now - 1));
        assert_eq!((error.code, error.kind()), (1, "conflict"));
        let data = ["version", "expected", "manager"].map(|name| error.data[name].clone());
        assert_eq!(data, [Json::from(now), Json::from(now - 1), Json::from("m")]);
        assert!(error.message.contains("read it again"), "{}", error.message);
        assert_eq!(version(&client.ok("list-items", "(:count-only t :manager \"m\")")), now);
        assert!(version(&client.ok("remove-items", &remove(now))) > now);
        // Nothing was ever in it.
        client.ok("add-item", "(:manager \"new\" :content \"x\" :if-version 0)");
        let again = client.fails("add-item", "(:manager \"new\" :content \"x\" :if-version 0)");
        assert_eq!(again.kind(), "conflict");
        let opened = client.ok("open-session", "(:name \"a\" :if-version 0)");
        let error = client.fails("open-session", "(:name \"a\" :if-version 0)");
        assert_eq!((error.kind(), &error.data["session"]), ("conflict", &"a".into()));
        assert_eq!(error.data["session_id"], "ses-1");
        let expected = version(&opened);
        let say = format!("(:session \"a\" :content \"x\" :if-version {expected})");
        let said = client.ok("add-message", &say);
        assert_eq!(client.fails("add-message", &say).data["version"], version(&said));
        assert_eq!(client.ok("get-messages", "nil").as_array().unwrap().len(), 1);
        let deleted = client.ok("delete-session", "(:session \"a\")");
        let restore = |expected| format!("(:session \"a\" :deleted :false :if-version {expected})");
        assert_eq!(client.fails("delete-session", &restore(expected)).kind(), "conflict");
        client.ok("delete-session", &restore(version(&deleted)));
        assert_eq!(client.fails("list-items", "(:managers (\"m\") :since 1)").param(), "since");
    }
}

#[test]
fn a_batch_compares_versions_and_an_atomic_one_fails_whole() {
    let mut client = Home::new().ephemeral(&[]);
    client.add("m", "one");
    let now = version(&client.ok("list-items", "(:count-only t :manager \"m\")"));
    let call = |content: &str| {
        format!(
            "(:method add-item :params (:manager \"m\" :content {content:?} :if-version {now}))"
        )
    };
    let calls = format!("({} {})", call("two"), call("three"));
    let error = client.fails("batch", &format!("(:atomic t :calls {calls})"));
    assert_eq!((error.kind(), &error.data["index"]), ("conflict", &1.into()));
    assert_eq!(client.contents("m"), ["one"]);
    let answer = client.ok("batch", &format!("(:calls {calls})"));
    let first = version(&answer["results"][0]["result"]);
    assert!(first > now);
    assert_eq!(answer["results"][1]["error"]["data"]["kind"], "conflict");
    assert_eq!(answer["results"][1]["error"]["data"]["version"], first);
    assert_eq!(client.contents("m"), ["one", "two"]);
}

#[test]
fn a_repeated_call_is_answered_with_the_version_of_then() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let add = "(:manager \"m\" :content \"x\" :request-key \"k\" :if-version 0)";
    let first = client.ok("add-item", add);
    client.add("m", "later");
    assert_eq!(client.ok("add-item", add), first);
    assert!(version(&client.ok("list-items", "(:count-only t :manager \"m\")")) > version(&first));
}

#[test]
fn a_notification_has_the_version_that_a_reading_has() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("subscribe", "(:topics (:context-changed :session-changed :checkpoint-created))");
    let added = client.ok("add-item", "(:content \"x\")");
    assert_eq!(client.notification("context-changed")["version"], version(&added));
    let opened = client.ok("open-session", "(:name \"a\")");
    assert_eq!(client.notification("session-changed")["version"], version(&opened));
    let taken = client.ok("checkpoint", "nil");
    assert_eq!(client.notification("checkpoint-created")["version"], version(&taken));
    let said = client.ok("add-message", "(:content \"x\")");
    assert_eq!(client.notification("session-changed")["version"], version(&said));
    let forked = client.ok("open-session", "(:fork-of \"a\" :name \"b\")");
    assert_eq!(client.notification("session-changed")["version"], version(&forked));
    assert_eq!(version(&client.ok("list-sessions", "(:current t)")[0]), version(&forked));
}

#[test]
fn a_manager_with_live_items_is_read_whole_since_their_files_may_have_changed() {
    let home = Home::new();
    let file = home.write("f.txt", "before");
    let mut client = home.ephemeral(&[]);
    let added = client.ok("add-file", &format!("(:path {file:?} :live t)"));
    home.write("f.txt", "after");
    let since = format!("(:since {})", version(&added));
    for method in ["context-to-string", "render-items"] {
        let shown = client.ok(method, &since);
        assert!(shown["text"].as_str().unwrap().contains("after"), "{shown}");
    }
    assert_eq!(client.ok("list-items", &since)["items"][0]["content"], "after");
}

#[test]
fn a_chat_compares_the_version_when_it_logs_the_question() {
    let home = Home::new();
    let answers = "[[answer]]\ntext = \"Hello\"\n[[answer]]\ntext = \"Again\"\n";
    let mut client = crate::chat::begin(&home, answers);
    let now = version(&client.ok("list-sessions", "(:current t)")[0]);
    for dry in ["", ":dry-run t"] {
        let wrong = format!("(:content \"hi\" :if-version {} {dry})", now + 1);
        assert_eq!(client.fails("chat", &wrong).kind(), "conflict");
    }
    assert!(is_nil(&client.ok("get-messages", "nil")));
    let ask = format!("(:content \"hi\" :if-version {now} :request-key \"k\")");
    let answer = client.ok("chat", &ask);
    assert_eq!(version(&client.ok("list-sessions", "(:current t)")[0]), version(&answer));
    client.ok("add-message", "(:content \"more\")");
    assert_eq!(client.ok("chat", &ask), answer);
}
