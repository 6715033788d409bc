//! What an exploration came to.

use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use stateright::{Checker, Model};

use crate::{Action, Claim, Quorum};

/// What an exploration came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// How many states there are. Those that differ in names alone are one.
    pub states: usize,
    /// In how many steps every one of them can be reached.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// What was claimed, each with the path that proves or refutes it, if there is one.
    pub paths: BTreeMap<Claim, Option<Vec<Action>>>,
}

impl<const N: usize, const C: usize> Quorum<N, C> {
    /// Explores every state.
    pub fn explore(self) -> Report {
        let began = Instant::now();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let checker = self.checker().threads(threads).spawn_bfs().join();
        let mut found = checker.discoveries();
        let claims = Claim::ALL.into_iter().filter(|claim| claim.concerns(self.rules.rounds));
        let paths = claims.map(|claim| (claim, found.remove(claim.text()).map(stateright::Path::into_actions)));
        Report {
            states: checker.unique_state_count(),
            depth: checker.max_depth() - 1,
            paths: paths.collect(),
            took: began.elapsed(),
        }
    }
}

impl Report {
    /// The claims that are not true.
    pub fn refuted(&self) -> Vec<Claim> {
        let wrong = self.paths.iter().filter(|(claim, path)| claim.is_proved_by_path() != path.is_some());
        wrong.map(|(claim, _)| *claim).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} states within {} steps, {:.1?}", self.states, self.depth, self.took)?;
        let refuted = self.refuted();
        for (claim, path) in &self.paths {
            let is_refuted = refuted.contains(claim);
            writeln!(f, "  {} {}", if is_refuted { "NO " } else { "yes" }, claim.text())?;
            for (number, action) in (1..).zip(path.iter().flatten().filter(|_| is_refuted)) {
                writeln!(f, "      {number:2} {action:?}")?;
            }
        }
        Ok(())
    }
}
