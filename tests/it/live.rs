//! Live items: what is shown is what is in the file now, or is said to be stale.

use std::path::Path;
use std::process::Command;

use crate::support::*;

/// Runs Git in a folder.
fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let output = git.args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

const BEFORE: &str = "fn first() {\n    one();\n}\n\n";
const MARKED: &str = "fn marked(a: u8) -> u8 {\n    let b = a + 1;\n    let c = b * 2;\n    c\n}\n";
const AFTER: &str = "\nfn last() {\n    end();\n}\n";

/// Marks the definition in the middle of a file that it is written to.
fn mark(client: &mut Client, path: &str) {
    let lines = ":start-line 5 :end-line 9 :origin :defun :symbol \"marked\"";
    let metadata = format!("(:filename {} {lines})", quoted(path));
    let content = quoted(MARKED);
    client.ok("add-item", &format!("(:content {content} :metadata {metadata} :live t)"));
    // The first look keeps the lines around it.
    assert_eq!(state(client), "fresh");
}

fn state(client: &mut Client) -> String {
    let items = client.ok("list-items", "(:brief t)");
    items[0]["state"].as_str().unwrap().to_owned()
}

fn shown(client: &mut Client) -> String {
    client.ok("context-to-string", "nil").as_str().unwrap().to_owned()
}

fn text() -> String {
    format!("{BEFORE}{MARKED}{AFTER}")
}

#[test]
fn an_edited_definition_is_shown_as_it_is_now() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    let edited = text().replace("b * 2", "b * 3");
    home.write("p/a.rs", format!("// A new line.\n{edited}"));
    let text = shown(&mut client);
    assert!(text.contains(":6-10)\n") && text.contains("let c = b * 3;"), "{text}");
    assert!(!text.contains("b * 2") && !text.contains("stale"), "{text}");
    assert_eq!(state(&mut client), "fresh");
    assert_eq!(client.fails("undo", "(:manager \"other\")").kind(), "nothing-to-undo");
    // That the item followed its file is no step of its own.
    assert_eq!(client.ok("undo", "nil")["undone"], "add-item");
    assert_eq!(client.contents("*shared*"), Vec::<String>::new());
}

#[test]
fn a_reading_has_the_version_of_what_it_shows() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    let readings = ["list-items", "context-to-string", "render-items"];
    for (reading, round) in readings.into_iter().zip(1..) {
        let moved = format!("{}{}", "// A line.\n".repeat(round), text());
        home.write("p/a.rs", moved);
        let first = client.ok(reading, "(:since 0)")["version"].as_u64().unwrap();
        let again = client.ok(reading, "(:since 0)")["version"].as_u64().unwrap();
        assert_eq!(first, again, "{reading}");
        // Who has read the latest text may change it.
        let pin = format!("(:id \"ctx-1\" :pinned t :if-version {first})");
        client.ok("update-items", &pin);
    }
}

#[test]
fn what_is_gone_or_doubtful_is_stale_and_says_of_when_it_is() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    home.write("p/a.rs", format!("{BEFORE}{AFTER}"));
    let text = shown(&mut client);
    assert!(text.contains(" [as of 20") && text.contains("UTC; stale: its text is no"), "{text}");
    assert!(text.contains("let c = b * 2;"), "{text}");
    assert_eq!(state(&mut client), "stale");
    for (format, sign) in [("xml", " stale=\""), ("org", "; stale: "), ("json", "\"stale\":\"")] {
        let text = client.ok("context-to-string", &format!("(:format :{format})"));
        assert!(text.as_str().unwrap().contains(sign), "{text}");
    }
    home.write("p/a.rs", self::text());
    assert!(!shown(&mut client).contains("stale"));
    std::fs::remove_file(&path).unwrap();
    assert!(shown(&mut client).contains("stale: its file is gone"));
    assert_eq!(state(&mut client), "missing");
}

