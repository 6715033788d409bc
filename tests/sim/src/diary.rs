//! What happened in a run, as readable text, and a digest of it.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use crate::clock::Time;

/// The diary. Writing costs more than the run itself, so most runs have an empty one; replay a run to get it.
#[derive(Debug, Default)]
pub(crate) struct Diary(Option<Pages>);

#[derive(Debug, Default)]
struct Pages {
    digest: DefaultHasher,
    lines: Vec<String>,
}

impl Diary {
    /// A diary that is written.
    pub(crate) fn written() -> Self {
        Self(Some(Pages::default()))
    }

    pub(crate) fn note(&mut self, at: Time, what: fmt::Arguments<'_>) {
        let Some(pages) = &mut self.0 else { return };
        let line = format!("{:>12} ms  {what}", Millis(at));
        pages.digest.write(line.as_bytes());
        pages.lines.push(line);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.0.as_ref().map_or(0, |pages| pages.digest.finish())
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.0.map(|pages| pages.lines).unwrap_or_default()
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
