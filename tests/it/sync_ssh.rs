//! `contexture sync` over a real ssh and a private sshd, on a line that delays and cuts.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::skips::skipped;
use crate::support::*;
use crate::sync::{call, program, script, sync_with, two};

/// An sshd of the test's own, on a port of the loopback address.
struct Sshd {
    process: std::process::Child,
    port: u16,
    config: PathBuf,
    /// The program, for the account that sshd runs as.
    program: PathBuf,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the sshd for the home of another account, or of this one if it is not root.
fn sshd(there: &Home) -> Result<Sshd, String> {
    let server = Path::new("/usr/sbin/sshd");
    if !server.exists() || !Path::new("/usr/bin/ssh").exists() {
        return Err("there is no /usr/sbin/sshd".to_owned());
    }
    let account = Account::instead_of_root();
    let user = match &account {
        Some(account) => account.name.clone().ok_or("no account but root has a shell")?,
        None => String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap(),
    };
    let folder = there.path("sshd");
    fs::create_dir(&folder).unwrap();
    for name in ["host", "user"] {
        let key = folder.join(name);
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(key);
        if !make.stdin(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return Err("ssh-keygen made no key".to_owned());
        }
    }
    fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = folder.display();
    let settings = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\n\
         PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
    );
    fs::write(folder.join("sshd_config"), settings).unwrap();
    let settings = format!(
        "Host there\nHostName 127.0.0.1\nPort {port}\nUser {}\nIdentityFile {at}/user\n\
         IdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile {at}/known\nLogLevel ERROR\n",
        user.trim()
    );
    let config = folder.join("ssh_config");
    fs::write(&config, settings).unwrap();
    let log = fs::File::create(folder.join("log")).unwrap();
    // Where another account may run it.
    let (built, copy) = (env!("CARGO_BIN_EXE_contexture"), there.path("contexture"));
    fs::hard_link(built, &copy).or_else(|_| fs::copy(built, &copy).map(drop)).unwrap();
    let set = program(there).replace(built, copy.to_str().unwrap());
    let name = there.path("program");
    fs::write(&name, format!("#!/bin/sh\nexec {set} \"$@\"\n")).unwrap();
    fs::set_permissions(&name, fs::Permissions::from_mode(0o755)).unwrap();
    if let Some(account) = &account {
        account.own(&there.path(""));
    }
    let mut command = Command::new(server);
    command.args(["-D", "-e", "-f"]).arg(folder.join("sshd_config"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let process = Account::run(account.as_ref(), &mut command).spawn();
    let process = process.map_err(|error| error.to_string())?;
    let mut sshd = Sshd { process, port, config, program: there.path("program") };
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(sshd);
        }
        if sshd.process.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!(
        "sshd does not start: {}",
        fs::read_to_string(folder.join("log")).unwrap_or_default()
    ))
}

/// What a line does, and what was seen on it.
#[derive(Default)]
struct Line {
    /// Time that each byte takes, one way.
    delay: Duration,
    /// Number of bytes from the server after which the line is gone; 0 if it stays.
    cut: AtomicU64,
    /// Whether the client said the last thing, and how often it did so after the server.
    is_client: AtomicBool,
    turns: AtomicU64,
}

impl Line {
    /// Passes on what comes one way, each piece as much later.
    fn pass(self: &Arc<Self>, mut from: TcpStream, mut to: TcpStream, is_client: bool) {
        let (send, pieces) = mpsc::channel::<(Instant, Vec<u8>)>();
        let line = Arc::clone(self);
        std::thread::spawn(move || {
            let mut left = line.cut.load(Ordering::Relaxed);
            let mut bytes = vec![0; 1 << 16];
            while let Ok(1..) = from.read(&mut bytes).inspect(|count| bytes.truncate(*count)) {
                if is_client && !line.is_client.swap(true, Ordering::Relaxed) {
                    line.turns.fetch_add(1, Ordering::Relaxed);
                } else if !is_client {
                    line.is_client.store(false, Ordering::Relaxed);
                    let is_over = left > 0 && left <= bytes.len() as u64;
                    if is_over {
                        break;
                    }
                    left = left.saturating_sub(bytes.len() as u64);
                }
                if send.send((Instant::now() + line.delay, bytes)).is_err() {
                    break;
                }
                bytes = vec![0; 1 << 16];
            }
        });
        std::thread::spawn(move || {
            for (at, bytes) in pieces {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                if to.write_all(&bytes).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }

    /// Puts the line in front of a sshd, and returns a folder with an ssh that uses it.
    fn to(self: &Arc<Self>, sshd: &Sshd, here: &Home) -> PathBuf {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (line, to) = (Arc::clone(self), sshd.port);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                let both = [&client, &server].map(|stream| {
                    stream.set_nodelay(true).unwrap();
                    stream.try_clone().unwrap()
                });
                let [client_again, server_again] = both;
                line.pass(client, server, true);
                line.pass(server_again, client_again, false);
            }
        });
        let config = sshd.config.display();
        script(here, &format!("exec /usr/bin/ssh -F {config} -o Port={port} \"$@\""))
    }

