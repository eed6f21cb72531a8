//! A PostgreSQL of a test's own.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::support::*;

/// A database in a folder of its own, which listens on a Unix socket there, and with TLS on a port of
/// the loopback address if it is told so.
pub(crate) struct Postgres {
    process: Child,
    account: Option<Account>,
    bin: PathBuf,
    folder: tempfile::TempDir,
    /// Port on the loopback address and of the socket, if it is another one than usual.
    port: Option<u16>,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The folder of the newest PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let bins = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    bins.filter(|bin| bin.join("initdb").exists()).max()
}

/// Starts a database with two people, a stranger, and the group `team` of the two.
pub(crate) fn postgres() -> Result<Postgres, String> {
    let bin = programs().ok_or("there is no PostgreSQL below /usr/lib/postgresql")?;
    let folder = tempfile::Builder::new().prefix("ctxpg").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let account = Account::instead_of_root();
    account.iter().for_each(|account| account.own(folder.path()));
    let mut make = Command::new(bin.join("initdb"));
    make.args(["-U", "owner", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"]);
    make.args(["--wal-segsize=1", "-D"]).arg(folder.path().join("data"));
    let made = Account::run(account.as_ref(), &mut make).current_dir("/").output().unwrap();
    if !made.status.success() {
        return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let process = started(account.as_ref(), &bin, folder.path(), "", None);
    let postgres = Postgres { process, account, bin, folder, port: None };
    postgres.wait();
    postgres.sql("owner", "postgres", "CREATE DATABASE team");
    let roles = "CREATE ROLE ann LOGIN; CREATE ROLE ben LOGIN; CREATE ROLE eve LOGIN;
                 CREATE ROLE team ROLE ann, ben";
    postgres.sql("owner", "team", roles);
    Ok(postgres)
}

/// Starts the server after a command of the shell. With a port, its folder has the other settings.
fn started(
    account: Option<&Account>,
    bin: &Path,
    folder: &Path,
    before: &str,
    port: Option<u16>,
) -> Child {
    let mut start = Command::new("/bin/sh");
    start.args(["-c", &format!("{before}\nexec \"$@\""), "sh"]).arg(bin.join("postgres"));
    start.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    start.args(["-c", "fsync=off", "-c", "max_wal_size=4GB", "-c"]);
    match port {
        Some(port) => start.arg(format!("port={port}")),
        None => start.arg("listen_addresses="),
    };
    start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    Account::run(account, &mut start).spawn().unwrap()
}

impl Postgres {
    /// Ends the server at once, in the middle of whatever it does.
    pub(crate) fn stop(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            let pid = self.process.id().to_string();
            assert!(Command::new("kill").args(["-QUIT", &pid]).status().unwrap().success());
            self.process.wait().unwrap();
        }
    }

    /// Starts the server again, after a command of the shell.
    pub(crate) fn restart(&mut self, before: &str) {
        self.stop();
        let (account, port) = (self.account.as_ref(), self.port);
        self.process = started(account, &self.bin, self.folder.path(), before, port);
        self.wait();
    }

    /// Starts the server again with the settings in its folder, which name this port.
    pub(crate) fn restart_at(&mut self, port: u16) {
        self.port = Some(port);
        self.restart("");
    }

    fn wait(&self) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !self.psql("owner", "postgres", "SELECT 1").status.success() {
            assert!(std::time::Instant::now() < deadline, "PostgreSQL does not start");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Adds a file of the server's own.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder().join("data").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self.account.iter().for_each(|account| account.own(&path));
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn psql(&self, user: &str, database: &str, sql: &str) -> Output {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-U", user, "-d", database]);
        let port = self.port.unwrap_or(5432).to_string();
        psql.arg("-h").arg(self.folder.path()).args(["-p", &port, "-c", sql]).output().unwrap()
    }

    /// Opens a connection that stays open.
    pub(crate) fn session(&self, user: &str) -> Session {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-X", "-A", "-t", "-q", "-U", user, "-d", "team", "-h"]).arg(self.folder.path());
        psql.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = psql.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Session { process, lines }
    }

    #[track_caller]
    pub(crate) fn sql(&self, user: &str, database: &str, sql: &str) -> String {
        let output = self.psql(user, database, sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What the database answers to a statement that it refuses.
    #[track_caller]
    pub(crate) fn refuses(&self, user: &str, sql: &str) -> String {
        let output = self.psql(user, "team", sql);
        assert!(!output.status.success(), "{user} may: {sql}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn address(&self, user: &str) -> String {
        address(user, self.folder.path())
    }
}

/// A connection that stays open until it is dropped.
pub(crate) struct Session {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Session {
    /// Runs statements, and waits for their first line.
    pub(crate) fn answer(&mut self, sql: &str) -> String {
        writeln!(self.process.stdin.as_mut().unwrap(), "{sql};").unwrap();
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The address of a database behind a Unix socket in a folder.
pub(crate) fn address(user: &str, folder: &Path) -> String {
    let folder = folder.to_str().unwrap().replace('/', "%2F");
    format!("postgres://{user}@{folder}/team")
}
