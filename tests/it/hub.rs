//! `contexture hub`: people with homes of their own, and a PostgreSQL of the test's own.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::postgres::{address, postgres};
use crate::skips::skipped;
use crate::support::*;

/// The home of somebody who has a project, with a session and a memory of it.
pub(crate) fn person(user: &str, url: &str) -> Home {
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

pub(crate) fn configure(home: &Home, url: &str) {
    let config = home.path("config/contexture");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), format!("[hub]\nurl = {url:?}\ntimeout = 20\n")).unwrap();
}

pub(crate) fn say(home: &Home, user: &str, text: &str) {
    call(home, "add-message", &format!("(:session \"of {user}\" :role :user :content {text:?})"));
}

pub(crate) fn call(home: &Home, method: &str, params: &str) -> Json {
    read_json(&home.succeed(&["call", method, params, "--json"]))
}

pub(crate) fn hub(home: &Home, args: &[&str]) -> (bool, String) {
    let mut all = vec!["hub"];
    all.extend(args);
    let mut command = home.command(&all);
    command.env("SSL_CERT_FILE", home.path("trusted.pem")).env("HUB_PASSWORD", "open sesame");
    let output = command.current_dir(home.file("app")).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[track_caller]
pub(crate) fn done(home: &Home, args: &[&str]) -> String {
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
    let authors =
        "SELECT string_agg(DISTINCT author::text, ',' ORDER BY author::text) FROM contexture.share";
    let texts = "SELECT count(*) FROM contexture.said";
    let found = "SELECT count(*) FROM contexture.search('parser', true, NULL, '', 50)";
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
    let of_ann = "(SELECT min(id) FROM contexture.share)";
    let columns = "machine, machine_name, project, readers";
    for sql in [
        format!("INSERT INTO contexture.share (author, {columns}) VALUES ('ann', 'm', 'm', 'p', 0)"),
        format!("INSERT INTO contexture.share (id, {columns}) VALUES (99, 'm', 'm', 'p', 0)"),
        format!("INSERT INTO contexture.source (share, kind, number, name, created)
                 VALUES ({of_ann}, 'session', 9, 'forged', 1)"),
        "UPDATE contexture.share SET author = 'ben'".to_owned(),
        "UPDATE contexture.share SET machine = 'x'".to_owned(),
        "UPDATE contexture.source SET share = 1".to_owned(),
        "UPDATE contexture.said SET content = 'forged'".to_owned(),
        "DELETE FROM contexture.said".to_owned(),
        "DELETE FROM contexture.share".to_owned(),
        "DELETE FROM contexture.machine".to_owned(),
        "INSERT INTO contexture.said (source, share, part, role, at, content)
         SELECT id, share, 99, 'user', 1, 'forged' FROM contexture.source ORDER BY id LIMIT 1"
            .to_owned(),
        "CREATE TABLE contexture.mine (x int)".to_owned(),
        "CREATE TRIGGER t BEFORE INSERT ON contexture.said EXECUTE FUNCTION suppress_redundant_updates_trigger()"
            .to_owned(),
        "CREATE OR REPLACE FUNCTION contexture.groups(who regrole) RETURNS oid[] LANGUAGE sql
         AS 'SELECT array_agg(oid) FROM pg_roles'".to_owned(),
        "ALTER TABLE contexture.source DISABLE ROW LEVEL SECURITY".to_owned(),
        "DELETE FROM contexture.hub".to_owned(),
    ] {
        let why = postgres.refuses("ben", &sql);
        assert!(why.contains("permission denied") || why.contains("must be owner")
            || why.contains("row-level security") || why.contains("GENERATED ALWAYS"),
            "{sql}: {why}");
    }
    let before =
        "SELECT md5(string_agg(content || part, '' ORDER BY source, part)) FROM contexture.said";
    let digest = postgres.sql("owner", "team", before);
    for user in ["ben", "eve"] {
        for sql in [
            "UPDATE contexture.share SET machine_name = 'forged', readers = 0
             WHERE author = 'ann'::regrole",
            "UPDATE contexture.source SET name = 'forged', gone = 1
             WHERE share IN (SELECT id FROM contexture.share WHERE author = 'ann'::regrole)",
            "SELECT contexture.take_back(array_agg(machine), array_agg(project))
             FROM contexture.share WHERE author = 'ann'::regrole",
        ] {
            postgres.sql(user, "team", sql);
        }
    }
    assert_eq!(postgres.sql("owner", "team", before), digest);
    let names = "SELECT count(*) FROM contexture.source JOIN contexture.share ON share.id = share
                 WHERE name = 'forged' OR machine_name = 'forged' OR gone IS NOT NULL";
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
    postgres.sql("owner", "team", "DELETE FROM contexture.share; DELETE FROM contexture.machine");
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
    assert_eq!(sql("SELECT count(*) FROM contexture.share"), "0", "all of it or nothing");
    // What it refused is shared when it is well again.
    sql("DROP TRIGGER no ON contexture.said");
    done(&ann, &["push"]);
    assert_eq!(sql("SELECT count(*) FROM contexture.said"), "2");
}
