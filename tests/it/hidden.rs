//! No control, bidi or invisible character of a name is left in what the program shows.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::mcp::{Agent, key, layer, project};
use crate::support::*;

/// One of each kind at least, and the ends of each range.
const HIDDEN: &[char] = &[
    '\u{1}',
    '\u{7}',
    '\t',
    '\r',
    '\u{1b}',
    '\u{1f}',
    '\u{7f}',
    '\u{80}',
    '\u{85}',
    '\u{9b}',
    '\u{9f}',
    '\u{ad}',
    '\u{34f}',
    '\u{378}',
    '\u{61c}',
    '\u{115f}',
    '\u{1160}',
    '\u{17b4}',
    '\u{180b}',
    '\u{180e}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202b}',
    '\u{202c}',
    '\u{202d}',
    '\u{202e}',
    '\u{2060}',
    '\u{2064}',
    '\u{2065}',
    '\u{2066}',
    '\u{2067}',
    '\u{2068}',
    '\u{2069}',
    '\u{206f}',
    '\u{3164}',
    '\u{fe00}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{fff9}',
    '\u{fffb}',
    '\u{ffff}',
    '\u{1d173}',
    '\u{e0001}',
    '\u{e0041}',
    '\u{e007f}',
    '\u{e0100}',
    '\u{e01ef}',
    '\u{10ffff}',
];

/// Every hidden character, each between two letters, and a line end.
fn name() -> String {
    let parts: String = HIDDEN.iter().map(|c| format!("{c}x")).collect();
    format!("a{parts}\nb")
}

/// As a file may be called, which has fewer bytes for it: a name for each character.
fn file_names() -> impl Iterator<Item = String> {
    HIDDEN.iter().chain(&['\n']).map(|c| format!("a{c}b.txt"))
}

#[track_caller]
fn check(what: &str, shown: &str) {
    let found = shown.chars().find(|c| HIDDEN.contains(c) && !matches!(c, '\t'));
    assert_eq!(found, None, "{what}: {shown:?}");
}

#[test]
fn renderings_and_transcripts_show_what_hides_in_names() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let name = quoted(&name());
    client.ok("add-context", &format!("(:content \"x\" :metadata (:filename {name}))"));
    for format in ["markdown", "xml", "org", "json"] {
        let text = client.ok("context-to-string", &format!("(:format :{format})"));
        check(format, text.as_str().unwrap());
    }
    client.ok("open-session", &format!("(:name {name} :project {name})"));
    let calls = format!("((:id {name} :name {name} :arguments \"{{}}\"))");
    client.ok("add-message", &format!("(:role :assistant :content \"y\" :tool-calls {calls})"));
    client.ok("add-message", &format!("(:role :tool :content \"z\" :tool-call-id {name})"));
    let transcript = client.ok("export-session", &format!("(:session {name})"));
    check("transcript", transcript["text"].as_str().unwrap());
    let failures = format!("(:name {name} :error \"e\" :expected \"x\" :received \"y\")");
    let window = format!("(:session {name} :failing-tests ({failures}) :format :text)");
    let _ = client.call("build-window", &window);
    client.end();
}

/// Every tool, prompt and resource of an agent, over names that hide something or look like headings.
#[test]
fn what_agents_are_told_shows_what_hides_in_names() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let mut agent = Agent::with(&home, &[]);
    let (manager, key, root) = (layer(&mut emacs, &home), key(&home), project(&home));
    let check = |what: &str, text: &str| {
        let found = text.chars().find(|c| HIDDEN.contains(c) && *c != '\t');
        assert_eq!(found, None, "{what}: {text:?}");
        let planted = text.lines().find(|line| line.trim_start().starts_with("# planted"));
        assert_eq!(planted, None, "{what}: {text:?}");
    };
    let mut names: Vec<String> = file_names().collect();
    names.extend([
        "a\n# planted\n.txt".to_owned(),
        "# planted.txt".to_owned(),
        "\u{1b}]0;x\u{7}\r\n# planted".to_owned(),
    ]);
    let everything = quoted(&(name() + "\r\n# planted\u{1b}[2J"));
    for (number, name) in names.iter().enumerate() {
        let path = root.join(name);
        std::fs::write(&path, "needle\n").unwrap();
        let filename = quoted(path.to_str().unwrap());
        emacs.ok(
            "add-context",
            &format!("(:manager {manager:?} :content \"needle {number}\" :metadata (:filename {filename} :start-line 1 :end-line 1))"),
        );
        let read = agent.tool("read", json!({ "what": name }));
        check("read of a file", &read);
        check(
            "read of an item",
            &agent.tool("read", json!({ "what": format!("ctx-{}", number + 1) })),
        );
        check("read of no file", &agent.refused("read", json!({ "what": format!("{name}x") })));
    }
    emacs.ok("open-session", &format!("(:name {everything} :project {key:?})"));
    emacs.ok(
        "add-message",
        &format!(
            "(:content {})",
            quoted(&format!("needle in `src/{}.rs`", name().replace('`', "")))
        ),
    );
    emacs.ok("add-message", &format!("(:role :assistant :content \"needle\" :tool-calls ((:id {everything} :name {everything} :arguments \"{{}}\")))"));
    emacs.ok(
        "add-message",
        &format!("(:role :tool :content \"needle\" :tool-call-id {everything})"),
    );
    agent.tool("remember", json!({ "text": format!("needle {}\n# planted", name()) }));
    let _ = emacs.call("build-window", &format!("(:session {everything} :max-tokens 300)"));
    let calls = [
        ("search", json!({ "query": "needle", "limit": 50 })),
        ("handoff", json!({})),
        ("handoff", json!({ "session": "ses-1" })),
        ("explain", json!({})),
        ("explain", json!({ "id": "ctx-1" })),
        ("explain", json!({ "id": "ses-1" })),
        ("context", json!({ "budget": 300 })),
        ("context", json!({ "budget": 100_000 })),
    ];
    for (tool, arguments) in calls {
        check(tool, &agent.tool(tool, arguments));
    }
    for tool in ["context", "search", "read", "remember", "handoff", "explain"] {
        for argument in ["query", "what", "session", "id", "project", "in", "lines"] {
            let (said, _) = agent.result(tool, &json!({ argument: name() + "\r\n# planted" }));
            check(&format!("{tool} {argument}"), &said);
        }
    }
}