#[test]
fn branches_and_renamings_are_followed() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let folder = home.file("p");
    git(&folder, &["init", "-q", "-b", "one"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-qm", "one"]);
    git(&folder, &["checkout", "-qb", "two"]);
    home.write("p/a.rs", format!("// Two.\n\n{}", text().replace("a + 1", "a + 22")));
    git(&folder, &["commit", "-qam", "two"]);
    git(&folder, &["checkout", "-q", "one"]);
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    git(&folder, &["checkout", "-q", "two"]);
    assert!(shown(&mut client).contains("let b = a + 22;"));
    git(&folder, &["checkout", "-q", "one"]);
    assert!(shown(&mut client).contains("let b = a + 1;"));
    git(&folder, &["mv", "a.rs", "b.rs"]);
    let text = shown(&mut client);
    assert!(text.contains("/p/b.rs:5-9)") && !text.contains("stale"), "{text}");
    git(&folder, &["commit", "-qm", "renamed"]);
    home.write("p/b.rs", self::text().replace("a + 1", "a + 333"));
    assert!(shown(&mut client).contains("let b = a + 333;"));
}

#[test]
fn a_renaming_is_followed_there_and_back() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    home.write("p/whole.rs", "one();\ntwo();\nthree();\n");
    let folder = home.file("p");
    let whole = quoted(&folder.join("whole.rs").display().to_string());
    git(&folder, &["init", "-q", "-b", "one"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-qm", "one"]);
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    client.ok("add-file", &format!("(:path {whole})"));
    let mut check = |names: [&str; 2]| {
        let text = shown(&mut client);
        assert!(!text.contains("stale"), "{text}");
        assert!(text.contains(&format!("{}:5-9)", names[0])), "{names:?}: {text}");
        assert!(text.contains(&format!("(from {})", names[1])), "{names:?}: {text}");
    };
    check(["a.rs", "whole.rs"]);
    git(&folder, &["mv", "a.rs", "b.rs"]);
    git(&folder, &["mv", "whole.rs", "all.rs"]);
    check(["b.rs", "all.rs"]);
    git(&folder, &["mv", "b.rs", "a.rs"]);
    git(&folder, &["mv", "all.rs", "whole.rs"]);
    check(["a.rs", "whole.rs"]);
    git(&folder, &["checkout", "-qb", "two"]);
    git(&folder, &["mv", "a.rs", "c.rs"]);
    git(&folder, &["mv", "whole.rs", "d.rs"]);
    git(&folder, &["commit", "-qm", "two"]);
    check(["c.rs", "d.rs"]);
    for _ in 0..2 {
        git(&folder, &["checkout", "-q", "one"]);
        check(["a.rs", "whole.rs"]);
        git(&folder, &["checkout", "-q", "two"]);
        check(["c.rs", "d.rs"]);
    }
    // What left the project is stale until it is back.
    let (here, away) = (folder.join("c.rs"), home.path("away"));
    std::fs::rename(&here, &away).unwrap();
    assert!(shown(&mut client).contains("stale: its file is gone"));
    std::fs::rename(&away, &here).unwrap();
    assert!(!shown(&mut client).contains("stale"));
}

#[test]
fn a_name_that_another_file_got_is_not_followed() {
    let home = Home::new();
    let folder = home.file("p");
    let whole = home.write("p/new.rs", "one();\ntwo();\nthree();\n");
    git(&folder, &["init", "-q", "-b", "one"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-qm", "one"]);
    git(&folder, &["mv", "new.rs", "old.rs"]);
    git(&folder, &["mv", "old.rs", "new.rs"]);
    let mut client = home.ephemeral(&[]);
    client.ok("add-file", &format!("(:path {})", quoted(&whole)));
    git(&folder, &["mv", "new.rs", "old.rs"]);
    assert!(!shown(&mut client).contains("stale"));
    std::fs::remove_file(folder.join("old.rs")).unwrap();
    home.write("p/new.rs", "quite();\nanother();\ntext();\n");
    let text = shown(&mut client);
    assert!(text.contains("stale: its file is gone") && text.contains("two();"), "{text}");
}

#[test]
fn a_file_that_an_agent_rewrote_is_followed() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    // Agents write a new file and rename it, with other definitions in another order.
    let marked = MARKED.replace("    c\n", "    log(c);\n    c\n");
    let new = format!("use x::y;\n{AFTER}\n{marked}\nfn more() {{}}\n");
    let draft = home.write("p/draft", new);
    std::fs::rename(draft, &path).unwrap();
    let text = shown(&mut client);
    assert!(text.contains("    log(c);\n    c\n}\n"), "{text}");
    assert!(!text.contains("fn more") && !text.contains("stale"), "{text}");
}

#[test]
fn unsaved_text_counts_while_its_editor_is_connected() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let server = home.listening(&[]);
    let mut client = server.tcp(Dialect::Native);
    mark(&mut client, &path);
    let unsaved = MARKED.replace("a + 1", "unsaved(a)");
    let update = format!(
        "(:items ((:id \"ctx-1\" :content {} :metadata (:unsaved t)) (:id \"ctx-99\" :content \"\")))",
        quoted(&unsaved)
    );
    let told = client.ok("update-items", &update);
    assert_eq!((&told["updated"], &told["skipped"][0]), (&1.into(), &"ctx-99".into()));
    let mut other = server.tcp(Dialect::Native);
    let text = shown(&mut other);
    assert!(text.contains("unsaved(a)") && !text.contains("stale"), "{text}");
    client.close();
    while client.line().is_some() {}
    until("the editor to be forgotten", || shown(&mut other).contains("stale: its text was not"));
    assert!(shown(&mut other).contains("unsaved(a)"));
    home.write("p/a.rs", format!("\n{}", self::text()));
    let text = shown(&mut other);
    assert!(text.contains("let b = a + 1;") && !text.contains("stale"), "{text}");
}

#[test]
fn the_text_of_an_unsaved_buffer_is_fresh_if_its_file_has_it() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let server = home.listening(&[]);
    let mut client = server.tcp(Dialect::Native);
    mark(&mut client, &path);
    // The buffer has four new lines above, so the definition is four lines lower than in the file.
    let update = ":content {} :metadata (:unsaved t :start-line 9 :end-line 13)";
    let update = update.replace("{}", &quoted(MARKED));
    client.ok("update-items", &format!("(:items ((:id \"ctx-1\" {update})))"));
    let mut other = server.tcp(Dialect::Native);
    client.close();
    while client.line().is_some() {}
    until("the editor to be forgotten", || shown(&mut other).contains(":5-9)\n"));
    let text = shown(&mut other);
    assert!(text.contains("let b = a + 1;") && !text.contains("stale"), "{text}");
}

#[test]
fn a_frozen_item_stays_as_it_is_and_says_of_when() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    assert_eq!(client.ok("update-items", "(:live :false :id \"ctx-1\")")["updated"], 1);
    home.write("p/a.rs", text().replace("b * 2", "b * 3"));
    let text = shown(&mut client);
    assert!(
        text.contains("b * 2") && text.contains(" UTC]\n") && !text.contains("stale"),
        "{text}"
    );
    client.ok("update-items", "(:ids (\"ctx-1\") :live t)");
    let text = shown(&mut client);
    assert!(text.contains("b * 3") && !text.contains("as of"), "{text}");
    client.add("*shared*", "no file");
    let error = client.fails("update-items", "(:id \"ctx-2\" :live t)");
    assert!(error.message.contains("live needs metadata.filename"), "{error:?}");
}

