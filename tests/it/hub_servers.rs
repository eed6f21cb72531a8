//! A hub on a real server: what its rows tell to whom, over TLS with a password, with a full disk, and
//! cut off in the middle. What it finds, as a search of this machine does.

use std::fs;
use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use crate::hub::{call, configure, done, hub, person, say};
use crate::postgres::{Postgres, address, postgres};
use crate::skips::skipped;
use crate::support::*;

/// A hub with its tables, or the reason why there is none.
fn ready() -> Result<Postgres, String> {
    let postgres = postgres()?;
    let tables = include_str!("../../src/hub/tables.sql");
    postgres.sql("owner", "team", tables);
    Ok(postgres)
}

macro_rules! ready {
    () => {
        match ready() {
            Ok(postgres) => postgres,
            Err(why) => return skipped(&why),
        }
    };
}

/// Says as many messages in the session of somebody, in one call.
fn say_many(home: &Home, user: &str, texts: &[String]) {
    let messages = texts.iter().map(|text| format!("(:role :user :content {text:?})"));
    let messages = messages.collect::<Vec<_>>().join(" ");
    let mut client = home.stdio(&[]);
    client.ok("add-message", &format!("(:session \"of {user}\" :messages ({messages}))"));
    client.end();
}

/// A text of about this many letters, which no compression makes much smaller.
fn noise(seed: u64, words: usize) -> String {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
        format!("{:x}", state >> 16)
    };
    (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")
}

const TEXTS: &str = "SELECT count(*), count(DISTINCT md5(content)) FROM contexture.said";

#[test]
fn neither_errors_nor_plans_nor_counters_tell_what_others_wrote() {
    let postgres = ready!();
    let ann = person("ann", &postgres.address("ann"));
    say(&ann, "ann", "the zanzibar project");
    done(&ann, &["share", "--with", "team", "--yes"]);
    postgres.sql("owner", "team", "GRANT CREATE ON DATABASE team TO eve; ANALYZE");
    let columns = "(machine, machine_name, project, readers) VALUES ('m', 'm', 'p', 0)";
    postgres.sql("eve", "team", &format!("INSERT INTO contexture.share {columns}"));
    // Functions that see what they are given, and names that hide those of the system.
    let leak = "CREATE FUNCTION pg_temp.leak(t text) RETURNS bool COST 0.00001 LANGUAGE plpgsql
                AS $$ BEGIN RAISE NOTICE '%', t; RETURN true; END $$;
                CREATE TEMP TABLE pg_roles AS SELECT 'team'::name AS rolname, oid
                FROM pg_catalog.pg_roles;
                SELECT count(*) FROM contexture.said WHERE pg_temp.leak(content);
                SELECT count(*) FROM contexture.share WHERE pg_temp.leak(project);
                SELECT count(*) FROM contexture.said WHERE content LIKE '%zanzibar%'";
    let output = postgres.psql("eve", "team", leak);
    let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!told.contains("zanzibar") && !told.contains("git:h"), "{told}");
    assert_eq!(told.lines().filter(|line| *line == "0").count(), 2, "{told}");
    // Two questions that differ in what others wrote only, and are answered in the same words.
    let explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off)";
    let search = |word: &str| {
        format!("{explain} SELECT * FROM contexture.search('{word}', true, NULL, '', 9)")
    };
    let put = |share: &str, source: &str| {
        format!(
            "INSERT INTO contexture.said (source, share, part, role, at, content)
             VALUES ({source}, {share}, 1, 'user', 1, 'x')"
        )
    };
    let own = "(SELECT max(id) FROM contexture.share)";
    let ids = "SELECT share.id, source.id FROM contexture.share JOIN contexture.source
               ON share = share.id WHERE author = 'ann'::regrole LIMIT 1";
    let ids = postgres.sql("owner", "team", ids);
    let (share, source) = ids.split_once('|').unwrap();
    for [one, other] in [
        [search("zanzibar"), search("zanzibat")],
        [search("zanz:*"), search("zanx:*")],
        ["zanzibar", "zanzibat"].map(|word| {
            format!("EXPLAIN SELECT FROM contexture.said WHERE words @@ '{word}'::tsquery")
        }),
        ["the zanzibar project", "the zanzibat project"]
            .map(|text| format!("EXPLAIN SELECT FROM contexture.said WHERE content = '{text}'")),
        ["git:h/o/app", "git:h/o/apx"]
            .map(|name| format!("EXPLAIN SELECT FROM contexture.share WHERE project = '{name}'")),
        [put(share, source), put("777", "777")],
        [put(own, source), put(own, "777")],
        [share, "777"].map(|share| {
            format!(
                "INSERT INTO contexture.source (share, kind, number, name, created)
                     VALUES ({share}, 'session', 1, 'x', 1)"
            )
        }),
    ] {
        let answered = |sql: &str| {
            let answer = || {
                let output = postgres.psql("eve", "team", sql);
                String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
            };
            // What the database reads into its memory is read the first time.
            answer();
            let known = [source, "777", "zanzibar", "zanzibat", "app", "apx"];
            known.iter().fold(answer(), |answer, known| answer.replace(known, "N"))
        };
        assert_eq!(answered(&one), answered(&other), "{one}");
    }
    for sql in [
        "SELECT last_value FROM contexture.source_id_seq",
        "SELECT nextval('contexture.source_id_seq')",
        "SET ROLE team",
        "SET SESSION AUTHORIZATION ann",
        "SELECT set_config('role', 'ann', false)",
        "CREATE FUNCTION contexture.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE POLICY mine ON contexture.said USING (true)",
        "TRUNCATE contexture.said",
    ] {
        let why = postgres.refuses("eve", sql);
        assert!(why.contains("permission denied") || why.contains("must be owner"), "{sql}: {why}");
    }
    let stats = "SELECT count(*) FROM pg_stats WHERE schemaname = 'contexture'
                 AND attname IN ('content', 'words', 'name', 'project', 'machine_name')";
    assert_eq!(postgres.sql("owner", "team", stats), "0");
    // Whoever gets the name of somebody who left gets nothing of theirs, nor does a new group.
    let texts = "SELECT count(*) FROM contexture.said";
    postgres.sql("owner", "team", "DROP ROLE team; CREATE ROLE team ROLE eve");
    assert_eq!(postgres.sql("eve", "team", texts), "0");
    postgres.sql("owner", "team", "DROP ROLE ann; CREATE ROLE ann LOGIN");
    assert_eq!(postgres.sql("ann", "team", texts), "0");
    // A group that is not there is no group of nobody.
    let (is_done, said) = hub(&ann, &["share", "--with", "teem", "--yes"]);
    assert!(!is_done && said.contains("role \"teem\" does not exist"), "{said}");
    assert!(said.contains("To be shared: ") && !said.contains("Shared: "), "{said}");
}

