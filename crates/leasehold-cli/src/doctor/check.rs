//! What was found.

use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::store::Origin;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// It is as it should be, or as it cannot be otherwise.
    Ok,
    /// Worth knowing. It endangers no lock.
    Remark,
    /// It endangers locks.
    Finding,
    /// It could not be found out, or nothing works.
    Failed,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) check: &'static str,
    /// Which server of a cluster it is about.
    pub(super) server: Option<String>,
    pub(super) verdict: Verdict,
    pub(super) message: String,
    /// What to do about it.
    pub(super) remedy: Option<String>,
    #[serde(skip)]
    exit: Exit,
}

impl Check {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, server: None, verdict: Verdict::Ok, message: message.into(), remedy: None, exit: Exit::Done }
    }

    pub(super) fn remark(check: &'static str, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Remark, ..Self::ok(check, message) }
    }

    pub(super) fn finding(check: &'static str, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Finding, exit: Exit::Config, ..Self::ok(check, message) }
    }

    /// The failure ends the command with its exit code.
    pub(super) fn failed(check: &'static str, failure: &Failure) -> Self {
        Self { verdict: Verdict::Failed, exit: failure.exit, ..Self::ok(check, failure.message.clone()) }
    }

    /// Of this server of a cluster.
    pub(super) fn of(self, server: &str) -> Self {
        Self { server: Some(server.to_owned()), ..self }
    }

    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

/// All that was found, in the order in which it was looked for.
#[derive(Debug)]
pub(super) struct Checks {
    store: String,
    origin: Origin,
    pub(super) all: Vec<Check>,
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
        Self { store, origin, all }
    }

    pub(super) fn add(&mut self, check: Check) {
        self.all.push(check);
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
        let worst = self.verdict();
        self.all.iter().find(|check| check.verdict == worst).map_or(Exit::Done, |check| check.exit)
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
        checks.add(Check::failed("reach", &Failure::new(Exit::Unavailable, "gone")));
        assert_eq!((checks.verdict(), checks.exit(), checks.reached()), (Verdict::Failed, Exit::Unavailable, false));
        assert_eq!(serde_json::to_value(checks.report()).unwrap()["exit"], 69);
    }
}
