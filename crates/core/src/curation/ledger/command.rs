//! Recognizes shell commands among words.

/// Maximum length of a command, in bytes. Longer lines are scripts or data.
const LONGEST: usize = 300;

/// Finds the commands in a line: what stands in backticks, if it has several words and begins like a
/// program.
pub(super) fn in_backticks(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2).map(str::trim);
    quoted.filter(|part| {
        let program = part.split_whitespace().next().unwrap_or("");
        part.len() > program.len() && part.len() <= LONGEST && is_program(program)
    })
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
        || prompt.strip_suffix(['$', '#', '%', '>']).is_some_and(place);
    let command = match prompt {
        "PS" => command.split_once("> ").filter(|(place, _)| place.contains(":\\"))?.1,
        _ if known => command,
        _ => return None,
    };
    let command = command.trim();
    (!command.is_empty() && command.len() <= LONGEST).then_some(command)
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

/// Returns whether a word could be the name of a program, or a setting before it such as `A=1`.
fn is_program(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c))
        && word.starts_with(|c: char| c.is_ascii_lowercase() || c == '.' || c == '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_in_backticks() {
        let line =
            "Check with `cargo test --lib`, `./scripts/seed.sh --all`; `-x y`, `Vec<u8> x` no";
        assert_eq!(
            in_backticks(line).collect::<Vec<_>>(),
            ["cargo test --lib", "./scripts/seed.sh --all"]
        );
        assert_eq!(in_backticks("выполни `make test`").collect::<Vec<_>>(), ["make test"]);
        assert_eq!(in_backticks("`git` of `Foo bar`").count(), 0);
    }

    #[test]
    fn prompts_mark_commands_also_in_quotes() {
        let lines = [
            ("$ make", Some("make")),
            ("> $ cargo run --release", Some("cargo run --release")),
            ("me@box:~/src$ git log -3", Some("git log -3")),
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
