//! The map of a project, as clients and the shell get it.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::mcp::Agent;
use crate::support::*;

/// A project with Git in which `src/a.rs` and `src/b.rs` changed together.
fn project(home: &Home) -> String {
    home.write("p/src/a.rs", "pub fn alpha(x: u8) -> u8 {\n    beta(x)\n}\n");
    home.write("p/src/b.rs", "/// Doc.\npub fn beta(x: u8) -> u8 {\n    x\n}\n");
    home.write(
        "p/lisp/c.el",
        "(defmacro c-define (name) `(defun ,name () 1))\n(c-define c-gamma)\n",
    );
    home.write("p/.gitignore", "ignored/\n");
    home.write("p/ignored/d.rs", "fn alpha_ignored() {}\n");
    let root = home.file("p");
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.arg("-C").arg(&root).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        assert!(git.args(arguments).output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "Add the alphabet"]);
    root.to_str().unwrap().to_owned()
}

fn text(client: &mut Client, params: &str) -> String {
    let map = client.ok("repo-map", params);
    let text = map["text"].as_str().unwrap().to_owned();
    assert!(map["tokens"].as_u64().unwrap() > 0, "{map}");
    text
}

#[test]
fn the_shell_prints_each_file_on_a_line() {
    let home = Home::new();
    let root = project(&home);
    let map =
        || home.succeed(&["map", &root, "--query", "how does beta work", "--max-tokens", "300"]);
    let first = map();
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines[..2], ["src/b.rs", " 2 pub fn beta(x: u8) -> u8"], "{first}");
    for line in ["src/a.rs", " 1 pub fn alpha(x: u8) -> u8", "lisp/c.el", " 2 (c-define c-gamma"] {
        assert!(lines.contains(&line), "{line}: {first}");
    }
    assert!(!first.contains("ignored/d.rs"));
    // The second time, the index comes from the state folder, and the answer is the same.
    assert_eq!(map(), first);
    let focused = home.succeed(&["map", &root, "--focus", &format!("{root}/src/a.rs")]);
    assert!(focused.starts_with("src/b.rs\n") && !focused.contains("src/a.rs"), "{focused}");
    assert!(focused.ends_with(", at hand: 1)\n"), "{focused}");
    let none = home.fail(&["map", "/nonexistent/folder"]);
    assert!(none.contains("/nonexistent/folder"), "{none}");
    std::fs::create_dir(home.path("empty")).unwrap();
    let empty = home.fail(&["map", home.path("empty").to_str().unwrap()]);
    assert!(empty.contains("no files"), "{empty}");
}

#[test]
fn changes_of_files_and_buffers_count_at_once() {
    let home = Home::new();
    let root = project(&home);
    let mut client = home.ephemeral(&[]);
    let ask = format!("(:project {root:?})");
    assert!(text(&mut client, &ask).contains(" 1 pub fn alpha(x: u8)"));
    home.write("p/src/a.rs", "pub fn omega() {}\n");
    let changed = text(&mut client, &ask);
    assert!(changed.contains(" 1 pub fn omega()") && !changed.contains("alpha(x"), "{changed}");
    let buffer = format!(
        "(:project {root:?} :buffers ((:path {:?} :content \"\\nfn unsaved() {{}}\\n\")))",
        format!("{root}/src/a.rs")
    );
    let unsaved = text(&mut client, &buffer);
    assert!(unsaved.contains(" 2 fn unsaved()") && !unsaved.contains("omega"), "{unsaved}");
    assert_eq!(text(&mut client, &ask), changed);
    std::fs::remove_file(home.file("p/src/a.rs")).unwrap();
    assert!(!text(&mut client, &ask).contains("src/a.rs"));
}

#[test]
fn what_leads_out_or_is_secret_is_not_read() {
    let home = Home::new();
    let root = project(&home);
    home.write("elsewhere.rs", "fn outside_of_it() {}\n");
    symlink(home.file("elsewhere.rs"), home.file("p/src/link.rs")).unwrap();
    home.write("p/id_rsa", "fn key_of_mine() {}\n");
    home.write("p/src/\u{202e}evil\n\u{1b}[31m.rs", "fn named() {}\n");
    home.write("p/big.rs", "fn big() {}\n".repeat(100_000));
    home.write("p/image.rs", b"\0\x01");
    make_fifo(home.file("p/pipe.rs"));
    let mut client = home.ephemeral(&[]);
    let map = client.ok("repo-map", &format!("(:project {root:?} :max-tokens 4000)"));
    let text = map["text"].as_str().unwrap();
    for never in ["outside_of_it", "link.rs", "key_of_mine", "pipe.rs", "\u{202e}", "\u{1b}"] {
        assert!(!text.contains(never), "{never:?}: {text}");
    }
    assert!(text.lines().any(|line| line == "id_rsa") && text.contains("fn named()"), "{text}");
    for state in ["secret", "too-large", "binary"] {
        let incomplete = map["incomplete"].as_object().unwrap();
        let found = incomplete.get(state).or_else(|| incomplete.get(&state.replace('-', "_")));
        assert_eq!(found.and_then(serde_json::Value::as_u64), Some(1), "{state}: {map}");
    }
}

#[test]
fn a_map_is_within_its_budget_and_refuses_what_cannot_be() {
    let home = Home::new();
    let root = project(&home);
    for at in 0..300 {
        home.write(&format!("p/many/{at}.py"), format!("def some_function_{at}(x):\n    pass\n"));
    }
    let mut client = home.ephemeral(&[]);
    for tokens in [64, 65, 100, 333, 1_000, 5_000] {
        let map = client.ok("repo-map", &format!("(:project {root:?} :max-tokens {tokens})"));
        assert!(map["tokens"].as_u64().unwrap() <= tokens, "{map}");
        assert!(map["text"].as_str().unwrap().contains("not shown"), "{map}");
    }
    let wrong = client.fails("repo-map", &format!("(:project {root:?} :max-tokens 1)"));
    assert_eq!(wrong.param(), "max-tokens");
    client.fails("repo-map", "(:project \"relative\")");
}

#[test]
fn a_damaged_index_is_made_again() {
    let home = Home::new();
    let root = project(&home);
    let map = home.succeed(&["map", &root]);
    let maps = home.state().join("maps");
    let index = std::fs::read_dir(&maps).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&index).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [vec![7_u8; 5_000], flipped, whole[..whole.len() / 3].to_vec()] {
        std::fs::write(&index, damaged).unwrap();
        assert_eq!(home.succeed(&["map", &root]), map);
    }
}

#[test]
fn an_agent_gets_the_map_without_what_is_marked() {
    let home = Home::new();
    let root = project(&home);
    let mut client = home.stdio(&[]);
    let layer = client.layer(Path::new(&root));
    client.ok("add-file", &format!("(:path {:?} :manager {layer:?})", format!("{root}/src/a.rs")));
    client.end();
    let mut agent = Agent::with(&home, &["--project", &root]);
    let map =
        agent.tool("map", serde_json::json!({ "query": "alpha and beta", "max_tokens": 100 }));
    assert!(map.contains("src/b.rs\n 2 pub fn beta") && !map.contains("src/a.rs"), "{map}");
}
