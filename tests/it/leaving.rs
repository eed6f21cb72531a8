//! Clients that leave: what they sent is carried out, and what they waited for is not waited for.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::support::*;

/// A server in the background with two models, and its client. `silent` never says a word, and
/// `play` answers so: which of them is asked depends on no order.
fn begin(home: &Home, answer: &str) -> (Listening, Client) {
    let provider = |name: &str, answer: &str| {
        let script = home.write(&format!("{name}.toml"), format!("[[answer]]\n{answer}\n"));
        format!(
            "[[providers]]\nname = {name:?}\nkind = \"scripted\"\nmodel = \"m-1\"\nscript = {script:?}\n"
        )
    };
    let config = home.path("config/contexture/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, provider("play", answer) + &provider("silent", "hang = true")).unwrap();
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    client.ok("open-session", "(:name \"s\" :manager \"m\")");
    (server, client)
}

/// What `play` answers.
const HERE: &str = "text = \"here\"";
const UNANSWERED: &[u8] =
    b"(:id 1 :method chat :params (:session \"s\" :content \"hi\" :provider \"silent\"))\n";
const ANSWERED: &[u8] = b"(:id 1 :method chat :params (:session \"s\" :content \"hi\"))\n";

/// Whether the session can be talked to.
fn is_free(client: &mut Client) -> bool {
    match client.call("chat", "(:session \"s\" :content \"again\")") {
        Ok(answer) => answer["content"] == "here",
        Err(error) => {
            assert_eq!(error.kind(), "session-busy", "{error:?}");
            false
        }
    }
}

/// Waits until what is sent by then keeps the session.
fn until_busy(client: &mut Client) {
    let asked = |client: &mut Client| {
        let log = client.ok("get-messages", "(:session \"s\")");
        log.as_array().is_some_and(|log| !log.is_empty())
    };
    until("the question to be in the log", || asked(client));
}

#[test]
fn a_silent_model_is_not_waited_for_once_the_client_has_gone() {
    let home = Home::new();
    let (server, mut client) = begin(&home, HERE);
    let mut leaving = UnixStream::connect(&server.socket).unwrap();
    leaving.write_all(UNANSWERED).unwrap();
    until_busy(&mut client);
    assert!(!is_free(&mut client));
    // Nothing was said that it could have left unread, which would be noticed anyhow.
    leaving.set_nonblocking(true).unwrap();
    assert_eq!(leaving.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(leaving);
    until("the session to be free", || is_free(&mut client));
}

#[test]
fn nor_is_one_behind_a_bridge_or_of_a_server_over_stdio() {
    let home = Home::new();
    let (_server, mut client) = begin(&home, HERE);
    let mut bridge = home.command(&["serve", "--stdio"]);
    let mut bridge = Process::start({
        bridge.stdin(Stdio::piped());
        bridge
    });
    bridge.child.stdin.as_mut().unwrap().write_all(UNANSWERED).unwrap();
    until_busy(&mut client);
    assert!(!is_free(&mut client));
    drop(bridge.child.stdin.take());
    drop(bridge.child.stdout.take());
    until("the session to be free", || is_free(&mut client));
    bridge.wait();
    let mut alone = home.command(&["serve", "--stdio", "--ephemeral"]);
    alone.stdin(Stdio::piped());
    let mut alone = Process::start(alone);
    let stdin = alone.child.stdin.as_mut().unwrap();
    stdin.write_all(b"(:method open-session :params (:name \"s\"))\n").unwrap();
    stdin.write_all(UNANSWERED).unwrap();
    drop(alone.child.stdin.take());
    assert!(alone.is_running());
    drop(alone.child.stdout.take());
    alone.wait();
}

#[test]
fn what_a_client_said_before_it_left_is_carried_out() {
    let home = Home::new();
    let (server, mut client) = begin(&home, HERE);
    let mut leaving = UnixStream::connect(&server.socket).unwrap();
    let note = |number: usize| {
        format!("(:method add-context :params (:manager \"m\" :content \"{number}\"))\n")
    };
    leaving.write_all((0..500).map(note).collect::<String>().as_bytes()).unwrap();
    drop(leaving);
    let mut held = Vec::new();
    until("all of it to be carried out", || {
        held = client.contents("m");
        held.last().is_some_and(|last| last == "499")
    });
    let expected: Vec<String> = (500 - held.len()..500).map(|number| number.to_string()).collect();
    assert!(held.len() > 40);
    assert_eq!(held, expected);
}

#[test]
fn who_only_says_no_more_gets_its_answers() {
    let home = Home::new();
    let (server, _client) = begin(&home, &format!("{HERE}\ndelay = 0.3"));
    let mut half = UnixStream::connect(&server.socket).unwrap();
    half.write_all(ANSWERED).unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = String::new();
    half.read_to_string(&mut said).unwrap();
    assert!(said.contains(":content \"here\""), "{said}");
}
