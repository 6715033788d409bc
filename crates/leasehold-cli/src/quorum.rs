//! A quorum as this program uses it, and its health in words.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::ConnectError;
use leasehold::redlock::blocking;
use leasehold::redlock::{Purpose, RedlockConfig, Report};

use crate::durations::whole_seconds_up;
use crate::exit::{Exit, Failure};

/// How long each step of a pass may take.
pub(crate) const PASS_WITHIN: Duration = Duration::from_secs(1);
/// How long a waiter looks at the nodes. Short, so that a node that hangs does not delay a waiter.
const GLANCE: Duration = Duration::from_millis(200);

/// A quorum of Redis servers.
#[derive(Clone, Debug)]
pub(crate) struct Quorum(Arc<blocking::Quorum>);

impl Quorum {
    /// The quorum of a configuration, without a connection.
    pub(crate) fn open(config: &RedlockConfig) -> Result<Self, Failure> {
        Ok(Self(Arc::new(blocking::open(config).map_err(failure)?)))
    }

    /// Connects to the quorum of a configuration; also returns warnings for operators.
    pub(crate) fn connect(config: &RedlockConfig) -> Result<(Self, Vec<String>), Failure> {
        let (quorum, report) = blocking::connect(config).map_err(failure)?;
        Ok((Self(Arc::new(quorum)), report.warnings()))
    }

    /// For a client of the library.
    pub(crate) fn backend(&self) -> Arc<blocking::Quorum> {
        Arc::clone(&self.0)
    }

    /// Runs a recovery pass.
    pub(crate) fn pass(&self, purpose: Purpose) -> Result<Report, Failure> {
        Ok(self.0.pass(purpose, PASS_WITHIN)?)
    }

    /// Why locks cannot be granted now, if so.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let report = self.0.pass(Purpose::Look, GLANCE).ok()?;
        let health = Health::of(&report);
        (!health.can_grant()).then(|| health.to_string())
    }
}

/// The health of a quorum, from a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    pub(crate) voting: usize,
    pub(crate) nodes: usize,
    pub(crate) majority: usize,
    /// How long until enough nodes vote, if the abstaining nodes suffice.
    pub(crate) wait: Option<Duration>,
}

impl Health {
    pub(crate) fn of(report: &Report) -> Self {
        Self { voting: report.voting(), nodes: report.nodes.len(), majority: report.majority, wait: report.wait() }
    }

    pub(crate) fn can_grant(self) -> bool {
        self.voting >= self.majority
    }

    /// How many more of the voting nodes may fail.
    pub(crate) fn spare(self) -> usize {
        self.voting.saturating_sub(self.majority)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { voting, nodes, majority, .. } = self;
        let verb = if *voting == 1 { "votes" } else { "vote" };
        write!(f, "{voting} of {nodes} nodes {verb}, {majority} are needed")?;
        match self.wait {
            Some(wait) => {
                let wait = whole_seconds_up(wait.max(Duration::from_secs(1)));
                write!(f, "; expected within {wait} as long as clients keep connecting")
            }
            None if self.can_grant() => match self.spare() {
                0 => f.write_str(", none may fail"),
                spare => write!(f, ", {spare} may fail"),
            },
            None => f.write_str("; check that the others are running"),
        }
    }
}

/// Parses the URL of a quorum.
pub(crate) fn config(url: &str) -> Result<RedlockConfig, Failure> {
    RedlockConfig::from_url(url).map_err(|invalid| Failure::new(Exit::Config, invalid.to_string()))
}

pub(crate) fn failure(error: ConnectError) -> Failure {
    match error {
        ConnectError::Invalid(invalid) => Failure::new(Exit::Config, invalid.to_string()),
        ConnectError::Backend(error) => error.into(),
        ConnectError::Host(_) | _ => Failure::new(Exit::Internal, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_says_how_many_may_fail_and_what_is_missing() {
        let told = |voting, wait: Option<u64>| {
            let wait = wait.map(Duration::from_secs);
            Health { voting, nodes: 5, majority: 3, wait }.to_string()
        };
        assert_eq!(told(5, None), "5 of 5 nodes vote, 3 are needed, 2 may fail");
        assert_eq!(told(3, None), "3 of 5 nodes vote, 3 are needed, none may fail");
        assert_eq!(told(1, None), "1 of 5 nodes votes, 3 are needed; check that the others are running");
        assert!(told(2, Some(7)).starts_with("2 of 5 nodes vote, 3 are needed; expected within 7s"));
    }
}
