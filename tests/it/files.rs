//! Files and directories: reading them, leaving some out, and noticing that they changed.

use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::Sender;

use contexture_program::internals::server::Server;
use serde_json::json;

use crate::others::{Near, holding, run, until_begun};
use crate::skips::skipped;
use crate::support::*;

/// The plist of `add-file` or `add-tree` with these further parameters.
fn at(path: &str, more: &str) -> String {
    format!("(:path {} {more})", quoted(path))
}

#[test]
fn a_file_is_added_whole_or_in_part() {
    let home = Home::new();
    home.write("p/.git/HEAD", "");
    let path = home.write("p/src/a.rs", "one\ntwo\nthree\n");
    let mut client = home.ephemeral(&[]);
    let item = client.ok("add-file", &at(&path, ""));
    assert_eq!((&item["type"], &item["content"]), (&"file".into(), &"one\ntwo\nthree\n".into()));
    assert_eq!(
        (&item["metadata"]["filename"], &item["metadata"]["origin"]),
        (&path.clone().into(), &"file".into())
    );
    let item = client.ok("add-file", &at(&path, ":start-line 2 :end-line 2"));
    assert_eq!(item["content"], "two\n");
    assert_eq!(
        (&item["metadata"]["start_line"], &item["metadata"]["end_line"]),
        (&2.into(), &2.into())
    );
    let item = client.ok("add-file", &at(&path, ":start-line 2"));
    assert_eq!(
        (&item["content"], &item["metadata"]["end_line"]),
        (&"two\nthree\n".into(), &3.into())
    );
    let text = client.ok("context-to-string", "(:limit 1)");
    assert!(text.as_str().unwrap().contains("### File (from src/a.rs:2-3)\n```rust\n"), "{text}");
}

#[test]
fn every_reason_not_to_read_a_file_is_an_error_of_its_own() {
    let home = Home::new();
    let path = home.write("a.txt", "1\n2\n3\n");
    let binary = home.write("b.bin", b"a\0b");
    let latin = home.write("c.txt", b"\xe4");
    let large = home.write("d.txt", "x".repeat((1 << 20) + 1));
    let folder = home.file("").to_str().unwrap().to_owned();
    let missing = home.file("nothing").to_str().unwrap().to_owned();
    let fifo = home.file("fifo");
    make_fifo(&fifo);
    let mut client = home.ephemeral(&[]);
    let mut check = |path: &str, more: &str, kind: &str, said: &str| {
        let error = client.fails("add-file", &at(path, more));
        assert_eq!((error.code, error.kind()), (1, kind), "{error:?}");
        assert!(error.message.contains(said), "{error:?}");
    };
    check(&path, ":start-line 2 :end-line 4", "past-end", "3 lines");
    check(&path, ":start-line 4", "past-end", "3 lines");
    check(&path, ":start-line 3 :end-line 2", "bad-range", "3-2");
    check(&path, ":start-line 0 :end-line 2", "bad-range", "are counted from 1");
    check(&binary, "", "file-binary", "NUL");
    check(&latin, "", "file-binary", "UTF-8");
    check(&large, "", "file-too-large", "1048577 bytes");
    check(&path, ":max-file-bytes 5", "file-too-large", "max-file-bytes");
    check(&missing, "", "file-missing", "does not exist");
    check(&folder, "", "is-a-directory", "add-tree");
    check(fifo.to_str().unwrap(), "", "not-a-regular-file", "FIFO");
    check("a.txt", "", "not-absolute", "a.txt");
    check("/ssh:host:/x", "", "not-local", "another machine");
    client.ok("add-file", &at(&large, ":max-file-bytes 2000000 :brief t"));
    assert_eq!(client.ok("list-items", "(:count-only t)")["count"], 1);
}

