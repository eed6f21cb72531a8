//! Stdio, Unix sockets and TCP; who may connect; and who owns the state.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use contexture_program::internals::context::change::ContextSettings;
use contexture_program::internals::engine::Engine;
use contexture_program::internals::rpc::{Limits, Tools};
use contexture_program::internals::server::Server;
use contexture_program::internals::server::auth::{Admission, SecretHash};
use contexture_program::internals::store::sqlite::SqliteStore;
use contexture_program::internals::tokens::TokenizerName;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::*;

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_port_stands_alone_on_the_first_line_and_nothing_follows() {
    let home = Home::new();
    let mut server = home.listening(&[]);
    assert!(server.port > 0);
    let mut client = server.tcp(Dialect::Native);
    client.add("*shared*", "x");
    client.write(b"garbage\n(((\n");
    client.ok("ping", "nil");
    server.unix(Dialect::Json).ok("shutdown", "nil");
    assert!(server.process.wait().success());
    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_chosen_port_is_not_printed() {
    let home = Home::new();
    // On an address of this process's own, where nobody else takes the port.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let address = format!("127.{}.{middle}.{low}:4005", high + 1);
    let mut process = Process::start(home.command(&["serve", "--ephemeral", "--tcp", &address]));
    until("the port to answer", || std::net::TcpStream::connect(&address).is_ok());
    Client::over_tcp(&*address, Dialect::Native).ok("shutdown", "nil");
    assert!(process.wait().success());
    let mut said = String::new();
    process.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn every_transport_serves_every_dialect_and_the_same_state() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut expected = Vec::new();
    for dialect in [Dialect::Native, Dialect::Json] {
        for mut client in [server.unix(dialect), server.tcp(dialect)] {
            let content = format!("{}", expected.len());
            client.add("*shared*", &content);
            expected.push(content);
            assert_eq!(client.contents("*shared*"), expected);
        }
    }
}

#[test]
fn stdio_a_socket_and_a_port_can_be_served_at_once() {
    let home = Home::new();
    let socket = home.path("s.sock");
    let mut first =
        home.stdio(&["--unix", socket.to_str().unwrap(), "--tcp", "127.0.0.1:0", "--ephemeral"]);
    let port = first.line().unwrap().parse().unwrap();
    first.add("*shared*", "x");
    assert_eq!(Client::over_unix(&socket, Dialect::Native).contents("*shared*"), ["x"]);
    assert_eq!(Client::over_tcp(("127.0.0.1", port), Dialect::Json).contents("*shared*"), ["x"]);
    first.end();
}

#[test]
fn sockets_have_mode_0600_in_a_folder_with_0700() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("ping", "nil");
    let folder = home.path("run/contexture");
    assert_eq!(mode(&folder), 0o700);
    let sockets: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(sockets.len(), 1);
    assert_eq!(mode(&sockets[0]), 0o600);
    assert_eq!(mode(&home.state()), 0o700);
    client.end();
    assert!(!sockets[0].exists());
    let own = home.path("new/folder/s.sock");
    let mut client = home.stdio(&["--unix", own.to_str().unwrap()]);
    client.ok("ping", "nil");
    assert_eq!((mode(&own), mode(own.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_folder_for_sockets_that_others_may_enter_is_refused() {
    let home = Home::new();
    let folder = home.path("run/contexture");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = home.fail(&["serve", "--stdio"]);
    assert!(said.contains("must be yours and closed to other users"), "{said}");
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let home = Home::new();
    let mut server = home.listening(&[]);
    server.unix(Dialect::Native).add("*shared*", "x");
    server.process.kill();
    assert!(server.socket.exists());
    let server = home.listening(&[]);
    assert_eq!(server.unix(Dialect::Native).contents("*shared*"), ["x"]);
    let socket = server.socket.to_str().unwrap();
    let said = home.fail(&["serve", "--ephemeral", "--unix", socket]);
    assert!(said.contains("another server listens on"), "{said}");
    assert_eq!(server.unix(Dialect::Native).contents("*shared*"), ["x"]);
}

#[test]
fn the_same_user_needs_no_secret_on_loopback() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    assert_eq!(server.tcp(Dialect::Native).ok("ping", "nil"), "pong");
}

#[test]
fn a_secret_that_is_not_demanded_is_accepted_silently() {
    let home = Home::new();
    let secret = home.write("secret", "s3cret\n");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = home.listening(&["--ephemeral", "--secret-file", &secret]);
    let mut knows = server.tcp(Dialect::Native);
    knows.write(b"s3cret\n(:id 1 :method ping)\n");
    assert_eq!(knows.line().unwrap(), "(:id 1 :result :pong)");
    assert_eq!(server.tcp(Dialect::Json).ok("ping", "nil"), "pong");
}

#[test]
fn slys_own_secret_is_honoured() {
    let home = Home::new();
    let secret = home.path("home/.sly-secret");
    std::fs::write(&secret, "sly\n").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Native);
    client.write(b"sly\n(:id 1 :method ping)\n");
    assert_eq!(client.line().unwrap(), "(:id 1 :result :pong)");
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    let home = Home::new();
    let secret = home.write("secret", "s3cret\n");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = home.fail(&["serve", "--tcp", "127.0.0.1:0", "--secret-file", &secret]);
    assert!(said.contains("chmod 600"), "{said}");
    assert!(!said.contains("s3cret"));
}

/// A server within this process.
fn memory_server() -> Server {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    let engine = Engine::new(store, Box::new(|| 0), ContextSettings { max_items: 50 }).unwrap();
    let counter = TokenizerName::Estimate.counter();
    let limits = Limits { max_message_bytes: 1 << 20, max_file_bytes: 1 << 20, max_items: 50 };
    Server::start(engine, |engine| Tools::new(engine, counter, limits))
}

/// What a client is told that says this, where `admission` is asked of it.
fn told(admission: Admission, said: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = memory_server();
        let (mut near, far) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(far);
        let serving = tokio::spawn(async move { server.serve(reader, writer, admission).await });
        // The server may close before it has read everything.
        let _ = near.write_all(said.as_bytes()).await;
        let _ = near.shutdown().await;
        let mut answer = String::new();
        near.read_to_string(&mut answer).await.unwrap();
        serving.await.unwrap();
        answer
    })
}