/// Neither somebody who shares nor anybody else can make the others wait.
#[test]
fn no_member_can_lock_the_others_out() {
    let postgres = ready!();
    let [ann, ben] = ["ann", "ben"].map(|user| person(user, &postgres.address(user)));
    done(&ann, &["share", "--with", "team", "--yes"]);
    let tables = postgres.sql(
        "owner",
        "team",
        "SELECT oid::regclass FROM pg_class WHERE relkind = 'r'
         AND relnamespace = 'contexture'::regnamespace",
    );
    assert_eq!(tables.lines().count(), 5, "{tables}");
    for table in tables.lines() {
        // All modes that anything but a change of the tables waits for.
        for mode in ["SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"] {
            for user in ["ann", "eve"] {
                let lock = format!("BEGIN; LOCK TABLE {table} IN {mode} MODE NOWAIT");
                let why = postgres.refuses(user, &lock);
                assert!(why.contains("permission denied"), "{user}: {lock}: {why}");
            }
        }
    }
    // Whoever keeps all of their own rows locked stops nobody either.
    let mut locks = postgres.session("ann");
    locks.answer("BEGIN; SELECT 1 FROM contexture.share, contexture.source FOR UPDATE");
    locks.answer("UPDATE contexture.machine SET seq = seq RETURNING 1");
    done(&ben, &["share", "--yes"]);
    let hits = call(&ben, "list-sessions", "(:query \"parser\" :hub t)");
    assert_eq!(hits.as_array().unwrap().len(), 2, "{hits}");
    done(&ben, &["leave"]);
}