#[test]
fn a_pipe_in_the_place_of_any_file_of_a_project_stops_nobody() {
    for pipe in [
        ".git",
        ".git/HEAD",
        ".git/commondir",
        ".git/config",
        ".git/info/exclude",
        ".git/packed-refs",
        ".git/worktrees/w/gitdir",
        ".gitignore",
        ".ignore",
        ".projectile",
        ".contexture/memories/a.md",
        ".contexture/templates/a.md",
        "a.rs",
    ] {
        let home = Home::new();
        let root = home.file("p");
        let path = root.join(pipe);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        make_fifo(&path);
        home.write("p/b.rs", "fn b() {}\n");
        let recorded = json!({ "type": "user", "uuid": "1", "sessionId": "s", "cwd": root,
            "message": { "role": "user", "content": "hello" } });
        let recording = home.write("s.jsonl", format!("{recorded}\n"));
        let (root, file) = (quoted(root.to_str().unwrap()), quoted(path.to_str().unwrap()));
        // A worktree that is gone belongs to a repository beside it.
        let gone = quoted(home.file("gone").to_str().unwrap());
        let mut client = home.ephemeral(&[]);
        for (method, params) in [
            ("open-layers", format!(":root {root} :filename {file}")),
            ("add-file", format!(":path {file} :brief t")),
            ("add-tree", format!(":path {root}")),
            ("refresh-items", String::new()),
            ("repo-map", format!(":project {root}")),
            ("import-sessions", format!(":paths ({}) :project {root}", quoted(&recording))),
            ("list-sessions", format!(":project {root}")),
            ("list-sessions", format!(":project {gone}")),
            ("list-memories", format!(":project {root}")),
            ("list-templates", format!(":project {root}")),
            ("trust-project", format!(":project {root}")),
        ] {
            // Whether it fails depends on the file; it must answer.
            let _ = client.call(method, &format!("({params})"));
        }
        client.ok("ping", "nil");
    }
}

#[test]
fn a_file_without_permission_is_unreadable() {
    let home = Home::new();
    let path = home.write("a.txt", "x");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        return skipped("the superuser may read everything");
    }
    let error = home.ephemeral(&[]).fails("add-file", &at(&path, ""));
    assert_eq!(error.kind(), "file-unreadable");
}

#[test]
fn an_ignored_file_is_added_when_it_is_named() {
    let home = Home::new();
    home.write(".gitignore", "*.log\n");
    home.write(".git/HEAD", "");
    let path = home.write("a.log", "log\n");
    assert_eq!(home.ephemeral(&[]).ok("add-file", &at(&path, ""))["content"], "log\n");
}

/// A folder with something of every sort.
fn tree(home: &Home) -> String {
    home.write("t/.git/HEAD", "");
    home.write("t/.gitignore", "target/\n*.log\n");
    home.write("t/target/out.rs", "ignored");
    home.write("t/x.log", "ignored");
    home.write("t/.hidden", "hidden");
    home.write("t/b.bin", b"\0");
    home.write("t/big.txt", "x".repeat(2000));
    home.write("t/a.rs", "fn a() {}\n");
    home.write("t/sub/b.el", "(b)\n");
    home.file("t").to_str().unwrap().to_owned()
}

