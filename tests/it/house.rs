//! The rules of the house, as far as a program can read them off the sources.

use std::path::{Path, PathBuf};

/// Stands for all modules of the table.
const EVERY: &[&str] = &["*"];

/// Which top-level module may name which others. A module may always name itself.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("main", &[]),
    // What tests and benchmarks use beside the library: any module of this table.
    ("internals", EVERY),
    (
        "cli",
        &[
            "agent",
            "config",
            "context",
            "curation",
            "dashboard",
            "engine",
            "files",
            "hub",
            "ids",
            "mcp",
            "provider",
            "recorded",
            "rpc",
            "server",
            "session",
            "store",
            "sync",
            "system",
            "tokens",
            "value",
            "visible",
            "whole_file",
            "web",
            "wording",
        ],
    ),
    // A client of the wire: knows methods by their names only.
    ("mcp", &["files", "server", "tokens", "visible", "web", "wording"]),
    // Another client of the wire, which uses the connection of the first.
    ("dashboard", &["mcp", "server", "web"]),
    ("web", &["server"]),
    // The library is all of it put together without a wire.
    (
        "conversation",
        &[
            "agent", "context", "curation", "engine", "files", "ids", "provider", "session",
            "store", "tokens", "value", "visible",
        ],
    ),
    (
        "config",
        &[
            "agent",
            "context",
            "files",
            "provider",
            "store",
            "hub",
            "tokens",
            "wire",
            "visible",
            "whole_file",
        ],
    ),
    (
        "server",
        &[
            "agent",
            "engine",
            "ids",
            "repl",
            "rpc",
            "store",
            "system",
            "value",
            "wire",
            "visible",
            "whole_file",
        ],
    ),
    // What is typed becomes calls of methods, by their names.
    ("repl", &["rpc", "value", "wire", "visible"]),
    (
        "rpc",
        &[
            "agent",
            "context",
            "curation",
            "engine",
            "files",
            "hub",
            "ids",
            "memory",
            "names",
            "provider",
            "recorded",
            "retrieval",
            "session",
            "store",
            "sync",
            "template",
            "tokens",
            "value",
            "wire",
            "visible",
            "wording",
        ],
    ),
    // Turns with models: no method, no wire and no connection.
    (
        "agent",
        &[
            "context", "curation", "engine", "files", "ids", "names", "provider", "session",
            "store", "template", "tokens", "value", "visible", "wording",
        ],
    ),
    (
        "engine",
        &[
            "context", "curation", "ids", "memory", "names", "session", "store", "sync", "tokens",
            "value", "wording",
        ],
    ),
    // Metadata are stored as the s-expressions that clients send.
    ("store", &["context", "memory", "retrieval", "session", "value", "visible", "whole_file"]),
    ("files", &["context", "names", "system", "template", "value", "visible", "whole_file"]),
    ("provider", &["names", "session", "tokens", "visible", "whole_file"]),
    ("wire", &["names", "value", "visible", "wording"]),
    // The modules of the pure crate. They have no other: the compiler sees to that.
    ("context", &["ids", "names", "tokens", "visible", "wording"]),
    ("curation", &["ids", "names", "retrieval", "session", "tokens", "visible", "wording"]),
    ("memory", &["names", "retrieval"]),
    ("recorded", &["names", "session"]),
    ("session", &["names"]),
    ("sync", &["context", "session", "visible", "whole_file"]),
    // What people share by a database that others run.
    ("hub", &["files", "provider", "session", "sync", "visible", "whole_file"]),
    ("retrieval", &[]),
    ("system", &[]),
    ("testing", &[]),
    ("template", &[]),
    ("ids", &[]),
    ("names", &[]),
    ("visible", &[]),
    ("whole_file", &["system"]),
    ("wording", &[]),
    ("tokens", &["names"]),
];

/// Crates that a module of the program names as if they were modules.
const CRATES: &[&str] = &["value"];

/// Crates without files, sockets, threads and clocks; and what a file of them has all the same.
const PURE: &[&str] = &["core", "value"];
const IMPURE: &[&str] =
    &["std::fs", "std::net", "std::thread", "std::time", "std::process", "std::env", "jiff"];
/// Long texts are counted on several threads; the sum does not depend on their order. The time of a
/// snapshot is written as a date, and those of recordings are read, which asks no clock.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/core/src/tokens/bpe.rs", "std::thread"),
    ("crates/core/src/context/render/mod.rs", "jiff"),
    ("crates/core/src/recorded/time.rs", "jiff"),
];

/// Maximum length of a file outside tests, in lines.
const MAX_LINES: usize = 400;

pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The sources of the program and of the crates beside it.
pub(crate) fn sources() -> Vec<Source> {
    let of_crates = sources_in("crates").into_iter().filter(|it| it.name.contains("/src/"));
    let found: Vec<Source> = sources_in("src").into_iter().chain(of_crates).collect();
    assert!(found.len() > 50);
    found
}

fn sources_in(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push(Source { name, text: std::fs::read_to_string(path).unwrap() });
            }
        }
    }
    found
}

impl Source {
    pub(crate) fn is_test(&self) -> bool {
        self.name.ends_with("tests.rs") || self.name.ends_with("testing.rs")
    }

    /// The crate, and the path in its sources: `crates/core/src/ids.rs` is `ids.rs` of `core`. The
    /// crate of the program has the name `""`.
    pub(crate) fn place(&self) -> (&str, &str) {
        let inside = self.name.strip_prefix("crates/").unwrap_or(&self.name);
        let (name, path) = inside.split_once("src/").unwrap();
        (name.trim_end_matches('/'), path)
    }

    /// The top-level module: `src/rpc/call.rs` is in `rpc`. A crate apart that has no such modules
    /// of its own is one.
    fn module(&self) -> &str {
        match self.place() {
            ("" | "core" | "conversation", path) => path.split(['/', '.']).next().unwrap(),
            (name, _) => name,
        }
    }

    /// The lines of code outside of tests, without comments.
    pub(crate) fn code(&self) -> impl Iterator<Item = &str> {
        let end = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        let end = if self.is_test() { 0 } else { end };
        self.text[..end].lines().map(|line| match line.trim_start().starts_with("//") {
            true => "",
            false => line,
        })
    }

    /// The top-level modules that the code names.
    fn named(&self) -> Vec<String> {
        let mut named = Vec::new();
        for line in self.code() {
            for (at, _) in line.match_indices("crate::") {
                let rest = &line[at + "crate::".len()..];
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                named.push(rest[..end.unwrap_or(rest.len())].to_owned());
            }
        }
        named
    }
}

/// The test kit is for any package: its files name Contexture only as who made them and where.
#[test]
fn the_test_kit_knows_nothing_of_contexture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("elisp");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("llm-ert") || !name.ends_with(".el") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("SPDX-License-Identifier: GPL-3.0-or-later"), "{name}: no licence");
        let made_by = [";; Copyright", ";; Author:", ";; URL:"];
        for line in text.lines().filter(|line| !made_by.iter().any(|part| line.starts_with(part))) {
            assert!(!line.to_lowercase().contains("contexture"), "{name}: {line}");
        }
    }
    assert!(files > 3, "the kit has only {files} files");
}

/// A path goes into a message through `visible`, which shows what hides in its name.
#[test]
fn no_path_is_shown_as_it_is() {
    let shows = |source: &Source| source.code().any(|line| line.contains(".display()"));
    let wrong: Vec<_> = sources().into_iter().filter(shows).map(|source| source.name).collect();
    assert!(wrong.is_empty(), "use visible_path in {wrong:?}");
}

/// Kinds of which each is one file, and a line of the file that names them all.
const KINDS: [(&str, &str); 2] = [
    ("Family", "crates/conversation/src/provider/family/mod.rs"),
    ("Dialect", "src/wire/dialect/mod.rs"),
];

/// What differs between the kinds is a fact of each. Whoever adds one need not look for comparisons.
#[test]
fn kinds_are_told_apart_in_one_place() {
    let all = sources();
    let tells_apart = |line: &str, kind: &str| {
        let compares = ["== ", "!= "].iter().any(|sign| line.contains(&format!("{sign}{kind}::")));
        let decides = line.contains("=>") || line.contains("matches!(");
        let is_named = line.match_indices(kind).any(|(at, _)| {
            !line[..at].ends_with(char::is_alphanumeric)
                && line[at + kind.len()..].starts_with("::")
        });
        compares || (decides && is_named)
    };
    for (kind, place) in KINDS {
        assert!(all.iter().any(|source| source.name == place), "{place}");
        let tells = |it: &&Source| it.code().any(|line| tells_apart(line, kind));
        let others = all.iter().filter(|it| it.name != place).filter(tells);
        let wrong: Vec<_> = others.map(|it| &it.name).collect();
        assert!(wrong.is_empty(), "make a fact of each {kind} of what differs in {wrong:?}");
    }
}

/// Modules that open files of the program, not files that others name: their own state. Files that the
/// user names on the command line or in the configuration are opened by `whole_file`.
const OPENERS: [&str; 6] = ["cli", "hub", "store", "sync", "system", "whole_file"];

