//! Layers: the managers that a place has, what is taken over into them, and what they send.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::*;

/// Runs git in a folder, without the settings of the user.
#[track_caller]
fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    command.args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with a file `NEWS` and a first commit.
fn repository(home: &Home, name: &str) -> String {
    home.write(&format!("{name}/NEWS"), "news\n");
    let root = home.file(name);
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "first"]);
    root.canonicalize().unwrap().to_str().unwrap().to_owned()
}

fn open(client: &mut Client, params: &str) -> Json {
    client.ok("open-layers", &format!("({params})"))
}

/// Opens the layers of a file in a project.
fn open_file(client: &mut Client, root: &str, file: &str) -> Json {
    open(client, &format!(":root {root:?} :filename \"{root}/{file}\""))
}

fn layer<'a>(opened: &'a Json, name: &str) -> &'a Json {
    let layers = opened["layers"].as_array().unwrap();
    layers.iter().find(|layer| layer["layer"] == name).unwrap_or(&Json::Null)
}

fn manager(opened: &Json, name: &str) -> String {
    layer(opened, name)["manager"].as_str().unwrap_or_default().to_owned()
}

/// Adds an item about a file.
fn mark(client: &mut Client, manager: &str, content: &str, file: &str, project: Option<&str>) {
    let project = project.map(|project| format!(":project {project:?}")).unwrap_or_default();
    let metadata = format!("(:filename {file:?} {project} :start-line 1 :end-line 1)");
    let params = format!("(:manager {manager:?} :content {content:?} :metadata {metadata})");
    client.ok("add-item", &params);
}

#[test]
fn a_place_has_layers_with_labels_and_room() {
    let home = Home::new();
    let root = repository(&home, "app");
    let mut client = home.stdio(&[]);
    let opened = open_file(&mut client, &root, "NEWS");
    let shown = |layer: &Json| {
        ["layer", "manager", "label"].map(|name| layer[name].as_str().unwrap().to_owned())
    };
    let shown: Vec<_> = opened["layers"].as_array().unwrap().iter().map(shown).collect();
    let expected = [
        ["everywhere", "*shared*", "everywhere"].map(str::to_owned),
        ["project".into(), format!("project:{root}/"), "project app".into()],
        ["file".into(), format!("file:{root}/NEWS"), "file NEWS".into()],
    ];
    assert_eq!(shown, expected);
    assert_eq!(layer(&opened, "project")["max_items"], 1000);
    assert_eq!(layer(&opened, "everywhere")["max_items"], 50);
    assert_eq!(layer(&opened, "everywhere")["items"], 0);
    // Looking changes nothing.
    assert!(is_nil(&client.ok("list-managers", "nil")));
    let project = manager(&opened, "project");
    for number in 0..51 {
        client.add(&project, &format!("item {number}"));
    }
    assert_eq!(client.contents(&project).len(), 51);
    assert_eq!(client.ok("list-managers", "nil")[0]["label"], "project app");
    client.end();
}

#[test]
fn a_conversation_and_a_buffer_have_layers() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let session = client.ok("open-session", "(:name \"talk\")");
    let folder = home.file("");
    let directory = format!(":directory {folder:?} :buffer \"*a*\" :number \"1.2\"");
    let opened = open(&mut client, &format!("{directory} :session \"talk\""));
    let labels = opened["layers"].as_array().unwrap().iter().map(|layer| &layer["label"]);
    let labels: Vec<_> = labels.map(|label| label.as_str().unwrap()).collect();
    let name = folder.file_name().unwrap().to_str().unwrap();
    let project_label = format!("project {name}");
    assert_eq!(labels, ["everywhere", &project_label, "buffer *a*", "this conversation"]);
    assert_eq!(manager(&opened, "buffer"), "buffer:*a*#1.2");
    assert_eq!(layer(&opened, "conversation")["manager"], session["manager"]);
    // A later buffer of this name is told of what the earlier one had.
    client.add("buffer:*a*#1.2", "x");
    let opened = open(&mut client, ":buffer \"*a*\" :number \"2.1\"");
    assert_eq!(opened["elsewhere"][0]["manager"], "buffer:*a*#1.2");
    assert_eq!(opened["elsewhere"][0]["label"], "buffer *a*");
    let error = client.fails("open-layers", "(:buffer \"*a*\")");
    assert_eq!(error.param(), "number");
    client.end();
}