    /// Returns how often the client waited for the server while something was done.
    fn turns(&self, done: impl FnOnce()) -> u64 {
        let before = self.turns.load(Ordering::Relaxed);
        done();
        self.turns.load(Ordering::Relaxed) - before
    }
}

/// Returns two homes, the sshd of the second, a line to it that is as late, and a folder with an ssh
/// that uses the line. Where no sshd can be had, the test is skipped.
fn over_a_line(delay: Duration) -> Option<(Home, Home, Sshd, Arc<Line>, PathBuf)> {
    let (here, there, _) = two();
    let sshd = sshd(&there).map_err(|why| skipped(&why)).ok()?;
    let line = Arc::new(Line { delay, ..Line::default() });
    let bin = line.to(&sshd, &here);
    Some((here, there, sshd, line, bin))
}

/// Exchanges over a line, and returns what the program says.
fn exchange(here: &Home, bin: &Path, sshd: &Sshd) -> Output {
    sync_with(here, bin, &["there", "--program", sshd.program.to_str().unwrap()])
}

#[track_caller]
fn exchanged(here: &Home, bin: &Path, sshd: &Sshd) -> String {
    let output = exchange(here, bin, sshd);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what the other home, which another account may have, lists.
fn listed(there: &Home) -> Json {
    let mut list = there.command(&["call", "list-sessions", "nil", "--json"]);
    let account = Account::instead_of_root();
    let listed = Account::run(account.as_ref(), &mut list).output().unwrap().stdout;
    read_json(&String::from_utf8(listed).unwrap())
}

fn say_many(here: &Home, calls: usize) {
    let mut client = here.stdio(&[]);
    for _ in 0..calls {
        let message =
            |n| format!("(:role :user :content \"message {n}: what the parser makes of a line\")");
        let messages: Vec<String> = (0..500).map(message).collect();
        let messages = messages.join(" ");
        client.ok("add-message", &format!("(:session \"of here\" :messages ({messages}))"));
    }
    client.end();
}

#[test]
fn ten_thousand_messages_and_a_change_go_over_a_slow_line_in_few_round_trips() {
    let Some((here, there, sshd, line, bin)) = over_a_line(Duration::from_millis(100)) else {
        return;
    };
    // What ssh needs by itself.
    let login = line.turns(|| {
        let mut ssh = Command::new(bin.join("ssh"));
        let done = ssh.args(["-T", "-C", "--", "there", "true"]).status().unwrap();
        assert!(done.success());
    });
    say_many(&here, 20);
    let begun = Instant::now();
    let mut said = String::new();
    let first = line.turns(|| said = exchanged(&here, &bin, &sshd));
    let time = begun.elapsed();
    assert!(said.contains("gave 1 session, 10001 messages"), "{said}");
    assert!(listed(&there).as_array().unwrap().iter().any(|row| row["messages"] == 10_001));
    call(&here, "add-message", "(:session \"of here\" :role :user :content \"a change\")");
    let change = line.turns(|| said = exchanged(&here, &bin, &sshd));
    assert!(said.contains("gave 1 message") && said.contains("round trips: 1)"), "{said}");
    eprintln!(
        "200 ms for each round trip: ssh itself {login}, 10001 messages {first} in {time:?}, a change \
         {change}"
    );
    assert!(change <= login + 1, "a change took {change}, ssh itself {login}");
}

#[test]
fn what_a_line_cuts_off_goes_on_with_the_next_exchange() {
    let Some((here, there, sshd, line, bin)) = over_a_line(Duration::ZERO) else { return };
    say_many(&here, 6);
    let mut cuts = 0;
    // While ssh logs in, before the first answer, and after it.
    for most in [10, 2000, 4000, 4300, 4700, 5200] {
        line.cut.store(most, Ordering::Relaxed);
        let output = exchange(&here, &bin, &sshd);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || said.contains("before it answered"), "{most}: {said}");
        cuts += u64::from(!output.status.success());
    }
    assert!(cuts > 2, "the cuts were too late: {cuts}");
    line.cut.store(0, Ordering::Relaxed);
    exchanged(&here, &bin, &sshd);
    assert!(exchanged(&here, &bin, &sshd).contains("took nothing new; gave nothing new"));
    for sessions in [call(&here, "list-sessions", "nil"), listed(&there)] {
        let of = |name: &str, count: u64| {
            let rows = sessions.as_array().unwrap().iter();
            let rows = rows.filter(|row| row["session"] == *name && row["messages"] == count);
            assert_eq!(rows.count(), 1, "{name}: {sessions}");
        };
        of("of here", 3001);
        of("of there", 1);
    }
}