#[test]
fn a_demanded_secret_must_come_first() {
    let demanded = || Admission::Demanded(SecretHash::new("s3cret"));
    let ping = "(:id 1 :method ping)\n";
    let pong = "(:id 1 :result :pong)\n";
    assert_eq!(told(demanded(), &format!("s3cret\n{ping}")), pong);
    assert_eq!(told(demanded(), &format!("s3cret\r\n{ping}")), pong);
    for wrong in ["wrong\n", "s3cre\n", "s3cret \n", "\n", "; x\n", "", "s3cretx\ns3cret\n"] {
        assert_eq!(told(demanded(), &format!("{wrong}{ping}")), "", "{wrong:?}");
    }
    let long = "x".repeat(2 << 20);
    assert_eq!(told(demanded(), &format!("{long}\ns3cret\n{ping}")), "");
    assert_eq!(told(Admission::Refused, &format!("s3cret\n{ping}")), "");
    assert_eq!(told(Admission::Granted, ping), pong);
}

#[test]
fn the_server_in_memory_answers_like_any_other() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let server = memory_server();
        let mut client = server.memory();
        client.write_all(b"{\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        server.finish().await;
        answer
    });
    assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"pong\"}\n");
}

#[test]
fn a_panic_is_an_error_reply_and_the_server_goes_on() {
    struct Panicking;
    impl contexture_program::internals::tokens::Counter for Panicking {
        fn count(&self, text: &str) -> u64 {
            assert!(!text.contains("bomb"), "on purpose");
            1
        }
        fn name(&self) -> &'static str {
            "estimate"
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let store = Box::new(SqliteStore::in_memory().unwrap());
        let engine = Engine::new(store, Box::new(|| 0), ContextSettings { max_items: 50 }).unwrap();
        let counter = std::sync::Arc::new(Panicking);
        let limits = Limits { max_message_bytes: 1 << 20, max_file_bytes: 1 << 20, max_items: 50 };
        let server = Server::start(engine, |engine| Tools::new(engine, counter, limits));
        let mut client = server.memory();
        let calls = "(:id 1 :method add-context :params (:content \"bomb\"))\n\
                     (:id 2 :method add-context :params (:content \"good\" :brief t))\n";
        client.write_all(calls.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    });
    let mut lines = answer.lines();
    let failure = outcome(parse(Dialect::Native, lines.next().unwrap())).unwrap_err();
    assert_eq!(failure.code, -32603);
    assert_eq!(parse(Dialect::Native, lines.next().unwrap())["result"]["id"], "ctx-1");
}