#[test]
fn the_items_of_a_buffer_go_along_to_the_file_that_it_gets() {
    let home = Home::new();
    let root = repository(&home, "app");
    let mut client = home.stdio(&[]);
    let buffer = ":buffer \"*a*\" :number \"1.2\"";
    open(&mut client, &format!(":root {root:?} {buffer}"));
    client.add("buffer:*a*#1.2", "x");
    let saved = format!(":root {root:?} :filename \"{root}/a.rs\" {buffer}");
    let opened = open(&mut client, &saved);
    let taken = &opened["taken_over"][0];
    assert_eq!((&taken["manager"], &taken["layer"]), (&"buffer:*a*#1.2".into(), &"file".into()));
    let file = manager(&opened, "file");
    assert_eq!(client.contents(&file), ["x"]);
    assert_eq!(layer(&opened, "buffer"), &Json::Null);
    assert!(is_nil(&open(&mut client, &saved)["taken_over"]), "it is told once");
    // The change of before can still be undone.
    client.ok("undo", &format!("(:manager {file:?})"));
    assert!(client.contents(&file).is_empty());
    client.end();
}

#[test]
fn a_project_is_its_folder_and_its_remote() {
    let home = Home::new();
    let root = repository(&home, "app");
    let mut client = home.stdio(&[]);
    let opened = open_file(&mut client, &root, "NEWS");
    let (project, file) = (manager(&opened, "project"), manager(&opened, "file"));
    client.add(&project, "one");
    client.add(&file, "two");
    client.ok("open-session", &format!("(:name \"s\" :managers ({project:?} {file:?}))"));
    client.ok("open-session", &format!("(:name \"t\" :manager {project:?})"));
    // A remote is added: the context follows, with what can be undone.
    git(Path::new(&root), &["remote", "add", "origin", "git@Example.org:o/app.git"]);
    let opened = open_file(&mut client, &root, "NEWS");
    assert_eq!(manager(&opened, "project"), format!("project:{root}//example.org/o/app"));
    assert_eq!(manager(&opened, "file"), format!("file:{root}/NEWS//example.org/o/app"));
    assert_eq!(layer(&opened, "project")["items"], 1);
    let taken: Vec<_> = opened["taken_over"].as_array().unwrap().iter().collect();
    assert_eq!((taken[0]["manager"].as_str(), taken.len()), (Some(&*project), 2));
    let (project, file) = (manager(&opened, "project"), manager(&opened, "file"));
    let session = client.ok("open-session", "(:name \"s\")");
    assert_eq!(session["managers"][0], project.as_str());
    assert_eq!(session["managers"][1], file.as_str());
    assert_eq!(client.ok("open-session", "(:name \"t\")")["manager"], project.as_str());
    client.end();
    let mut client = home.stdio(&[]);
    assert_eq!(client.contents(&project), ["one"]);
    assert_eq!(client.ok("undo", &format!("(:manager {project:?})"))["count"], 0);
    client.add(&project, "three");
    // Told once.
    assert!(is_nil(&open_file(&mut client, &root, "NEWS")["taken_over"]));
    // With another remote it is another project; the list says where the rest is.
    git(Path::new(&root), &["remote", "set-url", "origin", "https://example.org/other/app"]);
    let opened = open_file(&mut client, &root, "NEWS");
    assert_eq!(layer(&opened, "project")["items"], 0);
    let elsewhere = opened["elsewhere"].as_array().unwrap();
    assert_eq!(elsewhere[0]["manager"], project.as_str());
    assert_eq!(
        (&elsewhere[0]["label"], &elsewhere[0]["items"]),
        (&"project app".into(), &1.into())
    );
    client.end();
}

