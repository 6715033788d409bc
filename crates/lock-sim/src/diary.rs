//! What happened in a run: the last lines for whoever has to understand it, and a digest of all of them.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};

use crate::clock::Time;

/// How many lines are kept.
const LINES_MAX: usize = 400;

#[derive(Debug, Default)]
pub(crate) struct Diary {
    digest: DefaultHasher,
    lines: VecDeque<String>,
}

impl Diary {
    pub(crate) fn note(&mut self, at: Time, what: fmt::Arguments<'_>) {
        let mut line = if self.lines.len() < LINES_MAX { None } else { self.lines.pop_front() }.unwrap_or_default();
        line.clear();
        // Writing to a string cannot fail.
        _ = write!(line, "{:>12} ms  {what}", Millis(at));
        self.digest.write(line.as_bytes());
        self.lines.push_back(line);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}

/// A time in milliseconds, to the microsecond.
struct Millis(Time);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_nanos() / 1000;
        f.pad(&format!("{}.{:03}", micros / 1000, micros % 1000))
    }
}
