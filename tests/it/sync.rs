//! `contexture sync`: two homes on one machine, with a script between them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::*;

/// A script in place of ssh, which runs a command in another home; its arguments go into a file.
pub(crate) fn script(home: &Home, command: &str) -> PathBuf {
    let bin = home.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let ssh = bin.join("ssh");
    let log = home.path("ssh-arguments");
    fs::write(&ssh, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n{command}\n", log.display()))
        .unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

/// The environment and the program of another home, as a shell takes them.
pub(crate) fn program(there: &Home) -> String {
    let vars = ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "HOME"];
    let folders = ["state", "config", "run", "data", "home"];
    let set = vars
        .iter()
        .zip(folders)
        .map(|(var, folder)| format!("{var}='{}' ", there.path(folder).display()));
    let set: String = set.collect();
    format!(
        "env -i PATH=/usr/bin:/bin CONTEXTURE_TOKENIZER=estimate {set}{}",
        env!("CARGO_BIN_EXE_contexture")
    )
}

pub(crate) fn sync_with(home: &Home, bin: &Path, args: &[&str]) -> Output {
    let mut all = vec!["sync"];
    all.extend(args);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    home.command(&all).env("PATH", path).output().unwrap()
}

#[track_caller]
pub(crate) fn synced(home: &Home, bin: &Path) -> String {
    let output = sync_with(home, bin, &["there"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub(crate) fn refused(home: &Home, bin: &Path, args: &[&str]) -> String {
    let output = sync_with(home, bin, args);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

pub(crate) fn call(home: &Home, method: &str, params: &str) -> Json {
    read_json(&home.succeed(&["call", method, params, "--json"]))
}

/// Two homes, each with a session and a memory of one project, which lies in different folders.
pub(crate) fn two() -> (Home, Home, PathBuf) {
    let (here, there) = (Home::new(), Home::new());
    for (home, name) in [(&here, "here"), (&there, "there")] {
        let folder = home.file(name);
        fs::create_dir_all(folder.join(".git")).unwrap();
        fs::write(folder.join(".git/config"), "[remote \"origin\"]\n url = https://h/o/app.git\n")
            .unwrap();
        let folder = folder.to_str().unwrap();
        call(home, "open-session", &format!("(:name \"of {name}\" :project {folder:?})"));
        call(
            home,
            "add-message",
            &format!("(:session \"of {name}\" :role :user :content \"said {name}\")"),
        );
        call(home, "remember", &format!("(:content \"known {name}\" :project {folder:?})"));
    }
    let bin = script(&here, &format!("exec {} sync --serve", program(&there)));
    (here, there, bin)
}

#[test]
fn two_homes_have_what_either_has() {
    let (here, there, bin) = two();
    let said = synced(&here, &bin);
    assert!(said.contains("took 1 session, 1 message, 1 memory"), "{said}");
    assert!(said.contains("gave 1 session, 1 message, 1 memory"), "{said}");
    for (home, own, other) in [(&here, "here", "there"), (&there, "there", "here")] {
        let folder = home.file(own).to_str().unwrap().to_owned();
        let listed = call(home, "list-sessions", &format!("(:project {folder:?})"));
        let of = |name: &str| {
            let name = format!("of {name}");
            listed.as_array().unwrap().iter().find(|session| session["session"] == *name).cloned()
        };
        assert!(is_nil(&of(own).unwrap()["machine"]));
        assert!(of(other).unwrap()["machine"].is_string(), "{listed}");
        let memories = call(home, "list-memories", &format!("(:project {folder:?})"));
        let machines: Vec<bool> = memories
            .as_array()
            .unwrap()
            .iter()
            .map(|memory| memory["machine"].is_string())
            .collect();
        assert_eq!(machines, [true, false], "{memories}");
    }
    // A change goes along with the first round, and is small.
    call(&here, "add-message", "(:session \"of here\" :role :user :content \"a change\")");
    let said = synced(&here, &bin);
    assert!(said.contains("took nothing new; gave 1 message"), "{said}");
    assert!(said.contains("round trips: 1)"), "{said}");
    let bytes: usize = said.split_once('(').unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert!(bytes < 2048, "{said}");
    assert!(synced(&here, &bin).contains("gave nothing new"));
    // The other home keeps what it has when its server runs, too.
    let listening = there.listening(&[]);
    call(&here, "add-message", "(:session \"of here\" :role :user :content \"another\")");
    assert!(synced(&here, &bin).contains("gave 1 message"));
    drop(listening);
}

#[test]
fn a_backup_of_last_week_uses_no_number_twice() {
    let (here, there, bin) = two();
    synced(&here, &bin);
    let backup = here.path("backup.db");
    here.succeed(&["backup", backup.to_str().unwrap()]);
    call(&here, "add-message", "(:session \"of here\" :role :user :content \"before\")");
    synced(&here, &bin);
    here.succeed(&["restore", backup.to_str().unwrap()]);
    call(&here, "add-message", "(:session \"of here\" :role :user :content \"after\")");
    call(&here, "remember", "(:content \"made after\")");
    synced(&here, &bin);
    for home in [&here, &there] {
        let found = |word: &str| call(home, "list-sessions", &format!("(:query {word:?})"));
        for word in ["before", "after"] {
            assert_eq!(found(word).as_array().unwrap().len(), 1, "{word}: {}", found(word));
        }
        let memories = call(home, "list-memories", "nil").as_array().unwrap().len();
        assert_eq!(memories, 3);
    }
    // A copy of the whole folder is another machine, too.
    let copy = Home::new();
    let copied = Command::new("cp").arg("-a").arg(here.path("state")).arg(copy.path("")).status();
    assert!(copied.unwrap().success());
    call(&copy, "remember", "(:content \"of the copy\")");
    call(&here, "remember", "(:content \"of the original\")");
    let bin_of_copy = script(&copy, &format!("exec {} sync --serve", program(&there)));
    synced(&copy, &bin_of_copy);
    synced(&here, &bin);
    synced(&copy, &bin_of_copy);
    for home in [&here, &there, &copy] {
        let memories = call(home, "list-memories", "nil");
        assert_eq!(memories.as_array().unwrap().len(), 5, "{memories}");
    }
}

#[test]
fn hosts_are_never_options_and_a_missing_program_is_named() {
    let (here, _there, bin) = two();
    for host in ["-oProxyCommand=touch x", "--", "a b", "a;b", "a\nb", "$(x)", "ä"] {
        let said = refused(&here, &bin, &["--", host]);
        assert!(said.contains("no name of a host"), "{host}: {said}");
    }
    let said = refused(&here, &bin, &["there", "--program", "x;touch y"]);
    assert!(said.contains("no plain name"), "{said}");
    assert!(!here.path("ssh-arguments").exists(), "ssh was never asked");
    script(&here, "exit 127");
    let said = refused(&here, &bin, &["there"]);
    assert!(said.contains("has no contexture on its path"), "{said}");
    let sessions = call(&here, "list-sessions", "nil");
    assert_eq!(sessions.as_array().unwrap().len(), 1, "nothing came");
}

#[test]
fn what_is_no_answer_ends_the_exchange_though_the_other_side_goes_on() {
    let (here, _there, bin) = two();
    synced(&here, &bin);
    let endless = format!("yes '{}'", "x".repeat(999));
    for (said_there, expected) in [
        ("echo 'contexture-sync 1 {'; exec cat", "cannot read what the other machine sent"),
        ("echo 'contexture-sync 7 {}'; exec cat", "another version of the exchange"),
        ("printf '\\377\\n'; exec cat", "sent no text"),
        (&endless, "sent something that is no answer"),
        ("exec false", "ended before it answered"),
    ] {
        script(&here, said_there);
        let said = refused(&here, &bin, &["there"]);
        assert!(said.contains(expected), "{said_there}: {said}");
    }
    let sessions = call(&here, "list-sessions", "nil");
    assert_eq!(sessions.as_array().unwrap().len(), 2, "nothing more came");
}

#[test]
fn what_another_machine_says_about_errors_controls_no_terminal() {
    let here = Home::new();
    let bin = script(
        &here,
        r"printf '\033]0;x\007a \342\200\256 b\nplain\n' >&2; yes more | head -c 9999999 >&2; exit 1",
    );
    let said = refused(&here, &bin, &["there"]);
    assert!(said.contains("plain\n") && said.contains("ended before it answered"), "{said}");
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{said:?}");
    assert!(said.len() < 10_000, "it says {} bytes", said.len());
}

#[test]
fn what_was_answered_outlives_kills_in_the_middle_of_an_exchange() {
    let homes: Vec<Home> = (0..3).map(|_| Home::new()).collect();
    let said = |at: usize, series: usize| format!("word{at}x{series}");
    for (at, home) in homes.iter().enumerate() {
        call(home, "open-session", &format!("(:name \"of {at}\")"));
    }
    let exchange = |from: usize, to: usize| {
        let bin = script(&homes[from], &format!("exec {} sync --serve", program(&homes[to])));
        let mut command = homes[from].command(&["sync", "there"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).process_group(0);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    for series in 0..12 {
        for (at, home) in homes.iter().enumerate() {
            let text = said(at, series);
            let params = format!("(:session \"of {at}\" :role :user :content {text:?})");
            call(home, "add-message", &params);
        }
        // All of the exchange is killed, on both sides, a little later each time.
        let (from, to) = (series % 3, (series + 1 + series / 3 % 2) % 3);
        let mut child = exchange(from, to).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(37 * series as u64 % 300));
        let group = format!("-{}", child.id());
        let killed = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = (killed.unwrap(), child.wait().unwrap());
    }
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 1), (1, 2), (2, 0)] {
        assert!(exchange(from, to).status().unwrap().success());
    }
    let all = |home: &Home| {
        let mut sessions: Vec<_> = call(home, "list-sessions", "nil")
            .as_array()
            .unwrap()
            .iter()
            .map(|session| {
                let id = session["id"].as_str().unwrap();
                call(home, "export-session", &format!("(:session {id:?} :max-tokens 9000)"))["text"]
                    .to_string()
            })
            .collect();
        sessions.sort();
        sessions
    };
    let kept = all(&homes[0]);
    assert!(homes.iter().all(|home| all(home) == kept), "{kept:?}");
    for (at, series) in (0..3).flat_map(|at| (0..12).map(move |series| (at, series))) {
        let word = said(at, series);
        let times: usize = kept.iter().map(|text| text.matches(&word).count()).sum();
        assert!(times > 0, "{word} is lost: {kept:?}");
    }
    assert_eq!(kept.len(), 3, "nothing is there twice: {kept:?}");
}

#[test]
fn a_full_disk_on_either_side_takes_all_or_nothing_and_all_later() {
    let (here, there, bin) = two();
    synced(&here, &bin);
    // Beyond this size, in blocks of 512 bytes, no file grows.
    let full = "trap '' XFSZ; ulimit -f 900";
    let say_much = |home: &Home, name: &str| {
        let mut client = home.stdio(&[]);
        for _ in 0..9 {
            let text = format!("much {name} ").repeat(9000);
            let message = format!("(:session \"of {name}\" :role :user :content {text:?})");
            client.ok("add-message", &message);
        }
        client.end();
    };
    let much = |home: &Home, name: &str| {
        let listed = call(home, "list-sessions", "nil");
        let listed = listed.as_array().unwrap().iter().find(|row| row["session"] == *name).cloned();
        listed.unwrap()["messages"].as_u64().unwrap()
    };
    say_much(&here, "here");
    script(&here, &format!("{full}\nexec {} sync --serve", program(&there)));
    for _ in 0..2 {
        let said = refused(&here, &bin, &["there"]);
        assert!(said.contains("there refused: the state could not be"), "{said}");
        assert_eq!(much(&there, "of here"), 1, "all of it or nothing");
    }
    script(&here, &format!("exec {} sync --serve", program(&there)));
    assert!(synced(&here, &bin).contains("gave 9 messages"));
    say_much(&there, "there");
    let sync = "exec \"$0\" sync there";
    let mut command = here.command(&["sync"]);
    let (name, envs) = (command.get_program().to_owned(), command.get_envs());
    let envs: Vec<_> = envs.filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    command = Command::new("/bin/sh");
    command.args(["-c", &format!("{full}\n{sync}")]).arg(name).env_clear().envs(envs);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let output = command.env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the state could not be"), "{said}");
    assert_eq!(much(&here, "of there"), 1, "all of it or nothing");
    assert!(synced(&here, &bin).contains("took 9 messages"));
    assert_eq!((much(&there, "of here"), much(&here, "of there")), (10, 10));
}
