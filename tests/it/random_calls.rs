//! Ten thousand random calls of two clients that share keys, repeat calls and hang up: no change is
//! made twice, and no call gets another's answer.
//!
//! `CONTEXTURE_SEED` makes other calls; a failure names its seed.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::support::*;
use crate::tiers::rounds;

fn calls() -> usize {
    rounds(4_000, 20_000)
}
/// Most calls that a client sends before it reads an answer.
const MOST_OPEN: usize = 12;
/// Keys that the server remembers in any case, without those of calls that may be open.
const REMEMBERED: usize = 10_000 - 2 * MOST_OPEN;
/// So many managers that no item is evicted.
const MANAGERS: usize = 24;
/// The most items that a manager can have.
const MOST_ITEMS: usize = 1_000;
/// Number of calls after which the calls whose answers are lost are sent again: their keys must be
/// remembered.
const SENT_AGAIN: usize = 4_000;
const SESSIONS: usize = 3;

/// A keyed change, which may be sent any number of times.
struct Change {
    method: &'static str,
    params: String,
    /// Manager or session, and the content that is to be there once.
    place: String,
    content: String,
    answer: Option<Json>,
}

/// A call that is open.
enum Sent {
    Change(usize),
    /// A change with the key of this one, but another content.
    Reused(usize),
    /// A change without a key, of this content.
    Keyless(String),
    Reading(String),
}

struct Peer {
    dialect: Dialect,
    socket: PathBuf,
    stream: BufReader<UnixStream>,
    open: HashMap<i64, Sent>,
    last_id: i64,
}

impl Peer {
    fn new(socket: &Path, dialect: Dialect) -> Self {
        let stream = BufReader::new(UnixStream::connect(socket).unwrap());
        Self { dialect, socket: socket.to_owned(), stream, open: HashMap::new(), last_id: 0 }
    }

    /// Hangs up with calls open, and connects again.
    fn hang_up(&mut self) {
        self.stream.get_ref().shutdown(Shutdown::Both).unwrap();
        // The numbers begin anew, as those of the answers that are lost.
        *self = Self::new(&self.socket, self.dialect);
    }

    fn send(&mut self, method: &str, params: &str, sent: Sent) {
        self.last_id += 1;
        let line = request(self.dialect, &self.last_id.to_string(), method, params);
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
        self.open.insert(self.last_id, sent);
    }

    fn read(&mut self) -> (Sent, Result<Json, Failure>) {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let message = parse(self.dialect, line.trim_end());
        let id = message["id"].as_i64().unwrap();
        let sent = self.open.remove(&id).unwrap_or_else(|| panic!("nobody asked for {line}"));
        (sent, outcome(message))
    }
}