#[test]
fn worktrees_submodules_and_links_have_true_names() {
    let home = Home::new();
    let root = repository(&home, "app");
    let library = repository(&home, "lib");
    git(Path::new(&root), &["remote", "add", "origin", "https://example.org/o/app"]);
    let top = home.file("").canonicalize().unwrap();
    let top = top.to_str().unwrap().trim_end_matches('/').to_owned();
    git(Path::new(&root), &["worktree", "add", "-q", &format!("{top}/tree")]);
    git(Path::new(&root), &["submodule", "--quiet", "add", &library, "sub"]);
    symlink(&root, home.file("link")).unwrap();
    let mut client = home.stdio(&[]);
    let mut project =
        |root: &str| manager(&open(&mut client, &format!(":root {root:?}")), "project");
    assert_eq!(project(&format!("{top}/tree")), format!("project:{top}/tree//example.org/o/app"));
    assert_eq!(project(&format!("{root}/sub/")), format!("project:{root}/sub//{library}"));
    assert_eq!(project(&format!("{top}/link")), format!("project:{root}//example.org/o/app"));
    let opened = open_file(&mut client, &format!("{top}/link"), "new.rs");
    assert_eq!(layer(&opened, "file")["label"], "file new.rs");
    // A folder's project is found, too.
    fs::create_dir(format!("{root}/src")).unwrap();
    let opened = open(&mut client, &format!(":directory \"{root}/src\""));
    assert_eq!(manager(&opened, "project"), format!("project:{root}//example.org/o/app"));
    client.end();
}

#[test]
fn places_on_other_machines_are_names_only() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let opened = open_file(&mut client, "/ssh:me@host:/srv/app", "a.rs");
    assert_eq!(manager(&opened, "project"), "project:/ssh:me@host:/srv/app/");
    assert_eq!(manager(&opened, "file"), "file:/ssh:me@host:/srv/app/a.rs");
    assert_eq!(layer(&opened, "file")["label"], "file a.rs");
    let opened = open(&mut client, ":directory \"/ssh:host:/srv//x/\"");
    assert_eq!(manager(&opened, "project"), "project:/ssh:host:/srv/x/");
    let opened = open(&mut client, ":directory \"http://host/x/\"");
    assert_eq!(manager(&opened, "project"), "project:/http:/host/x/");
    let long = "x".repeat(1100);
    let error = client.fails("open-layers", &format!("(:filename \"/{long}\")"));
    assert_eq!(error.param(), "filename");
    client.end();
}

#[test]
fn a_folder_is_the_same_project_however_it_is_named() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let (plain, repository) = (home.file("").canonicalize().unwrap(), repository(&home, "app"));
    for folder in [plain.to_str().unwrap().trim_end_matches('/'), &repository] {
        let opened =
            ["root", "directory"].map(|it| open(&mut client, &format!(":{it} {folder:?}")));
        let [of_root, of_directory] = [0, 1].map(|it| manager(&opened[it], "project"));
        assert_eq!(of_root, of_directory, "{folder}");
        assert_eq!(opened[0]["root"], folder);
        client.add(&of_root, "marked");
        // A conversation of the project shows what was marked there.
        client.ok("open-session", &format!("(:name {folder:?} :project {folder:?})"));
        client.ok("add-message", "(:role :user :content \"question\")");
        let window = client.ok("build-window", "nil");
        assert!(window["parts"][0]["content"].as_str().unwrap().contains("marked"), "{window}");
    }
    client.end();
}

#[test]
fn a_relative_name_is_no_place() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    for params in [":root \"app\"", ":directory \"app\"", ":filename \"a.rs\"", ":root \"~you/x\""]
    {
        let error = client.fails("open-layers", &format!("({params})"));
        assert_eq!(error.kind(), "not-absolute", "{params}: {}", error.message);
    }
}

