//! Cost of bringing live items up to date with their files, and what others notice of it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::ensure;

use crate::row::{Row, median};
use crate::server::Server;

/// Number of files, and of items in each: a thousand in all.
const FILES: usize = 50;
const ITEMS: usize = 20;
/// Number of files that change before each call, so that a hundred items move.
const MOVED: usize = 5;
/// Number of lines of each item. One blank line follows.
const LINES: usize = 25;
/// Number of repetitions. Odd, so that the median is one of the measures.
const REPETITIONS: usize = 21;
/// Manager that has the items.
const MANAGER: &str = "live";

/// Measures a call that shows a thousand live items of which a hundred have moved on the disk, and
/// the durable adds that another client makes meanwhile.
pub(crate) fn following() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut server = Server::start()?;
    mark(&mut server, folder.path())?;
    let mut other = Client::connect(&server.socket())?;
    let (mut shown, mut slowest, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..REPETITIONS {
        for file in 0..MOVED {
            let above = "; above\n".repeat(number + 1);
            std::fs::write(path(folder.path(), number * MOVED + file), above + &text())?;
        }
        let (time, add) = other.adds_while(|| show(&mut server))?;
        shown.push(time);
        slowest.push(add);
        unchanged.push(show(&mut server)?);
    }
    let moved = last_moved(&mut server, folder.path())?;
    ensure!(moved == REPETITIONS as u64 + 1, "the items moved to line {moved}");
    Ok(vec![
        Row::at_most(
            "1,000 live items, 100 of them moved on disk, shown",
            median(shown),
            60.0,
            "ms",
        ),
        Row::at_most(
            "the slowest durable add of another client meanwhile",
            median(slowest),
            15.0,
            "ms",
        ),
        Row::at_most(
            "1,000 live items, none of them changed, shown",
            median(unchanged),
            60.0,
            "ms",
        ),
    ])
}

fn path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("source-{:02}.el", number % FILES))
}

/// Returns the text of a file: definitions, all different.
fn text() -> String {
    let mut text = String::new();
    for item in 0..ITEMS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "(defun sum-{item} (numbers)");
        for line in 1..LINES {
            let _ = writeln!(text, "  (setq value-{item}-{line} (+ (car numbers) {line}))");
        }
        text.push('\n');
    }
    text
}

/// Writes the files and adds all of their definitions as live items.
fn mark(server: &mut Server, folder: &Path) -> anyhow::Result<()> {
    server.call("configure-manager", &format!("(:manager {MANAGER:?} :max-items 1000)"))?;
    let text = text();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for file in 0..FILES {
        let path = path(folder, file);
        std::fs::write(&path, &text)?;
        for item in 0..ITEMS {
            let first = item * (LINES + 1);
            let content = lines[first..first + LINES].concat();
            let params = format!(
                "(:manager {MANAGER:?} :content {content:?} :type :code :live t :brief t :metadata \
                 (:origin :defun :symbol \"sum-{item}\" :filename {:?} :start-line {} :end-line {}))",
                path.display(),
                first + 1,
                first + LINES,
            );
            server.call("add-item", &params)?;
        }
    }
    show(server).map(drop)
}

/// Calls a method that shows the items. Returns the milliseconds that it took.
fn show(server: &mut Server) -> anyhow::Result<f64> {
    let start = Instant::now();
    server.call("render-items", &format!("(:manager {MANAGER:?} :max-tokens 1000)"))?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Returns the first line of the first item of the file that changed last.
fn last_moved(server: &mut Server, folder: &Path) -> anyhow::Result<u64> {
    let file = path(folder, REPETITIONS * MOVED - 1);
    let params = format!("(:manager {MANAGER:?} :filenames ({:?}))", file.display());
    let items = server.call("list-items", &params)?;
    let first = items.split(":start-line ").nth(1).unwrap_or_default();
    let digits: String = first.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

/// A second client of the server.
struct Client {
    input: UnixStream,
    output: BufReader<UnixStream>,
}

impl Client {
    fn connect(socket: &Path) -> anyhow::Result<Self> {
        let input = UnixStream::connect(socket)?;
        let output = BufReader::new(input.try_clone()?);
        Ok(Self { input, output })
    }

    /// Adds items, one after the other, while `work` runs. Returns its result and the milliseconds
    /// of the slowest add.
    fn adds_while<T>(
        &mut self,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, f64)> {
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let adding = scope.spawn(|| -> anyhow::Result<f64> {
                let mut slowest = 0.0_f64;
                while !is_done.load(Ordering::Relaxed) {
                    slowest = slowest.max(self.add()?);
                }
                Ok(slowest)
            });
            let worked = work();
            is_done.store(true, Ordering::Relaxed);
            let added = adding.join().map_err(|_| anyhow::anyhow!("the adding thread panicked"))?;
            Ok((worked?, added?))
        })
    }

    fn add(&mut self) -> anyhow::Result<f64> {
        let start = Instant::now();
        writeln!(
            self.input,
            "(:id 1 :method add-item :params (:manager \"other\" :content \"x\" :brief t))"
        )?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(line.contains(":result"), "the server answered {}", line.trim_end());
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}