#[test]
fn a_tree_obeys_gitignore_and_reports_what_it_skipped() {
    let home = Home::new();
    let root = tree(&home);
    let mut client = home.ephemeral(&[]);
    let answer = client.ok("add-tree", &at(&root, ":max-file-bytes 1000"));
    assert_eq!((&answer["files"], &answer["mode"]), (&2.into(), &"files".into()), "{answer}");
    let total = &answer["skipped"]["total"];
    assert_eq!(
        (&total["ignored"], &total["binary"], &total["too_large"]),
        (&2.into(), &1.into(), &1.into())
    );
    let named = answer["skipped"]["named"].as_array().unwrap();
    let reason = |path: &str| named.iter().find(|n| n["path"] == path).unwrap()["reason"].clone();
    assert_eq!((reason("target/"), reason("x.log")), ("ignored".into(), "ignored".into()));
    assert_eq!((reason("b.bin"), reason("big.txt")), ("binary".into(), "too-large".into()));
    assert_eq!(ids(&answer["ids"]), ["ctx-1", "ctx-2"]);
    assert_eq!(total["hidden"], 2);
    let items = client.ok("get-context", "(:types (:tree))");
    let names: Vec<_> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["filename"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(names, ["a.rs", "b.el"]);
    assert_eq!(client.ok("undo", "nil")["undone"], "add-tree");
    assert!(client.contents("*shared*").is_empty());
}

#[test]
fn a_tree_that_does_not_fit_is_refused_as_a_whole() {
    let home = Home::new();
    for number in 0..60 {
        home.write(&format!("t/{number}.txt"), "some text\n");
    }
    let root = home.file("t").to_str().unwrap().to_owned();
    let mut client = home.ephemeral(&[]);
    client.add("*shared*", "before");
    let error = client.fails("add-tree", &at(&root, ""));
    assert_eq!((error.code, error.kind()), (1, "capacity-full"));
    let tokens = error.data["tokens"].as_u64().unwrap();
    for said in ["60 files", &format!("{tokens} tokens"), ":max-items to 60", ":listing"] {
        assert!(error.message.contains(said), "{said}: {error:?}");
    }
    assert_eq!(client.contents("*shared*"), ["before"]);
    client.ok("configure-manager", "(:max-items 60)");
    let answer = client.ok("add-tree", &at(&root, ""));
    assert_eq!((&answer["files"], &answer["tokens"]), (&60.into(), &tokens.into()));
    assert_eq!(ids(&answer["evicted"]), ["ctx-1"]);
}

#[test]
fn a_directory_without_room_is_told_what_does_not_fit() {
    let home = Home::new();
    home.write("d/a.txt", "a\n");
    home.write("d/b.txt", "b\n");
    let root = home.file("d").to_str().unwrap().to_owned();
    let mut client = home.ephemeral(&[]);
    client.ok("configure-manager", "(:max-items 2)");
    client.ok("add-tree", &at(&root, ":live t"));
    client.ok("update-items", "(:pinned t :id \"ctx-1\")");
    client.ok("update-items", "(:pinned t :id \"ctx-2\")");
    home.write("d/c.txt", "c\n");
    let live = client.fails("add-tree", &at(&root, ":live t")).message;
    assert!(live.starts_with("1 file ("), "{live}");
    assert!(
        live.ends_with(
            ") does not fit into \"*shared*\", which has room for 0 unpinned items (:max-items 2, \
             2 pinned): raise :max-items to 3 with configure-manager, or add one item with :mode \
             :listing"
        ),
        "{live}"
    );
    let listing = client.fails("add-tree", &at(&root, ":mode :listing"));
    assert_eq!(
        listing.message,
        "the listing does not fit into \"*shared*\", which has room for 0 unpinned items \
         (:max-items 2, 2 pinned): raise :max-items to 3 with configure-manager, or unpin an item"
    );
    client.end();
}

#[test]
fn a_listing_is_one_item_with_sizes_and_tokens() {
    let home = Home::new();
    let root = tree(&home);
    let mut client = home.ephemeral(&[]);
    let answer = client.ok("add-tree", &at(&root, ":mode :listing"));
    assert_eq!((&answer["mode"], ids(&answer["ids"]).len()), (&"listing".into(), 1));
    let items = client.ok("get-context", "nil");
    let content = items[0]["content"].as_str().unwrap();
    for name in ["a.rs", "b.el", "sub/"] {
        assert!(content.contains(name), "{content}");
    }
    assert!(!content.contains("x.log"), "{content}");
    assert_eq!(
        (&items[0]["metadata"]["origin"], &items[0]["state"]),
        (&"listing".into(), &"fresh".into())
    );
    assert_eq!(client.fails("add-tree", &at(&root, ":mode :poem")).param(), "mode");
}

#[test]
fn a_tree_of_a_project_begins_at_its_root() {
    let home = Home::new();
    let root = tree(&home);
    let answer = home.ephemeral(&[]).ok("add-tree", &at(&format!("{root}/sub"), ":project t"));
    assert_eq!(answer["root"], root);
}

#[test]
fn a_tree_that_is_none_is_an_error() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let error = client.fails("add-tree", &at(home.file("none").to_str().unwrap(), ""));
    assert_eq!((error.code, error.kind()), (1, "file-missing"));
    let file = home.write("a.txt", "x");
    let error = client.call("add-tree", &at(&file, ""));
    assert!(error.is_err() || error.unwrap()["files"] == 1);
}

