//! The map of a project, as clients and the shell get it.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::mcp::Agent;
use crate::support::*;
use crate::tiers::rounds;

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
    git(&root, &["init", "-q"], b"");
    git(&root, &["add", "."], b"");
    git(&root, &["commit", "-qm", "Add the alphabet"], b"");
    root.to_str().unwrap().to_owned()
}

/// Runs Git in a folder, as somebody without settings.
fn git(root: impl AsRef<Path>, arguments: &[&str], input: &[u8]) {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(root.as_ref()).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    git.args(["-c", "protocol.file.allow=always"]).args(arguments);
    git.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut git = git.stderr(std::process::Stdio::null()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(input).unwrap();
    assert!(git.wait().unwrap().success(), "{arguments:?}");
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

/// A stream for `git fast-import` of so many commits, each of which changes one of 50 files.
fn commits(count: usize) -> Vec<u8> {
    let mut stream = String::new();
    for at in 1..=count {
        let text = format!("fn function_{at}() {{}}\n");
        stream +=
            &format!("commit refs/heads/main\ncommitter a <a@b> {at} +0000\ndata 7\nChange\n");
        stream += &format!("M 644 inline src/{}.rs\ndata {}\n{text}\n", at % 50, text.len());
    }
    stream.into_bytes()
}

#[test]
fn every_state_of_a_repository_has_a_clear_answer() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let mut check = |name: &str, files: u64, commits: u64, shown: &[&str]| {
        let root = home.file(name);
        let map = client.ok("repo-map", &format!("(:project {root:?} :max-tokens 2000)"));
        let text = map["text"].as_str().unwrap();
        assert_eq!(
            (map["total_files"].as_u64(), map["commits"].as_u64()),
            (Some(files), Some(commits))
        );
        for part in shown {
            assert!(text.contains(part), "{name}: {part:?}: {text}");
        }
        assert_eq!(text.contains(", no history)"), commits == 0, "{name}: {text}");
    };
    home.write("no-git/a.rs", "fn alpha() {}\n");
    check("no-git", 1, 0, &["a.rs\n 1 fn alpha()"]);
    home.write("no-commits/a.rs", "fn alpha() {}\n");
    git(home.file("no-commits"), &["init", "-q"], b"");
    check("no-commits", 1, 0, &["a.rs\n 1 fn alpha()"]);

    std::fs::create_dir(home.file("long")).unwrap();
    git(home.file("long"), &["init", "-qb", "main"], b"");
    git(home.file("long"), &["fast-import", "--quiet"], &commits(rounds(3_500, 100_000)));
    git(home.file("long"), &["reset", "-q", "--hard"], b"");
    check("long", 50, 3_000, &["src/1.rs\n 1 fn function_"]);

    let from = format!("file://{}", home.file("long").display());
    git(home.file(""), &["clone", "-q", "--depth=1", &from, "shallow"], b"");
    check("shallow", 50, 1, &["src/1.rs\n 1 fn function_"]);
    git(home.file("no-commits"), &["submodule", "--quiet", "add", &from, "below"], b"");
    check("no-commits", 51, 0, &["a.rs\n 1 fn alpha()", "below/src/1.rs\n"]);

    for (broken, text) in [(".git/HEAD", "nonsense"), (".git/index", "nonsense"), (".git/HEAD", "")]
    {
        home.write(&format!("no-commits/{broken}"), text);
        check("no-commits", 51, 0, &["a.rs\n 1 fn alpha()"]);
    }
}

#[test]
fn every_kind_of_broken_file_has_a_clear_answer() {
    let home = Home::new();
    let root = home.file("p");
    let deep = format!("{}\n", "(".repeat(100)).repeat(2_000);
    home.write("p/good.rs", "fn good() {}\n");
    home.write("p/cut.rs", "fn before() {}\nfn cut(x: &str { let y = \"");
    home.write("p/open.el", "(defun before () 1)\n(defun open (x\n");
    home.write("p/deep.lisp", format!("(defun before () 1)\n{deep}"));
    home.write("p/deep.py", &deep);
    home.write("p/deep.rs", format!("fn before() {{}}\nfn deep() {{ {deep} }}\n"));
    home.write("p/latin.py", b"def before(): return '\xe9\xff'\n");
    home.write("p/made.rs", "// @generated DO NOT EDIT\nfn made() {}\n");
    home.write("p/small.min.js", format!("var a={};", "1+".repeat(10_000)));
    home.write("p/zero.c", b"\0\0\0");
    home.write("p/empty.go", "");
    std::fs::File::create(root.join("huge.rs")).unwrap().set_len(50 << 20).unwrap();
    std::fs::write(root.join("long.rs"), "fn long() { let word = 1; }\n".repeat(2 << 20)).unwrap();
    symlink("good.rs", root.join("link.rs")).unwrap();
    symlink(&root, root.join("loop")).unwrap();
    symlink("gone", root.join("dangling.rs")).unwrap();
    let mut client = home.ephemeral(&[]);
    let ask = format!("(:project {root:?} :max-tokens 4000 :format :entries)");
    let map = client.ok("repo-map", &ask);
    let entries = map["entries"].as_array().unwrap();
    let known = |path: &str| {
        let entry = entries.iter().find(|entry| entry["path"] == path);
        entry.map(|entry| entry["known"].as_str().unwrap().trim_start_matches(':').to_owned())
    };
    for (path, expected) in [
        ("good.rs", "whole"),
        ("cut.rs", "whole"),
        ("open.el", "whole"),
        ("empty.go", "whole"),
        ("made.rs", "generated"),
        ("small.min.js", "generated"),
        ("zero.c", "binary"),
        ("latin.py", "binary"),
        ("huge.rs", "too-large"),
        ("long.rs", "too-large"),
    ] {
        assert_eq!(known(path).as_deref(), Some(expected), "{path}: {map}");
    }
    for path in ["link.rs", "loop/good.rs", "dangling.rs"] {
        assert_eq!(known(path), None, "{path}");
    }
    for path in ["cut.rs", "open.el", "deep.lisp"] {
        let entry = entries.iter().find(|entry| entry["path"] == path).unwrap();
        let names = entry["definitions"].as_array().unwrap();
        assert!(names.iter().any(|it| it["name"] == "before"), "{path}: {entry}");
    }
    let text = client.ok("repo-map", &format!("(:project {root:?})"));
    assert!(text["text"].as_str().unwrap().contains("too large: 2"), "{text}");
}

#[test]
fn a_checkout_that_changes_while_it_is_read_ends_fresh() {
    let home = Home::new();
    let root = project(&home);
    git(&root, &["branch", "other"], b"");
    for at in 0..40 {
        home.write(&format!("p/src/f{at}.rs"), format!("fn first_{at}() {{}}\n"));
    }
    git(&root, &["add", "."], b"");
    git(&root, &["commit", "-qm", "Add many"], b"");
    let mut client = home.ephemeral(&[]);
    let ask = format!("(:project {root:?} :max-tokens 8000)");
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..6 {
                for at in 0..40 {
                    home.write(
                        &format!("p/src/f{at}.rs"),
                        format!("fn round_{round}_{at}() {{}}\n"),
                    );
                }
                git(&root, &["checkout", "-qf", "other"], b"");
                git(&root, &["checkout", "-qf", "-"], b"");
            }
            home.write("p/src/f1.rs", "fn at_last() {}\n");
            is_done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
            client.ok("repo-map", &ask);
        }
    });
    let last = text(&mut client, &ask);
    assert!(last.contains("fn at_last()") && last.contains("fn first_2()"), "{last}");
    assert!(!last.contains("fn round_"), "{last}");
    let fresh = Home::new();
    assert_eq!(last, text(&mut fresh.ephemeral(&[]), &ask), "as one made from nothing");
}

