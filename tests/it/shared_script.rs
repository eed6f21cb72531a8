//! One script in every dialect and over every transport: the answers are the same.

use crate::support::*;

/// Calls as method and plist; `$DIR` is a folder with `a.txt`, `.gitignore` and `sub/b.rs`.
const SCRIPT: &[(&str, &str)] = &[
    ("ping", "nil"),
    ("list-managers", "nil"),
    ("get-context", "nil"),
    ("context-to-string", "nil"),
    ("undo", "nil"),
    ("add-context", r#"(:content "(+ 1 2)" :type :code)"#),
    ("add-context", r#"(:manager "m" :content "tab\t \"quoted\" back\\slash\nλ😀" :type :text)"#),
    (
        "add-context",
        r#"(:manager "m" :content "" :metadata (:filename "/p/a.el" :project "/p" :start-line 3 :end-line 4 :origin :region :symbol "f" :my-key (1 -2 2.5 "x" (:deep (:er t))) :none nil))"#,
    ),
    (
        "add-context",
        r#"(:manager "m" :content "big" :metadata (:big 123456789012345678901234567890))"#,
    ),
    ("add-context", r#"(:content "x" :type :novel)"#),
    ("add-context", r#"(:content 7)"#),
    ("add-context", r#"(:content "x" :colour "red")"#),
    ("add-context", "nil"),
    ("get-context", r#"(:manager "m")"#),
    ("get-context", r#"(:manager "m" :types (:text :region))"#),
    ("get-context", r#"(:manager "m" :types (:txet))"#),
    ("get-context", r#"(:manager "m" :limit 1 :brief t)"#),
    ("get-context", r#"(:manager "m" :limit 0)"#),
    ("get-context", r#"(:manager "m" :limit -1)"#),
    ("get-context", r#"(:managers ("m" "*shared*") :limit 2)"#),
    ("context-to-string", r#"(:manager "m")"#),
    ("context-to-string", r#"(:manager "m" :format :xml)"#),
    ("context-to-string", r#"(:manager "m" :format :org)"#),
    ("context-to-string", r#"(:manager "m" :format :json)"#),
    ("render-items", r#"(:manager "m" :max-tokens 60)"#),
    ("render-items", r#"(:manager "m" :max-tokens 1)"#),
    ("list-items", r#"(:count-only t :manager "m")"#),
    ("add-file", r#"(:path "$DIR/a.txt")"#),
    (
        "add-file",
        r#"(:path "$DIR/a.txt" :start-line 2 :end-line 3 :manager "m" :pinned t :live t)"#,
    ),
    ("add-file", r#"(:path "$DIR/a.txt" :start-line 9)"#),
    ("add-file", r#"(:path "$DIR/none.txt")"#),
    ("add-file", r#"(:path "none.txt")"#),
    ("add-tree", r#"(:path "$DIR" :manager "t")"#),
    ("add-tree", r#"(:path "$DIR" :manager "t" :mode :listing)"#),
    ("add-tree", r#"(:path "$DIR/none" :manager "t")"#),
    ("get-context", r#"(:manager "t")"#),
    ("refresh-items", r#"(:manager "t")"#),
    ("update-items", r#"(:id "ctx-1" :content "(+ 3 4)" :metadata (:language "scheme"))"#),
    ("update-items", r#"(:id "ctx-1" :manager "m" :content "no")"#),
    ("update-items", r#"(:pinned t :ids ("ctx-2" "ctx-3") :manager "m")"#),
    ("update-items", r#"(:items ((:id "ctx-2" :content "x")) :manager "m")"#),
    ("update-items", r#"(:live :false :ids ("ctx-2") :manager "m")"#),
    ("undo", r#"(:manager "m")"#),
    ("update-items", r#"(:id "ctx-2" :manager "m" :pinned nil)"#),
    ("move-items", r#"(:id "ctx-2" :manager "m" :after "ctx-4")"#),
    ("move-items", r#"(:id "ctx-2" :manager "m")"#),
    ("configure-manager", r#"(:manager "m" :max-items 3)"#),
    ("configure-manager", r#"(:manager "m" :max-items 0)"#),
    ("configure-manager", r#"(:manager "m" :max-items 1)"#),
    ("add-context", r#"(:manager "m" :content "evicts" :request-key "k")"#),
    ("add-context", r#"(:manager "m" :content "evicts" :request-key "k")"#),
    ("save-set", r#"(:name "s" :manager "m")"#),
    ("list-sets", "nil"),
    ("load-set", r#"(:name "s" :manager "n")"#),
    ("load-set", r#"(:name "s" :manager "n" :mode :append)"#),
    ("load-set", r#"(:name "none")"#),
    ("save-set", r#"(:name "s" :drop t)"#),
    ("undo", "nil"),
    ("remove-items", r#"(:manager "n" :ids ("ctx-99"))"#),
    ("remove-items", r#"(:manager "n" :id "x")"#),
    ("clear-context", r#"(:manager "n")"#),
    ("undo", r#"(:manager "n")"#),
    ("remove-items", r#"(:all t :reset t :manager "n")"#),
    ("list-managers", "nil"),
    ("get-context", r#"(:managers ("m" "n" "t" "*shared*"))"#),
    ("subscribe", r#"(:topics nil)"#),
    ("subscribe", r#"(:topics (:weather))"#),
    ("cancel", r#"(:id 4711)"#),
    ("no-such-method", "nil"),
];

/// Runs the script and gives the answers in their canonical form.
fn run(mut client: Client, folder: &str) -> Vec<Json> {
    let mut answers = Vec::new();
    for (method, params) in SCRIPT {
        let id = client.send(method, &params.replace("$DIR", folder));
        let answer = match client.reply(id) {
            Ok(result) => serde_json::json!({"result": result}),
            Err(failure) => serde_json::json!({
                "code": failure.code, "message": failure.message, "data": failure.data
            }),
        };
        answers.push(canonical(&answer));
    }
    answers
}

/// The same form for what is the same data: native has one word for null, false, the empty list
/// and the empty map, and a list of keywords may be a plist or a list of names.
fn canonical(value: &Json) -> Json {
    match value {
        value if is_nil(value) => Json::Null,
        Json::Array(items) => items.iter().map(canonical).collect(),
        Json::Object(members) if members.values().all(Json::is_string) => {
            let flat =
                members.iter().flat_map(|(name, value)| [name.clone().into(), value.clone()]);
            flat.collect()
        }
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), canonical(value))).collect()
        }
        other => other.clone(),
    }
}

/// What a dialect can tell: of an error EPC and Slynk have only the message. JSON has words of its
/// own for names and for truth.
fn seen_in(dialect: Dialect, answer: &Json) -> Json {
    let answer = &in_one_spelling(answer);
    match answer.get("message").filter(|_| dialect.is_framed() && answer.get("code").is_some()) {
        Some(message) => serde_json::json!({"message": message}),
        None => answer.clone(),
    }
}

/// An error with its message and data in one spelling; anything else as it is.
fn in_one_spelling(answer: &Json) -> Json {
    let mut answer = answer.clone();
    if answer.get("code").is_some() {
        for member in ["message", "data"] {
            let text = answer[member].to_string().replace('_', "-");
            let text = text.replace("true or false", "t or nil").replace("got null", "got nil");
            answer[member] = serde_json::from_str(&text).unwrap();
        }
    }
    answer
}

#[test]
fn every_dialect_over_every_transport_gives_the_same_answers() {
    assert!(SCRIPT.len() >= 40);
    let home = Home::new();
    home.write(".git/HEAD", "");
    home.write(".gitignore", "*.log\n");
    home.write("a.txt", "one\ntwo\nthree\n");
    home.write("x.log", "ignored\n");
    home.write("sub/b.rs", "fn b() {}\n");
    let folder = home.file("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let args = ["--ephemeral", "--fixed-time", "1700000000"];
    let first = run(home.stdio(&args), folder);
    for dialect in Dialect::ALL.iter().copied() {
        for transport in [Transport::Stdio, Transport::Unix, Transport::Tcp] {
            let answers = match transport {
                Transport::Stdio => {
                    let mut all = vec!["serve", "--stdio"];
                    all.extend(args);
                    run(Client::over_stdio(home.command(&all), dialect), folder)
                }
                Transport::Unix => run(home.listening(&args).unix(dialect), folder),
                Transport::Tcp => run(home.listening(&args).tcp(dialect), folder),
            };
            for (((method, params), answer), expected) in SCRIPT.iter().zip(answers).zip(&first) {
                let expected = seen_in(dialect, expected);
                assert_eq!(
                    seen_in(dialect, &answer),
                    expected,
                    "{dialect:?} {transport:?} {method} {params}"
                );
            }
        }
    }
    let failed = first.iter().filter(|answer| answer.get("code").is_some()).count();
    assert!(failed > 10 && failed < SCRIPT.len() / 2, "{failed} of the calls failed");
}