/// A folder with many small files.
fn many(home: &Home, count: usize) -> String {
    for folder in 0..count / 100 {
        for number in 0..100 {
            home.write(&format!("many/{folder}/{number}.txt"), "a line of text\n");
        }
    }
    home.file("many").to_str().unwrap().to_owned()
}

#[test]
fn a_tree_streams_progress_before_its_result() {
    let home = Home::new();
    let root = many(&home, 1000);
    let mut client = home.ephemeral(&[]);
    let id = client.send("add-tree", &at(&root, ":mode :listing"));
    let answer = client.reply(id).unwrap();
    assert_eq!(answer["files"], 1000);
    assert!(client.set_aside("progress") >= 2);
    let progress = client.notification("progress");
    assert_eq!((&progress["id"], &progress["stage"]), (&id.into(), &"walking".into()));
    assert!(progress["files"].as_u64().is_some() && progress["bytes"].as_u64().is_some());
    client.ok("ping", "nil");
}

/// Begins a walk as call 7, and holds it in the middle until something is sent to the gate.
async fn held_walk(home: &Home) -> (Server, Near, Sender<()>) {
    let root = many(home, 300);
    home.write("many/held.txt", "hold on\n");
    let (server, has_begun, go_on) = holding();
    let mut client = Near::of(&server);
    client.send_as(7, "add-tree", &at(&root, ":mode :listing")).await;
    until_begun(has_begun).await;
    (server, client, go_on)
}

#[test]
fn a_cancelled_tree_answers_so_and_adds_nothing() {
    let home = Home::new();
    run(async {
        let (_server, mut client, go_on) = held_walk(&home).await;
        client.send_as(8, "cancel", "(:id 7)").await;
        let said = client.hear(&["(:id 7 :error", "(:id 8 :result (:cancelled t))"]).await;
        assert!(said.contains(":method \"progress\"") && said.contains(":code -32800"), "{said}");
        go_on.send(()).unwrap();
        assert_eq!(client.call("get-context", "nil").await, "(:id 1 :result nil)\n");
        assert!(client.call("undo", "nil").await.contains("nothing-to-undo"));
    });
}

#[test]
fn calls_are_answered_while_a_tree_is_walked() {
    let home = Home::new();
    run(async {
        let (_server, mut client, go_on) = held_walk(&home).await;
        client.send_as(8, "ping", "nil").await;
        let said = client.hear(&["(:id 8 :result :pong)"]).await;
        assert!(!said.contains("(:id 7 :result"), "{said}");
        go_on.send(()).unwrap();
        client.hear(&["(:id 7 :result "]).await;
    });
}