#[test]
fn nothing_is_there_twice() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    client.add("*shared*", "between");
    let region = |lines: (u64, u64)| {
        let content: Vec<String> = text()
            .lines()
            .skip(lines.0 as usize - 1)
            .take((lines.1 - lines.0 + 1) as usize)
            .map(|line| format!("{line}\n"))
            .collect();
        format!(
            "(:content {} :live t :metadata (:filename {} :start-line {} :end-line {}))",
            quoted(&content.concat()),
            quoted(&path),
            lines.0,
            lines.1
        )
    };
    let again = client.ok("add-item", &region((5, 9)));
    assert_eq!((&again["id"], &again["repeat"]), (&"ctx-1".into(), &"same".into()));
    assert_eq!(again["count"], 2);
    let more = client.ok("add-item", &region((8, 11)));
    assert_eq!((&more["id"], &more["repeat"]), (&"ctx-1".into(), &"extended".into()));
    let lines = (&more["metadata"]["start_line"], &more["metadata"]["end_line"]);
    assert_eq!(lines, (&5.into(), &11.into()));
    let order: Vec<String> = client.contents("*shared*");
    assert!(
        order.len() == 2 && order[1].starts_with("fn marked") && order[1].ends_with("last() {\n")
    );
    assert_eq!(client.ok("undo", "nil")["undone"], "add-item");
    // A file covers its regions, which are sent once.
    client.ok("add-file", &format!("(:path {} :live t)", quoted(&path)));
    let rendered = client.ok("render-items", "nil");
    let text = rendered["text"].as_str().unwrap();
    assert_eq!(text.matches("fn marked").count(), 1, "{text}");
    let report = rendered["report"].as_array().unwrap();
    let covered = report.iter().find(|verdict| verdict["id"] == "ctx-1").unwrap();
    assert_eq!(covered["reason"], "covered by ctx-3, which contains it");
    assert_eq!(shown(&mut client).matches("fn marked").count(), 1);
}

