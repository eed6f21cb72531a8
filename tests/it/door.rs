//! Who gets in over TCP, byte by byte: clients as they are, and nothing that a browser sends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use crate::support::*;

const LIMIT: usize = 100_000;
/// What must not be executed, in every dialect of lines.
const PLANTED: &str = "(:id 1 :method add-context :params (:content \"planted\"))\r\n\
                       {\"id\":2,\"method\":\"add-context\",\"params\":{\"content\":\"planted\"}}\r\n";

/// A server with or without a secret.
fn server(home: &Home, has_secret: bool) -> Listening {
    let limit = LIMIT.to_string();
    let mut args = vec!["--ephemeral", "--max-message-bytes", &limit];
    let secret = home.write("secret", "s3cret\n");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    if has_secret {
        args.extend(["--secret-file", &secret]);
    }
    home.listening(&args)
}

/// Sends bytes in pieces of this size, ends what is sent, and gives all that is answered.
fn exchange(mut stream: impl Read + Write, bytes: &[u8], piece: usize) -> String {
    for piece in bytes.chunks(piece) {
        // The server may have ended the connection already.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    String::from_utf8_lossy(&answers).into_owned()
}

fn tcp(server: &Listening, bytes: &[u8], piece: usize) -> String {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange(stream, bytes, piece)
}

#[track_caller]
fn check_nothing_executed(server: &mut Listening, after: &str) {
    assert!(server.process.is_running());
    let mut client = server.unix(Dialect::Native);
    assert!(is_nil(&client.ok("list-managers", "nil")), "{after}");
    assert!(is_nil(&client.ok("list-sessions", "nil")), "{after}");
    assert!(is_nil(&client.ok("list-providers", "nil")), "{after}");
}

/// Beginnings that are no message. None needs the client to end what it sends.
fn beginnings() -> Vec<Vec<u8>> {
    let texts = [
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:4005\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Type: text/plain\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "DELETE /x HTTP/1.0\r\n",
        "BREW pot HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "CONNECT h:80 HTTP/1.1\r\n",
        "HTTP/1.1 200 OK\r\n",
        "Host: evil.test\r\n",
        "help\n",
        "\n",
        "\r\n\r\n",
        "; a comment\n",
        "[1]\n",
        "{}\n",
        "{\"id\":1,\"result\":1}\n",
        "(:id 1 :result 1)\n",
        "(:id 1)\n",
        "(ping)\n",
        "(:id 1 :method ping\n",
        "{\"id\":1,\n",
        "abc\n",
        "000004(x)\n",
        "000014(:id 1 :method ping)",
        "00000e(return 1 nil)",
        "000008(call 1 \n",
        "s3cre\n",
    ];
    let mut all: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    all.extend([
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n".to_vec(),
        b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\n".to_vec(),
        b"\x00\x01\x00\x00\x21\x12\xa4\x42\n".to_vec(),
        b"\xff\xfe(\x00\n\x00".to_vec(),
        format!("GET /{} HTTP/1.1\r\n", "x".repeat(2 * LIMIT)).into_bytes(),
        format!("({})\n", "x".repeat(2 * LIMIT)).into_bytes(),
        format!("{}\n", " ".repeat(2 * LIMIT)).into_bytes(),
        format!("{:06x}{}", 2 * LIMIT, "(".repeat(2 * LIMIT)).into_bytes(),
    ]);
    all
}

#[test]
fn what_begins_with_no_message_is_ended_in_silence() {
    for has_secret in [false, true] {
        let home = Home::new();
        let mut server = server(&home, has_secret);
        for mut bytes in beginnings() {
            let piece = if bytes.len() > LIMIT { bytes.len() } else { 1 };
            let after = bytes[..bytes.len().min(60)].escape_ascii().to_string();
            bytes.extend_from_slice(PLANTED.as_bytes());
            bytes.extend(framed("(call 3 add-context (:content \"planted\"))").into_bytes());
            for piece in [piece, bytes.len()] {
                assert_eq!(tcp(&server, &bytes, piece), "", "{after}");
            }
            check_nothing_executed(&mut server, &after);
        }
    }
}

#[test]
fn http_and_tls_end_a_connection_whenever_they_come() {
    let home = Home::new();
    let mut server = server(&home, true);
    let ping = "(:id 7 :method ping)\n";
    let pong = "(:id 7 :result :pong)\n";
    for foreign in [
        "GET / HTTP/1.1\r\n",
        "Host: evil.test\r\n",
        "PRI * HTTP/2.0\r\n",
        "HTTP/1.1 200 OK\r\n",
        "\u{16}\u{3}\u{1}",
        &format!("GET /{}\r\n", "x".repeat(2 * LIMIT)),
    ] {
        for (before, answers) in [(ping.to_owned(), pong), (format!("s3cret\n{ping}"), pong)] {
            let bytes = format!("{before}{foreign}{PLANTED}");
            assert_eq!(tcp(&server, bytes.as_bytes(), bytes.len()), answers, "{foreign:.40}");
        }
        let bytes = format!("{}{foreign}{PLANTED}", framed("(call 7 ping nil)"));
        let answers = tcp(&server, bytes.as_bytes(), bytes.len());
        assert!(answers.contains(&framed("(return 7 :pong)")), "{answers}");
        check_nothing_executed(&mut server, foreign);
    }
}

#[test]
fn a_person_at_a_socket_or_at_stdio_is_helped() {
    let home = Home::new();
    let server = server(&home, false);
    let said = "help\nGET / HTTP/1.1\r\n(:id 7 :method ping)\n";
    let mut unix = UnixStream::connect(&server.socket).unwrap();
    unix.write_all(said.as_bytes()).unwrap();
    unix.shutdown(std::net::Shutdown::Write).unwrap();
    let mut local = String::new();
    unix.read_to_string(&mut local).unwrap();
    let mut client = home.ephemeral(&[]);
    client.write(said.as_bytes());
    let stdio: Vec<String> = (0..3).map(|_| client.line().unwrap()).collect();
    for answers in [local.lines().map(str::to_owned).collect(), stdio] {
        assert_eq!(answers.len(), 3, "{answers:?}");
        assert!(answers[0].contains("a message begins with ("), "{answers:?}");
        assert_eq!(answers[2], "(:id 7 :result :pong)");
    }
}

#[test]
fn a_first_message_may_be_as_long_as_any_and_come_in_pieces() {
    let home = Home::new();
    let server = server(&home, true);
    let text = "x".repeat(LIMIT / 2);
    for secret in ["", "s3cret\n"] {
        let call = format!("(:id 7 :method add-context :params (:content {text:?} :brief t))\n");
        let mut client = server.tcp(Dialect::Native);
        for piece in [secret.as_bytes(), call.as_bytes()].concat().chunks(1000) {
            client.write(piece);
        }
        assert!(client.line().unwrap().starts_with("(:id 7 :result (:id"));
    }
}

#[test]
fn no_dialect_lets_a_client_over_tcp_name_a_command_a_variable_or_a_script() {
    let home = Home::new();
    let server = server(&home, true);
    let canary = home.path("canary");
    let script = home.write("script.toml", "[[answer]]\ntext = \"x\"\n");
    let provider = "(:name \"p\" :kind \"openai\" :model \"m\" :base-url \"http://127.0.0.1:1/v1\"";
    let named = [
        format!("{provider} :api-key-command {:?})", format!("touch {}", canary.display())),
        format!("{provider} :api-key-env \"HOME\")"),
        format!("(:name \"p\" :kind \"scripted\" :model \"m\" :script {script:?})"),
    ];
    for params in &named {
        for dialect in Dialect::ALL.iter().copied() {
            for secret in ["", "s3cret"] {
                let mut client = server.tcp(dialect);
                match (secret, dialect.is_framed()) {
                    ("", _) => {}
                    (secret, true) => client.write(framed(secret).as_bytes()),
                    (secret, false) => client.write(format!("{secret}\n").as_bytes()),
                }
                let refused = client.fails("configure-provider", params);
                assert!(refused.message.contains("is not allowed over TCP"), "{refused:?}");
            }
        }
        for package in ["slynk", "swank"] {
            let form = format!("(contexture:configure-provider '{params})");
            let typed = format!("(:emacs-rex ({package}:interactive-eval {form:?}) nil t 1)");
            let mut client = server.tcp(Dialect::Slynk);
            client.write(framed("s3cret").as_bytes());
            client.write(framed(&typed).as_bytes());
            let answer = client.line().unwrap();
            assert!(answer.contains("is not allowed over TCP"), "{answer}");
        }
    }
    let mut local = server.unix(Dialect::Native);
    assert!(is_nil(&local.ok("list-providers", "nil")));
    assert!(!canary.exists());
    for params in &named {
        local.ok("configure-provider", params);
    }
}