#[track_caller]
fn states(client: &mut Client) -> Vec<String> {
    let items = client.ok("get-context", "nil");
    items.as_array().unwrap().iter().map(|i| i["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn items_know_whether_their_file_is_as_it_was() {
    let home = Home::new();
    let path = home.write("a.txt", "one\ntwo\nthree\n");
    let mut client = home.ephemeral(&[]);
    client.ok("add-file", &at(&path, ":live nil"));
    client.ok("add-file", &at(&path, ":live nil :start-line 2 :end-line 2"));
    client.add("*shared*", "no file");
    assert_eq!(states(&mut client), ["fresh", "fresh", "fresh"]);
    home.write("a.txt", "one\ntwo\nTHREE\n");
    assert_eq!(states(&mut client), ["stale", "fresh", "fresh"]);
    home.write("a.txt", "zero\none\ntwo\nTHREE\n");
    assert_eq!(states(&mut client), ["stale", "stale", "fresh"]);
    home.write("a.txt", "one\ntwo\nthree\n");
    assert_eq!(states(&mut client), ["fresh", "fresh", "fresh"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(states(&mut client), ["missing", "missing", "fresh"]);
}

#[test]
fn refreshing_moves_updates_or_leaves_alone_and_never_guesses() {
    let home = Home::new();
    let whole = home.write("whole.txt", "old\n");
    let moved = home.write("moved.txt", "a\nb\nc\n");
    let unsure = home.write("unsure.txt", "x\ny\n");
    let gone = home.write("gone.txt", "x\n");
    let same = home.write("same.txt", "x\n");
    let mut client = home.ephemeral(&[]);
    client.ok("add-file", &at(&whole, ":live nil"));
    client.ok("add-file", &at(&moved, ":live nil :start-line 2 :end-line 2"));
    client.ok("add-file", &at(&unsure, ":live nil :start-line 1 :end-line 1"));
    client.ok("add-file", &at(&gone, ":live nil"));
    client.ok("add-file", &at(&same, ":live nil"));
    home.write("whole.txt", "new\n");
    home.write("moved.txt", "0\n0\na\nb\nc\n");
    home.write("unsure.txt", "0\nx\nx\n");
    std::fs::remove_file(&gone).unwrap();
    let answer = client.ok("refresh-items", "nil");
    let outcomes: Vec<_> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["updated", "moved", "stale", "missing", "unchanged"]);
    assert_eq!(answer["updated"], 2);
    assert!(answer["items"][2]["reason"].as_str().unwrap().contains("more than once"));
    let items = client.ok("get-context", "nil");
    assert_eq!(items[0]["content"], "new\n");
    assert_eq!(
        (
            &items[1]["content"],
            &items[1]["metadata"]["start_line"],
            &items[1]["metadata"]["end_line"]
        ),
        (&"b\n".into(), &4.into(), &4.into())
    );
    assert_eq!(
        (&items[2]["content"], &items[2]["metadata"]["start_line"]),
        (&"x\n".into(), &1.into())
    );
    assert_eq!(states(&mut client), ["fresh", "fresh", "stale", "missing", "fresh"]);
    assert_eq!(client.ok("undo", "nil")["undone"], "refresh-items");
    assert_eq!(client.ok("get-context", "nil")[0]["content"], "old\n");
    let answer = client.ok("refresh-items", "(:ids (\"ctx-1\"))");
    assert_eq!((&answer["updated"], answer["items"].as_array().unwrap().len()), (&1.into(), 1));
}

#[test]
fn live_items_are_read_again_whenever_they_are_rendered() {
    let home = Home::new();
    let path = home.write("a.txt", "first\n");
    let mut client = home.ephemeral(&[]);
    client.ok("add-file", &at(&path, ":live t"));
    client.ok("add-file", &at(&path, ":live nil"));
    home.write("a.txt", "second\n");
    let text = client.ok("context-to-string", "nil");
    let text = text.as_str().unwrap();
    assert!(text.contains("second\n") && text.contains("first\n"), "{text}");
    let items = client.ok("get-context", "nil");
    assert_eq!((&items[0]["content"], &items[0]["live"]), (&"second\n".into(), &true.into()));
    assert_eq!((&items[1]["content"], &items[1]["state"]), (&"first\n".into(), &"stale".into()));
    client.ok("update-items", "(:id \"ctx-1\" :live nil)");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(states(&mut client)[0], "missing");
}

#[test]
fn a_live_region_follows_its_text() {
    let home = Home::new();
    let path = home.write("a.txt", "a\nb\n");
    let mut client = home.ephemeral(&[]);
    client.ok("add-file", &at(&path, ":live t :start-line 2 :end-line 2"));
    home.write("a.txt", "0\na\nb\n");
    let text = client.ok("context-to-string", "nil");
    assert!(text.as_str().unwrap().contains("a.txt:3)"), "{text}");
}

#[test]
fn a_repeated_refresh_is_answered_as_it_was_and_not_applied_again() {
    let home = Home::new();
    let path = home.write("a.txt", "one\n");
    let mut client = home.ephemeral(&[]);
    client.ok("add-file", &at(&path, ":live nil"));
    home.write("a.txt", "two\n");
    let refresh = "(:ids (\"ctx-1\") :request-key \"k\")";
    let first = client.ok("refresh-items", refresh);
    assert_eq!(first["updated"], 1);
    home.write("a.txt", "three\n");
    assert_eq!(client.ok("refresh-items", refresh), first);
    assert_eq!(client.contents("*shared*"), ["two\n"]);
    client.ok("clear-context", "nil");
    assert_eq!(client.ok("refresh-items", refresh), first);
}
