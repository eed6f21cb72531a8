//! The Emacs package of 0.1 against today's server: its own suites, taken from the history of the
//! repository, and a recording of what it said and was answered then.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use contexture::internals::value::Value;
use contexture::internals::value::sexp;

use crate::skips::skipped;
use crate::support::*;

/// The commit at which 0.1 was whole; no tag names it.
const RELEASED: &str = "3c3b23dd";

/// Replaces what measures time in the old suites: that is not the protocol's, and fails on a busy
/// machine.
const TIMELESS: &str = "(progn (setq contexture-ert-timeout 60)
     (defmacro contexture-test-at-once (&rest body) (cons 'progn body)))";

/// Replacements in the old suites: file, text, and what stands there now.
const MENDED: [(&str, &str, &str); 3] = [
    // A session has one limit now, which need not be set, where 0.1 has two with defaults.
    (
        "contexture-session-tests.el",
        "(ert-deftest contexture-session-configure-knows-every-setting-of-the-server ()",
        "(ert-deftest contexture-session-configure-knows-every-setting-of-the-server ()
           (ert-skip \"there are other settings now\")",
    ),
    (
        "contexture-session-tests.el",
        "(ert-deftest contexture-session-configure-shows-value-default-and-range ()",
        "(ert-deftest contexture-session-configure-shows-value-default-and-range ()
           (ert-skip \"there are other settings now\")",
    ),
    // The mode asks for the sizes of all contexts when it connects. Package 0.1 does not compare
    // versions, so that answer must not come after the notification of a later change.
    (
        "contexture-tests.el",
        r#"(contexture-request 'add-context '(:manager "a.el" :content "from elsewhere"))"#,
        r#"(contexture-test-settle)
           (contexture-request 'add-context '(:manager "a.el" :content "from elsewhere"))"#,
    ),
];

#[test]
fn commands_for_items_work() {
    check("contexture-tests", "", 50);
}

#[test]
fn commands_for_sessions_work() {
    check("contexture-session-tests", "", 40);
}

#[test]
fn conversations_work() {
    check("contexture-repl-turn-tests", "", 20);
}

#[test]
fn windows_are_explained() {
    check("contexture-explain-tests", "", 12);
}

#[test]
fn the_list_can_be_edited() {
    check("contexture-list-edit-tests", "", 10);
}

#[test]
fn connections_work() {
    let regexp = "answer\\|carries\\|error\\|hands-on\\|joins\\|loses\\|share\\|subscribes\\|tells";
    check("contexture-rpc-tests", regexp, 20);
}

/// Runs a suite of 0.1, or those of its tests that match, with the package of 0.1 and today's server.
/// At least so many tests must pass, and none fail.
#[track_caller]
fn check(suite: &str, regexp: &str, at_least: usize) {
    let home = Home::new();
    let Some(released) = unpacked(&home) else {
        return skipped("the repository has no history here, or no git");
    };
    let output = emacs(&home, &released, suite, regexp).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("Suite: "));
    let counts = line.unwrap_or_else(|| panic!("{}", text_of(&output)));
    let words: Vec<&str> = counts.split([' ', ',']).collect();
    let (passed, failed) = (words[0].parse::<usize>().unwrap(), words[3]);
    assert!(failed == "0" && passed >= at_least, "{}", text_of(&output));
}

fn text_of(output: &std::process::Output) -> String {
    let [said, log] = [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part));
    format!("{said}\n{log}")
}

/// Where the Emacs package of 0.1 and its suites are; `None` in a shallow clone or no repository.
fn unpacked(home: &Home) -> Option<PathBuf> {
    let folder = home.path("released");
    std::fs::create_dir(&folder).unwrap();
    let mut git = Command::new("git");
    git.args(["archive", RELEASED, "elisp", "tests/elisp"]).current_dir(root());
    let archive = git.stderr(Stdio::null()).output().ok().filter(|out| out.status.success())?;
    std::fs::write(home.path("released.tar"), archive.stdout).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-x", "-f"]).arg(home.path("released.tar")).arg("-C").arg(&folder);
    assert!(tar.status().unwrap().success());
    for (suite, text, now) in MENDED {
        let suite = folder.join("tests/elisp").join(suite);
        let said = std::fs::read_to_string(&suite).unwrap();
        assert_eq!(said.matches(text).count(), 1, "{text}");
        std::fs::write(suite, said.replace(text, now)).unwrap();
    }
    Some(folder)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Emacs that runs a suite. SIGPIPE is ignored, of which a batch Emacs would die when it writes
/// to a server that was just killed.
fn emacs(home: &Home, released: &Path, suite: &str, regexp: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' PIPE; exec emacs \"$@\"", "emacs", "-Q", "--batch"]);
    command.arg("-L").arg(released.join("elisp")).arg("-L").arg(released.join("tests/elisp"));
    command.args(["-l", "contexture-test-helper", "--eval", TIMELESS]);
    command.arg("-l").arg(root().join("scripts/ert.el")).arg("--").arg(regexp);
    command.arg(released.join(format!("tests/elisp/{suite}.el")));
    let temporary = home.path("t");
    std::fs::create_dir(&temporary).unwrap();
    command.env("HOME", home.path("home")).env("TMPDIR", temporary).env("LANG", "C.UTF-8");
    command.env("CONTEXTURE_BIN", env!("CARGO_BIN_EXE_contexture")).stdin(Stdio::null());
    command
}

#[test]
fn recorded_conversations_are_answered_with_all_that_was_said_then() {
    let text = std::fs::read_to_string(root().join("tests/wire/released/emacs-0.1.sexp")).unwrap();
    let conversations: Vec<&str> =
        text.split("\n; ").skip(1).filter(|part| part.contains("\n> ")).collect();
    assert!(conversations.len() > 30, "{}", conversations.len());
    let mut differences = Vec::new();
    for conversation in conversations {
        differences.extend(replay(conversation));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Says again what the client said, and compares each answer and notification with the recorded one.
fn replay(conversation: &str) -> Vec<String> {
    let home = Home::new();
    let mut client = home.ephemeral(&["--fixed-time", "1700000000", "--tokenizer", "estimate"]);
    let (mut heard, mut differences) = (Vec::new(), Vec::new());
    let name = conversation.lines().next().unwrap();
    for line in conversation.lines().skip(1) {
        match line.split_at_checked(2) {
            Some(("> ", said)) => client.write(format!("{said}\n").as_bytes()),
            Some(("< ", expected)) => {
                let expected = sexp::read(expected).unwrap();
                let answer = like(&mut client, &mut heard, &expected);
                let lacking = lacking(&expected, &answer, "");
                differences.extend(lacking.map(|what| format!("{name}: {what}\n  {line}")));
            }
            _ => assert!(line.is_empty(), "{name}: {line}"),
        }
    }
    differences
}

/// The message that answers the same call as this one, or is a notification of the same method.
#[track_caller]
fn like(client: &mut Client, heard: &mut Vec<Value>, message: &Value) -> Value {
    let same =
        |other: &Value| ["id", "method"].iter().all(|name| other.get(name) == message.get(name));
    loop {
        if let Some(at) = heard.iter().position(same) {
            return heard.remove(at);
        }
        let line = client.line().unwrap_or_else(|| panic!("no {}", sexp::print(message)));
        heard.push(sexp::read(&line).unwrap());
    }
}

/// Members that have another value in each run, or words for people, which may be said better: only
/// their types are compared.
const FREE: [&str; 6] = ["pid", "message", "reason", "description", "body", "sha256"];

/// Members of the settings of a session, which have one limit now where 0.1 has two.
const OF_SETTINGS: [&str; 2] = ["window-tokens", "settings"];

/// Members of a window and its report that tell what the window keeps, which is for the server to
/// choose; and a member that shows that a property list is one of these.
const CHOSEN: [&str; 5] = ["tokens", "tokens-after", "sections", "parts", "stable"];
const OF_WINDOW: [&str; 2] = ["report", "strategy"];
/// Sums of these tokens in the log of windows, whose entries have a `:budget`.
const SUMS: [&str; 2] = ["messages", "total"];

/// Says what of a recorded value is not in today's, if anything: a member, or another value of one.
fn lacking(then: &Value, now: &Value, at: &str) -> Option<String> {
    let differs = || Some(format!("{at} is {}", sexp::print(now)));
    if let (Some(then), Some(_)) = (members(then), members(now)) {
        let is_of_window = then.iter().any(|(name, _)| OF_WINDOW.contains(name));
        let is_logged = then.iter().any(|(name, _)| *name == "budget");
        let is_free = |name: &str, value: &Value| {
            FREE.contains(&name)
                || (is_of_window && CHOSEN.contains(&name))
                || (is_logged && SUMS.contains(&name) && matches!(value, Value::Int(_)))
        };
        return then.into_iter().find_map(|(name, value)| {
            let at = format!("{at} :{name}");
            match now.get(name) {
                _ if OF_SETTINGS.contains(&name) => None,
                Some(now)
                    if is_free(name, value)
                        && std::mem::discriminant(now) == std::mem::discriminant(value) =>
                {
                    None
                }
                Some(now) => lacking(value, now, &at),
                None => Some(format!("{at} is missing")),
            }
        });
    }
    match (then, now) {
        (Value::List(then), Value::List(now)) if then.len() == now.len() => {
            let mut pairs = then.iter().zip(now).enumerate();
            pairs.find_map(|(index, (then, now))| lacking(then, now, &format!("{at} {index}")))
        }
        _ if then == now => None,
        _ => differs(),
    }
}

/// The members of a property list.
fn members(value: &Value) -> Option<Vec<(&str, &Value)>> {
    let Value::List(list) = value else { return None };
    let pairs = list.chunks(2).map(|pair| match pair {
        [Value::Keyword(name), value] => Some((&**name, value)),
        _ => None,
    });
    pairs.collect()
}
