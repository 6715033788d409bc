//! What a measured process says, and how.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write, stdin, stdout};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// One line of a measured process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Said {
    /// It has reached a point where it waits until it may continue.
    Ready,
    /// It is done.
    Done(Report),
}

/// What a measured process found out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// How many times it did what it does.
    pub done: u64,
    /// How many times that failed.
    pub failed: u64,
    /// When it began, on the monotonic clock, in nanoseconds.
    pub begun: u64,
    /// How long it worked.
    pub elapsed: Duration,
    /// How much processor time it spent meanwhile.
    pub processor: Duration,
    /// The median, in nanoseconds.
    pub p50: u64,
    /// What a hundredth took longer than, in nanoseconds.
    pub p99: u64,
    /// The longest, in nanoseconds.
    pub max: u64,
    /// When the first lock was had, on the monotonic clock, in nanoseconds.
    pub first_held: u64,
}

impl Report {
    /// Takes over what single runs took, in nanoseconds.
    pub fn set_times(&mut self, mut times: Vec<u64>) {
        times.sort_unstable();
        let at = |hundredths: usize| times.get((times.len().saturating_sub(1)) * hundredths / 100).copied();
        self.p50 = at(50).unwrap_or(0);
        self.p99 = at(99).unwrap_or(0);
        self.max = at(100).unwrap_or(0);
        self.done = times.len() as u64;
    }
}

/// Reports that this process has reached a point where it waits, and waits until it may continue.
///
/// # Errors
/// If the bench has gone.
///
/// # Blocking
/// Until the bench answers.
pub fn ready() -> Result<()> {
    say(&Said::Ready)?;
    let read = stdin().lock().read_line(&mut String::new()).context("cannot hear the bench")?;
    ensure!(read > 0, "the bench has gone");
    Ok(())
}

/// Says what was found out.
///
/// # Errors
/// If the bench has gone.
pub fn report(report: Report) -> Result<()> {
    say(&Said::Done(report))
}

fn say(said: &Said) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}", serde_json::to_string(said)?)?;
    Ok(out.flush()?)
}

/// One turn of a waiter, in nanoseconds on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose, counted within its process.
    pub waiter: u32,
    /// When its acquire returned.
    pub acquired: u64,
    /// When it called release.
    pub released: u64,
}

/// How many bytes a turn takes in a file.
const TURN_BYTES: usize = 20;

/// Writes turns down for the bench.
///
/// # Errors
/// If the file cannot be written.
pub fn write_turns(path: &Path, turns: &[Turn]) -> Result<()> {
    let mut file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    for turn in turns {
        file.write_all(&turn.waiter.to_le_bytes())?;
        file.write_all(&turn.acquired.to_le_bytes())?;
        file.write_all(&turn.released.to_le_bytes())?;
    }
    Ok(file.flush()?)
}

impl Turn {
    /// Reads turns that a measured process wrote down.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_all(path: &Path) -> Result<Vec<Self>> {
        let mut bytes = Vec::new();
        BufReader::new(File::open(path).with_context(|| path.display().to_string())?).read_to_end(&mut bytes)?;
        Ok(bytes.as_chunks::<TURN_BYTES>().0.iter().map(Self::from_bytes).collect())
    }

    fn from_bytes(bytes: &[u8; TURN_BYTES]) -> Self {
        let number = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let waiter = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Self { waiter, acquired: number(4), released: number(12) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut report = Report::default();
        report.set_times((1..=1000).rev().collect());
        assert_eq!((report.p50, report.p99, report.max, report.done), (500, 990, 1000, 1000));
        report.set_times(Vec::new());
        assert_eq!((report.p50, report.max, report.done), (0, 0, 0));
        report.set_times(vec![7]);
        assert_eq!((report.p50, report.p99, report.max), (7, 7, 7));
    }

    #[test]
    fn turns_come_back_from_their_file() {
        let path = std::env::temp_dir().join(format!("bench-turns-{}", std::process::id()));
        let turns = [
            Turn { waiter: 3, acquired: 5, released: u64::MAX - 1 },
            Turn { waiter: u32::MAX, acquired: 0x0102_0304_0506_0708, released: 9 },
        ];
        write_turns(&path, &turns).unwrap();
        let read = Turn::read_all(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), turns);
    }
}
