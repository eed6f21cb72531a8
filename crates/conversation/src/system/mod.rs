//! The code that differs between operating systems: it keeps hold of files, notices that a peer
//! has gone, finds out who owns a connection and whether a process is stopped, and limits the memory
//! and the time of one. `linux` uses what only Linux has; `portable` works on any Unix, and
//! `--cfg portable` selects it on Linux, too. Knows nothing about its callers.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::fs::{Dir, Mode, OFlags};

mod folder;
#[cfg(all(target_os = "linux", not(portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(portable))))]
mod portable;
mod prompt;

#[cfg(all(target_os = "linux", not(portable)))]
use linux as here;
#[cfg(not(all(target_os = "linux", not(portable))))]
use portable as here;

pub use self::folder::Folder;
pub use self::prompt::note_disk;
#[cfg(feature = "program")]
pub use self::prompt::promptly;
pub use here::held::{Held, keeps_inside};
#[cfg(feature = "program")]
pub use here::peers::{HANG_UP, enlarge_pipe, hang_up, peer_user};
pub use here::{limit_memory, spawn_bound, state_of};

/// Opens a file for reading without waiting. The file may just have been replaced by a FIFO:
/// `O_NONBLOCK` keeps the opening of a FIFO from waiting for a writer, and has no effect on
/// regular files.
pub fn open_at_once(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::empty())
}

fn open_with(path: &Path, more: OFlags) -> io::Result<File> {
    note_disk();
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | more).bits();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}

/// Time between two checks of whether a program has ended.
const STEP: Duration = Duration::from_millis(2);

/// Waits until a program ends, and returns how it did; `None` if it is killed, since `goes_on` returned
/// false.
pub fn end_of(child: &mut Child, goes_on: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait()? {
            None if !goes_on() => {
                // Both calls fail only if it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            None => thread::sleep(STEP),
            ended => return Ok(ended),
        }
    }
}

/// Returns at most `limit` names from an open folder, in no particular order. Leaves out names that
/// are not UTF-8.
fn names_in(folder: impl AsFd, limit: usize) -> io::Result<Vec<String>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries = Dir::new(rustix::fs::openat(folder, ".", flags, Mode::empty())?)?;
    let names = entries.filter_map(Result::ok);
    let names = names.filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned()));
    Ok(names.filter(|name| name != "." && name != "..").take(limit).collect())
}

#[cfg(all(test, target_os = "linux", not(portable)))]
mod tests {
    #[test]
    fn a_program_takes_no_more_memory_than_it_may() {
        let mut command = std::process::Command::new("cat");
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        super::limit_memory(&child, 12_345_678);
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        let line = limits.lines().find(|line| line.starts_with("Max data size")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[3..5], ["12345678", "12345678"]);
    }
}

#[cfg(test)]
pub fn make_fifo(path: impl AsRef<Path>) {
    let made = std::process::Command::new("mkfifo").arg(path.as_ref()).status().unwrap();
    assert!(made.success());
}
