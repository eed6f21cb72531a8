//! Many mixed calls over every transport leave nothing behind: no memory, descriptor, thread or
//! process. Many run in `make test-all` only; of few, only what does not depend on their number is
//! checked.

use serde_json::json;

use crate::agents_over_http::Site;
use crate::support::*;
use crate::tiers::rounds;

/// Number of calls in `make test-all`.
const MANY: usize = 20_000;
/// Calls before the first measurement, in which caches fill.
const WARM_UP: usize = 2000;
/// Number of calls in the quicker tiers.
const FEW: usize = 400;
/// How often to look, every 50 ms, whether the server has noticed that connections were closed.
const NOTICED_IN: usize = 400;
/// How much more memory the process may have, in KiB.
const MOST_GROWTH: u64 = 20 << 10;

/// What a process holds: memory in KiB, descriptors, threads and child processes.
#[derive(Debug)]
struct Held {
    memory: u64,
    descriptors: usize,
    threads: usize,
    children: usize,
}

impl Held {
    fn by(pid: u32) -> Self {
        let of = |name: &str| format!("/proc/{pid}/{name}");
        let status = std::fs::read_to_string(of("status")).unwrap();
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let children = std::fs::read_dir(of("task")).unwrap().map(|task| {
            let children = std::fs::read_to_string(task.unwrap().path().join("children"));
            children.unwrap_or_default().split_whitespace().count()
        });
        Self {
            memory: number("VmRSS:"),
            descriptors: std::fs::read_dir(of("fd")).unwrap().count(),
            threads: number("Threads:") as usize,
            children: children.sum(),
        }
    }
}

/// What the descriptors of a process are.
fn names(pid: u32) -> String {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let name = |it: std::io::Result<std::fs::DirEntry>| std::fs::read_link(it.unwrap().path());
    format!("{:?}", all.map(name).collect::<Vec<_>>())
}

/// One of the mixed calls, which together leave the state about as large as it was.
fn call(client: &mut Client, number: usize) {
    let params = match number % 10 {
        0 => {
            ("add-context", "(:manager \"g\" :content \"(defun f (x) x)\" :type :code)".to_owned())
        }
        1 => ("list-items", "(:managers (\"g\"))".to_owned()),
        2 => ("render-items", "(:managers (\"g\") :max-tokens 500)".to_owned()),
        3 => ("clear-context", "(:manager \"g\")".to_owned()),
        4 => ("open-session", format!("(:name \"s{}\")", number % 7)),
        5 => ("add-message", "(:content \"the parser failed in src/a.rs\")".to_owned()),
        6 => ("build-window", "(:max-tokens 2000)".to_owned()),
        7 => ("list-sessions", "(:query \"parser\")".to_owned()),
        8 => ("no-such-method", "(:x 1)".to_owned()),
        _ => ("initialize", "nil".to_owned()),
    };
    let _ = client.call(params.0, &params.1);
}

#[test]
fn many_mixed_calls_leave_nothing_behind() {
    if !cfg!(target_os = "linux") {
        return crate::skips::skipped("only Linux tells what a process holds");
    }
    let calls = rounds(FEW, MANY);
    let (home, alone) = (Home::new(), Home::new());
    let site = Site::new(&home);
    let mut stdio = alone.stdio(&[]);
    let lone = stdio.process.as_ref().unwrap().pid();
    let round = |from: usize, count: usize, stdio: &mut Client| {
        for number in (from..from + count).step_by(4) {
            // New connections now and then, so that what belongs to one would pile up.
            let mut clients = [site.server.unix(Dialect::Native), site.server.tcp(Dialect::Json)];
            for offset in 0..4.min(count) {
                clients.iter_mut().for_each(|client| call(client, number + offset));
                call(stdio, number + offset);
                let tool = ["context", "search", "explain", "nothing"][offset];
                let params = json!({ "name": tool, "arguments": { "query": "x" } });
                site.answer("", "tools/call", params);
            }
            clients.iter_mut().for_each(Client::close);
            if number % 40 == 0 {
                let headers = site.session("");
                let end = format!("DELETE /mcp HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
                assert!(site.send(&end).0 < 300);
            }
        }
    };
    let warm = calls.min(WARM_UP);
    // Each number makes a call over each of four transports.
    round(0, warm / 4, &mut stdio);
    let servers = [site.server.process.pid(), lone];
    let before = servers.map(Held::by);
    round(warm, calls / 4, &mut stdio);
    for (pid, before) in servers.into_iter().zip(before) {
        // The server may not have noticed yet that connections were closed.
        let mut after = Held::by(pid);
        for _ in 0..NOTICED_IN {
            if after.descriptors <= before.descriptors + 2 && after.children <= before.children {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            after = Held::by(pid);
        }
        assert!(after.descriptors <= before.descriptors + 2, "{before:?} {after:?} {}", names(pid));
        assert!(after.children <= before.children, "{before:?} {after:?}");
        assert!(after.threads <= before.threads + 8, "{before:?} {after:?}");
        if calls == MANY {
            let growth = after.memory.saturating_sub(before.memory);
            assert!(growth <= MOST_GROWTH, "{before:?} {after:?}");
        }
    }
    stdio.end();
}
