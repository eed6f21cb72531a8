//! The recorded exchanges of `tests/wire`, replayed; `tests/wire/README.md` has their format.

use crate::support::*;

#[test]
fn recorded_exchanges_are_repeated_to_the_byte() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sexp") {
            replay(&path);
            replayed += 1;
        }
    }
    assert!(replayed >= 5, "only {replayed} exchanges were found");
}

/// Set to record anew: each answer is written in the place of the one that was expected.
const RECORD: &str = "CONTEXTURE_RECORD";

#[track_caller]
fn replay(path: &std::path::Path) {
    let home = Home::new();
    let mut client = home.ephemeral(&["--fixed-time", "1700000000", "--tokenizer", "estimate"]);
    let (mut heard, text) = (String::new(), std::fs::read_to_string(path).unwrap());
    for (number, line) in text.lines().enumerate() {
        let place = format!("{}:{}", path.display(), number + 1);
        let mut line = line.to_owned();
        match line.split_at_checked(2) {
            Some(("> ", said)) => client.write(format!("{said}\n").as_bytes()),
            Some(("< ", expected)) => {
                let answer = client.line().unwrap_or_else(|| panic!("{place}: no answer"));
                if std::env::var_os(RECORD).is_none() {
                    assert_eq!(answer, expected, "{place}");
                }
                line = format!("< {answer}");
            }
            _ => assert!(line.is_empty() || line.starts_with(';'), "{place}: {line}"),
        }
        heard += &line;
        heard.push('\n');
    }
    client.close();
    assert_eq!(client.line(), None, "{}: the server said more", path.display());
    if std::env::var_os(RECORD).is_some() {
        std::fs::write(path, heard).unwrap();
    }
}
