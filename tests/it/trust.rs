//! Projects that somebody else wrote: nothing in them counts before the user trusts them, and then
//! nothing in them can end the server or lead out.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::*;

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// A repository whose templates are as hostile as they can be, and the names of those.
fn hostile(home: &Home) -> (PathBuf, Vec<String>) {
    let project = home.path("home/hostile");
    let own = project.join(".contexture/templates");
    fs::create_dir_all(&own).unwrap();
    clone(&project, "https://example.org/theirs.git");
    fs::write(home.path("home/secret"), "the secret").unwrap();
    let deep =
        |before: &str, piece: &str, after: &str| format!("{before}{}{after}", piece.repeat(10_000));
    let written = [
        ("minus", deep("{{ ", "-", "a }}")),
        ("dots", deep("{{ a", ".b", " }}")),
        ("indexes", deep("{{ a", "[0]", " }}")),
        ("not", deep("{{ ", "not ", "a }}")),
        ("and", deep("{{ a", " and a", " }}")),
        ("filters", deep("{{ a", "|upper", " }}")),
        ("elif", deep("{% if a %}", "{% elif a %}", "{% endif %}")),
        ("brackets", deep("{{ ", "(", "a }}")),
        ("blocks", deep("", "{% if a %}", "x")),
        ("loops", deep("", "{% for a in b %}", "x")),
        ("lists", deep("{{ ", "[", "]")),
        ("dictionaries", deep("{{ ", "{'a': ", "}")),
        ("slice", "{{ ''[::-1] }}".to_owned()),
        ("huge", "x".repeat(300_000)),
        ("front", format!("---\n{}", "description: x\n".repeat(10_000))),
    ];
    for (name, text) in &written {
        fs::write(own.join(format!("{name}.md")), text).unwrap();
    }
    fs::write(own.join("bytes.md"), b"\xff\xfe").unwrap();
    fs::create_dir(own.join("folder.md")).unwrap();
    for (target, name) in [
        ("/dev/zero", "device"),
        ("../../../secret", "link"),
        ("link.md", "links"),
        ("loop.md", "loop"),
        ("/proc/self/environ", "proc"),
    ] {
        symlink(target, own.join(format!("{name}.md"))).unwrap();
    }
    let fifo = own.join("fifo.md");
    make_fifo(&fifo);
    let mut names: Vec<String> = written.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.extend(
        ["bytes", "folder", "device", "link", "links", "loop", "proc", "fifo"].map(str::to_owned),
    );
    names.sort();
    (project, names)
}

/// Makes a folder look like a clone.
fn clone(project: &Path, url: &str) {
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::write(project.join(".git/config"), format!("[remote \"origin\"]\n\turl = {url}\n"))
        .unwrap();
}

/// A project with a template of its own, and one of the name of a built-in one.
fn project(home: &Home) -> PathBuf {
    let project = home.path("home/project");
    let own = project.join(".contexture/templates");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("ours.md"), "Ours: {{ code }}").unwrap();
    fs::write(own.join("explain.md"), "Explain as we do: {{ code }}").unwrap();
    clone(&project, "https://me:password@example.org/ours.git");
    project
}

fn params(project: &Path) -> String {
    format!("(:project {project:?})")
}

/// The names of the project's templates that are listed, with whether they count.
fn listed(client: &mut Client, project: &Path) -> Vec<(String, bool)> {
    let rows = client.ok("list-templates", &params(project));
    let rows = rows.as_array().unwrap().iter().filter(|row| text(&row["source"]) == "project");
    rows.map(|row| (text(&row["name"]).to_owned(), row["trusted"] == true)).collect()
}

#[test]
fn a_hostile_repository_neither_counts_nor_ends_the_server() {
    let home = Home::new();
    let (project, names) = hostile(&home);
    let mut client = home.stdio(&[]);
    let untrusted: Vec<(String, bool)> = names.iter().map(|name| (name.clone(), false)).collect();
    assert_eq!(listed(&mut client, &project), untrusted);
    let resolve = |name: &str| format!("(:name {name:?} :project {project:?} :values (:a \"x\"))");
    for name in &names {
        assert_eq!(client.fails("list-templates", &resolve(name)).kind(), "template-untrusted");
    }
    // Also when somebody was careless, nothing of it does harm.
    client.ok("trust-project", &params(&project));
    let rows = client.ok("list-templates", &params(&project));
    for row in rows.as_array().unwrap().iter().filter(|row| text(&row["source"]) == "project") {
        assert!(!text(&row["error"]).is_empty(), "{row}");
        assert!(!row.to_string().contains("the secret"), "{row}");
    }
    for name in &names {
        let kind = client.fails("list-templates", &resolve(name)).kind().to_owned();
        assert!(["template-unreadable", "template-malformed"].contains(&&*kind), "{name}: {kind}");
        let open = format!("(:name \"s\" :project {project:?} :template {name:?})");
        client.fails("open-session", &open);
    }
    assert_eq!(client.ok("ping", "nil"), "pong");
}

#[test]
fn a_session_is_opened_with_the_templates_of_its_own_project() {
    let home = Home::new();
    let project = project(&home);
    let mut client = home.stdio(&[]);
    client.ok("trust-project", &params(&project));
    client.ok("open-session", "(:name \"elsewhere\")");
    client.ok("open-session", &format!("(:name \"here\" :project {project:?})"));
    let elsewhere = format!("(:name \"elsewhere\" :project {project:?} :template \"ours\")");
    assert_eq!(client.fails("open-session", &elsewhere).kind(), "no-such-template");
    client.ok("open-session", "(:name \"here\" :project \"/elsewhere\" :template \"ours\")");
    // A new session does not belong to the project of the current one.
    assert_eq!(client.fails("open-session", "(:template \"ours\")").kind(), "no-such-template");
}

