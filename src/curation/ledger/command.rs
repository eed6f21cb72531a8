//! Recognizes shell commands among words.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::phrases::phrases;

/// Names of programs, by which commands are recognized.
static PROGRAMS: LazyLock<HashSet<&str>> = LazyLock::new(|| phrases("program"));
/// Words that introduce a command in a sentence.
static VERBS: LazyLock<Vec<&str>> = LazyLock::new(|| phrases("command-verb"));
/// Words that end a command without backticks.
const ENDS: &[&str] = &[
    "to", "and", "before", "after", "then", "so", "for", "until", "again", "first", "but", "which",
    "if", "when", "or", "because", "once", "every", "on", "as", "locally", "now", "here", "it",
];
/// Maximum length of a command, in bytes. Longer lines are scripts or data.
const LONGEST: usize = 300;

/// Finds the commands in a sentence: in backticks, or after a word such as "run".
pub(super) fn in_sentence(sentence: &str) -> Vec<String> {
    let (mut found, mut before) = (Vec::new(), "");
    for (at, part) in sentence.split('`').enumerate() {
        if at % 2 == 1 {
            let introduced = before.split_whitespace().next_back().is_some_and(is_verb);
            if is_command(part, introduced) {
                found.push(part.trim().to_owned());
            }
        } else {
            bare(part, &mut found);
            before = part;
        }
    }
    found
}

/// Returns the command of a line that begins with a prompt, also if the line is quoted: `$ make`,
/// `> $ make`, `me@host:~/src$ make`, `% make`, `PS C:\> make`.
pub(super) fn after_prompt(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mut rest = line;
    while let Some(quoted) = rest.strip_prefix("> ").or_else(|| rest.strip_prefix('>')) {
        rest = quoted.trim_start();
    }
    let (prompt, command) = rest.split_once(' ')?;
    let place = |prompt: &str| prompt.contains('@') || prompt.contains(":~") || prompt == "~";
    let known = ["$", "❯", "λ"].contains(&prompt)
        || prompt == "%" && begins_with_program(command)
        || prompt.strip_suffix(['$', '#', '%', '>']).is_some_and(place);
    let command = match prompt {
        "PS" => command.split_once("> ").filter(|(place, _)| place.contains(":\\"))?.1,
        _ if known => command,
        _ => return None,
    };
    let command = command.trim();
    (!command.is_empty() && command.len() <= LONGEST).then_some(command)
}

/// Returns whether a line begins with a known program or with `./`.
pub(super) fn begins_with_program(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or("");
    PROGRAMS.contains(first) || first.starts_with("./")
}

/// Finds the commands in the lines of a shell script or session. If a line has a prompt, only lines
/// with a prompt have commands.
pub(super) fn in_shell<'a>(lines: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let session = lines.iter().any(|line| after_prompt(line).is_some());
    let commands: Vec<&str> = match session {
        true => lines.iter().filter_map(|line| after_prompt(line)).collect(),
        false => beginnings(lines.iter().copied()).map(str::trim).collect(),
    };
    commands.into_iter().filter(|line| !line.starts_with('#') && line.len() <= LONGEST)
}

/// Returns the lines of a script at which commands begin. Leaves out the lines of here-documents,
/// and the lines that continue a quoted text, such as a commit message, or a command after a
/// backslash.
pub(super) fn beginnings<'a>(
    lines: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let (mut quote, mut document, mut is_continued) = (None, None, false);
    lines.filter(move |line| {
        if let Some(end) = document {
            document = document.filter(|_| line.trim() != end);
            return false;
        }
        let begins = quote.is_none() && !is_continued && !line.trim().is_empty();
        quote = quote_after(line, quote);
        is_continued = line.ends_with('\\');
        document = here_document(line);
        begins
    })
}

/// Returns the quotation mark that is still open after a line, given the one that was open before
/// the line.
fn quote_after(line: &str, before: Option<char>) -> Option<char> {
    let (mut open, mut previous) = (before, ' ');
    for c in line.chars() {
        match open {
            None if c == '#' && previous.is_whitespace() => break,
            None if matches!(c, '"' | '\'') && previous != '\\' => open = Some(c),
            Some('"') if c == '"' && previous == '\\' => {}
            Some(quote) if c == quote => open = None,
            _ => {}
        }
        previous = c;
    }
    open
}

