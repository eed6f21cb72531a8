//! Backups and repair, and a state that cannot be written: reading goes on, and changes are taken
//! again as soon as they can be kept.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skips::skipped;
use crate::support::*;

/// A file system of its own, which can be full or read-only. Only root can make one.
struct Mounted(PathBuf);

impl Mounted {
    fn new(home: &Home, kib: u32) -> Option<Self> {
        let path = home.path("small");
        std::fs::create_dir(&path).unwrap();
        let size = format!("size={kib}k,mode=700");
        mount(&["-t", "tmpfs", "-o", &size, "none", path.to_str().unwrap()]).then(|| Self(path))
    }

    fn set_writable(&self, writable: bool) {
        let mode = if writable { "remount,rw" } else { "remount,ro" };
        assert!(mount(&["-o", mode, self.0.to_str().unwrap()]));
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// Takes all the room there is, and returns the file that has it.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut room = 64 << 20;
        let mut filler = std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        while room > 0 {
            if std::io::Write::write_all(&mut filler, &vec![0; room]).is_err() {
                room /= 2;
            }
        }
        path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Why a test that needs a file system of its own is skipped.
const MOUNTED_BY_ROOT: &str = "file systems can be mounted by root only";

fn mount(args: &[&str]) -> bool {
    let mounted = Command::new("mount").args(args).stderr(std::process::Stdio::null()).status();
    mounted.is_ok_and(|status| status.success())
}

/// Whatever only reads.
#[track_caller]
fn read_everything(client: &mut Client) {
    for (method, params) in [
        ("get-context", "nil"),
        ("list-items", "(:count-only t)"),
        ("list-managers", "nil"),
        ("render-items", "nil"),
        ("list-sets", "nil"),
        ("list-sessions", "nil"),
        ("get-messages", "(:session \"s\")"),
        ("list-sessions", "(:query \"spoken\")"),
        ("build-context", "(:session \"s\")"),
        ("list-memories", "nil"),
        ("ground-query", "(:query \"remembered\")"),
        ("initialize", "nil"),
    ] {
        client.ok(method, params);
    }
}

fn fill_state(client: &mut Client) {
    client.ok("open-session", "(:name \"s\")");
    client.ok("add-message", "(:session \"s\" :content \"a spoken word\")");
    client.ok("remember", "(:content \"something remembered\" :scope :everywhere)");
    client.ok("add-context", "(:manager \"other\" :content \"other\")");
    client.ok("save-set", "(:manager \"other\" :name \"kept\")");
}

fn stdio_at(home: &Home, state: &Path) -> Client {
    home.stdio(&["--state", state.to_str().unwrap()])
}

#[test]
fn a_disk_that_fills_and_is_freed_loses_nothing_and_stops_no_reading() {
    let home = Home::new();
    let Some(disk) = Mounted::new(&home, 3000) else { return skipped(MOUNTED_BY_ROOT) };
    let mut client = stdio_at(&home, &disk.state());
    fill_state(&mut client);
    let mut kept = Vec::new();
    for round in 0..3 {
        let filler = disk.fill();
        let mut refused = 0;
        for number in 0..200 {
            let content = format!("{round} {number} {}", "x".repeat(200));
            let params = format!("(:content \"{content}\")");
            match client.call("add-context", &params) {
                Ok(_) => kept.push(content),
                Err(failure) => {
                    assert_eq!(failure.kind(), "store-failed", "{}", failure.message);
                    refused += 1;
                }
            }
            if number % 20 == 0 {
                read_everything(&mut client);
                kept = kept.split_off(kept.len().saturating_sub(50));
                assert_eq!(client.contents("*shared*"), kept, "round {round}, after {number}");
            }
        }
        assert!(refused > 0, "the disk was never full");
        let says = |client: &mut Client| {
            client.call("add-message", "(:session \"s\" :content \"no room\")").is_err()
        };
        assert!((0..200).any(|_| says(&mut client)), "there is always room for a message");
        assert!(!is_nil(&client.ok("initialize", "nil")["read_only"]));
        read_everything(&mut client);
        std::fs::remove_file(filler).unwrap();
        client.ok("add-context", "(:content \"there is room again\")");
        kept.push("there is room again".to_owned());
        client.ok("add-message", "(:session \"s\" :content \"room\")");
        assert!(is_nil(&client.ok("initialize", "nil")["read_only"]));
    }
    client.process().kill();
    let mut client = stdio_at(&home, &disk.state());
    kept = kept.split_off(kept.len().saturating_sub(50));
    assert_eq!(client.contents("*shared*"), kept);
    assert!(is_nil(&client.ok("initialize", "nil")["notices"]));
    let messages = client.ok("get-messages", "(:session \"s\")");
    assert_eq!(messages.as_array().unwrap().len(), 4);
}

#[test]
fn a_server_starts_on_a_full_disk_and_takes_changes_once_there_is_room() {
    let home = Home::new();
    let Some(disk) = Mounted::new(&home, 3000) else { return skipped(MOUNTED_BY_ROOT) };
    let mut client = stdio_at(&home, &disk.state());
    fill_state(&mut client);
    client.add("*shared*", "before");
    client.process().kill();
    let filler = disk.fill();
    let mut client = stdio_at(&home, &disk.state());
    check_reading_only(&mut client);
    std::fs::remove_file(filler).unwrap();
    check_writing_again(&mut client);
    client.process().kill();
    assert_eq!(stdio_at(&home, &disk.state()).contents("*shared*"), ["before", "after"]);
}

#[test]
fn a_server_starts_on_a_read_only_file_system_and_takes_changes_once_it_can() {
    let home = Home::new();
    let Some(disk) = Mounted::new(&home, 6000) else { return skipped(MOUNTED_BY_ROOT) };
    let mut client = stdio_at(&home, &disk.state());
    fill_state(&mut client);
    client.add("*shared*", "before");
    client.process().kill();
    disk.set_writable(false);
    let mut client = stdio_at(&home, &disk.state());
    check_reading_only(&mut client);
    disk.set_writable(true);
    check_writing_again(&mut client);
    client.process().kill();
    assert_eq!(stdio_at(&home, &disk.state()).contents("*shared*"), ["before", "after"]);
}

#[track_caller]
fn check_reading_only(client: &mut Client) {
    assert_eq!(client.contents("*shared*"), ["before"]);
    read_everything(client);
    for (method, params) in [
        ("add-context", "(:content \"no\")"),
        ("clear-context", "nil"),
        ("undo", "nil"),
        ("add-message", "(:session \"s\" :content \"no\")"),
        ("remember", "(:content \"no\" :scope :everywhere)"),
    ] {
        let failure = client.call(method, params).unwrap_err();
        assert_eq!(failure.kind(), "read-only", "{method}: {}", failure.message);
        assert!(failure.message.contains("try again"), "{}", failure.message);
    }
    read_everything(client);
    let info = client.ok("initialize", "nil");
    assert!(!is_nil(&info["read_only"]), "{info}");
    assert!(info["notices"].to_string().contains("cannot be written"), "{info}");
}

#[track_caller]
fn check_writing_again(client: &mut Client) {
    client.ok("add-context", "(:content \"after\")");
    client.ok("add-message", "(:session \"s\" :content \"after\")");
    assert_eq!(client.contents("*shared*"), ["before", "after"]);
    assert!(is_nil(&client.ok("initialize", "nil")["read_only"]));
    read_everything(client);
}

#[test]
fn a_state_folder_that_is_removed_is_noticed_before_anything_is_acknowledged() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    fill_state(&mut client);
    std::fs::remove_dir_all(home.state()).unwrap();
    for (method, params) in [
        ("add-context", "(:content \"no\")"),
        ("add-message", "(:session \"s\" :content \"no\")"),
        ("save-set", "(:manager \"other\" :name \"no\")"),
    ] {
        let failure = client.call(method, params).unwrap_err();
        assert_eq!(failure.kind(), "state-removed", "{method}: {}", failure.message);
        assert!(failure.message.contains("was removed"), "{}", failure.message);
    }
    read_everything(&mut client);
}

#[test]
fn a_turn_whose_results_cannot_be_stored_says_which_question_is_in_the_log() {
    let home = Home::new();
    let answers = "[[answer]]\ncalls = [{ name = \"list_context\", arguments = '{}' }]\n";
    let script = home.write("answers.toml", answers);
    let config = home.path("config/contexture/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let provider = "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-1\"\n";
    std::fs::write(config, format!("{provider}script = {script:?}\n")).unwrap();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"s\")");
    let chat = client.send("chat", "(:content \"look\" :tools t)");
    let approval = loop {
        let told = client.notification("progress");
        if told["kind"] == "approval" {
            break told["approval"].clone();
        }
    };
    std::fs::remove_dir_all(home.state()).unwrap();
    client.send("approve", &format!("(:approval {approval} :decision :once)"));
    let failure = client.reply(chat).unwrap_err();
    assert_eq!((failure.kind(), &failure.data["question"]), ("state-removed", &"msg-1".into()));
}

#[test]
fn links_in_a_state_folder_are_refused_and_others_may_not_write_there() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.add("*shared*", "x");
    client.end();
    std::fs::set_permissions(home.state(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut client = home.stdio(&[]);
    let notices = client.ok("initialize", "nil")["notices"].to_string();
    assert!(notices.contains("others could write"), "{notices}");
    client.end();
    assert_eq!(std::fs::metadata(home.state()).unwrap().permissions().mode() & 0o777, 0o700);
    let victim = home.write("victim", "precious");
    for name in ["contexture.mark-1", "contexture.db", "lock", "contexture.mark-2"] {
        let path = home.state().join(name);
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let said = home.fail(&["serve", "--stdio"]);
        assert!(said.contains(name) && said.contains("link"), "{said}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, kept).unwrap();
    }
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["x"]);
}

#[test]
fn a_backup_is_whole_while_the_server_runs_and_comes_back() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    fill_state(&mut client);
    client.add("*shared*", "one");
    let file = home.path("backup.db");
    let name = file.to_str().unwrap();
    let said = home.succeed(&["backup", name]);
    assert!(said.contains("and checked it"), "{said}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(home.fail(&["backup", name]).contains("already exists"));
    assert!(home.fail(&["restore", name]).contains("contexture call shutdown"));
    let report = String::from_utf8(home.run(&["doctor", "--repair"]).stdout).unwrap();
    assert!(report.contains("was not repaired") && report.contains("shutdown"), "{report}");
    client.add("*shared*", "two");
    client.ok("shutdown", "nil");
    drop(server);
    let whole = std::fs::read(&file).unwrap();
    for at in [100, whole.len() / 2, whole.len() - 10] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let bad = home.path("bad.db");
        std::fs::write(&bad, bytes).unwrap();
        let said = home.fail(&["restore", bad.to_str().unwrap()]);
        assert!(said.contains("not what was written"), "{said}");
    }
    for bytes in [Vec::new(), vec![0; 512]] {
        let bad = home.write("bad.db", bytes);
        let said = home.fail(&["restore", &bad]);
        assert!(
            said.contains("no state of Contexture") || said.contains("not a database"),
            "{said}"
        );
    }
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["one", "two"], "nothing was restored");
    let said = home.succeed(&["restore", name]);
    assert!(said.contains("damaged"), "{said}");
    let mut client = home.stdio(&[]);
    assert_eq!(client.contents("*shared*"), ["one"]);
    read_everything(&mut client);
    assert_eq!(client.add("*shared*", "three"), "ctx-4", "ids go on where they were");
    client.end();
    home.succeed(&["backup", name, "--force"]);
    assert_ne!(std::fs::read(&file).unwrap(), whole);
    assert!(!home.state().join("backups/asked.db").exists());
}