#[test]
fn an_editor_asks_for_the_live_items_of_its_files_wherever_they_are() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    client.ok("add-file", &format!("(:path {} :live t :manager \"own\")", quoted(&path)));
    client.ok("add-file", &format!("(:path {} :manager \"frozen\" :live nil)", quoted(&path)));
    let files = format!("(:filenames ({} \"/none\") :brief t)", quoted(&path));
    let found = client.ok("list-items", &files);
    let held: Vec<_> =
        found.as_array().unwrap().iter().map(|item| (&item["manager"], &item["id"])).collect();
    assert_eq!(held, [(&"*shared*".into(), &"ctx-1".into()), (&"own".into(), &"ctx-2".into())]);
    let one =
        client.ok("list-items", &format!("(:manager \"own\" :filenames ({}))", quoted(&path)));
    assert_eq!((one.as_array().unwrap().len(), &one[0]["id"]), (1, &"ctx-2".into()));
    assert!(client.ok("list-items", "(:filenames (\"/none\"))").is_null());
}

#[test]
fn what_an_editor_saved_is_found_again_by_the_lines_around_it_then() {
    let home = Home::new();
    let twice = "one();\n\nsame();\n\ntwo();\n\nsame();\n\nthree();\n";
    let path = home.write("p/a.rs", twice);
    let mut client = home.ephemeral(&[]);
    let lines = ":start-line 7 :end-line 7 :origin :region";
    let metadata = format!("(:filename {} {lines})", quoted(&path));
    client.ok("add-item", &format!("(:content \"same();\\n\" :metadata {metadata} :live t)"));
    assert_eq!(state(&mut client), "fresh", "its lines tell it from its copy");
    home.write("p/a.rs", format!("// New.\n{twice}"));
    let update =
        "(:items ((:id \"ctx-1\" :content \"same();\\n\" :metadata (:start-line 8 :end-line 8))))";
    client.ok("update-items", update);
    let item = &client.ok("list-items", "(:brief t)")[0];
    assert_eq!((&item["state"], &item["metadata"]["start_line"]), (&"fresh".into(), &8.into()));
}

