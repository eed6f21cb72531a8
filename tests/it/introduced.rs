//! What a client that introduces itself is told.

use crate::support::*;

#[test]
fn both_sides_say_who_they_are_and_what_they_can_do() {
    let home = Home::new();
    let mut client = home.ephemeral(&["--max-items", "77"]);
    let hello = "(:name \"probe\" :version \"2.1\" :protocol-versions (1 2) :capabilities (:x t))";
    let told = client.ok("initialize", hello);
    assert_eq!(told["protocol_version"], 1);
    assert_eq!(told["server"]["name"], "contexture");
    assert_eq!(told["server"]["version"], env!("CARGO_PKG_VERSION"));
    let (name, version) = (&told["client"]["name"], &told["client"]["version"]);
    assert_eq!((name, version), (&"probe".into(), &"2.1".into()));
    assert_eq!(told["dialect"], "native");
    assert!(told["capabilities"].as_array().unwrap().contains(&"batch".into()));
    assert_eq!(told["limits"]["max_items"], 77);
    assert_eq!(told["limits"], client.ok("server-info", "nil")["limits"]);
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
    let thousands = |text: String| {
        let digits: Vec<String> =
            text.as_bytes().rchunks(3).rev().map(|c| String::from_utf8_lossy(c).into()).collect();
        if text.len() > 4 { digits.join(",") } else { text }
    };
    match limit {
        bytes if name.ends_with("bytes") && bytes.is_multiple_of(1 << 20) => {
            format!("{} MiB", bytes >> 20)
        }
        bytes if name.ends_with("bytes") && bytes >= 16 << 10 && bytes.is_multiple_of(1 << 10) => {
            format!("{} KiB", bytes >> 10)
        }
        number => thousands(number.to_string()),
    }
}

#[test]
fn the_reference_has_every_limit_with_its_name_and_value() {
    let home = Home::new();
    let limits = home.ephemeral(&[]).ok("server-info", "nil")["limits"].clone();
    let page = include_str!("../../docs/protocol.md");
    let (_, section) = page.split_once("\n## Limits\n").unwrap();
    let (table, _) = section.split_once("\n## ").unwrap();
    let limits = limits.as_object().unwrap();
    assert!(limits.len() > 25, "{limits:?}");
    for (name, limit) in limits {
        let row = table.lines().find(|row| row.contains(&format!("`:{}`", name.replace('_', "-"))));
        let row = row.unwrap_or_else(|| panic!("the table has no row for {name}"));
        let limit = shown(name, limit.as_u64().unwrap());
        assert!(row.contains(&limit), "{name} is {limit}, but the table says {row}");
    }
}
