//! The clock of a server: the system's, or one for tests, which stands still until it is moved.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;

use crate::engine::Clock;
use crate::visible::visible_path;
use crate::whole_file::read_text;

/// Maximum length of a file with a time, in bytes.
const LONGEST_TIME: u64 = 64;

/// The time that the clock of a test's server shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FixedTime {
    /// Unix seconds.
    At(i64),
    /// File that holds the Unix seconds. The file is read each time that the server asks for the
    /// time, so a test can move the clock.
    In(PathBuf),
}

impl FromStr for FixedTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix('@') {
            Some(file) => Ok(Self::In(PathBuf::from(file))),
            None => {
                text.parse().map(Self::At).map_err(|_| "must be a time in Unix seconds, or @FILE")
            }
        }
    }
}

/// Returns a clock that shows the time `fixed`, or the system's clock if it is `None`.
pub(super) fn clock(fixed: Option<&FixedTime>) -> anyhow::Result<Clock> {
    Ok(match fixed.cloned() {
        None => Box::new(|| jiff::Timestamp::now().as_millisecond()),
        Some(FixedTime::At(seconds)) => Box::new(move || seconds.saturating_mul(1000)),
        Some(FixedTime::In(file)) => {
            let shown = Cell::new(read(&file)?);
            Box::new(move || {
                // If the file is gone, as at the end of a test, the clock keeps its time.
                shown.set(read(&file).unwrap_or(shown.get()));
                shown.get().saturating_mul(1000)
            })
        }
    })
}

fn read(file: &Path) -> anyhow::Result<i64> {
    let text = read_text(file, LONGEST_TIME)
        .with_context(|| format!("cannot read the time from {}", visible_path(file)))?;
    text.trim()
        .parse()
        .with_context(|| format!("{} must contain a time in Unix seconds", visible_path(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_or_a_file() {
        assert_eq!("17".parse(), Ok(FixedTime::At(17)));
        assert_eq!("@/tmp/clock".parse(), Ok(FixedTime::In("/tmp/clock".into())));
        assert!("soon".parse::<FixedTime>().is_err());
    }

    #[test]
    fn a_clock_in_a_file_is_moved_by_writing_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clock");
        let time = FixedTime::In(file.clone());
        assert!(clock(Some(&time)).is_err());
        std::fs::write(&file, "1700000000\n").unwrap();
        let clock = clock(Some(&time)).unwrap();
        assert_eq!(clock(), 1_700_000_000_000);
        std::fs::write(&file, "1700000060").unwrap();
        assert_eq!(clock(), 1_700_000_060_000);
        std::fs::write(&file, "").unwrap();
        assert_eq!(clock(), 1_700_000_060_000);
    }
}
