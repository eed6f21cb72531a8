//! Bounds on connections before it is known who asks: other users of the machine, and connections
//! that say nothing, or half of something, keep nobody out.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use crate::agents_over_http::Site;
use crate::skips::skipped;
use crate::support::*;

/// Descriptors of the server, as many as most systems give a process.
const DESCRIPTORS: u64 = 1024;
/// Connections of the attack, more than the server has descriptors.
const ATTACK: usize = 1100;

/// Another user of this machine that holds connections open.
struct Stranger(Child);

impl Stranger {
    /// Opens connections to a port; sends `said` on each. `None` if the tests do not run as root, or
    /// there is no program for this.
    fn connect(port: &str, said: &str) -> Option<Self> {
        // The server may close a connection before anything is said on it.
        let script = r#"trap '' PIPE; ulimit -n 8192; for i in $(seq "$2"); do
            exec {fd}<>/dev/tcp/127.0.0.1/"$1" && printf %s "$3" >&$fd; done 2>/dev/null
            echo ready; read -r _"#;
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups", "bash", "-c", script, "x", port]);
        command.args([&ATTACK.to_string(), said]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "ready\n" {
            let status = child.wait().unwrap();
            assert!(status.code().is_some(), "the other user was ended: {status}");
            return None;
        }
        Some(Self(child))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn limit_descriptors(site: &Site) {
    let limit = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
    prlimit(Some(Pid::from_child(&site.server.process.child)), Resource::Nofile, limit).unwrap();
}

fn open_descriptors(site: &Site) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", site.server.process.pid())).unwrap().count()
}

/// Waits until the server has accepted all connections to a port. Those that wait are guests only
/// later, and the newest guests keep their places.
fn wait_until_accepted(place: &str) {
    let port: u16 = place.rsplit_once(':').unwrap().1.parse().unwrap();
    // Of a port that listens (0A), the second queue has the connections that wait.
    let (port, none) = (format!(":{port:04X}"), "00000000:00000000");
    until("the connections to be accepted", || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
        rows.all(|row| {
            row.len() < 5 || !row[1].ends_with(&port) || row[3] != "0A" || row[4] == none
        })
    });
}

#[track_caller]
fn check_served(site: &Site, after: &str) {
    let listed = site.answer("", "tools/list", json!({}));
    assert!(listed.contains("\"remember\""), "HTTP, {after}: {listed}");
    for mut client in [site.server.tcp(Dialect::Native), site.server.unix(Dialect::Native)] {
        client.ok("ping", "nil");
    }
}

#[test]
fn another_user_with_many_connections_keeps_nobody_out() {
    let home = Home::new();
    let site = Site::new(&home);
    if !cfg!(target_os = "linux") {
        return skipped("only Linux tells the user of a connection");
    }
    limit_descriptors(&site);
    let http = site.host.rsplit_once(':').unwrap().1;
    for (port, said) in [
        (http, ""),
        (http, "POST /mcp HTTP/1.1\r\nHost: x\r\n"),
        (&*site.server.port.to_string(), ""),
        (&*site.server.port.to_string(), "(:id 1 :method "),
    ] {
        let Some(_stranger) = Stranger::connect(port, said) else {
            return skipped("no setpriv as root, or no bash");
        };
        check_served(&site, said);
        until("the connections to be refused", || open_descriptors(&site) < 100);
    }
}

#[test]
fn connections_that_say_nothing_leave_room_for_others() {
    let home = Home::new();
    let site = Site::new(&home);
    limit_descriptors(&site);
    let port = site.server.port;
    let places = [format!("127.0.0.1:{port}"), site.host.clone()];
    for said in ["", "(:id 1 :method pi", "POST /mcp HTTP/1.1\r\nContent-Len"] {
        let mut held = Vec::new();
        for place in &places {
            for _ in 0..300 {
                let mut stream = TcpStream::connect(place).unwrap();
                let _ = stream.write_all(said.as_bytes());
                held.push(stream);
            }
            wait_until_accepted(place);
            check_served(&site, said);
        }
        if cfg!(target_os = "linux") {
            assert!(open_descriptors(&site) < 400, "{said}");
        }
        drop(held);
        check_served(&site, said);
    }
}

#[test]
fn a_client_that_is_known_keeps_its_place() {
    let home = Home::new();
    let site = Site::new(&home);
    limit_descriptors(&site);
    let mut client = site.server.tcp(Dialect::Native);
    client.ok("ping", "nil");
    let held: Vec<_> =
        (0..400).map(|_| TcpStream::connect(("127.0.0.1", site.server.port)).unwrap()).collect();
    client.ok("ping", "nil");
    drop(held);
}
