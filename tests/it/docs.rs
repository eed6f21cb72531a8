//! The documentation against the program: the method reference, every example conversation, and
//! whether the manual names what the package has.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_contexture");
/// How long an answer may take before the test fails; far more than it does take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of words of the page that an author of a client reads first.
const MOST_WORDS_OF_THE_CORE: usize = 1500;
/// Maximum number of words of the protocol's page before the reference.
const MOST_WORDS_OF_THE_RULES: usize = 6000;
/// Maximum number of methods.
const MOST_METHODS: usize = 70;

pub(crate) fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_protocol_page_has_the_reference_as_it_is() {
    let page = page("docs/protocol.md");
    for part in
        ["envelope", "methods", "types", "errors", "notifications", "limits", "strategies", "tools"]
    {
        let output = Command::new(PROGRAM).args(["schema", "--markdown", part]).output().unwrap();
        let reference = String::from_utf8(output.stdout).unwrap();
        let (_, rest) = page.split_once(&format!("<!-- {part}: begin -->\n")).unwrap();
        let (written, _) = rest.split_once(&format!("<!-- {part}: end -->")).unwrap();
        let advice = "docs/protocol.md is not what the schema says: run `make docs`";
        assert!(!reference.is_empty() && written.trim() == reference.trim(), "{part}: {advice}");
    }
}

#[test]
fn the_examples_of_the_protocol_page_are_true() {
    check_page("docs/protocol.md", 12);
}

#[test]
fn what_the_author_of_a_client_has_to_know_stays_small() {
    let page = page("docs/protocol.md");
    let (rules, _) = page.split_once("\n## Methods\n").unwrap();
    let words = rules.split_whitespace().count();
    assert!(words <= MOST_WORDS_OF_THE_RULES, "{words} words stand before the reference");
    let methods = contexture_program::internals::rpc::methods().count();
    let advice = "give one a parameter, or let one go";
    assert!(methods <= MOST_METHODS, "{methods} methods, but at most {MOST_METHODS}: {advice}");
}

#[test]
fn the_page_for_authors_of_clients_is_true_and_short() {
    check_page("docs/client.md", 9);
    let words = page("docs/client.md").split_whitespace().count();
    assert!(words <= MOST_WORDS_OF_THE_CORE, "docs/client.md has {words} words");
}

#[test]
fn the_manual_names_every_command_and_option_of_the_package() {
    let manual = ["contexture.texi", "contexture.inc", "llm-ert.texi"]
        .map(|name| page(&format!("docs/{name}")))
        .concat();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("elisp");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "el") {
            for name in public_names(&std::fs::read_to_string(path).unwrap()) {
                assert!(manual.contains(&name), "no manual in docs names {name}");
            }
        }
    }
}

/// The options, faces, commands and public functions that a file of the package defines.
fn public_names(source: &str) -> Vec<String> {
    let definitions = ["(defcustom ", "(defface ", "(defun ", "(cl-defun ", "(define-minor-mode "];
    let name = |line: &str| {
        let rest = definitions.iter().find_map(|start| line.strip_prefix(start))?;
        let name = rest.split_ascii_whitespace().next()?;
        (!name.contains("--")).then(|| name.to_owned())
    };
    source.lines().filter_map(name).collect()
}

#[test]
fn an_ellipsis_stands_for_anything() {
    assert!(matches("a … c", "a b c") && matches("… c", "a b c") && matches("a …", "a b c"));
    assert!(matches("a b", "a b") && !matches("a …c", "a b d") && !matches("a", "a b"));
}

/// Folder of the examples that stands for the home of the test's server.
const EXAMPLE_HOME: &str = "/home/me";
/// Name of the file in that folder with the script of the page, a fenced block in TOML.
const EXAMPLE_SCRIPT: &str = "turn.toml";

/// Holds every fenced block with `→` lines as a conversation of its own with a new server.
#[track_caller]
fn check_page(name: &str, at_least: usize) {
    let page = page(name);
    let fenced = || page.split("\n```").skip(1).step_by(2);
    let script = fenced().find_map(|block| block.strip_prefix("toml\n")).unwrap_or_default();
    let blocks: Vec<&str> = fenced().filter(|block| block.contains("\n→ ")).collect();
    assert!(blocks.len() >= at_least, "{name} has only {} examples", blocks.len());
    for block in blocks {
        hold(name, block, script);
    }
}

/// Says the `→` lines, and after each expects the `←` lines below it, in any order.
fn hold(page: &str, block: &str, script: &str) {
    let mut conversation = Conversation::begin(script);
    for turn in block.split("\n→ ").skip(1) {
        let mut lines = turn.lines();
        conversation.say(lines.next().unwrap_or_default());
        let mut expected: Vec<&str> = lines.filter_map(|line| line.strip_prefix("← ")).collect();
        for _ in 0..expected.len() {
            let heard = conversation.hear();
            let heard = heard.unwrap_or_else(|| panic!("{page}: after {turn:?} nothing was said"));
            let place = expected.iter().position(|pattern| matches(pattern, &heard));
            let place = place.unwrap_or_else(|| {
                panic!("{page}: after {turn:?}\nthe server said\n{heard}\nand not\n{expected:#?}")
            });
            expected.remove(place);
        }
    }
    conversation.end(page, block);
}

/// Whether a line is as the example says, in which `…` stands for anything.
fn matches(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else { return pattern == line };
    let Some(mut line) = line.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('…').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match line.split_once(part) {
            Some((_, after)) => line = after,
            None => return false,
        }
    }
    line.ends_with(last)
}

struct Conversation {
    server: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    home: tempfile::TempDir,
}

impl Conversation {
    fn begin(script: &str) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join(EXAMPLE_SCRIPT), script).expect("the script is written");
        let mut server = Command::new(PROGRAM)
            .args(["--ephemeral", "--fixed-time", "1767225600", "serve", "--stdio"])
            .env_clear()
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = server.stdin.take();
        let output = server.stdout.take().expect("its output is a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { server, input, lines, home }
    }

    fn say(&mut self, line: &str) {
        let line = line.replace(EXAMPLE_HOME, &self.home.path().to_string_lossy());
        let input = self.input.as_mut().expect("the conversation goes on");
        writeln!(input, "{line}").expect("the server reads");
    }

    fn hear(&self) -> Option<String> {
        self.lines.recv_timeout(PATIENCE).ok()
    }

    /// After the last word the server must have nothing more to say.
    fn end(mut self, page: &str, block: &str) {
        drop(self.input.take());
        let status = self.server.wait().expect("the server ends");
        assert!(status.success(), "{page}: the server failed at\n{block}");
        let rest: Vec<String> = self.lines.iter().collect();
        assert!(rest.is_empty(), "{page}: the server also said {rest:#?} in\n{block}");
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