#[test]
fn a_second_server_is_a_bridge_to_the_first_and_its_heir() {
    let home = Home::new();
    let mut first = home.stdio(&[]);
    first.add("*shared*", "by the first");
    let mut second = home.stdio(&[]);
    assert_eq!(second.contents("*shared*"), ["by the first"]);
    second.dialect = Dialect::Native;
    second.ok("subscribe", "(:topics (:context-changed))");
    first.add("*shared*", "again");
    assert_eq!(second.notification("context-changed")["count"], 2);
    second.add("*shared*", "by the second");
    assert_eq!(first.contents("*shared*"), ["by the first", "again", "by the second"]);
    let first_pid = first.process().pid();
    assert_eq!(second.ok("initialize", "nil")["pid"], first_pid);
    first.process().kill();
    // What it was told of its own change may come first.
    while second.line().is_some() {}
    assert!(second.process().wait().success());
    let mut third = home.stdio(&[]);
    assert_eq!(third.contents("*shared*"), ["by the first", "again", "by the second"]);
    let third_pid = third.process().pid();
    assert_eq!(third.ok("initialize", "nil")["pid"], third_pid);
}

#[test]
fn a_server_over_tcp_is_a_bridge_to_the_first_and_its_heir() {
    let home = Home::new();
    let mut first = home.stdio(&[]);
    first.add("owned", "x");
    let mut process = Process::start(home.command(&["serve", "--tcp", "127.0.0.1:0"]));
    let mut port = String::new();
    let mut stdout = BufReader::new(process.child.stdout.take().unwrap());
    stdout.read_line(&mut port).unwrap();
    let port: u16 = port.trim_end().parse().unwrap();
    let connect = || Client::over_tcp(("127.0.0.1", port), Dialect::Slynk);
    let mut client = connect();
    assert_eq!(client.contents("owned"), ["x"]);
    assert_eq!(client.ok("initialize", "nil")["pid"], first.process().pid());
    // It came over TCP there too.
    let provider = "(:name \"p\" :kind \"openai\" :model \"m\" :base-url \"http://h/v1\")";
    let refused = client.fails("configure-provider", provider);
    assert!(refused.message.contains("cannot change providers"), "{refused:?}");
    first.process().kill();
    while client.line().is_some() {}
    let mut client = connect();
    assert_eq!(client.contents("owned"), ["x"]);
    assert_eq!(client.ok("initialize", "nil")["pid"], process.pid());
    // Now it is the first.
    assert_eq!(home.stdio(&[]).contents("owned"), ["x"]);
    process.kill();
}

#[test]
fn a_bridge_that_ends_leaves_the_first_alone_and_drains_its_answers() {
    let home = Home::new();
    let mut first = home.stdio(&[]);
    first.ok("ping", "nil");
    let mut second = home.stdio(&[]);
    let calls: Vec<i64> =
        (0..100).map(|_| second.send("add-context", "(:content \"x\")")).collect();
    second.close();
    for id in calls {
        second.reply(id).unwrap();
    }
    second.end();
    assert_eq!(first.ok("list-items", "(:count-only t)")["count"], 50);
}

#[test]
fn servers_that_start_at_the_same_moment_share_the_state() {
    let home = Home::new();
    let mut clients: Vec<Client> = (0..6).map(|_| home.stdio(&[])).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.add("*shared*", &number.to_string());
    }
    for client in &mut clients {
        assert_eq!(client.contents("*shared*"), ["0", "1", "2", "3", "4", "5"]);
    }
    let pids: std::collections::HashSet<_> =
        clients.iter_mut().map(|c| c.ok("initialize", "nil")["pid"].to_string()).collect();
    assert_eq!(pids.len(), 1);
}

