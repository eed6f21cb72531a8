//! The commands other than `serve`: `call`, `render`, `methods` and `doctor`.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::skips::skipped;
use crate::support::*;

#[test]
fn every_help_shows_an_example() {
    let home = Home::new();
    for command in [
        "serve", "call", "import", "compact", "map", "render", "methods", "doctor", "setup",
        "trust", "help",
    ] {
        let help = home.succeed(&[command, "--help"]);
        assert!(help.contains("Example"), "{help}");
        assert!(help.contains(&format!("\n  contexture {command}")), "{help}");
    }
    let help = home.succeed(&["--help"]);
    for command in [
        "serve", "call", "import", "compact", "map", "render", "methods", "doctor", "setup",
        "trust", "help",
    ] {
        assert!(help.contains(command), "{help}");
        assert!(home.succeed(&["help", command]).contains(&format!("\n  contexture {command}")));
    }
    assert!(home.succeed(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_call_without_a_server_uses_one_of_its_own_over_the_same_state() {
    let home = Home::new();
    let added = home.succeed(&["call", "add-context", "(:content \"(+ 1 2)\" :type code)"]);
    assert!(added.starts_with("(:id \"ctx-1\" "), "{added}");
    let text = home.succeed(&["call", "context-to-string"]);
    assert_eq!(text, "## Context\n\n### Code\n```lisp\n(+ 1 2)\n```\n\n");
    let items = home.succeed(&["call", "get-context", r#"{"limit": 1}"#, "--json"]);
    assert_eq!(read_json(&items)[0]["content"], "(+ 1 2)");
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["(+ 1 2)"]);
}

#[test]
fn a_call_reaches_the_server_that_runs() {
    let home = Home::new();
    let server = home.listening(&[]);
    server.unix(Dialect::Native).add("m", "x");
    let list = read_json(&home.succeed(&["call", "list-managers", "--json"]));
    assert_eq!((&list[0]["manager"], &list[0]["count"]), (&"m".into(), &1.into()));
    home.succeed(&["call", "add-context", r#"{"content": "y", "manager": "m"}"#]);
    assert_eq!(server.unix(Dialect::Json).contents("m"), ["x", "y"]);
    let socket = server.socket.to_str().unwrap();
    assert_eq!(home.succeed(&["call", "ping", "--socket", socket]), ":pong\n");
    assert_eq!(home.succeed(&["call", "shutdown"]), "t\n");
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_refused_with_advice() {
    let home = Home::new();
    let long = home.path(&"x".repeat(120));
    let said = home.fail(&["serve", "--unix", long.to_str().unwrap()]);
    assert!(said.contains("a shorter path with --unix") && said.contains("xxx"), "{said}");
    let mut command = home.command(&["serve", "--stdio"]);
    let said = command.env("XDG_RUNTIME_DIR", &long).output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("XDG_RUNTIME_DIR"), "{said}");
}

#[test]
fn a_call_takes_its_parameters_from_standard_input_and_paths_from_the_folder() {
    let home = Home::new();
    let mut command = home.command(&["call", "add-context", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"(:content \"piped\")\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    home.write("sub/a.txt", "1\n2\n3\n");
    home.succeed(&["call", "add-file", "(:path \"sub/a.txt\" :start-line 2)"]);
    home.succeed(&["call", "add-file", r#"{"path": "sub/a.txt"}"#]);
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["piped", "2\n3\n", "1\n2\n3\n"]);
}

#[test]
fn a_call_that_fails_exits_so_and_says_why() {
    let home = Home::new();
    let check = |args: &[&str], expected: &str| {
        let said = home.fail(args);
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    check(&["call", "add-contxt"], "add-context");
    check(&["call", "get-context", "(:limit -1)"], "limit must be 0 or more, got -1");
    check(&["call", "undo"], "nothing to undo");
    check(&["call", "get-context", "(:limit"], "column");
    check(&["call", "get-context", "{\"limit\":"], "column");
    check(&["call", "ping", "--socket", "/nowhere/s.sock"], "cannot reach a server on");
    check(&["call"], "METHOD");
}

#[test]
fn bad_arguments_are_explained() {
    let home = Home::new();
    let check = |args: &[&str], expected: &str| {
        let said = home.fail(args);
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    check(&["render", "x", "--limit", "many"], "'many' for '--limit <N>': must be a whole number");
    check(&["render", "x", "--max-tokens", "1.5"], "must be a whole number, 0 or more");
    check(&["methods", "--max-items", "x"], "must be a whole number, 0 or more");
    check(&["serve", "--http", "70000"], "must be a port, from 0 to 65535");
    check(&["methods", "--fixed-time", "soon"], "must be a time in Unix seconds, or @FILE");
    let bytes = std::ffi::OsStr::from_bytes(b"\xff");
    let output = home.command(&["render"]).arg(bytes).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("UTF-8") && !said.contains("panicked"), "{said}");
}

#[test]
fn rendering_needs_no_server() {
    let home = Home::new();
    home.write("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    home.write("b.md", "# B\n");
    let text = home.succeed(&["render", "a.rs:2-3", "b.md"]);
    let expected = "## Context\n\n### File (from a.rs:2-3)\n```rust\nfn b() {}\nfn c() {}\n```\n\n\
                    ### File (from b.md)\n```markdown\n# B\n```\n\n";
    assert_eq!(text, expected);
    assert!(!home.path("state").exists(), "it needs no state");
    let text = home.succeed(&["render", "a.rs", "b.md", "--limit", "1", "--types", "file"]);
    assert!(!text.contains("fn a") && text.contains("# B"));
    assert_eq!(home.succeed(&["render", "a.rs", "--types", "code"]), "## Context\n\n");
    let text = home.succeed(&["render", "b.md", "--format", "xml"]);
    assert!(text.starts_with("<context>\n<item "), "{text}");
}

#[test]
fn rendering_within_a_budget_says_what_was_left_out() {
    let home = Home::new();
    home.write("old.txt", "old\n".repeat(100));
    home.write("new.txt", "new\n");
    let output = home.run(&["render", "old.txt", "new.txt", "--max-tokens", "30"]);
    assert!(output.status.success());
    let (text, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(text.contains("new\n") && !text.contains("old\n"), "{text}");
    assert!(said.contains("old.txt: left out: "), "{said}");
}

#[test]
fn rendering_what_is_not_there_fails_and_renders_the_rest() {
    let home = Home::new();
    home.write("a.txt", "x\n");
    home.write("binary", "a\0b");
    let output = home.run(&["render", "none.txt", "a.txt", "a.txt:9", "binary"]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("none.txt\" does not exist; check the name\n"), "{said}");
    assert!(said.contains("past its end"), "{said}");
    assert!(said.contains("binary\" is binary: it has a NUL byte at offset 1\n"), "{said}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("x\n"));
    assert!(home.fail(&["render", "a.txt", "--types", "novel"]).contains("repl-history"));
    assert!(home.fail(&["render", "a.txt", "--format", "html"]).contains("markdown"));
    home.fail(&["render"]);
}

#[test]
fn methods_are_listed_for_people() {
    let home = Home::new();
    let list = home.succeed(&["methods"]);
    let reference = home.succeed(&["methods", "--markdown"]);
    for method in contexture_program::internals::rpc::methods() {
        assert!(list.lines().any(|line| line.starts_with(method.name)), "{}", method.name);
        assert!(reference.contains(&format!("#### `{}`", method.name)), "{}", method.name);
    }
}

#[test]
fn the_doctor_finds_a_sound_set_up() {
    let home = Home::new();
    let report = home.succeed(&["doctor"]);
    assert!(report.contains("will be created") && !report.contains("BAD"), "{report}");
    home.succeed(&["call", "add-context", "(:content \"x\")"]);
    let report = home.succeed(&["doctor"]);
    assert!(report.contains("contexture.db is sound"), "{report}");
    assert!(report.contains("max-items = 50 (default)"), "{report}");
    assert!(report.contains("tokenizer = estimate (environment)"), "{report}");
    let server = home.listening(&[]);
    let report = home.succeed(&["doctor"]);
    assert!(report.contains(&format!("process {}", server.process.pid())), "{report}");
    // As JSON, the same is told, and the server apart.
    let json: serde_json::Value =
        serde_json::from_str(&home.succeed(&["doctor", "--json"])).unwrap();
    let line = |finding: &serde_json::Value| {
        let mark = if finding["ok"] == true { "ok " } else { "BAD" };
        format!("{mark} {}\n", finding["text"].as_str().unwrap())
    };
    let lines: String = json["findings"].as_array().unwrap().iter().map(line).collect();
    assert!(report.contains(&(lines + &line(&json["server"]))), "{json}");
}

#[test]
fn the_doctor_finds_a_damaged_database_and_the_server_mends_it() {
    let home = Home::new();
    home.succeed(&["call", "add-context", "(:content \"x\")"]);
    home.back_up();
    let garbage = "this is no database at all, but long enough".repeat(100);
    std::fs::write(home.database(), &garbage).unwrap();
    let output = home.run(&["doctor"]);
    assert!(!output.status.success());
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("BAD") && report.contains("contexture.db"), "{report}");
    assert!(report.contains("doctor --repair"), "{report}");
    assert_eq!(std::fs::read_to_string(home.database()).unwrap(), garbage, "looking mends nothing");
    let mut client = home.stdio(&[]);
    assert_eq!(client.contents("*shared*"), ["x"]);
    let notices = client.ok("initialize", "nil")["notices"].to_string();
    assert!(notices.contains("takes its place, and no change is lost"), "{notices}");
    client.end();
    let kept = std::fs::read_dir(home.state().join("damaged")).unwrap().next().unwrap().unwrap();
    let kept = std::fs::read_to_string(kept.path().join("contexture.db")).unwrap();
    assert_eq!(kept, garbage);
    home.succeed(&["doctor"]);
}

#[test]
fn a_database_of_another_format_is_left_alone_and_copied() {
    let home = Home::new();
    home.succeed(&["call", "add-context", "(:content \"x\")"]);
    let db = rusqlite::Connection::open(home.database()).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    home.forget_what_is_beside();
    let output = home.run(&["doctor"]);
    assert!(!output.status.success());
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("format 999") && report.contains("--state"), "{report}");
    assert!(!home.state().join("format-999").exists(), "the doctor writes nothing");
    let said = home.fail(&["serve", "--stdio"]);
    assert!(said.contains("format 999") && said.contains("--state"), "{said}");
    for path in [home.database(), home.state().join("format-999/contexture.db")] {
        let db = rusqlite::Connection::open(path).unwrap();
        let sql = "SELECT count(*) FROM version";
        assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    }
}

#[test]
fn a_state_folder_that_cannot_be_used_is_found_by_the_doctor() {
    let home = Home::new();
    let file = home.write("file", "");
    let below = format!("{file}/state");
    let output = home.run(&["doctor", "--state", &below]);
    assert!(!output.status.success());
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("BAD") && report.contains("--state DIR"), "{report}");
}

#[test]
fn a_state_folder_that_cannot_be_written_is_found_by_the_doctor() {
    let home = Home::new();
    let closed = home.path("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(closed.join("probe"), "").is_ok() {
        return skipped("the superuser may write everywhere");
    }
    let output = home.run(&["doctor", "--state", closed.to_str().unwrap()]);
    assert!(!output.status.success());
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_bad_configuration_is_said_by_every_command() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("config/contexture")).unwrap();
    std::fs::write(home.path("config/contexture/config.toml"), "max-items = 0\n").unwrap();
    for args in [&["serve", "--stdio"][..], &["call", "ping"], &["render", "x"]] {
        let said = home.fail(args);
        assert!(said.contains("max-items must be from 1 to 1000, got 0"), "{said}");
    }
    let output = home.run(&["doctor"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("max-items"));
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("config/contexture")).unwrap();
    std::fs::write(home.path("config/contexture/config.toml"), "max-items = 3\n").unwrap();
    let limit = |mut client: Client| client.ok("initialize", "nil")["limits"]["max_items"].clone();
    assert_eq!(limit(home.ephemeral_program(&[])), 3);
    let mut command = home.command(&["serve", "--stdio", "--ephemeral"]);
    command.env("CONTEXTURE_MAX_ITEMS", "4");
    assert_eq!(limit(Client::over_stdio(command, Dialect::Native)), 4);
    let mut command = home.command(&["serve", "--stdio", "--ephemeral", "--max-items", "5"]);
    command.env("CONTEXTURE_MAX_ITEMS", "4");
    assert_eq!(limit(Client::over_stdio(command, Dialect::Native)), 5);
}

#[test]
fn a_misspelt_manager_on_the_command_line_is_told_and_neither_made_nor_empty() {
    let home = Home::new();
    home.succeed(&["call", "add-item", "(:manager \"review\" :content \"x\")"]);
    for args in [
        ["call", "list-items", "(:manager \"reveiw\")"],
        ["call", "add-item", "(:manager \"Review\" :content \"y\")"],
        ["call", "context-to-string", "(:managers (\"review\" \"reviews\"))"],
    ] {
        let said = home.fail(&args);
        assert!(said.contains("but \"review\"; to make it"), "{said}");
    }
    assert!(!home.succeed(&["call", "list-managers"]).contains("Review"));
    home.succeed(&["call", "configure-manager", "(:manager \"reviews\" :max-items 5)"]);
    home.succeed(&["call", "add-item", "(:manager \"reviews\" :content \"y\")"]);
}
