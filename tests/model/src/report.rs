//! What an exploration came to.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::thread;
use std::time::{Duration, Instant};

use stateright::{Checker, Model};

use crate::claimed::Claimed;
use crate::{Action, Claim, Quorum, guard};

/// What an exploration came to.
#[derive(Clone, Debug)]
pub struct Report<C, A> {
    /// How many states there are. Those that differ in names alone are one.
    pub states: usize,
    /// In how many steps every one of them can be reached.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// What was claimed, each with the path that proves or refutes it, if there is one.
    pub paths: BTreeMap<C, Option<Vec<A>>>,
}

impl<const N: usize, const C: usize> Quorum<N, C> {
    /// Explores every state.
    pub fn explore(self) -> Report<Claim, Action> {
        let rounds = self.rules.rounds;
        explore(self, Claim::ALL.into_iter().filter(|claim| claim.concerns(rounds)))
    }
}

impl<const N: usize> guard::Guarded<N> {
    /// Explores every state, or so many that each claim is proved or refuted.
    pub fn explore(self) -> Report<guard::Claim, guard::Action> {
        let bounds = self.bounds;
        explore(self, guard::Claim::ALL.into_iter().filter(|claim| claim.concerns(bounds)))
    }
}

fn explore<M, C>(model: M, claims: impl Iterator<Item = C>) -> Report<C, M::Action>
where
    M: Model<State: Hash + Send + Sync + fmt::Debug + Clone + PartialEq, Action: Clone + PartialEq + fmt::Debug>
        + Send
        + Sync
        + 'static,
    C: Claimed,
{
    let began = Instant::now();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let checker = model.checker().threads(threads).spawn_bfs().join();
    let mut found = checker.discoveries();
    let paths = claims.map(|claim| (claim, found.remove(claim.text()).map(stateright::Path::into_actions)));
    Report {
        states: checker.unique_state_count(),
        depth: checker.max_depth() - 1,
        paths: paths.collect(),
        took: began.elapsed(),
    }
}

impl<C: Claimed, A> Report<C, A> {
    /// The claims that are not true.
    pub fn refuted(&self) -> Vec<C> {
        let wrong = self.paths.iter().filter(|(claim, path)| claim.is_proved_by_path() != path.is_some());
        wrong.map(|(claim, _)| *claim).collect()
    }
}

impl<C: Claimed, A: fmt::Debug> fmt::Display for Report<C, A> {
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