/// A file that others name may be a pipe, a device or endless. One function opens it, which waits for
/// nothing and reads no more than it was told to.
#[test]
fn files_that_others_name_are_opened_in_one_place() {
    let ways = ["fs::read(", "read_to_string(", "File::open(", "OpenOptions::new("];
    let names = ["src/server/auth.rs", "crates/map/src/kept.rs"];
    let opens =
        |source: &Source| source.code().any(|line| ways.iter().any(|way| line.contains(way)));
    let is_named = |source: &Source| names.contains(&&*source.name);
    let others = |source: &Source| !OPENERS.contains(&source.module()) && !is_named(source);
    let all = sources();
    let wrong: Vec<_> =
        all.iter().filter(|it| others(it) && opens(it)).map(|it| &it.name).collect();
    assert!(wrong.is_empty(), "use files::load in {wrong:?}");
    assert!(all.iter().filter(|it| is_named(it)).all(opens), "{names:?}");
}

impl Source {
    /// Returns the functions that call themselves, outside of tests.
    fn recursive(&self) -> Vec<&str> {
        let code = self.text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let body = |(at, found): (usize, &str)| {
            let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
            let indent = code[line..].len() - code[line..].trim_start().len();
            let name = code[at + found.len()..].split(|c: char| !c.is_alphanumeric() && c != '_');
            let end = format!("\n{}}}", &code[line..line + indent]);
            let (head, inner) = code[at..].split_once('{')?;
            Some((name.into_iter().next()?, head.contains("self"), inner.split(&end).next()?))
        };
        let calls = |(name, is_method, inner): &(&str, bool, &str)| {
            let part_of_a_name = |c: char| c.is_alphanumeric() || "_.:".contains(c);
            inner.match_indices(&format!("{name}(")).any(|(at, _)| match &inner[..at] {
                before if *is_method => before.ends_with("self."),
                before => before.ends_with("Self::") || !before.ends_with(part_of_a_name),
            })
        };
        let all = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with('"'));
        all.filter_map(body).filter(calls).map(|(name, ..)| name).collect()
    }
}

/// A text that others wrote may have any depth, and the stack is small: whoever reads it may not call
/// itself for each level. The crate of values counts its levels.
#[test]
fn readers_of_what_others_wrote_do_not_call_themselves() {
    let reads = |source: &&Source| {
        let is_reader = source.name.contains("/recorded/") || source.place().0 == "map";
        is_reader && !source.name.contains("/tests")
    };
    let all = sources();
    for source in all.iter().filter(reads) {
        assert!(source.recursive().is_empty(), "{}: {:?}", source.name, source.recursive());
    }
    let known = all.iter().find(|it| it.name.ends_with("files/listing.rs")).unwrap();
    assert_eq!(known.recursive(), ["print_below"], "the rule finds those that do");
}