#[test]
fn a_state_folder_has_one_owner() {
    let home = Home::new();
    let server = home.listening(&[]);
    let said = home.fail(&["serve", "--tcp", "127.0.0.1:0", "--http", "0"]);
    assert!(said.contains(&server.process.pid().to_string()), "{said}");
    assert!(said.contains("--state"), "{said}");
    let elsewhere = home.path("elsewhere");
    let other = home.path("o.sock");
    let args = ["--state", elsewhere.to_str().unwrap(), "--unix", other.to_str().unwrap()];
    let mut client = home.stdio(&args);
    assert!(client.contents("*shared*").is_empty());
}

#[test]
fn an_ephemeral_server_keeps_nothing() {
    let home = Home::new();
    let mut client = home.ephemeral_program(&[]);
    client.add("*shared*", "x");
    client.end();
    assert!(!home.path("state").exists());
    assert!(home.ephemeral_program(&[]).contents("*shared*").is_empty());
    let said = home.fail(&["serve", "--stdio", "--ephemeral", "--state", "/nowhere"]);
    assert!(said.contains("--ephemeral keeps no state"), "{said}");
}

#[test]
fn the_end_of_stdin_ends_the_server_after_the_last_answer() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let calls: Vec<i64> =
        (0..200).map(|n| client.send("add-context", &format!("(:content \"{n}\")"))).collect();
    let path = home.write("a.txt", "x\n");
    let file = client.send("add-file", &format!("(:path {})", quoted(&path)));
    let text = client.send("context-to-string", "nil");
    client.close();
    for id in calls {
        client.reply(id).unwrap();
    }
    client.reply(file).unwrap();
    assert!(client.reply(text).unwrap().as_str().unwrap().contains("199"));
    client.end();
}

#[test]
fn a_signal_ends_the_server_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let mut server = home.listening(&[]);
        let mut client = server.unix(Dialect::Native);
        client.add("*shared*", "kept");
        server.process.signal(signal);
        assert!(server.process.wait().success());
        assert!(!server.socket.exists());
        assert_eq!(client.line(), None);
        assert_eq!(home.stdio(&[]).contents("*shared*"), ["kept"]);
    }
}

#[test]
fn a_shutdown_is_answered_and_ends_the_server() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.add("*shared*", "kept");
    assert_eq!(client.ok("shutdown", "nil"), true);
    assert_eq!(client.line(), None);
    assert!(client.process().wait().success());
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["kept"]);
}

#[test]
fn a_server_over_stdio_ends_when_its_client_no_longer_reads_or_writes() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--stdio"]);
    command.stdin(std::process::Stdio::piped());
    let mut process = Process::start(command);
    drop(process.child.stdout.take());
    let mut stdin = process.child.stdin.take().unwrap();
    stdin.write_all(b"(:id 1 :method ping)\n").unwrap();
    drop(stdin);
    process.wait();
}

#[test]
fn stdio_may_be_files() {
    let home = Home::new();
    let calls: String = (0..500)
        .map(|n| request(Dialect::Native, &n.to_string(), "add-context", "(:content \"x\")"))
        .collect();
    let input = home.write("calls", calls);
    let output = home.file("answers");
    let mut command = home.command(&["serve", "--stdio", "--ephemeral"]);
    command.stdin(std::fs::File::open(input).unwrap());
    command.stdout(std::fs::File::create(&output).unwrap());
    assert!(Process::start(command).wait().success());
    let answers = std::fs::read_to_string(output).unwrap();
    assert_eq!(answers.lines().count(), 500);
    assert!(answers.lines().last().unwrap().starts_with("(:id 499 :result (:id \"ctx-500\""));
}

#[test]
fn stdio_may_be_a_socket() {
    let home = Home::new();
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = home.command(&["serve", "--stdio", "--ephemeral"]);
    command.stdin(std::os::fd::OwnedFd::from(far.try_clone().unwrap()));
    command.stdout(std::os::fd::OwnedFd::from(far));
    let mut process = Process::start(command);
    (&near).write_all(b"(:id 1 :method ping)\n").unwrap();
    near.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    (&near).take(22).read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "(:id 1 :result :pong)\n");
    assert!(process.wait().success());
}

#[test]
fn serving_nowhere_is_an_error() {
    let said = Home::new().fail(&["serve"]);
    assert!(said.contains("--stdio") && said.contains("--tcp"), "{said}");
}

