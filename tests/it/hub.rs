//! `contexture hub`: people with homes of their own, and a PostgreSQL of the test's own.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::skips::skipped;
use crate::support::*;

/// A database in a folder of its own, which listens on a Unix socket there and nowhere else.
struct Postgres {
    process: Child,
    bin: PathBuf,
    folder: tempfile::TempDir,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folder of the newest PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let bins = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    bins.filter(|bin| bin.join("initdb").exists()).max()
}

/// Lets a command run as somebody else than root, whom PostgreSQL refuses.
fn demoted(command: &mut Command) -> &mut Command {
    match nobody() {
        Some((user, group)) => command.uid(user).gid(group),
        None => command,
    }
}

/// The user and the group to become when this is root.
fn nobody() -> Option<(u32, u32)> {
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    is_root.then_some((65534, 65534))
}

/// Starts a database with two people, a stranger, and the group `team` of the two.
fn postgres() -> Result<Postgres, String> {
    let bin = programs().ok_or("there is no PostgreSQL below /usr/lib/postgresql")?;
    let folder = tempfile::Builder::new().prefix("ctxpg").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if let Some((user, group)) = nobody() {
        chown(folder.path(), Some(user), Some(group)).unwrap();
    }
    let data = folder.path().join("data");
    let mut make = Command::new(bin.join("initdb"));
    make.args(["-U", "owner", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8", "-D"]);
    let made = demoted(make.arg(&data)).current_dir("/").output().unwrap();
    if !made.status.success() {
        return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let mut start = Command::new(bin.join("postgres"));
    start.arg("-D").arg(&data).arg("-k").arg(folder.path());
    start.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_wal_size=4GB"]);
    start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    let process = demoted(&mut start).spawn().unwrap();
    let postgres = Postgres { process, bin, folder };
    let deadline = std::time::Instant::now() + PATIENCE;
    while !postgres.psql("owner", "postgres", "SELECT 1").status.success() {
        assert!(std::time::Instant::now() < deadline, "PostgreSQL does not start");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    postgres.sql("owner", "postgres", "CREATE DATABASE team");
    let roles = "CREATE ROLE ann LOGIN; CREATE ROLE ben LOGIN; CREATE ROLE eve LOGIN;
                 CREATE ROLE team ROLE ann, ben";
    postgres.sql("owner", "team", roles);
    Ok(postgres)
}

impl Postgres {
    fn psql(&self, user: &str, database: &str, sql: &str) -> Output {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-U", user, "-d", database]);
        psql.arg("-h").arg(self.folder.path()).args(["-c", sql]).output().unwrap()
    }

    #[track_caller]
    fn sql(&self, user: &str, database: &str, sql: &str) -> String {
        let output = self.psql(user, database, sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What the database answers to a statement that it refuses.
    #[track_caller]
    fn refuses(&self, user: &str, sql: &str) -> String {
        let output = self.psql(user, "team", sql);
        assert!(!output.status.success(), "{user} may: {sql}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn address(&self, user: &str) -> String {
        address(user, self.folder.path())
    }
}

/// The address of a database behind a Unix socket in a folder.
fn address(user: &str, folder: &Path) -> String {
    let folder = folder.to_str().unwrap().replace('/', "%2F");
    format!("postgres://{user}@{folder}/team")
}

/// The home of somebody who has a project, with a session and a memory of it.
fn person(user: &str, url: &str) -> Home {
    let home = Home::new();
    configure(&home, url);
    let folder = home.file("app");
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::write(folder.join(".git/config"), "[remote \"origin\"]\n url = https://h/o/app.git\n")
        .unwrap();
    let folder = folder.to_str().unwrap();
    call(&home, "open-session", &format!("(:name \"of {user}\" :project {folder:?})"));
    say(&home, user, &format!("{user} asks why the parser loops"));
    call(&home, "remember", &format!("(:content \"{user} knows the parser\" :project {folder:?})"));
    home
}

fn configure(home: &Home, url: &str) {
    let config = home.path("config/contexture");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), format!("[hub]\nurl = {url:?}\ntimeout = 20\n")).unwrap();
}

fn say(home: &Home, user: &str, text: &str) {
    call(home, "add-message", &format!("(:session \"of {user}\" :role :user :content {text:?})"));
}

fn call(home: &Home, method: &str, params: &str) -> Json {
    read_json(&home.succeed(&["call", method, params, "--json"]))
}

fn hub(home: &Home, args: &[&str]) -> (bool, String) {
    let mut all = vec!["hub"];
    all.extend(args);
    let output = home.command(&all).current_dir(home.file("app")).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[track_caller]
fn done(home: &Home, args: &[&str]) -> String {
    let (is_done, said) = hub(home, args);
    assert!(is_done, "{said}");
    said
}

#[test]
fn nobody_reads_what_was_not_shared_with_them_and_nobody_changes_who_said_it() {
    let postgres = match postgres() {
        Ok(postgres) => postgres,
        Err(why) => return skipped(&why),
    };
    let [ann, ben] = ["ann", "ben"].map(|user| person(user, &postgres.address(user)));
    // Somebody owns the tables; until then the hub says what is missing.
    let (_, said) = hub(&ann, &["status"]);
    assert!(said.contains("no tables of a hub"), "{said}");
    configure(&ann, &postgres.address("owner"));
    assert!(done(&ann, &["setup"]).contains("owner owns the tables"));
    configure(&ann, &postgres.address("ann"));
    // What would be shared is seen first, and what is held back.
    say(&ann, "ann", &format!("the token is ghp_{}", "x".repeat(36)));
    let said = done(&ann, &["share", "--with", "team"]);
    assert!(
        said.contains("Would share") && said.contains("1 session, 1 message and 1 memory"),
        "{said}"
    );
    assert!(said.contains("message 2 of \"of ann\""), "{said}");
    assert_eq!(postgres.sql("owner", "team", "SELECT count(*) FROM contexture.source"), "0");
    let said = done(&ann, &["share", "--with", "team", "--yes"]);
    assert!(said.contains("Shared") && said.contains("for team; 1 text held back"), "{said}");
    let private = ann.file("private");
    fs::create_dir_all(&private).unwrap();
    let private = private.to_str().unwrap();
    call(&ann, "open-session", &format!("(:name \"own\" :project {private:?})"));
    call(&ann, "add-message", "(:session \"own\" :role :user :content \"private words\")");
    say(&ann, "ann", "and what the lexer does");
    done(&ann, &["push"]);
    let all = postgres.sql("owner", "team", "SELECT content FROM contexture.said");
    assert!(all.contains("lexer") && !all.contains("private") && !all.contains("ghp_"), "{all}");
    done(&ben, &["share", "--with", "ben", "--yes"]);

    // Raw SQL, as each of them.
    let authors = "SELECT string_agg(DISTINCT author, ',' ORDER BY author) FROM contexture.source";
    let texts = "SELECT count(*) FROM contexture.said";
    let found = "SELECT count(*) FROM contexture.search(to_tsquery('parser'), NULL, '', 50)";
    for (user, expected) in [("ann", ["ann", "3", "2"]), ("ben", ["ann,ben", "5", "4"])] {
        for (sql, expected) in [authors, texts, found].iter().zip(expected) {
            assert_eq!(postgres.sql(user, "team", sql), expected, "{user}: {sql}");
        }
    }
    for (sql, expected) in [(authors, ""), (texts, "0"), (found, "0")] {
        assert_eq!(postgres.sql("eve", "team", sql), expected, "eve: {sql}");
    }
    let as_team = format!("SET ROLE team; {texts}");
    assert_eq!(postgres.sql("ann", "team", &as_team), "3", "the group sees what it was given");
    // Nobody writes as somebody else, or into what somebody else wrote.
    let columns = "machine, machine_name, kind, number, project, readers, name, created";
    let values = "'m', 'm', 'session', 1, 'p', 'public', 'n', 1";
    for sql in [
        format!("INSERT INTO contexture.source (author, {columns}) VALUES ('ann', {values})"),
        format!("INSERT INTO contexture.source (came, {columns}) VALUES (now(), {values})"),
        "UPDATE contexture.source SET author = 'ben'".to_owned(),
        "UPDATE contexture.source SET machine = 'x'".to_owned(),
        "UPDATE contexture.said SET content = 'forged'".to_owned(),
        "INSERT INTO contexture.said (source, part, role, at, content)
         SELECT id, 99, 'user', 1, 'forged' FROM contexture.source WHERE author = 'ann'"
            .to_owned(),
        "CREATE TABLE contexture.mine (x int)".to_owned(),
        "CREATE TRIGGER t BEFORE INSERT ON contexture.said EXECUTE FUNCTION suppress_redundant_updates_trigger()"
            .to_owned(),
        "ALTER TABLE contexture.source DISABLE ROW LEVEL SECURITY".to_owned(),
        "DELETE FROM contexture.hub".to_owned(),
    ] {
        let why = postgres.refuses("ben", &sql);
        assert!(why.contains("permission denied") || why.contains("must be owner")
            || why.contains("row-level security"), "{sql}: {why}");
    }
    let before =
        "SELECT md5(string_agg(content || part, '' ORDER BY source, part)) FROM contexture.said";
    let digest = postgres.sql("owner", "team", before);
    for user in ["ben", "eve"] {
        for sql in [
            "UPDATE contexture.source SET name = 'forged', readers = 'public' WHERE author = 'ann'",
            "DELETE FROM contexture.source WHERE author = 'ann'",
            "DELETE FROM contexture.said WHERE source IN
             (SELECT id FROM contexture.source WHERE author = 'ann')",
            "DELETE FROM contexture.machine WHERE author = 'ann'",
        ] {
            postgres.sql(user, "team", sql);
        }
    }
    assert_eq!(postgres.sql("owner", "team", before), digest);
    let names = "SELECT count(*) FROM contexture.source WHERE name = 'forged'";
    assert_eq!(postgres.sql("owner", "team", names), "0");

    // Others find it, and hear whose it is.
    let folder = ben.file("app").to_str().unwrap().to_owned();
    let hits =
        call(&ben, "list-sessions", &format!("(:query \"lexer\" :hub t :project {folder:?})"));
    assert_eq!((&hits[0]["shared_by"], &hits[0]["session"]), (&"ann".into(), &"of ann".into()));
    let id = hits[0]["id"].as_str().unwrap();
    let read = |home: &Home, folder: &str| {
        let params = format!("(:session {id:?} :max-tokens 500 :project {folder:?})");
        home.command(&["call", "export-session", &params]).output().unwrap()
    };
    let handed = String::from_utf8(read(&ben, &folder).stdout).unwrap();
    assert!(
        handed.contains("shared by ann") && handed.contains("why the parser loops"),
        "{handed}"
    );
    let elsewhere = String::from_utf8(read(&ben, "/elsewhere").stderr).unwrap();
    assert!(elsewhere.contains("no such session of this project"), "{elsewhere}");
    let own = call(&ann, "list-sessions", "(:query \"lexer\" :hub t)");
    assert!(is_nil(&own), "what this machine shared is here already: {own}");

    // What is deleted here is gone there, and comes back with it.
    call(&ann, "delete-session", "(:session \"of ann\")");
    done(&ann, &["push"]);
    assert_eq!(postgres.sql("ben", "team", found), "3");
    call(&ann, "delete-session", r#"{"session": "of ann", "deleted": false}"#);
    done(&ann, &["push"]);
    assert_eq!(postgres.sql("ben", "team", found), "4");
    // A hub that is back at an earlier state gets what it lacks; nothing is there twice.
    postgres.sql("owner", "team", "DELETE FROM contexture.source; DELETE FROM contexture.machine");
    done(&ann, &["push"]);
    done(&ann, &["push"]);
    assert_eq!(postgres.sql("owner", "team", before), postgres.sql("ben", "team", before));
    assert_eq!(postgres.sql("ben", "team", texts), "3");
    // Leaving takes back what is one's own, and nothing else.
    done(&ben, &["share", "--yes"]);
    done(&ann, &["unshare"]);
    assert_eq!(postgres.sql("owner", "team", authors), "ben");
    assert_eq!(postgres.sql("eve", "team", texts), "2", "everybody reads what is for everybody");
    done(&ann, &["share", "--yes"]);
    assert!(done(&ben, &["leave"]).contains("No project is shared"));
    assert_eq!(postgres.sql("owner", "team", authors), "ann");
}

/// What a server does with a connection.
type Answer = fn(UnixStream);

/// A server on a Unix socket that answers each connection in its own way.
fn stranger(folder: &Path, answer: Answer) {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream);
        }
    });
}

#[test]
fn a_server_that_is_no_hub_changes_nothing_and_is_told_in_words() {
    let answers: [(&str, Answer); 4] = [
        ("garbage", |mut stream| {
            let _ = stream.write_all(&[0xff; 4096]);
        }),
        ("closed", drop),
        ("endless", |mut stream| {
            // A row of one gigabyte, without end.
            let _ = stream.write_all(b"R\0\0\0\x08\0\0\0\0D\x3f\xff\xff\xff");
            while stream.write_all(&[b'x'; 65536]).is_ok() {}
        }),
        ("silent", |mut stream| {
            let mut bytes = [0; 999];
            while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
        }),
    ];
    for (what, answer) in answers {
        let folder = tempfile::Builder::new().prefix("ctxno").tempdir().unwrap();
        stranger(folder.path(), answer);
        let home = person("ann", &address("ann", folder.path()));
        let config = home.path("config/contexture/config.toml");
        let text = fs::read_to_string(&config).unwrap().replace("timeout = 20", "timeout = 0.5");
        fs::write(config, text).unwrap();
        let (_, said) = hub(&home, &["status"]);
        assert!(said.contains("Not now: "), "{what}: {said}");
        // Local work goes on, and finds what it has.
        say(&home, "ann", "more");
        let hits = call(&home, "list-sessions", "(:query \"parser\")");
        assert_eq!(hits.as_array().unwrap().len(), 1, "{what}");
    }
}

#[test]
fn a_hub_with_other_tables_or_triggers_is_refused_and_told() {
    let postgres = match postgres() {
        Ok(postgres) => postgres,
        Err(why) => return skipped(&why),
    };
    let ann = person("ann", &postgres.address("ann"));
    let sql = |sql: &str| postgres.sql("owner", "team", sql);
    let not_now = |args: &[&str], why: &str| {
        let (is_done, said) = hub(&ann, args);
        assert!(!is_done && said.contains("Not now: ") && said.contains(why), "{args:?}: {said}");
        assert!(!said.contains('\u{1b}') && said.len() < 2000, "{said}");
        let hits = call(&ann, "list-sessions", "(:query \"parser\")");
        assert_eq!(hits.as_array().unwrap().len(), 1);
    };
    let share = ["share", "--yes"];
    not_now(&share, "no tables of a hub");
    sql("CREATE SCHEMA contexture; GRANT USAGE ON SCHEMA contexture TO PUBLIC;
         CREATE TABLE contexture.hub (version text); INSERT INTO contexture.hub VALUES ('x');
         GRANT SELECT ON contexture.hub TO PUBLIC");
    not_now(&share, "something else than was asked for");
    sql("DROP TABLE contexture.hub; CREATE TABLE contexture.hub (version integer);
         INSERT INTO contexture.hub VALUES (99); GRANT SELECT ON contexture.hub TO PUBLIC");
    not_now(&share, "have version 99");
    sql("UPDATE contexture.hub SET version = 1");
    not_now(&share, "does not exist");
    sql("DROP SCHEMA contexture CASCADE");
    configure(&ann, &postgres.address("owner"));
    done(&ann, &["setup"]);
    let (_, said) = hub(&ann, &["setup"]);
    assert!(said.contains("already exists"), "{said}");
    configure(&ann, &postgres.address("ann"));
    // A trigger that refuses, with words that would hide others.
    sql("CREATE FUNCTION contexture.no() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION '%', E'\\x1b[2Jno' || repeat('x', 9999); END $$;
         CREATE TRIGGER no BEFORE INSERT ON contexture.said
         FOR EACH ROW EXECUTE FUNCTION contexture.no()");
    not_now(&share, "the hub failed: ");
    assert_eq!(sql("SELECT count(*) FROM contexture.source"), "0", "all of it or nothing");
    // What it refused is shared when it is well again.
    sql("DROP TRIGGER no ON contexture.said");
    done(&ann, &["push"]);
    assert_eq!(sql("SELECT count(*) FROM contexture.said"), "2");
}
