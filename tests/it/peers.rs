//! Other people's clients, as they are packaged: they run a script against the real server. One
//! that is not installed is reported as skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use contexture_program::internals::value::Value;
use contexture_program::internals::value::sexp;

use crate::scripted;
use crate::skips::skipped;
use crate::support::*;
use crate::tiers::may_use;

fn tests_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

#[track_caller]
fn check(output: &Output, said: &str) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stdout.contains(said), "{stdout}\n{stderr}");
}

fn script() -> PathBuf {
    tests_folder("epc/script.sexp")
}

/// The methods that the script calls.
fn calls() -> Vec<String> {
    let text = std::fs::read_to_string(script()).unwrap();
    let Value::List(calls) = sexp::read(&format!("({text}\n)")).unwrap() else { panic!() };
    let method = |call: &Value| match call {
        Value::List(call) => sexp::print(&call[0]),
        other => panic!("{other:?}"),
    };
    calls.iter().map(method).collect()
}

/// A folder as the script wants it.
fn folder(home: &Home) -> PathBuf {
    home.write("a.txt", "one\ntwo\n");
    home.file("")
}

#[test]
fn the_script_calls_every_method_about_context() {
    let called = calls();
    for method in
        contexture_program::internals::rpc::methods().filter(|method| method.family == "context")
    {
        let mut names = method.contract_names().chain([method.name]);
        assert!(
            names.any(|name| called.contains(&name.to_owned())),
            "{} calls no {}",
            script().display(),
            method.name
        );
    }
}

#[test]
fn epc_of_emacs_runs_the_script() {
    let probe = ["--batch", "-f", "package-initialize", "--eval", "(require 'epc)"];
    if !may_use("EPC of Emacs (elpa-epc)", succeeds(Command::new("emacs").args(probe))) {
        return;
    }
    let home = Home::new();
    let mut emacs = Command::new("emacs");
    emacs.args(["--batch", "-f", "package-initialize", "-l"]).arg(tests_folder("epc/client.el"));
    emacs.args(["-f", "epc-script-run", env!("CARGO_BIN_EXE_contexture")]);
    emacs.arg(script()).arg(folder(&home)).env("HOME", home.path("home"));
    emacs.env("CONTEXTURE_TOKENIZER", "estimate");
    check(&emacs.output().unwrap(), &format!("EPC: {} calls", calls().len()));
}

#[test]
fn epc_of_python_runs_the_script() {
    // The one that belongs to the Debian package.
    let python = "/usr/bin/python3";
    let installed = succeeds(Command::new(python).args(["-c", "import epc.client, sexpdata"]));
    if !may_use("EPC of Python (python3-epc)", installed) {
        return;
    }
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut client = Command::new(python);
    client.arg(tests_folder("epc/client.py")).arg(server.port.to_string());
    client.arg(script()).arg(folder(&home));
    check(&client.output().unwrap(), &format!("EPC: {} calls", calls().len()));
}

/// Lets a client of Emacs hold the conversation of `tests/repl/client.el`.
#[track_caller]
fn converse(directory: &Path, function: &str) {
    let home = Home::new();
    let temporary = home.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = scripted::serving(|port| {
        let mut emacs = Command::new("emacs");
        emacs.args(["--batch", "-Q", "-L"]).arg(directory).arg("-L");
        emacs.arg(directory.join("contrib")).arg("-l").arg(tests_folder("repl/client.el"));
        emacs.args(["-f", function]).arg(port.to_string());
        emacs.env("HOME", home.path("home")).env("TMPDIR", &temporary);
        emacs.env("LANG", "C.UTF-8").output().unwrap()
    });
    check(&output, "REPL: ");
}

#[test]
fn slime_holds_a_conversation() {
    let directory = slime();
    if may_use("SLIME (slime)", directory.is_some()) {
        converse(&directory.unwrap(), "repl-script-slime");
    }
}

#[test]
fn sly_holds_a_conversation() {
    let Some(directory) = std::env::var_os("SLY_DIR") else {
        return skipped("SLY_DIR names no checkout of SLY");
    };
    converse(Path::new(&directory), "repl-script-sly");
}

/// Where Debian's package has SLIME.
fn slime() -> Option<PathBuf> {
    let packages = std::fs::read_dir("/usr/share/emacs/site-lisp/elpa").ok()?;
    let mut found = packages.flatten().map(|entry| entry.path());
    found.find(|path| path.join("slime.el").exists())
}