#[test]
fn a_file_says_what_it_covers_and_a_region_by_what_it_is_covered() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    let whole = client.ok("add-file", &format!("(:path {} :live t)", quoted(&path)));
    assert_eq!(whole["covers"], serde_json::json!(["ctx-1"]));
    let part = format!("(:path {} :start-line 1 :end-line 2 :live t)", quoted(&path));
    assert_eq!(client.ok("add-file", &part)["covered_by"], "ctx-2");
    let items = client.ok("list-items", "(:brief t)");
    let by: Vec<_> = items.as_array().unwrap().iter().map(|item| item.get("covered_by")).collect();
    assert_eq!(by, [Some(&"ctx-2".into()), None, Some(&"ctx-2".into())]);
}

#[test]
fn a_live_tree_follows_its_files_and_adds_none_twice() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    home.write("p/b.rs", "b\n");
    let tree = format!("(:path {} :live t)", quoted(&home.file("p").display().to_string()));
    let mut client = home.ephemeral(&[]);
    assert_eq!(client.ok("add-tree", &tree)["ids"], serde_json::json!(["ctx-1", "ctx-2"]));
    home.write("p/a.rs", "new\n");
    assert!(shown(&mut client).contains("new\n"), "{path}");
    home.write("p/c.rs", "c\n");
    let again = client.ok("add-tree", &tree);
    assert_eq!(again["repeated"], serde_json::json!(["ctx-1", "ctx-2"]));
    assert_eq!(again["ids"].as_array().unwrap().len(), 1);
    assert_eq!(again["tokens"], client.ok("list-items", "(:ids (\"ctx-3\"))")[0]["tokens"]);
}

#[test]
fn stale_items_and_snapshots_are_listed_with_their_date() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    assert!(client.ok("list-items", "(:brief t)")[0].get("as_of").is_none());
    home.write("p/a.rs", "gone\n");
    assert!(client.ok("list-items", "(:brief t)")[0]["as_of"].is_i64());
    client.ok("update-items", "(:live :false :id \"ctx-1\")");
    assert!(client.ok("list-items", "(:brief t)")[0]["as_of"].is_i64());
}

#[test]
fn unsaved_text_counts_from_its_addition_on() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    let lines = ":start-line 5 :end-line 6 :origin :region :unsaved t";
    let metadata = format!("(:filename {} {lines})", quoted(&path));
    client.ok("add-item", &format!("(:content \"unsaved\\n\" :metadata {metadata} :live t)"));
    assert!(shown(&mut client).contains("unsaved\n"));
    assert_eq!(state(&mut client), "fresh");
}

/// What a client is shown of the one item: its text, its first line and why it is stale.
fn seen(client: &mut Client) -> (String, i64, String) {
    let item = client.ok("list-items", "nil")[0].clone();
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let metadata = &item["metadata"];
    let line = metadata["start_line"].as_i64().unwrap();
    (text(&item["content"]), line, text(&metadata["stale"]))
}

/// Two editors that have the file of the one item in buffers, and a client that is none.
struct Two {
    _home: Home,
    path: String,
    _server: Listening,
    one: Client,
    two: Client,
    other: Client,
}

const ELSEWHERE: &str = "another editor has other unsaved text";

impl Two {
    fn new() -> Self {
        let home = Home::new();
        let path = home.write("p/a.rs", text());
        let server = home.listening(&[]);
        let [mut one, mut two, other] = [(); 3].map(|()| server.tcp(Dialect::Native));
        one.ok("subscribe", "(:topics (:text-wanted))");
        two.ok("subscribe", "(:topics (:text-wanted))");
        mark(&mut one, &path);
        Self { _home: home, path, _server: server, one, two, other }
    }
}

/// The update of an editor whose buffer has the text four lines lower, and not saved.
fn tell(client: &mut Client, content: &str, more: &str) {
    let content = quoted(content);
    let update = format!("(:id \"ctx-1\" :content {content} :metadata ({more}))");
    assert!(client.ok("update-items", &format!("(:items ({update}))"))["skipped"].is_null());
}

