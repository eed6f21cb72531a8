//! Finds shell commands in calls of tools.

use serde_json::Value;

use crate::session::message::ToolCall;

/// Maximum length of a command, in bytes. Longer lines are scripts or data.
const LONGEST: usize = 300;
/// Maximum number of commands taken from one argument.
const MOST: usize = 20;

/// Passes the commands of a call to `take`.
pub(super) fn each(call: &ToolCall, mut take: impl FnMut(&str)) {
    let is_shell = is_shell(&call.name);
    let mut lines = |text: &str| {
        let commands = beginnings(text.lines()).map(str::trim);
        commands.filter(|line| line.len() <= LONGEST).take(MOST).for_each(&mut take);
    };
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(fields)) => {
            for (name, value) in &fields {
                if let Some(text) = text(value) {
                    argument(name, &text, is_shell, &mut lines);
                }
            }
        }
        Ok(Value::String(text)) if is_shell => lines(&text),
        Err(_) if is_shell => lines(&call.arguments),
        _ => {}
    }
}

/// Passes the commands of an argument to `take`.
fn argument(name: &str, text: &str, is_shell: bool, take: &mut impl FnMut(&str)) {
    const COMMANDS: &[&str] = &["command", "cmd"];
    const OF_SHELLS: &[&str] = &["script", "commands", "args", "argv", "input"];
    if COMMANDS.contains(&name) || is_shell && OF_SHELLS.contains(&name) {
        take(text);
    } else if is_shell {
        // Some recordings show a command between backticks, after a description.
        text.split('`').skip(1).step_by(2).for_each(take);
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            Some(parts.join(" "))
        }
        _ => None,
    }
}

fn is_shell(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["shell", "bash", "exec", "run", "command", "terminal"].iter().any(|name| tool.contains(name))
}

/// Returns the lines of a script at which commands begin. Leaves out the lines of here-documents,
/// and the lines that continue a quoted text, such as a commit message, or a command after a
/// backslash.
fn beginnings<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[track_caller]
    fn check(tool: &str, arguments: &str, expected: &[&str]) {
        let (id, name, arguments) = ("1".into(), tool.into(), arguments.into());
        let mut found = Vec::new();
        each(&ToolCall { id, name, arguments }, |command| found.push(command.to_owned()));
        assert_eq!(found, expected, "{tool}");
    }

    #[test]
    fn commands_are_taken_from_calls() {
        check("edit", r#"{"command":"make a\nmake b","path":"src/a.rs"}"#, &["make a", "make b"]);
        check("Bash", r#"{"argv":["git","log"],"input":"ls `x y`"}"#, &["git log", "ls `x y`"]);
        check("run_terminal_cmd", r#"{"shown":"Tests: `make check`"}"#, &["make check"]);
        check("exec", "make all", &["make all"]);
        check("exec", r#""make all""#, &["make all"]);
        check("read", r#"{"input":"make `all`"}"#, &[]);
        check("read", "make all", &[]);
    }
}