#[test]
fn a_password_goes_over_tls_to_a_trusted_server_only_and_is_never_shown() {
    let mut postgres = ready!();
    let ann = person("ann", &postgres.address("ann"));
    let (key, certificate) = (ann.path("key.pem"), ann.path("made.pem"));
    let mut make = Command::new("openssl");
    make.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    make.args(["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext"]);
    make.args(["subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]);
    let made = make.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return skipped("openssl makes no certificate");
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    postgres.write("server.key", &read(&key));
    postgres.write("server.crt", &read(&certificate));
    postgres.write("pg_hba.conf", "local all all trust\nhostssl all all all scram-sha-256\n");
    let listen = format!(
        "listen_addresses = '127.0.0.1'\nssl = on\nunix_socket_directories = '{}'\n",
        postgres.folder().display()
    );
    postgres.sql("owner", "team", "ALTER ROLE ann PASSWORD 'open sesame'");
    let url = |more: &str| format!("postgres://ann@localhost:{port}/team{more}");
    let secure = "?sslmode=require";
    let with = |more: &str, password: &str| {
        configure(&ann, &url(more));
        let config = ann.path("config/contexture/config.toml");
        fs::write(&config, format!("{}{password}", read(&config))).unwrap();
        let (is_done, said) = hub(&ann, &["status"]);
        assert!(!said.contains("sesame") && !said.contains("wrong"), "{said}");
        (is_done, said)
    };
    let given = "password-env = \"HUB_PASSWORD\"\n";
    // A server that speaks no TLS gets no password.
    postgres.write("postgresql.auto.conf", &listen.replace("ssl = on", "ssl = off"));
    postgres.restart_at(port);
    let (is_done, said) = with(secure, given);
    assert!(!is_done && said.contains("TLS"), "{said}");
    postgres.write("postgresql.auto.conf", &listen);
    postgres.restart_at(port);
    let (is_done, said) = with(secure, given);
    assert!(!is_done && said.contains("certificate"), "nobody trusts it yet: {said}");
    fs::copy(&certificate, ann.path("trusted.pem")).unwrap();
    let (is_done, said) = with(secure, given);
    assert!(is_done && said.contains("you are ann"), "{said}");
    let (is_done, said) = with(secure, "password-command = \"echo wrong\"\n");
    assert!(!is_done && said.contains("password authentication failed"), "{said}");
    let (is_done, said) = with(secure, "");
    assert!(!is_done && said.contains("password"), "{said}");
    // The server wants TLS also on this machine.
    let (is_done, said) = with("", given);
    assert!(!is_done && said.contains("no encryption"), "{said}");
    // Another name than that of its certificate is another server.
    configure(&ann, &url(secure).replace("localhost", "127.0.0.1"));
    let (is_done, said) = hub(&ann, &["status"]);
    assert!(!is_done && said.contains("certificate"), "{said}");
    with(secure, given);
    done(&ann, &["share", "--yes"]);
    assert_eq!(postgres.sql("owner", "team", TEXTS), "2|2");
}

#[test]
fn a_full_disk_takes_all_or_nothing_and_all_later() {
    let mut postgres = ready!();
    let ann = person("ann", &postgres.address("ann"));
    done(&ann, &["share", "--yes"]);
    // Beyond this size, in blocks of 512 bytes, no file of the server grows.
    postgres.restart("ulimit -f 5000");
    for part in 0..8_u64 {
        let texts: Vec<_> = (0..10).map(|one| noise(part * 10 + one + 1, 4000)).collect();
        say_many(&ann, "ann", &texts);
    }
    for _ in 0..2 {
        let (is_done, said) = hub(&ann, &["push"]);
        assert!(!is_done && said.contains("could not extend file"), "{said}");
        assert_eq!(postgres.sql("owner", "team", TEXTS), "2|2", "all of a batch or nothing");
    }
    let hits = call(&ann, "list-sessions", "(:query \"parser\")");
    assert_eq!(hits.as_array().unwrap().len(), 1, "local work goes on");
    postgres.restart("");
    done(&ann, &["push"]);
    assert_eq!(postgres.sql("owner", "team", TEXTS), "82|82");
}

/// Passes on what comes, both ways, until so many bytes came from the client.
fn cut_after(most: usize, client: UnixStream, server: UnixStream) {
    let (mut from_server, mut to_client) =
        (server.try_clone().unwrap(), client.try_clone().unwrap());
    let back = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut to_client);
    });
    let (mut client, mut server) = (client.take(most as u64), server);
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(std::net::Shutdown::Both);
    let _ = client.get_ref().shutdown(std::net::Shutdown::Both);
    back.join().unwrap();
}