const UNSAVED: &str = ":unsaved t :start-line 9 :end-line 13";

#[test]
fn each_editor_sees_its_own_buffer_and_is_told_of_the_other() {
    let mut desk = Two::new();
    let Two { one, two, other, .. } = &mut desk;
    let edited = MARKED.replace("a + 1", "one(a)");
    tell(one, &edited, UNSAVED);
    let own = (edited.clone(), 9, String::new());
    assert_eq!(seen(one), own);
    assert_eq!(seen(other), own, "who has no buffers gets what is not saved");
    assert_eq!(seen(two), (MARKED.to_owned(), 5, ELSEWHERE.to_owned()));
    let text = shown(two);
    assert!(text.contains("a.rs:5-9) [as of 2"), "{text}");
    let second = MARKED.replace("b * 2", "two(b)");
    tell(two, &second, ":unsaved t :start-line 5 :end-line 9");
    assert_eq!(seen(two), (second.clone(), 5, ELSEWHERE.to_owned()));
    assert_eq!(seen(one), (edited.clone(), 9, ELSEWHERE.to_owned()));
    assert_eq!(seen(other), (second.clone(), 5, ELSEWHERE.to_owned()), "the newest");
    for format in [":markdown", ":xml", ":org", ":json"] {
        let text = one.ok("context-to-string", &format!("(:format {format})"));
        let text = text.as_str().unwrap();
        assert!(text.contains("one(a)") && text.contains(ELSEWHERE), "{text}");
    }
}

#[test]
fn what_one_editor_saves_beats_the_buffer_of_the_other() {
    let mut desk = Two::new();
    let Two { one, two, other, path, .. } = &mut desk;
    tell(one, &MARKED.replace("a + 1", "one(a)"), UNSAVED);
    let second = MARKED.replace("b * 2", "two(b)");
    tell(two, &second, ":unsaved t :start-line 5 :end-line 9");
    std::fs::write(&*path, text().replace(MARKED, &second)).unwrap();
    tell(two, &second, ":unsaved nil :start-line 5 :end-line 9");
    for client in [&mut *two, &mut *other] {
        assert_eq!(seen(client), (second.clone(), 5, ELSEWHERE.to_owned()));
    }
    assert_eq!(seen(one).0, MARKED.replace("a + 1", "one(a)"));
    // The first editor says that its file changed under its edits, and is still the only one that
    // is shown them.
    let conflict = format!("{UNSAVED} :stale \"changed on disk\"");
    tell(one, &MARKED.replace("a + 1", "one(a)"), &conflict);
    assert_eq!(seen(one).2, "changed on disk");
    assert_eq!(seen(two), (second.clone(), 5, ELSEWHERE.to_owned()));
    assert_eq!(seen(other), (second.clone(), 5, ELSEWHERE.to_owned()));
    one.close();
    while one.line().is_some() {}
    until("the editor to be forgotten", || seen(two).2.is_empty());
    assert_eq!(seen(other), (second, 5, String::new()));
}

/// Says that a client's buffer has the text of the file again.
fn take_back(client: &mut Client) {
    client.ok("update-items", "(:items ((:id \"ctx-1\" :metadata (:unsaved nil :modified nil))))");
}

#[test]
fn others_are_told_when_an_editor_takes_its_edits_back() {
    let mut desk = Two::new();
    let Two { one, two, .. } = &mut desk;
    tell(one, &MARKED.replace("a + 1", "one(a)"), UNSAVED);
    tell(two, &MARKED.replace("b * 2", "two(b)"), UNSAVED);
    take_back(two);
    assert_eq!(seen(two), (MARKED.to_owned(), 5, ELSEWHERE.to_owned()));
    two.ok("subscribe", "(:topics (:context-changed))");
    take_back(one);
    assert_eq!(seen(two), (MARKED.to_owned(), 5, String::new()));
    assert!(is_nil(&two.notification("context-changed")["followed"]));
}