#[test]
fn items_move_between_layers_and_back() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let add = |client: &mut Client, manager: &str, content: &str| client.add(manager, content);
    add(&mut client, "a", "1");
    let id = add(&mut client, "a", "2");
    add(&mut client, "b", "3");
    let moved = client.ok("move-items", &format!("(:id {id:?} :manager \"a\" :into \"b\")"));
    assert_eq!((&moved["ids"][1], &moved["count"]), (&id.as_str().into(), &2.into()));
    assert_eq!(moved["manager"], "b");
    assert_eq!(client.contents("a"), ["1"]);
    assert_eq!(client.contents("b"), ["3", "2"]);
    // From either side.
    client.ok("undo", "(:manager \"b\")");
    assert_eq!((client.contents("a").len(), client.contents("b").len()), (2, 1));
    client.ok("move-items", &format!("(:ids ({id:?}) :manager \"a\" :into \"b\")"));
    client.ok("undo", "(:manager \"a\")");
    assert_eq!((client.contents("a").len(), client.contents("b").len()), (2, 1));
    // After another change there, too, and that one can still be undone.
    client.ok("move-items", &format!("(:ids ({id:?}) :manager \"a\" :into \"b\")"));
    add(&mut client, "b", "4");
    client.ok("undo", "(:manager \"a\")");
    assert_eq!(client.contents("a"), ["1", "2"]);
    assert_eq!(client.contents("b"), ["3", "4"]);
    client.ok("undo", "(:manager \"b\")");
    assert_eq!((client.contents("a"), client.contents("b").len()), (vec!["1".to_owned()], 3));
    let error = client.fails("move-items", &format!("(:id {id:?} :into \"*shared*\")"));
    assert_eq!(error.param(), "into");
    client.end();
    let mut client = home.stdio(&[]);
    assert_eq!(client.contents("b").len(), 3);
    client.end();
}

#[test]
fn several_managers_are_sent_in_their_order_without_repeats() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    mark(&mut client, "special", "new", "/p/a.rs", None);
    mark(&mut client, "general", "old", "/p/a.rs", None);
    client.add("general", "note");
    client.add("middle", "more");
    client.add("special", "note");
    let layers = "(:managers (\"general\" \"middle\" \"special\"))";
    let items = client.ok("list-items", layers);
    let shown = |item: &Json| (item["content"].clone(), item["manager"].clone());
    let shown: Vec<_> = items.as_array().unwrap().iter().map(shown).collect();
    let pair = |content: &str, manager: &str| (Json::from(content), Json::from(manager));
    assert_eq!(shown, [pair("more", "middle"), pair("new", "special"), pair("note", "special")]);
    assert_eq!(client.ok("list-items", &layers.replace("(:", "(:count-only t :"))["count"], 3);
    let text = client.ok("context-to-string", layers);
    let text = text.as_str().unwrap();
    assert!(text.find("more") < text.find("new") && text.matches("note").count() == 1, "{text}");
    assert!(!text.contains("old"));
    let rendered = client.ok("render-items", layers);
    assert_eq!(rendered["report"].as_array().unwrap().len(), 3);
    // The oldest is left out first, whichever layer has it.
    let tokens = rendered["tokens"].as_u64().unwrap() - 1;
    let params = "(:managers (\"middle\" \"special\" \"first\") :max-tokens ";
    client.add("first", "older than all of them");
    let fitted = client.ok("render-items", &format!("{params}{tokens})"));
    assert_eq!(fitted["report"].as_array().unwrap().len(), 4);
    client.end();
}

#[test]
fn windows_show_the_layers_of_their_session() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.add("project:/p/", "of the project");
    client.add("other", "of another");
    client.ok("open-session", "(:name \"s\" :managers (\"*shared*\" \"project:/p/\"))");
    let own = client.ok("list-sessions", "(:current t)")[0]["manager"].as_str().unwrap().to_owned();
    client.add(&own, "only here");
    client.ok("add-message", "(:role :user :content \"question\")");
    let mut window = |params: &str| {
        let window = client.ok("build-window", params);
        let parts = window["parts"].as_array().unwrap().iter();
        parts.map(|part| part["content"].as_str().unwrap().to_owned()).collect::<String>()
    };
    let text = window("nil");
    assert!(text.find("of the project") < text.find("only here"), "{text}");
    assert!(text.contains("of the project") && !text.contains("of another"), "{text}");
    let text = window("(:managers (\"other\"))");
    assert!(text.contains("of another") && !text.contains("only here"), "{text}");
    assert!(!window("(:items nil)").contains("only here"));
    client.ok("configure-session", "(:session \"s\" :managers (\"other\"))");
    let row = client.ok("list-sessions", "(:current t)")[0].clone();
    assert_eq!((&row["managers"][0], &row["managers"][1]), (&"other".into(), &own.as_str().into()));
    let fork = client.ok("open-session", "(:fork-of \"s\")");
    assert_eq!(fork["managers"][0], "other");
    client.end();
}
