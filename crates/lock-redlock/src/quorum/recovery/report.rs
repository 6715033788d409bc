//! What a recovery pass found, for programs and for operators.

use std::time::Duration;

use lock_core::node::View;
use lock_core::{BackendError, Effect, ErrorKind, Operation};

use crate::BACKEND;

/// How far a counter may be ahead of its node's clock before there is a warning.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// What a pass found when it ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The nodes, in the order of the list.
    pub nodes: Vec<NodeReport>,
    /// How many are needed for anything.
    pub majority: usize,
}

impl Report {
    /// Checks that a majority of the nodes answered.
    ///
    /// # Errors
    /// Why the others did not.
    pub fn check_reached(&self) -> Result<(), BackendError> {
        let errors: Vec<_> = self.nodes.iter().filter_map(|node| node.view.as_ref().err()).collect();
        let (all, answered) = (self.nodes.len(), self.nodes.len() - errors.len());
        if answered >= self.majority {
            return Ok(());
        }
        // Nodes with transient errors may come back and complete a majority.
        let (passing, lasting): (Vec<&BackendError>, Vec<&BackendError>) =
            errors.iter().partition(|error| error.kind().is_transient());
        let hopeless = all - lasting.len() < self.majority;
        let first = if hopeless { lasting.first() } else { passing.first() };
        let kind = first.map_or(ErrorKind::Unreachable, |error| error.kind());
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let message =
            format!("only {answered} of {all} nodes answer, {} are needed ({})", self.majority, told.join("; "));
        Err(BackendError::new(BACKEND, Operation::Connect, kind, Effect::None, message))
    }

    /// Whether all nodes answered and none was ever part of a deployment: this one is new, or all of it was lost.
    pub fn is_blank(&self) -> bool {
        self.nodes.iter().all(|node| node.view.as_ref().is_ok_and(|view| view.membership.is_none()))
    }

    /// Whether a node says that it cannot be one, for instance because it is a replica, and so does not count.
    pub fn has_strangers(&self) -> bool {
        // Errors of `Connect` mean that a node belongs to another deployment, which stops nothing.
        let strange =
            |error: &BackendError| error.kind() == ErrorKind::Config && error.operation() != Operation::Connect;
        self.nodes.iter().any(|node| node.view.as_ref().is_err_and(strange))
    }

    /// Warnings for operators.
    pub fn warnings(&self) -> Vec<String> {
        let count = self.nodes.len();
        let even = count
            .is_multiple_of(2)
            .then(|| format!("{count} nodes bear no more failures than {}: an odd number is better", count - 1));
        even.into_iter().chain(self.nodes.iter().flat_map(NodeReport::warnings)).collect()
    }
}

impl NodeReport {
    fn warnings(&self) -> Vec<String> {
        let address = &self.address;
        let view = match &self.view {
            Ok(view) => view,
            Err(error) if error.kind().is_transient() => return Vec::new(),
            Err(error) => return vec![format!("{address} does not count: {error}")],
        };
        let evicts = view.evicts.as_ref().map(|policy| {
            format!(
                "{address} may drop locks when its memory is full: its maxmemory-policy is {policy}, not noeviction"
            )
        });
        let by_clock = self.recovery.filter(|recovery| *recovery == Recovery::ByClock).map(|_| {
            format!("{address} votes again, and too few of the others remembered: its clock alone keeps tokens rising")
        });
        let ahead = Duration::from_micros(view.counter.saturating_sub(view.clock.0));
        let ahead = (ahead > AHEAD_MAX).then(|| {
            format!("{address} counts {} ahead of its clock: some clock was wrong", humantime::format_duration(ahead))
        });
        evicts.into_iter().chain(by_clock).chain(ahead).collect()
    }
}

/// How one node is.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// Its address.
    pub address: String,
    /// Its last answer.
    pub view: Result<View, BackendError>,
    /// How it came to vote in this pass.
    pub recovery: Option<Recovery>,
    /// How long until its dwell is over at the latest, while this client runs. In a pass that only looks: while others run
    /// passes.
    pub votes_in: Option<Duration>,
}

/// How a counter was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// From enough of the others, or of the nodes that were moved here: no token can be drawn twice.
    FromOthers,
    /// Too few of the others remembered: the node's clock alone keeps the tokens rising.
    ByClock,
}