#[test]
fn each_editor_finds_an_item_by_the_name_that_its_buffer_has() {
    let mut desk = Two::new();
    let Two { one, two, path, .. } = &mut desk;
    let new = path.replace("a.rs", "b.rs");
    std::fs::rename(&*path, &new).unwrap();
    let named = |name: &str| format!("{UNSAVED} :filename {}", quoted(name));
    tell(one, &MARKED.replace("a + 1", "one(a)"), &named(&new));
    tell(two, &MARKED.replace("b * 2", "two(b)"), &named(path));
    for (client, name) in [(one, &new), (two, &*path)] {
        let found = client.ok("list-items", &format!("(:filenames ({}))", quoted(name)));
        assert_eq!(
            (&found[0]["id"], &found[0]["metadata"]["filename"]),
            (&"ctx-1".into(), &(&**name).into())
        );
    }
}

#[test]
fn an_editor_is_not_shown_the_unsaved_text_of_another_on_another_machine_as_its_own() {
    let mut desk = Two::new();
    let Two { one, two, other, .. } = &mut desk;
    let named = format!("{UNSAVED} :modified t :filename \"/ssh:h:/p/a.rs\"");
    tell(one, MARKED, &named);
    assert_eq!(seen(one).2, "");
    assert_eq!(seen(two), (MARKED.to_owned(), 9, ELSEWHERE.to_owned()));
    assert_eq!(seen(other).2, "", "who has no buffers gets what is not saved");
    one.close();
    while one.line().is_some() {}
    until("the editor to be forgotten", || seen(other).2 == "its text was not saved");
    assert_eq!(seen(two).2, "its text was not saved");
}

#[test]
fn what_one_editor_marks_does_not_join_what_the_other_has_on_these_lines() {
    let mut desk = Two::new();
    let Two { one, two, other, path, .. } = &mut desk;
    // In the first buffer, the last definition is where the second buffer has the marked one.
    tell(one, MARKED, ":unsaved t :start-line 11 :end-line 15");
    let metadata = format!("(:filename {} :start-line 11 :end-line 13)", quoted(path));
    let last = "fn last() {\n    end();\n}\n";
    let params = format!("(:content {} :live t :metadata {metadata})", quoted(last));
    assert!(is_nil(&two.ok("add-item", &params)["repeat"]));
    // The same text is the same item, although the lines differ.
    let metadata = format!("(:filename {} :start-line 5 :end-line 9)", quoted(path));
    let params = format!("(:content {} :live t :metadata {metadata})", quoted(MARKED));
    let again = two.ok("add-item", &params);
    assert_eq!((&again["id"], &again["repeat"]), (&"ctx-1".into(), &"same".into()));
    assert_eq!(one.contents("*shared*").len(), 2);
    // Whoever adds the lines of the file replaces no text that is not saved, but finds its item.
    let edited = MARKED.replace("a + 1", "one(a)");
    tell(one, &edited, ":unsaved t :start-line 11 :end-line 15");
    let added =
        other.ok("add-file", &format!("(:path {} :start-line 5 :end-line 9)", quoted(path)));
    assert_eq!((&added["id"], &added["repeat"]), (&"ctx-1".into(), &"same".into()));
    let more =
        other.ok("add-file", &format!("(:path {} :start-line 8 :end-line 10)", quoted(path)));
    assert!(is_nil(&more["repeat"]));
    assert_eq!(one.contents("*shared*")[1], edited);
    assert_eq!(other.contents("*shared*")[1], edited);
}