#[test]
fn the_doctor_repairs_and_says_each_step() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    fill_state(&mut client);
    client.end();
    home.back_up();
    home.damage("something remembered");
    let report = home.run(&["doctor"]);
    assert!(!report.status.success());
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("a row of the table memory has a wrong hash"), "{report}");
    let said = home.succeed(&["doctor", "--repair"]);
    for part in ["takes its place, and no change is lost", "are kept in", "was read completely"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!home.succeed(&["doctor"]).contains("BAD"));
    read_everything(&mut home.stdio(&[]));
}

#[test]
fn damage_that_a_start_does_not_see_is_found_and_repaired_while_the_server_runs() {
    let home = Home::new();
    let mut client = home.stdio(&["--backups-kept", "0"]);
    fill_state(&mut client);
    client.add("*shared*", "before the backup");
    client.end();
    home.back_up();
    let mut client = home.stdio(&["--backups-kept", "0"]);
    client.add("*shared*", "after the backup");
    client.end();
    home.damage("before the backup");
    let mut client = home.stdio(&["--backups-kept", "0"]);
    let read = client.call("get-context", "nil");
    let is_told = |failure: Failure| failure.kind() == "store-damaged";
    assert!(
        read.map_or_else(is_told, |items| items.as_array().unwrap().len() == 1),
        "a wrong text"
    );
    let told = (0..200).find_map(|_| {
        // The server looks at its state when nobody asks anything.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let notices = client.ok("initialize", "nil")["notices"].to_string();
        notices.contains("takes its place").then_some(notices)
    });
    let told = told.expect("the damage is not told");
    assert!(told.contains("table version") && told.contains("and 1 change is lost"), "{told}");
    assert_eq!(client.contents("*shared*"), ["before the backup"]);
    read_everything(&mut client);
    assert_eq!(client.add("*shared*", "new"), "ctx-4", "no id is given twice");
    client.process().kill();
    let mut client = home.stdio(&["--backups-kept", "0"]);
    assert_eq!(client.contents("*shared*"), ["before the backup", "new"]);
    assert!(is_nil(&client.ok("initialize", "nil")["notices"]));
}

#[test]
fn a_time_far_ahead_is_of_one_message_only() {
    let home = Home::new();
    let mut client = home.stdio(&["--fixed-time", "1700000000"]);
    client.ok("open-session", "(:name \"s\")");
    client.ok("add-message", "(:content \"a\" :timestamp 99999999999)");
    client.ok("add-message", "(:content \"b\")");
    let messages = client.ok("get-messages", "nil");
    let times: Vec<i64> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["timestamp"].as_i64().unwrap())
        .collect();
    assert_eq!(times, [99_999_999_999, 1_700_000_000]);
}