#[test]
fn what_git_tracks_is_in_the_map_though_it_is_ignored() {
    let home = Home::new();
    let root = project(&home);
    home.write("p/.ignore", "unwanted/\n");
    home.write("p/.gitignore", "*.gen.rs\nunwanted/\nout/\n");
    for name in ["src/kept.gen.rs", "unwanted/e.rs", "out/deep/f.rs", "out/.hidden.rs"] {
        home.write(&format!("p/{name}"), "fn tracked() {}\n");
    }
    git(&root, &["add", "-f", "."], b"");
    home.write("p/src/new.gen.rs", "fn untracked() {}\n");
    home.write("p/out/deep/new.rs", "fn untracked() {}\n");
    let mut client = home.ephemeral(&[]);
    let map = text(&mut client, &format!("(:project {root:?})"));
    let lines: Vec<&str> = map.lines().collect();
    for name in ["src/kept.gen.rs", "out/deep/f.rs", "src/a.rs"] {
        assert!(lines.contains(&name), "{name}: {map}");
    }
    assert!(
        !map.contains("untracked") && !map.contains("e.rs") && !map.contains("hidden"),
        "{map}"
    );
    let layer = client.layer(Path::new(&root));
    client.ok("add-tree", &format!("(:path {root:?} :manager {layer:?})"));
    let added = client.contents(&layer);
    let count = |text: &str| added.iter().filter(|content| content.contains(text)).count();
    assert_eq!((count("fn tracked()"), count("fn untracked()")), (2, 0), "{added:?}");
}