/// Returns the word that ends a here-document, if one begins in this line.
fn here_document(line: &str) -> Option<&str> {
    let rest = line.split_once("<<")?.1.trim_start_matches('-').trim_start();
    let rest = rest.trim_start_matches(['\'', '"', '\\']);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

fn is_verb(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(word))
}

fn is_command(text: &str, introduced: bool) -> bool {
    let mut words = text.split_whitespace();
    let Some(program) = words.next() else { return false };
    let arguments = words.next().is_some();
    let known = PROGRAMS.contains(program) || program.starts_with("./");
    text.len() <= LONGEST
        && !text.contains('\n')
        && (known && (arguments || introduced) || introduced && arguments && is_program(program))
}

/// Returns whether a word could be the name of a program, or a setting before it such as `A=1`.
fn is_program(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c))
        && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.' || c == '/')
}

/// Finds commands without backticks: `run cargo test --lib before you commit`.
fn bare(text: &str, found: &mut Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    for (at, pair) in words.windows(2).enumerate() {
        let verb = is_verb(pair[0]) && !["with", "use", "using"].contains(&pair[0]);
        if !verb || !(PROGRAMS.contains(pair[1]) || pair[1].starts_with("./")) {
            continue;
        }
        let mut command: Vec<&str> = Vec::new();
        for word in &words[at + 1..] {
            if command.len() > 1 && ENDS.contains(&word.to_lowercase().as_str()) {
                break;
            }
            let stop = word.ends_with([',', ';', ':', '?', '!', ')']);
            command.push(word.trim_end_matches([',', ';', ':', '?', '!', ')', '.']));
            if stop {
                break;
            }
        }
        if command.len() > 1 || command.iter().all(|word| word.starts_with("./")) {
            found.push(command.join(" "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sentence: &str, expected: &[&str]) {
        assert_eq!(in_sentence(sentence), expected, "{sentence}");
    }

    #[test]
    fn commands_are_in_backticks_or_after_a_verb() {
        check(
            "Check it with `cargo test --lib` or `git status`.",
            &["cargo test --lib", "git status"],
        );
        check("Please run `ctest -j4`; the flag `-x` is new.", &["ctest -j4"]);
        check("Then run make test before pushing.", &["make test"]);
        check("First execute ./scripts/seed.sh --all, then wait.", &["./scripts/seed.sh --all"]);
    }

    #[test]
    fn other_words_in_backticks_are_no_commands() {
        check("`foo bar` and `Vec<u8>` of `git` make sense", &[]);
        check("we go on and find out", &[]);
    }

    #[test]
    fn prompts_mark_commands_also_in_quotes() {
        let lines = [
            ("$ make", Some("make")),
            ("> $ cargo run --release", Some("cargo run --release")),
            ("me@box:~/src$ git log -3", Some("git log -3")),
            ("% make x", Some("make x")),
            ("PS C:\\work> dotnet test", Some("dotnet test")),
            ("> I think so", None),
            ("% of all", None),
            ("5 $ a month", None),
        ];
        for (line, expected) in lines {
            assert_eq!(after_prompt(line), expected, "{line}");
        }
    }

    #[test]
    fn quoted_texts_and_documents_are_no_commands() {
        let script = "git add -A # it's all\ngit commit -m \"Add spans\n\n- with_span/2 macro\n\
                      - tests\" && git push\ncat > a.txt <<'EOF'\nmake love\nEOF\n\
                      git commit -m \"$(cat <<EOF\n- don't\nEOF\n)\"\ncargo test \\\n  --lib\nmake";
        let expected = [
            "git add -A # it's all",
            "git commit -m \"Add spans",
            "cat > a.txt <<'EOF'",
            "git commit -m \"$(cat <<EOF",
            "cargo test \\",
            "make",
        ];
        assert_eq!(beginnings(script.lines()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn only_lines_after_a_prompt_are_commands_of_a_session() {
        let session = in_shell(&["$ make", "cc -c x.c", "# note"]);
        let found: Vec<&str> = session.chain(in_shell(&["# note", "cd x", "make"])).collect();
        assert_eq!(found, ["make", "cd x", "make"]);
    }
}
