//! The outcome of a run.

use crate::env::Env;
use crate::fault::Tally;
use crate::invariants::Broken;
use crate::network::Talk;

/// The outcome of a run.
#[derive(Debug)]
pub struct Report {
    /// The rule that was broken, if one was.
    pub broken: Option<Broken>,
    /// How often each fault fired.
    pub tally: Tally,
    /// A digest of the diary. The same seed gives the same one.
    pub digest: u64,
    /// How many steps it had.
    pub steps: u64,
    /// Everything that happened, if a diary was wanted.
    pub diary: Vec<String>,
}

impl Report {
    pub(crate) fn of<T: Talk>(env: Env<T>, steps: u64) -> Self {
        let (broken, digest) = (env.watch.broken().cloned(), env.diary.digest());
        Self { broken, tally: env.tally, digest, steps, diary: env.diary.into_lines() }
    }
}