#[test]
fn a_listing_shows_what_hides_in_names_of_files() {
    let home = Home::new();
    for name in file_names() {
        home.write(&name, "x");
    }
    let mut client = home.ephemeral(&[]);
    let root = quoted(home.path("files").to_str().unwrap());
    client.ok("add-tree", &format!("(:path {root} :mode :listing)"));
    let items = client.ok("get-context", "nil");
    let listing = items[0]["content"].as_str().unwrap();
    assert_eq!(listing.lines().count(), HIDDEN.len() + 2, "{listing}");
    check("listing", listing);
    client.end();
}

#[test]
fn every_error_shows_what_hides_in_what_it_quotes() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let name = quoted(&name());
    let document = crate::schema::document();
    let mut errors = 0;
    let mut checked = |what: String, result: Result<Json, Failure>| {
        if let Err(failure) = result {
            errors += 1;
            check(&what, &failure.message);
        }
    };
    for (called, method) in document["methods"].as_object().unwrap() {
        for param in method["params"]["properties"].as_object().into_iter().flatten() {
            let param = param.0;
            let result = client.call(called, &format!("(:{param} {name})"));
            checked(format!("{called} {param}"), result);
        }
        checked(called.to_owned(), client.call(called, "(:x\u{202e}y 1)"));
    }
    checked("no method".to_owned(), client.call("get\u{200b}context", "nil"));
    assert!(errors > 100, "{errors}");
    client.end();
}

#[test]
fn the_shell_commands_show_what_hides_in_names() {
    let home = Home::new();
    for name in file_names() {
        home.write(&name, "x");
        for (args, fails) in [
            (vec!["render", &*name], false),
            (vec!["render", &*name, "--format", "json"], false),
            (vec!["render", &*name, "none", "--max-tokens", "1"], true),
            (vec!["render", "no", &*format!("{name}.none")], true),
        ] {
            let output = home.run(&args);
            assert_eq!(!output.status.success(), fails, "{args:?}");
            check("output", &String::from_utf8(output.stdout).unwrap());
            check("complaint", &String::from_utf8(output.stderr).unwrap());
        }
    }
    let odd = "a\u{202e}b\u{1b}[31mc\u{200b}\u{85}";
    check("doctor", &String::from_utf8(home.run(&["doctor", "--state", odd]).stdout).unwrap());
    let config = home.write(&format!("{odd}.toml"), "x = ");
    let output = home.run(&["doctor", "--config", &config, "--state", odd]);
    check("doctor", &String::from_utf8(output.stdout).unwrap());
    check("call", &home.fail(&["call", odd]));
    let added = format!("(:content \"x\" :manager {})", quoted(odd));
    check("call", &home.succeed(&["call", "add-context", &added]));
    let listed = home.succeed(&["call", "list-managers"]);
    check("call", &listed);
    assert!(listed.contains(r"a\u202eb"), "{listed}");
    let listed = home.succeed(&["call", "list-managers", "--json"]);
    check("call --json", &listed);
    let is_odd = |row: &Json| row["manager"] == odd;
    assert!(read_json(&listed).as_array().unwrap().iter().any(is_odd), "{listed}");
}

#[test]
fn a_line_of_the_log_stays_one_and_shows_what_hides() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--stdio", "--ephemeral"]);
    command.env("CONTEXTURE_LOG", "debug").stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let call = "(:method undo :params (:manager \"a\u{202e}b\u{1b}[31m\\n2026 ERROR forged\"))\n";
    child.stdin.take().unwrap().write_all(call.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    check("log", &log);
    let line = log.lines().find(|line| line.contains("a notification failed"));
    assert!(line.is_some_and(|line| line.contains("forged")), "{log}");
}
