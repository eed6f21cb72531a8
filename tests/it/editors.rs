//! Editors that are asked for what is not saved.

use std::path::PathBuf;

use crate::support::*;

/// A project with a file, and a server with an editor.
struct Desk {
    _home: Home,
    root: PathBuf,
    server: Listening,
    emacs: Client,
}

impl Desk {
    fn new() -> Self {
        let home = Home::new();
        home.write("app/.git/HEAD", "");
        home.write("app/a.rs", "fn saved() {}\n");
        let server = home.listening(&[]);
        let mut emacs = server.unix(Dialect::Native);
        emacs.ok("subscribe", "(:topics (:text-wanted))");
        Self { root: home.file("app"), _home: home, server, emacs }
    }

    fn read(&self, more: &str) -> String {
        format!("(:path \"a.rs\" :root {:?} :ask-editors t{more})", self.root)
    }

    fn give(&mut self, question: &Json, content: &str) -> Json {
        self.emacs.ok("give-result", &format!("(:question {question} :content {content})"))
    }
}

#[test]
fn a_file_is_read_as_an_editor_has_it() {
    let mut desk = Desk::new();
    let mut reader = desk.server.unix(Dialect::Json);
    let params = desk.read(" :start-line 2");
    let id = reader.send("read-file", &params);
    let told = desk.emacs.notification("text-wanted");
    assert_eq!(told["path"].as_str().unwrap(), desk.root.join("a.rs").to_str().unwrap());
    assert_eq!(desk.give(&told["question"], "\"one\\ntwo\\n\"")["taken"], true);
    let text = reader.reply(id).unwrap();
    assert_eq!((&text["content"], &text["unsaved"]), (&"two\n".into(), &true.into()));
    assert_eq!((&text["total_lines"], &text["late_editors"]), (&2.into(), &0.into()));
    // The question is over, and nobody may answer one of others.
    assert_ne!(desk.give(&told["question"], "\"x\"")["taken"], true);
    // An editor with nothing to give says so, and the file is read.
    let id = reader.send("read-file", &desk.read(""));
    let question = desk.emacs.notification("text-wanted")["question"].clone();
    let answer = format!("(:question {question} :content \"x\")");
    let mut other = desk.server.unix(Dialect::Native);
    assert_ne!(other.ok("give-result", &answer)["taken"], true);
    assert_eq!(desk.give(&question, "nil")["taken"], true);
    let text = reader.reply(id).unwrap();
    assert_eq!((&text["content"], &text["unsaved"]), (&"fn saved() {}\n".into(), &false.into()));
    // What is too large on disk is too large in an editor.
    let id = reader.send("read-file", &desk.read(" :max-file-bytes 20"));
    let question = desk.emacs.notification("text-wanted")["question"].clone();
    desk.give(&question, &format!("{:?}", "x".repeat(30)));
    assert_eq!(reader.reply(id).unwrap_err().kind(), "file-too-large");
}

#[test]
fn an_editor_that_does_not_answer_is_named_and_not_waited_for() {
    let mut desk = Desk::new();
    let mut reader = desk.server.unix(Dialect::Native);
    let text = reader.ok("read-file", &desk.read(""));
    assert_eq!((&text["content"], &text["late_editors"]), (&"fn saved() {}\n".into(), &1.into()));
    let late = desk.emacs.notification("text-wanted")["question"].clone();
    assert_ne!(desk.give(&late, "\"x\"")["taken"], true);
    let asked = reader.ok("open-layers", "(:ask-editors t)");
    assert_eq!((&asked["asked_editors"], &asked["late_editors"]), (&1.into(), &1.into()));
    // An editor does not wait for itself, and one that has gone or unsubscribed is not asked.
    assert_eq!(desk.emacs.ok("open-layers", "(:ask-editors t)")["asked_editors"], 0);
    desk.emacs.ok("subscribe", "(:topics nil)");
    assert_eq!(reader.ok("open-layers", "(:ask-editors t)")["asked_editors"], 0);
    let mut other = desk.server.unix(Dialect::Native);
    other.ok("subscribe", "(:topics (:text-wanted))");
    drop(other);
    until("the editor to be forgotten", || {
        reader.ok("open-layers", "(:ask-editors t)")["asked_editors"] == 0
    });
}