#[test]
fn what_the_shell_adds_is_live_and_one_with_the_mark_of_the_same_lines() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let server = home.listening(&[]);
    let mut client = server.tcp(Dialect::Native);
    mark(&mut client, &path);
    let params = "(:path \"p/a.rs\" :start-line 5 :end-line 9)";
    let added = home.succeed(&["call", "add-file", params]);
    for sign in [":id \"ctx-1\"", ":live t", ":repeat :same", ":count 1"] {
        assert!(added.contains(sign), "{added}");
    }
    std::fs::write(&path, text().replace("b * 2", "b * 3")).unwrap();
    assert!(home.succeed(&["call", "list-items", "(:ids (\"ctx-1\"))"]).contains("b * 3"));
}

#[test]
fn files_and_folders_that_were_moved_without_git_are_followed() {
    let home = Home::new();
    let path = home.write("p/sub/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    client.ok("add-file", &format!("(:path {} :manager \"whole\")", quoted(&path)));
    let folder = quoted(home.file("p").to_str().unwrap());
    let added = client.ok("add-tree", &format!("(:path {folder} :manager \"tree\")"));
    assert_eq!(added["files"], 1, "{added}");
    for (from, to) in [("p/sub/a.rs", "p/sub/b.rs"), ("p/sub", "p/moved"), ("p", "q")] {
        std::fs::rename(home.file(from), home.file(to)).unwrap();
        for manager in ["*shared*", "whole", "tree"] {
            let items = client.ok("list-items", &format!("(:manager {manager:?} :brief t)"));
            let name = items[0]["metadata"]["filename"].as_str().unwrap();
            assert!(name.contains(to) && name.ends_with(".rs"), "{to}: {items}");
            assert_eq!(items[0]["state"], "fresh");
        }
    }
}

#[test]
fn lines_that_items_of_several_managers_share_are_sent_once() {
    let home = Home::new();
    let path = quoted(&home.write("p/a.rs", text()));
    let mut client = home.ephemeral(&[]);
    client.ok("add-file", &format!("(:path {path} :start-line 1 :end-line 6 :manager \"one\")"));
    client.ok("add-file", &format!("(:path {path} :start-line 5 :end-line 9 :manager \"two\")"));
    let params = "(:managers (\"one\" \"two\"))";
    let text = client.ok("context-to-string", params);
    let text = text.as_str().unwrap();
    assert_eq!(text.matches("fn marked").count(), 1, "{text}");
    assert!(text.contains(":1-4)") && text.contains(":5-9)"), "{text}");
    let rendered = client.ok("render-items", params);
    assert_eq!(rendered["text"], *text);
    // If the other item does not fit, all lines are sent.
    let few = client.ok("render-items", "(:managers (\"one\" \"two\") :max-tokens 40)");
    assert!(!few["text"].as_str().unwrap().contains(":1-4)"), "{few}");
}

#[test]
fn what_the_server_notes_about_a_place_is_in_no_answer_and_outlives_an_edit_of_the_metadata() {
    let home = Home::new();
    let path = home.write("p/a.rs", text());
    let mut client = home.ephemeral(&[]);
    mark(&mut client, &path);
    let mut answers = vec![client.ok("list-items", "nil")];
    let item = answers[0][0].clone();
    let metadata = format!(
        "(:filename {path:?} :start-line {} :end-line {} :tags (\"x\"))",
        item["metadata"]["start_line"], item["metadata"]["end_line"]
    );
    let update = format!("(:id \"ctx-1\" :metadata {metadata})");
    answers.push(client.ok("update-items", &update));
    answers.push(client.ok("list-items", "(:query \"b\")"));
    for reading in ["get-context", "list-operations", "render-items"] {
        answers.push(client.ok(reading, "nil"));
    }
    for answer in answers {
        assert!(!answer.to_string().contains("anchor"), "{answer}");
    }
    home.write("p/a.rs", format!("// new\n\n{}", text()));
    let moved = client.ok("list-items", "nil")[0].clone();
    let line = |item: &Json| item["metadata"]["start_line"].as_u64().unwrap();
    assert_eq!(line(&moved), line(&item) + 2, "{moved}");
    assert_eq!(moved["content"], item["content"]);
}