#[test]
fn modules_name_only_what_they_may() {
    let mut wrong = Vec::new();
    for source in sources() {
        let module = source.module();
        if module == "lib" || !["", "core", "conversation"].contains(&source.place().0) {
            continue;
        }
        let allowed = MAY_NAME.iter().find(|(name, _)| *name == module);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{module} is not in the table"));
        for named in source.named() {
            assert!(!named.is_empty(), "{}: name the modules one by one", source.name);
            let may = match allowed {
                ["*"] => {
                    MAY_NAME.iter().any(|(known, _)| *known == named) || CRATES.contains(&&*named)
                }
                allowed => allowed.contains(&named.as_str()),
            };
            if named != module && !may {
                wrong.push(format!("{} names {named}", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_engine_and_the_server_know_no_concrete_store() {
    for source in
        sources().iter().filter(|s| ["agent", "engine", "rpc", "server"].contains(&s.module()))
    {
        let named = source.code().any(|line| line.contains("sqlite") || line.contains("rusqlite"));
        assert!(!named, "{} names the concrete store", source.name);
    }
}

#[test]
fn pure_crates_have_no_files_sockets_threads_or_clocks() {
    for source in sources().iter().filter(|source| PURE.contains(&source.place().0)) {
        for line in source.code() {
            for impure in IMPURE {
                let excepted = EXCEPTIONS.contains(&(source.name.as_str(), impure));
                assert!(!line.contains(impure) || excepted, "{}: {line}", source.name);
            }
        }
    }
}

#[test]
fn every_source_begins_with_what_it_is_for() {
    for source in sources() {
        assert!(source.text.starts_with("//! "), "{}", source.name);
    }
}

#[test]
fn the_sources_hold_nothing_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src"), root.join("crates/conversation/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let known = [".css", ".html", ".js", ".md", ".rs", ".sql", ".txt", ".zst"]
                .iter()
                .any(|end| name.ends_with(end));
            match path.is_dir() {
                true => folders.push(path),
                false => assert!(known && !name.starts_with(['.', '#']), "{}", path.display()),
            }
        }
    }
}

#[test]
fn no_source_is_too_long() {
    for source in sources().iter().filter(|source| !source.is_test()) {
        let lines = source.text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", source.name);
    }
}

#[test]
fn sources_that_the_rules_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_source = |text: &&str| text.ends_with(".rs") && text.contains("src/");
    for named in include_str!("house.rs").split('"').filter(is_source) {
        assert!(root.join(named).exists(), "{named} is named and does not exist");
    }
}

/// The packages that the lock file of a package says Contexture needs.
fn locked(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let lock: toml::Table = text.parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let ours = packages.iter().find(|it| it["name"].as_str() == Some("contexture")).unwrap();
    let needed = ours["dependencies"].as_array().unwrap().iter();
    // A version is there only if the lock file has several of a package.
    needed.map(|name| name.as_str().unwrap().split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn the_fuzz_package_locks_what_the_program_needs() {
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap();
    let (fuzzed, ours) = (locked("fuzz/Cargo.lock"), locked("Cargo.lock"));
    for (name, needed) in manifest["dependencies"].as_table().unwrap() {
        let name = needed.get("package").and_then(|package| package.as_str()).unwrap_or(name);
        assert!(
            fuzzed.iter().any(|it| it == name),
            "fuzz/Cargo.lock lacks {name}: run `cargo check` in fuzz"
        );
    }
    for name in fuzzed {
        assert!(ours.contains(&name), "fuzz/Cargo.lock has {name}: run `cargo check` in fuzz");
    }
}

#[test]
fn standard_output_belongs_to_the_wire() {
    for source in sources() {
        for line in source.code() {
            for print in ["println!", "print!(", "dbg!"] {
                assert!(!line.contains(print), "{}: {line}", source.name);
            }
        }
        let writes = source.code().any(|line| line.contains("stdout()"));
        let may = ["src/cli/mod.rs", "src/cli/acp/mod.rs", "src/server/stdio.rs"];
        let may = may.contains(&source.name.as_str());
        assert!(!writes || may, "{} writes to stdout", source.name);
    }
}

/// Words that turn the beginning of a doc comment into a clause ("What …", "Of how many …"). A doc
/// comment should begin with a verb or a noun instead.
const CLAUSE_WORDS: &[&str] = &[
    "after", "as", "before", "below", "beyond", "by", "from", "how", "if", "nor", "of", "than",
    "that", "to", "under", "until", "what", "when", "where", "whether", "which", "while", "who",
    "whom", "whose", "why", "with",
];

/// Modules whose doc comments may begin with a clause word only as rarely as
/// [`MAX_CLAUSE_PERCENT`] says. Add a module once its comments are rewritten.
const PLAIN_MODULES: &[&str] = &[
    "agent",
    "cli",
    "config",
    "context",
    "conversation",
    "curation",
    "dashboard",
    "engine",
    "files",
    "ids",
    "mcp",
    "memory",
    "names",
    "provider",
    "recorded",
    "repl",
    "retrieval",
    "server",
    "session",
    "store",
    "system",
    "template",
    "tokens",
    "value",
    "visible",
    "web",
    "wire",
];
const MAX_CLAUSE_PERCENT: usize = 8;

impl Source {
    /// The first word of each doc comment, in lower case. Comments that begin with code have none.
    fn first_words_of_docs(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut before = "";
        for line in self.text.lines().map(str::trim_start) {
            let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker));
            let marker = marker.unwrap_or("");
            if !marker.is_empty() && marker != before {
                let text = line[marker.len()..].trim_start_matches([' ', '[', '*', '(', '"']);
                let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
                words.push(text[..end].to_lowercase());
            }
            before = marker;
        }
        words
    }
}

/// Counts the doc comments that begin with a clause word, and all doc comments.
fn clauses<'a>(sources: impl Iterator<Item = &'a Source>) -> (usize, usize) {
    let words: Vec<String> = sources.flat_map(Source::first_words_of_docs).collect();
    (words.iter().filter(|word| CLAUSE_WORDS.contains(&word.as_str())).count(), words.len())
}

#[test]
fn doc_comments_begin_with_verbs_or_nouns() {
    let sources = sources();
    for module in PLAIN_MODULES {
        let (clauses, all) = clauses(sources.iter().filter(|source| source.module() == *module));
        assert!(all > 0, "there is no module {module}");
        let message = format!("{clauses} of {all} doc comments in {module} begin with a clause");
        assert!(clauses * 100 <= all * MAX_CLAUSE_PERCENT, "{message}");
    }
    let (clauses, all) = clauses(sources.iter());
    let message = format!("{clauses} of {all} doc comments begin with a clause");
    assert!(clauses * 100 <= all * MAX_CLAUSE_PERCENT, "{message}");
}