#[test]
fn editors_with_different_texts_of_a_file_are_told_apart() {
    let mut desk = Desk::new();
    let mut second = desk.server.unix(Dialect::Native);
    second.ok("subscribe", "(:topics (:text-wanted))");
    let mut reader = desk.server.unix(Dialect::Json);
    for (other, count) in [("\"fn typed() {}\\n\"", 0), ("\"fn else() {}\\n\"", 1)] {
        let id = reader.send("read-file", &desk.read(""));
        let question = desk.emacs.notification("text-wanted")["question"].clone();
        desk.give(&question, "\"fn typed() {}\\n\"");
        second.ok("give-result", &format!("(:question {question} :content {other})"));
        let text = reader.reply(id).unwrap();
        assert_eq!((&text["unsaved"], &text["other_texts"]), (&true.into(), &count.into()));
    }
}

#[test]
fn what_an_editor_sends_before_its_answer_is_seen() {
    let mut desk = Desk::new();
    let path = desk.root.join("a.rs");
    let id = desk.emacs.ok("add-file", &format!("(:path {path:?} :manager \"m\" :live t)"))["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut reader = desk.server.unix(Dialect::Native);
    let asked = reader.send("open-layers", "(:ask-editors t)");
    let question = desk.emacs.notification("text-wanted");
    assert!(is_nil(&question["path"]));
    let item = format!("(:id {id:?} :content \"fn typed() {{}}\\n\" :metadata (:unsaved t))");
    desk.emacs.send("update-items", &format!("(:manager \"m\" :items ({item}))"));
    desk.give(&question["question"], "nil");
    assert_eq!(reader.reply(asked).unwrap()["late_editors"], 0);
    assert_eq!(reader.contents("m"), ["fn typed() {}\n"]);
}

#[test]
fn a_file_with_a_new_name_is_in_doubt_once_if_an_editor_has_unsaved_text_of_it() {
    let mut desk = Desk::new();
    let (old, new) = (desk.root.join("a.rs"), desk.root.join("b.rs"));
    let mut reader = desk.server.unix(Dialect::Native);
    reader.ok("add-file", &format!("(:path {old:?} :manager \"m\" :live t)"));
    reader.ok("list-items", "(:manager \"m\")");
    desk.emacs.ok("subscribe", "(:topics (:text-wanted :context-changed))");
    std::fs::rename(&old, &new).unwrap();
    let list = reader.send("list-items", "(:manager \"m\")");
    // The editor has to look whether it has the file in a buffer.
    assert!(is_nil(&desk.emacs.notification("context-changed")["followed"]));
    let wanted = desk.emacs.notification("text-wanted");
    assert_eq!(wanted["path"].as_str().unwrap(), new.to_str().unwrap());
    // What the editor has may be older than the file, and then is not given.
    desk.give(&wanted["question"], "nil :error \"it is older\"");
    assert_eq!(reader.reply(list).unwrap()[0]["state"], "stale");
    assert_eq!(reader.ok("list-items", "(:manager \"m\")")[0]["state"], "fresh");
    // An item that only follows its file asks nothing of the editor.
    std::fs::write(&new, "fn other() {}\n").unwrap();
    assert_eq!(reader.contents("m"), ["fn other() {}\n"]);
    assert_eq!(desk.emacs.notification("context-changed")["followed"], true);
}

#[test]
fn others_are_told_when_an_editor_leaves_with_unsaved_text() {
    let mut desk = Desk::new();
    let mut other = desk.server.unix(Dialect::Native);
    let add = format!("(:path {:?} :manager \"m\" :live t)", desk.root.join("a.rs"));
    let id = other.ok("add-file", &add)["id"].as_str().unwrap().to_owned();
    let item = format!("(:id {id:?} :content \"fn typed() {{}}\\n\" :metadata (:unsaved t))");
    desk.emacs.ok("update-items", &format!("(:manager \"m\" :items ({item}))"));
    assert_eq!(other.contents("m"), ["fn typed() {}\n"]);
    other.ok("subscribe", "(:topics (:context-changed))");
    desk.emacs.close();
    let told = other.notification("context-changed");
    assert_eq!((&told["manager"], is_nil(&told["followed"])), (&"m".into(), true));
    assert_eq!(other.contents("m"), ["fn saved() {}\n"]);
}