/// The same for what is `nil` in one dialect and an empty list or false in another.
pub(crate) fn plain(value: &Json) -> Json {
    match value {
        Json::Bool(false) => Json::Null,
        Json::Array(items) if items.is_empty() => Json::Null,
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

struct Run {
    random: Random,
    changes: Vec<Change>,
    keyless: Vec<String>,
    keyless_ids: Vec<(String, String)>,
    answered_twice: usize,
}

impl Run {
    /// Returns the number of a change that was sent before, and whose key is remembered.
    fn any_change(&mut self) -> Option<usize> {
        let count = self.changes.len();
        let first = count.saturating_sub(REMEMBERED);
        (count > 0).then(|| first + self.random.below(count - first))
    }

    /// Sends one call of any kind.
    fn send(&mut self, peer: &mut Peer) {
        let number = self.changes.len() + self.keyless.len();
        match self.random.below(100) {
            0..55 => {
                let manager = format!("m{}", self.random.below(MANAGERS));
                self.send_new(peer, "add-item", "manager", manager);
            }
            55..62 => {
                let session = format!("s{}", self.random.below(SESSIONS));
                self.send_new(peer, "add-message", "session", session);
            }
            62..82 => {
                if let Some(change) = self.any_change() {
                    let Change { method, params, .. } = &self.changes[change];
                    peer.send(method, params, Sent::Change(change));
                }
            }
            82..86 => {
                // Only of an answered change is it sure that the key is its own.
                let change = self.any_change();
                if let Some(change) = change.filter(|it| self.changes[*it].answer.is_some()) {
                    let Change { method, params, content, .. } = &self.changes[change];
                    let params = params.replace(&**content, "something else");
                    peer.send(method, &params, Sent::Reused(change));
                }
            }
            86..93 => {
                let content = format!("keyless {number}");
                let manager = self.random.below(MANAGERS);
                let params = format!("(:manager \"m{manager}\" :content {content:?})");
                self.keyless.push(content.clone());
                peer.send("add-item", &params, Sent::Keyless(content));
            }
            _ => {
                let manager = format!("m{}", self.random.below(MANAGERS));
                let params = format!("(:managers ({manager:?}) :limit 1)");
                peer.send("list-items", &params, Sent::Reading(manager));
            }
        }
    }

    fn send_new(&mut self, peer: &mut Peer, method: &'static str, of: &str, place: String) {
        let number = self.changes.len();
        let content = format!("content {number}");
        let params = format!("(:{of} {place:?} :content {content:?} :request-key \"k{number}\")");
        self.changes.push(Change { method, params: params.clone(), place, content, answer: None });
        peer.send(method, &params, Sent::Change(number));
    }

    fn receive(&mut self, peer: &mut Peer) {
        match peer.read() {
            (Sent::Change(number), answer) => {
                let answer = plain(&answer.unwrap());
                let change = &mut self.changes[number];
                match &change.answer {
                    Some(first) => {
                        self.answered_twice += 1;
                        assert_eq!(*first, answer, "{}", change.params);
                    }
                    None => change.answer = Some(answer),
                }
            }
            (Sent::Reused(number), answer) => {
                let error = answer.expect_err(&self.changes[number].params);
                assert_eq!(error.kind(), "key-reused");
            }
            (Sent::Keyless(content), answer) => {
                let id = answer.unwrap()["id"].as_str().unwrap().to_owned();
                self.keyless_ids.push((id, content));
            }
            (Sent::Reading(manager), answer) => {
                let items = answer.unwrap();
                let latest = items[0]["content"].as_str();
                let is_there = |it: &str| {
                    it.starts_with("keyless") || {
                        let number: usize = it["content ".len()..].parse().unwrap();
                        self.changes[number].place == manager
                    }
                };
                assert!(latest.is_none_or(is_there), "{manager}: {latest:?}");
            }
        }
    }

    /// Reads all answers, and sends the changes again whose answers are lost. Returns their number.
    fn send_lost(&mut self, peers: &mut [Peer; 2]) -> usize {
        for peer in &mut *peers {
            while !peer.open.is_empty() {
                self.receive(peer);
            }
        }
        let is_lost = |it: &usize| self.changes[*it].answer.is_none();
        let lost: Vec<usize> = (0..self.changes.len()).filter(is_lost).collect();
        for number in &lost {
            let Change { method, params, .. } = &self.changes[*number];
            peers[0].send(method, params, Sent::Change(*number));
            self.receive(&mut peers[0]);
        }
        lost.len()
    }

    /// Checks that everything is there once, under the id that was answered.
    fn check(&self, client: &mut Client) {
        let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut there = |list: Json| {
            for one in list.as_array().into_iter().flatten() {
                let text = |name: &str| one[name].as_str().unwrap().to_owned();
                ids.entry(text("content")).or_default().push(text("id"));
            }
        };
        for manager in 0..MANAGERS {
            there(client.ok("list-items", &format!("(:manager \"m{manager}\")")));
        }
        for session in 0..SESSIONS {
            there(client.ok("get-messages", &format!("(:session \"s{session}\" :view :log)")));
        }
        for Change { params, content, answer, .. } in &self.changes {
            let answer = answer.as_ref().unwrap();
            let id = answer["id"].as_str().or(answer["ids"][0].as_str()).unwrap();
            assert_eq!(
                ids.get(content).map(|ids| &ids[..]),
                Some(&[id.to_owned()][..]),
                "{params}"
            );
        }
        for (id, content) in &self.keyless_ids {
            assert_eq!(ids[content].iter().collect::<Vec<_>>(), [id], "{content}");
        }
        for content in &self.keyless {
            assert!(ids.get(content).is_none_or(|ids| ids.len() == 1), "{content}");
        }
        let known = self.changes.len() + self.keyless.len();
        assert!(ids.len() <= known, "{} of {known}", ids.len());
    }
}

#[test]
fn no_call_is_made_twice_or_answered_with_another_s_answer() {
    let seed = std::env::var("CONTEXTURE_SEED").map_or(20_260, |seed| seed.parse().unwrap());
    println!("CONTEXTURE_SEED={seed}");
    let home = Home::new();
    let server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    for manager in 0..MANAGERS {
        client
            .ok("configure-manager", &format!("(:manager \"m{manager}\" :max-items {MOST_ITEMS})"));
    }
    for session in 0..SESSIONS {
        client.ok("open-session", &format!("(:name \"s{session}\")"));
    }
    let dialects = [Dialect::Native, Dialect::Json];
    let mut peers = dialects.map(|dialect| Peer::new(&server.socket, dialect));
    let mut run = Run {
        random: Random(seed),
        changes: Vec::new(),
        keyless: Vec::new(),
        keyless_ids: Vec::new(),
        answered_twice: 0,
    };
    let mut lost = 0;
    for call in 1..=calls() {
        let peer = &mut peers[run.random.below(2)];
        run.send(peer);
        match run.random.below(100) {
            0 => peer.hang_up(),
            1..50 if !peer.open.is_empty() => run.receive(peer),
            _ => {}
        }
        while peer.open.len() > MOST_OPEN {
            run.receive(peer);
        }
        if call % SENT_AGAIN == 0 {
            lost += run.send_lost(&mut peers);
        }
    }
    lost += run.send_lost(&mut peers);
    run.check(&mut client);
    assert!(run.answered_twice > 100 && lost > 10, "{} {lost}", run.answered_twice);
}