#[test]
fn a_projects_templates_count_from_its_trust_to_its_revocation() {
    let home = Home::new();
    let project = project(&home);
    let mut client = home.stdio(&[]);
    let named = |name: &str| format!("(:name {name:?} :project {project:?})");
    let counts = |names: bool| vec![("explain".to_owned(), names), ("ours".to_owned(), names)];
    assert_eq!(listed(&mut client, &project), counts(false));
    assert_eq!(client.ok("list-templates", &named("explain"))["source"], "built-in");
    let failure = client.fails("list-templates", &named("ours"));
    assert_eq!(failure.kind(), "template-untrusted");
    assert!(failure.message.contains("M-x contexture-trust-project"), "{}", failure.message);
    let open = format!("(:name \"s\" :project {project:?} :template \"ours\")");
    assert_eq!(client.fails("open-session", &open).kind(), "template-untrusted");
    let trusted = client.ok("trust-project", &params(&project));
    assert_eq!(trusted["templates"].to_string(), r#"["explain","ours"]"#);
    assert_eq!(trusted["remote"], "https://example.org/ours.git", "without the password");
    assert_eq!(listed(&mut client, &project), counts(true));
    let ours = client.ok("list-templates", &named("explain"));
    assert_eq!(ours["source"], "project");
    assert!(text(&ours["path"]).ends_with(".contexture/templates/explain.md"));
    client.ok("open-session", &open);
    // It is kept.
    client.ok("shutdown", "nil");
    let mut client = home.stdio(&[]);
    assert_eq!(listed(&mut client, &project), counts(true));
    let known = client.ok("trust-project", "nil");
    assert_eq!((known[0]["standing"].clone(), known.as_array().unwrap().len()), ("same".into(), 1));
    // Another repository at the same place is another project.
    clone(&project, "https://example.org/theirs.git");
    assert_eq!(listed(&mut client, &project), counts(false));
    assert_eq!(client.ok("trust-project", "nil")[0]["standing"], "other");
    clone(&project, "https://example.org/ours.git");
    assert_eq!(
        client.ok("trust-project", &format!("(:trusted :false {}", &params(&project)[1..]))["was_trusted"],
        true
    );
    assert_ne!(
        client.ok("trust-project", &format!("(:trusted :false {}", &params(&project)[1..]))["was_trusted"],
        true
    );
    assert_eq!(listed(&mut client, &project), counts(false));
}

#[test]
fn the_shell_trusts_with_a_server_and_without() {
    let home = Home::new();
    let folder = project(&home);
    let dir = folder.to_str().unwrap();
    assert_eq!(home.succeed(&["trust", "--list"]), "no project is trusted\n");
    let said = home.succeed(&["trust", dir]);
    let place = folder.canonicalize().unwrap();
    let place = place.display();
    let shown = format!(
        "{place} is trusted (https://example.org/ours.git); its templates explain, ours are used\n"
    );
    assert_eq!(said, shown);
    fs::remove_file(folder.join(".contexture/templates/explain.md")).unwrap();
    assert!(home.succeed(&["trust", dir]).ends_with("its template ours is used\n"));
    let report = home.succeed(&["doctor"]);
    assert!(
        report.contains(&format!("{place} (https://example.org/ours.git) is trusted")),
        "{report}"
    );
    let mut client = home.stdio(&[]);
    assert!(listed(&mut client, &folder).iter().all(|(_, counts)| *counts));
    assert_eq!(home.succeed(&["trust", "--revoke", dir]), format!("{dir} is no longer trusted\n"));
    assert!(listed(&mut client, &folder).iter().all(|(_, counts)| !*counts));
    assert_eq!(home.succeed(&["trust", "--revoke", dir]), format!("{dir} was not trusted\n"));
    home.succeed(&["trust", dir]);
    fs::write(folder.join(".git/config"), b"\xff").unwrap();
    for command in [&["trust", "--list"][..], &["doctor"]] {
        let shown = home.succeed(command);
        assert!(shown.contains("its Git remote has changed or cannot be read"), "{shown}");
    }
    let moved = home.path("home/moved");
    fs::rename(&folder, &moved).unwrap();
    assert!(listed(&mut client, &moved).iter().all(|(_, counts)| !*counts));
    let list = home.succeed(&["trust", "--list"]);
    assert!(list.contains("the folder is gone"), "{list}");
    assert!(home.succeed(&["doctor"]).contains("is gone; run contexture trust --revoke \""));
    assert!(home.fail(&["trust", "--ephemeral", dir]).contains("omit --ephemeral"));
    assert!(
        home.fail(&["trust", home.path("none").to_str().unwrap()])
            .ends_with("none\" does not exist; check the name\n")
    );
}

#[test]
fn nobody_trusts_over_tcp() {
    let home = Home::new();
    let project = project(&home);
    let server = home.listening(&[]);
    let mut client = server.tcp(Dialect::Native);
    for (method, given) in
        [("trust-project", params(&project)), ("trust-project", "nil".to_owned())]
    {
        assert_eq!(client.fails(method, &given).kind(), "not-allowed", "{method}");
    }
    assert!(listed(&mut client, &project).iter().all(|(_, counts)| !*counts));
    let mut local = server.unix(Dialect::Native);
    local.ok("trust-project", &params(&project));
    assert!(listed(&mut client, &project).iter().all(|(_, counts)| *counts));
}
