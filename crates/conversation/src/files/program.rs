//! Runs programs that read what others wrote, within limits.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::system::{end_of, limit_memory, spawn_bound, state_of};

/// What a program may take.
pub(super) struct ProgramLimits {
    /// Maximum time in all.
    pub(super) time: Duration,
    /// Maximum time without any output while it does nothing.
    pub(super) silence: Duration,
    /// Maximum memory for data, in bytes.
    pub(super) memory: u64,
    /// Maximum length of what it may print. More is no answer.
    pub(super) output: u64,
}

/// The reason why a program has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramFailure {
    /// It cannot be started.
    NotStarted,
    /// It waited for something that did not come.
    Waited,
    /// It took too long in all.
    TooLong,
    /// It printed more than it may.
    TooMuch,
    /// It failed.
    Failed,
}

/// Variables of the environment that a program gets, besides those that begin with `LC_`. The
/// others may be keys, or tell the program to read or run something else.
const VARIABLES: &[&str] = &[
    "DYLD_FALLBACK_LIBRARY_PATH",
    "HOME",
    "LANG",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
];

/// Returns whether a program gets a variable of the environment.
fn is_given(name: &std::ffi::OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Runs a program with `input`, and returns what it prints. The program ends with this one. From
/// the environment, it gets only [`VARIABLES`], besides what the command sets.
pub(super) fn printed(
    mut command: Command,
    input: &[u8],
    limits: &ProgramLimits,
) -> Result<Vec<u8>, ProgramFailure> {
    for (name, _) in std::env::vars_os().filter(|(name, _)| !is_given(name)) {
        // What the command itself sets stays.
        if !command.get_envs().any(|(set, _)| set == name) {
            command.env_remove(name);
        }
    }
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = spawn_bound(&mut command).map_err(|_| ProgramFailure::NotStarted)?;
    limit_memory(&child, limits.memory);
    let output = child.stdout.take().ok_or(ProgramFailure::NotStarted)?;
    let begun = Instant::now();
    let (last, most) = (Arc::new(Mutex::new(begun)), limits.output);
    let heard = Arc::clone(&last);
    let reader = thread::spawn(move || {
        let (mut text, mut output) = (Vec::new(), BufReader::new(output));
        loop {
            let part = output.fill_buf()?;
            if part.is_empty() || text.len() as u64 > most {
                return Ok::<_, io::Error>(text);
            }
            text.extend_from_slice(part);
            let read = part.len();
            output.consume(read);
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    });
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // The program may end before it has read everything, which is no failure by itself.
        thread::spawn(move || stdin.write_all(&input));
    }
    let pid = child.id();
    let waits = || {
        let heard = *last.lock().unwrap_or_else(PoisonError::into_inner);
        heard.elapsed() > limits.silence && matches!(state_of(pid), None | Some('S'))
    };
    let waited = Cell::new(false);
    let goes_on = || {
        waited.set(waits());
        !waited.get() && begun.elapsed() <= limits.time
    };
    let Some(status) = end_of(&mut child, goes_on).map_err(|_| ProgramFailure::Failed)? else {
        return Err(if waited.get() { ProgramFailure::Waited } else { ProgramFailure::TooLong });
    };
    let text = reader.join().ok().and_then(Result::ok).ok_or(ProgramFailure::Failed)?;
    match status.success() {
        _ if text.len() as u64 > most => Err(ProgramFailure::TooMuch),
        true => Ok(text),
        false => Err(ProgramFailure::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_no_keys() {
        let limits = ProgramLimits {
            time: Duration::from_secs(60),
            silence: Duration::from_secs(60),
            memory: 1 << 30,
            output: 1 << 20,
        };
        let mut command = Command::new("env");
        command.env("GIT_OPTIONAL_LOCKS", "0");
        let told = String::from_utf8(printed(command, b"", &limits).unwrap()).unwrap();
        let names: Vec<&str> =
            told.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert!(names.contains(&"PATH") && names.contains(&"GIT_OPTIONAL_LOCKS"), "{names:?}");
        // Cargo sets some variables for each test, which stand for all others.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let more: Vec<_> = names.iter().filter(|name| !is_given(name.as_ref())).collect();
        assert_eq!(more, [&"GIT_OPTIONAL_LOCKS"]);
    }
}
