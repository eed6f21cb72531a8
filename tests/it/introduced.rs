//! What a client that introduces itself is told.

use crate::house::sources;
use crate::support::*;

#[test]
fn both_sides_say_who_they_are_and_what_they_can_do() {
    let home = Home::new();
    let mut client = home.ephemeral(&["--max-items", "77"]);
    let hello = "(:name \"probe\" :version \"2.1\" :protocol-versions (1 2) :capabilities (:x t))";
    let told = client.ok("initialize", hello);
    assert_eq!(told["protocol_version"], 1);
    assert_eq!(told["name"], "contexture");
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    let (name, version) = (&told["client"]["name"], &told["client"]["version"]);
    assert_eq!((name, version), (&"probe".into(), &"2.1".into()));
    assert_eq!(told["dialect"], "native");
    assert!(told["capabilities"].as_array().unwrap().contains(&"batch".into()));
    assert_eq!(told["limits"]["max_items"], 77);
    assert_eq!(told["limits"], client.ok("initialize", "nil")["limits"]);
}

#[test]
fn a_version_that_is_too_new_and_nothing_at_all_are_answered_alike() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    for hello in ["(:protocol-versions (99))", "nil", "(:protocol-versions [])"] {
        let told = client.ok("initialize", hello);
        assert_eq!(told["protocol_version"], 1, "{hello}");
        assert!(is_nil(&told["client"]["name"]), "{told}");
    }
    let error = client.fails("initialize", "(:protocol-versions \"1\")");
    assert_eq!(error.param(), "protocol-versions");
}

/// A number as the reference writes it.
fn shown(name: &str, limit: u64) -> String {
    let digits = limit.to_string();
    let groups: Vec<_> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    match limit {
        _ if !name.ends_with("bytes") => format!("| {} |", groups.join(",")),
        bytes if bytes.is_multiple_of(1 << 20) => format!("| {} MiB |", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("| {} KiB |", bytes >> 10),
        bytes => format!("| {bytes} bytes |"),
    }
}

/// The rows of the reference's table of limits, without its head.
fn rows() -> Vec<&'static str> {
    let page = include_str!("../../docs/protocol.md");
    let (_, section) = page.split_once("\n## Limits\n").unwrap();
    let (table, _) = section.split_once("\n## ").unwrap();
    table.lines().filter(|line| line.starts_with("| ")).skip(2).collect()
}

#[test]
fn the_reference_has_every_limit_with_its_name_and_value_and_no_other() {
    let home = Home::new();
    let limits = home.ephemeral(&[]).ok("initialize", "nil")["limits"].clone();
    let limits = limits.as_object().unwrap();
    let mut left: Vec<&String> = limits.keys().collect();
    for row in rows() {
        let column = row.trim_start_matches("| ").split(" | ").next().unwrap();
        let names: Vec<String> = column
            .split(", ")
            .map(|name| name.trim_matches(['`', ':']).replace('-', "_"))
            .collect();
        for name in names {
            let limit = limits.get(&name).unwrap_or_else(|| panic!("no limit {name:?}: {row}"));
            let limit = shown(&name, limit.as_u64().unwrap());
            assert!(row.contains(&limit), "{name} is {limit}, but the table says {row}");
            left.retain(|limit| **limit != name);
        }
    }
    assert!(left.is_empty(), "the table has no rows for {left:?}");
}

#[test]
fn the_manual_has_the_limits_of_sizes_with_their_values() {
    let home = Home::new();
    let limits = home.ephemeral(&[]).ok("initialize", "nil")["limits"].clone();
    let manual = include_str!("../../docs/contexture.texi");
    let rows = manual.lines().filter_map(|line| line.strip_prefix("@item ")?.strip_suffix("})"));
    let rows: Vec<_> = rows.filter_map(|row| row.split_once(" (@code{")).collect();
    let sizes = rows.iter().filter(|(_, name)| name.ends_with("-bytes"));
    assert_eq!(sizes.clone().count(), 2);
    for (row, name) in sizes {
        let limit = limits[name.replace('-', "_")].as_u64().unwrap();
        let limit = shown(name, limit);
        assert!(row.ends_with(limit.trim_matches(['|', ' '])), "{name} is {limit}, but: {row}");
    }
}

/// Constants that no call meets, or that end something a model or its server does wrong.
const NO_CLIENTS: &[&str] = &[
    "MAX_BLIND_FITTINGS",
    "MAX_CALLS_HEARD",
    "MAX_DESCRIPTION_BYTES",
    "MAX_FITTINGS",
    "MAX_NOTES_BYTES",
    "MAX_PROJECTS",
    "MAX_QUOTED_BYTES",
    "MAX_RECENT_BYTES",
    "MOST_SIGNALS",
];

#[test]
fn every_constant_limit_of_calls_and_turns_is_told() {
    let told = include_str!("../../src/rpc/server/limits.rs");
    let (_, told) = told.split_once("impl From").unwrap();
    let mut left = NO_CLIENTS.to_vec();
    for source in sources() {
        let called = ["src/rpc/", "crates/conversation/src/agent/"]
            .iter()
            .any(|room| source.name.starts_with(room));
        for name in source.code().filter(|_| called && !source.is_test()).filter_map(limit_of) {
            let is_told =
                told.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|it| it == name);
            assert!(is_told || NO_CLIENTS.contains(&name), "{} in {}", name, source.name);
            left.retain(|other| *other != name);
        }
    }
    assert!(left.is_empty(), "no constants any more: {left:?}");
}

/// The constant that a line defines, if its name says that it is a limit.
fn limit_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("const ")?;
    let (name, kind) = rest.split_once(": ")?;
    let is_limit = !kind.starts_with("Duration")
        && ["MAX", "MOST", "LONGEST", "SMALLEST"].contains(&name.split('_').next()?);
    is_limit.then_some(name)
}