#[test]
fn a_hub_that_goes_away_in_the_middle_of_a_push_gets_everything_once_later() {
    let mut postgres = ready!();
    let between = tempfile::Builder::new().prefix("ctxcut").tempdir().unwrap();
    let ann = person("ann", &postgres.address("ann"));
    let texts: Vec<_> = (0..300).map(|one| noise(one + 1, 40)).collect();
    say_many(&ann, "ann", &texts);
    done(&ann, &["share", "--yes"]);
    postgres.sql("owner", "team", "DELETE FROM contexture.share; DELETE FROM contexture.machine");
    let listener = UnixListener::bind(between.path().join(".s.PGSQL.5432")).unwrap();
    let real = postgres.folder().join(".s.PGSQL.5432");
    let (cut, cuts) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (client, most) in listener.incoming().flatten().zip(cuts) {
            cut_after(most, client, UnixStream::connect(&real).unwrap());
        }
    });
    configure(&ann, &address("ann", between.path()));
    let mut failed = 0;
    // From the first bytes up to beyond the whole of it.
    for most in [0, 90, 300, 1500, 4000, 20_000, 80_000, 110_000, 130_000] {
        cut.send(most).unwrap();
        let (is_done, said) = hub(&ann, &["push"]);
        assert!(is_done || said.contains("Not now: "), "{most}: {said}");
        failed += usize::from(!is_done);
        let there = postgres.sql("owner", "team", TEXTS);
        assert!(there == "0|0" || there == "302|302", "{most}: {there}");
        if is_done {
            break;
        }
    }
    assert!(failed > 4, "the cuts were too late: {failed}");
    // The server itself goes away, and comes back.
    configure(&ann, &postgres.address("ann"));
    postgres.stop();
    say(&ann, "ann", "while it was away");
    let (is_done, said) = hub(&ann, &["push"]);
    assert!(!is_done && said.contains("Not now: "), "{said}");
    postgres.restart("");
    done(&ann, &["push"]);
    done(&ann, &["push"]);
    assert_eq!(postgres.sql("owner", "team", TEXTS), "303|303");
}

/// What the reading of sessions promises, here and on a hub.
#[test]
fn a_search_on_the_hub_keeps_what_a_search_here_promises() {
    let postgres = ready!();
    let [ann, ben] = ["ann", "ben"].map(|user| person(user, &postgres.address(user)));
    let texts = [
        "the tokenizer splits a line at each comma",
        "the tokenizer is slow, the comma is not",
        "émigré Straße ΛΟΓΟΣ 日本語 naïve",
        "src/parser.rs:42 and --no-verify, \"quoted\" 'single' (a | b) & !c",
        "x",
        "comma",
    ];
    say_many(&ann, "ann", &texts.map(str::to_owned));
    done(&ann, &["share", "--yes"]);
    let folder = |home: &Home| home.file("app").to_str().unwrap().to_owned();
    let readers = [(&ann, "", folder(&ann)), (&ben, " :hub t", folder(&ben))];
    for (home, hub, project) in readers {
        let found = |query: &str, more: &str| {
            let hits = call(home, "list-sessions", &format!("(:query {query:?}{hub}{more})"));
            let hits = hits.as_array().cloned().unwrap_or_default();
            let of_ann = hits.into_iter().filter(|hit| hit["session"] == "of ann");
            let number = |hit: Json| hit["message"].as_str()?.strip_prefix("msg-")?.parse().ok();
            of_ann.filter_map(number).collect::<Vec<u64>>()
        };
        // All words, in any order and form; else any of them.
        assert_eq!(found("SPLITS tokenizer", ""), [2], "{hub}");
        let mut both = found("tokenizer comma", "");
        both.sort_unstable();
        assert_eq!(both, [2, 3], "{hub}");
        let some = found("splits émigré nowhere", "");
        assert!(some.contains(&2) && some.contains(&4) && !some.contains(&6), "{hub}: {some:?}");
        assert_eq!(found("nowhereatall", ""), [] as [u64; 0], "{hub}");
        assert_eq!(found("comma", " :limit 1").len(), 1, "{hub}");
        let here = format!(" :project {project:?}");
        assert_eq!(found("tokenizer splits", &here), [2], "{hub}");
        assert_eq!(found("tokenizer splits", " :project \"/elsewhere\""), [] as [u64; 0], "{hub}");
        // What a query language would take for more than words is words.
        for query in
            ["\"", "'", "a & | !", "(", "splits:*", "\\", "NOT OR AND", "*", "-x", "\0", " "]
        {
            found(query, "");
        }
        for query in ["verify", "quoted", "ΛΟΓΟΣ", "naïve"] {
            assert_eq!(found(query, "").len(), 1, "{hub}: {query}");
        }
        let all = found("tokenizer splits comma", "");
        assert_eq!(all.first(), Some(&2), "{hub}: the best one first");
        let hits = call(home, "list-sessions", &format!("(:query \"splits\"{hub})"));
        let hit = &hits[0];
        assert!(
            hit["snippet"].as_str().unwrap().contains("splits") && hit["role"] == "user",
            "{hit}"
        );
        assert!(hit["timestamp"].as_i64().unwrap() > 0, "{hit}");
    }
    // What is deleted is not found.
    call(&ann, "delete-session", "(:session \"of ann\")");
    done(&ann, &["push"]);
    for (home, hub) in [(&ann, ""), (&ben, " :hub t")] {
        let hits = call(home, "list-sessions", &format!("(:query \"splits\"{hub})"));
        assert!(is_nil(&hits), "{hub}: {hits}");
    }
}
