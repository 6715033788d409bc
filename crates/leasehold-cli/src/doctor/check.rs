//! The findings.

use leasehold::inspect::{Check, Verdict};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::store::Origin;

/// All that was found, in the order in which it was looked for.
#[derive(Debug)]
pub(super) struct Checks {
    store: String,
    origin: Origin,
    pub(super) all: Vec<Check>,
    /// The exit code of the first failure.
    failed: Option<Exit>,
}

/// All of it, for scripts.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    /// The store, without user and password.
    store: &'a str,
    /// Where it was named: `given`, in an option or the environment; `file`, with its path; or `default`.
    origin: &'a Origin,
    /// The worst of what was found.
    verdict: Verdict,
    exit: u8,
    checks: &'a [Check],
}

impl Checks {
    pub(super) fn of(store: String, origin: Origin) -> Self {
        let all = vec![Check::ok("store", format!("{store}, {origin}"))];
        Self { store, origin, all, failed: None }
    }

    pub(super) fn add(&mut self, check: Check) {
        self.all.push(check);
    }

    /// The failure ends the command with its exit code.
    pub(super) fn fail(&mut self, check: &'static str, failure: &Failure) {
        self.add_failed(Check::failed(check, failure.message.clone()), failure.exit);
    }

    pub(super) fn add_failed(&mut self, check: Check, exit: Exit) {
        self.add(check);
        self.failed.get_or_insert(exit);
    }

    /// Whether nothing has failed so far.
    pub(super) fn reached(&self) -> bool {
        self.verdict() != Verdict::Failed
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.all.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok)
    }

    /// That of the worst; of several failures, of the first.
    pub(super) fn exit(&self) -> Exit {
        match self.verdict() {
            Verdict::Ok | Verdict::Remark => Exit::Done,
            Verdict::Finding => Exit::Config,
            Verdict::Failed => self.failed.unwrap_or(Exit::Unavailable),
        }
    }

    pub(super) fn report(&self) -> Report<'_> {
        Report {
            store: &self.store,
            origin: &self.origin,
            verdict: self.verdict(),
            exit: self.exit().code(),
            checks: &self.all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_decides() {
        let mut checks = Checks::of("redis://h".into(), Origin::Given);
        assert_eq!((checks.verdict(), checks.exit()), (Verdict::Ok, Exit::Done));
        checks.add(Check::remark("persistence", "none"));
        assert_eq!((checks.verdict(), checks.exit()), (Verdict::Remark, Exit::Done));
        checks.add(Check::finding("eviction", "it evicts"));
        assert_eq!((checks.verdict(), checks.exit()), (Verdict::Finding, Exit::Config));
        checks.fail("reach", &Failure::new(Exit::Unavailable, "gone"));
        assert_eq!((checks.verdict(), checks.exit(), checks.reached()), (Verdict::Failed, Exit::Unavailable, false));
        assert_eq!(serde_json::to_value(checks.report()).unwrap()["exit"], 69);
    }
}