#[test]
fn the_log_goes_to_stderr() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--stdio", "--tcp", "127.0.0.1:0", "--ephemeral"]);
    command.env("CONTEXTURE_LOG", "debug");
    let mut client = Client::over_stdio(command, Dialect::Native);
    client.line().unwrap().parse::<u16>().unwrap();
    client.write(b"(:method no-such-method)\n");
    assert_eq!(client.ok("ping", "nil"), "pong");
    client.close();
    assert_eq!(client.line(), None);
    client.process().wait();
    let mut log = String::new();
    client.process().child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("listening on 127.0.0.1"), "{log}");
}

/// Starts `serve --inferior` as `M-x sly` does and gives the port that it writes.
fn inferior(home: &Home, said: impl Fn(&str) -> String, args: &[&str]) -> (Process, u16) {
    let mut all = vec!["serve", "--inferior"];
    all.extend(args);
    let mut command = home.command(&all);
    command.stdin(Stdio::piped());
    let mut process = Process::start(command);
    let path = home.path("port");
    let _ = std::fs::remove_file(&path);
    let mut stdin = process.child.stdin.take().unwrap();
    stdin.write_all(said(path.to_str().unwrap()).as_bytes()).unwrap();
    let mut port = String::new();
    until("the port to be written", || {
        port = std::fs::read_to_string(&path).unwrap_or_default();
        !port.is_empty()
    });
    process.child.stdin = Some(stdin);
    (process, port.trim_end().parse().unwrap())
}

#[test]
fn an_emacs_that_starts_the_server_is_told_the_port_and_ends_it() {
    let home = Home::new();
    let said = |path: &str| {
        format!(
            "(progn (load \"/s/slynk-loader.lisp\" :verbose t) (funcall (read-from-string \
             \"slynk:start-server\") {}))\n\n",
            quoted(path)
        )
    };
    let args = ["--ephemeral", "--slynk-version", "9.9", "--swank-version", "8.8"];
    let (mut process, port) = inferior(&home, said, &args);
    let mut client = Client::over_tcp(("127.0.0.1", port), Dialect::Slynk);
    assert_eq!(client.ok("ping", "nil"), "pong");
    for (package, version) in [("slynk", "9.9"), ("swank", "8.8")] {
        client
            .write(framed(&format!("(:emacs-rex ({package}:connection-info) nil t 7)")).as_bytes());
        assert!(client.line().unwrap().contains(&format!(":version \"{version}\"")));
    }
    drop(process.child.stdin.take());
    assert!(process.wait().success());
    assert!(client.line().is_none());
}

#[test]
fn an_inferior_server_speaks_for_the_one_that_owns_the_state() {
    let home = Home::new();
    let server = home.listening(&[]);
    server.unix(Dialect::Native).add("owned", "x");
    let (mut process, port) = inferior(&home, |path| format!("{path}\n"), &[]);
    let mut client = Client::over_tcp(("127.0.0.1", port), Dialect::Slynk);
    assert_eq!(client.contents("owned"), ["x"]);
    // It came over TCP there too.
    let provider = "(:name \"p\" :kind \"openai\" :model \"m\" :base-url \"http://h/v1\"";
    let refused =
        client.fails("configure-provider", &format!("{provider} :api-key-command \"id\")"));
    assert!(refused.message.contains("is not allowed over TCP"), "{refused:?}");
    let refused = client.fails("configure-provider", &format!("{provider})"));
    assert!(refused.message.contains("cannot change providers"), "{refused:?}");
    let mut secretive = Client::over_tcp(("127.0.0.1", port), Dialect::Slynk);
    secretive.write(framed("whatever").as_bytes());
    assert_eq!(secretive.contents("owned"), ["x"]);
    let mut page = Client::over_tcp(("127.0.0.1", port), Dialect::Native);
    page.write(b"POST / HTTP/1.1\r\n(:id 1 :method add-context :params (:content \"planted\"))\n");
    assert_eq!(page.line(), None);
    drop(process.child.stdin.take());
    assert!(process.wait().success());
    assert_eq!(server.unix(Dialect::Native).contents("owned"), ["x"]);
    assert!(home.fail(&["serve", "--inferior", "--stdio"]).contains("omit --stdio"));
}
